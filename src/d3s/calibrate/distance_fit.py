"""Disparity of each frame, and the fit of all distances to ruler, disparity and expansion.

A tilted board has 1 / Z, and so disparity, linear over the picture: d = d∞ + (K / Z_j) (1 - t·u).
Lenses that distort bend this plane, so a quadratic is fitted; its value at the left anchor is the
disparity of the frame.

The unknowns of the fit of all distances are the depth of each frame, K, d∞, three errors of the
expansion by the lens and, where it is free, the offset of the ruler; `geometry` explains them.
The magnification of a lens whose pupil is clipped, or that has coma, changes with the vergence
u = 1/Z beside that of a perfect one: the logarithm of an expansion is wrong by a share of itself,
by p (u_j - u_k) and by q ((u_j - m)² - (u_k - m)²), with m the mean vergence of the boards.
"""

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from d3s.calibrate.anchors import Anchors, Expansion
from d3s.calibrate.matches import PairMatches, Place
from d3s.calibrate.rectification import Rectification
from d3s.calibrate.robust import huber_weighted, robust_line, robust_sigma, robust_sigmas
from d3s.errors import CalibrationError
from d3s.types import FloatArray

_OUTLIER_SIGMAS = 5.0
_DISPARITY_ROUNDS = 5
_LARGEST_TILT_CHANGE_RAD = np.radians(1.0)
_ROUNDS = 30
_SETTLED = 1e-9  # largest change of a log depth in the last step
_LEAST_WRONG = 0.002  # smallest error of a distance, as a share of it, that is reported as wrong
_FINEST_RULER_M = 1e-5
_FINEST_EXPANSION = 3e-6  # smallest sigma of a log ratio that the registration of windows allows
_LARGEST_SHARE_WRONG = 1 / 3  # of all distances
_STRETCH = 2  # index of the first error of the expansion, behind the depths, K and d∞
# Largest offset of a ruler: this share of the nearest distance, plus this length.
_LARGEST_OFFSET_SHARE, _LARGEST_OFFSET_M = 1 / 3, 0.05


class LensPrior(NamedTuple):
    """Standard deviations of what lenses add to expansion and disparity on the axis."""

    pupil_m: float  # p
    bow_m2: float  # q
    disparity_px: float  # not linear in 1/Z: pupils off the axis, and coma
    infinity_px: float  # of the disparity of infinity, beside what the anchors say


# Pupils of which 4 % is cut off at the rim of the field have p = -0.03 and 0.04 mm: those of the
# tuning camera without and with curvature of the field, from true distances. Coma is corrected
# before: q and the third number are what a fifth of it leaves.
REAL_LENSES = LensPrior(1e-4, 1e-4, 0.005, 0.03)
PERFECT_LENSES = LensPrior(1e-9, 1e-9, 0.0, 0.0)


class FrameDisparity(NamedTuple):
    """Disparity of one frame at the left anchor, and its gradient over the picture."""

    frame: int
    disparity_px: float
    sigma_px: float
    per_px: Place  # gradient in x and y: pixels of disparity per pixel
    per_px_sigma: Place
    residual_px: float  # RMS over the windows


def frame_disparity(
    pair: PairMatches, rectification: Rectification, anchors: tuple[Place, Place]
) -> FrameDisparity:
    """Fit a quadratic to the disparities of a frame, rejecting outliers.

    The anchors are (x, y) of the left and of the right one in the raw frame.
    """
    left, right = rectification.rectified(pair.first_px, pair.second_px, anchors)
    apart = left[:, 0] - right[:, 0]
    size = float(np.abs(left).max())
    x, y = left.T / size
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)
    keep = np.ones(len(left), dtype=np.bool_)
    for _ in range(_DISPARITY_ROUNDS):
        weights = keep / pair.sigma_px
        rows = terms * weights[:, np.newaxis]
        values = np.linalg.lstsq(rows, apart * weights, rcond=None)[0]
        away = apart - terms @ values
        sizes = np.abs(away) / pair.sigma_px
        spread = max(robust_sigma(sizes[keep]), 1e-9)
        keep = sizes < _OUTLIER_SIGMAS * spread
    sigma = spread * np.sqrt(np.diag(np.linalg.pinv(rows.T @ rows, hermitian=True)))
    return FrameDisparity(
        frame=pair.first,
        disparity_px=float(values[0]),
        sigma_px=float(sigma[0]),
        per_px=(float(values[1]) / size, float(values[2]) / size),
        per_px_sigma=(float(sigma[1]) / size, float(sigma[2]) / size),
        residual_px=float(np.sqrt(np.mean(away[keep] ** 2))),
    )


