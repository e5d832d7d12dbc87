"""Sums over cells of the residual, of its derivative, and of their products."""

from typing import Any

import numpy as np

from d3s.estimate.joint.kernels.filters import fill
from d3s.estimate.joint.types import (
    BlurPlane,
    CellSum,
    DefocusLine,
    FitParameters,
    Indices,
    Planes,
    Real,
    window_pixels,
)
from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import (
    FLOATS,
    load_8,
    splat_8,
    store,
)
from d3s.types import Image, Mask

# Planes of `CellSum` as plain integers, which compile faster.
_G, _H, _GG, _GH, _E, _EE, _SS, _M, _MM = (int(plane) for plane in list(CellSum)[:9])


_XY, _HIGHER = int(BlurPlane.XY), int(BlurPlane.HIGHER)


# Lines of a row of pixels: sub-pixel position in the spline, defocus, left view, its Laplacian and
# slope, Laplacian of the right view's spline; then the results.
_T, _BLUR, _LEFT, _LEFT_LAP, _LEFT_X, _RIGHT_LAP = range(6)


_RESIDUAL, _GRADIENT, _BY_SHIFT, _MEAN, _CELL_LINES = range(6, 11)


# With lens maps also: the factors of derivatives in the residual and in its slope, in the order of
# `BlurPlane`, then these derivatives of the left view and of the right view's spline: second ones
# along x, mixed and along y, the first one along y, and those of the Laplacian along x and y.
_FACTORS, _DERIVATIVES = 9, 6


_SECOND = 3  # of these derivatives are second ones


_FACTOR = _CELL_LINES


_LEFT_XX = _FACTOR + _FACTORS


_RIGHT_XX = _LEFT_XX + _DERIVATIVES


_FIELD_LINES = _RIGHT_XX + _DERIVATIVES


_SPLINE_REACH = 10  # the spline filter falls to 2e-6 there


def sum_cells(
    memory: Scratch,
    left: Image,
    right: Image,
    disparity: Image,
    wanted: Mask,
    parameters: FitParameters,
    blur: Planes | None = None,
) -> Planes:
    """Return the sums `CellSum` over the pixels of each cell (sums, rows, cols).

    At least of the cells that the windows of a wanted cell reach.
    """
    rows, cols = disparity.shape
    # One plane more, whose first row is zero: for windows that leave the frame.
    out = memory.empty((len(CellSum) + 1, rows, cols))
    out[len(CellSum), 0] = 0
    reach = parameters.window_halves[-1] + len(parameters.cell_taps) // 2
    first, last = _hull(wanted, reach)
    side = parameters.cell_side
    with memory.part():
        spline = memory.empty(right.shape)
        run_over_rows(_spline_coefficients, right.shape[0], right, _spline_taps(), spline)
        line = DefocusLine(*(np.float32(number) for number in parameters.defocus))
        run_over_rows(_sum_cells, rows, left, spline, disparity, line, side, first, last, out, blur)
    taps = np.array(parameters.cell_taps, dtype=np.float32)
    own = [window_pixels(size, side, (0,))[0] for size in parameters.view_shape]
    smooth = out[CellSum.U], out[CellSum.UU]
    run_over_rows(_smooth_squares, rows, out[CellSum.G], taps, *own, first, last, *smooth)
    return out


def shift_sums(memory: Scratch, sums: Planes, before: Image, after: Image) -> Planes:
    """Return the sums as they would be at other disparities, to first order."""
    run_over_rows(_shift_sums, before.shape[0], before, after, sums)
    return sums


def _hull(wanted: Mask, reach: int) -> tuple[Indices, Indices]:
    """Return the first column near wanted cells, and the one behind the last, for each row."""
    rows, cols = wanted.shape
    first = wanted.argmax(axis=1)
    first[~wanted[np.arange(rows), first]] = cols
    last = cols - wanted[:, ::-1].argmax(axis=1)
    last[first == cols] = 0
    near = min(reach, rows - 1)
    wide = np.full((2, rows + 2 * near), cols)
    wide[0, near : near + rows], wide[1, near : near + rows] = first, -last
    # The minimum over 2 near + 1 rows, by minima over 1, 2, 4 and so on.
    power = 1
    while 2 * power <= 2 * near + 1:
        wide = np.minimum(wide[:, : wide.shape[1] - power], wide[:, power:])
        power *= 2
    rest = 2 * near + 1 - power
    wide = np.minimum(wide[:, :rows], wide[:, rest : rest + rows])
    return np.maximum(wide[0] - reach, 0), np.clip(reach - wide[1], 0, cols)


def _spline_taps() -> Image:
    """Return the filter from pixels to cubic spline coefficients: its pole to the distance."""
    pole = np.sqrt(3.0) - 2.0
    taps = np.sqrt(3.0) * pole ** np.arange(_SPLINE_REACH + 1)
    return np.asarray(taps, dtype=np.float32)


