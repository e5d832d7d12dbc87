"""Two views side by side: disparity, depth, and the error of one made into that of the other.

A rectified pair is three numbers: the focal length in pixels (s0 / p), the baseline in metres, and
the disparity of a point at infinity in pixels. Left minus right, so that nearer is larger.
"""

import numpy as np
from numpy.typing import ArrayLike

from d3s.optics.thin_lens import vergence_dpt
from d3s.types import FloatArray


def disparity_px(
    depth_m: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
    disparity_offset_px: float,
) -> FloatArray:
    """x_left - x_right of a point at a depth, in pixels."""
    parallax = focal_length_px * baseline_m * vergence_dpt(depth_m)
    return np.asarray(parallax + disparity_offset_px)


def depth_from_disparity_m(
    disparity: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
    disparity_offset_px: float,
) -> FloatArray:
    """Depth of a point with a disparity in pixels; NaN where it would lie behind the camera."""
    parallax = np.asarray(disparity, dtype=np.float64) - disparity_offset_px
    with np.errstate(divide="ignore"):
        depth = focal_length_px * baseline_m / np.abs(parallax)  # infinite at -0.0, too
    return np.where(parallax >= 0, depth, np.nan)


def disparity_slope_px_per_m(
    depth_m: ArrayLike, *, focal_length_px: float, baseline_m: float
) -> FloatArray:
    """Derivative of the disparity to the depth: negative, and falling with the depth squared."""
    return np.asarray(-focal_length_px * baseline_m * vergence_dpt(depth_m) ** 2)


def alignment_shift_px(
    depth_m: ArrayLike,
    virtual_baseline_m: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
    disparity_offset_px: float,
) -> FloatArray:
    """Shift of the right image to the right that leaves a virtual baseline, in pixels.

    Paper Eq. 12, the stereo line. After it a point at that depth has a residual disparity of
    `focal_length_px * virtual_baseline_m / depth_m`.
    """
    removed_m = baseline_m - np.asarray(virtual_baseline_m, dtype=np.float64)
    return np.asarray(focal_length_px * removed_m * vergence_dpt(depth_m) + disparity_offset_px)


def depth_error_m(
    disparity_error_px: ArrayLike,
    depth_m: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
) -> FloatArray:
    """Depth error that a small disparity error makes at a depth, to first order (paper Eq. 18)."""
    slope = disparity_slope_px_per_m(
        depth_m, focal_length_px=focal_length_px, baseline_m=baseline_m
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(disparity_error_px, -slope, dtype=np.float64))


def disparity_error_px(
    depth_error: ArrayLike,
    depth_m: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
) -> FloatArray:
    """Disparity error that makes a given depth error, in metres, at a depth; Eq. 18 solved."""
    slope = disparity_slope_px_per_m(
        depth_m, focal_length_px=focal_length_px, baseline_m=baseline_m
    )
    return np.asarray(np.multiply(depth_error, -slope, dtype=np.float64))


def farthest_depth_m(
    depth_error: ArrayLike,
    disparity_error: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
) -> FloatArray:
    """Depth at which a constant disparity error, in pixels, makes a given depth error, in metres.

    Eq. 18 solved for the depth: the far end of a working range.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(depth_error, disparity_error, dtype=np.float64)
    return np.asarray(np.sqrt(ratio * focal_length_px * baseline_m))
