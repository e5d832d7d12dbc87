"""Windows that lie on one surface; slopes and bends of surfaces."""

from typing import Any

import numpy as np

from d3s.estimate.flags import Flag
from d3s.estimate.joint.kernels.filters import fill
from d3s.estimate.joint.types import (
    CellFit,
    Counts,
    FitParameters,
    Indices,
    SurfaceLimits,
    WindowFit,
)
from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import (
    FLOATS,
    load_8,
    maximum,
    minimum,
    select_at_most,
    select_equal,
    select_less,
    splat_8,
    store,
)
from d3s.types import Image

_BORDER = int(Flag.BORDER)


# Lines of a row of cells for slopes: the row itself with its ends repeated; windows, disparities,
# centroids and sigmas of the rows above and below, alternating; and the results.
_WINDOW, _DISPARITY, _ACROSS, _SIGMA, _OFFSET, _COLUMN, _ABOVE, _BELOW = range(8)


_SLOPE_DOWN, _SLOPE_ACROSS, _BEND_DOWN, _BEND_ACROSS, _STRAIGHT, _OUTSIDE, _LINES = range(14, 21)


def count_one_surface(
    memory: Scratch, disparity: Image, halves: tuple[int, ...], limits: SurfaceLimits
) -> Counts:
    """Count the windows, from the smallest on, whose disparities may be of one surface."""
    out = memory.empty(disparity.shape, np.uint8)
    sides, rows = np.array(halves, np.int64), out.shape[0]
    single = SurfaceLimits(*(np.float32(limit) for limit in limits))
    run_over_rows(_count_one_surface, rows, disparity, sides, single, out)
    return out


def count_usable(
    memory: Scratch, disparity: Image, parameters: FitParameters, limits: SurfaceLimits
) -> Counts:
    """Count the larger windows that lie within both views and on one surface."""
    count = count_one_surface(memory, disparity, parameters.window_halves[1:], limits)
    halves = np.array(parameters.window_halves, dtype=np.int64)
    side, cols = parameters.cell_side, parameters.view_shape[1]
    run_over_rows(_limit_to_frame, count.shape[0], disparity, halves, side, cols, count)
    return count


def correct_slopes(
    memory: Scratch, fit: WindowFit, parameters: FitParameters, scale: int
) -> CellFit:
    """Remove the effect of slopes from a fit, and convert it to pixels of the frame.

    The disparity of a window is that at the centroid of its squared gradients, not at its
    centre.
    """
    empty, shape = memory.empty, fit.disparity.shape
    out = CellFit(
        disparity_px=empty(shape),
        sigma_px=empty(shape),
        bend_px=empty(shape),
        correlation=fit.correlation,
        misfit=fit.misfit,
        flags=empty(shape, np.uint16),
    )
    run_over_rows(
        _correct_slopes,
        shape[0],
        fit,
        np.array(parameters.window_halves, dtype=np.int64),
        parameters.cell_side,
        parameters.view_shape[1],
        np.float32(scale),
        np.float32(parameters.bend_share),
        np.float32(parameters.bend_noise),
        out,
    )
    return out


