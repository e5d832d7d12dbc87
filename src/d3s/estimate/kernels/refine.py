"""Compiled loops of the refinement; `estimate.refine` says what they are for.

Loops run along the columns and write one line each: so the compiler can use vectors. Sums over
windows are taken anew for every row, in single precision: no error runs along, and what comes out
does not depend on where a thread began.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from d3s.compiled import compiled
from d3s.estimate.fitting import (
    APART,
    FLAT,
    TINY,
    UNEXPLAINED,
    UNKNOWN_PX,
    Fit,
    Fitting,
    Plane,
    Refined,
    window_pixels,
)
from d3s.estimate.flags import Flag
from d3s.memory import Memory
from d3s.threads import over_rows

Image = NDArray[np.float32]
Planes = NDArray[np.float32]  # (planes, rows, cols)
Counts = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

_TILE = 192  # columns of which all lines of a window stay close to the processor
_SPLINE_REACH = 10  # the pole of cubic splines to this is 2e-6
_LIGHT = 6  # planes that a disparity alone needs: the first of all
_BORDER = int(Flag.BORDER)
_SUMS = len(Plane) + 1  # with that of squared gradients times rows


class CompiledRefine:
    """Single precision, machine code, rows shared out among the cores."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def halved(self, image: Image) -> Image:
        """Mean of the middle two of each 2 x 2 pixels."""
        rows, cols = (-(-size // 2) for size in image.shape)
        out = self._memory.empty((rows, cols))
        over_rows(_halved, rows, image, out)
        return out

    def doubled(self, image: Image, shape: tuple[int, int]) -> Image:
        """Image of a shape, linear between the pixels, each of which stands for 2 x 2."""
        out = self._memory.empty(shape)
        over_rows(_doubled, shape[0], image, out)
        return out

    def cells(
        self, left: Image, right: Image, disparity: Image, wanted: Mask, fitting: Fitting
    ) -> Planes:
        """Sums over the pixels of each cell that the windows of a wanted one reach."""
        rows, cols = disparity.shape
        out = self._memory.empty((len(Plane), rows, cols))
        first, last = _hull(wanted, fitting.halves[-1] + len(fitting.taps) // 2)
        with self._memory.part():
            spline = self._memory.empty(right.shape)
            over_rows(_spline, right.shape[0], right, _spline_taps(), spline)
            line = np.array(fitting.defocus, dtype=np.float32)
            over_rows(
                _cells, rows, left, spline, disparity, line, fitting.cell, first, last, out
            )
        taps = np.array(fitting.taps, dtype=np.float32)
        own = [window_pixels(size, fitting.cell, 0) for size in fitting.shape]
        over_rows(_smooth_squares, rows, out[Plane.G], taps, *own, first, last, out[Plane.UU])
        return out

    def scales(self, disparity_px: Image, finer: dict[int, tuple[float, float]]) -> Counts:
        """Coarsest scale at which each cell may be fitted."""
        out = self._memory.empty(disparity_px.shape, np.uint8)
        ends = [(scale, *ends) for scale, ends in sorted(finer.items())]
        numbers = np.array(ends, dtype=np.float32).reshape(len(ends), 3)
        over_rows(_scales, out.shape[0], disparity_px, numbers, out)
        return out

    def one_surface(
        self, disparity: Image, halves: tuple[int, ...], least: float, share: float, zero: float
    ) -> Counts:
        """How many windows in a row hold disparities that may be of one surface."""
        out = self._memory.empty(disparity.shape, np.uint8)
        numbers = np.array((least, share, zero), dtype=np.float32)
        over_rows(_one_surface, out.shape[0], disparity, np.array(halves, np.int64), numbers, out)
        return out

    def usable(
        self, disparity: Image, fitting: Fitting, least: float, share: float, zero: float
    ) -> Counts:
        """How many of the larger windows lie within both views and on one surface."""
        count = self.one_surface(disparity, fitting.halves[1:], least, share, zero)
        halves = np.array(fitting.halves, dtype=np.int64)
        over_rows(
            _within, count.shape[0], disparity, halves, fitting.cell, fitting.shape[1], count
        )
        return count

    def moved(
        self, sums: Planes, disparity: Image, usable: Counts, wanted: Mask, fitting: Fitting
    ) -> Image:
        """Disparity by least squares, of the wanted cells; the others stay where they are."""
        return self._fit(sums, disparity, usable, disparity, wanted, fitting, _LIGHT).disparity

    def fit(
        self,
        sums: Planes,
        disparity: Image,
        usable: Counts,
        noise: Image,
        wanted: Mask,
        fitting: Fitting,
    ) -> Fit:
        """The same, with all that is known of it."""
        return self._fit(sums, disparity, usable, noise, wanted, fitting, len(Plane))

    def _fit(
        self,
        sums: Planes,
        disparity: Image,
        usable: Counts,
        noise: Image,
        wanted: Mask,
        fitting: Fitting,
        planes: int,
    ) -> Fit:
        shape = disparity.shape
        out = self._memory.empty((len(Fit._fields) - 1 if planes > _LIGHT else 1, *shape))
        used = self._memory.empty(shape, np.uint8)
        rows_px, cols_px = (
            np.array([window_pixels(size, fitting.cell, half) for half in fitting.halves])
            for size in fitting.shape
        )
        over_rows(
            _fit,
            shape[0],
            sums,
            planes,
            disparity,
            usable,
            noise,
            wanted,
            np.array(fitting.halves, dtype=np.int64),
            rows_px,
            cols_px,
            *(window_pixels(size, fitting.cell, 1) for size in fitting.shape),
            np.array(fitting.share_inside, dtype=np.float32),
            np.array(fitting.chance, dtype=np.float32),
            _numbers(fitting),
            out,
            used,
        )
        if planes == _LIGHT:
            return Fit(*(out[0],) * 6, used)
        return Fit(*out, used)

    def finished(self, fit: Fit, fitting: Fitting, scale: int) -> Refined:
        """A fit in pixels of the frame, less what slopes add to it."""
        empty, shape = self._memory.empty, fit.disparity.shape
        out = Refined(empty(shape), empty(shape), fit.correlation, fit.misfit, empty(shape, np.uint16))
        over_rows(
            _finished,
            shape[0],
            fit.disparity,
            fit.sigma,
            fit.down,
            fit.across,
            fit.used,
            np.array(fitting.halves, dtype=np.int64),
            fitting.cell,
            fitting.shape[1],
            np.float32(scale),
            out.disparity_px,
            out.sigma_px,
            out.flags,
        )
        return out

    def nothing(self, shape: tuple[int, ...]) -> Refined:
        """Room for what is to be known."""
        empty = self._memory.empty
        return Refined(*(empty(shape) for _ in range(4)), empty(shape, np.uint16))

    def merge(self, best: Refined, part: Refined, here: Mask) -> None:
        """Put the part of one scale where it belongs, interpolated if it is coarser."""
        for target, values in zip(best[:4], part[:4], strict=True):
            over_rows(_merge, here.shape[0], values, here, target)
        over_rows(_merge_flags, here.shape[0], part.flags, here, best.flags)

    def merged(self, disparity_px: Image, coarse_px: Image, here: Mask) -> Image:
        """Disparities with those of a coarser grid where they are wanted."""
        out = self._memory.empty(disparity_px.shape)
        np.copyto(out, disparity_px)
        over_rows(_merge, here.shape[0], coarse_px, here, out)
        return out


def _hull(wanted: Mask, reach: int) -> tuple[Indices, Indices]:
    """First column that wanted cells reach, and the one behind the last, for each row."""
    rows, cols = wanted.shape
    some = wanted.any(axis=1)
    first = np.where(some, wanted.argmax(axis=1), cols)
    last = np.where(some, cols - wanted[:, ::-1].argmax(axis=1), 0)
    first = minimum_filter1d(first, 2 * reach + 1, mode="nearest") - reach
    last = maximum_filter1d(last, 2 * reach + 1, mode="nearest") + reach
    return np.clip(first, 0, cols), np.clip(last, 0, cols)


def _numbers(fitting: Fitting) -> Image:
    return np.array(
        (
            *fitting.defocus,
            fitting.reach,
            fitting.smoothed_gain,
            fitting.laplacian_gain,
            fitting.gradient_gain,
            fitting.area,
        ),
        dtype=np.float32,
    )


def _spline_taps() -> Image:
    """Filter that turns pixels into coefficients of cubic splines: its pole to the distance."""
    pole = np.sqrt(3.0) - 2.0
    taps = np.sqrt(3.0) * pole ** np.arange(_SPLINE_REACH + 1)
    return np.asarray(taps, dtype=np.float32)


@compiled
def _halved(start: int, stop: int, image: Image, out: Image) -> None:
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


@compiled
def _doubled(start: int, stop: int, image: Image, out: Image) -> None:
    rows, cols = image.shape
    near, far = np.float32(0.75), np.float32(0.25)
    line = np.empty(cols, dtype=np.float32)
    for row in range(start, stop):
        here = image[row // 2]
        there = image[max(row // 2 - 1, 0) if row % 2 == 0 else min(row // 2 + 1, rows - 1)]
        for col in range(cols):
            line[col] = near * here[col] + far * there[col]
        last = out.shape[1] - 1
        wide = out[row]
        wide[0] = line[0]
        if last > 0:
            wide[last] = near * line[last // 2] + far * line[
                max(last // 2 - 1, 0) if last % 2 == 0 else min(last // 2 + 1, cols - 1)
            ]
        odd, even = wide[1:], wide[2:]
        for col in range(max((last - 1) // 2, 0)):
            odd[2 * col] = near * line[col] + far * line[col + 1]
            even[2 * col] = near * line[col + 1] + far * line[col]
        if last > 1 and last % 2 == 0:
            wide[last - 1] = near * line[last // 2 - 1] + far * line[last // 2]


@compiled
def _spline(start: int, stop: int, image: Image, taps: Image, out: Image) -> None:
    """Correlate each row with a symmetric filter; the row goes on as its mirror image."""
    cols = image.shape[1]
    reach = taps.size - 1
    period = max(2 * (cols - 1), 1)
    wide = np.empty(cols + 2 * reach, dtype=np.float32)
    for row in range(start, stop):
        for place in range(wide.size):
            if reach <= place < cols + reach:
                continue
            mirrored = abs(place - reach) % period
            wide[place] = image[row, mirrored if mirrored < cols else period - mirrored]
        wide[reach : reach + cols] = image[row]
        line = out[row]
        centre = wide[reach:]
        for col in range(cols):
            line[col] = taps[0] * centre[col]
        for tap in range(1, reach + 1):
            weight = taps[tap]
            before, after = wide[reach - tap :], wide[reach + tap :]
            for col in range(cols):
                line[col] += weight * (before[col] + after[col])


@compiled
def _cells(
    start: int,
    stop: int,
    left: Image,
    spline: Image,
    disparity: Image,
    defocus: Image,
    side: int,
    firsts: Indices,
    lasts: Indices,
    out: Planes,
) -> None:
    """Sums over cells of what `plain.refine` says, one row of cells after the other.

    Cells next to each other mostly have the same whole shift: over such a run the other view is
    read in order.
    """
    rows, cols = left.shape
    across = disparity.shape[1]
    shifts = np.empty(across, dtype=np.int64)
    wide = np.empty((3, cols), dtype=np.float32)
    lines = np.empty((7, cols), dtype=np.float32)
    sums = np.empty((9, cols), dtype=np.float32)
    folded = np.empty(across, dtype=np.float32)
    for cell_row in range(start, stop):
        begin, end = firsts[cell_row], lasts[cell_row]
        if begin >= end:
            continue
        low, high = begin * side, min(end * side, cols)
        depth = disparity[cell_row]
        t, blur, known = wide[0], wide[1], wide[2]
        for cell in range(begin, end):
            whole = np.ceil(depth[cell])
            shifts[cell] = int(whole)
            for col in range(cell * side, min(cell * side + side, cols)):
                t[col] = whole - depth[cell]
                blur[col] = defocus[0] + defocus[1] * depth[cell]
        sums[:, low:high] = 0
        for row in range(cell_row * side, min(cell_row * side + side, rows)):
            _laplacian(left, row, lines[0])
            _laplacian(spline, row, lines[1])
            known[low:high] = 0
            lines[2, low:high] = left[row, low:high]
            lines[3:5, low:high] = 0
            here = begin
            while here < end:
                there = here + 1
                shift = shifts[here]
                while there < end and shifts[there] == shift:
                    there += 1
                # Splines reach from one pixel before to two behind.
                first = max(here * side, shift + 1)
                last = min(there * side, cols, shift + cols - 2)
                if first < last:
                    known[first:last] = 1
                    _read(
                        spline[row, first - shift - 1 : last - shift + 2],
                        lines[1, first - shift - 1 : last - shift + 2],
                        t[first:last],
                        lines[2, first:last],
                        lines[3, first:last],
                        lines[4, first:last],
                    )
                here = there
            _gradient_x(left[row], lines[5])
            _add_products(left[row, low:high], lines[:, low:high], wide[:, low:high], defocus[1],
                          sums[:, low:high])
        for plane in range(9):
            if plane != Plane.H and plane != Plane.GH:
                source = sums[Plane.H if plane == Plane.E else plane, low:high]
                _fold(source, side, out[plane, cell_row, begin:end])
        for plane in (Plane.G, Plane.GG):
            _fold(sums[plane + 1, low:high], side, folded[begin:end])
            gradient, flow = out[plane, cell_row], out[plane + 1, cell_row]
            for cell in range(begin, end):
                flow[cell] = depth[cell] * gradient[cell] - folded[cell]


@compiled
def _laplacian(image: Image, row: int, out: Image) -> None:
    """Five-point Laplacian of a row; beyond the border the image goes on as its last pixel."""
    rows, cols = image.shape
    up, here, down = image[max(row - 1, 0)], image[row], image[min(row + 1, rows - 1)]
    for col in range(cols):
        out[col] = (up[col] + down[col]) - 4 * here[col]
    for col in (0, cols - 1):
        out[col] += here[max(col - 1, 0)] + here[min(col + 1, cols - 1)]
        if cols == 1:
            break
    inner, after = out[1:], here[2:]
    for col in range(cols - 2):
        inner[col] += here[col] + after[col]


@compiled
def _gradient_x(line: Image, out: Image) -> None:
    """Derivative by five points, right to the fourth order; zero at the border."""
    size = line.size
    out[: min(2, size)] = 0
    out[max(size - 2, 0) :] = 0
    inner, a, b, c = out[2:], line[1:], line[3:], line[4:]
    eight, twelfth = np.float32(8.0), np.float32(1.0 / 12.0)
    for col in range(size - 4):
        inner[col] = (eight * (b[col] - a[col]) - (c[col] - line[col])) * twelfth


@compiled
def _read(
    spline: Image, laplacian: Image, t: Image, moved: Image, moved_x: Image, moved_lap: Image
) -> None:
    """Values, slopes and Laplacians of splines, `t` beyond the second of each four in turn."""
    one, half, sixth = np.float32(1.0), np.float32(0.5), np.float32(1.0 / 6.0)
    two_thirds = np.float32(2.0 / 3.0)
    size = t.size
    b, c, d = spline[1:], spline[2:], spline[3:]
    for i in range(size):
        v = t[i]
        u = one - v
        moved[i] = (u * u * u * sixth * spline[i] + v * v * v * sixth * d[i]) + (
            (two_thirds - v * v * (one - half * v)) * b[i]
            + (two_thirds - u * u * (one - half * u)) * c[i]
        )
    for i in range(size):
        v = t[i]
        u = one - v
        moved_x[i] = half * (
            (v * v * d[i] - u * u * spline[i])
            + (v * (3 * v - 4) * b[i] - u * (3 * u - 4) * c[i])
        )
    b, c, d = laplacian[1:], laplacian[2:], laplacian[3:]
    for i in range(size):
        v = t[i]
        u = one - v
        moved_lap[i] = (u * u * u * sixth * laplacian[i] + v * v * v * sixth * d[i]) + (
            (two_thirds - v * v * (one - half * v)) * b[i]
            + (two_thirds - u * u * (one - half * u)) * c[i]
        )


@compiled
def _add_products(
    left: Image, lines: Image, wide: Image, slope: np.float32, sums: Image
) -> None:
    """Add the products of a row of pixels to sums; e is at the place of h, ge at that of gh.

    `lines` are the Laplacians of the left view and of the right one's splines, what was read of
    the right view, of its slope and its Laplacian, the left view's slope, and one to work in.
    """
    half = np.float32(0.5)
    cols = left.size
    blur, known = wide[1], wide[2]
    left_lap, moved, moved_x, moved_lap = lines[0], lines[2], lines[3], lines[4]
    left_x, g, e, m = lines[5], lines[1], lines[6], lines[2]
    for col in range(cols):
        left_lap[col] = half * (left_lap[col] + moved_lap[col]) * known[col]
    for col in range(cols):
        e[col] = (left[col] - moved[col]) * known[col] + blur[col] * left_lap[col]
    for col in range(cols):
        m[col] = half * (left[col] + moved[col])
    for col in range(cols):
        left_x[col] = half * (left_x[col] + moved_x[col]) * known[col]
    for col in range(cols):
        g[col] = left_x[col] + slope * left_lap[col]
    _add(g, sums[Plane.G])
    _add(e, sums[Plane.H])
    _add_product(g, g, sums[Plane.GG])
    _add_product(g, e, sums[Plane.GH])
    _add_product(e, e, sums[Plane.EE])
    _add_product(left_x, left_x, sums[Plane.SS])
    _add(m, sums[Plane.M])
    _add_product(m, m, sums[Plane.MM])


@compiled
def _add_product(first: Image, second: Image, out: Image) -> None:
    for col in range(out.size):
        out[col] += first[col] * second[col]


@compiled
def _fold(line: Image, side: int, out: Image) -> None:
    """Sums over cells of one or two columns, the last of which may have but one."""
    if side == 1:
        for col in range(out.size):
            out[col] = line[col]
        return
    for col in range(line.size // 2):
        out[col] = line[2 * col] + line[2 * col + 1]
    if line.size % 2:
        out[out.size - 1] = line[line.size - 1]


@compiled
def _one_surface(
    start: int, stop: int, disparity: Image, halves: Indices, numbers: Image, out: Counts
) -> None:
    """Count of the windows in a row whose extent is within a limit."""
    rows, cols = disparity.shape
    least, share, zero = numbers[0], numbers[1], numbers[2]
    widest = 0
    for half in halves:
        widest = max(widest, half)
    # Two lines that take turns: extremes over rows, then over columns.
    lows = np.empty((2, cols + 2 * widest), dtype=np.float32)
    highs = np.empty((2, cols + 2 * widest), dtype=np.float32)
    tall_low = np.empty((2, cols), dtype=np.float32)
    tall_high = np.empty((2, cols), dtype=np.float32)
    limit = np.empty(cols, dtype=np.float32)
    count = np.empty(cols, dtype=np.float32)
    one, none = np.float32(1), np.float32(0)
    for row in range(start, stop):
        here = disparity[row]
        for col in range(cols):
            wide = share * abs(here[col] - zero)
            limit[col] = wide if wide > least else least
        count[:] = 0
        turn = 0
        _copy(here, tall_low[0])
        _copy(here, tall_high[0])
        reach = 0
        for place in range(halves.size):
            half = halves[place]
            for step in range(reach + 1, half + 1):
                above, below = max(row - step, 0), min(row + step, rows - 1)
                _least_of_three(
                    disparity[above], disparity[below], tall_low[turn], tall_low[1 - turn]
                )
                _most_of_three(
                    disparity[above], disparity[below], tall_high[turn], tall_high[1 - turn]
                )
                turn = 1 - turn
            reach = half
            size, power, now = 2 * half + 1, 1, 0
            lows[0, :widest] = np.inf
            lows[0, widest + cols :] = np.inf
            highs[0, :widest] = -np.inf
            highs[0, widest + cols :] = -np.inf
            _copy(tall_low[turn], lows[0, widest : widest + cols])
            _copy(tall_high[turn], highs[0, widest : widest + cols])
            while 2 * power <= size:
                _least(lows[now], power, lows[1 - now])
                _most(highs[now], power, highs[1 - now])
                now = 1 - now
                power *= 2
            first = widest - half
            rest = first + size - power
            a, b = lows[now, first:], lows[now, rest:]
            c, d = highs[now, first:], highs[now, rest:]
            before = np.float32(place)
            for col in range(cols):
                low = a[col] if a[col] < b[col] else b[col]
                high = c[col] if c[col] > d[col] else d[col]
                is_one = (high - low <= limit[col]) & (count[col] == before)
                count[col] += one if is_one else none
        line = out[row]
        for col in range(cols):
            line[col] = np.int32(count[col])


@compiled
def _least_of_three(first: Image, second: Image, third: Image, out: Image) -> None:
    for col in range(out.size):
        low = first[col] if first[col] < second[col] else second[col]
        out[col] = low if low < third[col] else third[col]


@compiled
def _most_of_three(first: Image, second: Image, third: Image, out: Image) -> None:
    for col in range(out.size):
        high = first[col] if first[col] > second[col] else second[col]
        out[col] = high if high > third[col] else third[col]


@compiled
def _least(line: Image, ahead: int, out: Image) -> None:
    """Smaller of each value and the one ahead of it."""
    after = line[ahead:]
    for col in range(after.size):
        out[col] = line[col] if line[col] < after[col] else after[col]


@compiled
def _most(line: Image, ahead: int, out: Image) -> None:
    after = line[ahead:]
    for col in range(after.size):
        out[col] = line[col] if line[col] > after[col] else after[col]


@compiled
def _smooth_squares(
    start: int,
    stop: int,
    sums: Image,
    taps: Image,
    rows_px: Image,
    cols_px: Image,
    firsts: Indices,
    lasts: Indices,
    out: Image,
) -> None:
    """Squares of the smoothed means of cells, times their pixels; an image goes on as its last."""
    rows, cols = sums.shape
    reach = taps.size // 2
    wide = np.empty(cols + 2 * reach, dtype=np.float32)
    totals = np.empty(cols, dtype=np.float32)
    for row in range(start, stop):
        first, last = firsts[row], lasts[row]
        size = last - first
        if size <= 0:
            continue
        centre, total = wide[reach : reach + size], totals[:size]
        centre[:] = 0
        for tap in range(taps.size):
            place = min(max(row + tap - reach, 0), rows - 1)
            weight, line = taps[tap] / rows_px[place], sums[place, first:last]
            for col in range(size):
                centre[col] += weight * line[col]
        columns = cols_px[first:last]
        for col in range(size):
            centre[col] /= columns[col]
        wide[:reach] = centre[0]
        wide[reach + size : size + 2 * reach] = centre[size - 1]
        total[:] = 0
        for tap in range(taps.size):
            weight, line = taps[tap], wide[tap:]
            for col in range(size):
                total[col] += weight * line[col]
        line, pixels = out[row, first:last], rows_px[row]
        for col in range(size):
            line[col] = total[col] * total[col] * columns[col] * pixels


@compiled
def _add(line: Image, out: Image) -> None:
    for col in range(out.size):
        out[col] += line[col]


@compiled
def _fit(
    start: int,
    stop: int,
    planes: Planes,
    count: int,
    disparity: Image,
    usable: Counts,
    noise: Image,
    wanted: Mask,
    halves: Indices,
    rows_px: Image,
    cols_px: Image,
    near_rows_px: Image,
    near_cols_px: Image,
    share: Image,
    chance: Image,
    numbers: Image,
    out: Planes,
    used: Counts,
) -> None:
    """Sums over all windows of a tile's row, and what follows from them.

    Sums along a column come first; those along the row go over all planes at once, since what they
    mix up at the ends of the planes nobody reads.
    """
    rows, cols = disparity.shape
    places = halves.size
    widest = halves[places - 1]
    width = min(_TILE, cols)
    room = width + 2 * max(widest, 1)
    margin = max(widest, 1)
    is_light = count == _LIGHT
    total = count if is_light else _SUMS
    flat = planes.reshape(planes.size)
    tall = np.zeros((places, total * room), dtype=np.float32)
    works = np.zeros((2, total * room), dtype=np.float32)
    sums = np.zeros((places, _SUMS + 1, room), dtype=np.float32)
    small = np.zeros(4 * room, dtype=np.float32)
    near = np.zeros((4, room), dtype=np.float32)
    lines = np.empty((16, width), dtype=np.float32)
    for tile in range(0, cols, width):
        size = min(width, cols - tile)
        low, high = max(tile - margin, 0), min(tile + size + margin, cols)
        begin = low - (tile - margin)
        tall[:] = 0
        small[:] = 0
        for row in range(start, stop):
            if not wanted[row, tile : tile + size].any():
                _leave_alone(row, tile, tile + size, disparity, wanted, out, used)
                continue
            for plane in range(count):
                base = (plane * rows) * cols + low
                _sum_down(
                    flat, base, row, rows, cols, high - low, halves, tall, plane * room + begin
                )
            if not is_light:
                base = (Plane.GG * rows) * cols + low
                _sum_down_weighted(
                    flat, base, row, rows, cols, high - low, halves, tall, count * room + begin
                )
            for place in range(places):
                _window_sums(
                    tall[place],
                    margin - halves[place],
                    2 * halves[place] + 1,
                    works,
                    sums[place].reshape((_SUMS + 1) * room)[: total * room],
                )
            if is_light:
                _choose(
                    sums[:, :, :size],
                    disparity[row, tile : tile + size],
                    usable[row, tile : tile + size],
                    rows_px[:, row],
                    cols_px[:, tile : tile + size],
                    numbers,
                    lines[:, :size],
                    out[0, row, tile : tile + size],
                )
                _leave_alone(row, tile, tile + size, disparity, wanted, out, used)
                continue
            for place in range(places):
                _sum_across_weighted(
                    tall[place, Plane.GG * room : Plane.GG * room + room],
                    margin,
                    halves[place],
                    sums[place, _SUMS, :size],
                )
            for plane in range(4):
                source = (Plane.E, Plane.EE, Plane.M, Plane.MM)[plane]
                base = (source * rows) * cols + low
                _sum_three(flat, base, row, rows, cols, high - low, small, plane * room + begin)
            _window_sums(small, margin - 1, 3, works, near.reshape(4 * room))
            _choose(
                sums[:, :, :size],
                disparity[row, tile : tile + size],
                usable[row, tile : tile + size],
                rows_px[:, row],
                cols_px[:, tile : tile + size],
                numbers,
                lines[:, :size],
                out[0, row, tile : tile + size],
            )
            _judge(
                sums[:, :, :size],
                near[:, :size],
                noise[row, tile : tile + size],
                near_rows_px[row],
                near_cols_px[tile : tile + size],
                share,
                chance,
                numbers,
                lines[:, :size],
                out[:, row, tile : tile + size],
                used[row, tile : tile + size],
            )
            _leave_alone(row, tile, tile + size, disparity, wanted, out, used)


@compiled
def _leave_alone(
    row: int, begin: int, end: int, disparity: Image, wanted: Mask, out: Planes, used: Counts
) -> None:
    """Cells that nobody wants stay where they are, and nothing is known of them."""
    if wanted[row, begin:end].all():
        return
    mask, before, windows = wanted[row, begin:end], disparity[row, begin:end], used[row, begin:end]
    for plane in range(out.shape[0]):
        line, value = out[plane, row, begin:end], np.float32(UNKNOWN_PX if plane == 1 else 0)
        for col in range(line.size):
            if not mask[col]:
                line[col] = before[col] if plane == 0 else value
    for col in range(windows.size):
        if not mask[col]:
            windows[col] = 0


@compiled
def _sum_down(
    flat: Image,
    base: int,
    row: int,
    rows: int,
    cols: int,
    size: int,
    halves: Indices,
    out: Image,
    place: int,
) -> None:
    """Sums of columns over windows of rows, one within the other."""
    reach = 0
    for which in range(halves.size):
        if which == 0:
            _set(flat, base + row * cols, out[0], place, size)
        else:
            _set(out[which - 1], place, out[which], place, size)
        target = out[which]
        step = reach
        while step < halves[which]:
            step += 1
            above, below = row - step, row + step
            if above >= 1 and below < rows - 1 and step < halves[which]:
                _add_four(flat, base + above * cols, base + below * cols, cols, target, place, size)
                step += 1
            elif above >= 0 and below < rows:
                _add_two(flat, base + above * cols, base + below * cols, target, place, size)
            elif above >= 0:
                _add_scaled(flat, base + above * cols, np.float32(1), target, place, size)
            elif below < rows:
                _add_scaled(flat, base + below * cols, np.float32(1), target, place, size)
        reach = halves[which]


@compiled
def _sum_down_weighted(
    flat: Image,
    base: int,
    row: int,
    rows: int,
    cols: int,
    size: int,
    halves: Indices,
    out: Image,
    place: int,
) -> None:
    """The same, of the image times the rows down from this one."""
    reach = 0
    for which in range(halves.size):
        if which == 0:
            out[0, place : place + size] = 0
        else:
            _set(out[which - 1], place, out[which], place, size)
        target = out[which]
        for step in range(reach + 1, halves[which] + 1):
            above, below, weight = row - step, row + step, np.float32(step)
            if above >= 0:
                _add_scaled(flat, base + above * cols, -weight, target, place, size)
            if below < rows:
                _add_scaled(flat, base + below * cols, weight, target, place, size)
        reach = halves[which]


# Places without a sign: an index that cannot be negative needs no check, and vectors can be used.


@compiled
def _set(source: Image, first: int, out: Image, place: int, size: int) -> None:
    a, b = np.uint64(first), np.uint64(place)
    for col in range(np.uint64(size)):
        out[b + col] = source[a + col]


@compiled
def _add_two(
    source: Image, first: int, second: int, out: Image, place: int, size: int
) -> None:
    a, b, c = np.uint64(first), np.uint64(second), np.uint64(place)
    for col in range(np.uint64(size)):
        out[c + col] += source[a + col] + source[b + col]


@compiled
def _add_four(
    source: Image, first: int, second: int, cols: int, out: Image, place: int, size: int
) -> None:
    """Two lines and those beyond them, which lie `cols` before the first and behind the second."""
    a, b, c = np.uint64(first), np.uint64(second), np.uint64(place)
    d, e = np.uint64(first - cols), np.uint64(second + cols)
    for col in range(np.uint64(size)):
        out[c + col] += (source[a + col] + source[b + col]) + (source[d + col] + source[e + col])


@compiled
def _add_scaled(
    source: Image, first: int, weight: np.float32, out: Image, place: int, size: int
) -> None:
    a, c = np.uint64(first), np.uint64(place)
    for col in range(np.uint64(size)):
        out[c + col] += weight * source[a + col]


@compiled
def _add_ahead(source: Image, ahead: int, out: Image, size: int) -> None:
    a = np.uint64(ahead)
    for col in range(np.uint64(size)):
        out[col] = source[col] + source[a + col]


@compiled
def _sum_three(
    flat: Image,
    base: int,
    row: int,
    rows: int,
    cols: int,
    size: int,
    out: Image,
    place: int,
) -> None:
    _set(flat, base + row * cols, out, place, size)
    for near in (row - 1, row + 1):
        if 0 <= near < rows:
            _add_scaled(flat, base + near * cols, np.float32(1), out, place, size)


@compiled
def _window_sums(line: Image, first: int, size: int, works: Image, out: Image) -> None:
    """Sums over `size` values of a line from each on, the first of them `first` ahead.

    By sums of two, four, eight and so on. Behind the last whole window comes what nobody reads.
    """
    room = line.size
    power, done, turn = 1, first, 0
    out[:] = 0
    source = line
    while True:
        if size & power:
            _add_scaled(source, done, np.float32(1), out, 0, room - done)
            done += power
        if 2 * power > size:
            break
        _add_ahead(source, power, works[turn], room - power)
        source = works[turn]
        turn = 1 - turn
        power *= 2


@compiled
def _sum_across_weighted(line: Image, margin: int, half: int, out: Image) -> None:
    """Sums of a line times the columns from here."""
    out[:] = 0
    for step in range(1, half + 1):
        _add_scaled(line, margin - step, -np.float32(step), out, 0, out.size)
        _add_scaled(line, margin + step, np.float32(step), out, 0, out.size)


@compiled
def _variance(squares: Image, values: Image, over: Image, out: Image) -> None:
    """Mean square less squared mean, not below zero."""
    zero = np.float32(0.0)
    for col in range(out.size):
        mean = values[col] * over[col]
        value = squares[col] * over[col] - mean * mean
        out[col] = value if value > zero else zero


@compiled
def _choose(
    sums: Planes,
    disparity: Image,
    usable: Counts,
    rows_px: Image,
    cols_px: Image,
    numbers: Image,
    lines: Image,
    moved: Image,
) -> None:
    """Window of each cell of a line, and its disparity.

    The lines keep what `_judge` goes on with: of the window chosen the squared gradients, the
    squared residuals, one over its pixels, and which it is.
    """
    reach, area = numbers[2], numbers[6]
    flat, zero, one = np.float32(FLAT), np.float32(0), np.float32(1)
    size = disparity.size
    best_gg, best_ee, best_over, index, best_d = lines[0], lines[1], lines[2], lines[3], lines[4]
    over, of_gg, of_d, of_ee = lines[5], lines[6], lines[7], lines[8]
    last_d, spread, may, taken = lines[9], lines[10], lines[11], lines[12]
    factor = np.float32(APART * APART) * area
    for col in range(size):
        may[col] = usable[col]
    index[:] = 0
    for place in range(sums.shape[0]):
        part, pixels, wide = sums[place], rows_px[place], cols_px[place]
        s_g, s_h, s_gg, s_gh = part[Plane.G], part[Plane.H], part[Plane.GG], part[Plane.GH]
        for col in range(size):
            over[col] = one / (pixels * wide[col])
        for col in range(size):
            mean = s_g[col] * over[col]
            of_gg[col] = s_gg[col] * over[col] - mean * mean
        for col in range(size):
            against = s_gh[col] * over[col] - (s_g[col] * over[col]) * (s_h[col] * over[col])
            weight = of_gg[col]
            of_d[col] = against / (weight if weight > flat else flat)
        _variance(part[Plane.EE], part[Plane.E], over, of_ee)
        if place == 0:
            _copy(of_gg, best_gg)
            _copy(of_ee, best_ee)
            _copy(over, best_over)
            _copy(of_d, best_d)
        else:
            here, before = np.float32(place), np.float32(place - 1)
            for col in range(size):
                gap = of_d[col] - last_d[col]
                agrees = gap * gap <= spread[col]
                follows = (index[col] == before) & (may[col] >= here)
                taken[col] = one if agrees & follows else zero
            for col in range(size):
                index[col] += taken[col]
            _take(taken, of_gg, best_gg)
            _take(taken, of_ee, best_ee)
            _take(taken, over, best_over)
            _take(taken, of_d, best_d)
        for col in range(size):
            weight = of_gg[col] if of_gg[col] > flat else flat
            spread[col] = factor * of_ee[col] * over[col] / weight
        _copy(of_d, last_d)
    for col in range(size):
        least, most = disparity[col] - reach, disparity[col] + reach
        value = best_d[col]
        value = value if value > least else least
        value = value if value < most else most
        moved[col] = value if best_gg[col] > flat else disparity[col]


@compiled
def _take(taken: Image, values: Image, out: Image) -> None:
    """Values where `taken` is one; by arithmetic, since a choice would be made by branches."""
    one = np.float32(1)
    for col in range(out.size):
        out[col] = taken[col] * values[col] + (one - taken[col]) * out[col]


@compiled
def _of_chosen(sums: Planes, plane: int, index: Image, out: Image) -> None:
    """One plane of the window chosen."""
    _copy(sums[0, plane], out)
    for place in range(1, sums.shape[0]):
        _take_where(index, np.float32(place), sums[place, plane], out)


@compiled
def _take_where(index: Image, here: np.float32, values: Image, out: Image) -> None:
    zero, one = np.float32(0), np.float32(1)
    for col in range(out.size):
        taken = one if index[col] == here else zero
        out[col] = taken * values[col] + (one - taken) * out[col]


@compiled
def _copy(line: Image, out: Image) -> None:
    for col in range(out.size):
        out[col] = line[col]


@compiled
def _number_of_chosen(values: Image, index: Image, out: Image) -> None:
    first, zero, one = values[0], np.float32(0), np.float32(1)
    for col in range(out.size):
        out[col] = first
    for place in range(1, values.size):
        here, value = np.float32(place), values[place]
        for col in range(out.size):
            taken = one if index[col] == here else zero
            out[col] = taken * value + (one - taken) * out[col]


@compiled
def _judge(
    sums: Planes,
    near: Image,
    noise: Image,
    near_rows_px: np.float32,
    near_cols_px: Image,
    share: Image,
    chance: Image,
    numbers: Image,
    lines: Image,
    out: Image,
    used: Counts,
) -> None:
    """How good the disparities of a line are: out[1:], and the window."""
    constant, slope = numbers[0], numbers[1]
    smoothed, laplacian, gradient = numbers[3], numbers[4], numbers[5]
    flat, tiny = np.float32(FLAT), np.float32(TINY)
    zero, one, two, half = np.float32(0), np.float32(1), np.float32(2), np.float32(0.5)
    least_telling, rest = np.float32(0.1) * flat, np.float32(UNEXPLAINED)
    size = noise.size
    gg, ee, over, index = lines[0], lines[1], lines[2], lines[3]
    moved, sigma, correlation, misfit = out[0], out[1], out[2], out[3]
    down, across = out[4], out[5]
    for col in range(size):
        used[col] = np.int32(index[col])
    s_gg = lines[4]
    _of_chosen(sums, Plane.GG, index, s_gg)
    for col in range(size):
        s_gg[col] = one / (s_gg[col] if s_gg[col] > tiny else tiny)
    _of_chosen(sums, _SUMS - 1, index, down)
    for col in range(size):
        down[col] *= s_gg[col]
    _of_chosen(sums, _SUMS, index, across)
    for col in range(size):
        across[col] *= s_gg[col]
    per_noise, mixed, telling = lines[4], lines[5], lines[6]
    for col in range(size):
        defocus = constant + slope * moved[col]
        per_noise[col] = two * smoothed + half * laplacian * defocus * defocus
    for col in range(size):
        residual = ee[col] / per_noise[col]
        sensor = noise[col] if noise[col] < residual else residual
        mixed[col] = sensor + rest * (residual - sensor)
    by_shift = lines[7]
    _of_chosen(sums, Plane.SS, index, by_shift)
    for col in range(size):
        shift = by_shift[col] * over[col]
        told = (gg[col] if gg[col] < shift else shift) - half * gradient * mixed[col]
        floor = np.float32(0.03) * gg[col]
        told = told if told > floor else floor
        telling[col] = told if told > least_telling else least_telling
    through, slow, kept = lines[7], lines[8], lines[9]
    _of_chosen(sums, Plane.UU, index, through)
    _of_chosen(sums, Plane.G, index, slow)
    _variance(through, slow, over, lines[10])
    _number_of_chosen(share, index, kept)
    for col in range(size):
        through[col] = two * mixed[col] * lines[10, col] * kept[col] * over[col]
    for col in range(size):
        value = np.sqrt(through[col]) / telling[col]
        sigma[col] = value if gg[col] > flat else np.float32(UNKNOWN_PX)
    mean, square, texture = lines[7], lines[8], lines[10]
    _of_chosen(sums, Plane.M, index, mean)
    _of_chosen(sums, Plane.MM, index, square)
    _variance(square, mean, over, texture)
    _number_of_chosen(chance, index, kept)
    for col in range(size):
        grain = two * smoothed * mixed[col]
        grain = grain if grain > tiny else tiny
        signal = np.float32(4) * texture[col]
        alike = (signal - grain) / (signal + grain)
        beyond = (alike - kept[col]) / (one - alike * kept[col])
        correlation[col] = beyond if (beyond > zero) & (gg[col] > flat) else zero
    near_over, tone, left_over = lines[7], lines[8], lines[10]
    for col in range(size):
        near_over[col] = one / (near_rows_px * near_cols_px[col])
    _variance(near[3], near[2], near_over, tone)
    _variance(near[1], near[0], near_over, left_over)
    for col in range(size):
        explained = noise[col] * per_noise[col] + np.float32(0.01) * tone[col]
        misfit[col] = left_over[col] / (explained if explained > tiny else tiny)


@compiled
def _finished(
    start: int,
    stop: int,
    disparity: Image,
    sigma: Image,
    down: Image,
    across: Image,
    used: Counts,
    halves: Indices,
    cell: int,
    frame_cols: int,
    scale: np.float32,
    out: Image,
    out_sigma: Image,
    flags: NDArray[np.uint16],
) -> None:
    """Disparity less what a slope adds where the texture lies to one side of the window.

    The slope is taken from as far apart as the surface is known to be one.
    """
    rows, cols = disparity.shape
    half = np.float32(0.5)
    for row in range(start, stop):
        for col in range(cols):
            window = used[row, col]
            reach = halves[window]
            here = disparity[row, col]
            first = np.float32((col - reach) * cell)
            last = np.float32((col + reach + 1) * cell - 1)
            is_inside = (
                (first >= max(here, np.float32(0)))
                & (last - min(here, np.float32(0)) <= frame_cols - 1)
                & (row >= reach)
                & (rows - 1 - row >= reach)
            )
            flags[row, col] = 0 if is_inside else _BORDER
            out_sigma[row, col] = scale * sigma[row, col]
            slope_down, slope_across = np.float32(0), np.float32(0)
            for place in range(1, window + 1):
                step = halves[place]
                above, below = max(row - step, 0), min(row + step, rows - 1)
                run = np.float32(2 * step) + (down[below, col] - down[above, col])
                if used[above, col] >= place and used[below, col] >= place and run > half * step:
                    slope_down = (disparity[below, col] - disparity[above, col]) / run
                before, after = max(col - step, 0), min(col + step, cols - 1)
                run = np.float32(2 * step) + (across[row, after] - across[row, before])
                if used[row, before] >= place and used[row, after] >= place and run > half * step:
                    slope_across = (disparity[row, after] - disparity[row, before]) / run
            tilt = down[row, col] * slope_down + across[row, col] * slope_across
            out[row, col] = scale * (here - tilt)


@compiled
def _scales(start: int, stop: int, disparity: Image, numbers: Image, out: Counts) -> None:
    cols = disparity.shape[1]
    for row in range(start, stop):
        line, target = disparity[row], out[row]
        for col in range(cols):
            target[col] = 1
        for which in range(numbers.shape[0]):
            scale, low, high = np.uint8(numbers[which, 0]), numbers[which, 1], numbers[which, 2]
            for col in range(cols):
                if line[col] < low or line[col] > high:
                    target[col] = scale


@compiled
def _within(
    start: int,
    stop: int,
    disparity: Image,
    halves: Indices,
    cell: int,
    frame_cols: int,
    count: Counts,
) -> None:
    """Leave out windows that leave the frame, or whose match does."""
    rows, cols = disparity.shape
    zero = np.float32(0)
    for row in range(start, stop):
        rim = min(row, rows - 1 - row)
        for place in range(1, halves.size):
            half = halves[place]
            most = np.uint8(place - 1)
            for col in range(cols):
                first = np.float32((col - half) * cell)
                last = np.float32((col + half + 1) * cell - 1)
                here = disparity[row, col]
                is_inside = (
                    (rim >= half)
                    & (first >= max(here, zero))
                    & (last - min(here, zero) <= frame_cols - 1)
                )
                if not is_inside and count[row, col] > most:
                    count[row, col] = most


@compiled
def _merge(start: int, stop: int, values: Image, here: Mask, out: Image) -> None:
    """Values where they are wanted, linear between the cells of a grid of half the size."""
    cols = out.shape[1]
    if values.shape == out.shape:
        for row in range(start, stop):
            for col in range(cols):
                if here[row, col]:
                    out[row, col] = values[row, col]
        return
    near, far = np.float32(0.75), np.float32(0.25)
    rows = values.shape[0]
    line = np.empty(values.shape[1] + 2, dtype=np.float32)
    for row in range(start, stop):
        if not here[row].any():
            continue
        first = values[row // 2]
        second = values[max(row // 2 - 1, 0) if row % 2 == 0 else min(row // 2 + 1, rows - 1)]
        middle = line[1:]
        for col in range(values.shape[1]):
            middle[col] = near * first[col] + far * second[col]
        line[0] = line[1]
        line[values.shape[1] + 1] = line[values.shape[1]]
        mask, target = here[row], out[row]
        for col in range(cols):
            if mask[col]:
                place = col // 2 + 1
                target[col] = near * line[place] + far * line[place + (1 if col % 2 else -1)]


@compiled
def _merge_flags(
    start: int, stop: int, values: NDArray[np.uint16], here: Mask, out: NDArray[np.uint16]
) -> None:
    step = 1 if values.shape == out.shape else 2
    for row in range(start, stop):
        for col in range(out.shape[1]):
            if here[row, col]:
                out[row, col] = values[row // step, col // step]
