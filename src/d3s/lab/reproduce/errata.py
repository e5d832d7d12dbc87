"""Errata: equations as the paper prints them, where the derivation gives another result.

For comparison only: `docs/reproduction.md` lists the differences and their tests. Units are
those of the rest of the package: pixels, with the pixel pitch inserted. The printed determinant of
the aperture's covariance is read as the squared Gaussian width, the only reading with consistent
units.
"""

import numpy as np
from numpy.typing import ArrayLike

from d3s.optics.lens import ImageDerivatives, Lens, Rates
from d3s.optics.relation import DepthCubic, lateral_flow
from d3s.optics.thin_lens import aperture_gain_px, vergence_dpt
from d3s.types import FloatArray


def blur_rate_px(depth_m: ArrayLike, lens: Lens, rates: Rates) -> FloatArray:
    """Rate of the blur in pixels, Eq. 7 as printed.

    Wrong if the sensor moves or the aperture opens.
    """
    s0, aperture = lens.reference_distance_m, lens.aperture_radius_m
    vergence = vergence_dpt(depth_m)
    rate_m = (
        -s0 * aperture * rates.optical_power_dpt
        - rates.sensor_distance_m / lens.sensor_distance_m**2
        + s0 * (vergence - lens.optical_power_dpt) * rates.aperture_radius_m
        - s0 * aperture * rates.axial_m * vergence**2
    )
    return np.asarray(lens.aperture_gaussian_width * rate_m / lens.pixel_pitch_m)


def depth_cubic(derivatives: ImageDerivatives, lens: Lens, rates: Rates) -> DepthCubic:
    """Coefficients of the depth polynomial, Eq. S1 as printed.

    Wrong in a2 if the aperture opens, and in a0, a1 and a2 if the target approaches.
    """
    rho, s, aperture = lens.optical_power_dpt, lens.sensor_distance_m, lens.aperture_radius_m
    opening, closing_in = aperture * rates.aperture_radius_m, aperture**2 * rates.axial_m
    refocus = aperture**2 * (rates.optical_power_dpt + rates.sensor_distance_m / s**2)
    spread = _sigma_laplacian(derivatives, lens)
    flow = lateral_flow(derivatives, lens, rates.lateral_x_m, rates.lateral_y_m)
    flow = flow + derivatives.times(rates.axial_m, "radial")
    return DepthCubic(
        a0=np.asarray(spread * closing_in),
        a1=np.asarray(spread * ((1 / s - rho) * closing_in - opening)),
        a2=np.asarray(spread * (refocus + 4 * opening * (rho - 1 / s)) - flow),
        a3=np.asarray(derivatives.rate)
        - spread * ((rho - 1 / s) * refocus + opening * (rho - 1 / s) ** 2),
    )


def axial_image_rate(
    derivatives: ImageDerivatives, depth_m: ArrayLike, lens: Lens, rates: Rates
) -> FloatArray:
    """Rate of the image of an approaching target, Eq. S4 as printed."""
    vergence = vergence_dpt(depth_m)
    defocus = vergence - lens.optical_power_dpt + 1.0 / lens.sensor_distance_m
    blur = lens.aperture_radius_m**2 * defocus * vergence**2 * _sigma_laplacian(derivatives, lens)
    return np.asarray(rates.axial_m * (derivatives.times(vergence, "radial") - blur))


def cardano_depth_m(cubic: DepthCubic) -> FloatArray:
    """Root of a cubic by Cardano's formula with principal cube roots, in metres (Eq. S3).

    The real root if there is only one; the largest of three, which need not be the depth.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        b, c, d = cubic.a2 / cubic.a3, cubic.a1 / cubic.a3, cubic.a0 / cubic.a3
        p = c - b**2 / 3
        q = 2 * b**3 / 27 - b * c / 3 + d
        delta = (q / 2) ** 2 + (p / 3) ** 3
        root = np.sqrt(np.maximum(delta, 0.0))
        one_real = np.cbrt(-q / 2 + root) + np.cbrt(-q / 2 - root)
        cube = -q / 2 + 1j * np.sqrt(np.maximum(-delta, 0.0))
        three_real = 2 * (cube ** (1 / 3)).real
        return np.asarray(-b / 3 + np.where(delta >= 0, one_real, three_real))


def raw_sensor_distance_depth_m(raw: ImageDerivatives, lens: Lens, rates: Rates) -> FloatArray:
    """Depth from a moving sensor and its raw image, right column of Table S1 as printed."""
    s = lens.sensor_distance_m
    moved = np.asarray(raw.rate) - raw.times(rates.sensor_distance_m / s, "radial")
    spread = lens.aperture_radius_m**2 * rates.sensor_distance_m * _raw_sigma_laplacian(raw, lens)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1.0 / (lens.optical_power_dpt - 1 / s - s * moved / spread))


def raw_combined_quadratic(
    raw: ImageDerivatives, lens: Lens, rates: Rates
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(c0, c1, c2) of c2/Z² + c1/Z + c0 = 0 for a raw image, remark of Table S1 as printed.

    Right if the sensor does not move. Otherwise the magnification of the blur is missing; with it,
    c2 vanishes and the relation is linear (`relation.rescaled_derivatives`).
    """
    s, rho = lens.sensor_distance_m, lens.optical_power_dpt
    s_rate, rho_rate = rates.sensor_distance_m, rates.optical_power_dpt
    spread = lens.aperture_radius_m**2 * _raw_sigma_laplacian(raw, lens)
    lateral = lateral_flow(raw, lens, rates.lateral_x_m, rates.lateral_y_m)
    constant = s * s_rate * rho**2 - s_rate * rho + s**2 * rho * rho_rate - s * rho_rate
    magnified = raw.times(s_rate / s, "radial")
    return (
        np.asarray(spread * constant - magnified - np.asarray(raw.rate)),
        np.asarray(spread * (s_rate - 2 * s * s_rate * rho - s**2 * rho_rate) + lateral),
        np.asarray(spread * s * s_rate),
    )


def _sigma_laplacian(derivatives: ImageDerivatives, lens: Lens) -> FloatArray:
    """Covariance-weighted Laplacian of the rescaled image times s0², in units without pixels."""
    return derivatives.times(aperture_gain_px(lens) ** 2, "laplacian")


def _raw_sigma_laplacian(raw: ImageDerivatives, lens: Lens) -> FloatArray:
    """Covariance-weighted Laplacian of the raw image, in units without pixels."""
    return raw.times((lens.aperture_gaussian_width / lens.pixel_pitch_m) ** 2, "laplacian")
