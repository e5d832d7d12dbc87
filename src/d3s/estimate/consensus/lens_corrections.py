"""Correction of the views' difference for lenses that differ from place to place.

The a and b of a calibrated rig hold on the axis of the lenses. Elsewhere, blur and disparity of a
candidate depth differ from those on the axis by known amounts. At the true candidate these take a
known part from the difference of the views: C_xx S_xx + 2 C_xy S_xy + C_yy S_yy by blur, C being
the change of half the difference of the blur variances, and r S_x by the disparity r that the
lenses add. With this part added again, the depth equation holds as on the axis.

Coma shifts a wave by less the finer it is, for blur of variance V by the share 1 - k² V / 3. The
maps of the disparity hold for the coarsest waves, and the rest follows from the mean k² of the
detail that blur and prefilter leave.
"""

import numpy as np
from numpy.typing import ArrayLike

from d3s.estimate.lens_field import LensField, scale_of_smoothing
from d3s.types import FloatArray

GRID_PX = 32
"""Distance of the places at which corrections are computed; they are interpolated between these."""


_LEAST_PREFILTER_PX = 1.0  # pixels and lenses smooth as much, without a filter


def corrections(
    field: LensField, x: ArrayLike, y: ArrayLike, depth_m: ArrayLike, prefilter_px: float
) -> FloatArray:
    """Factors (4, ...) of S_xx, 2 S_xy, S_yy and S_x in the correction at a depth.

    Parameters
    ----------
    field
        Lenses and frame.
    x, y
        Places in the left view, in units of the field's radius.
    depth_m
        Depth, in metres: one, or depths that go with the last axes of the places.
    prefilter_px
        Standard deviation of the Gaussian that the views were smoothed by.
    """
    optics, lenses = field.optics, field.lenses
    vergence, disparity_px = 1 / np.asarray(depth_m), np.asarray(optics.disparity_px(depth_m))
    left, right = field.blur_px2(x, y, disparity_px)
    left_0, right_0 = (lenses.blur_px2(camera, 0.0, 0.0, vergence, optics) for camera in (0, 1))
    smooth_px2 = max(prefilter_px, _LEAST_PREFILTER_PX) ** 2
    here = _blur_factors(left, right, smooth_px2)
    on_axis = _blur_factors(left_0, right_0, smooth_px2)
    on_axis = on_axis.reshape(3, *(1,) * (here.ndim - on_axis.ndim), *vergence.shape)
    scale = scale_of_smoothing(prefilter_px)
    added_px = field.remaining_disparity_px(x, y, vergence, scale)
    skew_px3 = field.coma_difference(x, y, disparity_px, 1)[0]
    added_px = added_px - skew_px3 * _mean_k2(left, right, smooth_px2)
    return np.stack([*(here - on_axis), added_px])


def _mean_k2(left: FloatArray, right: FloatArray, smooth_px2: float) -> FloatArray:
    """Mean k² of the first derivatives of smoothed views; that of the second ones is twice that.

    For textures whose contrast falls as 1/k, as that of most does.
    """
    return np.asarray(1 / (_mean_blur_px2(left, right) + smooth_px2))


def _mean_blur_px2(left: FloatArray, right: FloatArray) -> FloatArray:
    """Mean of the blur variances of the views and directions."""
    return np.asarray(0.25 * (left[0] + left[2] + right[0] + right[2]))


def _blur_factors(left: FloatArray, right: FloatArray, smooth_px2: float) -> FloatArray:
    """Factors (3, ...) of the second derivatives, from the blur variances of both views.

    Half the difference of the variances. Disks that are wide for the detail blur more than a
    Gaussian of their variance V, so that their difference counts 1 + k² V / 6 times.
    """
    k2 = 2 * _mean_k2(left, right, smooth_px2)
    return np.asarray(0.5 * (right - left) * (1 + k2 * _mean_blur_px2(left, right) / 6))


def grid_places(field: LensField) -> tuple[FloatArray, FloatArray]:
    """X (cols,) and y (rows, 1) of every `GRID_PX` pixels, from the first to beyond the last."""
    radius = field.lenses.field_radius_px
    rows, cols = (
        (GRID_PX * np.arange((size - 1) // GRID_PX + 2) - (size - 1) / 2) / radius
        for size in field.frame_shape
    )
    return np.asarray(cols), np.asarray(rows[:, np.newaxis])


def correction_grids(field: LensField, depths_m: FloatArray, prefilter_px: float) -> FloatArray:
    """Corrections (depths, 4, rows, cols) at the places of `grid_places`.

    Parameters
    ----------
    field
        Lenses and frame.
    depths_m
        Candidate depths.
    prefilter_px
        Standard deviation of the Gaussian that the views were smoothed by.
    """
    x, y = grid_places(field)
    return np.stack(
        [corrections(field, x, y, float(depth_m), prefilter_px) for depth_m in depths_m]
    )
