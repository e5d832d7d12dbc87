"""Geometry: disparity in metres, offset of the ruler, tilt of the board.

Three measurements give the depth of the board in frame j: the ruler, Z_j = D_j + o; the disparity
at the left anchor, d_j = d∞ + K / Z_j with K = s0 B / p; and the expansion from frame to frame,
which is measured to some millionths (`anchors`). They are fitted together. Expansion depends
neither on the ruler nor on d∞, so it shows which distance is wrong; only the common scale of all
distances depends on the ruler alone.

The precision of the ruler is found from the fit. The anchors were found without disparity and say
that d∞ is zero, to within their standard deviation; that is one more equation of the fit. The d∞
that it still finds moves both anchors, each in proportion to its variance, so that infinity has no
disparity and the rows need no shift.

The offset o of the ruler is always fitted and reported. By default it is applied only if it exceeds
four standard deviations and half a millimetre: most rulers begin somewhere on the camera's body,
with the lens centimetres behind; but distances that were measured from the lens should stay as
typed.

Lenses that distort stretch the logarithms of Z_j / Z_k by a common share, and the magnification of
lenses with clipped pupils or coma changes with the vergence. Disparity on the axis has little of
this: the point is on the axis of one lens, and off that of the other by the disparity. So what
expansion is wrong by is unknown in the fit (`distance_fit`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from d3s.calibrate.anchors import Anchors
from d3s.calibrate.distance_fit import (
    PERFECT_LENSES,
    REAL_LENSES,
    DistanceData,
    FrameDisparity,
    Solution,
    difference_covariance,
    fit_distances,
    frame_disparity,
    tilted_frames,
)
from d3s.calibrate.distance_table import FEWEST_FRAMES
from d3s.calibrate.matches import Matches, Place, place_of
from d3s.calibrate.rectification import Rectification
from d3s.errors import CalibrationError, InputError
from d3s.rig import Optics
from d3s.types import FloatArray

# An offset of the ruler beyond both is applied by default.
_CLEAR_SIGMAS, _CLEAR_RULER_M = 4.0, 5e-4
# Standard deviation of the zero of the ruler over that of a distance: the same hand sets both.
_ZERO_PER_DISTANCE = 0.5
_LARGEST_MISFIT = 2.0  # mean square of disparity residuals over sigma, with perfect lenses
_LARGEST_FACTOR = 2.0  # between K and that of the design
_LEAST_TILT_SIGMA_RAD = 2e-4  # of the tilt by motion


class Geometry(NamedTuple):
    """Relation of disparity and depth, with standard deviations."""

    focal_baseline_px_m: float  # K = s0 B / p
    focal_baseline_sigma_px_m: float
    disparity_offset_px: float  # d∞ before the anchors were corrected; 0 after it
    ruler_offset_m: float  # to add to the distances of the ruler
    ruler_offset_sigma_m: float
    ruler_is_applied: bool
    ruler_sigma_m: float  # standard deviation of single distances
    baseline_m: float  # if the sensor distance is as designed
    sensor_distance_m: float  # if the baseline is as designed
    tilt_rad: Place  # positive if the right, or the lower, side of the board is farther away
    tilt_sigma_rad: Place
    anchor_left_px: Place  # corrected for d∞
    anchor_right_px: Place
    anchor_difference_sigma_px: Place  # of x, which is that of d∞, and of y
    disparity_errors_px: FloatArray  # (errors, 3): independent ones by errors of the depths, of one
    # standard deviation each, as factors of 1, u and u² of the vergence u
    depths_m: FloatArray  # (frames,): of the board on the left axis; NaN where rejected
    distance_errors_m: FloatArray  # (frames,): distance by the ruler plus offset, minus depth
    disparities: tuple[FrameDisparity, ...]
    residuals_px: FloatArray  # (frames,): of the disparity; NaN where rejected
    left_out: dict[int, str]

    @property
    def disparity_offset_sigma_px(self) -> float:
        """Standard deviation of `disparity_offset_px`."""
        return self.anchor_difference_sigma_px[0]

    @property
    def slopes(self) -> Place:
        """Slopes dZ/dX and dZ/dY of the board."""
        return place_of(np.tan(self.tilt_rad))


def find_geometry(
    matches: Matches,
    anchors: Anchors,
    rectification: Rectification,
    distances_m: Sequence[float],
    design: Optics,
    *,
    fit_ruler: bool | None = None,
    distorts: bool = False,
) -> Geometry:
    """Find the relation of disparity and depth from all frames at once.

    Distances are by the ruler, one for each frame, rejected frames included. Of baseline and sensor
    distance, each is found with the other as built. `fit_ruler` True: apply the offset of the
    ruler; False: do not; None: apply it if it is significant. If the lenses distort, they are real
    ones, whose pupils spoil the expansion. Raises a `CalibrationError` if the lenses are exchanged,
    the distances do not fit the frames, or K is far from that of the design.
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
    data = DistanceData(disparities, anchors, rectification, typed_m, matches.names)
    wrong = data.wrong_distances()
    out |= wrong
    data = data.without(wrong)
    _check_enough(data.disparities, out, matches.names)
    fits = _fit_with_lenses(data, fit_ruler, distorts=distorts)
    _check_design(fits.fit.focal_baseline, design)
    return _geometry(data, fits, design, out)