@compiled
def _count_one_surface(
    start: int, stop: int, disparity: Image, halves: Indices, limits: SurfaceLimits, out: Counts
) -> None:
    """Count the windows, from the smallest on, whose extent of disparities is within the limits.

    A line holds disparities, then their negatives; the minima of both halves give the extent.
    """
    rows, cols = disparity.shape
    least, share, zero = limits.least, limits.share, limits.zero
    widest = halves[halves.size - 1] if halves.size else 0
    room = cols + 2 * widest
    # Two alternating lines each, for minima over rows and then over columns.
    tall = np.empty((2, 2 * cols), dtype=np.float32)
    wide = np.empty((2, 2 * room), dtype=np.float32)
    limit = np.empty(cols, dtype=np.float32)
    count = np.empty(cols, dtype=np.float32)
    one, none, never = np.float32(1), np.float32(0), np.float32(np.inf)
    for row in range(start, stop):
        for col in range(cols):
            here = disparity[row, col]
            extent = share * abs(here - zero)
            limit[col] = extent if extent > least else least
            count[col] = none
            tall[0, col] = here
            tall[0, cols + col] = -here
        turn, reach = 0, 0
        for place in range(halves.size):
            half = halves[place]
            for step in range(reach + 1, half + 1):
                above, below = disparity[max(row - step, 0)], disparity[min(row + step, rows - 1)]
                _minimum_with(above, below, tall[turn], tall[1 - turn])
                turn = 1 - turn
            reach = half
            for col in range(2 * room):
                wide[0, col] = never
            fill(tall[turn, :cols], wide[0, widest:])
            fill(tall[turn, cols:], wide[0, room + widest :])
            size, power, now = 2 * half + 1, 1, 0
            while 2 * power <= size:
                _minimum_of_two(wide[now], power, wide[1 - now])
                now = 1 - now
                power *= 2
            first = widest - half
            rest = first + size - power
            a, b = wide[now, first:], wide[now, rest:]
            c, d = wide[now, room + first :], wide[now, room + rest :]
            before = np.float32(place)
            for col in range(cols):
                low = a[col] if a[col] < b[col] else b[col]
                high = c[col] if c[col] < d[col] else d[col]
                is_within = (-high - low <= limit[col]) & (count[col] == before)
                count[col] += one if is_within else none
        line = out[row]
        for col in range(cols):
            line[col] = np.int32(count[col])


@part
def _minimum_with(one: Image, other: Image, line: Image, out: Image) -> None:
    """Minimum of a line and of two rows; in the second half, with the rows' negatives."""
    cols = one.size
    for col in range(cols):
        low = one[col] if one[col] < other[col] else other[col]
        out[col] = low if low < line[col] else line[col]
    negatives, target = line[cols:], out[cols:]
    for col in range(cols):
        high = one[col] if one[col] > other[col] else other[col]
        target[col] = -high if -high < negatives[col] else negatives[col]


@part
def _minimum_of_two(line: Image, ahead: int, out: Image) -> None:
    """Minimum of each value and the value `ahead` of it."""
    after = line[ahead:]
    for col in range(after.size):
        out[col] = line[col] if line[col] < after[col] else after[col]


@compiled
def _limit_to_frame(
    start: int,
    stop: int,
    disparity: Image,
    halves: Indices,
    cell_side: int,
    view_cols: int,
    count: Counts,
) -> None:
    """Limit the counts to windows within the frame whose match is within it, too."""
    rows, cols = disparity.shape
    zero = np.float32(0)
    for row in range(start, stop):
        rim = min(row, rows - 1 - row)
        for place in range(1, halves.size):
            half = halves[place]
            most = np.uint8(place - 1)
            for col in range(cols):
                first = np.float32((col - half) * cell_side)
                last = np.float32((col + half + 1) * cell_side - 1)
                here = disparity[row, col]
                is_inside = (
                    (rim >= half)
                    & (first >= max(here, zero))
                    & (last - min(here, zero) <= view_cols - 1)
                )
                if not is_inside and count[row, col] > most:
                    count[row, col] = most


