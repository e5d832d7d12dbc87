"""Plan of an estimate: everything that follows from options, camera and frame size alone."""

from math import hypot
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate.candidates import default_depth_range_m, even_candidates_m
from d3s.estimate.joint.types import Array, DefocusLine
from d3s.estimate.lens_field import (
    BLUR_RADIUS_PX,
    DEFOCUS_PX2,
    SMOOTHING_PX,
    LensField,
    ScaleLimits,
    scale_limits,
)
from d3s.estimate.options import JointOptions
from d3s.rig import Optics
from d3s.rig.calibration import aged_px
from d3s.rig.variance import DisparityVariance
from d3s.types import FloatArray, Mask

_SHARP_PX = 0.5  # smoothing of full-size views without defocus, which hold finer detail

# Sides of the windows of the fit: a step in depth is as wide as the blur.
_DEFOCUSED_WINDOWS_PX, _SHARP_WINDOWS_PX = (9, 23, 57), (5, 9, 23)
# Distance from the disparity of the search that a fit may move, in pixels of the search. Across an
# edge a window is torn between two surfaces, and the search is nearer to the truth.
_MAX_MOVE = 0.5

_EMPTY_INTERVAL = np.inf, -np.inf  # of a scale that is never too coarse

# Limit on the cost volumes; a full frame of the prototype needs 0.06 GB.
_MAX_BYTES = 4_000_000_000
# Assumed rectification error of pinhole pairs, which other software has rectified.
_FOREIGN_RECTIFICATION_PX = 0.1


class Model(NamedTuple):
    """Disparity and defocus of a rig, in pixels of the frame."""

    per_dpt_px: float  # disparity per dioptre
    offset_px: float  # disparity at infinity
    alpha_px2_m: float  # defocus coefficient of the D3 equation
    kappa_dpt: float  # vergence at which both views are blurred alike

    @classmethod
    def of(cls, optics: Optics, *, use_defocus: bool) -> "Model":
        """Return the model of a rig; without defocus both views count as blurred alike."""
        return cls(
            optics.focal_length_px * optics.baseline_m,
            optics.disparity_offset_px,
            optics.alpha_px2_m if use_defocus else 0.0,
            optics.kappa_dpt,
        )

    def defocus_line(self, scale: int) -> DefocusLine:
        """Return half the blur-variance difference, right less left, over the disparity.

        It is alpha (1/Z - kappa), and 1/Z is linear in the disparity. Both are in pixels of the
        scale.
        """
        slope = self.alpha_px2_m / self.per_dpt_px
        constant = -slope * self.offset_px - self.alpha_px2_m * self.kappa_dpt
        return DefocusLine(constant / scale**2, slope / scale)

    def vergence_dpt(self, disparity_px: Array) -> Array:
        """Return 1/Z in dioptres at a disparity."""
        return (disparity_px - self.offset_px) / self.per_dpt_px


class Plan(NamedTuple):
    """Parameters of an estimate that do not depend on the pictures."""

    model: Model
    optics: Optics
    is_sharp: bool  # a pinhole pair: no aperture, no blur
    options: JointOptions
    depth_range_m: tuple[float, float]
    search_scale: int
    cell_px: int  # side of the cells that have a disparity each
    windows_px: tuple[int, ...]  # sides of the windows of the fit, increasing
    max_move_px: float  # distance from the search that a fit may move, in pixels of the frame
    smoothing_px: dict[int, float]  # by scale, in pixels of the frame
    finer_px: dict[
        int, tuple[float, float]
    ]  # by scale, interval of disparities it is too coarse for
    shifts: NDArray[np.int64]  # in pixels of the search scale, consecutive
    allowed: Mask  # shifts that may be chosen
    calibration: DisparityVariance
    field: LensField | None = None  # lenses with errors over the field, if any are known

    @property
    def blur_field(self) -> LensField | None:
        """Lenses whose blur changes over the field."""
        is_used = self.field is not None and self.field.changes_blur and self.options.use_defocus
        return self.field if is_used else None

    @property
    def scale_limits(self) -> tuple[ScaleLimits, ...]:
        """Blur from which on each scale serves, where it changes over the field."""
        scales = sorted(self.finer_px)
        return scale_limits(self.optics, scales, self.options.finest_scale)