class _Fits(NamedTuple):
    fit: Solution
    free: Solution  # with a free offset of the ruler
    is_applied: bool  # whether this offset is applied
    by_zero_m: FloatArray  # (frames,): change of the depths by the error of the ruler's zero


def _fit_with_lenses(data: DistanceData, fit_ruler: bool | None, *, distorts: bool) -> _Fits:
    """Fit depths.

    Errors of real lenses are unknowns only where the lenses distort, or where disparity and
    expansion disagree without them: they cost precision.
    """
    for lens in (REAL_LENSES,) if distorts else (PERFECT_LENSES, REAL_LENSES):
        free = fit_distances(data, lens, ruler_is_free=True)
        is_clear = abs(free.ruler_m) > max(_CLEAR_SIGMAS * free.sigma_of(-1), _CLEAR_RULER_M)
        is_applied = is_clear if fit_ruler is None else fit_ruler
        fit = free if is_applied else fit_distances(data, lens, ruler_is_free=False)
        if fit.disparity_misfit < _LARGEST_MISFIT:
            break
    if is_applied:
        return _Fits(fit, free, is_applied, np.zeros(fit.frames))
    moved = data.moved(_ZERO_PER_DISTANCE * fit.ruler_sigma_m)
    other = fit_distances(moved, lens, ruler_is_free=False)
    return _Fits(fit, free, is_applied, other.depths_m - fit.depths_m)


def _check_enough(
    disparities: Sequence[FrameDisparity], left_out: dict[int, str], names: tuple[str, ...]
) -> None:
    if len(disparities) < FEWEST_FRAMES:
        reasons = "; ".join(f"{names[frame]}: {why}" for frame, why in left_out.items())
        raise CalibrationError(
            f"{len(disparities)} frames are left to tell distances by, and at least "
            f"{FEWEST_FRAMES} are needed.{f' {reasons}.' if reasons else ''}"
        )


def _check_order(disparities: Sequence[FrameDisparity], distances_m: Sequence[float]) -> None:
    inverse = np.array([1 / distances_m[one.frame] for one in disparities])
    disparity = np.array([one.disparity_px for one in disparities])
    if np.corrcoef(inverse, disparity)[0, 1] < 0:
        raise CalibrationError(
            f"the disparity falls from {disparity[np.argmin(inverse)]:.1f} px far away to "
            f"{disparity[np.argmax(inverse)]:.1f} px near by, where it should grow: the lenses are "
            "exchanged. Give the other half of the frame as that of the left lens, with left_lens= "
            "or --left-lens; or exchange the regions, if you gave these."
        )


def _check_design(focal_baseline_px_m: float, design: Optics) -> None:
    designed = design.focal_length_px * design.baseline_m
    if not 1 / _LARGEST_FACTOR < focal_baseline_px_m / designed < _LARGEST_FACTOR:
        raise CalibrationError(
            f"s0 B / p comes out as {focal_baseline_px_m:.4g} px m, and the camera as designed has "
            f"{designed:.4g} px m: they may differ by a factor of {_LARGEST_FACTOR:g}. Are the "
            "distances in metres, and is the design that of this camera? Without a design it is "
            "the paper's prototype; give your pixel pitch and sensor distance with --rig "
            "(design=)."
        )


def _moved_anchors(
    anchors: Anchors, rectification: Rectification, infinity_px: float
) -> tuple[Place, Place]:
    """Anchors with which infinity has no disparity and rows need no shift.

    Each moves in proportion to its variance, as least squares would do.
    """
    angle = rectification.baseline_angle_rad
    apart = infinity_px * np.array([np.cos(angle), np.sin(angle)])
    apart[1] += rectification.shift_y_px
    left, right = anchors.covariances_px2
    share = np.linalg.solve(difference_covariance(anchors, rectification), apart)
    new_left = np.array(anchors.left_px) + left @ share
    new_right = np.array(anchors.right_px) - right @ rectification.matrix.T @ share
    return place_of(new_left), place_of(new_right)


