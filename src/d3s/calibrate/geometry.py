"""Geometry: what disparity means in metres, where the ruler begins, and how the board is tilted.

Three things tell how far away the board is in frame j: the ruler, Z_j = D_j + o; its disparity at
the left anchor, d_j = d∞ + K / Z_j with K = s0 B / p; and how much it shrinks from frame to frame,
which is Z_j / Z_k to some millionths (`anchors`). They are fitted together. Shrinking knows nothing
of the ruler nor of d∞, so it tells both apart, and which distance was typed wrong; only the scale
of all distances is the ruler's alone.

How precise the ruler is is found from the fit. The anchors were found without disparity and say
that d∞ is zero, as precisely as they are known; that is one more line of the fit. What it still
finds moves both anchors, each by as much as it is uncertain, so that infinity has no disparity and
the rows need no shift.

Where the ruler begins (o) is always fitted and reported. It is believed only if it is far beyond
its standard deviation and half a millimetre, unless one asks for it: most rulers begin somewhere
on the camera's body, and the lens is then centimetres behind; but who measured from the lens should
not get another distance than the one that was typed.

Lenses that distort stretch the logarithms of Z_j / Z_k by a common share; what `anchors` may have
left of that is an unknown of its own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from d3s.calibrate.anchors import Anchors, Expansion
from d3s.calibrate.disparity import FrameDisparity, frame_disparity, tilted_frames
from d3s.calibrate.matches import Matches, Place
from d3s.calibrate.rectify import Rectification
from d3s.errors import CalibrationError, InputError
from d3s.optics.lens import FloatArray
from d3s.rig import Optics

_ROUNDS = 30
_SETTLED = 1e-9
_OUTLIER_SIGMAS = 5.0
_LEAST_WRONG = 0.002  # of the distance: a smaller slip is not worth a word
_FINEST_RULER_M = 1e-5
_FINEST_EXPANSION = 3e-6  # what alignment is good for, whatever the scatter within a pair
_LARGEST_SHARE_WRONG = 1 / 3
_FEWEST_FRAMES = 4
_CLEAR_SIGMAS, _CLEAR_RULER_M = 4.0, 5e-4
_LARGEST_FACTOR = 2.0  # by which K may differ from the design's


class Geometry(NamedTuple):
    """What disparity means in metres."""

    focal_baseline_px_m: float  # K = s0 B / p
    focal_baseline_sigma_px_m: float
    disparity_offset_px: float  # d∞ of the anchors as they were found; those below have none
    disparity_offset_sigma_px: float
    ruler_offset_m: float  # to be added to the distances as they were typed
    ruler_offset_sigma_m: float
    ruler_is_applied: bool
    ruler_sigma_m: float  # how precise single distances are
    baseline_m: float  # if the sensor distance is as designed
    sensor_distance_m: float  # if the baseline is as designed
    tilt_rad: Place  # by which the right, and the lower, side of the board is farther away
    tilt_sigma_rad: Place
    anchor_left_px: Place  # corrected
    anchor_right_px: Place
    rectify_shift_y_px: float  # that goes with them
    anchor_difference_sigma_px: Place
    depths_m: FloatArray  # (frames,): of the board on the left axis; NaN where left out
    distance_errors_m: FloatArray  # (frames,): of the distances as typed, less the offset
    disparities: tuple[FrameDisparity, ...]
    residuals_px: FloatArray  # (frames,): of the disparity; NaN where left out
    left_out: dict[int, str]


def find_geometry(
    matches: Matches,
    anchors: Anchors,
    rectification: Rectification,
    distances_m: Sequence[float],
    design: Optics,
    *,
    fit_ruler: bool | None = None,
) -> Geometry:
    """What disparity means in metres, from all frames at once.

    Parameters
    ----------
    distances_m
        As the ruler says, one for each frame.
    design
        The camera as designed: its pixel pitch is believed, and the sensor distance or the
        baseline is, to find the other.
    fit_ruler
        Whether the ruler begins elsewhere than at the lenses: None if only a clear offset counts.

    Raises
    ------
    InputError
        When there is not one distance for each frame.
    CalibrationError
        When the lenses are exchanged, or the distances do not fit what the frames show.
    """
    if len(distances_m) != matches.frames:
        raise InputError(
            f"distances_m has {len(distances_m)} values for {matches.frames} frames. "
            "Give one for each frame, those that were left out too."
        )
    out = dict(rectification.left_out)
    pairs = [pair for pair in matches.across if pair.first not in out]
    places = (anchors.left_px, anchors.right_px)
    disparities = [frame_disparity(pair, rectification, places) for pair in pairs]
    _check_enough(disparities, out, matches.names)
    _check_order(disparities, distances_m)
    turned = tilted_frames(disparities, design.focal_length_px)
    disparities = [one for one in disparities if one.frame not in turned]
    out |= turned
    _check_enough(disparities, out, matches.names)
    typed_m = np.asarray(distances_m, np.float64)
    given = _Given(disparities, anchors, rectification, typed_m, matches.names)
    wrong = given.wrong_distances()
    out |= wrong
    given = given.without(wrong)
    free = _fitted(given, ruler_is_free=True)
    is_clear = abs(free.ruler_m) > max(_CLEAR_SIGMAS * free.sigma_of(-1), _CLEAR_RULER_M)
    is_applied = is_clear if fit_ruler is None else fit_ruler
    fit = free if is_applied else _fitted(given, ruler_is_free=False)
    _check_design(fit.focal_baseline, design)
    return _geometry(matches.frames, given, fit, free, is_applied, design, rectification, out)


def _check_enough(
    disparities: Sequence[FrameDisparity], left_out: dict[int, str], names: tuple[str, ...]
) -> None:
    if len(disparities) < _FEWEST_FRAMES:
        reasons = "; ".join(f"{names[frame]}: {why}" for frame, why in left_out.items())
        raise CalibrationError(
            f"{len(disparities)} frames are left to tell distances by, and at least "
            f"{_FEWEST_FRAMES} are needed. {reasons}."
        )


def _check_order(disparities: Sequence[FrameDisparity], distances_m: Sequence[float]) -> None:
    inverse = np.array([1 / distances_m[one.frame] for one in disparities])
    disparity = np.array([one.disparity_px for one in disparities])
    if np.corrcoef(inverse, disparity)[0, 1] < 0:
        raise CalibrationError(
            f"the disparity falls from {disparity[np.argmin(inverse)]:.1f} px far away to "
            f"{disparity[np.argmax(inverse)]:.1f} px near by, where it should grow: the lenses are "
            "exchanged, or the frames are upside down. Give the other half of the frame as that of "
            "the left lens, left_lens."
        )


class _Given(NamedTuple):
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
        return float(np.sqrt(_difference_covariance(self.anchors, self.rectification)[0, 0]))

    def without(self, frames: dict[int, str]) -> "_Given":
        """All of it but of some frames."""
        kept = [one for one in self.disparities if one.frame not in frames]
        return self._replace(disparities=kept)

    def wrong_distances(self) -> dict[int, str]:
        """Frames whose distance does not fit what they show."""
        shown = self.shown_m()
        scale, offset = _robust_line(shown, self.typed_m)
        expected = scale * shown + offset
        away = self.typed_m - expected
        spread = 1.4826 * float(np.median(np.abs(away)))
        limit = np.maximum(_OUTLIER_SIGMAS * spread, _LEAST_WRONG * self.typed_m)
        wrong = {
            frame: f"its distance is {typed:g} m, and the other frames say {fits:.4g} m"
            for frame, typed, fits, far, most in zip(
                self.frames, self.typed_m, expected, away, limit, strict=True
            )
            if abs(far) > most
        }
        # An offset beyond a third of the nearest distance is no ruler that begins elsewhere.
        is_odd = not scale > 0 or abs(offset) > self.typed_m.min() / 3 + 0.05
        if is_odd or len(wrong) > _LARGEST_SHARE_WRONG * len(away):
            raise CalibrationError(
                f"the distances do not fit what the frames show: {len(wrong)} of {len(away)} are "
                "beside the line. "
                + "; ".join(f"{self.names[frame]}: {why}" for frame, why in list(wrong.items())[:3])
                + ". Are the frames in the order of the table?"
            )
        return wrong

    def shown_m(self) -> FloatArray:
        """Distances up to a scale, from how the board shrinks."""
        frames = self.frames
        place = {frame: number for number, frame in enumerate(frames)}
        expansions = self.expansions
        rows = np.zeros((len(expansions) + 1, len(frames)))
        right = np.zeros(len(expansions) + 1)
        for number, one in enumerate(expansions):
            weight = 1 / np.hypot(one.sigma, _FINEST_EXPANSION)
            rows[number, place[one.first]] += weight
            rows[number, place[one.second]] -= weight
            right[number] = weight * one.log_ratio
        # What no expansion reaches has its distance from the disparity: a weak line for each.
        disparity = np.array([max(one.disparity_px, 0.1) for one in self.disparities])
        weak = np.eye(len(frames)) - 1 / len(frames)
        logs = -np.log(disparity)
        rows = np.concatenate([rows[:-1], weak, np.full((1, len(frames)), 1.0)])
        right = np.concatenate([right[:-1], logs - logs.mean(), [0.0]])
        return np.asarray(np.exp(np.linalg.lstsq(rows, right, rcond=None)[0]))


def _robust_line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Slope and offset that most points agree on: the median of the slopes of pairs (Theil-Sen)."""
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    is_apart = np.abs(run) > 0.05 * float(np.ptp(x))
    slope = float(np.median((y[second] - y[first])[is_apart] / run[is_apart]))
    return slope, float(np.median(y - slope * x))


