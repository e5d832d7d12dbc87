"""Operations on lenses whose blur and disparity change over the field.

Half the difference of the blur variances, right less left, is a tensor at the place and disparity
of each cell. It takes the place of the line over the disparity that perfect lenses have.
"""

from enum import IntEnum
from typing import NamedTuple, Protocol

from d3s.estimate.joint.types import Array, Counts
from d3s.estimate.lens_field import LensField


class BlurPlane(IntEnum):
    """Planes of the difference of blur of each cell."""

    XX = 0  # half the difference of the blur variances, right less left, along x
    XY = 1
    YY = 2
    HIGHER = 3  # rows by which the right view lies higher
    XX_SLOPE = 4  # derivative of the first three by the disparity
    XY_SLOPE = 5
    YY_SLOPE = 6
    EVEN = 7  # difference, alike in all directions, that passes as much noise into the residual


class ScaleLimits(NamedTuple):
    """Blur from which on a cell may be fitted at a scale; lengths in pixels of the frame."""

    scale: int
    blur_px2: float  # blur variance of either view, along its widest direction
    difference_px2: float  # half the difference of the variances, along its widest direction


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
