"""What the options and the camera come to, for the joint method."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate.candidates import default_depth_range_m, even_candidates_m
from d3s.estimate.joint.model import Array, Model
from d3s.estimate.options import JointOptions
from d3s.rig import Optics

# Smoothing of the shrunk views, in pixels of the frame: enough that shrinking folds nothing over.
_SMOOTHING_PX = {2: 1.5, 4: 5.0}
# Smoothing of the full ones: a defocused view holds nothing finer, a sharp one does.
_DEFOCUSED_PX, _SHARP_PX = 1.0, 0.5

# From which blur radius on, in pixels of the frame, views are fitted at this scale. Where blur is
# wide nothing is lost by it, and the noise that second derivatives bring is.
_BLUR_PX = {2: 4.5, 4: 6.0}
# Half the difference of the blur variances that a Laplacian stands for well enough, in square
# pixels of the scale it is taken at.
_DEFOCUS_PX2 = 0.7

_NEVER = np.inf, -np.inf  # disparities that are not: no scale is too coarse

# What the volumes of a search may take: a full frame of the prototype needs 0.06 GB.
_LARGEST_BYTES = 4_000_000_000
# What is left of the rectification of a pair that somebody else rectified, in pixels.
_FOREIGN_PX = 0.1


class Plan(NamedTuple):
    """Everything that does not depend on the pictures."""

    model: Model
    optics: Optics
    options: JointOptions
    depth_range_m: tuple[float, float]
    search_scale: int
    cell_px: int  # side of the cells that depth is found for
    smoothing_px: dict[int, float]  # in pixels of the frame, by scale
    finer: dict[int, tuple[float, float]]  # disparities for which a scale is too coarse, by scale
    shifts: NDArray[np.int64]  # in pixels of the search, one apart
    allowed: NDArray[np.bool_]  # which of them
    rectification_sigma_px: float


def make_plan(optics: Optics, options: JointOptions, shape: tuple[int, int]) -> Plan:
    """Plan for a frame of (rows, cols).

    Raises
    ------
    InputError
        When the search would need more memory than `_LARGEST_BYTES`.
    """
    cols = shape[1]
    is_sharp = optics.aperture_radius_m == 0
    scale = options.search_scale or (1 if is_sharp and options.finest_scale == 1 else 2)
    finest = options.prefilter_sigma_px or (_SHARP_PX if is_sharp else _DEFOCUSED_PX)
    told = options.rectification_sigma_px
    ends, candidates = _depths(optics, options)
    farthest, nearest = (float(optics.disparity_px(ends[end])) / scale for end in (1, 0))
    # One more at each end, so that a valley at the end of the range has two sides.
    width = -(-cols // scale)
    last = min(int(np.ceil(nearest)) + 1, width)
    first = min(max(int(np.floor(farthest)) - 1, -width), last - 2)
    shifts = np.arange(first, last + 1)
    _check_memory(shape, shifts.size, scale)
    model = Model.of(optics, use_defocus=options.use_defocus)
    smoothing = {} if options.finest_scale == 2 else {1: finest}
    if scale > 1:
        smoothing |= _SMOOTHING_PX
    return Plan(
        model=model,
        optics=optics,
        options=options,
        depth_range_m=ends,
        search_scale=scale,
        cell_px=1 if scale == 1 else 2,
        smoothing_px=smoothing,
        finer={
            step: _finer(optics, model, step) if step > options.finest_scale else _NEVER
            for step in smoothing
            if step > 1
        },
        shifts=shifts,
        allowed=_allowed(shifts, candidates, optics, scale),
        rectification_sigma_px=_FOREIGN_PX if is_sharp and told is None else told or 0.0,
    )


def _finer(optics: Optics, model: Model, scale: int) -> tuple[float, float]:
    """Ends of the disparities whose blur is too small for a scale.

    The radius of blur is a line over 1/Z, and so over the disparity.
    """
    lines = [(*model.defocus_line(1), _DEFOCUS_PX2 * (scale / 2) ** 2)]
    for camera in (0, 1):
        one, two = (float(optics.blur_radius_px(1 / dpt, camera)) for dpt in (1.0, 2.0))
        slope = (two - one) / model.per_dpt_px
        constant = one - slope * (model.per_dpt_px + model.offset_px)
        lines.append((constant, slope, _BLUR_PX[scale]))
    low, high = -np.inf, np.inf
    for constant, slope, limit in lines:
        if slope == 0:
            if abs(constant) > limit:
                return _NEVER
            continue
        ends = sorted(((-limit - constant) / slope, (limit - constant) / slope))
        low, high = max(low, ends[0]), min(high, ends[1])
    return low, high


def _check_memory(shape: tuple[int, int], shifts: int, scale: int) -> None:
    deep = -(-shifts // 16) * 16
    wide = -(-shape[1] // (32 * scale)) * 32  # in strips of columns
    size = 3 * -(-shape[0] // scale) * wide * deep  # bytes, and sums of two bytes
    if size > _LARGEST_BYTES:
        raise InputError(
            f"a frame of {shape[0]} x {shape[1]} pixels and {shifts} shifts would take "
            f"{size / 1e9:.1f} GB, and {_LARGEST_BYTES / 1e9:.0f} GB are the limit. Narrow "
            "depth_range_m, set search_scale=2 or 4, or cut the frame into parts."
        )


def _depths(optics: Optics, options: JointOptions) -> tuple[tuple[float, float], Array | None]:
    """Ends of the range, and the candidates in it if they are not all."""
    if options.candidates_m is not None:
        candidates = np.asarray(options.candidates_m)
        return (float(candidates[0]), float(candidates[-1])), candidates
    ends = options.depth_range_m or default_depth_range_m(optics)
    return ends, even_candidates_m(ends, options.candidates) if options.candidates else None


def _allowed(
    shifts: NDArray[np.int64], candidates: Array | None, optics: Optics, scale: int
) -> NDArray[np.bool_]:
    """Shifts that a candidate lies at, or next to."""
    if candidates is None:
        return np.ones(shifts.shape, dtype=np.bool_)
    wanted = optics.disparity_px(candidates) / scale
    allowed = np.any(np.abs(shifts[:, None] - wanted[None, :]) < 1, axis=1)
    allowed[[0, -1]] = True  # beyond the range, as without candidates
    return np.asarray(allowed)
