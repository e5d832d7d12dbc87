"""Operations of the search in NumPy: whole images, one shift or one path step at a time.

Written from the definition of the operations, not from the compiled loops.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from d3s.estimate.joint.kernels.periods import Limits, Periods
from d3s.estimate.joint.types import (
    CENSUS_WEIGHT,
    COST_FACTOR,
    COST_PADDING,
    COST_SHIFT,
    FORBIDDEN_TOTAL,
    MAX_COST,
    MAX_PENALTY,
    MAX_SLOPE,
    Array,
    Costs,
    Indices,
    PathResult,
    Steps,
)
from d3s.types import Mask


def local_mean(image: Array, half: int) -> Array:
    """Return the mean over those of 2 half + 1 pixels each way that are inside the frame."""
    image = np.asarray(image, dtype=np.float64)
    return np.asarray(_window_sums(image, half) / _window_sums(np.ones_like(image), half))


def median_3x3(image: Array) -> Array:
    """Return the median over 3 x 3 pixels; edge pixels are repeated."""
    wide = np.pad(image, 1, mode="edge")
    return np.asarray(np.median(sliding_window_view(wide, (3, 3)), axis=(2, 3)))


def matching_costs(
    left: Array, right: Array, first_shift: int, shifts: int, scales: tuple[float, float]
) -> Costs:
    """Return the difference of the views at each whole shift, as bytes.

    It is the number of neighbours within 5 x 5 pixels whose order in brightness differs
    (census), plus the difference of the horizontal derivatives beyond that of half a pixel
    (Birchfield and Tomasi), mean over 3 x 3 pixels. Where a window leaves the overlap of both
    views sideways, it is `MAX_COST`.
    """
    census, other_census = _census(left), _census(right)
    slopes, other_slopes = (
        _slopes(view, scale) for view, scale in zip((left, right), scales, strict=True)
    )
    cols = left.shape[1]
    padded = -(-shifts // COST_PADDING) * COST_PADDING
    costs = np.full((*left.shape, padded), MAX_COST, dtype=np.uint8)
    for k in range(shifts):
        shift = first_shift + k
        here = slice(max(shift, 0), max(min(cols, cols + shift), 0))
        there = slice(max(-shift, 0), max(min(cols, cols - shift), 0))
        if here.stop - here.start <= 2:
            continue
        bits = np.bitwise_count(census[:, here] ^ other_census[:, there])
        middle, low, high = (part[:, here] for part in slopes)
        other, other_low, other_high = (part[:, there] for part in other_slopes)
        beyond = np.minimum(
            np.maximum(middle - other_high, other_low - middle),
            np.maximum(other - high, low - other),
        )
        cost = CENSUS_WEIGHT * bits.astype(np.int64) + np.maximum(beyond, 0)
        wide = np.pad(cost, ((1, 1), (0, 0)), mode="edge")
        total = sliding_window_view(wide, (3, 3)).sum(axis=(2, 3))
        costs[:, here, k][:, 1:-1] = (total * COST_FACTOR) >> COST_SHIFT
    return costs


def step_penalties(view: Array, penalty: float, least: float, unit: float) -> tuple[Steps, Steps]:
    """Return the penalty of large steps between neighbours, lower across edges of the view.

    It is divided by 1 + the difference of the two pixels over `unit`.
    """
    steps = (np.abs(np.diff(view, axis=axis, prepend=view.take([0], axis=axis))) for axis in (1, 0))
    across, down = (
        np.floor(np.maximum(penalty / (1 + step / unit), least) + 0.5).astype(np.int16)
        for step in steps
    )
    return across, down


def aggregate_paths(
    costs: Costs, allowed: Mask, small: int, large: tuple[Steps, Steps]
) -> PathResult:
    """Add up the path costs from four sides and find the lowest and the next best total."""
    raw = costs[:, :, : allowed.size].astype(np.float64)
    penalties = (part.astype(np.float64) for part in large)
    total = _path_sums(np.where(allowed, raw, np.inf), min(small, MAX_PENALTY), *penalties)
    lowest = total.argmin(axis=2)
    walls = np.pad(total, ((0, 0), (0, 0), (1, 1)), constant_values=np.inf)
    is_away = np.abs(np.arange(allowed.size) - lowest[..., None]) > 1
    other = np.where(is_away, total, np.inf).min(axis=2)
    value, other = (np.minimum(part, FORBIDDEN_TOTAL) for part in (_at(total, lowest), other))
    return PathResult(
        step=lowest + _offset(walls, lowest),
        lowest=lowest.astype(np.int16),
        total=value.astype(np.int16),
        margin=(other - value) / np.maximum(other, 1),
    )


def aligned_costs(
    costs: Costs, lowest: Steps, allowed: Mask, side: int, stride: int
) -> tuple[Indices, Indices]:
    """Add up the costs of each block by their distance from the chosen shift, and count them.

    Costs of `MAX_COST`, out of the overlap, do not count.
    """
    shape = *(-(-size // side) for size in lowest.shape), 2 * allowed.size - 1
    sums, counts = (np.zeros(shape, dtype=np.int64) for _ in range(2))
    used = costs[::stride, ::stride, : allowed.size].astype(np.int64)
    row, col, step = np.nonzero((used != MAX_COST) & allowed)
    distance = step - lowest[::stride, ::stride].astype(np.int64)[row, col]
    place = row * stride // side, col * stride // side, distance + allowed.size - 1
    np.add.at(sums, place, used[row, col, step])
    np.add.at(counts, place, 1)
    return sums, counts


def find_periods(
    views: tuple[Array, Array],
    ends: tuple[int, int, int, int],
    sizes: tuple[int, int],
    limits: Limits,
) -> Periods:
    """Return where the left view repeats along its rows, or matches out of the range.

    A block repeats where the correlation of its window with the view itself has its highest peak
    after a dip, of equal ones the first.
    """
    rows, cols = views[0].shape
    reach, side = sizes
    sums = [_sums_3x3(view) for view in views]
    shape = -(-rows // side), -(-cols // side)
    out = Periods(*(np.zeros(shape) for _ in range(3)))
    for place in np.ndindex(shape):
        down, across = (
            np.arange(max(k * side - side // 2, 1), min((k + 1) * side + side // 2, size - 1), 4)
            for k, size in zip(place, (rows, cols), strict=True)
        )
        if not (down.size and across.size):
            continue

        def likeness(view: Array, shift: int, down: Array = down, across: Array = across) -> float:
            there = across - shift
            if there[0] < 1 or there[-1] >= cols - 1:
                return np.nan
            return _correlation(sums[0][np.ix_(down, across)], view[np.ix_(down, there)])

        pair = np.array([likeness(sums[1], shift) for shift in range(ends[0], ends[3] + 1)])
        is_inside = np.arange(ends[0], ends[3] + 1) >= ends[1]
        is_inside &= np.arange(ends[0], ends[3] + 1) <= ends[2]
        inside, outside = (np.nanmax(np.append(pair[part], 0)) for part in (is_inside, ~is_inside))
        if outside >= limits.outside and outside - inside >= limits.lead:
            out.lead[place] = outside - inside
        least = min(limits.surely, limits.share * inside) if inside else limits.surely
        least = max(least, limits.least)
        peaks = []
        for sign in (1, -1):
            curve = np.array([likeness(sums[0], sign * k) for k in range(reach + 1)])
            peaks.append(_highest(_peaks(curve[np.isfinite(curve)], least, limits.dip)))
        out.period[place], out.likeness[place] = _highest(sorted(peaks))
    return out


def right_view_steps(paths: PathResult, first_shift: int) -> Steps:
    """Return the step that the right view chooses for each pixel's match (left-right check).

    Of all pixels that match one pixel of the right view it chooses the one with the lowest
    total, of equal totals the nearest. -1 where the match is out of the frame.
    """
    rows, cols = paths.lowest.shape
    out = np.full((rows, cols), -1, dtype=np.int16)
    there = np.arange(cols) - first_shift - paths.lowest.astype(np.int64)
    for row in range(rows):
        for place in np.unique(there[row]):
            pointing = np.flatnonzero(there[row] == place)
            if 0 <= place < cols:
                order = np.lexsort((-paths.lowest[row, pointing], paths.total[row, pointing]))
                out[row, pointing] = paths.lowest[row, pointing[order[0]]]
    return out


def _window_sums(image: Array, half: int) -> Array:
    for axis in (0, 1):
        wide = np.pad(image, [(half, half) if i == axis else (0, 0) for i in (0, 1)])
        image = sliding_window_view(wide, 2 * half + 1, axis=axis).sum(axis=-1)
    return image


def _sums_3x3(view: Array) -> Array:
    """Return the sums over 3 x 3 pixels; 0 at the edges."""
    wide = np.pad(np.asarray(view, dtype=np.float64), 1)
    sums = np.zeros(view.shape)
    sums[1:-1, 1:-1] = sliding_window_view(wide, (3, 3)).sum(axis=(2, 3))[1:-1, 1:-1]
    return sums


def _correlation(one: Array, other: Array) -> float:
    """Return the correlation of two windows; 0 of one that is flat but for rounding."""
    norm = one.var() * other.var()
    is_flat = one.var() <= 1e-5 * np.mean(one**2)
    return 0.0 if is_flat or norm <= 0 else float(np.mean((one - one.mean()) * other) / norm**0.5)


def _highest(peaks: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the first peak (distance, height) than which no later one is higher by 0.02."""
    best = 0.0, 0.0
    for peak in peaks:
        best = peak if peak[1] > best[1] + 0.02 else best
    return best


