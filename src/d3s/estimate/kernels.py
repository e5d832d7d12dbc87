"""Compiled loops of the joint method. Private: contiguous float32, written into given arrays.

Every loop over rows takes (start, stop) first, for `threads.over_rows`. Sums that run along an axis
start anew at every row, or at every `BAND` rows, and in double precision: what comes out does not
depend on how the rows were shared out.
"""

import numpy as np
from numpy.typing import NDArray

from d3s.compiled import compiled

Image = NDArray[np.float32]  # also of costs, with the shifts as third axis
Indices = NDArray[np.int64]

BAND = 64  # rows that share one running sum down the columns


@compiled
def smooth_rows(start: int, stop: int, image: Image, kernel: Image, out: Image) -> None:
    """Correlate each row with a symmetric kernel; the image goes on as its mirror image."""
    cols = image.shape[1]
    reach = kernel.size // 2
    period = max(2 * (cols - 1), 1)
    for row in range(start, stop):
        for col in range(cols):
            total = np.float32(0.0)
            if reach <= col < cols - reach:
                for tap in range(kernel.size):
                    total += kernel[tap] * image[row, col - reach + tap]
            else:
                for tap in range(kernel.size):
                    place = abs(col - reach + tap) % period
                    if place >= cols:
                        place = period - place
                    total += kernel[tap] * image[row, place]
            out[row, col] = total


@compiled
def smooth_cols(start: int, stop: int, image: Image, kernel: Image, step: int, out: Image) -> None:
    """Correlate each column with a symmetric kernel, and keep every `step`-th row and column."""
    rows, cols = image.shape
    reach = kernel.size // 2
    period = max(2 * (rows - 1), 1)
    line = np.empty(cols, dtype=np.float32)
    for row in range(start, stop):
        line[:] = 0
        for tap in range(kernel.size):
            place = abs(row * step - reach + tap) % period
            if place >= rows:
                place = period - place
            weight = kernel[tap]
            for col in range(cols):
                line[col] += weight * image[place, col]
        for col in range(out.shape[1]):
            out[row, col] = line[col * step]


@compiled
def sums_along_rows(start: int, stop: int, image: Image, half: int, out: Image) -> None:
    """Sum over 2 half + 1 columns, fewer at the border."""
    cols = image.shape[1]
    for row in range(start, stop):
        total = 0.0
        for col in range(min(half, cols)):
            total += image[row, col]
        for col in range(cols):
            if col + half < cols:
                total += image[row, col + half]
            if col - half - 1 >= 0:
                total -= image[row, col - half - 1]
            out[row, col] = total


@compiled
def sums_along_cols(start: int, stop: int, image: Image, half: int, out: Image) -> None:
    """Sum over 2 half + 1 rows, fewer at the border; start and stop count bands of rows."""
    rows, cols = image.shape
    total = np.empty(cols, dtype=np.float64)
    for band in range(start, stop):
        first = band * BAND
        total[:] = 0
        for row in range(max(first - half, 0), min(first + half, rows)):
            for col in range(cols):
                total[col] += image[row, col]
        for row in range(first, min(first + BAND, rows)):
            if row + half < rows:
                for col in range(cols):
                    total[col] += image[row + half, col]
            for col in range(cols):
                out[row, col] = total[col]
            if row - half >= 0:
                for col in range(cols):
                    total[col] -= image[row - half, col]


@compiled
def spline_coefficients(start: int, stop: int, image: Image, out: Image) -> None:
    """Cubic B-spline of each row that passes through the pixels; the row goes on as its mirror."""
    cols = image.shape[1]
    pole = np.sqrt(3.0) - 2.0
    period = max(2 * (cols - 1), 1)
    line = np.empty(cols, dtype=np.float64)
    for row in range(start, stop):
        if cols == 1:
            out[row, 0] = image[row, 0]
            continue
        total, power = 0.0, 1.0
        for step in range(24):  # the pole to the 24th is below a float's last bit
            place = step % period
            if place >= cols:
                place = period - place
            total += power * image[row, place]
            power *= pole
        line[0] = total
        for col in range(1, cols):
            line[col] = image[row, col] + pole * line[col - 1]
        line[-1] = pole / (pole * pole - 1.0) * (line[-1] + pole * line[-2])
        for back in range(1, cols):
            col = cols - 1 - back
            line[col] = pole * (line[col + 1] - line[col])
        for col in range(cols):
            out[row, col] = 6.0 * line[col]


@compiled
def laplacian(start: int, stop: int, image: Image, out: Image) -> None:
    """Five-point Laplacian; beyond the border the image goes on as its last pixel."""
    rows, cols = image.shape
    for row in range(start, stop):
        up, down = max(row - 1, 0), min(row + 1, rows - 1)
        for col in range(cols):
            left, right = max(col - 1, 0), min(col + 1, cols - 1)
            out[row, col] = (
                (image[up, col] + image[down, col])
                + (image[row, left] + image[row, right])
                - 4 * image[row, col]
            )


