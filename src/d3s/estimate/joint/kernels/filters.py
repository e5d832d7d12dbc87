"""Copies, means and interpolation of images, and of rows of images for the other kernels."""

import numpy as np

from d3s.estimate.joint.types import (
    Array,
)
from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import (
    SHORTS,
    load_16,
    maximum,
    minimum,
    splat_16,
    store,
)
from d3s.types import Image

_BAND = 64  # rows that share one running sum down the columns


def local_mean(memory: Scratch, image: Array, half: int) -> Array:
    """Return the mean over those of 2 half + 1 pixels each way that are inside the frame."""
    out = memory.empty(image.shape)
    run_over_rows(_means, -(-image.shape[0] // _BAND), image, half, out)
    return out


@compiled
def _means(start: int, stop: int, image: Image, half: int, out: Image) -> None:
    """Mean over a window; start and stop count bands of rows.

    Down the columns by running sums in double precision, along the rows by sums of 1, 2, 4 and so
    on.
    """
    rows, cols = image.shape
    room = cols + 2 * half + 3 * SHORTS
    down = np.empty(cols, dtype=np.float64)
    powers = np.zeros(room, dtype=np.float32)
    inner = powers[half:]
    across = np.empty(room, dtype=np.float32)
    counts = np.empty(cols, dtype=np.float32)
    for col in range(cols):
        counts[col] = min(col + half, cols - 1) - max(col - half, 0) + 1
    for band in range(start, stop):
        first = band * _BAND
        for col in range(cols):
            down[col] = 0
        for row in range(max(first - half, 0), min(first + half, rows)):
            line = image[row]
            for col in range(cols):
                down[col] += line[col]
        for row in range(first, min(first + _BAND, rows)):
            if row + half < rows:
                line = image[row + half]
                for col in range(cols):
                    down[col] += line[col]
            for place in range(0, powers.size - SHORTS, SHORTS):
                store(powers, place, splat_16(np.float32(0.0)))
            for col in range(cols):
                inner[col] = down[col]
            _sum_across(powers, across, cols, 2 * half + 1)
            count = np.float32(min(row + half, rows - 1) - max(row - half, 0) + 1)
            line = out[row]
            for col in range(cols):
                line[col] = across[col] / (count * counts[col])
            if row - half >= 0:
                line = image[row - half]
                for col in range(cols):
                    down[col] -= line[col]


@inlined
def _sum_across(powers: Image, out: Image, cols: int, width: int) -> None:
    """out[i] = sum of `width` values from powers[i] on; `powers` is overwritten."""
    for col in range(0, cols, SHORTS):
        store(out, col, splat_16(np.float32(0.0)))
    offset, power, room = 0, 1, cols + width - 1
    while power <= width:
        if width & power:
            for col in range(0, cols, SHORTS):
                store(out, col, (load_16(out, col) + load_16(powers, col + offset)))
            offset += power
        if 2 * power <= width:
            for place in range(0, room - power, SHORTS):
                both = load_16(powers, place) + load_16(powers, place + power)
                store(powers, place, both)
        power *= 2


def median_3x3(memory: Scratch, image: Array) -> Array:
    """Return the median over 3 x 3 pixels; edge pixels are repeated."""
    out = memory.empty(image.shape)
    run_over_rows(_median_3x3, image.shape[0], image, out)
    return out


@compiled
def _median_3x3(start: int, stop: int, image: Image, out: Image) -> None:
    """Median over 3 x 3 pixels, by columns of three that are sorted once.

    It is the median of the largest low, the median of the middles and the smallest high.
    """
    rows, cols = image.shape
    room = cols + 2 * SHORTS
    lines = np.zeros(3 * room, dtype=np.float32)
    result = np.empty(room, dtype=np.float32)
    for row in range(start, stop):
        for near in range(3):
            first, line = near * room, image[min(max(row + near - 1, 0), rows - 1)]
            for col in range(cols):
                lines[first + 1 + col] = line[col]
            lines[first], lines[first + 1 + cols] = line[0], line[cols - 1]
        for col in range(0, cols + 2, SHORTS):
            a, b = load_16(lines, col), load_16(lines, col + room)
            a, b, c = minimum(a, b), maximum(a, b), load_16(lines, col + 2 * room)
            b, c = minimum(b, c), maximum(b, c)
            store(lines, col, minimum(a, b))
            store(lines, col + room, maximum(a, b))
            store(lines, col + 2 * room, c)
        for col in range(0, cols, SHORTS):
            a, b, c = (
                load_16(lines, col),
                load_16(lines, col + room),
                load_16(lines, col + 2 * room),
            )
            d = load_16(lines, col + 1 + room)
            a = maximum(maximum(a, load_16(lines, col + 1)), load_16(lines, col + 2))
            c = minimum(
                minimum(c, load_16(lines, col + 1 + 2 * room)), load_16(lines, col + 2 + 2 * room)
            )
            b = minimum(maximum(b, d), maximum(minimum(b, d), load_16(lines, col + 2 + room)))
            store(result, col, minimum(maximum(a, b), maximum(minimum(a, b), c)))
        line = out[row]
        for col in range(cols):
            line[col] = result[col]


def halve(memory: Scratch, image: Image) -> Image:
    """Shrink by two: the mean of the middle two values of each 2 x 2 pixels."""
    rows, cols = (-(-size // 2) for size in image.shape)
    out = memory.empty((rows, cols))
    run_over_rows(_halve, rows, image, out)
    return out


@compiled
def _halve(start: int, stop: int, image: Image, out: Image) -> None:
    """Shrink by two: the mean of the middle two values of each 2 x 2 cells."""
    rows, cols = image.shape
    for row in range(start, stop):
        top, bottom = image[2 * row], image[min(2 * row + 1, rows - 1)]
        line = out[row]
        for col in range(cols // 2):
            a, b, c, d = top[2 * col], top[2 * col + 1], bottom[2 * col], bottom[2 * col + 1]
            least = min(min(a, b), min(c, d))
            most = max(max(a, b), max(c, d))
            line[col] = np.float32(0.5) * (((a + b) + (c + d)) - least - most)
        if cols % 2:
            line[cols // 2] = np.float32(0.5) * (top[cols - 1] + bottom[cols - 1])


def double(memory: Scratch, image: Image, shape: tuple[int, int]) -> Image:
    """Enlarge by two to a shape, by linear interpolation."""
    out = memory.empty(shape)
    run_over_rows(_double, shape[0], image, out)
    return out


@compiled
def _double(start: int, stop: int, image: Image, out: Image) -> None:
    """Enlarge by two, by linear interpolation."""
    cols = image.shape[1]
    work = np.empty(cols + 2, dtype=np.float32)
    for row in range(start, stop):
        between_cells(image, row, 0, cols, work, out[row])


@part
def fill(line: Image, out: Image) -> None:
    """Copy a line, as far as both lines reach."""
    for col in range(min(line.size, out.size)):
        out[col] = line[col]


@part
def between_cells(image: Image, row: int, begin: int, end: int, work: Image, out: Image) -> None:
    """Interpolate a row of pixels linearly between the centres of cells of 2 x 2 pixels.

    For the columns of cells `begin` to `end`; edge cells are repeated. `work` has two values more
    than there are cells.
    """
    near, far = np.float32(0.75), np.float32(0.25)
    rows, cols = image.shape
    other = max(row // 2 - 1, 0) if row % 2 == 0 else min(row // 2 + 1, rows - 1)
    # Loops begin at 0, over parts of the lines: only such loops are vectorised.
    first, last = max(begin - 1, 0), min(end + 1, cols)
    one, two, mixed = image[row // 2, first:last], image[other, first:last], work[first + 1 :]
    for col in range(last - first):
        mixed[col] = near * one[col] + far * two[col]
    if begin == 0:
        work[0] = work[1]
    if end == cols:
        work[cols + 1] = work[cols]
    before, middle, after = work[begin:], work[begin + 1 :], work[begin + 2 :]
    target = out[2 * begin :]
    for col in range(min(end - begin, target.size // 2)):
        target[2 * col] = near * middle[col] + far * before[col]
        target[2 * col + 1] = near * middle[col] + far * after[col]
    whole = out.size // 2
    if whole < end:
        out[2 * whole] = near * work[whole + 1] + far * work[whole]