def _peaks(curve: Array, least: float, dip: float) -> list[tuple[float, float]]:
    """Return distance and height of the peaks of at least a height, after a dip."""
    found = []
    for k in range(1, curve.size - 1):
        before, here, after = curve[k - 1 : k + 2]
        bend = before - 2 * here + after
        if curve[: k + 1].min() <= dip and here >= max(before, after) and bend < 0:
            offset = (before - after) / 2 / bend
            height = here - (before - after) * offset / 4
            if height >= least:
                found.append((k + offset, height))
    return found


def _census(view: Array) -> NDArray[np.int64]:
    """Return for each pixel 24 bits: which of its 5 x 5 neighbours are darker."""
    wide = np.pad(view, 2, mode="edge")
    near = sliding_window_view(wide, (5, 5)).reshape(*view.shape, 25)
    is_darker = np.delete(near < view[..., None], 12, axis=2)
    return np.asarray(is_darker @ (1 << np.arange(24)))


def _slopes(view: Array, scale: float) -> tuple[Array, Array, Array]:
    """Return the limited horizontal Sobel derivative, and its least and largest value.

    These are over the pixel and half a pixel to either side (Birchfield and Tomasi).
    """
    wide = np.pad(np.asarray(view, dtype=np.float64), 1, mode="edge")
    across = wide[:, 2:] - wide[:, :-2]
    slope = (across[:-2] + across[2:] + 2 * across[1:-1]) * scale
    slope = np.clip(slope, -MAX_SLOPE, MAX_SLOPE)
    ends = np.pad(slope, ((0, 0), (1, 1)), mode="edge")
    three = np.stack([slope, (slope + ends[:, :-2]) / 2, (slope + ends[:, 2:]) / 2])
    parts = (slope, three.min(axis=0), three.max(axis=0))
    middle, low, high = (np.floor(part + 0.5).astype(np.int64) for part in parts)
    return middle, low, high