class _Solution(NamedTuple):
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


def _fitted(given: _Given, *, ruler_is_free: bool) -> _Solution:
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
    ruler_sigma = max(1.4826 * float(np.median(np.abs(depths + offset - given.typed_m))), 1e-4)
    for _ in range(_ROUNDS):
        rows, left = _lines(given, values, ruler_sigma, ruler_is_free)
        step = np.linalg.lstsq(rows, left, rcond=None)[0]
        values = values + step
        typed = np.exp(values[:count]) - (values[-1] if ruler_is_free else 0.0)
        spread = 1.4826 * float(np.median(np.abs(typed - given.typed_m)))
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
    return _Solution(values, np.asarray(covariance, np.float64), count, ruler_is_free, ruler_sigma)


def _lines(
    given: _Given, values: FloatArray, ruler_sigma_m: float, ruler_is_free: bool
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


def _check_design(focal_baseline_px_m: float, design: Optics) -> None:
    designed = design.focal_length_px * design.baseline_m
    if not 1 / _LARGEST_FACTOR < focal_baseline_px_m / designed < _LARGEST_FACTOR:
        raise CalibrationError(
            f"s0 B / p comes out as {focal_baseline_px_m:.4g} px m, and the camera as designed has "
            f"{designed:.4g} px m. Are the distances in metres, and is it the right rig file?"
        )


def _difference_covariance(anchors: Anchors, rectification: Rectification) -> FloatArray:
    """Covariance of what the anchors say about infinity, as a place in the left view."""
    left, right = anchors.covariances_px2
    matrix = rectification.matrix
    return np.asarray(left + matrix @ right @ matrix.T)


def _moved_anchors(
    anchors: Anchors, rectification: Rectification, infinity_px: float
) -> tuple[Place, Place]:
    """Anchors after which infinity has no disparity and rows need no shift.

    Each moves by its share of the variance, which is what least squares would do.
    """
    angle = rectification.baseline_angle_rad
    apart = infinity_px * np.array([np.cos(angle), np.sin(angle)])
    apart[1] += rectification.shift_y_px
    left, right = anchors.covariances_px2
    share = np.linalg.solve(_difference_covariance(anchors, rectification), apart)
    new_left = np.array(anchors.left_px) + left @ share
    new_right = np.array(anchors.right_px) - right @ rectification.matrix.T @ share
    return (float(new_left[0]), float(new_left[1])), (float(new_right[0]), float(new_right[1]))


def _tilt(given: _Given, fit: _Solution, design: Optics) -> tuple[Place, Place]:
    """Tilt of the board from how disparity changes over the picture, and its sigma."""
    slopes = np.array([one.per_px for one in given.disparities])
    sigmas = np.array([one.per_px_sigma for one in given.disparities])
    size = (fit.focal_baseline / fit.depths_m)[:, np.newaxis]
    tilts = -slopes / size * design.focal_length_px
    sigmas = sigmas / size * design.focal_length_px
    weights = sigmas**-2
    mean = np.sum(weights * tilts, axis=0) / np.sum(weights, axis=0)
    scatter = np.sum(weights * (tilts - mean) ** 2, axis=0) / max(len(tilts) - 1, 1)
    sigma = np.sqrt(np.maximum(scatter, 1.0) / np.sum(weights, axis=0))
    angle = np.arctan(mean)
    return (float(angle[0]), float(angle[1])), (float(sigma[0]), float(sigma[1]))


def _geometry(
    frames: int,
    given: _Given,
    fit: _Solution,
    free: _Solution,
    is_applied: bool,
    design: Optics,
    rectification: Rectification,
    left_out: dict[int, str],
) -> Geometry:
    count = fit.frames
    depths, errors, residuals = (np.full(frames, np.nan) for _ in range(3))
    depths[given.frames] = fit.depths_m
    errors[given.frames] = given.typed_m + fit.ruler_m - fit.depths_m
    disparity = np.array([one.disparity_px for one in given.disparities])
    residuals[given.frames] = disparity - fit.infinity_px - fit.focal_baseline / fit.depths_m
    tilt, tilt_sigma = _tilt(given, fit, design)
    left_px, right_px = _moved_anchors(given.anchors, rectification, fit.infinity_px)
    return Geometry(
        focal_baseline_px_m=fit.focal_baseline,
        focal_baseline_sigma_px_m=fit.sigma_of(count),
        disparity_offset_px=fit.infinity_px,
        disparity_offset_sigma_px=fit.sigma_of(count + 1),
        ruler_offset_m=free.ruler_m,
        ruler_offset_sigma_m=free.sigma_of(-1),
        ruler_is_applied=is_applied,
        ruler_sigma_m=fit.ruler_sigma_m,
        baseline_m=fit.focal_baseline / design.focal_length_px,
        sensor_distance_m=fit.focal_baseline * design.pixel_pitch_m / design.baseline_m,
        tilt_rad=tilt,
        tilt_sigma_rad=tilt_sigma,
        anchor_left_px=left_px,
        anchor_right_px=right_px,
        rectify_shift_y_px=0.0,
        anchor_difference_sigma_px=(fit.sigma_of(count + 1), rectification.sigma[2]),
        depths_m=depths,
        distance_errors_m=errors,
        disparities=tuple(given.disparities),
        residuals_px=residuals,
        left_out=left_out,
    )
