"""Compiled loops of the search over whole shifts: costs, semi-global paths, the best of each pixel.

The shifts are innermost everywhere, and sixteen of them are worked on at once: `Lanes`. The right
view is stored from right to left, so that ascending shifts are ascending places in it.
"""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.numpy_backend.search import (
    HIGHEST_PRICE,
    LANES,
    MOST,
    NEVER,
    Array,
    Costs,
    Pick,
    Steps,
)
from d3s.runtime.compile import compiled, inlined
from d3s.runtime.parallel import over_rows
from d3s.runtime.scratch import Memory
from d3s.runtime.simd import (
    EIGHT,
    added,
    floats,
    higher,
    if_equal,
    if_lower,
    least,
    load_8,
    load_16,
    low_bytes,
    lower,
    none_of,
    one_back,
    one_on,
    pushed,
    shorts,
    spread_8,
    spread_16,
    spread_from,
    store,
    turn,
    turned_round,
    whole,
)

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Shorts = NDArray[np.int16]

BAND = 64  # rows that share one running sum down the columns
TILE = 96  # columns whose squares of the last rows stay in the nearest cache
TILE_ROWS = 64  # rows whose costs stay in the second
STRIP = 32  # columns that paths go down and up together: a multiple of LANES
_WALL = NEVER // 4  # path cost of a shift that is not allowed
_HIGHEST = 32767  # of a short


# Images -----------------------------------------------------------------------------------------


@compiled
def _means(
    start: int, stop: int, image: Floats, half: int, is_taken_off: bool, out: Floats
) -> None:
    """Mean over a window, or the image less it; start and stop count bands of rows.

    Down the columns by sums that run in double precision, along the rows by sums of 1, 2, 4, ...
    """
    rows, cols = image.shape
    room = cols + 2 * half + 3 * LANES
    down = np.empty(cols, dtype=np.float64)
    powers = np.zeros(room, dtype=np.float32)
    inner = powers[half:]
    across = np.empty(room, dtype=np.float32)
    counts = np.empty(cols, dtype=np.float32)
    for col in range(cols):
        counts[col] = min(col + half, cols - 1) - max(col - half, 0) + 1
    for band in range(start, stop):
        first = band * BAND
        for col in range(cols):
            down[col] = 0
        for row in range(max(first - half, 0), min(first + half, rows)):
            line = image[row]
            for col in range(cols):
                down[col] += line[col]
        for row in range(first, min(first + BAND, rows)):
            if row + half < rows:
                line = image[row + half]
                for col in range(cols):
                    down[col] += line[col]
            for place in range(0, powers.size - LANES, LANES):
                store(powers, place, spread_16(np.float32(0.0)))
            for col in range(cols):
                inner[col] = down[col]
            _sum_across(powers, across, cols, 2 * half + 1)
            count = np.float32(min(row + half, rows - 1) - max(row - half, 0) + 1)
            here, there = image[row], out[row]
            if is_taken_off:
                for col in range(cols):
                    there[col] = here[col] - across[col] / (count * counts[col])
            else:
                for col in range(cols):
                    there[col] = across[col] / (count * counts[col])
            if row - half >= 0:
                line = image[row - half]
                for col in range(cols):
                    down[col] -= line[col]


@inlined
def _sum_across(powers: Floats, out: Floats, cols: int, width: int) -> None:
    """out[i] = sum of `width` values from powers[i] on; what is in `powers` is lost."""
    for col in range(0, cols, LANES):
        store(out, col, spread_16(np.float32(0.0)))
    offset, power, room = 0, 1, cols + width - 1
    while power <= width:
        if width & power:
            for col in range(0, cols, LANES):
                store(out, col, (load_16(out, col) + load_16(powers, col + offset)))
            offset += power
        if 2 * power <= width:
            for place in range(0, room - power, LANES):
                both = load_16(powers, place) + load_16(powers, place + power)
                store(powers, place, both)
        power *= 2


