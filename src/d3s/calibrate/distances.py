"""Distances of the board in all frames: what ruler, disparity and shrinking say, fitted together.

The unknowns are the depths of the frames, K, d∞, the stretch that distortion leaves and, where it
is free, the ruler's offset; `geometry` says what they mean.
"""

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from d3s.calibrate.anchors import Anchors, Expansion
from d3s.calibrate.disparity import FrameDisparity
from d3s.calibrate.rectify import Rectification
from d3s.calibrate.robust import robust_sigma
from d3s.errors import CalibrationError
from d3s.types import FloatArray

_ROUNDS = 30
_SETTLED = 1e-9
_OUTLIER_SIGMAS = 5.0
_LEAST_WRONG = 0.002  # of the distance: a smaller slip is not worth a word
_FINEST_RULER_M = 1e-5
_FINEST_EXPANSION = 3e-6  # what alignment is good for, whatever the scatter within a pair
_LARGEST_SHARE_WRONG = 1 / 3
# A ruler that begins farther from the lenses than this is none: of the nearest distance, and more.
_LARGEST_OFFSET_SHARE, _LARGEST_OFFSET_M = 1 / 3, 0.05


class Given(NamedTuple):
    """What is known of the distances."""

    disparities: Sequence[FrameDisparity]
    anchors: Anchors
    rectification: Rectification
    distances_m: FloatArray
    names: tuple[str, ...]

    @property
    def frames(self) -> list[int]:
        """Numbers of the frames."""
        return [one.frame for one in self.disparities]

    @property
    def expansions(self) -> list[Expansion]:
        """Expansions of the left view between these frames."""
        frames = set(self.frames)
        return [
            one
            for one in self.anchors.left.expansions
            if one.first in frames and one.second in frames
        ]

    @property
    def typed_m(self) -> FloatArray:
        """Distances of these frames."""
        return self.distances_m[self.frames]

    @property
    def infinity_sigma_px(self) -> float:
        """How precisely the anchors say that infinity has no disparity."""
        return float(np.sqrt(difference_covariance(self.anchors, self.rectification)[0, 0]))

    def without(self, frames: dict[int, str]) -> "Given":
        """All of it but of some frames."""
        kept = [one for one in self.disparities if one.frame not in frames]
        return self._replace(disparities=kept)

    def wrong_distances(self) -> dict[int, str]:
        """Frames whose distance does not fit what they show.

        Raises
        ------
        CalibrationError
            When the distances as a whole do not fit.
        """
        shown = self.shown_m()
        scale, offset = _robust_line(shown, self.typed_m)
        if not scale > 0:
            _refuse_order(scale * float(np.median(shown) / np.median(self.typed_m)))
        expected = scale * shown + offset
        away = self.typed_m - expected
        limit = np.maximum(_OUTLIER_SIGMAS * robust_sigma(away), _LEAST_WRONG * self.typed_m)
        wrong = {
            frame: f"its distance is {typed:g} m, and the other frames say {fits:.4g} m"
            for frame, typed, fits, far, most in zip(
                self.frames, self.typed_m, expected, away, limit, strict=True
            )
            if abs(far) > most
        }
        if len(wrong) > _LARGEST_SHARE_WRONG * len(away):
            self._refuse_many(wrong)
        _check_offset(offset, float(self.typed_m.min()))
        return wrong

    def _refuse_many(self, wrong: dict[int, str]) -> NoReturn:
        some = [f"{self.names[frame]}: {why}" for frame, why in list(wrong.items())[:3]]
        raise CalibrationError(
            f"the distances do not fit what the frames show: {len(wrong)} of {len(self.frames)} "
            f"are beside the line, and at most a third may be. {'; '.join(some)}. Are the frames "
            "in the order of the table?"
        )

    def shown_m(self) -> FloatArray:
        """Distances up to a scale, from how the board shrinks."""
        frames = self.frames
        place = {frame: number for number, frame in enumerate(frames)}
        expansions = self.expansions
        rows, right = np.zeros((len(expansions), len(frames))), np.zeros(len(expansions))
        for number, one in enumerate(expansions):
            weight = 1 / np.hypot(one.sigma, _FINEST_EXPANSION)
            rows[number, place[one.first]] += weight
            rows[number, place[one.second]] -= weight
            right[number] = weight * one.log_ratio
        # What no expansion reaches has its distance from the disparity: a weak line for each. All
        # of them leave the scale open, so one more sets it.
        disparity = np.array([max(one.disparity_px, 0.1) for one in self.disparities])
        weak = np.eye(len(frames)) - 1 / len(frames)
        logs = -np.log(disparity)
        rows = np.concatenate([rows, weak, np.full((1, len(frames)), 1.0)])
        right = np.concatenate([right, logs - logs.mean(), [0.0]])
        return np.asarray(np.exp(np.linalg.lstsq(rows, right, rcond=None)[0]))


