"""One thin-lens camera, how it may change, and what its image's derivatives are.

Three holders of numbers that the equations of this package share.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from d3s.errors import InputError
from d3s.types import FloatArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Lens:
    """A thin-lens camera whose image is rescaled to a reference sensor distance.

    Parameters
    ----------
    optical_power_dpt
        1 / focal length, in 1/m.
    aperture_radius_m
        Radius of the aperture; zero for a pinhole.
    sensor_distance_m
        Distance s from the lens to the sensor.
    reference_distance_m
        Distance s0 to which the image is rescaled, so that a change of s does not magnify it.
        The same as `sensor_distance_m` for an image as it comes from the sensor.
    pixel_pitch_m
        Size of a pixel at the reference distance.
    aperture_gaussian_width
        Standard deviation w, per axis, of the aperture of unit radius seen as a Gaussian.
        1/2 has the second moment of a uniform disk.
    """

    optical_power_dpt: float
    aperture_radius_m: float
    sensor_distance_m: float
    reference_distance_m: float
    pixel_pitch_m: float
    aperture_gaussian_width: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """How fast the camera changes, per unit of an arbitrary time; what is not named stays put.

    `lateral_x_m` and `lateral_y_m` move the lens centre to the right and down, `axial_m` is the
    rate of the *depth* (negative when the camera approaches).
    """

    lateral_x_m: float = 0.0
    lateral_y_m: float = 0.0
    axial_m: float = 0.0
    optical_power_dpt: float = 0.0
    aperture_radius_m: float = 0.0
    sensor_distance_m: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageDerivatives:
    """Per-pixel derivatives of an image, in pixels and in the time unit of `Rates`.

    Only those that an equation asks for have to be given; one that is asked for and missing is an
    error, never a zero.

    Parameters
    ----------
    rate
        Change of intensity with time at a fixed pixel.
    grad_x, grad_y
        First derivatives, x to the right and y down.
    laplacian
        I_xx + I_yy. For an aperture that is not round, the operator that weighs the axes by the
        covariance of the aperture divided by the square of `Lens.aperture_gaussian_width`.
    radial
        x I_x + y I_y, with (x, y) measured from the principal point. Only axial motion, or an
        image that is not rescaled, needs it.
    """

    rate: ArrayLike
    grad_x: ArrayLike | None = None
    grad_y: ArrayLike | None = None
    laplacian: ArrayLike | None = None
    radial: ArrayLike | None = None

    def times(self, weight: ArrayLike, name: str) -> FloatArray:
        """One of the derivatives times a weight; a weight of zero does not ask for it."""
        if not np.any(weight):
            return np.zeros(())
        values = getattr(self, name)
        if values is None:
            raise InputError(f"{name} is missing: this change of the camera needs it. Pass it.")
        return np.asarray(np.multiply(weight, values, dtype=np.float64))
