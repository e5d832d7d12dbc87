"""General relation between depth and image derivatives of a camera that changes.

A front-parallel target is imaged by a lens that moves and refocuses at the same time. The rate of
the image is a polynomial in 1/Z; its coefficients follow from the image derivatives and the rates
of the camera.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.errors import InputError
from d3s.optics.lens import ImageDerivatives, Lens, Rates
from d3s.optics.thin_lens import (
    aperture_gain_px,
    blur_gain_px_m,
    blur_rate_px,
    blur_sigma_px,
    focus_vergence_dpt,
    vergence_dpt,
)
from d3s.types import FloatArray


def image_rate(
    derivatives: ImageDerivatives, depth_m: ArrayLike, lens: Lens, rates: Rates
) -> FloatArray:
    """Rate of intensity at a fixed pixel, for a target at a known depth.

    Paper Eq. 8, corrected. A change of blur acts like diffusion, with the blur variance in place
    of time; lateral motion shifts the image and axial motion magnifies it. Magnification acts on
    the sharp image and not on the blur, but the term x I_x + y I_y magnifies both: the second term
    of `diffusion`, which the paper leaves out, corrects that.

    Parameters
    ----------
    derivatives
        Spatial derivatives of the image; `derivatives.rate` is not used.
    depth_m
        Depth of the target, in metres; broadcasts with the derivatives.
    lens, rates
        Camera at this time, and its rates of change.
    """
    sigma = blur_sigma_px(depth_m, lens)
    magnification = rates.axial_m * vergence_dpt(depth_m)
    diffusion = sigma * blur_rate_px(depth_m, lens, rates) + sigma**2 * magnification
    flow = lateral_flow(derivatives, lens, rates.lateral_x_m, rates.lateral_y_m)
    return np.asarray(
        derivatives.times(diffusion, "laplacian")
        + flow * vergence_dpt(depth_m)
        + derivatives.times(magnification, "radial")
    )


class DepthCubic(NamedTuple):
    """Coefficients of a3 Z³ + a2 Z² + a1 Z + a0 = 0, per pixel."""

    a0: FloatArray
    a1: FloatArray
    a2: FloatArray
    a3: FloatArray


def depth_cubic(derivatives: ImageDerivatives, lens: Lens, rates: Rates) -> DepthCubic:
    """Depth polynomial, whose root is the depth (paper Eqs. 9 and S1, derived again).

    a0 is 0 for every camera: the cubic terms of the blur rate and of the blur magnification
    cancel, so the general relation is a quadratic. The cubic form, with the spurious root Z = 0,
    is kept for comparison with `reproduce.errata.depth_cubic`.

    Parameters
    ----------
    derivatives
        Rate and spatial derivatives of the image.
    lens, rates
        Camera at this time, and its rates of change.
    """
    gain2 = blur_gain_px_m(lens) ** 2
    kappa = focus_vergence_dpt(lens)
    refocus = rates.optical_power_dpt + rates.sensor_distance_m / lens.sensor_distance_m**2
    opening = aperture_gain_px(lens) ** 2 * lens.aperture_radius_m * rates.aperture_radius_m
    constant = gain2 * kappa * refocus + opening * kappa**2
    linear = -gain2 * refocus - 2 * opening * kappa + gain2 * kappa**2 * rates.axial_m
    quadratic = opening - gain2 * kappa * rates.axial_m
    flow = lateral_flow(derivatives, lens, rates.lateral_x_m, rates.lateral_y_m)
    flow = flow + derivatives.times(rates.axial_m, "radial")
    rate = np.asarray(derivatives.rate, dtype=np.float64)
    return DepthCubic(
        *np.broadcast_arrays(
            np.zeros(()),
            -derivatives.times(quadratic, "laplacian"),
            -derivatives.times(linear, "laplacian") - flow,
            rate - derivatives.times(constant, "laplacian"),
        )
    )


def rescaled_derivatives(raw: ImageDerivatives, lens: Lens, rates: Rates) -> ImageDerivatives:
    """Derivatives of the rescaled image, from the derivatives of the raw image.

    A receding sensor magnifies its raw image at the rate s'/s. With this magnification removed
    from the rate, every formula for the rescaled image applies to the raw image (the formulation
    of Alexander, 2019).

    Parameters
    ----------
    raw
        Derivatives of the image on the sensor.
    lens
        Camera at this time. `reference_distance_m` must equal `sensor_distance_m`: only there do
        the raw and the rescaled image coincide.
    rates
        Rates of the camera.

    Raises
    ------
    InputError
        If the two distances of the lens differ.
    """
    if lens.reference_distance_m != lens.sensor_distance_m:
        raise InputError(
            f"reference_distance_m={lens.reference_distance_m} must equal "
            f"sensor_distance_m={lens.sensor_distance_m} for a raw image: it is not rescaled yet."
        )
    magnification = rates.sensor_distance_m / lens.sensor_distance_m
    rate = np.asarray(raw.rate, dtype=np.float64) + raw.times(magnification, "radial")
    return replace(raw, rate=rate)


def lateral_flow(
    derivatives: ImageDerivatives, lens: Lens, lateral_x_m: float, lateral_y_m: float
) -> FloatArray:
    """Image rate times depth caused by lateral motion: (s0 / p) (X' I_x + Y' I_y).

    The sign is that of an upright image: when the lens moves right, the image moves left.

    Parameters
    ----------
    derivatives
        Gradients of the image.
    lens
        Camera at this time.
    lateral_x_m, lateral_y_m
        Velocity of the lens centre, to the right and down, in metres per unit of time.
    """
    focal_length_px = lens.reference_distance_m / lens.pixel_pitch_m
    along_x = derivatives.times(focal_length_px * lateral_x_m, "grad_x")
    return np.asarray(along_x + derivatives.times(focal_length_px * lateral_y_m, "grad_y"))