def _path_sums(costs: Array, small: float, across: Array, down: Array) -> Array:
    """Add up the paths from above, from below, from the left and from the right."""
    turned, across = costs.swapaxes(0, 1), across.T
    return np.asarray(
        _path_from_above(costs, small, down)
        + _path_from_above(costs[::-1], small, _before(down))[::-1]
        + _path_from_above(turned, small, across).swapaxes(0, 1)
        + _path_from_above(turned[::-1], small, _before(across))[::-1].swapaxes(0, 1)
    )


def _before(penalties: Array) -> Array:
    """Return the penalties between rows for a path in the opposite direction."""
    return np.roll(penalties, -1, axis=0)[::-1]


def _path_from_above(costs: Array, small: float, large: Array) -> Array:
    """Return the cost of the cheapest path down to each pixel and shift.

    Hirschmüller's equation 13: from row to row, less the lowest cost of the row before.
    """
    out = np.empty_like(costs)
    out[0] = costs[0]
    for row in range(1, len(costs)):
        before = out[row - 1]
        # If no shift is allowed, all costs are infinite and stay so.
        lowest = np.minimum(before.min(axis=1, keepdims=True), FORBIDDEN_TOTAL)
        wide = np.pad(before, ((0, 0), (1, 1)), constant_values=np.inf)
        neighbour = np.minimum(wide[:, :-2], wide[:, 2:]) + small
        best = np.minimum(np.minimum(before, neighbour), lowest + large[row][:, None])
        out[row] = costs[row] + best - lowest
    return out


def _at(volume: Array, step: NDArray[Any]) -> Array:
    inside = np.clip(step, 0, volume.shape[2] - 1)
    return np.take_along_axis(volume, inside[..., None], axis=2)[..., 0]


def _offset(walls: Array, lowest: NDArray[Any]) -> Array:
    """Return the sub-pixel offset of the parabola through the lowest total and its neighbours.

    0 at the ends of the range and next to a forbidden shift.
    """
    before, here, after = (_at(walls, lowest + k) for k in (0, 1, 2))
    is_free = np.isfinite(before) & np.isfinite(after)
    before, here, after = (np.where(is_free, part, 0) for part in (before, here, after))
    bend = before + after - 2 * here
    return np.where(bend > 0, (before - after) / (2 * np.where(bend > 0, bend, 1)), 0)