def tilted_frames(disparities: Sequence[FrameDisparity], focal_length_px: float) -> dict[int, str]:
    """Frames whose tilt differs from that of most frames, with the reason."""
    tilts = np.array([one.per_px for one in disparities]) * -focal_length_px
    sigmas = np.array([one.per_px_sigma for one in disparities]) * focal_length_px
    size = np.array([one.disparity_px for one in disparities])[:, np.newaxis]
    tilts, sigmas = tilts / size, np.abs(sigmas / size)
    away = tilts - np.median(tilts, axis=0)
    # Between frames, an uneven board and the distortion add to the scatter of the windows.
    spread = robust_sigmas(away)
    limit = np.maximum(_LARGEST_TILT_CHANGE_RAD, _OUTLIER_SIGMAS * np.hypot(sigmas, spread))
    return {
        one.frame: "the board is tilted by "
        f"{np.degrees(turn[0]):+.1f}° sideways and {np.degrees(turn[1]):+.1f}° up and down against "
        "the other frames"
        for one, turn, is_out in zip(
            disparities, away, np.any(np.abs(away) > limit, axis=1), strict=True
        )
        if is_out
    }


class DistanceData(NamedTuple):
    """Measurements that distances are fitted to."""

    disparities: Sequence[FrameDisparity]
    anchors: Anchors
    rectification: Rectification
    distances_m: FloatArray  # (all frames,): by the ruler
    names: tuple[str, ...]

    @property
    def frames(self) -> list[int]:
        """Numbers of the frames that are fitted."""
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
        """Distances by the ruler of the frames that are fitted."""
        return self.distances_m[self.frames]

    @property
    def infinity_sigma_px(self) -> float:
        """Standard deviation of the disparity of infinity, which is 0 by the anchors."""
        return float(np.sqrt(difference_covariance(self.anchors, self.rectification)[0, 0]))

    def moved(self, offset_m: float) -> "DistanceData":
        """Measurements by a ruler whose zero lies elsewhere."""
        return self._replace(distances_m=self.distances_m + offset_m)

    def without(self, frames: dict[int, str]) -> "DistanceData":
        """Measurements without some frames."""
        kept = [one for one in self.disparities if one.frame not in frames]
        return self._replace(disparities=kept)

    def wrong_distances(self) -> dict[int, str]:
        """Frames whose distance by the ruler does not fit their expansion, with the reason.

        Raises a `CalibrationError` if more than a third of the distances do not fit, or their order
        or offset is wrong.
        """
        relative = self.relative_distances_m()
        scale, offset = robust_line(relative, self.typed_m)
        if not scale > 0:
            _refuse_order(scale * float(np.median(relative) / np.median(self.typed_m)))
        expected = scale * relative + offset
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

    def relative_distances_m(self) -> FloatArray:
        """Distances up to a common scale, from the expansion between frames."""
        frames = self.frames
        place = {frame: number for number, frame in enumerate(frames)}
        expansions = self.expansions
        rows, right = np.zeros((len(expansions), len(frames))), np.zeros(len(expansions))
        for number, one in enumerate(expansions):
            weight = 1 / np.hypot(one.sigma, _FINEST_EXPANSION)
            rows[number, place[one.first]] += weight
            rows[number, place[one.second]] -= weight
            right[number] = weight * one.log_ratio
        # A weak equation for each frame takes its distance from the disparity, for frames without
        # an expansion. One more equation sets the scale, which the others leave open.
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


class Solution(NamedTuple):
    """Fitted values: log depths, K, d∞, stretch, p, q, and the ruler's offset if it is free."""

    values: FloatArray
    covariance: FloatArray
    frames: int
    ruler_is_free: bool
    ruler_sigma_m: float
    disparity_misfit: float  # mean square of the residuals of the disparity, over sigma

    @property
    def depths_m(self) -> FloatArray:
        """Depth of the board in each frame."""
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
        """Standard deviation of the value at an index."""
        return float(np.sqrt(self.covariance[place, place]))


def fit_distances(data: DistanceData, lens: LensPrior, *, ruler_is_free: bool) -> Solution:
    """Fit depths by weighted least squares; the precision of the ruler is found from the fit."""
    count = len(data.frames)
    relative = data.relative_distances_m()
    slope, offset = robust_line(relative, data.typed_m)
    if not ruler_is_free:
        slope, offset = float(np.median(data.typed_m / relative)), 0.0
    depths = slope * relative
    disparity = np.array([one.disparity_px for one in data.disparities])
    focal_baseline, infinity = robust_line(1 / depths, disparity)
    start = [*np.log(depths), focal_baseline, infinity, 0.0, 0.0, 0.0]
    values = np.array([*start, -offset] if ruler_is_free else start)
    ruler_sigma = max(robust_sigma(depths + offset - data.typed_m), 1e-4)
    for _ in range(_ROUNDS):
        rows, residuals = _equations(data, values, lens, ruler_sigma, ruler_is_free)
        step = np.linalg.lstsq(rows, residuals, rcond=None)[0]
        values = values + step
        typed = np.exp(values[:count]) - (values[-1] if ruler_is_free else 0.0)
        spread = robust_sigma(typed - data.typed_m)
        new_sigma = max(spread * np.sqrt(count / max(count - 2, 1)), _FINEST_RULER_M)
        is_settled = abs(new_sigma / ruler_sigma - 1) < 1e-3
        # Half the way in logarithms: weight and residuals of the ruler depend on each other.
        ruler_sigma = float(np.sqrt(ruler_sigma * new_sigma))
        if is_settled and float(np.abs(step[:count]).max()) < _SETTLED:
            break
    rows, residuals = _equations(data, values, lens, ruler_sigma, ruler_is_free)
    spare = max(len(residuals) - len(values), 1)
    inflated = max(1.0, float(np.sum(np.minimum(residuals**2, 9.0))) / spare)
    covariance = np.linalg.pinv(rows.T @ rows, hermitian=True) * inflated
    # The equations of the ruler come first, then those of the disparity.
    misfit = float(np.mean(residuals[count : 2 * count] ** 2))
    return Solution(
        values, np.asarray(covariance, np.float64), count, ruler_is_free, ruler_sigma, misfit
    )


