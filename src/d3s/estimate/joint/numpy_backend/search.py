"""Operations of the search in NumPy: whole images, one shift or one path step at a time.

Written from the definition of the operations, not from the compiled loops.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from d3s.estimate.joint.types import (
    COST_PADDING,
    FORBIDDEN_TOTAL,
    MAX_COST,
    MAX_PENALTY,
    Array,
    CostParameters,
    Costs,
    PathParameters,
    PathResult,
    Steps,
)
from d3s.types import Mask


class NumpySearch:
    """`SearchOperations` in double precision."""

    def local_mean(self, image: Array, half: int) -> Array:
        """Return the mean over those of 2 half + 1 pixels each way that are inside the frame."""
        image = np.asarray(image, dtype=np.float64)
        return np.asarray(_window_sums(image, half) / _window_sums(np.ones_like(image), half))

    def subtract_local_mean(self, image: Array, half: int) -> Array:
        """Subtract the mean over 2 half + 1 pixels each way."""
        return np.asarray(image - self.local_mean(image, half))

    def median_3x3(self, image: Array) -> Array:
        """Return the median over 3 x 3 pixels; edge pixels are repeated."""
        wide = np.pad(image, 1, mode="edge")
        return np.asarray(np.median(sliding_window_view(wide, (3, 3)), axis=(2, 3)))

    def matching_costs(
        self,
        left: Array,
        right: Array,
        first_shift: int,
        defocus: NDArray[Any],
        parameters: CostParameters,
    ) -> Costs:
        """Return the misfit of the views at each whole shift, as whole numbers up to `MAX_COST`.

        Parameters: see `SearchOperations.matching_costs`.
        """
        half, floor, tolerance, limit = parameters
        left, right = (np.asarray(view, dtype=np.float64) for view in (left, right))
        left_lap, right_lap = _laplacian(left), _laplacian(right)
        cols, depth = left.shape[1], len(defocus)
        costs = np.full(
            (*left.shape, -(-depth // COST_PADDING) * COST_PADDING), MAX_COST, dtype=np.uint8
        )
        for k, blur in enumerate(np.asarray(defocus, dtype=np.float64) / 2):
            shift = first_shift + k
            here = slice(max(shift, 0), max(min(cols, cols + shift), 0))
            there = slice(max(-shift, 0), max(min(cols, cols - shift), 0))
            if here.stop - here.start <= 2 * half:
                continue
            a = left[:, here] + blur * left_lap[:, here]
            b = right[:, there] - blur * right_lap[:, there]
            misfit = self.local_mean((a - b) ** 2, half)
            explained = floor + tolerance * self.local_mean(a**2 + b**2, half)
            with np.errstate(divide="ignore", invalid="ignore"):
                cost = misfit / explained
            cost = np.where(cost < limit, cost, limit)
            inner = slice(half, cost.shape[1] - half)
            costs[:, here, k][:, inner] = np.floor(cost * MAX_COST / limit + 0.5)[:, inner]
        return costs

    def aggregate_paths(
        self, costs: Costs, allowed: Mask, parameters: PathParameters
    ) -> PathResult:
        """Add up the path costs from four sides and find the lowest and the next best total.

        Parameters: see `SearchOperations.aggregate_paths`.
        """
        small, large, limit = parameters
        raw = costs[:, :, : allowed.size].astype(np.float64)
        penalties = min(small, MAX_PENALTY), min(large, MAX_PENALTY)
        total = _path_sums(np.where(allowed, raw, np.inf), *penalties)
        lowest = total.argmin(axis=2)
        walls = np.pad(total, ((0, 0), (0, 0), (1, 1)), constant_values=np.inf)
        is_valley = (total <= walls[..., :-2]) & (total <= walls[..., 2:]) & allowed
        is_valley &= np.abs(np.arange(allowed.size) - lowest[..., None]) > 1
        other = np.where(is_valley, total, np.inf).argmin(axis=2)
        other = np.where(is_valley.any(axis=2), other, -1)
        gap = np.where(other < 0, MAX_COST, _valley(raw, other) - _valley(raw, lowest))
        value = np.minimum(_at(total, lowest), FORBIDDEN_TOTAL)
        whole = (part.astype(np.int16) for part in (lowest, other, value))
        lowest16, other16, value16 = whole
        return PathResult(
            lowest + _offset(walls, lowest), lowest16, other16, gap * limit / MAX_COST, value16
        )

    def right_view_steps(self, paths: PathResult, first_shift: int) -> Steps:
        """Return the step that the right view chooses for each pixel's match, or -1."""
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


def _laplacian(image: Array) -> Array:
    wide = np.pad(image, 1, mode="edge")
    return np.asarray(np.diff(wide[:, 1:-1], 2, axis=0) + np.diff(wide[1:-1], 2, axis=1))


def _path_sums(costs: Array, small: float, large: float) -> Array:
    """Add up the paths from above, from below, from the left and from the right."""
    turned = costs.swapaxes(0, 1)
    return np.asarray(
        _path_from_above(costs, small, large)
        + _path_from_above(costs[::-1], small, large)[::-1]
        + _path_from_above(turned, small, large).swapaxes(0, 1)
        + _path_from_above(turned[::-1], small, large)[::-1].swapaxes(0, 1)
    )


def _path_from_above(costs: Array, small: float, large: float) -> Array:
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
        best = np.minimum(np.minimum(before, neighbour), lowest + large)
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


def _valley(costs: Array, step: NDArray[Any]) -> Array:
    """Return the minimum of the parabola through a cost and its neighbours, at least 0."""
    before, here, after = (_at(costs, step + k) for k in (-1, 0, 1))
    bend = before + after - 2 * here
    deep = (before - after) ** 2 / (8 * np.where(bend > 0, bend, 1))
    flat = np.minimum(np.minimum(before, after), here)
    return np.asarray(np.where(bend > 0, np.maximum(here - deep, 0), flat))
