"""Correction of the views' difference for lenses that differ from place to place.

The a and b of a calibrated rig hold on the axis of the lenses. Elsewhere, blur and disparity of a
candidate depth differ from those on the axis by known amounts. At the true candidate these take a
known part from the difference of the views: C_xx S_xx + 2 C_xy S_xy + C_yy S_yy by blur, C being
the change of half the difference of the blur variances, and r S_x by the disparity r that the
lenses add. With this part added again, the depth equation holds as on the axis.
"""

import numpy as np
from numpy.typing import ArrayLike

from d3s.estimate.lens_field import LensField
from d3s.types import FloatArray

GRID_PX = 32
"""Distance of the places at which corrections are computed; they are interpolated between these."""


def corrections(
    field: LensField, x: ArrayLike, y: ArrayLike, depth_m: ArrayLike, scale: int
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
    scale
        1, 2 or 4: size of the detail that the prefilter leaves.
    """
    optics, lenses = field.optics, field.lenses
    vergence, disparity_px = 1 / np.asarray(depth_m), np.asarray(optics.disparity_px(depth_m))
    added_px = field.remaining_disparity_px(x, y, vergence, scale)
    here = field.half_difference_px2(x, y, disparity_px)
    left, right = (lenses.blur_px2(camera, 0.0, 0.0, vergence, optics) for camera in (0, 1))
    on_axis = 0.5 * (right - left)
    on_axis = on_axis.reshape(3, *(1,) * (here.ndim - on_axis.ndim), *vergence.shape)
    return np.stack([*(here - on_axis), added_px])


def grid_places(field: LensField) -> tuple[FloatArray, FloatArray]:
    """X (cols,) and y (rows, 1) of every `GRID_PX` pixels, from the first to beyond the last."""
    radius = field.lenses.field_radius_px
    rows, cols = (
        (GRID_PX * np.arange((size - 1) // GRID_PX + 2) - (size - 1) / 2) / radius
        for size in field.frame_shape
    )
    return np.asarray(cols), np.asarray(rows[:, np.newaxis])


def correction_grids(field: LensField, depths_m: FloatArray, scale: int) -> FloatArray:
    """Corrections (depths, 4, rows, cols) at the places of `grid_places`.

    Parameters
    ----------
    field
        Lenses and frame.
    depths_m
        Candidate depths.
    scale
        1, 2 or 4: size of the detail that the prefilter leaves.
    """
    x, y = grid_places(field)
    return np.stack([corrections(field, x, y, float(depth_m), scale) for depth_m in depths_m])