def _equations(
    data: DistanceData,
    values: FloatArray,
    lens: LensPrior,
    ruler_sigma_m: float,
    ruler_is_free: bool,
) -> tuple[FloatArray, FloatArray]:
    """Linear equations of the next step, (equations, unknowns), and their residuals.

    Both are divided by the standard deviation of each equation.
    """
    count, unknowns = len(data.frames), len(values)
    depths, focal_baseline, infinity = np.exp(values[:count]), values[count], values[count + 1]
    number = np.arange(count)
    by_ruler = np.zeros((count, unknowns))
    by_ruler[number, number] = depths
    if ruler_is_free:
        by_ruler[:, -1] = -1.0
    ruler_m = values[-1] if ruler_is_free else 0.0
    ruler_residual = data.typed_m + ruler_m - depths
    by_disparity = np.zeros((count, unknowns))
    by_disparity[number, number] = -focal_baseline / depths
    by_disparity[:, count] = 1 / depths
    by_disparity[:, count + 1] = 1.0
    disparity = np.array([one.disparity_px for one in data.disparities])
    sigma = np.hypot([one.sigma_px for one in data.disparities], lens.disparity_px)
    disparity_residual = disparity - infinity - focal_baseline / depths
    by_expansion, expansion_residual = _expansion_equations(data, values)
    # Priors: of the disparity of infinity and the stretch by the anchors, and of the pupil.
    errors = slice(count + 1, count + _STRETCH + 3)
    by_priors = np.zeros((4, unknowns))
    stretch_sigma = max(data.anchors.left.stretch_sigma, 1e-7)
    infinity_sigma = float(np.hypot(data.infinity_sigma_px, lens.infinity_px))
    sigmas = np.array([infinity_sigma, stretch_sigma, lens.pupil_m, lens.bow_m2])
    by_priors[:, errors] = np.diag(1 / sigmas)
    by_anchors, by_lens = np.split(-values[errors] / sigmas, [2])
    rows = [
        huber_weighted(by_ruler / ruler_sigma_m, ruler_residual / ruler_sigma_m),
        huber_weighted(by_disparity / sigma[:, np.newaxis], disparity_residual / sigma),
        huber_weighted(by_expansion, expansion_residual),
        (by_priors[:2], by_anchors),
        huber_weighted(by_priors[2:], by_lens),  # other lenses may have far larger errors
    ]
    return np.concatenate([part[0] for part in rows]), np.concatenate([part[1] for part in rows])


def _expansion_equations(data: DistanceData, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Equations of the expansions, (expansions, unknowns), and their residuals, over sigma."""
    frames, expansions = data.frames, data.expansions
    count, place = len(frames), {frame: number for number, frame in enumerate(frames)}
    vergence = np.exp(-values[:count])
    bow = (vergence - vergence.mean()) ** 2
    first = count + _STRETCH
    rows, residual = np.zeros((len(expansions), len(values))), np.empty(len(expansions))
    for row, one in enumerate(expansions):
        j, k = place[one.first], place[one.second]
        errors = np.array([one.log_ratio, vergence[j] - vergence[k], bow[j] - bow[k]])
        rows[row, [j, k]] = 1.0, -1.0
        rows[row, first : first + 3] = errors
        expected = values[j] - values[k] + values[first : first + 3] @ errors
        weight = 1 / np.hypot(one.sigma, _FINEST_EXPANSION)
        rows[row] *= weight
        residual[row] = weight * (one.log_ratio - expected)
    return rows, residual


def difference_covariance(anchors: Anchors, rectification: Rectification) -> FloatArray:
    """Covariance (2, 2) of the difference of the anchors, in px² of the left view."""
    left, right = anchors.covariances_px2
    matrix = rectification.matrix
    return np.asarray(left + matrix @ right @ matrix.T)
