"""Compiled semi-global paths, and the best shift of each pixel.

The shifts are innermost in all arrays, 16 of them in one vector.
"""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.types import (
    FORBIDDEN_TOTAL,
    MAX_PENALTY,
    Array,
    Costs,
    PathResult,
    Steps,
)
from d3s.runtime.compile import compiled, inlined
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import (
    SHORTS,
    as_float32,
    as_int16,
    load_16,
    maximum,
    minimum,
    reduce_min,
    select_equal,
    select_less,
    shift_down,
    shift_up,
    splat_16,
    store,
    transpose_16,
)
from d3s.types import Image, Mask

Bytes = NDArray[np.uint8]


Shorts = NDArray[np.int16]


Shorts2D = NDArray[np.int16]


_STRIP = 32  # columns that vertical paths share: a multiple of SHORTS


_FORBIDDEN_COST = FORBIDDEN_TOTAL // 4  # path cost of a forbidden shift


_HIGHEST = 32767  # of a short


def step_penalties(
    memory: Scratch, view: Array, penalty: float, least: float, unit: float
) -> tuple[Steps, Steps]:
    """Return the penalty of large steps between neighbours, lower across edges of the view.

    It is divided by 1 + the difference of the two pixels over `unit`.
    """
    across, down = (memory.empty(view.shape, np.int16) for _ in range(2))
    numbers = np.float32(penalty), np.float32(least), np.float32(1 / unit)
    run_over_rows(_step_penalties, view.shape[0], view, *numbers, across, down)
    return across, down


@compiled
def _step_penalties(
    start: int,
    stop: int,
    view: Image,
    penalty: np.float32,
    least: np.float32,
    per_unit: np.float32,
    across: Steps,
    down: Steps,
) -> None:
    """Penalties across and down: divided by 1 + the difference of the neighbours in units."""
    one, half = np.float32(1), np.float32(0.5)
    for row in range(start, stop):
        here, above = view[row], view[max(row - 1, 0)]
        line, line_down = across[row], down[row]
        line[0] = np.int16(max(penalty, least) + half)
        for col in range(1, line.size):
            step = abs(here[col] - here[col - 1]) * per_unit
            line[col] = np.int16(max(penalty / (one + step), least) + half)
        for col in range(line.size):
            step = abs(here[col] - above[col]) * per_unit
            line_down[col] = np.int16(max(penalty / (one + step), least) + half)


