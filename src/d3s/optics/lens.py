"""Parameters shared by the equations: a thin lens, its rates of change, image derivatives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from d3s.errors import InputError
from d3s.types import FloatArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Lens:
    """Thin-lens camera whose image is rescaled to a reference sensor distance.

    Parameters
    ----------
    optical_power_dpt
        Optical power rho = 1 / focal length, in 1/m.
    aperture_radius_m
        Radius A of the aperture; 0 for a pinhole.
    sensor_distance_m
        Distance s from the lens to the sensor.
    reference_distance_m
        Distance s0 to which the image is rescaled, so that a change of s does not magnify the
        image. Equal to `sensor_distance_m` for an image that is not rescaled.
    pixel_pitch_m
        Pixel pitch p at the reference distance.
    aperture_gaussian_width
        Standard deviation w, per axis, of the Gaussian that stands for an aperture of radius 1.
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
    """Rates of change of a camera, per unit of an arbitrary time.

    Parameters
    ----------
    lateral_x_m, lateral_y_m
        Velocity of the lens centre, to the right and down.
    axial_m
        Rate of the *depth*: negative when the camera approaches the target.
    optical_power_dpt, aperture_radius_m, sensor_distance_m
        Rates of the parameters of `Lens` with these names.
    """

    lateral_x_m: float = 0.0
    lateral_y_m: float = 0.0
    axial_m: float = 0.0
    optical_power_dpt: float = 0.0
    aperture_radius_m: float = 0.0
    sensor_distance_m: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageDerivatives:
    """Derivatives of an image at each pixel, per pixel and per time unit of `Rates`.

    All arrays broadcast against each other. A derivative may be left out if the equation does not
    use it; an equation that needs a missing derivative raises an error.

    Parameters
    ----------
    rate
        Rate of intensity I' at a fixed pixel.
    grad_x, grad_y
        First derivatives I_x (x to the right) and I_y (y down).
    laplacian
        I_xx + I_yy. For an aperture that is not round, the second derivatives weighted by the
        covariance of the aperture over the square of `Lens.aperture_gaussian_width`.
    radial
        x I_x + y I_y, with (x, y) measured from the principal point. Needed for axial motion, and
        for an image that is not rescaled.
    """

    rate: ArrayLike
    grad_x: ArrayLike | None = None
    grad_y: ArrayLike | None = None
    laplacian: ArrayLike | None = None
    radial: ArrayLike | None = None

    def times(self, weight: ArrayLike, name: str) -> FloatArray:
        """Product of a weight and the derivative called `name`, in double precision.

        If the weight is 0 everywhere, the derivative may be missing.

        Raises
        ------
        InputError
            If the derivative is missing and the weight is not 0.
        """
        if not np.any(weight):
            return np.zeros(())
        values = getattr(self, name)
        if values is None:
            raise InputError(f"{name} is missing: this change of the camera needs it. Pass it.")
        return np.asarray(np.multiply(weight, values, dtype=np.float64))