@compiled
def _median_of_nine(start: int, stop: int, image: Floats, out: Floats) -> None:
    """By columns of three, each sorted once.

    The median is that of the highest low, the middle of the middles and the lowest high.
    """
    rows, cols = image.shape
    room = cols + 2 * LANES
    lines = np.zeros(3 * room, dtype=np.float32)
    result = np.empty(room, dtype=np.float32)
    for row in range(start, stop):
        for near in range(3):
            first, line = near * room, image[min(max(row + near - 1, 0), rows - 1)]
            for col in range(cols):
                lines[first + 1 + col] = line[col]
            lines[first], lines[first + 1 + cols] = line[0], line[cols - 1]
        for col in range(0, cols + 2, LANES):
            a, b = load_16(lines, col), load_16(lines, col + room)
            a, b, c = lower(a, b), higher(a, b), load_16(lines, col + 2 * room)
            b, c = lower(b, c), higher(b, c)
            store(lines, col, lower(a, b))
            store(lines, col + room, higher(a, b))
            store(lines, col + 2 * room, c)
        for col in range(0, cols, LANES):
            a, b, c = (
                load_16(lines, col),
                load_16(lines, col + room),
                load_16(lines, col + 2 * room),
            )
            d = load_16(lines, col + 1 + room)
            a = higher(higher(a, load_16(lines, col + 1)), load_16(lines, col + 2))
            c = lower(
                lower(c, load_16(lines, col + 1 + 2 * room)), load_16(lines, col + 2 + 2 * room)
            )
            b = lower(higher(b, d), higher(lower(b, d), load_16(lines, col + 2 + room)))
            store(result, col, lower(higher(a, b), higher(lower(a, b), c)))
        line = out[row]
        for col in range(cols):
            line[col] = result[col]


# Costs ------------------------------------------------------------------------------------------


