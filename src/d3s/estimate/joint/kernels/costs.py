"""Compiled matching costs of whole shifts.

The shifts are innermost in all arrays, 16 of them in one vector. The right view is stored reversed,
so that increasing shifts are increasing places in it.
"""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.types import (
    CENSUS_WEIGHT,
    COST_FACTOR,
    COST_SHIFT,
    MAX_COST,
    MAX_SLOPE,
    Array,
    Costs,
    Indices,
    Steps,
)
from d3s.runtime.compile import compiled, inlined
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import (
    SHORTS,
    as_uint8,
    count_different_bits,
    load_16,
    maximum,
    minimum,
    splat_16,
    store,
)
from d3s.types import Image, Mask

Bytes = NDArray[np.uint8]


Shorts = NDArray[np.int16]


_FEATURES = 5  # images per view: two halves of the census, slope, and its least and largest value


_TILE = 96  # columns whose costs of the last rows stay in the first-level cache


_TILE_ROWS = 64  # rows whose costs stay in the second-level cache


_ROWS = 3  # rows and columns of the mean


def matching_costs(
    memory: Scratch,
    left: Array,
    right: Array,
    first_shift: int,
    shifts: int,
    scales: tuple[float, float],
) -> Costs:
    """Return the difference of the views at each whole shift, as bytes.

    It is the number of neighbours within 5 x 5 pixels whose order in brightness differs
    (census), plus the difference of the horizontal derivatives beyond that of half a pixel
    (Birchfield and Tomasi), mean over 3 x 3 pixels. Where a window leaves the overlap of both
    views sideways, it is `MAX_COST`.
    """
    rows, cols = left.shape
    deep = _filled(shifts)
    costs = memory.empty((rows, cols, deep), np.uint8)
    with memory.part():
        parts = []
        for view, scale, end, is_reversed, length in (
            (left, scales[0], 1, False, cols + 2),
            (right, scales[1], cols - first_shift, True, cols + 2 + deep),
        ):
            size = _FEATURES * rows * _filled(length)
            parts.append(memory.empty((size,), np.int16))
            run_over_rows(
                _store_features, rows, view, np.float32(scale), end, is_reversed, parts[-1]
            )
        shape = rows, cols, shifts
        run_over_rows(_matching_costs, rows, *parts, first_shift, shape, costs.reshape(-1))
    return costs


@compiled
def _store_features(
    start: int, stop: int, image: Image, scale: float, end: int, is_reversed: bool, out: Shorts
) -> None:
    """Store census and slope of each pixel of a view, padded with zeros.

    Column 0 goes to place `end`; the other columns follow, or precede it if the view is reversed.
    """
    rows, cols = image.shape
    room = out.size // (_FEATURES * rows)
    near = np.empty((5, cols + 4), dtype=np.float32)
    slope = np.empty(cols, dtype=np.float32)
    codes = np.empty((2, cols), dtype=np.int16)
    for row in range(start, stop):
        for down in range(5):
            line = image[min(max(row + down - 2, 0), rows - 1)]
            for col in range(cols):
                near[down, col + 2] = line[col]
            near[down, 0] = near[down, 1] = line[0]
            near[down, cols + 2] = near[down, cols + 3] = line[cols - 1]
        _census(near, codes)
        _slopes(near, np.float32(scale), slope)
        for plane in range(_FEATURES):
            first = (plane * rows + row) * room
            for place in range(first, first + room):
                out[place] = 0
        step = -1 if is_reversed else 1
        for col in range(cols):
            place = end + step * col
            if 0 <= place < room:
                here = slope[col]
                before = np.float32(0.5) * (here + slope[max(col - 1, 0)])
                after = np.float32(0.5) * (here + slope[min(col + 1, cols - 1)])
                at, image_size = row * room + place, rows * room
                out[at] = codes[0, col]
                out[at + image_size] = codes[1, col]
                out[at + 2 * image_size] = _rounded(here)
                out[at + 3 * image_size] = _rounded(min(here, min(before, after)))
                out[at + 4 * image_size] = _rounded(max(here, max(before, after)))


