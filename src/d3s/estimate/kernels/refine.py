"""Compiled loops of the refinement; `estimate.refine` says what they are for.

Loops run along the columns and write one line each: so the compiler can use vectors. Sums over
windows are taken anew for every row, in single precision: no error runs along, and what comes out
does not depend on where a thread began.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.compiled import compiled, part
from d3s.estimate.fitting import (
    FLAT,
    TINY,
    UNKNOWN_PX,
    Fit,
    Fitting,
    Plane,
    Refined,
    window_pixels,
)
from d3s.estimate.flags import Flag
from d3s.lanes import (
    EIGHT,
    higher,
    if_at_most,
    if_equal,
    if_lower,
    load_8,
    lower,
    root,
    spread_8,
    store,
)
from d3s.memory import Memory
from d3s.threads import over_rows

Image = NDArray[np.float32]
Planes = NDArray[np.float32]  # (planes, rows, cols)
Counts = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

_SPLINE_REACH = 10  # the pole of cubic splines to this is 2e-6
_LIGHT = 6  # planes that a disparity alone needs: the first of all
_BORDER = int(Flag.BORDER)
# The planes as plain numbers, which compile faster.
_G, _H, _GG, _GH, _E, _EE, _SS, _M, _MM, _U, _UU = (int(plane) for plane in Plane)
_DOWN = len(Plane)  # behind the planes: squared gradients times rows
# Lines of a row of cells: disparities to start from, noise, usable windows, pixels of three by
# three cells; then pixels of each window.
_START, _NOISE, _USABLE, _NEAR_PX, _LINES = range(5)
_RESULTS = len(Fit._fields)
# Lines of a row of pixels: how far a spline is read beyond a pixel, the defocus there, the left
# view with its Laplacian and slope, the Laplacian of the right one's splines, and what comes out.
_T, _BLUR, _LEFT, _LEFT_LAP, _LEFT_X, _RIGHT_LAP = range(6)
_RESIDUAL, _GRADIENT, _BY_SHIFT, _MEAN, _CELL_LINES = range(6, 11)
# Lines of a row of cells for slopes: the row itself with its ends repeated, then windows,
# disparities and offsets of rows above and below in turn, and what comes out.
_WINDOW, _DISPARITY, _ACROSS, _OFFSET, _COLUMN, _ABOVE, _BELOW = range(7)
_SLOPE_DOWN, _SLOPE_ACROSS, _STRAIGHT, _OUTSIDE, _SLOPE_LINES = range(11, 16)


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
        # One more, of which the first row is zero: for windows that leave the frame.
        out = self._memory.empty((len(Plane) + 1, rows, cols))
        out[len(Plane), 0] = 0
        first, last = _hull(wanted, fitting.halves[-1] + len(fitting.taps) // 2)
        with self._memory.part():
            spline = self._memory.empty(right.shape)
            over_rows(_spline, right.shape[0], right, _spline_taps(), spline)
            line = np.array(fitting.defocus, dtype=np.float32)
            over_rows(_cells, rows, left, spline, disparity, line, fitting.cell, first, last, out)
        taps = np.array(fitting.taps, dtype=np.float32)
        own = [window_pixels(size, fitting.cell, (0,))[0] for size in fitting.shape]
        smooth = out[Plane.U], out[Plane.UU]
        over_rows(_smooth_squares, rows, out[Plane.G], taps, *own, first, last, *smooth)
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
        over_rows(_within, count.shape[0], disparity, halves, fitting.cell, fitting.shape[1], count)
        return count

    def moved(
        self, sums: Planes, disparity: Image, usable: Counts, wanted: Mask, fitting: Fitting
    ) -> Image:
        """Disparity by least squares, of the wanted cells; the others stay where they are."""
        return self._fit(sums, disparity, usable, disparity, wanted, fitting, _LIGHT).disparity

    def settled(self, sums: Planes, before: Image, after: Image) -> Planes:
        """Sums of cells as they would be at other disparities, to first order; in their place."""
        over_rows(_settle, before.shape[0], before, after, sums)
        return sums

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
        windows_px = (window_pixels(size, fitting.cell, fitting.halves) for size in fitting.shape)
        near_px = (window_pixels(size, fitting.cell, (1,))[0] for size in fitting.shape)
        over_rows(
            _fit,
            -(-shape[0] // 2),
            sums.reshape(-1),
            planes,
            disparity,
            usable,
            noise,
            wanted,
            np.array(fitting.halves, dtype=np.int64),
            *windows_px,
            *near_px,
            np.array(fitting.share_inside, dtype=np.float32),
            np.array(fitting.chance, dtype=np.float32),
            _numbers(fitting),
            out,
            used,
        )
        a, b, c, d, e, f = (out[0],) * 6 if planes == _LIGHT else out
        return Fit(a, b, c, d, e, f, used)

    def finished(self, fit: Fit, fitting: Fitting, scale: int) -> Refined:
        """A fit in pixels of the frame, less what slopes add to it."""
        empty, shape = self._memory.empty, fit.disparity.shape
        out = Refined(
            empty(shape), empty(shape), fit.correlation, fit.misfit, empty(shape, np.uint16)
        )
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

    def wanted(self, scales: Counts, least: int, most: int, *, is_coarse: bool) -> Mask:
        """Cells of these scales; of a grid of half the size, those they are interpolated from."""
        step = 2 if is_coarse else 1
        out = self._memory.empty(
            (-(-scales.shape[0] // step), -(-scales.shape[1] // step)), np.bool_
        )
        over_rows(_wanted, out.shape[0], scales, least, most, is_coarse, out)
        return out

    def merged(self, disparity_px: Image, coarse_px: Image, scales: Counts, most: int) -> Image:
        """Disparities of a coarser grid, but those of the cells beyond a scale."""
        out = self.doubled(coarse_px, scales.shape)
        over_rows(_put, scales.shape[0], disparity_px, scales, most + 1, 255, out)
        return out

    def joined(self, parts: dict[int, Refined], scales: Counts) -> Refined:
        """Each cell from the part of its scale, interpolated if that is coarser."""
        shape = scales.shape
        # The part that fits the grid becomes the whole, and the others are put into it.
        best = next((fit for fit in parts.values() if fit.flags.shape == shape), None)
        if best is None:
            empty = self._memory.empty
            a, b, c, d = (empty(shape) for _ in range(4))
            best = Refined(a, b, c, d, empty(shape, np.uint16))
        for scale, fit in parts.items():
            if fit is best:
                continue
            over_rows(_join, shape[0], scales, scale, *fit, *best)
        return best


def _hull(wanted: Mask, reach: int) -> tuple[Indices, Indices]:
    """First column that wanted cells reach, and the one behind the last, for each row."""
    rows, cols = wanted.shape
    first = wanted.argmax(axis=1)
    first[~wanted[np.arange(rows), first]] = cols
    last = cols - wanted[:, ::-1].argmax(axis=1)
    last[first == cols] = 0
    near = min(reach, rows - 1)
    wide = np.full((2, rows + 2 * near), cols)
    wide[0, near : near + rows], wide[1, near : near + rows] = first, -last
    # The least over 2 near + 1 rows, by those over one, two, four and so on.
    power = 1
    while 2 * power <= 2 * near + 1:
        wide = np.minimum(wide[:, : wide.shape[1] - power], wide[:, power:])
        power *= 2
    rest = 2 * near + 1 - power
    wide = np.minimum(wide[:, :rows], wide[:, rest : rest + rows])
    return np.maximum(wide[0] - reach, 0), np.clip(reach - wide[1], 0, cols)


def _numbers(fitting: Fitting) -> Image:
    return np.array(
        (
            *fitting.defocus,
            fitting.reach,
            fitting.smoothed_gain,
            fitting.laplacian_gain,
            fitting.gradient_gain,
            fitting.area,
            fitting.apart,
            fitting.unexplained,
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
            wide[last] = (
                near * line[last // 2]
                + far
                * line[max(last // 2 - 1, 0) if last % 2 == 0 else min(last // 2 + 1, cols - 1)]
            )
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
    wide = np.zeros(cols + 2 * reach + EIGHT, dtype=np.float32)
    line = np.zeros(cols + EIGHT, dtype=np.float32)
    for row in range(start, stop):
        for step in range(1, reach + 1):
            for place in (-step, cols - 1 + step):
                mirrored = abs(place) % period
                wide[reach + place] = image[row, mirrored if mirrored < cols else period - mirrored]
        _fill(image[row], wide[reach:])
        for col in range(0, cols, EIGHT):
            total = taps[0] * load_8(wide, reach + col)
            for tap in range(1, reach + 1):
                both = load_8(wide, reach + col - tap) + load_8(wide, reach + col + tap)
                total = total + taps[tap] * both
            store(line, col, total)
        _fill(line, out[row])


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
    shifts = np.empty(disparity.shape[1], dtype=np.int64)
    room = cols + 2 * EIGHT
    lines = np.zeros((_CELL_LINES, room), dtype=np.float32)
    flat, splines = lines.reshape(lines.size), spline.reshape(spline.size)
    sums = np.zeros((9, room), dtype=np.float32)
    folded = np.empty(disparity.shape[1], dtype=np.float32)
    for cell_row in range(start, stop):
        begin, end = firsts[cell_row], lasts[cell_row]
        if begin >= end:
            continue
        low, high = begin * side, min(end * side, cols)
        depth = disparity[cell_row]
        t, blur = lines[_T], lines[_BLUR]
        for cell in range(begin, end):
            whole = np.ceil(depth[cell])
            shifts[cell] = int(whole)
            for col in range(cell * side, min(cell * side + side, cols)):
                t[col] = whole - depth[cell]
                blur[col] = defocus[0] + defocus[1] * depth[cell]
        for row in range(cell_row * side, min(cell_row * side + side, rows)):
            _fill(left[row], lines[_LEFT])
            _laplacian(left, row, lines[_LEFT_LAP, :cols])
            _laplacian(spline, row, lines[_RIGHT_LAP, :cols])
            _gradient_x(left[row], lines[_LEFT_X, :cols])
            here, done = begin, low
            while here < end:
                there = here + 1
                shift = shifts[here]
                while there < end and shifts[there] == shift:
                    there += 1
                # Splines reach from one pixel before to two behind.
                first = max(here * side, shift + 1)
                last = min(there * side, cols, shift + cols - 2)
                if first < last:
                    _without_match(lines, done, first)
                    _compare(
                        splines, row * cols - shift, flat, room, first, last, shift, defocus[1]
                    )
                    done = last
                here = there
            _without_match(lines, done, high)
            is_first = row == cell_row * side
            _add_products(flat, room, low, high, is_first, sums.reshape(sums.size))
        for plane in range(9):
            if plane != _H and plane != _GH:
                source = sums[_H if plane == _E else plane, low:high]
                _fold(source, side, out[plane, cell_row, begin:end])
        for plane in (_G, _GG):
            _fold(sums[plane + 1, low:high], side, folded[begin:end])
            gradient, flow = out[plane, cell_row], out[plane + 1, cell_row]
            for cell in range(begin, end):
                flow[cell] = depth[cell] * gradient[cell] - folded[cell]


@part
def _without_match(lines: Image, first: int, last: int) -> None:
    """Pixels whose match is out of the frame: no residual, no gradient, the left view as mean."""
    for col in range(first, last):
        lines[_RESIDUAL, col] = 0
        lines[_GRADIENT, col] = 0
        lines[_BY_SHIFT, col] = 0
        lines[_MEAN, col] = lines[_LEFT, col]


@part
def _compare(
    splines: Image,
    row_at: int,
    lines: Image,
    room: int,
    first: int,
    last: int,
    shift: int,
    slope: np.float32,
) -> None:
    """Residual and the like of a run of pixels with one whole shift, and of a few behind it."""
    one, half, sixth = spread_8(np.float32(1)), np.float32(0.5), np.float32(1 / 6)
    three, four, two_thirds = np.float32(3), np.float32(4), spread_8(np.float32(2 / 3))
    for col in range(first, last, EIGHT):
        t = load_8(lines, _T * room + col)
        u = one - t
        tt, uu = t * t, u * u
        w0, w3 = uu * u * sixth, tt * t * sixth
        w1, w2 = two_thirds - tt * (one - half * t), two_thirds - uu * (one - half * u)
        at = row_at + col - 1
        a, b = load_8(splines, at), load_8(splines, at + 1)
        c, d = load_8(splines, at + 2), load_8(splines, at + 3)
        moved = (w0 * a + w3 * d) + (w1 * b + w2 * c)
        moved_x = half * (
            (tt * d - uu * a) + (t * (three * t - four) * b - u * (three * u - four) * c)
        )
        at = _RIGHT_LAP * room + col - shift - 1
        a, b = load_8(lines, at), load_8(lines, at + 1)
        c, d = load_8(lines, at + 2), load_8(lines, at + 3)
        moved_lap = (w0 * a + w3 * d) + (w1 * b + w2 * c)
        left = load_8(lines, _LEFT * room + col)
        lap = half * (load_8(lines, _LEFT_LAP * room + col) + moved_lap)
        by_shift = half * (load_8(lines, _LEFT_X * room + col) + moved_x)
        residual = left - moved + load_8(lines, _BLUR * room + col) * lap
        store(lines, _RESIDUAL * room + col, residual)
        store(lines, _GRADIENT * room + col, by_shift + slope * lap)
        store(lines, _BY_SHIFT * room + col, by_shift)
        store(lines, _MEAN * room + col, half * (left + moved))


@part
def _add_products(
    lines: Image, room: int, low: int, high: int, is_first: bool, sums: Image
) -> None:
    """Add the products of a row of pixels to sums; e is at the place of h, ge at that of gh."""
    zero = spread_8(np.float32(0))
    for col in range(low, high, EIGHT):
        g, e = load_8(lines, _GRADIENT * room + col), load_8(lines, _RESIDUAL * room + col)
        s, m = load_8(lines, _BY_SHIFT * room + col), load_8(lines, _MEAN * room + col)
        for plane, value in (
            (_G, g),
            (_H, e),
            (_GG, g * g),
            (_GH, g * e),
            (_EE, e * e),
            (_SS, s * s),
            (_M, m),
            (_MM, m * m),
        ):
            at = plane * room + col
            store(sums, at, value + (zero if is_first else load_8(sums, at)))


@part
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


@part
def _gradient_x(line: Image, out: Image) -> None:
    """Derivative by five points, right to the fourth order; zero at the border."""
    size = line.size
    out[: min(2, size)] = 0
    out[max(size - 2, 0) :] = 0
    inner, a, b, c = out[2:], line[1:], line[3:], line[4:]
    eight, twelfth = np.float32(8.0), np.float32(1.0 / 12.0)
    for col in range(size - 4):
        inner[col] = (eight * (b[col] - a[col]) - (c[col] - line[col])) * twelfth


@part
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
        _fill(here, tall_low[0])
        _fill(here, tall_high[0])
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
            _fill(tall_low[turn], lows[0, widest : widest + cols])
            _fill(tall_high[turn], highs[0, widest : widest + cols])
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


@part
def _least_of_three(first: Image, second: Image, third: Image, out: Image) -> None:
    for col in range(out.size):
        low = first[col] if first[col] < second[col] else second[col]
        out[col] = low if low < third[col] else third[col]


@part
def _most_of_three(first: Image, second: Image, third: Image, out: Image) -> None:
    for col in range(out.size):
        high = first[col] if first[col] > second[col] else second[col]
        out[col] = high if high > third[col] else third[col]


@part
def _least(line: Image, ahead: int, out: Image) -> None:
    """Smaller of each value and the one ahead of it."""
    after = line[ahead:]
    for col in range(after.size):
        out[col] = line[col] if line[col] < after[col] else after[col]


@part
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
    squares: Image,
) -> None:
    """Smoothed means of cells and their squares, times the pixels; an image goes on as its last."""
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
            line[col] = total[col] * columns[col] * pixels
        line = squares[row, first:last]
        for col in range(size):
            line[col] = total[col] * total[col] * columns[col] * pixels


@compiled
def _fit(
    start: int,
    stop: int,
    flat: Image,
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
    """Sums over all windows of a row, and what follows from them; start and stop are pairs of rows.

    The planes are one behind the other, then come zeros of a row. Sums along the columns come
    first, for two rows at a time, since they have most rows of their windows in common; those along
    a row go over all planes at once, and what they mix up at the ends of the planes nobody reads.
    """
    rows, cols = disparity.shape
    places, margin = halves.size, max(halves[halves.size - 1], 1)
    is_light = count == _LIGHT
    total = count if is_light else count + 1
    most = -(-(cols + 2 * margin) // EIGHT) * EIGHT
    tall = np.zeros((2, places, total * most + margin + EIGHT), dtype=np.float32)
    works = np.zeros((2, total * most + EIGHT), dtype=np.float32)
    sums = np.zeros((places, total * most + EIGHT), dtype=np.float32)
    small = np.zeros((2, 4 * most + margin + EIGHT), dtype=np.float32)
    lines = np.zeros((_LINES + places, most), dtype=np.float32)
    found = np.zeros((_RESULTS, most), dtype=np.float32)
    for place in range(places):
        _fill(cols_px[place], lines[_LINES + place])
    _fill(near_cols_px, lines[_NEAR_PX])
    zeros = _DOWN * rows * cols
    inner, firsts = np.empty(2 * margin, dtype=np.int64), np.empty((2, places), dtype=np.int64)
    ends = np.empty(places, dtype=np.int64)
    for pair in range(start, stop):
        top = 2 * pair
        two = min(top + 2, rows)
        begin, end = _span(wanted, top, two, margin)
        if begin < end:
            # The columns that windows of wanted cells reach are all there is, for this pair.
            width = end - begin
            room = -(-(width + 2 * margin) // EIGHT) * EIGHT
            size = _rows_of_windows(top, rows, cols, halves, zeros, inner, firsts, ends)
            for plane in range(count):
                base, at = plane * rows * cols + begin, plane * room + margin
                _sum_down(flat, base, zeros, width, room, inner, firsts, ends, tall, at)
            if not is_light:
                base, at = _GG * rows * cols + begin, count * room + margin
                few = inner[:size]
                _sum_down_weighted(
                    flat, base, zeros, width, room, top * cols, cols, few, firsts, ends, tall, at
                )
                for which in range(4):
                    base = (_E, _EE, _M, _MM)[which] * rows * cols + begin
                    at = which * room + margin
                    _sum_three(flat, base, zeros, top, rows, cols, width, room, small, at)
            for row in range(top, two):
                for place in range(places):
                    first, side, length = (
                        margin - halves[place],
                        2 * halves[place] + 1,
                        total * room,
                    )
                    _window_sums(tall[row - top, place], first, side, length, works, sums[place])
                for col in range(begin, end):
                    lines[_START, col] = disparity[row, col]
                    lines[_NOISE, col] = noise[row, col]
                    lines[_USABLE, col] = usable[row, col]
                _fit_line(
                    tall,
                    row - top,
                    sums,
                    small[row - top],
                    room,
                    lines,
                    begin,
                    width,
                    halves,
                    rows_px,
                    row,
                    near_rows_px[row],
                    share,
                    chance,
                    numbers,
                    is_light,
                    found,
                )
                for plane in range(out.shape[0]):
                    for col in range(width):
                        out[plane, row, begin + col] = found[plane, col]
                if not is_light:
                    for col in range(width):
                        used[row, begin + col] = np.int32(found[_RESULTS - 1, col])
        _leave_alone(top, two, disparity, wanted, out, used)


@part
def _span(wanted: Mask, top: int, bottom: int, margin: int) -> tuple[int, int]:
    """Columns that windows of the wanted cells of some rows reach, from the first to the last."""
    cols = wanted.shape[1]
    begin, end = cols, 0
    for row in range(top, bottom):
        first, last = 0, cols
        while first < last and not wanted[row, first]:
            first += 1
        while last > first and not wanted[row, last - 1]:
            last -= 1
        if first < last:
            begin, end = min(begin, first), max(end, last)
    return max(begin - margin, 0), min(end + margin, cols) if end > 0 else 0


@part
def _leave_alone(
    start: int, stop: int, disparity: Image, wanted: Mask, out: Planes, used: Counts
) -> None:
    """Cells that nobody wants stay where they are, and nothing is known of them."""
    for row in range(start, stop):
        for col in range(disparity.shape[1]):
            if not wanted[row, col]:
                out[0, row, col] = disparity[row, col]
                used[row, col] = 0
                for plane in range(1, out.shape[0]):
                    out[plane, row, col] = np.float32(UNKNOWN_PX) if plane == 1 else np.float32(0)


@part
def _fill(line: Image, out: Image) -> None:
    for col in range(min(line.size, out.size)):
        out[col] = line[col]


@part
def _rows_of_windows(
    top: int,
    rows: int,
    cols: int,
    halves: Indices,
    zeros: int,
    inner: Indices,
    firsts: Indices,
    ends: Indices,
) -> int:
    """Where the rows begin that windows around two rows sum over.

    `inner` are those that both rows have in common, from the smallest window on, which has
    ends[0] of them; firsts[0] and firsts[1] those that the upper and the lower row have besides.
    """
    count, reach = 0, 0
    for place in range(halves.size):
        half = halves[place]
        for step in range(reach + 1, half + 1):
            for row in (top + 1 - step, top + step):
                if 0 <= row < rows:
                    inner[count] = row * cols
                    count += 1
        ends[place] = count
        reach = half
        for which in range(2):
            row = top - half if which == 0 else top + 1 + half
            firsts[which, place] = row * cols if 0 <= row < rows else -1
    return count


@part
def _sum_down(
    flat: Image,
    base: int,
    zeros: int,
    width: int,
    room: int,
    inner: Indices,
    firsts: Indices,
    ends: Indices,
    tall: Planes,
    at: int,
) -> None:
    """Sums of columns over the rows of windows, one within the other, for two rows."""
    places, stride = ends.size, tall.shape[2]
    target = tall.reshape(tall.size)
    for col in range(0, width, EIGHT):
        total = spread_8(np.float32(0))
        begin = 0
        for place in range(places):
            for step in range(begin, ends[place]):
                total = total + load_8(flat, base + inner[step] + col)
            begin = ends[place]
            for which in range(2):
                first = firsts[which, place]
                source = base + first if first >= 0 else zeros
                value = total + load_8(flat, source + col)
                store(target, (which * places + place) * stride + at + col, value)
    for line in range(2 * places):
        for col in range(at + width, at + room):
            target[line * stride + col] = 0


@part
def _sum_down_weighted(
    flat: Image,
    base: int,
    zeros: int,
    width: int,
    room: int,
    here: int,
    cols: int,
    inner: Indices,
    firsts: Indices,
    ends: Indices,
    tall: Planes,
    at: int,
) -> None:
    """The same of the image times the rows down from each of the two."""
    places, stride = ends.size, tall.shape[2]
    target = tall.reshape(tall.size)
    for col in range(0, width, EIGHT):
        total, moment = spread_8(np.float32(0)), spread_8(np.float32(0))
        begin = 0
        for place in range(places):
            for step in range(begin, ends[place]):
                value = load_8(flat, base + inner[step] + col)
                total = total + value
                moment = moment + np.float32((inner[step] - here) // cols) * value
            begin = ends[place]
            for which in range(2):
                first = firsts[which, place]
                source = base + first if first >= 0 else zeros
                value = load_8(flat, source + col)
                down = np.float32((first - here) // cols if first >= 0 else 0)
                result = moment + down * value - np.float32(which) * (total + value)
                store(target, (which * places + place) * stride + at + col, result)
    for line in range(2 * places):
        for col in range(at + width, at + room):
            target[line * stride + col] = 0


@part
def _sum_three(
    flat: Image,
    base: int,
    zeros: int,
    top: int,
    rows: int,
    cols: int,
    width: int,
    room: int,
    small: Image,
    at: int,
) -> None:
    """Sums of columns over three rows, for two of them."""
    stride = small.shape[1]
    target = small.reshape(small.size)
    places = (
        base + (top - 1) * cols if top > 0 else zeros,
        base + top * cols,
        base + (top + 1) * cols if top + 1 < rows else zeros,
        base + (top + 2) * cols if top + 2 < rows else zeros,
    )
    for col in range(0, width, EIGHT):
        both = load_8(flat, places[1] + col) + load_8(flat, places[2] + col)
        store(target, at + col, both + load_8(flat, places[0] + col))
        store(target, stride + at + col, both + load_8(flat, places[3] + col))
    for which in range(2):
        for col in range(at + width, at + room):
            target[which * stride + col] = 0


@part
def _window_sums(line: Image, first: int, side: int, size: int, works: Image, out: Image) -> None:
    """Sums over `side` values of a line from each on, the first of them `first` ahead.

    By sums of two, four, eight and so on. Behind the last whole window comes what nobody reads.
    """
    flat = works.reshape(works.size)
    stride = works.shape[1]
    power, done, turn, is_first = 1, first, 0, True
    while True:
        if side & power:
            for col in range(0, size - done, EIGHT):
                value = (
                    load_8(line, done + col)
                    if power == 1
                    else load_8(flat, (1 - turn) * stride + done + col)
                )
                if not is_first:
                    value = value + load_8(out, col)
                store(out, col, value)
            done += power
            is_first = False
        if 2 * power > side:
            break
        for col in range(0, size - 2 * power + 1, EIGHT):
            if power == 1:
                value = load_8(line, col) + load_8(line, col + 1)
            else:
                before = (1 - turn) * stride + col
                value = load_8(flat, before) + load_8(flat, before + power)
            store(flat, turn * stride + col, value)
        turn = 1 - turn
        power *= 2


@part
def _fit_line(
    both_tall: Planes,
    which: int,
    all_sums: Image,
    small: Image,
    room: int,
    all_lines: Image,
    begin_col: int,
    width: int,
    halves: Indices,
    rows_px: Image,
    row: int,
    near_rows_px: np.float32,
    share: Image,
    chance: Image,
    numbers: Image,
    is_light: bool,
    all_found: Image,
) -> None:
    """Window of each cell of a line, its disparity, and how good that is."""
    places, margin = halves.size, max(halves[halves.size - 1], 1)
    tall, tall_stride = both_tall.reshape(both_tall.size), both_tall.shape[2]
    sums, sums_stride = all_sums.reshape(all_sums.size), all_sums.shape[1]
    lines, most = all_lines.reshape(all_lines.size), all_lines.shape[1]
    found = all_found.reshape(all_found.size)
    constant, slope, reach = numbers[0], numbers[1], numbers[2]
    smoothed, laplacian, gradient = numbers[3], numbers[4], numbers[5]
    factor, unexplained = numbers[7] * numbers[7] * numbers[6], numbers[8]
    half, two, four = np.float32(0.5), np.float32(2), np.float32(4)
    zero, one = spread_8(np.float32(0)), spread_8(np.float32(1))
    flat, tiny = spread_8(np.float32(FLAT)), spread_8(np.float32(TINY))
    unknown = spread_8(np.float32(UNKNOWN_PX))
    for col in range(0, width, EIGHT):
        there = begin_col + col
        begin, usable = load_8(lines, _START * most + there), load_8(lines, _USABLE * most + there)
        index, last, spread_out = zero, zero, zero
        best_gg, best_d, best_ee, best_over = zero, zero, zero, zero
        all_gg, slow, by_shift, mean, square, through = zero, zero, zero, zero, zero, zero
        down, across, kept, by_chance = zero, zero, zero, zero
        for place in range(places):
            at = place * sums_stride + col
            pixels = rows_px[place, row] * load_8(lines, (_LINES + place) * most + there)
            over = one / higher(pixels, one)
            s_g, s_gg = load_8(sums, at), load_8(sums, at + _GG * room)
            g = s_g * over
            gg = s_gg * over - g * g
            safe = higher(gg, flat)
            d = (
                load_8(sums, at + _GH * room) * over - g * (load_8(sums, at + _H * room) * over)
            ) / safe
            e = load_8(sums, at + _E * room) * over
            ee = higher(load_8(sums, at + _EE * room) * over - e * e, zero)
            gap = d - last
            taken = if_at_most(gap * gap, spread_out, one, zero)
            taken = if_equal(index, spread_8(np.float32(place - 1)), taken, zero)
            taken = if_at_most(spread_8(np.float32(place)), usable, taken, zero)
            if place == 0:
                taken = one
            else:
                index = index + taken
            spread_out = factor * ee * over / safe
            last = d
            best_gg = if_lower(zero, taken, gg, best_gg)
            best_d = if_lower(zero, taken, d, best_d)
            best_ee = if_lower(zero, taken, ee, best_ee)
            best_over = if_lower(zero, taken, over, best_over)
            if not is_light:
                all_gg = if_lower(zero, taken, s_gg, all_gg)
                value = load_8(sums, at + _U * room)
                slow = if_lower(zero, taken, value, slow)
                value = load_8(sums, at + _SS * room)
                by_shift = if_lower(zero, taken, value, by_shift)
                value = load_8(sums, at + _M * room)
                mean = if_lower(zero, taken, value, mean)
                value = load_8(sums, at + _MM * room)
                square = if_lower(zero, taken, value, square)
                value = load_8(sums, at + _UU * room)
                through = if_lower(zero, taken, value, through)
                value = load_8(sums, at + _DOWN * room)
                down = if_lower(zero, taken, value, down)
                value = _sum_across(
                    tall,
                    (which * places + place) * tall_stride + _GG * room + margin + col,
                    halves[place],
                )
                across = if_lower(zero, taken, value, across)
                kept = if_lower(zero, taken, spread_8(share[place]), kept)
                by_chance = if_lower(zero, taken, spread_8(chance[place]), by_chance)
        moved = lower(higher(best_d, begin - reach), begin + reach)
        moved = if_lower(flat, best_gg, moved, begin)
        store(found, col, moved)
        if is_light:
            continue
        noise = load_8(lines, _NOISE * most + there)
        defocus = constant + slope * moved
        per_noise = two * smoothed + half * laplacian * defocus * defocus
        residual = best_ee / per_noise
        sensor = lower(noise, residual)
        mixed = sensor + unexplained * (residual - sensor)
        telling = lower(best_gg, by_shift * best_over) - half * gradient * mixed
        telling = higher(higher(telling, np.float32(0.03) * best_gg), np.float32(0.1) * flat)
        slow = slow * best_over
        energy = higher(through * best_over - slow * slow, zero)
        sigma = root(two * mixed * energy * kept * best_over) / telling
        mean = mean * best_over
        signal = four * higher(square * best_over - mean * mean, zero)
        grain = higher(two * smoothed * mixed, tiny)
        alike = (signal - grain) / (signal + grain)
        beyond = higher((alike - by_chance) / (one - alike * by_chance), zero)
        near = margin + col - 1
        near_over = one / higher(near_rows_px * load_8(lines, _NEAR_PX * most + there), one)
        e, ee = _three(small, near) * near_over, _three(small, near + room) * near_over
        m, mm = (
            _three(small, near + 2 * room) * near_over,
            _three(small, near + 3 * room) * near_over,
        )
        explained = noise * per_noise + np.float32(0.01) * higher(mm - m * m, zero)
        misfit = higher(ee - e * e, zero) / higher(explained, tiny)
        weight = if_lower(flat, best_gg, one / higher(all_gg, tiny), zero)
        store(found, most + col, if_lower(flat, best_gg, sigma, unknown))
        store(found, 2 * most + col, if_lower(flat, best_gg, beyond, zero))
        store(found, 3 * most + col, misfit)
        store(found, 4 * most + col, down * weight)
        store(found, 5 * most + col, across * weight)
        store(found, 6 * most + col, index)


@part
def _three(line: Image, place: int) -> Any:
    return (load_8(line, place) + load_8(line, place + 1)) + load_8(line, place + 2)


@part
def _sum_across(line: Image, place: int, half: int) -> Any:
    """Sum of a line around a place, times the columns from there."""
    total = spread_8(np.float32(0))
    for step in range(1, half + 1):
        apart = load_8(line, place + step) - load_8(line, place - step)
        total = total + np.float32(step) * apart
    return total


@compiled
def _settle(start: int, stop: int, before: Image, after: Image, sums: Planes) -> None:
    two, zero = np.float32(2), np.float32(0)
    move = np.empty(before.shape[1], dtype=np.float32)
    for row in range(start, stop):
        old, new = before[row], after[row]
        g, gg, gh = sums[_G, row], sums[_GG, row], sums[_GH, row]
        e, ee = sums[_E, row], sums[_EE, row]
        for col in range(move.size):
            move[col] = new[col] - old[col]
        for col in range(move.size):
            e[col] += move[col] * g[col]
        for col in range(move.size):
            ge = old[col] * gg[col] - gh[col]
            value = ee[col] + move[col] * (two * ge + move[col] * gg[col])
            ee[col] = value if value > zero else zero


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
    margin = halves[halves.size - 1]
    room = cols + 2 * margin + EIGHT
    lines = np.zeros((_SLOPE_LINES, room), dtype=np.float32)
    flat = lines.reshape(lines.size)
    for col in range(cols):
        lines[_COLUMN, col] = np.float32(col * cell)
    for row in range(start, stop):
        _fill_wide(used[row], margin, lines[_WINDOW])
        _fill_wide(disparity[row], margin, lines[_DISPARITY])
        _fill_wide(across[row], margin, lines[_ACROSS])
        _fill(down[row], lines[_OFFSET])
        lines[_SLOPE_DOWN : _SLOPE_ACROSS + 1] = 0
        for place in range(1, halves.size):
            above, below = max(row - halves[place], 0), min(row + halves[place], rows - 1)
            _fill(used[above], lines[_ABOVE])
            _fill(used[below], lines[_BELOW])
            _fill(disparity[above], lines[_ABOVE + 2])
            _fill(disparity[below], lines[_BELOW + 2])
            _fill(down[above], lines[_ABOVE + 4])
            _fill(down[below], lines[_BELOW + 4])
            _slopes(flat, room, cols, margin, place, halves[place])
        _straighten(flat, room, cols, margin, halves, min(row, rows - 1 - row), cell, frame_cols)
        target, own, line, bits = out[row], sigma[row], lines[_STRAIGHT], flags[row]
        for col in range(cols):
            target[col] = scale * line[col]
        target = out_sigma[row]
        for col in range(cols):
            target[col] = scale * own[col]
        line = lines[_OUTSIDE]
        for col in range(cols):
            bits[col] = np.int32(line[col]) * np.int32(_BORDER)


@part
def _fill_wide(line: Any, margin: int, out: Image) -> None:
    """A line with its ends repeated."""
    _fill(line, out[margin:])
    last = line.size - 1
    for step in range(margin):
        out[step] = line[0]
        out[margin + last + 1 + step] = line[last]


@part
def _slopes(lines: Image, room: int, cols: int, margin: int, place: int, step: int) -> None:
    """Slopes of the surface down and across, where cells `step` apart are known to be on it."""
    zero, one = spread_8(np.float32(0)), spread_8(np.float32(1))
    here, apart = spread_8(np.float32(place)), np.float32(2 * step)
    least = spread_8(np.float32(0.5 * step))
    for col in range(0, cols, EIGHT):
        above, below = _ABOVE * room + col, _BELOW * room + col
        fits = if_at_most(here, load_8(lines, _WINDOW * room + margin + col), one, zero)
        is_one = if_at_most(here, load_8(lines, above), fits, zero)
        is_one = if_at_most(here, load_8(lines, below), is_one, zero)
        run = apart + (load_8(lines, below + 4 * room) - load_8(lines, above + 4 * room))
        is_one = if_lower(least, run, is_one, zero)
        rise = load_8(lines, below + 2 * room) - load_8(lines, above + 2 * room)
        at = _SLOPE_DOWN * room + col
        store(lines, at, if_lower(zero, is_one, rise / run, load_8(lines, at)))
        before, after = margin + col - step, margin + col + step
        is_one = if_at_most(here, load_8(lines, _WINDOW * room + before), fits, zero)
        is_one = if_at_most(here, load_8(lines, _WINDOW * room + after), is_one, zero)
        run = apart + (
            load_8(lines, _ACROSS * room + after) - load_8(lines, _ACROSS * room + before)
        )
        is_one = if_lower(least, run, is_one, zero)
        rise = load_8(lines, _DISPARITY * room + after) - load_8(lines, _DISPARITY * room + before)
        at = _SLOPE_ACROSS * room + col
        store(lines, at, if_lower(zero, is_one, rise / run, load_8(lines, at)))


@part
def _straighten(
    lines: Image,
    room: int,
    cols: int,
    margin: int,
    halves: Indices,
    rim: int,
    cell: int,
    frame_cols: int,
) -> None:
    """Disparity without tilt, and whether the window or its match leaves the frame."""
    zero, one = spread_8(np.float32(0)), spread_8(np.float32(1))
    for col in range(0, cols, EIGHT):
        here = load_8(lines, _DISPARITY * room + margin + col)
        tilt = load_8(lines, _OFFSET * room + col) * load_8(lines, _SLOPE_DOWN * room + col)
        tilt = tilt + (
            load_8(lines, _ACROSS * room + margin + col) * load_8(lines, _SLOPE_ACROSS * room + col)
        )
        store(lines, _STRAIGHT * room + col, here - tilt)
        window = load_8(lines, _WINDOW * room + margin + col)
        reach = spread_8(np.float32(halves[0]))
        for place in range(1, halves.size):
            value = spread_8(np.float32(halves[place]))
            reach = if_equal(window, spread_8(np.float32(place)), value, reach)
        place_px, reach_px = load_8(lines, _COLUMN * room + col), np.float32(cell) * reach
        first = place_px - reach_px - higher(here, zero)
        last = place_px + reach_px + np.float32(cell - 1) - lower(here, zero)
        outside = if_lower(first, zero, one, zero)
        outside = if_lower(spread_8(np.float32(frame_cols - 1)), last, one, outside)
        outside = if_lower(spread_8(np.float32(rim)), reach, one, outside)
        store(lines, _OUTSIDE * room + col, outside)


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
def _wanted(
    start: int, stop: int, scales: Counts, least: int, most: int, is_coarse: bool, out: Mask
) -> None:
    rows, cols = scales.shape
    low, high = np.uint8(least), np.uint8(most)
    line = np.empty(cols + 3, dtype=np.uint8)
    for row in range(start, stop):
        target = out[row]
        if not is_coarse:
            source = scales[row]
            for col in range(cols):
                target[col] = (source[col] >= low) & (source[col] <= high)
            continue
        line[:] = 0
        inner = line[1:]
        for near in range(max(2 * row - 1, 0), min(2 * row + 3, rows)):
            source = scales[near]
            for col in range(cols):
                inner[col] |= (source[col] >= low) & (source[col] <= high)
        for col in range(target.size):
            some = line[2 * col] | line[2 * col + 1]
            more = line[2 * col + 2] | (line[2 * col + 3] if 2 * col + 3 < line.size else 0)
            target[col] = (some | more) > 0


@compiled
def _put(
    start: int, stop: int, values: Image, scales: Counts, least: int, most: int, out: Image
) -> None:
    """Values of the cells of these scales."""
    for row in range(start, stop):
        here, source, target = scales[row], values[row], out[row]
        for col in range(here.size):
            if least <= here[col] <= most:
                target[col] = source[col]


@compiled
def _join(
    start: int,
    stop: int,
    scales: Counts,
    scale: int,
    disparity: Image,
    sigma: Image,
    correlation: Image,
    misfit: Image,
    flags: NDArray[np.uint16],
    out_disparity: Image,
    out_sigma: Image,
    out_correlation: Image,
    out_misfit: Image,
    out_flags: NDArray[np.uint16],
) -> None:
    """Put a part where its scale is wanted, linear between the cells if they are twice as large."""
    step = 1 if flags.shape == out_flags.shape else 2
    work = np.empty(flags.shape[1] + 2, dtype=np.float32)
    for row in range(start, stop):
        here = scales[row]
        first, last = 0, here.size - 1
        while first <= last and here[first] != scale:
            first += 1
        while last > first and here[last] != scale:
            last -= 1
        if first > last:
            continue
        _join_line(disparity, row, step, here, scale, first, last, work, out_disparity[row])
        _join_line(sigma, row, step, here, scale, first, last, work, out_sigma[row])
        _join_line(correlation, row, step, here, scale, first, last, work, out_correlation[row])
        _join_line(misfit, row, step, here, scale, first, last, work, out_misfit[row])
        bits, target = flags[row // step], out_flags[row]
        for col in range(first, last + 1):
            if here[col] == scale:
                target[col] = bits[col // step]


@part
def _join_line(
    image: Image,
    row: int,
    step: int,
    here: Counts,
    scale: int,
    first: int,
    last: int,
    work: Image,
    out: Image,
) -> None:
    if step == 1:
        source = image[row]
        for col in range(first, last + 1):
            if here[col] == scale:
                out[col] = source[col]
        return
    near, far = np.float32(0.75), np.float32(0.25)
    rows, cols = image.shape
    one = image[row // 2]
    two = image[max(row // 2 - 1, 0) if row % 2 == 0 else min(row // 2 + 1, rows - 1)]
    begin, end = max(first // 2 - 1, 0), min(last // 2 + 2, cols)
    for col in range(begin, end):
        work[col + 1] = near * one[col] + far * two[col]
    if begin == 0:
        work[0] = work[1]
    if end == cols:
        work[cols + 1] = work[cols]
    for col in range(first, last + 1):
        if here[col] == scale:
            place = col // 2 + 1
            out[col] = near * work[place] + far * work[place + (1 if col % 2 else -1)]