def _refuse_order(slope: float) -> NoReturn:
    raise CalibrationError(
        "the distances do not fit what the frames show: most of them fall where the board goes "
        f"away, with a slope of {slope:.2f} where it should be 1. Are the frames in the order of "
        "the table?"
    )


def _check_offset(offset_m: float, nearest_m: float) -> None:
    most_m = _LARGEST_OFFSET_SHARE * nearest_m + _LARGEST_OFFSET_M
    if abs(offset_m) > most_m:
        side = "behind" if offset_m > 0 else "before"
        raise CalibrationError(
            "the distances do not fit what the frames show: by these, the ruler begins "
            f"{abs(offset_m):.3g} m {side} the lenses, and at most {most_m:.3g} m are believed, a "
            f"third of the nearest distance and {_LARGEST_OFFSET_M:g} m. Measure from the lenses "
            "to the board."
        )


def _robust_line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Slope and offset that most points agree on: the median of the slopes of pairs (Theil-Sen)."""
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    is_apart = np.abs(run) > 0.05 * float(np.ptp(x))
    slope = float(np.median((y[second] - y[first])[is_apart] / run[is_apart]))
    return slope, float(np.median(y - slope * x))


class Solution(NamedTuple):
    """Values in the order: log depth of each frame, K, d∞, stretch, the ruler's offset if free."""

    values: FloatArray
    covariance: FloatArray
    frames: int
    ruler_is_free: bool
    ruler_sigma_m: float

    @property
    def depths_m(self) -> FloatArray:
        """Depths of the board."""
        return np.asarray(np.exp(self.values[: self.frames]))

    @property
    def focal_baseline(self) -> float:
        """K, in px m."""
        return float(self.values[self.frames])

    @property
    def infinity_px(self) -> float:
        """Disparity of infinity."""
        return float(self.values[self.frames + 1])

    @property
    def ruler_m(self) -> float:
        """Offset of the ruler."""
        return float(self.values[-1]) if self.ruler_is_free else 0.0

    def sigma_of(self, place: int) -> float:
        """Standard deviation of one of the values."""
        return float(np.sqrt(self.covariance[place, place]))


def fitted_distances(given: Given, *, ruler_is_free: bool) -> Solution:
    """Least squares of ruler, disparity and expansion, with the ruler's precision as found."""
    count = len(given.frames)
    shown = given.shown_m()
    slope, offset = _robust_line(shown, given.typed_m)
    if not ruler_is_free:
        slope, offset = float(np.median(given.typed_m / shown)), 0.0
    depths = slope * shown
    disparity = np.array([one.disparity_px for one in given.disparities])
    focal_baseline, infinity = _robust_line(1 / depths, disparity)
    start = [*np.log(depths), focal_baseline, infinity, 0.0]
    values = np.array([*start, -offset] if ruler_is_free else start)
    ruler_sigma = max(robust_sigma(depths + offset - given.typed_m), 1e-4)
    for _ in range(_ROUNDS):
        rows, left = _lines(given, values, ruler_sigma, ruler_is_free)
        step = np.linalg.lstsq(rows, left, rcond=None)[0]
        values = values + step
        typed = np.exp(values[:count]) - (values[-1] if ruler_is_free else 0.0)
        spread = robust_sigma(typed - given.typed_m)
        new_sigma = max(spread * np.sqrt(count / max(count - 2, 1)), _FINEST_RULER_M)
        is_settled = abs(new_sigma / ruler_sigma - 1) < 1e-3
        # Half the way in logarithms: the ruler's weight and its residuals follow each other.
        ruler_sigma = float(np.sqrt(ruler_sigma * new_sigma))
        if is_settled and float(np.abs(step[:count]).max()) < _SETTLED:
            break
    rows, left = _lines(given, values, ruler_sigma, ruler_is_free)
    spare = max(len(left) - len(values), 1)
    inflated = max(1.0, float(np.sum(np.minimum(left**2, 9.0))) / spare)
    covariance = np.linalg.pinv(rows.T @ rows, hermitian=True) * inflated
    return Solution(values, np.asarray(covariance, np.float64), count, ruler_is_free, ruler_sigma)