@inlined
def _census(near: Image, codes: Shorts) -> None:
    """Set a bit for each of 24 neighbours that is darker than the pixel, 12 in each half."""
    for half in range(2):
        line = codes[half]
        for col in range(line.size):
            line[col] = 0
    for place in range(25):
        if place != 12:
            down, across = place // 5, place % 5
            line, others = codes[place % 2], near[down, across:]
            middle = near[2, 2:]
            for col in range(line.size):
                is_darker = np.int16(1) if others[col] < middle[col] else np.int16(0)
                line[col] = line[col] + line[col] + is_darker


@inlined
def _slopes(near: Image, scale: np.float32, out: Image) -> None:
    """Horizontal Sobel derivative, times a factor, limited to `MAX_SLOPE` either way."""
    most = np.float32(MAX_SLOPE)
    for col in range(out.size):
        above = near[1, col + 3] - near[1, col + 1]
        below = near[3, col + 3] - near[3, col + 1]
        here = near[2, col + 3] - near[2, col + 1]
        value = ((above + below) + (here + here)) * scale
        out[col] = min(max(value, -most), most)


@inlined
def _rounded(number: np.float32) -> np.int16:
    return np.int16(np.floor(number + np.float32(0.5)))


@compiled
def _matching_costs(
    start: int,
    stop: int,
    left: Shorts,
    right: Shorts,
    first_shift: int,
    shape: tuple[int, int, int],
    costs: Bytes,
) -> None:
    """Matching costs: census and slopes of the two views compared, mean over 3 x 3 pixels.

    Tile by tile, 16 shifts at a time, down each tile; the costs of the last rows are kept.
    """
    rows, cols, depth = shape
    deep = costs.size // (rows * cols)
    ring = np.empty((_TILE + 2) * SHORTS * _ROWS, dtype=np.int16)
    # Columns whose windows are inside both views at all shifts.
    inner_from = 1 + max(first_shift + depth - 1, 0)
    inner_to = cols - 1 + min(first_shift, 0)
    for begin in range(0, cols, _TILE):
        tile = begin, min(begin + _TILE, cols)
        for top in range(start, stop, _TILE_ROWS):
            bottom = min(top + _TILE_ROWS, stop)
            for k in range(0, deep, SHORTS):
                for row in range(top - 1, bottom + 1):
                    # Rows are repeated beyond the frame.
                    inside = min(max(row, 0), rows - 1)
                    slot = (row + _ROWS) % _ROWS
                    _pixel_costs(left, right, (rows, cols, inside, k), tile, slot, ring)
                    if row - 1 >= top:
                        _means(ring, ((row - 1) * cols + begin) * deep + k, deep, tile, costs)
            for col in range(begin, tile[1]):
                if not inner_from <= col < inner_to:
                    for row in range(top, bottom):
                        place = (row * cols + col) * deep
                        _close_ends(col, cols, first_shift, depth, costs, place)
            for row in range(top, bottom):
                for place in range(
                    (row * cols + begin) * deep, (row * cols + tile[1]) * deep, deep
                ):
                    for k in range(depth, deep):
                        costs[place + k] = MAX_COST


