"""Compiled matching costs of whole shifts.

The shifts are innermost in all arrays, 16 of them in one vector. The right view is stored reversed,
so that increasing shifts are increasing places in it.
"""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.types import MAX_COST
from d3s.runtime.compile import compiled, inlined
from d3s.runtime.simd import (
    FLOATS,
    SHORTS,
    as_uint8,
    load_8,
    load_16,
    maximum,
    minimum,
    push,
    reverse,
    splat_8,
    splat_16,
    splat_from,
    store,
    sum_tuple,
    truncate,
    zero_tuple,
)
from d3s.types import Image

Bytes = NDArray[np.uint8]

_TILE = 96  # columns whose squares of the last rows stay in the first-level cache
_TILE_ROWS = 64  # rows whose costs stay in the second-level cache


@compiled
def store_view(
    start: int, stop: int, image: Image, end: int, is_reversed: bool, view: Image
) -> None:
    """Store a view and its Laplacian as the first two of five images, padded with zeros.

    Column 0 goes to place `end`; the other columns follow, or precede it if the view is reversed.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    image
        View (rows, cols).
    end
        Place of column 0 in a row of the result.
    is_reversed
        Whether columns go from right to left.
    view
        Five images, flat; the first two are written.
    """
    rows, cols = image.shape
    room = view.size // (5 * rows)
    bend = np.empty(cols, dtype=np.float32)
    none = splat_16(np.float32(0.0))
    from_, to = max(-end, 0), min(cols, room - end)
    if is_reversed:
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
        for place in range(0, room, SHORTS):
            store(light, place, none)
            store(curve, place, none)
        if is_reversed:
            rest = from_ + (max(to - from_, 0) // SHORTS) * SHORTS
            for col in range(from_, rest, SHORTS):
                store(light, end - col - SHORTS + 1, reverse(load_16(here, col)))
                store(curve, end - col - SHORTS + 1, reverse(load_16(bend, col)))
            for col in range(rest, to):
                light[end - col] = here[col]
                curve[end - col] = bend[col]
        else:
            for col in range(from_, to):
                light[end + col] = here[col]
                curve[end + col] = bend[col]


@compiled
def sum_energies(
    start: int,
    stop: int,
    view: Image,
    rows: int,
    window: tuple[int, ...],
    share: np.float32,
    cross: np.float32,
    floor: np.float32,
) -> None:
    """Sum image², image times Laplacian, and Laplacian² over a window.

    These are the last three of the five images of a view: the energy at any blur b is
    A + b B + b² C. All are multiplied by `share`, the product also by `cross`; `floor` is added to
    A once for each row of the window.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    view
        Five images of a view, flat; the last three are written.
    rows
        Rows of an image.
    window
        Tuple as long as the window is wide: its length is known to the compiler.
    share, cross, floor
        Factors on the sums and on the product, and the constant added.
    """
    half, room = len(window) // 2, view.size // (5 * rows)
    image = rows * room
    size = room + (2 * half // SHORTS + 1) * SHORTS
    sums = np.zeros(3 * size, dtype=np.float32)
    for row in range(start, stop):
        first, last = max(row - half, 0), min(row + half, rows - 1)
        for place in range(0, room, SHORTS):
            a = b = c = splat_16(np.float32(0.0))
            for near in range(first, last + 1):
                at = near * room + place
                light, curve = load_16(view, at), load_16(view, at + image)
                a = a + (light * light)
                b = b + (light * curve)
                c = c + (curve * curve)
            store(sums, half + place, a)
            store(sums, half + place + size, b)
            store(sums, half + place + 2 * size, c)
        base = splat_16(np.float32(last - first + 1) * floor)
        for place in range(0, room, SHORTS):
            a = b = c = splat_16(np.float32(0.0))
            for near in range(len(window)):
                a = a + load_16(sums, place + near)
                b = b + load_16(sums, place + near + size)
                c = c + load_16(sums, place + near + 2 * size)
            at = row * room + place
            store(view, at + 2 * image, ((a * splat_16(share)) + base))
            store(view, at + 3 * image, (b * splat_16(share * cross)))
            store(view, at + 4 * image, (c * splat_16(share)))


@compiled
def matching_costs(
    start: int,
    stop: int,
    left: Image,
    right: Image,
    blurs: Image,
    first_shift: int,
    shape: tuple[int, int, int],
    window: tuple[int, ...],
    costs: Bytes,
) -> None:
    """Matching costs: the sum of e² over a window, over what noise and texture explain.

    `left` and `right` hold five images each. Tile by tile, eight shifts at a time, down each tile;
    the squares of the last rows are kept. There are no running sums, so no rounding drift.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    left, right
        Five images of each view, flat.
    blurs
        Half the defocus at each shift, padded with zeros.
    first_shift
        First shift in pixels.
    shape
        Rows, columns and number of shifts.
    window
        Tuple as long as the window is wide.
    costs
        Costs (rows, cols, padded shifts), flat, written in place.
    """
    rows, cols, depth = shape
    deep, half = blurs.size, len(window) // 2
    ring = np.empty((_TILE + 2 * half) * FLOATS * len(window), dtype=np.float32)
    ends = np.zeros(deep, dtype=np.float32)
    for k in range(depth, deep):
        ends[k] = MAX_COST
    # Columns whose windows are inside both views at all shifts.
    inner_from = half + max(first_shift + depth - 1, 0)
    inner_to = cols - half + min(first_shift, 0)
    for begin in range(0, cols, _TILE):
        tile = begin, min(begin + _TILE, cols)
        for top in range(start, stop, _TILE_ROWS):
            bottom = min(top + _TILE_ROWS, stop)
            for k in range(0, deep, FLOATS):
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
    left: Image,
    right: Image,
    blurs: Image,
    at: tuple[int, int, int, int],
    tile: tuple[int, int],
    window: tuple[int, ...],
    ring: Image,
) -> None:
    """Squared differences of the views, blurred alike, for part of a row at eight shifts."""
    rows, cols, row, k = at
    begin, end = tile
    half = len(window) // 2
    left_room, right_room = left.size // (5 * rows), right.size // (5 * rows)
    blur = load_8(blurs, k)
    first = row * left_room + begin
    last = row * right_room + cols + 2 * half - 1 - begin + k
    out = row % len(window) * FLOATS
    for col in range(end - begin + 2 * half):
        light = splat_from(left, first + col)
        curve = splat_from(left, first + col + rows * left_room)
        common = curve + load_8(right, last - col + rows * right_room)
        error = light - load_8(right, last - col)
        error = error + (blur * common)
        store(ring, out + col * FLOATS * len(window), (error * error))


@inlined
def _no_squares(row: int, window: tuple[int, ...], ring: Image) -> None:
    """Zero squares for a row outside of the frame."""
    slot = (row + len(window)) % len(window) * FLOATS
    for place in range(slot, ring.size, FLOATS * len(window)):
        store(ring, place, splat_8(np.float32(0.0)))


@inlined
def _ratios(
    ring: Image,
    left: Image,
    right: Image,
    blurs: Image,
    ends: Image,
    at: tuple[int, int, int, int],
    tile: tuple[int, int],
    window: tuple[int, ...],
    out: Bytes,
) -> None:
    """Costs of part of a row at eight shifts, as bytes."""
    rows, cols, row, k = at
    begin, end = tile
    deep, half = blurs.size, len(window) // 2
    left_room, right_room = left.size // (5 * rows), right.size // (5 * rows)
    blur, beyond = load_8(blurs, k), load_8(ends, k)
    highest = splat_8(np.float32(MAX_COST))
    first = (2 * rows + row) * left_room + begin - half
    last = (2 * rows + row) * right_room + cols - 1 - begin + k + 3 * half
    out_at = (row * cols + begin - 2 * half) * deep + k
    sums = zero_tuple(window)
    for col in range(end - begin + 2 * half):
        total = load_8(ring, col * FLOATS * len(window))
        for back in range(1, len(window)):
            total = total + load_8(ring, (col * len(window) + back) * FLOATS)
        sums = push(sums, total)
        if col < 2 * half:
            continue
        here, there = first + col, last - col
        below = splat_from(left, here) + load_8(right, there)
        linear = splat_from(left, here + rows * left_room) + load_8(
            right, there + rows * right_room
        )
        bent = splat_from(left, here + 2 * rows * left_room) + load_8(
            right, there + 2 * rows * right_room
        )
        below = below + blur * (linear + blur * bent)
        ratio = sum_tuple(sums) / below + np.float32(0.5)
        ratio = maximum(minimum(ratio, highest), beyond)
        store(out, out_at + col * deep, as_uint8(truncate(ratio)))


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
    """Set the highest cost where a window leaves the frame sideways, in either view."""
    from_ = min(max(col - (cols - half) + 1 - first_shift, 0), depth)
    to = max(min(col - half - first_shift + 1, depth), from_)
    if col < half or col >= cols - half:
        to = from_
    for k in range(from_):
        out[out_at + k] = MAX_COST
    for k in range(to, depth):
        out[out_at + k] = MAX_COST