def make_plan(
    optics: Optics,
    options: JointOptions,
    shape: tuple[int, int],
    field: LensField | None = None,
    known_sigma_px: float | None = None,
) -> Plan:
    """Make the plan of an estimate.

    Parameters
    ----------
    optics
        The camera.
    options
        Options of the method; values left open are chosen from the camera.
    shape
        Rows and columns of the frame.
    field
        Lenses with errors over the field, if any are known.
    known_sigma_px
        Standard deviation of the disparity by errors of the calibration; that of `field` if left.

    Raises
    ------
    InputError
        When the search would need more memory than `_MAX_BYTES`.
    """
    cols = shape[1]
    is_sharp = optics.aperture_radius_m == 0
    scale = options.search_scale or (1 if is_sharp and options.finest_scale == 1 else 2)
    field = None if is_sharp else field
    by_scale = SMOOTHING_PX if field is None else field.smoothing_px
    finest = options.prefilter_sigma_px or (_SHARP_PX if is_sharp else by_scale[1])
    ends, candidates = _depths(optics, options)
    farthest, nearest = (float(optics.disparity_px(ends[end])) / scale for end in (1, 0))
    # One shift more at each end, so that a valley at the end of the range has two sides.
    width = -(-cols // scale)
    last = min(int(np.ceil(nearest)) + 1, width)
    first = min(max(int(np.floor(farthest)) - 1, -width), last - 2)
    shifts = np.arange(first, last + 1)
    _check_memory(shape, shifts.size, scale)
    model = Model.of(optics, use_defocus=options.use_defocus)
    smoothing = {} if options.finest_scale == 2 else {1: finest}
    if scale > 1:
        smoothing |= {step: by_scale[step] for step in (2, 4)}
    return Plan(
        model=model,
        optics=optics,
        is_sharp=is_sharp,
        options=options,
        depth_range_m=ends,
        search_scale=scale,
        cell_px=1 if scale == 1 else 2,
        windows_px=options.windows_px or (_SHARP_WINDOWS_PX if is_sharp else _DEFOCUSED_WINDOWS_PX),
        max_move_px=_MAX_MOVE * scale,
        smoothing_px=smoothing,
        finer_px={
            step: _finer_px(optics, model, step) if step > options.finest_scale else _EMPTY_INTERVAL
            for step in smoothing
            if step > 1
        },
        shifts=shifts,
        allowed=_allowed(shifts, candidates, optics, scale),
        calibration=_calibration_variance(optics, options, field, known_sigma_px),
        field=field,
    )


def _calibration_variance(
    optics: Optics, options: JointOptions, field: LensField | None, known_sigma_px: float | None
) -> DisparityVariance:
    """Errors of the calibration: by the options, else by what the camera is known to have."""
    if options.rectification_sigma_px is not None:
        return DisparityVariance.of_sigma(options.rectification_sigma_px)
    if optics.aperture_radius_m == 0:
        aged = hypot(_FOREIGN_RECTIFICATION_PX, aged_px(options.calibration_age_days))
        return DisparityVariance.of_sigma(aged)
    if field is None:
        return DisparityVariance.of_sigma(known_sigma_px or 0.0)
    return field.lenses.disparity_variance(optics, known_sigma_px)


def _finer_px(optics: Optics, model: Model, scale: int) -> tuple[float, float]:
    """Return the interval of disparities whose blur is too small for a scale.

    The blur radius is linear in 1/Z, and so in the disparity.
    """
    line = model.defocus_line(1)
    lines = [(float(line.constant), float(line.slope), DEFOCUS_PX2 * (scale / 2) ** 2)]
    for camera in (0, 1):
        one, two = (float(optics.blur_radius_px(1 / dpt, camera)) for dpt in (1.0, 2.0))
        slope = (two - one) / model.per_dpt_px
        constant = one - slope * (model.per_dpt_px + model.offset_px)
        lines.append((constant, slope, BLUR_RADIUS_PX[scale]))
    low, high = -np.inf, np.inf
    for constant, slope, limit in lines:
        if slope == 0:
            if abs(constant) > limit:
                return _EMPTY_INTERVAL
            continue
        ends = sorted(((-limit - constant) / slope, (limit - constant) / slope))
        low, high = max(low, ends[0]), min(high, ends[1])
    return low, high


def _check_memory(shape: tuple[int, int], shifts: int, scale: int) -> None:
    padded_shifts = -(-shifts // 16) * 16
    padded_cols = -(-shape[1] // (32 * scale)) * 32  # the search works in strips of columns
    size = 3 * -(-shape[0] // scale) * padded_cols * padded_shifts  # costs and two-byte path sums
    if size > _MAX_BYTES:
        raise InputError(
            f"a frame of {shape[0]} x {shape[1]} pixels and {shifts} shifts would take "
            f"{size / 1e9:.1f} GB, and {_MAX_BYTES / 1e9:.0f} GB are the limit. Narrow "
            "depth_range_m, set search_scale=2 or 4, or cut the frame into parts."
        )


def _depths(optics: Optics, options: JointOptions) -> tuple[tuple[float, float], FloatArray | None]:
    """Return the ends of the depth range, and the candidates if not all depths are tried."""
    if options.candidates_m is not None:
        candidates = np.asarray(options.candidates_m)
        return (float(candidates[0]), float(candidates[-1])), candidates
    ends = options.depth_range_m or default_depth_range_m(optics)
    return ends, even_candidates_m(ends, options.candidates) if options.candidates else None


def _allowed(
    shifts: NDArray[np.int64], candidates: FloatArray | None, optics: Optics, scale: int
) -> Mask:
    """Return which shifts are less than one pixel from a candidate."""
    if candidates is None:
        return np.ones(shifts.shape, dtype=np.bool_)
    wanted = optics.disparity_px(candidates) / scale
    allowed = np.any(np.abs(shifts[:, None] - wanted[None, :]) < 1, axis=1)
    allowed[[0, -1]] = True  # the two shifts beyond the range, as without candidates
    return np.asarray(allowed)
