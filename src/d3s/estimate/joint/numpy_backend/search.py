"""The search over whole shifts in plain NumPy: whole pictures, one shift or one step at a time.

Written from what the operations are to do, not from the compiled loops.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[Any]  # of the precision of the operations
Costs = NDArray[np.uint8]  # (rows, cols, shifts), the shifts filled up to a multiple of LANES
Steps = NDArray[np.int16]  # shifts counted from the first one

# Also of the compiled search, whose machine code on disk knows nothing of changes here: touch it.
MOST = 255  # the highest cost as a whole number: `limit`
HIGHEST_PRICE = 7500  # a step that costs more is as good as forbidden: 29 times the highest cost
NEVER = 32000  # total of a shift that is not allowed, above that of any other: 4 (255 + 7500)
LANES = 16  # numbers that the compiled search works on at once


class Pick(NamedTuple):
    """Best shift of each pixel, and the next best valley."""

    step: Array  # between the whole shifts, counted from the first one
    lowest: Steps  # the whole one
    other: Steps  # that of the next best valley, -1 if there is none
    gap: Array  # how much more misfit the other valley has; `limit` if there is none
    total: Steps  # what the paths add up to at `lowest`


class PlainSearch:
    """Double precision, one thread, nothing compiled."""

    def window_means(self, image: Array, half: int) -> Array:
        """Mean over 2 half + 1 pixels each way, of those inside the frame."""
        image = np.asarray(image, dtype=np.float64)
        return np.asarray(_window_sums(image, half) / _window_sums(np.ones_like(image), half))

    def without_mean(self, image: Array, half: int) -> Array:
        """Image less its mean over 2 half + 1 pixels each way."""
        return np.asarray(image - self.window_means(image, half))

    def median_of_nine(self, image: Array) -> Array:
        """Median over a pixel and its neighbours; the image goes on as its last pixel."""
        wide = np.pad(image, 1, mode="edge")
        return np.asarray(np.median(sliding_window_view(wide, (3, 3)), axis=(2, 3)))

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
        """Mean squares of the whole picture, shift by shift.

        Where a window would leave the overlap of both views sideways, the cost is the highest.
        """
        left, right = (np.asarray(view, dtype=np.float64) for view in (left, right))
        left_lap, right_lap = _laplacian(left), _laplacian(right)
        cols, depth = left.shape[1], len(defocus)
        costs = np.full((*left.shape, -(-depth // LANES) * LANES), MOST, dtype=np.uint8)
        for k, blur in enumerate(np.asarray(defocus, dtype=np.float64) / 2):
            shift = first_shift + k
            here = slice(max(shift, 0), max(min(cols, cols + shift), 0))
            there = slice(max(-shift, 0), max(min(cols, cols - shift), 0))
            if here.stop - here.start <= 2 * half:
                continue
            a = left[:, here] + blur * left_lap[:, here]
            b = right[:, there] - blur * right_lap[:, there]
            misfit = self.window_means((a - b) ** 2, half)
            explained = floor + tolerance * self.window_means(a**2 + b**2, half)
            with np.errstate(divide="ignore", invalid="ignore"):
                cost = misfit / explained
            cost = np.where(cost < limit, cost, limit)
            inner = slice(half, cost.shape[1] - half)
            costs[:, here, k][:, inner] = np.floor(cost * MOST / limit + 0.5)[:, inner]
        return costs

    def found(
        self, costs: Costs, allowed: NDArray[np.bool_], *, small: int, large: int, limit: float
    ) -> Pick:
        """Lowest total of the paths from four sides, and what is next best."""
        raw = costs[:, :, : allowed.size].astype(np.float64)
        prices = min(small, HIGHEST_PRICE), min(large, HIGHEST_PRICE)
        total = _path_sums(np.where(allowed, raw, np.inf), *prices)
        lowest = total.argmin(axis=2)
        walls = np.pad(total, ((0, 0), (0, 0), (1, 1)), constant_values=np.inf)
        is_valley = (total <= walls[..., :-2]) & (total <= walls[..., 2:]) & allowed
        is_valley &= np.abs(np.arange(allowed.size) - lowest[..., None]) > 1
        other = np.where(is_valley, total, np.inf).argmin(axis=2)
        other = np.where(is_valley.any(axis=2), other, -1)
        gap = np.where(other < 0, MOST, _valley(raw, other) - _valley(raw, lowest))
        value = np.minimum(_at(total, lowest), NEVER)
        whole = (part.astype(np.int16) for part in (lowest, other, value))
        lowest16, other16, value16 = whole
        return Pick(lowest + _offset(walls, lowest), lowest16, other16, gap * limit / MOST, value16)

    def seen(self, pick: Pick, first_shift: int) -> Steps:
        """Step that the right view sees where each pixel points to; -1 if that is out of it.

        Of the pixels that point to one of the right view it sees that of the lowest total, and of
        equals the nearest.
        """
        rows, cols = pick.lowest.shape
        out = np.full((rows, cols), -1, dtype=np.int16)
        there = np.arange(cols) - first_shift - pick.lowest.astype(np.int64)
        for row in range(rows):
            for place in np.unique(there[row]):
                pointing = np.flatnonzero(there[row] == place)
                if 0 <= place < cols:
                    order = np.lexsort((-pick.lowest[row, pointing], pick.total[row, pointing]))
                    out[row, pointing] = pick.lowest[row, pointing[order[0]]]
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
    """From above, from below, from the left and from the right."""
    turned = costs.swapaxes(0, 1)
    return np.asarray(
        _path_from_above(costs, small, large)
        + _path_from_above(costs[::-1], small, large)[::-1]
        + _path_from_above(turned, small, large).swapaxes(0, 1)
        + _path_from_above(turned[::-1], small, large)[::-1].swapaxes(0, 1)
    )


def _path_from_above(costs: Array, small: float, large: float) -> Array:
    """Cost of the cheapest way down to each pixel and shift, less the cheapest of the row before.

    A way goes from row to row; Hirschmüller's equation 13.
    """
    out = np.empty_like(costs)
    out[0] = costs[0]
    for row in range(1, len(costs)):
        before = out[row - 1]
        # Without any shift that is allowed all is infinite, and so it stays.
        lowest = np.minimum(before.min(axis=1, keepdims=True), NEVER)
        wide = np.pad(before, ((0, 0), (1, 1)), constant_values=np.inf)
        neighbour = np.minimum(wide[:, :-2], wide[:, 2:]) + small
        best = np.minimum(np.minimum(before, neighbour), lowest + large)
        out[row] = costs[row] + best - lowest
    return out


def _at(volume: Array, step: NDArray[Any]) -> Array:
    inside = np.clip(step, 0, volume.shape[2] - 1)
    return np.take_along_axis(volume, inside[..., None], axis=2)[..., 0]


def _offset(walls: Array, lowest: NDArray[Any]) -> Array:
    """From the lowest total to the lowest point of the parabola through its neighbours.

    None beside a wall, that is at an end or next to a shift that is not allowed.
    """
    before, here, after = (_at(walls, lowest + k) for k in (0, 1, 2))
    is_free = np.isfinite(before) & np.isfinite(after)
    before, here, after = (np.where(is_free, part, 0) for part in (before, here, after))
    bend = before + after - 2 * here
    return np.where(bend > 0, (before - after) / (2 * np.where(bend > 0, bend, 1)), 0)


def _valley(costs: Array, step: NDArray[Any]) -> Array:
    """Lowest point of the parabola through the cost of a step and its neighbours, zero at least."""
    before, here, after = (_at(costs, step + k) for k in (-1, 0, 1))
    bend = before + after - 2 * here
    deep = (before - after) ** 2 / (8 * np.where(bend > 0, bend, 1))
    flat = np.minimum(np.minimum(before, after), here)
    return np.asarray(np.where(bend > 0, np.maximum(here - deep, 0), flat))
