"""Lenses whose blur and disparity change over the field, for rigs whose calibration knows them.

At the place (x, y) of the left view and the disparity d, the blur variances of the views are
tensors. Half their difference, right less left, takes the place of the line over the disparity that
perfect lenses have; a point is seen at x - d in the right view. Lengths along the field are in
units of `LensMaps.field_radius_px`, from the middle of the view.
"""

from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from d3s.estimate.joint.types import Array, Counts
from d3s.rig import LensMaps, Optics
from d3s.rig.lens_maps import term_count
from d3s.types import FloatArray


class BlurPlane(IntEnum):
    """Planes of the difference of blur of each cell."""

    XX = 0  # half the difference of the blur variances, right less left, along x
    XY = 1
    YY = 2
    XX_SLOPE = 3  # its derivative by the disparity
    XY_SLOPE = 4
    YY_SLOPE = 5
    EVEN = 6  # difference, alike in all directions, that passes as much noise into the residual


class ScaleLimits(NamedTuple):
    """Blur from which on a cell may be fitted at a scale; lengths in pixels of the frame."""

    scale: int
    blur_px2: float  # blur variance of either view, along its widest direction
    difference_px2: float  # half the difference of the variances, along its widest direction


class LensField(NamedTuple):
    """Lens maps of a rig and the frame that they are used for."""

    lenses: LensMaps
    optics: Optics
    frame_shape: tuple[int, int]

    @property
    def changes_blur(self) -> bool:
        """Whether blur changes over the field."""
        lenses = self.lenses
        maps = (lenses.focus_left_dpt, lenses.focus_right_dpt)
        extra = (lenses.extra_blur_left_px2, lenses.extra_blur_right_px2)
        return any(np.any(values) for values in (*maps, *extra))

    @property
    def changes_disparity(self) -> bool:
        """Whether there is disparity to subtract."""
        return any(np.any(values) for values in self.lenses.disparity_px)

    @property
    def per_dpt_px(self) -> float:
        """Disparity per dioptre."""
        return self.optics.focal_length_px * self.optics.baseline_m

    def places(self, shape: tuple[int, ...], cell_px: int) -> tuple[FloatArray, FloatArray]:
        """Return x (cols,) and y (rows, 1) of the centres of cells of `cell_px` frame pixels."""
        rows, cols = self.frame_shape
        radius = self.lenses.field_radius_px
        across = ((np.arange(shape[1]) + 0.5) * cell_px - cols / 2) / radius
        down = ((np.arange(shape[0]) + 0.5) * cell_px - rows / 2) / radius
        return np.asarray(across), np.asarray(down[:, np.newaxis])

    def vergence_dpt(self, disparity_px: ArrayLike) -> Array:
        """Return 1/Z in dioptres at a disparity."""
        return (np.asarray(disparity_px) - self.optics.disparity_offset_px) / self.per_dpt_px

    def blur_px2(self, disparity_px: Array, cell_px: int) -> tuple[FloatArray, FloatArray]:
        """Return the blur variances (3, rows, cols) of both views at the disparity of each cell."""
        x, y = self.places(disparity_px.shape, cell_px)
        vergence = self.vergence_dpt(disparity_px)
        moved = x - disparity_px / self.lenses.field_radius_px
        left = self.lenses.blur_px2(0, x, y, vergence, self.optics)
        return left, self.lenses.blur_px2(1, moved, y, vergence, self.optics)

    def tensor_maps(self) -> FloatArray:
        """Return polynomials (2 views, 4, power of x, power of y) of focus and extra blur, in px.

        Focus along x, mixed and along y, times the blur per dioptre; and the extra blur variance.
        """
        lenses, optics = self.lenses, self.optics
        extra = [
            np.asarray(values)
            for values in (lenses.extra_blur_left_px2, lenses.extra_blur_right_px2)
        ]
        degree = max(2, *(polynomial_degree(values.size) for values in extra))
        maps = np.zeros((2, 4, degree + 1, degree + 1))
        for camera in (0, 1):
            lens = optics.lens(camera)
            for plane, focus in enumerate(lenses.focus_maps_dpt(camera)):
                maps[camera, plane] = power_table(focus, degree)
            maps[camera, [0, 2], 0, 0] += lens.optical_power_dpt - 1 / lens.sensor_distance_m
            maps[camera, :3] *= self.blur_per_dpt_px
            maps[camera, 3] = power_table(extra[camera], degree)
        return maps

    @property
    def blur_per_dpt_px(self) -> float:
        """Blur sigma per dioptre from focus."""
        lens = self.optics.lens(0)
        return lens.aperture_gaussian_width * self.optics.focal_length_px * lens.aperture_radius_m

    def disparity_maps(self) -> FloatArray:
        """Return polynomials (terms of the vergence, power of x, power of y) of the disparity."""
        maps = [np.asarray(values) for values in self.lenses.disparity_px]
        degree = max(polynomial_degree(values.size) for values in maps)
        return np.stack([power_table(values, degree) for values in maps])


def polynomial_degree(terms: int) -> int:
    """Return the total degree of a polynomial in x and y that has so many terms."""
    degree = 0
    while term_count(degree) < terms:
        degree += 1
    return degree


def power_table(coefficients: ArrayLike, degree: int) -> FloatArray:
    """Return the coefficients of a map by power of x and power of y (degree + 1, degree + 1)."""
    values = np.asarray(coefficients)
    table = np.zeros((degree + 1, degree + 1))
    place = 0
    for total in range(polynomial_degree(values.size) + 1):
        for power in range(total + 1):
            table[total - power, power] = values[place]
            place += 1
    return table


class FieldOperations(Protocol):
    """Blur and disparity of lenses at the place and disparity of each cell."""

    def blur_differences(
        self, disparity: Array, field: LensField, scale: int, cell_side: int
    ) -> Array:
        """Return the planes `BlurPlane` (planes, rows, cols), in pixels of the scale.

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

    def remaining_disparity(self, disparity_px: Array, field: LensField, cell_px: int) -> Array:
        """Return the disparity (rows, cols) that lenses add to that of the depth.

        Parameters
        ----------
        disparity_px
            Disparity of each cell (rows, cols), in pixels of the frame.
        field
            Lenses and frame.
        cell_px
            Side of a cell in pixels of the frame.
        """