def _tilt(data: DistanceData, fit: Solution, design: Optics) -> tuple[Place, Place]:
    """Tilt of the board in radians and its standard deviation.

    Two measurements are averaged with their weights: the gradient of disparity, whose scatter
    between frames shows lenses of unlike scale, and the motion from frame to frame in each view.
    """
    slopes = np.array([one.per_px for one in data.disparities])
    sigmas = np.array([one.per_px_sigma for one in data.disparities])
    size = (fit.focal_baseline / fit.depths_m)[:, np.newaxis]
    tilts = -slopes / size * design.focal_length_px
    sigmas = sigmas / size * design.focal_length_px
    weights = sigmas**-2
    mean = np.sum(weights * tilts, axis=0) / np.sum(weights, axis=0)
    # A scale that differs between the lenses adds the same gradient at all depths: the scatter of
    # the frames, not the number of frames, is the error.
    scatter = np.sum(weights * (tilts - mean) ** 2, axis=0) / np.sum(weights, axis=0)
    sigma = np.sqrt(1 / np.sum(weights, axis=0) + scatter)
    left, right = (
        np.array(view.tilt_per_px) * design.focal_length_px
        for view in (data.anchors.left, data.anchors.right)
    )
    by_motion = 0.5 * (left + right)
    motion_sigma = np.hypot(0.5 * (left - right), _LEAST_TILT_SIGMA_RAD)
    share = motion_sigma**-2 / (motion_sigma**-2 + sigma**-2)
    tilt = share * by_motion + (1 - share) * mean
    both = (motion_sigma**-2 + sigma**-2) ** -0.5
    return place_of(np.arctan(tilt)), place_of(both)


def disparity_in_powers(
    disparity_px: FloatArray, vergence_dpt: FloatArray, powers: int = 3
) -> FloatArray:
    """Factors (powers, ...) of 1, u, u² that fit disparities (frames, ...) at vergences u."""
    terms = np.vander(vergence_dpt, powers, increasing=True)
    return np.asarray(np.linalg.lstsq(terms, disparity_px, rcond=None)[0])


def _disparity_errors_px(fit: Solution, by_zero_m: FloatArray) -> FloatArray:
    """Errors (errors, 3) of a map that is fitted to boards with these depths.

    Of a depth that is too large by the share e, the map subtracts e K / Z too little.

    `by_zero_m` (frames,) is the change of the depths if the zero of the ruler is off by a standard
    deviation.
    """
    vergence = 1 / fit.depths_m
    shares = fit.covariance[: fit.frames, : fit.frames]
    shares = shares + np.outer(by_zero_m * vergence, by_zero_m * vergence)
    factors = disparity_in_powers(np.diag(fit.focal_baseline * vergence), vergence)
    values, directions = np.linalg.eigh(factors @ shares @ factors.T)
    return np.asarray((directions * np.sqrt(np.maximum(values, 0.0))).T)


def _geometry(
    data: DistanceData, fits: _Fits, design: Optics, left_out: dict[int, str]
) -> Geometry:
    fit, free = fits.fit, fits.free
    count = fit.frames
    depths, errors, residuals = np.full((3, len(data.distances_m)), np.nan)
    depths[data.frames] = fit.depths_m
    errors[data.frames] = data.typed_m + fit.ruler_m - fit.depths_m
    disparity = np.array([one.disparity_px for one in data.disparities])
    residuals[data.frames] = disparity - fit.infinity_px - fit.focal_baseline / fit.depths_m
    tilt, tilt_sigma = _tilt(data, fit, design)
    left_px, right_px = _moved_anchors(data.anchors, data.rectification, fit.infinity_px)
    return Geometry(
        focal_baseline_px_m=fit.focal_baseline,
        focal_baseline_sigma_px_m=fit.sigma_of(count),
        disparity_offset_px=fit.infinity_px,
        ruler_offset_m=free.ruler_m,
        ruler_offset_sigma_m=free.sigma_of(-1),
        ruler_is_applied=fits.is_applied,
        ruler_sigma_m=fit.ruler_sigma_m,
        baseline_m=fit.focal_baseline / design.focal_length_px,
        sensor_distance_m=fit.focal_baseline * design.pixel_pitch_m / design.baseline_m,
        tilt_rad=tilt,
        tilt_sigma_rad=tilt_sigma,
        anchor_left_px=left_px,
        anchor_right_px=right_px,
        anchor_difference_sigma_px=(fit.sigma_of(count + 1), data.rectification.sigma[2]),
        disparity_errors_px=_disparity_errors_px(fit, fits.by_zero_m),
        depths_m=depths,
        distance_errors_m=errors,
        disparities=tuple(data.disparities),
        residuals_px=residuals,
        left_out=left_out,
    )