@compiled
def _correct_slopes(
    start: int,
    stop: int,
    fit: WindowFit,
    halves: Indices,
    cell_side: int,
    view_cols: int,
    scale: np.float32,
    bend_share: np.float32,
    bend_noise: np.float32,
    out: CellFit,
) -> None:
    """Subtract from each disparity what a slope adds where the texture is off the window's centre.

    Also the error that a bend may add. The slope is taken over the largest distance within which
    the surface is known to be one; the bend is the largest over the window and smaller ones. Only
    disparity, sigma, bend and flags of `out` are written; further fields share the arrays of `fit`.
    """
    disparity, sigma, used = fit.disparity, fit.sigma, fit.window
    down, across = fit.centroid_down, fit.centroid_across
    rows, cols = disparity.shape
    margin = halves[halves.size - 1]
    room = cols + 2 * margin + FLOATS
    lines = np.zeros((_LINES, room), dtype=np.float32)
    flat = lines.reshape(lines.size)
    for col in range(cols):
        lines[_COLUMN, col] = np.float32(col * cell_side)
    for row in range(start, stop):
        _fill_wide(used[row], margin, lines[_WINDOW])
        _fill_wide(disparity[row], margin, lines[_DISPARITY])
        _fill_wide(across[row], margin, lines[_ACROSS])
        _fill_wide(sigma[row], margin, lines[_SIGMA])
        fill(down[row], lines[_OFFSET])
        lines[_SLOPE_DOWN : _BEND_ACROSS + 1] = 0
        for place in range(1, halves.size):
            above, below = max(row - halves[place], 0), min(row + halves[place], rows - 1)
            fill(used[above], lines[_ABOVE])
            fill(used[below], lines[_BELOW])
            fill(disparity[above], lines[_ABOVE + 2])
            fill(disparity[below], lines[_BELOW + 2])
            fill(down[above], lines[_ABOVE + 4])
            fill(down[below], lines[_BELOW + 4])
            fill(sigma[above], lines[_ABOVE + 6])
            fill(sigma[below], lines[_BELOW + 6])
            _slopes(flat, room, cols, margin, place, halves[place], bend_noise)
        rim = min(row, rows - 1 - row)
        _straighten(flat, room, cols, margin, halves, rim, cell_side, view_cols)
        target, line, bits = out.disparity_px[row], lines[_STRAIGHT], out.flags[row]
        for col in range(cols):
            target[col] = scale * line[col]
        target, line = out.sigma_px[row], sigma[row]
        for col in range(cols):
            target[col] = scale * line[col]
        target, line, other = out.bend_px[row], lines[_BEND_DOWN], lines[_BEND_ACROSS]
        for col in range(cols):
            target[col] = scale * bend_share * np.sqrt(line[col] + other[col])
        line = lines[_OUTSIDE]
        for col in range(cols):
            bits[col] = np.int32(line[col]) * np.int32(_BORDER)


@part
def _fill_wide(line: Any, margin: int, out: Image) -> None:
    """Copy a line and repeat its ends."""
    fill(line, out[margin:])
    last = line.size - 1
    for step in range(margin):
        out[step] = line[0]
        out[margin + last + 1 + step] = line[last]