@inlined
def _pixel_costs(
    left: Shorts,
    right: Shorts,
    at: tuple[int, int, int, int],
    tile: tuple[int, int],
    slot: int,
    ring: Shorts,
) -> None:
    """Costs of single pixels for part of a row, and one column on either side, at 16 shifts."""
    rows, cols, row, k = at
    begin, end = tile
    left_image, right_image = left.size // _FEATURES, right.size // _FEATURES
    first = row * (left_image // rows) + begin
    last = row * (right_image // rows) + cols + 1 - begin + k
    weight, none = splat_16(np.int16(CENSUS_WEIGHT)), splat_16(np.int16(0))
    for col in range(end - begin + 2):
        here, there = first + col, last - col
        bits = count_different_bits(splat_16(left[here]), load_16(right, there))
        bits = bits + count_different_bits(
            splat_16(left[here + left_image]), load_16(right, there + right_image)
        )
        here, there = here + 2 * left_image, there + 2 * right_image
        slope, low, high = left[here], left[here + left_image], left[here + 2 * left_image]
        other_low = load_16(right, there + right_image)
        other_high = load_16(right, there + 2 * right_image)
        other = load_16(right, there)
        beyond = maximum(splat_16(slope) - other_high, other_low - splat_16(slope))
        beyond_other = maximum(other - splat_16(high), splat_16(low) - other)
        beyond = maximum(minimum(beyond, beyond_other), none)
        store(ring, (col * _ROWS + slot) * SHORTS, weight * bits + beyond)


@inlined
def _means(ring: Shorts, first: int, deep: int, tile: tuple[int, int], out: Bytes) -> None:
    """Mean of 3 x 3 costs as a byte, for part of a row at 16 shifts."""
    begin, end = tile
    factor = splat_16(np.int16(COST_FACTOR))
    before = load_16(ring, 0) + load_16(ring, SHORTS) + load_16(ring, 2 * SHORTS)
    at = _ROWS * SHORTS
    here = load_16(ring, at) + load_16(ring, at + SHORTS) + load_16(ring, at + 2 * SHORTS)
    for col in range(end - begin):
        at = (col + 2) * _ROWS * SHORTS
        after = load_16(ring, at) + load_16(ring, at + SHORTS) + load_16(ring, at + 2 * SHORTS)
        total = (before + here + after) * factor / splat_16(np.int16(1 << COST_SHIFT))
        store(out, first + col * deep, as_uint8(total))
        before = here
        here = after


@inlined
def _close_ends(col: int, cols: int, first_shift: int, depth: int, out: Bytes, out_at: int) -> None:
    """Set the highest cost where a window leaves the frame sideways, in either view."""
    from_ = min(max(col - (cols - 1) + 1 - first_shift, 0), depth)
    to = max(min(col - first_shift, depth), from_)
    if col < 1 or col >= cols - 1:
        to = from_
    for k in range(from_):
        out[out_at + k] = MAX_COST
    for k in range(to, depth):
        out[out_at + k] = MAX_COST


def aligned_costs(
    memory: Scratch, costs: Costs, lowest: Steps, allowed: Mask, side: int, stride: int
) -> tuple[Indices, Indices]:
    """Add up the costs of each block by their distance from the chosen shift, and count them.

    Costs of `MAX_COST`, out of the overlap, do not count.
    """
    shape = *(-(-size // side) for size in lowest.shape), 2 * allowed.size - 1
    sums, counts = (memory.empty(shape, np.int64) for _ in range(2))
    flat, steps = costs.reshape(-1), (side, stride)
    run_over_rows(_aligned_costs, shape[0], flat, lowest, allowed, steps, sums, counts)
    return sums, counts


@compiled
def _aligned_costs(
    start: int,
    stop: int,
    costs: NDArray[np.uint8],
    lowest: Steps,
    allowed: Mask,
    steps: tuple[int, int],
    sums: Indices,
    counts: Indices,
) -> None:
    """Sums and counts of costs by their distance from the chosen shift; start, stop in blocks."""
    rows, cols = lowest.shape
    deep, depth = costs.size // (rows * cols), allowed.size
    side, stride = steps
    for band in range(start, stop):
        sums[band] = 0
        counts[band] = 0
        for row in range(band * side, min((band + 1) * side, rows), stride):
            for block in range(sums.shape[1]):
                for col in range(block * side, min((block + 1) * side, cols), stride):
                    first = depth - 1 - lowest[row, col]
                    place = (row * cols + col) * deep
                    sum_line = sums[band, block, first : first + depth]
                    count_line = counts[band, block, first : first + depth]
                    for k in range(depth):
                        cost = costs[place + k]
                        is_known = (cost != MAX_COST) & allowed[k]
                        sum_line[k] += cost if is_known else 0
                        count_line[k] += 1 if is_known else 0


def _filled(length: int) -> int:
    return -(-length // SHORTS) * SHORTS