@compiled
def _spline_coefficients(start: int, stop: int, image: Image, taps: Image, out: Image) -> None:
    """Correlate each row with a symmetric filter; rows are mirrored at their ends."""
    cols = image.shape[1]
    reach = taps.size - 1
    period = max(2 * (cols - 1), 1)
    wide = np.zeros(cols + 2 * reach + FLOATS, dtype=np.float32)
    line = np.zeros(cols + FLOATS, dtype=np.float32)
    for row in range(start, stop):
        for step in range(1, reach + 1):
            for place in (-step, cols - 1 + step):
                mirrored = abs(place) % period
                wide[reach + place] = image[row, mirrored if mirrored < cols else period - mirrored]
        fill(image[row], wide[reach:])
        for col in range(0, cols, FLOATS):
            total = taps[0] * load_8(wide, reach + col)
            for tap in range(1, reach + 1):
                both = load_8(wide, reach + col - tap) + load_8(wide, reach + col + tap)
                total = total + taps[tap] * both
            store(line, col, total)
        fill(line, out[row])


@compiled
def _sum_cells(
    start: int,
    stop: int,
    left: Image,
    spline: Image,
    disparity: Image,
    defocus: DefocusLine,
    side: int,
    firsts: Indices,
    lasts: Indices,
    out: Planes,
    maps: Planes | None,
) -> None:
    """Sum `CellSum` over the pixels of cells, row by row, from column `firsts` to `lasts`.

    Neighbouring cells mostly have the same whole shift: over such a run the right view is read in
    order.
    """
    rows, cols = left.shape
    shifts = np.empty(disparity.shape[1], dtype=np.int64)
    room = cols + 2 * FLOATS
    count = _CELL_LINES if maps is None else _FIELD_LINES
    lines = np.zeros((count, room), dtype=np.float32)
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
                blur[col] = defocus.constant + defocus.slope * depth[cell]
        if maps is not None:
            for plane in range(_FACTORS):
                _widen(maps[plane, cell_row], begin, end, side, lines[_FACTOR + plane])
        for row in range(cell_row * side, min(cell_row * side + side, rows)):
            fill(left[row], lines[_LEFT])
            if maps is None:
                _laplacian(left, row, lines[_LEFT_LAP, :cols])
                _laplacian(spline, row, lines[_RIGHT_LAP, :cols])
            else:
                _derivatives(left, row, lines[_LEFT_XX:_RIGHT_XX, :cols])
                _derivatives(spline, row, lines[_RIGHT_XX:_FIELD_LINES, :cols])
            _gradient_x(left[row], lines[_LEFT_X, :cols])
            here, done = begin, low
            while here < end:
                there = here + 1
                shift = shifts[here]
                while there < end and shifts[there] == shift:
                    there += 1
                # A spline reaches from one pixel before to two pixels behind.
                first = max(here * side, shift + 1)
                last = min(there * side, cols, shift + cols - 2)
                if first < last:
                    _without_match(lines, done, first)
                    row_at, slope = row * cols - shift, defocus.slope
                    _compare(splines, row_at, flat, room, first, last, shift, slope, maps)
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
    """Set pixels whose match is out of the frame: residual and gradient 0, mean = left view."""
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
    slope: Real,
    maps: Planes | None,
) -> None:
    """Compare a run of pixels with one whole shift; up to 7 pixels behind it are overwritten."""
    one, half, sixth = splat_8(np.float32(1)), np.float32(0.5), np.float32(1 / 6)
    three, four, two_thirds = np.float32(3), np.float32(4), splat_8(np.float32(2 / 3))
    for col in range(first, last, FLOATS):
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
        left = load_8(lines, _LEFT * room + col)
        by_shift = half * (load_8(lines, _LEFT_X * room + col) + moved_x)
        weights = w0, w1, w2, w3
        if maps is None:
            lap = _mean(lines, _LEFT_LAP * room + col, _RIGHT_LAP * room + col - shift - 1, weights)
            residual = left - moved + load_8(lines, _BLUR * room + col) * lap
            gradient = by_shift + slope * lap
        else:
            residual, gradient = left - moved, by_shift
            for plane in range(_DERIVATIVES):
                there = (_RIGHT_XX + plane) * room + col - shift - 1
                derivative = _mean(lines, (_LEFT_XX + plane) * room + col, there, weights)
                if plane == _XY:
                    derivative = derivative + derivative
                factor = plane if plane <= _HIGHER else plane + _SECOND
                residual = residual + load_8(lines, (_FACTOR + factor) * room + col) * derivative
                if plane < _SECOND:
                    slope_at = (_FACTOR + _HIGHER + 1 + plane) * room + col
                    gradient = gradient + load_8(lines, slope_at) * derivative
        store(lines, _RESIDUAL * room + col, residual)
        store(lines, _GRADIENT * room + col, gradient)
        store(lines, _BY_SHIFT * room + col, by_shift)
        store(lines, _MEAN * room + col, half * (left + moved))


