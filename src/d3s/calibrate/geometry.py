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

from d3s.calibrate.anchors import Anchors
from d3s.calibrate.disparity import FrameDisparity, frame_disparity, tilted_frames
from d3s.calibrate.distances import Given, Solution, difference_covariance, fitted_distances
from d3s.calibrate.kinds import Place
from d3s.calibrate.matches import Matches
from d3s.calibrate.rectify import Rectification
from d3s.calibrate.table import FEWEST_FRAMES
from d3s.errors import CalibrationError, InputError
from d3s.rig import Optics
from d3s.types import FloatArray

_CLEAR_SIGMAS, _CLEAR_RULER_M = 4.0, 5e-4
_LARGEST_FACTOR = 2.0  # by which K may differ from the design's


class Geometry(NamedTuple):
    """What disparity means in metres."""

    focal_baseline_px_m: float  # K = s0 B / p
    focal_baseline_sigma_px_m: float
    disparity_offset_px: float  # d∞ of the anchors as they were found; those below have none
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
    anchor_difference_sigma_px: Place  # of x, which is that of d∞, and of y
    depths_m: FloatArray  # (frames,): of the board on the left axis; NaN where left out
    distance_errors_m: FloatArray  # (frames,): of the distances as typed, less the offset
    disparities: tuple[FrameDisparity, ...]
    residuals_px: FloatArray  # (frames,): of the disparity; NaN where left out
    left_out: dict[int, str]

    @property
    def disparity_offset_sigma_px(self) -> float:
        """Standard deviation of `disparity_offset_px`."""
        return self.anchor_difference_sigma_px[0]

    @property
    def rectify_shift_y_px(self) -> float:
        """Shift down of the right view that goes with these anchors: they are such that it is 0."""
        return 0.0

    @property
    def slopes(self) -> Place:
        """Slopes dZ/dX and dZ/dY of the board."""
        across, down = np.tan(self.tilt_rad)
        return float(across), float(down)

    @property
    def applied_ruler_offset_m(self) -> float:
        """Offset to add to distances of the ruler: 0 where it is not applied."""
        return self.ruler_offset_m if self.ruler_is_applied else 0.0


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
    given = Given(disparities, anchors, rectification, typed_m, matches.names)
    wrong = given.wrong_distances()
    out |= wrong
    given = given.without(wrong)
    _check_enough(given.disparities, out, matches.names)
    free = fitted_distances(given, ruler_is_free=True)
    is_clear = abs(free.ruler_m) > max(_CLEAR_SIGMAS * free.sigma_of(-1), _CLEAR_RULER_M)
    is_applied = is_clear if fit_ruler is None else fit_ruler
    fit = free if is_applied else fitted_distances(given, ruler_is_free=False)
    _check_design(fit.focal_baseline, design)
    return _geometry(matches.frames, given, fit, free, is_applied, design, rectification, out)


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
            "the paper's prototype; give your pixel pitch and sensor distance with --design "
            "(design=)."
        )


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
    share = np.linalg.solve(difference_covariance(anchors, rectification), apart)
    new_left = np.array(anchors.left_px) + left @ share
    new_right = np.array(anchors.right_px) - right @ rectification.matrix.T @ share
    return (float(new_left[0]), float(new_left[1])), (float(new_right[0]), float(new_right[1]))


def _tilt(given: Given, fit: Solution, design: Optics) -> tuple[Place, Place]:
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
    given: Given,
    fit: Solution,
    free: Solution,
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
        anchor_difference_sigma_px=(fit.sigma_of(count + 1), rectification.sigma[2]),
        depths_m=depths,
        distance_errors_m=errors,
        disparities=tuple(given.disparities),
        residuals_px=residuals,
        left_out=left_out,
    )
