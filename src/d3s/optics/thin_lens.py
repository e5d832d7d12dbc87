"""Thin lens: conjugate distances, focus, and the blur of a point at a depth."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.optics.lens import Lens, Rates
from d3s.types import FloatArray


def vergence_dpt(distance_m: ArrayLike) -> FloatArray:
    """Vergence 1 / distance, in 1/m; infinite at 0, 0 at infinity."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.asarray(distance_m, dtype=np.float64))


def conjugate_distance_m(distance_m: ArrayLike, optical_power_dpt: ArrayLike) -> FloatArray:
    """Conjugate distance of a point, in metres: 1 / (rho - 1 / distance).

    The distance behind the lens at which a point in front of the lens is in focus, and vice versa.
    Infinite for a point in the focal plane, negative for a nearer point (a virtual image).
    """
    power = np.asarray(optical_power_dpt, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (power - vergence_dpt(distance_m)))


def focus_distance_m(lens: Lens) -> float:
    """Depth in focus, in metres; negative for a camera focused beyond infinity."""
    return float(conjugate_distance_m(lens.sensor_distance_m, lens.optical_power_dpt))


def focus_vergence_dpt(lens: Lens) -> float:
    """Vergence of the focus distance, rho - 1/s, in 1/m: the kappa of the depth equations."""
    return lens.optical_power_dpt - 1.0 / lens.sensor_distance_m


def f_number(lens: Lens) -> float:
    """Working f-number s / (2 A), of the cone of light at the sensor; infinite for a pinhole."""
    with np.errstate(divide="ignore"):
        return float(np.divide(lens.sensor_distance_m, 2.0 * lens.aperture_radius_m))


def field_of_view_rad(size_px: ArrayLike, lens: Lens) -> FloatArray:
    """Full field of view of a row or column of `size_px` pixels about the axis, in radians."""
    half_m = 0.5 * np.asarray(size_px, dtype=np.float64) * lens.pixel_pitch_m
    return np.asarray(2.0 * np.arctan(half_m / lens.reference_distance_m))


def blur_gain_px_m(lens: Lens) -> float:
    """Gaussian blur per dioptre of defocus, w s0 A / p, in pixels per 1/m."""
    return aperture_gain_px(lens) * lens.aperture_radius_m


def aperture_gain_px(lens: Lens) -> float:
    """`blur_gain_px_m` per metre of aperture radius, w s0 / p, in pixels."""
    return lens.aperture_gaussian_width * lens.reference_distance_m / lens.pixel_pitch_m


def blur_radius_px(depth_m: ArrayLike, lens: Lens) -> FloatArray:
    """Signed radius of the geometric blur disk, in pixels of the rescaled image.

    Defocus level (paper Eq. 4) over the pixel pitch. Zero at the focus distance, positive for
    nearer points, negative beyond.
    """
    return np.asarray(blur_sigma_px(depth_m, lens) / lens.aperture_gaussian_width)


def blur_sigma_px(depth_m: ArrayLike, lens: Lens) -> FloatArray:
    """Signed Gaussian blur per axis, in pixels: `blur_radius_px` times the Gaussian width."""
    defocus_dpt = vergence_dpt(depth_m) - focus_vergence_dpt(lens)
    return np.asarray(blur_gain_px_m(lens) * defocus_dpt)


def blur_variance_px2(depth_m: ArrayLike, lens: Lens) -> FloatArray:
    """Variance of the Gaussian blur per axis, in square pixels."""
    return np.square(blur_sigma_px(depth_m, lens))


def depth_at_blur_m(blur_sigma: ArrayLike, lens: Lens) -> FloatArray:
    """Depth with a signed Gaussian blur of `blur_sigma` pixels, in metres.

    Inverse of `blur_sigma_px`. Infinite or negative where no point in front of the camera has this
    blur; 0 or NaN for a pinhole, whose blur does not depend on depth.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        defocus_dpt = np.divide(blur_sigma, blur_gain_px_m(lens), dtype=np.float64)
        return np.asarray(1.0 / (defocus_dpt + focus_vergence_dpt(lens)))


class BlurSensitivity(NamedTuple):
    """Derivatives of the signed Gaussian blur, in pixels per unit of each parameter."""

    depth_m: FloatArray
    optical_power_dpt: FloatArray
    aperture_radius_m: FloatArray
    sensor_distance_m: FloatArray
    reference_distance_m: FloatArray
    pixel_pitch_m: FloatArray
    aperture_gaussian_width: FloatArray


def blur_sensitivity(depth_m: ArrayLike, lens: Lens) -> BlurSensitivity:
    """Derivatives of `blur_sigma_px` with respect to the depth and each parameter of the lens."""
    sigma = blur_sigma_px(depth_m, lens)
    gain = blur_gain_px_m(lens)
    defocus = vergence_dpt(depth_m) - focus_vergence_dpt(lens)
    return BlurSensitivity(
        depth_m=-gain * vergence_dpt(depth_m) ** 2,
        optical_power_dpt=np.full_like(sigma, -gain),
        aperture_radius_m=np.asarray(aperture_gain_px(lens) * defocus),
        sensor_distance_m=np.full_like(sigma, -gain / lens.sensor_distance_m**2),
        reference_distance_m=np.asarray(sigma / lens.reference_distance_m),
        pixel_pitch_m=np.asarray(-sigma / lens.pixel_pitch_m),
        aperture_gaussian_width=np.asarray(blur_radius_px(depth_m, lens)),
    )


def blur_rate_px(depth_m: ArrayLike, lens: Lens, rates: Rates) -> FloatArray:
    """Rate of the signed Gaussian blur of a camera that changes, in pixels per unit of time.

    Paper Eq. 7 with corrected terms for the sensor distance and the aperture (erratum E1).

    Parameters
    ----------
    depth_m
        Depth of the point, in metres, above 0.
    lens
        Camera at this time.
    rates
        Rates of the camera. Lateral rates have no effect on blur.
    """
    sensitivity = blur_sensitivity(depth_m, lens)
    return np.asarray(
        sensitivity.depth_m * rates.axial_m
        + sensitivity.optical_power_dpt * rates.optical_power_dpt
        + sensitivity.aperture_radius_m * rates.aperture_radius_m
        + sensitivity.sensor_distance_m * rates.sensor_distance_m
    )