@compiled
def gradient_x(start: int, stop: int, image: Image, out: Image) -> None:
    """Derivative along x by five points, right to the fourth order; zero at the border."""
    cols = image.shape[1]
    for row in range(start, stop):
        for col in range(cols):
            if 2 <= col < cols - 2:
                near = image[row, col + 1] - image[row, col - 1]
                far = image[row, col + 2] - image[row, col - 2]
                out[row, col] = (8 * near - far) / 12
            else:
                out[row, col] = 0


@compiled
def residuals(
    start: int,
    stop: int,
    left: Image,
    left_x: Image,
    left_lap: Image,
    right: Image,
    right_lap: Image,
    disparity: Image,
    defocus: Image,
    mean: Image,
    residual: Image,
    gradient: Image,
) -> None:
    """What is left of the left view once the right one is moved over it and blurred alike.

    `right` and `right_lap` are spline coefficients. Half the blur-variance difference at a
    disparity is defocus[0] + defocus[1] * disparity. The gradient is that of the residual to the
    disparity: what the shift does, and what the blur does.
    """
    cols = left.shape[1]
    sixth = np.float32(1.0 / 6.0)
    half = np.float32(0.5)
    for row in range(start, stop):
        for col in range(cols):
            shift = disparity[row, col]
            place = col - shift
            whole = int(np.floor(place))
            if whole < 1 or whole > cols - 3:
                mean[row, col] = left[row, col]
                residual[row, col] = 0
                gradient[row, col] = 0
                continue
            t = np.float32(place - whole)
            u = np.float32(1.0) - t
            w0, w3 = u * u * u * sixth, t * t * t * sixth
            w1 = (4 + 3 * t * (t * t - 2 * t)) * sixth
            w2 = (4 + 3 * u * (u * u - 2 * u)) * sixth
            v0, v3 = -half * u * u, half * t * t
            v1, v2 = half * t * (3 * t - 4), -half * u * (3 * u - 4)
            a0, a1 = right[row, whole - 1], right[row, whole]
            a2, a3 = right[row, whole + 1], right[row, whole + 2]
            moved = w0 * a0 + w1 * a1 + w2 * a2 + w3 * a3
            moved_x = v0 * a0 + v1 * a1 + v2 * a2 + v3 * a3
            moved_lap = (
                w0 * right_lap[row, whole - 1]
                + w1 * right_lap[row, whole]
                + w2 * right_lap[row, whole + 1]
                + w3 * right_lap[row, whole + 2]
            )
            lap = half * (left_lap[row, col] + moved_lap)
            mean[row, col] = half * (left[row, col] + moved)
            residual[row, col] = left[row, col] - moved + (defocus[0] + defocus[1] * shift) * lap
            gradient[row, col] = half * (left_x[row, col] + moved_x) + defocus[1] * lap


@compiled
def matching_costs(
    start: int,
    stop: int,
    left: Image,
    left_lap: Image,
    right: Image,
    right_lap: Image,
    shifts: Indices,
    defocus: Image,
    half: int,
    floor: np.float32,
    tolerance: np.float32,
    limit: np.float32,
    costs: Image,
) -> None:
    """Misfit of the views at whole shifts, over what noise and texture explain, up to `limit`.

    costs[row, col, k] = mean(e²) / (floor + tolerance mean(a² + b²)), over 2 half + 1 pixels each
    way, with e = a - b of the views a, b blurred alike at shift k. Windows end at the border.
    """
    rows, cols = left.shape
    misfit = np.empty(cols, dtype=np.float32)
    energy = np.empty(cols, dtype=np.float32)
    for row in range(start, stop):
        first, last = max(row - half, 0), min(row + half, rows - 1)
        for k in range(shifts.size):
            shift, blur = shifts[k], np.float32(0.5) * defocus[k]
            misfit[:] = 0
            energy[:] = 0
            begin, end = max(shift, 0), min(cols, cols + shift)
            for line in range(first, last + 1):
                for col in range(begin, end):
                    a = left[line, col] + blur * left_lap[line, col]
                    b = right[line, col - shift] - blur * right_lap[line, col - shift]
                    misfit[col] += (a - b) * (a - b)
                    energy[col] += a * a + b * b
            for col in range(cols):
                if col < begin + half or col >= end - half:
                    costs[row, col, k] = limit
                    continue
                above, below = np.float32(0.0), np.float32(0.0)
                for near in range(col - half, col + half + 1):
                    above += misfit[near]
                    below += energy[near]
                count = np.float32((2 * half + 1) * (last - first + 1))
                costs[row, col, k] = min(above / (count * floor + tolerance * below), limit)


@compiled
def paths_along_rows(
    start: int, stop: int, costs: Image, small: np.float32, large: np.float32, total: Image
) -> None:
    """Semi-global costs of the paths that come from the left and from the right, added up."""
    cols, depth = costs.shape[1:]
    before = np.empty(depth + 2, dtype=np.float32)
    now = np.empty(depth + 2, dtype=np.float32)
    for row in range(start, stop):
        for way in range(2):
            before[:] = np.inf
            before[1:-1] = 0
            lowest = np.float32(0.0)
            for step in range(cols):
                col = step if way == 0 else cols - 1 - step
                now[0] = np.inf
                now[-1] = np.inf
                least = np.float32(np.inf)
                for k in range(depth):
                    best = min(before[k + 1], min(before[k], before[k + 2]) + small)
                    value = costs[row, col, k] + min(best, lowest + large) - lowest
                    now[k + 1] = value
                    least = min(least, value)
                    if way == 0:
                        total[row, col, k] = value
                    else:
                        total[row, col, k] += value
                before, now = now, before
                lowest = least


