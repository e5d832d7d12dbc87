"""The general relation between depth and the derivatives of a camera's image.

A front-parallel target is imaged by a lens that moves and refocuses at once. The rate of its image
is a polynomial in 1/Z, whose coefficients are the image's derivatives and the camera's rates.
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
    """Rate of the image at a fixed pixel that a target at a depth makes; `rate` is not read.

    Paper Eq. 8, corrected. Blur spreads as heat does, with variance for time; the lateral motion
    shifts the image and the axial one magnifies it. Magnification acts on the sharp image and
    not on the blur, so the blur that x I_x + y I_y magnifies along with it is taken back: that is
    the second term of `spread`, which the paper leaves out.
    """
    sigma = blur_sigma_px(depth_m, lens)
    magnification = rates.axial_m * vergence_dpt(depth_m)
    spread = sigma * blur_rate_px(depth_m, lens, rates) + sigma**2 * magnification
    flow = lateral_flow(derivatives, lens, rates.lateral_x_m, rates.lateral_y_m)
    return np.asarray(
        derivatives.times(spread, "laplacian")
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
    """Polynomial whose root is the depth (paper Eqs. 9 and S1, derived anew).

    a0 is zero for every camera: the cubic term of the blur's rate and that of the blur's
    magnification cancel, so that the general relation is a quadratic. It is kept as a cubic, with
    the useless root Z = 0, to compare with `printed.depth_cubic`.
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
    """Derivatives of the image rescaled to the present sensor distance, from those of the raw one.

    A sensor that recedes magnifies its raw image by s'/s a unit of time. Taking that magnification
    out of the rate turns every formula for the rescaled image into its counterpart for the raw
    image, the formulation of Alexander (2019). `lens.reference_distance_m` must equal
    `lens.sensor_distance_m`, in which the two images coincide.
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
    """Image rate times depth of a lens that moves right and down at given rates.

    Positive in an upright image: a lens that moves right sees what is to its right.
    """
    focal_length_px = lens.reference_distance_m / lens.pixel_pitch_m
    along_x = derivatives.times(focal_length_px * lateral_x_m, "grad_x")
    return np.asarray(along_x + derivatives.times(focal_length_px * lateral_y_m, "grad_y"))
