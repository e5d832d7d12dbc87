"""Errors of real lenses over the field of view, as a calibration has measured them.

Places in a view are (x, y) from the middle of the rectified view, where the axis of the lens is,
divided by `field_radius_px`. Maps are polynomials in these two numbers, ordered by total degree:
1, x, y, x², xy, y², x³, x²y, ...
"""

from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, Field

from d3s.record import Converted
from d3s.rig.optics import Optics
from d3s.rig.part import RigPart
from d3s.types import FloatArray

_MAX_DEGREE = 6


def term_count(degree: int) -> int:
    """Number of terms of a polynomial in x and y, up to a total degree."""
    return (degree + 1) * (degree + 2) // 2


_DEGREES = {term_count(degree): degree for degree in range(_MAX_DEGREE + 1)}


def polynomial_terms(x: ArrayLike, y: ArrayLike, degree: int) -> FloatArray:
    """Terms of a polynomial in x and y, (terms, ...), ordered as in the maps.

    Parameters
    ----------
    x, y
        Places, of one shape.
    degree
        Highest total degree.
    """
    across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    terms = [
        across ** (total - power) * down**power
        for total in range(degree + 1)
        for power in range(total + 1)
    ]
    return np.stack(np.broadcast_arrays(*terms))


def polynomial_at(coefficients: ArrayLike, x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Value of a map at places (x, y).

    Parameters
    ----------
    coefficients
        One for each term; their number gives the degree.
    x, y
        Places, of one shape.
    """
    values = np.asarray(coefficients, dtype=np.float64)
    terms = polynomial_terms(x, y, _DEGREES[len(values)])
    return np.asarray(np.tensordot(values, terms, axes=1))


def _complete(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    if len(coefficients) not in _DEGREES:
        counts = ", ".join(str(count) for count in _DEGREES)
        raise ValueError(f"must have {counts} coefficients: all terms up to a degree.")
    return coefficients


_Number = Annotated[float, Field(ge=-1e6, le=1e6)]
_Map = Annotated[Converted[tuple[_Number, ...]], AfterValidator(_complete)]
_NO_MAP = (0.0,)


class LensMaps(RigPart):
    """Distortion, light, focus and remaining disparity of both views over the field."""

    field_radius_px: float = Field(gt=1, le=1e5, description="the unit of places in a view")
    distortion_left: Converted[tuple[_Number, _Number, _Number, _Number]] = Field(
        default=(0.0, 0.0, 0.0, 0.0),
        description="radial distortion of 3rd and 5th order and decentring along x and y",
    )
    distortion_right: Converted[tuple[_Number, _Number, _Number, _Number]] = Field(
        default=(0.0, 0.0, 0.0, 0.0),
        description="the same of the right view",
    )
    illumination_left: _Map = Field(
        default=(1.0,), description="the light of the left view, relative to its axis"
    )
    illumination_right: _Map = Field(
        default=(1.0,), description="the light of the right view, relative to the left axis"
    )
    focus_left_dpt: Converted[tuple[_Number, _Number, _Number, _Number]] = Field(
        default=(0.0, 0.0, 0.0, 0.0),
        description="change of focus over the left view: per x, per y, sagittal and tangential "
        "per square of the distance from the axis",
    )
    focus_right_dpt: Converted[tuple[_Number, _Number, _Number, _Number]] = Field(
        default=(0.0, 0.0, 0.0, 0.0), description="the same of the right view"
    )
    extra_blur_left_px2: _Map = Field(
        default=_NO_MAP, description="blur variance of the left view at every depth"
    )
    extra_blur_right_px2: _Map = Field(
        default=_NO_MAP, description="blur variance of the right view at every depth"
    )
    disparity_px: Annotated[Converted[tuple[_Map, ...]], Field(max_length=4)] = Field(
        default=(),
        description="disparity to subtract: maps of the terms 1, u, u², ... of the vergence u in "
        "1/m",
    )
    disparity_sigma_px: float = Field(
        default=0.0, ge=0, le=10, description="the standard deviation of disparity left over"
    )

    def focus_dpt(self, camera: int, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Change of focus against the axis, in dioptres, (3, ...): along x, mixed, along y.

        A lens focuses the rim of a disk of directions elsewhere along the radius (tangential) than
        across it (sagittal); the tensor has these two along its axes.

        Parameters
        ----------
        camera
            0 is left, 1 is right.
        x, y
            Places in the view, in units of `field_radius_px`.
        """
        per_x, per_y, sagittal, tangential = (self.focus_left_dpt, self.focus_right_dpt)[camera]
        across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        common = per_x * across + per_y * down + sagittal * (across**2 + down**2)
        apart = tangential - sagittal
        return np.stack(
            np.broadcast_arrays(
                common + apart * across**2, apart * across * down, common + apart * down**2
            )
        )

    def blur_px2(
        self, camera: int, x: ArrayLike, y: ArrayLike, vergence_dpt: ArrayLike, optics: Optics
    ) -> FloatArray:
        """Blur variance of one view, in px², (3, ...): along x, mixed, along y.

        Parameters
        ----------
        camera
            0 is left, 1 is right.
        x, y
            Places in the view, in units of `field_radius_px`.
        vergence_dpt
            1/Z of the points.
        optics
            Focus and aperture on the axis.
        """
        lens = optics.lens(camera)
        gain = lens.aperture_gaussian_width * optics.focal_length_px * lens.aperture_radius_m
        on_axis = np.asarray(vergence_dpt) - (lens.optical_power_dpt - 1 / lens.sensor_distance_m)
        across, mixed, down = self.focus_dpt(camera, x, y)
        across, down, mixed = on_axis - across, on_axis - down, -mixed
        extra = polynomial_at((self.extra_blur_left_px2, self.extra_blur_right_px2)[camera], x, y)
        # The square of the tensor: disks are ellipses with these half axes.
        return np.stack(
            [
                gain**2 * (across**2 + mixed**2) + extra,
                gain**2 * mixed * (across + down),
                gain**2 * (down**2 + mixed**2) + extra,
            ]
        )

    def illumination(self, camera: int, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Light of one view relative to the axis of the left one.

        Parameters
        ----------
        camera
            0 is left, 1 is right.
        x, y
            Places in the view, in units of `field_radius_px`.
        """
        return polynomial_at((self.illumination_left, self.illumination_right)[camera], x, y)

    def remaining_disparity_px(
        self, x: ArrayLike, y: ArrayLike, vergence_dpt: ArrayLike
    ) -> FloatArray:
        """Disparity that lenses add to that of the depth, in pixels.

        Parameters
        ----------
        x, y
            Places in the left view, in units of `field_radius_px`.
        vergence_dpt
            1/Z of the points.
        """
        vergence = np.asarray(vergence_dpt, dtype=np.float64)
        total: Any = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y), vergence.shape))
        for power, coefficients in enumerate(self.disparity_px):
            total = total + vergence**power * polynomial_at(coefficients, x, y)
        return np.asarray(total)

    def distorted(self, camera: int, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Places (2, ...) in the raw frame of places of a lens without distortion.

        Parameters
        ----------
        camera
            0 is left, 1 is right.
        x, y
            Places from the axis in the raw frame, in units of `field_radius_px`.
        """
        third, fifth, decentring_x, decentring_y = (self.distortion_left, self.distortion_right)[
            camera
        ]
        across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        square = across**2 + down**2
        radial = 1 + third * square + fifth * square**2
        lean = 2 * (decentring_x * across + decentring_y * down)
        return np.stack(
            [
                across * (radial + lean) + decentring_x * square,
                down * (radial + lean) + decentring_y * square,
            ]
        )
