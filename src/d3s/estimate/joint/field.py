"""Operations on lenses whose blur and disparity change over the field.

Half the difference of the blur variances, right less left, is a tensor at the place and disparity
of each cell. It takes the place of the line over the disparity that perfect lenses have.

A spot with coma is skewed: it shifts a wave of frequency k by b (1 - k² s² / 3), b being the shift
of the light and s² the blur variance. The views are blurred differently, so that detail is shifted
otherwise in one than in the other, by an amount that depends on the texture. In the difference of
the views it is a third derivative of the image, times `COMA_X` and `COMA_Y`. The formula holds for
waves that are long against the blur and the pixels; `LensField.coma_difference` has what acts.
"""

from enum import IntEnum
from typing import Protocol

from d3s.estimate.joint.types import Array, Counts
from d3s.estimate.lens_field import LensField, ScaleLimits


class BlurPlane(IntEnum):
    """Planes of the difference of blur of each cell."""

    XX = 0  # half the difference of the blur variances, right less left, along x
    XY = 1
    YY = 2
    HIGHER = 3  # rows by which the right view lies higher
    XX_SLOPE = 4  # derivative of the first three by the disparity
    XY_SLOPE = 5
    YY_SLOPE = 6
    COMA_X = 7  # third of coma times blur variance, left less right, along x
    COMA_Y = 8
    EVEN = 9  # difference, alike in all directions, that passes as much noise into the residual


COMA_NOISE = 9.5 / 20
"""Variance that a derivative of the Laplacian makes of white noise, over that of the Laplacian."""


class FieldOperations(Protocol):
    """Blur and disparity of lenses at the place and disparity of each cell."""

    def blur_differences(
        self, disparity: Array, field: LensField, scale: int, cell_side: int
    ) -> Array:
        """Return the planes `BlurPlane` (planes, rows, cols), in pixels of the scale.

        `HIGHER` is 0.

        Parameters
        ----------
        disparity
            Disparity of each cell (rows, cols), in pixels of the scale.
        field
            Lenses and frame.
        scale
            Frame pixels per pixel of the scale: 1, 2 or 4.
        cell_side
            Pixels of the scale per cell, along each axis.
        """

    def coarsest_scales(
        self,
        disparity_px: Array,
        field: LensField,
        cell_px: int,
        limits: tuple[ScaleLimits, ...],
    ) -> Counts:
        """Return the coarsest scale at which each cell may be fitted: 1, 2 or 4.

        Parameters
        ----------
        disparity_px
            Disparity of each cell (rows, cols), in pixels of the frame.
        field
            Lenses and frame.
        cell_px
            Side of a cell in pixels of the frame.
        limits
            Blur from which on a scale serves, of increasing scales.
        """

    def remaining_disparity(
        self, disparity_px: Array, field: LensField, cell_px: int, scale: int
    ) -> Array:
        """Return the disparity (rows, cols) that lenses add to that of the depth.

        Parameters
        ----------
        disparity_px
            Disparity of each cell (rows, cols), in pixels of the frame.
        field
            Lenses and frame.
        cell_px
            Side of a cell in pixels of the frame.
        scale
            Frame pixels per pixel of the views that were fitted: 1, 2 or 4.
        """