@part
def _slopes(
    lines: Image, room: int, cols: int, margin: int, place: int, step: int, bend_noise: np.float32
) -> None:
    """Find slopes down and across between windows `step` apart on one surface, and their bends.

    Bends are squared, less what noise makes.
    """
    zero, one = splat_8(np.float32(0)), splat_8(np.float32(1))
    here, apart = splat_8(np.float32(place)), np.float32(2 * step)
    least = splat_8(np.float32(0.5 * step))
    for col in range(0, cols, FLOATS):
        middle = margin + col
        fits = select_at_most(here, load_8(lines, _WINDOW * room + middle), one, zero)
        disparity = load_8(lines, _DISPARITY * room + middle)
        sigma = load_8(lines, _SIGMA * room + middle)

        above, below = _ABOVE * room + col, _BELOW * room + col
        start, end = load_8(lines, above + 4 * room), load_8(lines, below + 4 * room)
        run = apart + (end - start)
        is_one = select_less(least, run, fits, zero)
        is_one = select_at_most(one, load_8(lines, above), is_one, zero)
        is_one = select_at_most(one, load_8(lines, below), is_one, zero)
        low, high = load_8(lines, above + 2 * room), load_8(lines, below + 2 * room)
        slope = (high - low) / run
        turn = slope * _second(start, load_8(lines, _OFFSET * room + col), end)
        bend = _second(low, disparity, high) - turn
        noise = _noise(sigma, load_8(lines, above + 6 * room), load_8(lines, below + 6 * room))
        beyond = maximum(bend * bend - bend_noise * noise, zero)
        at = _BEND_DOWN * room + col
        most = load_8(lines, at)
        store(lines, at, select_less(zero, is_one, maximum(beyond, most), most))
        is_one = select_at_most(here, load_8(lines, above), is_one, zero)
        is_one = select_at_most(here, load_8(lines, below), is_one, zero)
        at = _SLOPE_DOWN * room + col
        store(lines, at, select_less(zero, is_one, slope, load_8(lines, at)))

        before, after = middle - step, middle + step
        start, end = load_8(lines, _ACROSS * room + before), load_8(lines, _ACROSS * room + after)
        run = apart + (end - start)
        is_one = select_less(least, run, fits, zero)
        is_one = select_at_most(one, load_8(lines, _WINDOW * room + before), is_one, zero)
        is_one = select_at_most(one, load_8(lines, _WINDOW * room + after), is_one, zero)
        low = load_8(lines, _DISPARITY * room + before)
        high = load_8(lines, _DISPARITY * room + after)
        slope = (high - low) / run
        turn = slope * _second(start, load_8(lines, _ACROSS * room + middle), end)
        bend = _second(low, disparity, high) - turn
        low, high = load_8(lines, _SIGMA * room + before), load_8(lines, _SIGMA * room + after)
        beyond = maximum(bend * bend - bend_noise * _noise(sigma, low, high), zero)
        at = _BEND_ACROSS * room + col
        most = load_8(lines, at)
        store(lines, at, select_less(zero, is_one, maximum(beyond, most), most))
        is_one = select_at_most(here, load_8(lines, _WINDOW * room + before), is_one, zero)
        is_one = select_at_most(here, load_8(lines, _WINDOW * room + after), is_one, zero)
        at = _SLOPE_ACROSS * room + col
        store(lines, at, select_less(zero, is_one, slope, load_8(lines, at)))


@part
def _second(before: Any, here: Any, after: Any) -> Any:
    """Second difference of three vectors."""
    return before + after - (here + here)


@part
def _noise(one: Any, two: Any, three: Any) -> Any:
    """Mean variance of three vectors of standard deviations."""
    return (one * one + two * two + three * three) * np.float32(1 / 3)


@part
def _straighten(
    lines: Image,
    room: int,
    cols: int,
    margin: int,
    halves: Indices,
    rim: int,
    cell_side: int,
    view_cols: int,
) -> None:
    """Disparity at the window's centre, and whether the window or its match leaves the frame."""
    zero, one = splat_8(np.float32(0)), splat_8(np.float32(1))
    for col in range(0, cols, FLOATS):
        here = load_8(lines, _DISPARITY * room + margin + col)
        tilt = load_8(lines, _OFFSET * room + col) * load_8(lines, _SLOPE_DOWN * room + col)
        tilt = tilt + (
            load_8(lines, _ACROSS * room + margin + col) * load_8(lines, _SLOPE_ACROSS * room + col)
        )
        store(lines, _STRAIGHT * room + col, here - tilt)
        window = load_8(lines, _WINDOW * room + margin + col)
        reach = splat_8(np.float32(halves[0]))
        for place in range(1, halves.size):
            value = splat_8(np.float32(halves[place]))
            reach = select_equal(window, splat_8(np.float32(place)), value, reach)
        place_px, reach_px = load_8(lines, _COLUMN * room + col), np.float32(cell_side) * reach
        first = place_px - reach_px - maximum(here, zero)
        last = place_px + reach_px + np.float32(cell_side - 1) - minimum(here, zero)
        outside = select_less(first, zero, one, zero)
        outside = select_less(splat_8(np.float32(view_cols - 1)), last, one, outside)
        outside = select_less(splat_8(np.float32(rim)), reach, one, outside)
        store(lines, _OUTSIDE * room + col, outside)