def _lines(
    given: Given, values: FloatArray, ruler_sigma_m: float, ruler_is_free: bool
) -> tuple[FloatArray, FloatArray]:
    """Rows of the linear equations for the next step, each divided by its standard deviation."""
    frames = given.frames
    count, unknowns = len(frames), len(values)
    place = {frame: number for number, frame in enumerate(frames)}
    depths, focal_baseline, infinity = np.exp(values[:count]), values[count], values[count + 1]
    number = np.arange(count)
    by_ruler = np.zeros((count, unknowns))
    by_ruler[number, number] = depths
    if ruler_is_free:
        by_ruler[:, -1] = -1.0
    ruler_m = values[-1] if ruler_is_free else 0.0
    ruler_left = given.typed_m + ruler_m - depths
    by_disparity = np.zeros((count, unknowns))
    by_disparity[number, number] = -focal_baseline / depths
    by_disparity[:, count] = 1 / depths
    by_disparity[:, count + 1] = 1.0
    disparity = np.array([one.disparity_px for one in given.disparities])
    sigma = np.array([one.sigma_px for one in given.disparities])
    disparity_left = disparity - infinity - focal_baseline / depths
    expansions = given.expansions
    by_expansion = np.zeros((len(expansions), unknowns))
    expansion_left = np.empty(len(expansions))
    for line, one in enumerate(expansions):
        j, k = place[one.first], place[one.second]
        weight = 1 / np.hypot(one.sigma, _FINEST_EXPANSION)
        by_expansion[line, j], by_expansion[line, k] = weight, -weight
        by_expansion[line, count + 2] = weight * one.log_ratio
        expected = values[j] - values[k] + values[count + 2] * one.log_ratio
        expansion_left[line] = weight * (one.log_ratio - expected)
    # What the anchors say of infinity, and of how much distortion is left.
    by_anchors = np.zeros((2, unknowns))
    sigmas = np.array([given.infinity_sigma_px, max(given.anchors.left.stretch_sigma, 1e-7)])
    by_anchors[[0, 1], [count + 1, count + 2]] = 1 / sigmas
    rows = [
        _huber(by_ruler / ruler_sigma_m, ruler_left / ruler_sigma_m),
        _huber(by_disparity / sigma[:, np.newaxis], disparity_left / sigma),
        _huber(by_expansion, expansion_left),
        (by_anchors, -values[count + 1 : count + 3] / sigmas),
    ]
    return np.concatenate([part[0] for part in rows]), np.concatenate([part[1] for part in rows])


def _huber(rows: FloatArray, left: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Equations with less weight where they are far off; what is too far off by chance is rare."""
    share = np.sqrt(np.minimum(1.0, 2.0 / np.maximum(np.abs(left), 1e-12)))
    return rows * share[:, np.newaxis], left * share


def difference_covariance(anchors: Anchors, rectification: Rectification) -> FloatArray:
    """Covariance of what the anchors say about infinity, as a place in the left view."""
    left, right = anchors.covariances_px2
    matrix = rectification.matrix
    return np.asarray(left + matrix @ right @ matrix.T)
