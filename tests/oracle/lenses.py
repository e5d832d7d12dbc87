"""Blur and disparity of lenses over the field in NumPy, from the lens maps themselves."""

import numpy as np

from d3s.estimate.joint.types import COMA_NOISE, Array, Counts
from d3s.estimate.lens_field import LensField, ScaleLimits, widest

_STEP_PX = 1e-3  # of the central difference by the disparity


def blur_differences(disparity: Array, field: LensField, scale: int, cell_side: int) -> Array:
    """Return the planes `BlurPlane` (planes, rows, cols), in pixels of the scale.

    `HIGHER` is 0.
    """
    disparity_px = np.float64(scale) * disparity
    places = field.places(disparity.shape, scale * cell_side)
    before, here, after = (
        field.half_difference_px2(*places, disparity_px + step) for step in (-_STEP_PX, 0, _STEP_PX)
    )
    slope = (after - before) / (2 * _STEP_PX)
    across, mixed, down = here
    square = across**2 + 2 * mixed**2 + down**2
    coma = field.coma_difference(*places, disparity_px, scale)
    even = np.sqrt(
        (2 * square + (across + down) ** 2) / (8 * scale**4)
        + COMA_NOISE * (coma[0] ** 2 + coma[1] ** 2)
    )
    higher = np.zeros_like(even)
    return np.stack([*(here / scale**2), higher, *(slope / scale), *coma, even])


def scales_by_blur(
    disparity_px: Array,
    field: LensField,
    cell_px: int,
    limits: tuple[ScaleLimits, ...],
) -> Counts:
    """Return the coarsest scale at which each cell may be fitted: 1, 2 or 4."""
    left, right = field.blur_px2(*field.places(disparity_px.shape, cell_px), disparity_px)
    blur = np.maximum(widest(left), widest(right))
    difference = widest(0.5 * (right - left))
    out = np.ones(disparity_px.shape, dtype=np.uint8)
    for scale, blur_px2, difference_px2 in limits:
        out[(blur > blur_px2) | (difference > difference_px2)] = scale
    return out


def remaining_disparity(disparity_px: Array, field: LensField, cell_px: int, scale: int) -> Array:
    """Return the disparity (rows, cols) that lenses add to that of the depth."""
    x, y = field.places(disparity_px.shape, cell_px)
    found = np.zeros(disparity_px.shape)
    # The maps are of the depth, which is known only without the disparity that they add.
    for _ in range(2):
        vergence = field.vergence_dpt(disparity_px - found)
        found = field.lenses.remaining_disparity_px(
            x, y, vergence, field.optics, field.correction.maps_px(scale)
        )
    return found