def aggregate_paths(
    memory: Scratch, costs: Costs, allowed: Mask, small: int, large: tuple[Steps, Steps]
) -> PathResult:
    """Add up the path costs from four sides and find the lowest and the next best total."""
    rows, cols, deep = costs.shape
    empty = memory.empty
    step, margin = empty((rows, cols)), empty((rows, cols))
    lowest, total = (empty((rows, cols), np.int16) for _ in range(2))
    out = PathResult(step, lowest, total, margin)
    walls = np.full(deep, _FORBIDDEN_COST, dtype=np.int16)
    walls[: allowed.size][allowed] = 0
    penalty = np.int16(min(small, MAX_PENALTY))
    across, down = large
    strips = -(-cols // _STRIP)
    flat = costs.reshape(-1)
    with memory.part():
        sums = empty((strips * rows * _STRIP * deep,), np.int16)
        run_over_rows(_paths_along_rows, rows, flat, walls, penalty, across, sums)
        run_over_rows(_paths_along_cols, strips, flat, walls, penalty, down, sums, out)
    return out


def right_view_steps(memory: Scratch, paths: PathResult, first_shift: int) -> Steps:
    """Return the step that the right view chooses for each pixel's match (left-right check).

    Of all pixels that match one pixel of the right view it chooses the one with the lowest
    total, of equal totals the nearest. -1 where the match is out of the frame.
    """
    out = memory.empty(paths.lowest.shape, np.int16)
    run_over_rows(_right_view_steps, len(out), paths.lowest, paths.total, first_shift, out)
    return out


@inlined
def _begin_paths(state: Shorts, lows: Shorts, deep: int) -> None:
    """Set all paths before their first pixel: no cost yet."""
    for path in range(lows.size):
        first = path * (deep + SHORTS)
        for k in range(0, deep, SHORTS):
            store(state, first + k, splat_16(np.int16(0)))
        store(state, first + deep, splat_16(np.int16(_FORBIDDEN_COST)))
        lows[path] = 0


@inlined
def _advance(
    state: Shorts,
    lows: Shorts,
    path: int,
    costs: Bytes,
    place: int,
    walls: Shorts,
    penalties: tuple[np.int16, np.int16],
    is_added: bool,
    source: Shorts,
    source_at: int,
    out: Shorts,
    out_at: int,
) -> None:
    """Advance a path by one pixel: `state` holds its costs before and after.

    The new costs go to `out`, after adding `source` if `is_added`. `lows` holds the lowest cost of
    each path. Forbidden shifts keep at least `walls`; a wall stands behind each state.
    """
    low, at = lows[path], path * (walls.size + SHORTS)
    step, floor, cap = splat_16(penalties[0]), splat_16(low), splat_16(np.int16(low + penalties[1]))
    before = splat_16(np.int16(_FORBIDDEN_COST))
    here = load_16(state, at)
    lowest = before
    for k in range(0, walls.size, SHORTS):
        after = load_16(state, at + k + SHORTS)
        near = minimum(shift_up(before, here), shift_down(here, after)) + step
        best = minimum(minimum(here, near), cap) - floor
        value = maximum((best + as_int16(load_16(costs, place + k))), load_16(walls, k))
        store(state, at + k, value)
        lowest = minimum(lowest, value)
        if is_added:
            value = value + load_16(source, source_at + k)
        store(out, out_at + k, value)
        before = here
        here = after
    lows[path] = reduce_min(lowest)


@compiled
def _paths_along_rows(
    start: int,
    stop: int,
    costs: Bytes,
    walls: Shorts,
    small: np.int16,
    large: Shorts2D,
    total: Shorts,
) -> None:
    """Add up the costs of the paths from the left and from the right, by strips of columns.

    Both advance in turn, which hides the latency of either. The second path to reach a pixel adds
    its cost to that of the first.
    """
    rows, cols = large.shape
    deep = walls.size
    size = deep + SHORTS
    state = np.empty(2 * size, dtype=np.int16)
    lows = np.empty(2, dtype=np.int16)
    for row in range(start, stop):
        _begin_paths(state, lows, deep)
        for step in range(cols):
            for way in range(2):
                back = cols - 1 - step
                col = back if way else step
                is_added = 2 * step + way >= cols
                at = ((col // _STRIP * rows + row) * _STRIP + col % _STRIP) * deep
                place = (row * cols + col) * deep
                penalties = small, large[row, min(col + way, cols - 1)]
                _advance(
                    state, lows, way, costs, place, walls, penalties, is_added, total, at, total, at
                )


@compiled
def _paths_along_cols(
    start: int,
    stop: int,
    costs: Bytes,
    walls: Shorts,
    small: np.int16,
    large: Shorts2D,
    total: Shorts,
    out: PathResult,
) -> None:
    """Add the paths from above and below, and find the best shift, in strips start to stop.

    Down with the costs of the paths along the rows, then up again: with the last path the totals of
    a pixel are complete, are evaluated and dropped.
    """
    rows, cols = out.step.shape
    deep = walls.size
    state = np.empty(_STRIP * (deep + SHORTS), dtype=np.int16)
    lows = np.empty(_STRIP, dtype=np.int16)
    sums = np.full(_STRIP * deep, FORBIDDEN_TOTAL, dtype=np.int16)
    turned = np.full((deep + 1) * SHORTS, FORBIDDEN_TOTAL, dtype=np.int16)
    steps = np.empty(2 * SHORTS, dtype=np.int16)
    parts = np.empty(2 * SHORTS, dtype=np.float32)
    size = rows * _STRIP * deep
    for strip in range(start, stop):
        first = strip * _STRIP
        width = min(_STRIP, cols - first)
        _begin_paths(state, lows, deep)
        for row in range(rows):
            for col in range(width):
                place = (row * cols + first + col) * deep
                at = (row * _STRIP + col) * deep
                # The memory of the first strip is free again, and stays in the cache.
                here, there = strip * size + at, start * size + at
                penalties = small, large[row, first + col]
                _advance(
                    state,
                    lows,
                    col,
                    costs,
                    place,
                    walls,
                    penalties,
                    True,
                    total,
                    here,
                    total,
                    there,
                )
        _begin_paths(state, lows, deep)
        for row in range(rows - 1, -1, -1):
            for col in range(width):
                place = (row * cols + first + col) * deep
                at = start * size + (row * _STRIP + col) * deep
                there = col * deep
                penalties = small, large[min(row + 1, rows - 1), first + col]
                _advance(
                    state, lows, col, costs, place, walls, penalties, True, total, at, sums, there
                )
            for begin in range(0, width, SHORTS):
                for k in range(0, deep, SHORTS):
                    transpose_16(sums, begin * deep + k, deep, turned, k * SHORTS)
                _best_shift(turned, deep, parts, steps)
                for col in range(min(SHORTS, width - begin)):
                    there = first + begin + col
                    out.step[row, there] = parts[col]
                    out.margin[row, there] = parts[SHORTS + col]
                    out.lowest[row, there] = steps[col]
                    out.total[row, there] = steps[SHORTS + col]


@inlined
def _best_shift(totals: Shorts, deep: int, parts: Image, steps: Shorts) -> None:
    """Best shift of 16 pixels whose totals lie side by side: step and margin; lowest and total."""
    one, never = splat_16(np.int16(1)), splat_16(np.int16(FORBIDDEN_TOTAL))
    count = lowest = splat_16(np.int16(0))
    bottom = load_16(totals, 0)
    for k in range(1, deep):
        count = count + one
        here = load_16(totals, k * SHORTS)
        lowest = select_less(here, bottom, count, lowest)
        bottom = minimum(bottom, here)

    count = one - one
    other = before = left = right = never
    here = load_16(totals, 0)
    for k in range(deep):
        after = load_16(totals, (k + 1) * SHORTS)
        left = select_equal(count, lowest, before, left)
        right = select_equal(count, lowest, after, right)
        away = maximum(count - lowest, lowest - count)
        other = minimum(other, select_less(one, away, here, never))
        count = count + one
        before = here
        here = after

    # Parabola through three totals; no neighbour is lower, and the one before is higher.
    slope = as_float32(left) - as_float32(right)
    bend = (as_float32(left) - as_float32(bottom)) + (as_float32(right) - as_float32(bottom))
    offset = (splat_16(np.float32(0.5)) * slope) / bend
    none = splat_16(np.float32(0.0))
    offset = select_less(left, never, select_less(right, never, offset, none), none)
    store(parts, 0, (as_float32(lowest) + offset))
    apart, most = as_float32(other) - as_float32(bottom), maximum(other, one)
    store(parts, SHORTS, apart / as_float32(most))
    store(steps, 0, lowest)
    store(steps, SHORTS, bottom)


@compiled
def _right_view_steps(
    start: int, stop: int, lowest: Steps, total: Steps, first_shift: int, out: Steps
) -> None:
    """Step that the right view chooses for each pixel's match (left-right check); -1 outside."""
    cols = lowest.shape[1]
    best = np.empty(cols, dtype=np.int32)  # total in the high bits, then the step from above
    for row in range(start, stop):
        best[:] = np.int32(2**31 - 1)
        steps, totals, line = lowest[row], total[row], out[row]
        for col in range(cols):
            there = col - first_shift - steps[col]
            if 0 <= there < cols:
                key = np.int32(totals[col]) << 16 | np.int32(_HIGHEST - steps[col])
                best[there] = min(best[there], key)
        for col in range(cols):
            there = col - first_shift - steps[col]
            inside = 0 <= there < cols
            line[col] = _HIGHEST - (best[there] & _HIGHEST) if inside else -1
