"""Depths to try, and the best of costs that come one at a time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s.peers.common import SLACK_PX, box_mean
from d3s.rig import Optics
from d3s.types import FloatArray

Single = NDArray[np.float32]


class Hypotheses(NamedTuple):
    """Disparities to try, even and increasing."""

    disparity_px: FloatArray
    step_px: float

    @classmethod
    def of(
        cls, optics: Optics, range_m: tuple[float, float], step_px: float, cols: int
    ) -> "Hypotheses | None":
        """Those of a range of depths; None if a frame so narrow has fewer than three of them."""
        nearest_px, farthest_px = (float(one) for one in optics.disparity_px(range_m))
        # What is farther than everything has no blur.
        farther_px = 0.5 * (farthest_px + optics.disparity_offset_px)
        lowest = max(farthest_px - SLACK_PX, farther_px, 1.0 - cols)
        highest = min(nearest_px + SLACK_PX, cols - 1.0)
        # Whole multiples of the step, so that a step of one pixel needs no interpolation.
        numbers = np.arange(np.ceil(lowest / step_px), np.floor(highest / step_px) + 1)
        return cls(numbers * step_px, step_px) if numbers.size >= 3 else None


class Winner:
    """The least of costs that come one at a time, and its neighbours: memory for a few of them.

    The same costs tell of the right view which disparity is best there, so that one can see
    whether both agree.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.count = 0
        self.index = np.full(shape, -1, dtype=np.int32)
        self.least = np.full(shape, np.inf, dtype=np.float32)
        self._before = np.full(shape, np.nan, dtype=np.float32)
        self._after = np.full(shape, np.nan, dtype=np.float32)
        self._last = np.full(shape, np.nan, dtype=np.float32)
        self._sum = np.zeros(shape, dtype=np.float32)
        self._right_least = np.full(shape, np.inf, dtype=np.float32)
        self._right_px = np.full(shape, np.nan, dtype=np.float32)

    def add(self, cost: Single, disparity_px: float) -> None:
        """The next hypothesis; of equals the first wins."""
        np.copyto(self._after, cost, where=self.index == self.count - 1)
        better = cost < self.least
        np.copyto(self.least, cost, where=better)
        np.copyto(self.index, self.count, where=better)
        np.copyto(self._before, self._last, where=better)
        np.copyto(self._after, np.nan, where=better)
        self._last = cost
        self._sum += cost
        self.count += 1
        own, match = _overlap(cost.shape[1], round(disparity_px))
        better = cost[:, own] < self._right_least[:, match]
        np.copyto(self._right_least[:, match], cost[:, own], where=better)
        np.copyto(self._right_px[:, match], disparity_px, where=better)

    def disagreement_px(self, disparity_px: FloatArray) -> FloatArray:
        """How far a disparity is from the best one of the right view, at its match; NaN outside."""
        cols = disparity_px.shape[1]
        column = np.rint(np.arange(cols) - np.nan_to_num(disparity_px)).astype(np.intp)
        right_px = np.take_along_axis(self._right_px, np.clip(column, 0, cols - 1), axis=1)
        inside = (column >= 0) & (column < cols)
        return np.where(inside, np.abs(disparity_px - right_px), np.nan)

    @property
    def minimum(self) -> "Minimum":
        """The parabola through the best and its neighbours."""
        return Minimum.through(self._before, self.least, self._after)

    @property
    def distinctness(self) -> FloatArray:
        """How far the best is below the mean of all, from 0 to 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(1.0 - self.least * self.count / self._sum, dtype=np.float64)


def _overlap(cols: int, shift: int) -> tuple[slice, slice]:
    """Columns of the left view that have a match at a whole disparity, and those of the match."""
    return slice(max(shift, 0), cols + min(shift, 0)), slice(max(-shift, 0), cols - max(shift, 0))


class Minimum(NamedTuple):
    """The lowest point of a parabola: where, in steps from the middle, how low, and how narrow."""

    offset: FloatArray
    least: FloatArray
    curvature: FloatArray  # cost gained a step away

    @classmethod
    def through(cls, before: ArrayLike, middle: ArrayLike, after: ArrayLike) -> "Minimum":
        """Of three neighbours, the middle being the least; NaN where there is no such parabola."""
        first, mid, last = (np.asarray(one, dtype=np.float64) for one in (before, middle, after))
        curvature = 0.5 * (first + last) - mid
        with np.errstate(divide="ignore", invalid="ignore"):
            offset = np.where(curvature > 0, 0.25 * (first - last) / curvature, np.nan)
        return cls(offset, mid - curvature * offset**2, curvature)

    def sigma_px(self, step_px: float, samples: float) -> FloatArray:
        """Deviation of the place, if the cost is a mean square that noise alone keeps from zero.

        A square of residuals that grows by c a step and is r at its least, both means over n
        independent samples, has its minimum known to the root of r / (n c) steps.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.maximum(self.least, 0.0) / self.curvature
        return np.asarray(step_px * np.sqrt(share / samples))


def independent_samples(window_px: int, sigma_px: float) -> float:
    """How many pixels of a window have noise of their own, after a Gaussian prefilter."""
    return max(window_px**2 / max(4.0 * np.pi * sigma_px**2, 1.0), 1.0)


class Matched(NamedTuple):
    """Disparity of each pixel, and how far it is from what the right view says there."""

    disparity_px: FloatArray
    disagreement_px: FloatArray


def block_match(left: FloatArray, right: FloatArray, tried: Hypotheses, window_px: int) -> Matched:
    """Least squares of differences in windows, at whole disparities: plain stereo, as a start.

    Each view is taken less its own mean over the window, so that vignetting does not matter. The
    fraction is from a parabola; the first and the last disparity have none.
    """
    first, second = (
        np.asarray(view - box_mean(view, window_px), dtype=np.float32) for view in (left, right)
    )
    winner = Winner((first.shape[0], first.shape[1]))
    cols = first.shape[1]
    for shift in tried.disparity_px.astype(int):
        column = np.clip(np.arange(cols) - shift, 0, cols - 1)
        winner.add(box_mean((first - second[:, column]) ** 2, window_px), float(shift))
    disparity_px = tried.disparity_px[winner.index] + np.nan_to_num(winner.minimum.offset)
    return Matched(disparity_px, winner.disagreement_px(disparity_px))
