"""Rectified stereo: disparity, depth, alignment, and conversion of errors.

Three numbers describe a rectified pair: the focal length in pixels (s0 / p), the baseline in
metres, and the disparity of a point at infinity in pixels. Disparity is x_left - x_right, so nearer
points have larger disparities.
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
    """Disparity x_left - x_right of a point at a depth, in pixels: f B / Z + d_infinity.

    Parameters
    ----------
    depth_m
        Depth Z, in metres.
    focal_length_px
        Focal length f = s0 / p, in pixels.
    baseline_m
        Distance B of the lens centres, in metres.
    disparity_offset_px
        Disparity d_infinity of a point at infinity, in pixels.
    """
    parallax = focal_length_px * baseline_m * vergence_dpt(depth_m)
    return np.asarray(parallax + disparity_offset_px)


def depth_from_disparity_m(
    disparity: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
    disparity_offset_px: float,
) -> FloatArray:
    """Depth of a point with a disparity, in metres; inverse of `disparity_px`.

    Infinite at `disparity_offset_px`, NaN for disparities below it (behind the camera).

    Parameters
    ----------
    disparity
        x_left - x_right, in pixels.
    focal_length_px, baseline_m, disparity_offset_px
        As for `disparity_px`.
    """
    parallax = np.asarray(disparity, dtype=np.float64) - disparity_offset_px
    with np.errstate(divide="ignore"):
        depth = focal_length_px * baseline_m / np.abs(parallax)  # infinite at -0.0, too
    return np.where(parallax >= 0, depth, np.nan)


def disparity_slope_px_per_m(
    depth_m: ArrayLike, *, focal_length_px: float, baseline_m: float
) -> FloatArray:
    """Derivative of the disparity with respect to the depth, -f B / Z², in px/m.

    Parameters
    ----------
    depth_m
        Depth Z, in metres.
    focal_length_px, baseline_m
        As for `disparity_px`.
    """
    return np.asarray(-focal_length_px * baseline_m * vergence_dpt(depth_m) ** 2)


def alignment_shift_px(
    depth_m: ArrayLike,
    virtual_baseline_m: ArrayLike,
    *,
    focal_length_px: float,
    baseline_m: float,
    disparity_offset_px: float,
) -> FloatArray:
    """Shift of the right image, to the right, that leaves a virtual baseline, in pixels.

    Paper Eq. 12, the stereo line. After the shift, a point at `depth_m` has the residual disparity
    ``focal_length_px * virtual_baseline_m / depth_m``.

    Parameters
    ----------
    depth_m
        Candidate depth, in metres.
    virtual_baseline_m
        Baseline that remains after the shift, in metres; of either sign, broadcasts with `depth_m`.
    focal_length_px, baseline_m, disparity_offset_px
        As for `disparity_px`.
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
    """Depth error caused by a small disparity error, in metres, to first order (paper Eq. 18).

    Parameters
    ----------
    disparity_error_px
        Disparity error or standard deviation, in pixels.
    depth_m
        Depth at which the error occurs, in metres.
    focal_length_px, baseline_m
        As for `disparity_px`.
    """
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
    """Disparity error that causes a depth error, in pixels, to first order (paper Eq. 18).

    Parameters
    ----------
    depth_error
        Depth error or standard deviation, in metres.
    depth_m
        Depth at which the error occurs, in metres.
    focal_length_px, baseline_m
        As for `disparity_px`.
    """
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
    """Depth at which a disparity error causes a given depth error, in metres.

    Paper Eq. 18 solved for the depth: the far end of a working range.

    Parameters
    ----------
    depth_error
        Largest acceptable depth error, in metres.
    disparity_error
        Disparity error, the same at all depths, in pixels.
    focal_length_px, baseline_m
        As for `disparity_px`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(depth_error, disparity_error, dtype=np.float64)
    return np.asarray(np.sqrt(ratio * focal_length_px * baseline_m))