@compiled
def paths_along_cols(
    start: int, stop: int, costs: Image, small: np.float32, large: np.float32, total: Image
) -> None:
    """The same from above and from below, added to `total`; start and stop are columns."""
    rows, _, depth = costs.shape
    width = stop - start
    before = np.empty((width, depth + 2), dtype=np.float32)
    now = np.empty((width, depth + 2), dtype=np.float32)
    lowest = np.empty(width, dtype=np.float32)
    for way in range(2):
        before[:] = np.inf
        before[:, 1:-1] = 0
        now[:, 0] = np.inf
        now[:, -1] = np.inf
        lowest[:] = 0
        for step in range(rows):
            row = step if way == 0 else rows - 1 - step
            for place in range(width):
                least = np.float32(np.inf)
                low = lowest[place]
                for k in range(depth):
                    best = min(
                        before[place, k + 1], min(before[place, k], before[place, k + 2]) + small
                    )
                    value = costs[row, start + place, k] + min(best, low + large) - low
                    now[place, k + 1] = value
                    least = min(least, value)
                    total[row, start + place, k] += value
                lowest[place] = least
            before, now = now, before


@compiled
def pick_left(
    start: int, stop: int, total: Image, best: Image, lowest: Indices, other: Indices
) -> None:
    """Position of the lowest cost between the shifts, and the next best valley.

    `best` counts in steps of the shifts, by a parabola through three; `lowest` is the step it is
    nearest to. `other` is the lowest of the steps that are lower than both their neighbours and
    not next to `lowest`; -1 if there is none.
    """
    cols, depth = total.shape[1:]
    for row in range(start, stop):
        for col in range(cols):
            first, second = 0, -1
            for k in range(1, depth):
                if total[row, col, k] < total[row, col, first]:
                    first = k
            for k in range(depth):
                value = total[row, col, k]
                is_valley = (k == 0 or value <= total[row, col, k - 1]) and (
                    k == depth - 1 or value <= total[row, col, k + 1]
                )
                is_lower = second < 0 or value < total[row, col, second]
                if is_valley and is_lower and abs(k - first) > 1:
                    second = k
            offset = np.float32(0.0)
            if 0 < first < depth - 1:
                before, after = total[row, col, first - 1], total[row, col, first + 1]
                bend = before + after - 2 * total[row, col, first]
                if bend > 0:
                    offset = np.float32(0.5) * (before - after) / bend
            best[row, col] = first + offset
            lowest[row, col] = first
            other[row, col] = second


@compiled
def pick_right(start: int, stop: int, total: Image, first: int, best: Indices) -> None:
    """Step of the lowest cost of each pixel of the right view; -1 where none sees it.

    Shifts are `first`, `first` + 1 and so on.
    """
    cols, depth = total.shape[1:]
    for row in range(start, stop):
        for col in range(cols):
            lowest, value = -1, np.float32(np.inf)
            for k in range(depth):
                place = col + first + k
                if 0 <= place < cols and total[row, place, k] < value:
                    lowest, value = k, total[row, place, k]
            best[row, col] = lowest


@compiled
def median_of_nine(start: int, stop: int, image: Image, out: Image) -> None:
    """Median of each pixel and its neighbours; beyond the border the image repeats its last."""
    rows, cols = image.shape
    nine = np.empty(9, dtype=image.dtype)
    for row in range(start, stop):
        for col in range(cols):
            count = 0
            for down in range(-1, 2):
                for right in range(-1, 2):
                    value = image[
                        min(max(row + down, 0), rows - 1), min(max(col + right, 0), cols - 1)
                    ]
                    place = count
                    while place > 0 and nine[place - 1] > value:
                        nine[place] = nine[place - 1]
                        place -= 1
                    nine[place] = value
                    count += 1
            out[row, col] = nine[4]


@compiled
def extent_along_rows(
    start: int, stop: int, image: Image, half: int, low: Image, high: Image
) -> None:
    """Smallest and largest value within `half` columns."""
    cols = image.shape[1]
    for row in range(start, stop):
        for col in range(cols):
            least = most = image[row, col]
            for near in range(max(col - half, 0), min(col + half + 1, cols)):
                least = min(least, image[row, near])
                most = max(most, image[row, near])
            low[row, col], high[row, col] = least, most


@compiled
def extent_along_cols(
    start: int, stop: int, low: Image, high: Image, half: int, out: Image
) -> None:
    """Difference of the largest and the smallest value within `half` rows of these."""
    rows, cols = low.shape
    for row in range(start, stop):
        for col in range(cols):
            least, most = low[row, col], high[row, col]
            for near in range(max(row - half, 0), min(row + half + 1, rows)):
                least = min(least, low[near, col])
                most = max(most, high[near, col])
            out[row, col] = most - least