@inlined
def _mean(lines: Image, left: int, right: int, weights: tuple[Any, Any, Any, Any]) -> Any:
    """Mean of a line of the left view and of one of the right view's spline."""
    w0, w1, w2, w3 = weights
    a, b = load_8(lines, right), load_8(lines, right + 1)
    c, d = load_8(lines, right + 2), load_8(lines, right + 3)
    return np.float32(0.5) * (load_8(lines, left) + ((w0 * a + w3 * d) + (w1 * b + w2 * c)))


@part
def _widen(line: Image, begin: int, end: int, side: int, out: Image) -> None:
    """Copy the values of cells to their pixels."""
    for cell in range(begin, end):
        for col in range(cell * side, min(cell * side + side, out.size)):
            out[col] = line[cell]


@part
def _derivatives(image: Image, row: int, out: Image) -> None:
    """Derivatives xx, xy, yy and y of a row, and those of the Laplacian along x and y.

    Edge pixels are repeated.
    """
    rows, cols = image.shape
    up, here, down = image[max(row - 1, 0)], image[row], image[min(row + 1, rows - 1)]
    across, mixed, along, slope = out[0], out[1], out[2], out[3]
    two, half, quarter = np.float32(2), np.float32(0.5), np.float32(0.25)
    for col in range(cols):
        along[col] = (up[col] + down[col]) - two * here[col]
    for col in range(cols):
        slope[col] = half * (down[col] - up[col])
    for col in (0, cols - 1):
        before, after = max(col - 1, 0), min(col + 1, cols - 1)
        across[col] = (here[before] + here[after]) - two * here[col]
        mixed[col] = quarter * ((down[after] - up[after]) - (down[before] - up[before]))
        if cols == 1:
            break
    inner, middle, after = across[1:], here[1:], here[2:]
    for col in range(cols - 2):
        inner[col] = (here[col] + after[col]) - two * middle[col]
    inner, low, high = mixed[1:], down[2:], up[2:]
    for col in range(cols - 2):
        inner[col] = quarter * ((low[col] - high[col]) - (down[col] - up[col]))
    _laplacian_slopes(image, row, across, along, out[4:])


@part
def _laplacian_slopes(image: Image, row: int, across: Image, along: Image, out: Image) -> None:
    """Derivatives of the Laplacian along x and y; 0 in the first and the last column."""
    rows, cols = image.shape
    half, four = np.float32(0.5), np.float32(4)
    out[:, 0] = 0
    out[:, cols - 1] = 0
    target, x_after, y_after = out[0, 1:], across[2:], along[2:]
    for col in range(cols - 2):
        target[col] = half * ((x_after[col] + y_after[col]) - (across[col] + along[col]))
    up, down = image[max(row - 1, 0)], image[min(row + 1, rows - 1)]
    top, bottom = image[max(row - 2, 0), 1:], image[min(row + 2, rows - 1), 1:]
    target, above, below = out[1, 1:], up[1:], down[1:]
    up_after, down_after = up[2:], down[2:]
    for col in range(cols - 2):
        beside = (down[col] + down_after[col]) - (up[col] + up_after[col])
        outer = (bottom[col] - top[col]) + beside
        target[col] = half * (outer - four * (below[col] - above[col]))


@part
def _add_products(
    lines: Image, room: int, low: int, high: int, is_first: bool, sums: Image
) -> None:
    """Add the products of a row of pixels to the sums, with e in place of h and ge of gh."""
    zero = splat_8(np.float32(0))
    for col in range(low, high, FLOATS):
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
    """Five-point Laplacian of a row; edge pixels are repeated."""
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
    """Derivative by five points, of fourth order; 0 at the border."""
    size = line.size
    out[: min(2, size)] = 0
    out[max(size - 2, 0) :] = 0
    inner, a, b, c = out[2:], line[1:], line[3:], line[4:]
    eight, twelfth = np.float32(8.0), np.float32(1.0 / 12.0)
    for col in range(size - 4):
        inner[col] = (eight * (b[col] - a[col]) - (c[col] - line[col])) * twelfth


@part
def _fold(line: Image, side: int, out: Image) -> None:
    """Sum over cells of one or two columns; the last cell may have one column less."""
    if side == 1:
        for col in range(out.size):
            out[col] = line[col]
        return
    for col in range(line.size // 2):
        out[col] = line[2 * col] + line[2 * col + 1]
    if line.size % 2:
        out[out.size - 1] = line[line.size - 1]


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
    """Smooth the means of cells, and square them, both times the pixels; edges are repeated."""
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
def _shift_sums(start: int, stop: int, before: Image, after: Image, sums: Planes) -> None:
    """Shift the sums to other disparities, to first order, in place."""
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