@compiled
def _spread_view(
    start: int, stop: int, image: Floats, end: int, is_turned: bool, view: Floats
) -> None:
    """A view and its Laplacian, the first two of five images, with zeros where there is no pixel.

    Column 0 is at place `end` and the others follow; or they precede it, if the view is turned.
    """
    rows, cols = image.shape
    room = view.size // (5 * rows)
    bend = np.empty(cols, dtype=np.float32)
    none = spread_16(np.float32(0.0))
    from_, to = max(-end, 0), min(cols, room - end)
    if is_turned:
        from_, to = max(end + 1 - room, 0), min(cols, end + 1)
    for row in range(start, stop):
        here, up, under = image[row], image[max(row - 1, 0)], image[min(row + 1, rows - 1)]
        for col in range(1, cols - 1):
            sides = here[col - 1] + here[col + 1]
            bend[col] = (up[col] + under[col]) + sides - 4 * here[col]
        for col in (0, cols - 1):
            sides = here[max(col - 1, 0)] + here[min(col + 1, cols - 1)]
            bend[col] = (up[col] + under[col]) + sides - 4 * here[col]
        light, curve = view[row * room :], view[(rows + row) * room :]
        for place in range(0, room, LANES):
            store(light, place, none)
            store(curve, place, none)
        if is_turned:
            rest = from_ + (max(to - from_, 0) // LANES) * LANES
            for col in range(from_, rest, LANES):
                store(light, end - col - LANES + 1, turned_round(load_16(here, col)))
                store(curve, end - col - LANES + 1, turned_round(load_16(bend, col)))
            for col in range(rest, to):
                light[end - col] = here[col]
                curve[end - col] = bend[col]
        else:
            for col in range(from_, to):
                light[end + col] = here[col]
                curve[end + col] = bend[col]


@compiled
def _energies(
    start: int,
    stop: int,
    view: Floats,
    rows: int,
    window: tuple[int, ...],
    share: np.float32,
    cross: np.float32,
    floor: np.float32,
) -> None:
    """Sums of image², of its product with the Laplacian, and of Laplacian², over a window.

    These are the last three of the five images of a view, so that the energy at any blur b is
    A + b B + b² C. All are multiplied by `share`, the product by `cross` too; `floor` is added once
    for each row of the window.
    """
    half, room = len(window) // 2, view.size // (5 * rows)
    image = rows * room
    size = room + (2 * half // LANES + 1) * LANES
    sums = np.zeros(3 * size, dtype=np.float32)
    for row in range(start, stop):
        first, last = max(row - half, 0), min(row + half, rows - 1)
        for place in range(0, room, LANES):
            a = b = c = spread_16(np.float32(0.0))
            for near in range(first, last + 1):
                at = near * room + place
                light, curve = load_16(view, at), load_16(view, at + image)
                a = a + (light * light)
                b = b + (light * curve)
                c = c + (curve * curve)
            store(sums, half + place, a)
            store(sums, half + place + size, b)
            store(sums, half + place + 2 * size, c)
        base = spread_16(np.float32(last - first + 1) * floor)
        for place in range(0, room, LANES):
            a = b = c = spread_16(np.float32(0.0))
            for near in range(len(window)):
                a = a + load_16(sums, place + near)
                b = b + load_16(sums, place + near + size)
                c = c + load_16(sums, place + near + 2 * size)
            at = row * room + place
            store(view, at + 2 * image, ((a * spread_16(share)) + base))
            store(view, at + 3 * image, (b * spread_16(share * cross)))
            store(view, at + 4 * image, (c * spread_16(share)))


@compiled
def _matching_costs(
    start: int,
    stop: int,
    left: Floats,
    right: Floats,
    blurs: Floats,
    first_shift: int,
    shape: tuple[int, int, int],
    window: tuple[int, ...],
    costs: Bytes,
) -> None:
    """Sum of e² over a window, over what explains it; `left` and `right` have five images each.

    Tile by tile, eight shifts at a time, and down each tile: the squares of the last rows are
    kept. No sum runs on, so nothing drifts.
    """
    rows, cols, depth = shape
    deep, half = blurs.size, len(window) // 2
    ring = np.empty((TILE + 2 * half) * EIGHT * len(window), dtype=np.float32)
    ends = np.zeros(deep, dtype=np.float32)
    for k in range(depth, deep):
        ends[k] = MOST
    # Columns whose windows are inside both views at all shifts.
    inner_from = half + max(first_shift + depth - 1, 0)
    inner_to = cols - half + min(first_shift, 0)
    for begin in range(0, cols, TILE):
        tile = begin, min(begin + TILE, cols)
        for top in range(start, stop, TILE_ROWS):
            bottom = min(top + TILE_ROWS, stop)
            for k in range(0, deep, EIGHT):
                for row in range(top - half, bottom + half):
                    if 0 <= row < rows:
                        _squares(left, right, blurs, (rows, cols, row, k), tile, window, ring)
                    else:
                        _no_squares(row, window, ring)
                    middle = row - half
                    if middle >= top:
                        at = rows, cols, middle, k
                        _ratios(ring, left, right, blurs, ends, at, tile, window, costs)
            for col in range(begin, tile[1]):
                if not inner_from <= col < inner_to:
                    for row in range(top, bottom):
                        place = (row * cols + col) * deep
                        _close_ends(col, cols, half, first_shift, depth, costs, place)


@inlined
def _squares(
    left: Floats,
    right: Floats,
    blurs: Floats,
    at: tuple[int, int, int, int],
    tile: tuple[int, int],
    window: tuple[int, ...],
    ring: Floats,
) -> None:
    """Squared differences of the views blurred alike, of a part of a row at eight shifts."""
    rows, cols, row, k = at
    begin, end = tile
    half = len(window) // 2
    left_room, right_room = left.size // (5 * rows), right.size // (5 * rows)
    blur = load_8(blurs, k)
    first = row * left_room + begin
    last = row * right_room + cols + 2 * half - 1 - begin + k
    out = row % len(window) * EIGHT
    for col in range(end - begin + 2 * half):
        light = spread_from(left, first + col)
        curve = spread_from(left, first + col + rows * left_room)
        common = curve + load_8(right, last - col + rows * right_room)
        error = light - load_8(right, last - col)
        error = error + (blur * common)
        store(ring, out + col * EIGHT * len(window), (error * error))


@inlined
def _no_squares(row: int, window: tuple[int, ...], ring: Floats) -> None:
    """Rows outside the frame add nothing."""
    slot = (row + len(window)) % len(window) * EIGHT
    for place in range(slot, ring.size, EIGHT * len(window)):
        store(ring, place, spread_8(np.float32(0.0)))


@inlined
def _ratios(
    ring: Floats,
    left: Floats,
    right: Floats,
    blurs: Floats,
    ends: Floats,
    at: tuple[int, int, int, int],
    tile: tuple[int, int],
    window: tuple[int, ...],
    out: Bytes,
) -> None:
    """Costs of a part of a row at eight shifts, as bytes."""
    rows, cols, row, k = at
    begin, end = tile
    deep, half = blurs.size, len(window) // 2
    left_room, right_room = left.size // (5 * rows), right.size // (5 * rows)
    blur, beyond = load_8(blurs, k), load_8(ends, k)
    highest = spread_8(np.float32(MOST))
    first = (2 * rows + row) * left_room + begin - half
    last = (2 * rows + row) * right_room + cols - 1 - begin + k + 3 * half
    out_at = (row * cols + begin - 2 * half) * deep + k
    sums = none_of(window)
    for col in range(end - begin + 2 * half):
        total = load_8(ring, col * EIGHT * len(window))
        for back in range(1, len(window)):
            total = total + load_8(ring, (col * len(window) + back) * EIGHT)
        sums = pushed(sums, total)
        if col < 2 * half:
            continue
        here, there = first + col, last - col
        below = spread_from(left, here) + load_8(right, there)
        linear = spread_from(left, here + rows * left_room) + load_8(
            right, there + rows * right_room
        )
        bent = spread_from(left, here + 2 * rows * left_room) + load_8(
            right, there + 2 * rows * right_room
        )
        below = below + blur * (linear + blur * bent)
        ratio = added(sums) / below + np.float32(0.5)
        ratio = higher(lower(ratio, highest), beyond)
        store(out, out_at + col * deep, low_bytes(whole(ratio)))


@inlined
def _close_ends(
    col: int,
    cols: int,
    half: int,
    first_shift: int,
    depth: int,
    out: Bytes,
    out_at: int,
) -> None:
    """The highest cost where a window leaves the frame sideways, in either view."""
    from_ = min(max(col - (cols - half) + 1 - first_shift, 0), depth)
    to = max(min(col - half - first_shift + 1, depth), from_)
    if col < half or col >= cols - half:
        to = from_
    for k in range(from_):
        out[out_at + k] = MOST
    for k in range(to, depth):
        out[out_at + k] = MOST


# Paths ------------------------------------------------------------------------------------------


@inlined
def _set_out(state: Shorts, lows: Shorts, deep: int) -> None:
    """All paths are before their first pixel: nothing has cost anything yet."""
    for path in range(lows.size):
        first = path * (deep + LANES)
        for k in range(0, deep, LANES):
            store(state, first + k, spread_16(np.int16(0)))
        store(state, first + deep, spread_16(np.int16(_WALL)))
        lows[path] = 0


@inlined
def _go_on(
    state: Shorts,
    lows: Shorts,
    path: int,
    costs: Bytes,
    place: int,
    walls: Shorts,
    prices: tuple[np.int16, np.int16],
    is_added: bool,
    source: Shorts,
    source_at: int,
    out: Shorts,
    out_at: int,
) -> None:
    """One step of a path: its costs at the pixel before, in `state`, become those at this one.

    They go to `out`, and what is in `source` can be added to them. `lows` are the lowest of each
    path. Behind each state there are walls.
    """
    low, at = lows[path], path * (walls.size + LANES)
    step, floor, cap = spread_16(prices[0]), spread_16(low), spread_16(np.int16(low + prices[1]))
    before = spread_16(np.int16(_WALL))
    here = load_16(state, at)
    lowest = before
    for k in range(0, walls.size, LANES):
        after = load_16(state, at + k + LANES)
        near = lower(one_back(before, here), one_on(here, after)) + step
        best = lower(lower(here, near), cap) - floor
        value = higher((best + shorts(load_16(costs, place + k))), load_16(walls, k))
        store(state, at + k, value)
        lowest = lower(lowest, value)
        if is_added:
            value = value + load_16(source, source_at + k)
        store(out, out_at + k, value)
        before = here
        here = after
    lows[path] = least(lowest)


@compiled
def _paths_along_rows(
    start: int,
    stop: int,
    costs: Bytes,
    walls: Shorts,
    shape: tuple[int, int],
    prices: tuple[np.int16, np.int16],
    total: Shorts,
) -> None:
    """Costs of the paths from the left and from the right, added up, by strips of columns.

    Both go at the same time, so that the core need not wait for either. The second to come to a
    pixel adds its cost to that of the first.
    """
    rows, cols = shape
    deep = walls.size
    size = deep + LANES
    state = np.empty(2 * size, dtype=np.int16)
    lows = np.empty(2, dtype=np.int16)
    for row in range(start, stop):
        _set_out(state, lows, deep)
        for step in range(cols):
            for way in range(2):
                back = cols - 1 - step
                col = back if way else step
                is_added = 2 * step + way >= cols
                at = ((col // STRIP * rows + row) * STRIP + col % STRIP) * deep
                place = (row * cols + col) * deep
                _go_on(
                    state, lows, way, costs, place, walls, prices, is_added, total, at, total, at
                )


@compiled
def _paths_along_cols(
    start: int,
    stop: int,
    costs: Bytes,
    walls: Shorts,
    depth: int,
    prices: tuple[np.int16, np.int16],
    total: Shorts,
    limit: np.float32,
    step: Floats,
    lowest: Steps,
    other: Steps,
    gap: Floats,
    value: Steps,
) -> None:
    """The paths from above and from below, and the pick; start and stop count strips of columns.

    Down with the costs of the paths along the rows, then up again: with the last path a pixel has
    its totals, and they are looked at and forgotten.
    """
    rows, cols = step.shape
    deep = walls.size
    state = np.empty(STRIP * (deep + LANES), dtype=np.int16)
    lows = np.empty(STRIP, dtype=np.int16)
    sums = np.full(STRIP * deep, NEVER, dtype=np.int16)
    turned = np.full((deep + 1) * LANES, NEVER, dtype=np.int16)
    steps = np.empty(3 * LANES, dtype=np.int16)
    parts = np.empty(LANES, dtype=np.float32)
    size = rows * STRIP * deep
    for strip in range(start, stop):
        first = strip * STRIP
        width = min(STRIP, cols - first)
        _set_out(state, lows, deep)
        for row in range(rows):
            for col in range(width):
                place = (row * cols + first + col) * deep
                at = (row * STRIP + col) * deep
                # Where the first strip was there is room now, and it stays in the cache.
                here, there = strip * size + at, start * size + at
                _go_on(
                    state, lows, col, costs, place, walls, prices, True, total, here, total, there
                )
        _set_out(state, lows, deep)
        for row in range(rows - 1, -1, -1):
            for col in range(width):
                place = (row * cols + first + col) * deep
                at = start * size + (row * STRIP + col) * deep
                there = col * deep
                _go_on(state, lows, col, costs, place, walls, prices, True, total, at, sums, there)
            for begin in range(0, width, LANES):
                for k in range(0, deep, LANES):
                    turn(sums, begin * deep + k, deep, turned, k * LANES)
                _pick(turned, deep, parts, steps)
                for col in range(min(LANES, width - begin)):
                    best, next_best = steps[col], steps[LANES + col]
                    there = first + begin + col
                    step[row, there] = parts[col]
                    lowest[row, there] = best
                    other[row, there] = next_best
                    value[row, there] = steps[2 * LANES + col]
                    place = (row * cols + there) * deep
                    gap[row, there] = _gap(costs, place, depth, best, next_best, limit)


@inlined
def _pick(totals: Shorts, deep: int, step: Floats, steps: Shorts) -> None:
    """The pick of sixteen pixels, whose totals lie side by side: step; lowest, other and total."""
    one, never = spread_16(np.int16(1)), spread_16(np.int16(NEVER))
    count = lowest = spread_16(np.int16(0))
    bottom = load_16(totals, 0)
    for k in range(1, deep):
        count = count + one
        here = load_16(totals, k * LANES)
        lowest = if_lower(here, bottom, count, lowest)
        bottom = lower(bottom, here)

    count = one - one
    other = count - one
    next_bottom = before = left = right = never
    here = load_16(totals, 0)
    for k in range(deep):
        after = load_16(totals, (k + 1) * LANES)
        left = if_equal(count, lowest, before, left)
        right = if_equal(count, lowest, after, right)
        away = count - lowest
        valley = if_lower(lower(before, after), here, never, here)
        valley = if_lower(one, higher(away, (lowest - count)), valley, never)
        other = if_lower(valley, next_bottom, count, other)
        next_bottom = lower(next_bottom, valley)
        count = count + one
        before = here
        here = after

    # The parabola through three totals; no neighbour is lower, and the one before is higher.
    slope = floats(left) - floats(right)
    bend = (floats(left) - floats(bottom)) + (floats(right) - floats(bottom))
    offset = (spread_16(np.float32(0.5)) * slope) / bend
    none = spread_16(np.float32(0.0))
    offset = if_lower(left, never, if_lower(right, never, offset, none), none)
    store(step, 0, (floats(lowest) + offset))
    store(steps, 0, lowest)
    store(steps, LANES, other)
    store(steps, 2 * LANES, bottom)


@inlined
def _gap(
    costs: Bytes, place: int, depth: int, lowest: int, other: int, limit: np.float32
) -> np.float32:
    """How much more misfit the other valley has; `limit` if there is none."""
    if other < 0:
        return limit
    deeper = _valley(costs, place, depth, other) - _valley(costs, place, depth, lowest)
    return deeper * (limit / np.float32(MOST))


@inlined
def _valley(costs: Bytes, place: int, depth: int, step: int) -> np.float32:
    """Lowest point of the parabola through the cost of a step and its neighbours."""
    before = np.int32(costs[place + max(step - 1, 0)])
    here = np.int32(costs[place + step])
    after = np.int32(costs[place + min(step + 1, depth - 1)])
    bend, slope = before + after - 2 * here, before - after
    if bend <= 0:
        return np.float32(min(min(before, after), here))
    deep = np.float32(slope * slope) / np.float32(8 * bend)
    return max(np.float32(here) - deep, np.float32(0.0))


@compiled
def _seen(start: int, stop: int, lowest: Steps, total: Steps, first_shift: int, out: Steps) -> None:
    """Step that the right view sees where each pixel points to; see `PlainSearch.seen`."""
    cols = lowest.shape[1]
    seen = np.empty(cols, dtype=np.int32)  # total and then the step, from the largest down
    for row in range(start, stop):
        seen[:] = np.int32(2**31 - 1)
        steps, totals, line = lowest[row], total[row], out[row]
        for col in range(cols):
            there = col - first_shift - steps[col]
            if 0 <= there < cols:
                key = np.int32(totals[col]) << 16 | np.int32(_HIGHEST - steps[col])
                seen[there] = min(seen[there], key)
        for col in range(cols):
            there = col - first_shift - steps[col]
            inside = 0 <= there < cols
            line[col] = _HIGHEST - (seen[there] & _HIGHEST) if inside else -1


# Operations -------------------------------------------------------------------------------------


class CompiledSearch:
    """Single precision and whole numbers; see `PlainSearch` for what each operation gives.

    Results live in the memory that is given, as long as that is borrowed.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def window_means(self, image: Array, half: int) -> Array:
        """Mean over 2 half + 1 pixels each way, of those inside the frame."""
        return self._means(image, half, is_taken_off=False)

    def without_mean(self, image: Array, half: int) -> Array:
        """Image less its mean over 2 half + 1 pixels each way."""
        return self._means(image, half, is_taken_off=True)

    def median_of_nine(self, image: Array) -> Array:
        """Median over a pixel and its neighbours; the image goes on as its last pixel."""
        out = self._memory.empty(image.shape)
        over_rows(_median_of_nine, image.shape[0], image, out)
        return out

    def matching_costs(
        self,
        left: Array,
        right: Array,
        first_shift: int,
        defocus: Array,
        *,
        half: int,
        floor: float,
        tolerance: float,
        limit: float,
    ) -> Costs:
        """Misfit of the views at whole shifts, over what noise and texture explain, as bytes."""
        rows, cols = left.shape
        depth, deep = len(defocus), _filled(len(defocus))
        costs = self._memory.empty((rows, cols, deep), np.uint8)
        blurs = np.zeros(deep, dtype=np.float32)
        blurs[:depth] = np.asarray(defocus) / 2
        window = (0,) * (2 * half + 1)  # a tuple: its length is known to the compiler
        share = np.float32(tolerance * limit / MOST)
        with self._memory.part():
            parts = []
            for view, end, is_turned, length in (
                (left, half, False, cols + 2 * half),
                (right, cols - 1 + half - first_shift, True, cols + 2 * half + deep),
            ):
                # The view, its Laplacian, and the three parts of its energy.
                parts.append(self._memory.empty((5 * rows * _filled(length),)))
                over_rows(_spread_view, rows, view, end, is_turned, parts[-1])
                cross = np.float32(-2 if is_turned else 2)
                base = 0.0 if is_turned else floor * limit / MOST * (2 * half + 1)
                numbers = share, cross, np.float32(base)
                over_rows(_energies, rows, parts[-1], rows, window, *numbers)
            shape = rows, cols, depth
            over_rows(
                _matching_costs,
                rows,
                *parts,
                blurs,
                first_shift,
                shape,
                window,
                costs.reshape(-1),
            )
        return costs

    def found(
        self, costs: Costs, allowed: NDArray[np.bool_], *, small: int, large: int, limit: float
    ) -> Pick:
        """Paths along the rows, then down and up strips of columns with the pick at once."""
        rows, cols, deep = costs.shape
        empty = self._memory.empty
        step, gap = empty((rows, cols)), empty((rows, cols))
        lowest, other, value = (empty((rows, cols), np.int16) for _ in range(3))
        walls = np.full(deep, _WALL, dtype=np.int16)
        walls[: allowed.size][allowed] = 0
        prices = tuple(np.int16(min(price, HIGHEST_PRICE)) for price in (small, large))
        strips = -(-cols // STRIP)
        flat = costs.reshape(-1)
        with self._memory.part():
            total = empty((strips * rows * STRIP * deep,), np.int16)
            over_rows(_paths_along_rows, rows, flat, walls, (rows, cols), prices, total)
            over_rows(
                _paths_along_cols,
                strips,
                flat,
                walls,
                allowed.size,
                prices,
                total,
                np.float32(limit),
                step,
                lowest,
                other,
                gap,
                value,
            )
        return Pick(step, lowest, other, gap, value)

    def seen(self, pick: Pick, first_shift: int) -> Steps:
        """Step that the right view sees where each pixel points to; -1 if that is out of it."""
        out = self._memory.empty(pick.lowest.shape, np.int16)
        over_rows(_seen, len(out), pick.lowest, pick.total, first_shift, out)
        return out

    def _means(self, image: Array, half: int, *, is_taken_off: bool) -> Array:
        out = self._memory.empty(image.shape)
        over_rows(_means, -(-image.shape[0] // BAND), image, half, is_taken_off, out)
        return out


def _filled(length: int) -> int:
    return -(-length // LANES) * LANES
