"""Point-spread functions of a defocused lens: Gaussian, uniform disk, and diffraction.

Each family is rotationally symmetric and has three functions: the intensity density at a radius
(per px², unit energy), the optical transfer function at a frequency (cycles/px; real, 1 at zero
frequency), and the second moment along one axis (px²). Blur may be signed, as in `thin_lens`; the
sign has no effect here.

The Gaussian is the model of the depth equations, the disk is the PSF of geometric optics. Both are
points in focus; a real lens is limited by diffraction. A lens of 12.1 mm focal length and 1 mm
aperture radius (f/6.05) with 2 µm pixels has, at 550 nm, an Airy radius of 2.03 px, a full width at
half maximum of 1.71 px, and a cut-off frequency of 0.60 cycles/px.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s.optics.lens import Lens
from d3s.optics.thin_lens import blur_radius_px, focus_vergence_dpt
from d3s.types import FloatArray

BoolArray = NDArray[np.bool_]
RadialPsf = Callable[[FloatArray], FloatArray]

# First zero of J1 over pi: the 1.22 of the Airy radius.
_FIRST_DARK_RING = 1.2196698912665045

# Half a pixel: a smaller spot cannot be distinguished from a point.
_SMALLEST_VISIBLE_RADIUS_PX = 0.5

# Over +-12 rad of phase, 24 nodes are exact to rounding (the error is of order 6^48 / 48!).
_NODES_PER_PANEL = 24
_PHASE_PER_PANEL_RAD = 24.0

# Enough for an Airy ring, or a Gaussian with a sigma of 1/3 px, within a ring one pixel wide.
_NODES_PER_RING = 16


def gaussian_psf(radius_px: ArrayLike, sigma_px: ArrayLike) -> FloatArray:
    """Density of a Gaussian blur at a radius, per px² (paper Eqs. 3 and 5).

    For a sigma of 0: infinite at the centre, 0 elsewhere.
    """
    radius = np.asarray(radius_px, dtype=np.float64)
    variance = np.square(np.asarray(sigma_px, dtype=np.float64))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        density = np.exp(-(radius**2) / (2.0 * variance)) / (2.0 * np.pi * variance)
    return np.where(variance == 0, _point_density(radius), density)


def gaussian_otf(frequency: ArrayLike, sigma_px: ArrayLike) -> FloatArray:
    """Transfer function of a Gaussian blur at a frequency in cycles/px, exp(-2 (pi sigma f)²)."""
    return np.asarray(np.exp(-2.0 * np.square(np.pi * _cycles(frequency, sigma_px))))


def gaussian_second_moment_px2(sigma_px: ArrayLike) -> FloatArray:
    """Second moment of a Gaussian blur along one axis, sigma², in px²."""
    return np.square(np.asarray(sigma_px, dtype=np.float64))


def disk_psf(radius_px: ArrayLike, disk_radius_px: ArrayLike) -> FloatArray:
    """Density of a uniform disk at a radius, per px²: geometric optics of a round aperture.

    `disk_radius_px` is `thin_lens.blur_radius_px`. For a disk of radius 0: infinite at the centre,
    0 elsewhere.
    """
    radius = np.abs(np.asarray(radius_px, dtype=np.float64))
    disk = np.abs(np.asarray(disk_radius_px, dtype=np.float64))
    with np.errstate(divide="ignore"):
        density = np.where(radius > disk, 0.0, 1.0 / (np.pi * disk**2))
    return np.where(disk == 0, _point_density(radius), density)


def disk_otf(frequency: ArrayLike, disk_radius_px: ArrayLike) -> FloatArray:
    """Transfer function of a uniform disk at a frequency in cycles/px: 2 J1(x) / x, x = 2 pi R f.

    Zero at R f = 0.610 and negative beyond, where the contrast of a grating is reversed.
    """
    from scipy.special import j1  # here, to keep `import d3s` fast

    x = np.asarray(2.0 * np.pi * _cycles(frequency, disk_radius_px))
    return np.asarray(np.divide(2.0 * j1(x), x, out=np.ones_like(x), where=x != 0))


def disk_second_moment_px2(disk_radius_px: ArrayLike) -> FloatArray:
    """Second moment of a uniform disk along one axis, R²/4, in px²."""
    return np.asarray(np.square(np.asarray(disk_radius_px, dtype=np.float64)) / 4.0)


def pixel_otf(frequency_x: ArrayLike, frequency_y: ArrayLike) -> FloatArray:
    """Transfer function of a square pixel with full fill factor, sinc(fx) sinc(fy).

    Not rotationally symmetric: it takes the frequencies along both axes, in cycles/px.
    """
    transfer_x = np.sinc(np.asarray(frequency_x, dtype=np.float64))
    transfer_y = np.sinc(np.asarray(frequency_y, dtype=np.float64))
    return np.asarray(transfer_x * transfer_y)


def optical_cutoff(lens: Lens, wavelength_m: float) -> float:
    """Cut-off frequency of the lens in incoherent light, p 2A / (lambda s0), in cycles/px.

    The inverse of wavelength times f-number, measured in the rescaled image. It does not depend on
    the sensor distance or on defocus.
    """
    angular_cutoff_rad = 2.0 * lens.aperture_radius_m / wavelength_m
    return angular_cutoff_rad * lens.pixel_pitch_m / lens.reference_distance_m


def airy_radius_px(lens: Lens, wavelength_m: float) -> float:
    """Radius of the first dark ring in focus, 1.22 lambda N / p, in pixels; infinite for a pinhole.

    The ring encloses 84 % of the light. The density falls to half its peak at 0.42 of this radius.
    """
    with np.errstate(divide="ignore"):
        return float(np.divide(_FIRST_DARK_RING, optical_cutoff(lens, wavelength_m)))


def defocus_wavefront_m(defocus_radius_px: ArrayLike, lens: Lens) -> FloatArray:
    """Wavefront error W20 of defocus at the edge of the pupil, R A / (2 s0), in metres.

    The path error is W = W20 rho², with rho the pupil radius over A. A ray meets the sensor at
    (s / A) dW/drho from the centre, which is 2 s W20 / A at the edge of the pupil. Rescaling from s
    to s0 gives the blur radius R = 2 s0 W20 / A.
    """
    radius_m = np.asarray(defocus_radius_px, dtype=np.float64) * lens.pixel_pitch_m
    return np.asarray(radius_m * lens.aperture_radius_m / (2.0 * lens.reference_distance_m))


def diffraction_otf(
    frequency: ArrayLike, defocus_radius_px: ArrayLike, lens: Lens, wavelength_m: float
) -> FloatArray:
    """Transfer function of a defocused circular pupil, for one wavelength.

    For incoherent light, a hard-edged pupil, and no aberration except defocus. The transfer is the
    overlap of two unit pupils 2q apart, with q the frequency over the cut-off frequency. Across the
    overlap the phases differ by 4 k W20 q x, so that::

        H = (4/pi) int_0^arccos(q) cos(4 k W20 q (cos t - q)) sin² t dt.

    Zero beyond the cut-off. The difference to `disk_otf` of the same radius is at most the loss in
    focus, 1 - H(in focus), about 4q/pi: geometric optics is right for frequencies far below the
    cut-off. For a large grid of frequencies, tabulate by radius.

    Parameters
    ----------
    frequency
        Spatial frequencies, in cycles/px; broadcast with `defocus_radius_px`.
    defocus_radius_px
        Signed radius of the geometric blur, `thin_lens.blur_radius_px`, in pixels.
    lens
        Camera; aperture, reference distance and pixel pitch are used.
    wavelength_m
        Wavelength of the light, in metres.
    """
    cutoff = optical_cutoff(lens, wavelength_m)
    wave_number = 2.0 * np.pi / wavelength_m
    q = _fraction_of_cutoff(frequency, cutoff)
    end = np.arccos(q)
    overlap = np.zeros(np.broadcast_shapes(q.shape, np.shape(defocus_radius_px)))
    with np.errstate(invalid="ignore"):
        phase = 4.0 * wave_number * defocus_wavefront_m(defocus_radius_px, lens) * q
        # Node by node: an array of all frequencies and all nodes would not fit in memory.
        for node, weight in _unit_quadrature(phase * end):
            t = node * end
            overlap += weight * np.cos(phase * (np.cos(t) - q)) * np.sin(t) ** 2
    return np.asarray(4.0 / np.pi * end * overlap)


def diffraction_psf(
    radius_px: ArrayLike, defocus_radius_px: ArrayLike, lens: Lens, wavelength_m: float
) -> FloatArray:
    """Density of the PSF of a defocused circular pupil, per px², for one wavelength.

    ``|2 int_0^1 J0(v rho) exp(i k W20 rho²) rho drho|²`` with v = pi f_c r, times pi f_c²/4, the
    density at the centre in focus; f_c is the cut-off in cycles/px. `diffraction_otf` lists the
    assumptions.

    The second moment is infinite: a hard edge diffracts light so far out (1 / (pi³ f_c r³) on
    average) that the moment within a radius L grows as L / (pi² f_c), in focus or not. The moment
    that defocus *adds* is finite, the R²/4 of the geometric disk: within L, the difference to the
    moment in focus is too small by the fraction 12 / (pi² f_c L). See
    `encircled_second_moment_px2`.

    Parameters
    ----------
    radius_px
        Distance from the centre, in pixels; broadcasts with `defocus_radius_px`.
    defocus_radius_px, lens, wavelength_m
        As for `diffraction_otf`.
    """
    from scipy.special import j0  # here, to keep `import d3s` fast

    cutoff = optical_cutoff(lens, wavelength_m)
    v = np.pi * cutoff * np.abs(np.asarray(radius_px, dtype=np.float64))
    phase = 2.0 * np.pi / wavelength_m * defocus_wavefront_m(defocus_radius_px, lens)
    amplitude = np.zeros(np.broadcast_shapes(v.shape, phase.shape), dtype=np.complex128)
    with np.errstate(invalid="ignore"):
        for rho, weight in _unit_quadrature(v + 2.0 * np.abs(phase)):
            amplitude += 2.0 * rho * weight * j0(v * rho) * np.exp(1j * phase * rho**2)
    return np.asarray(np.pi / 4.0 * cutoff**2 * np.abs(amplitude) ** 2)


def encircled_energy(psf: RadialPsf, max_radius_px: float, *, ring_px: float = 1.0) -> float:
    """Share of the light within a radius, 0 to 1, by quadrature.

    Parameters
    ----------
    psf, max_radius_px, ring_px
        As for `encircled_second_moment_px2`.
    """
    radius, width = _ring_quadrature(max_radius_px, ring_px)
    return float(np.sum(2.0 * np.pi * radius * psf(radius) * width))


def encircled_second_moment_px2(
    psf: RadialPsf, max_radius_px: float, *, ring_px: float = 1.0
) -> float:
    """Second moment along one axis of the light within a radius, in px², by quadrature.

    pi int_0^L r³ psf(r) dr. The full second moment of a diffracted spot is infinite, so its value
    has a meaning only together with the radius, or as a difference.

    Parameters
    ----------
    psf
        Function from an array of radii, in pixels, to the density per px², of unit energy.
    max_radius_px
        Radius L, in pixels.
    ring_px
        Width of the rings that are integrated with 16 nodes each. 1 px suits every spot of a pixel
        or more. Use the size of the spot if it is far smaller, and a width that divides the radius
        of a discontinuity if the density has one.
    """
    radius, width = _ring_quadrature(max_radius_px, ring_px)
    return float(np.sum(np.pi * radius**3 * psf(radius) * width))


def diffraction_matters(depth_m: ArrayLike, lens: Lens, wavelength_m: float) -> BoolArray:
    """Mask of the depths at which diffraction sets the size of a spot.

    True where the Airy radius exceeds both the geometric blur radius and half a pixel. There, a
    model without diffraction draws a disk smaller than the spot in perfect focus. The condition on
    the blur radius is ``|W20| < 0.305`` wavelengths for every lens, slightly more than Rayleigh's
    quarter wave.

    Parameters
    ----------
    depth_m
        Depths, in metres.
    lens
        Camera.
    wavelength_m
        Wavelength of the light, in metres.
    """
    airy = airy_radius_px(lens, wavelength_m)
    blur = np.abs(blur_radius_px(depth_m, lens))
    return np.asarray((airy > blur) & (airy > _SMALLEST_VISIBLE_RADIUS_PX))


def diffraction_range_m(lens: Lens, wavelength_m: float) -> tuple[float, float]:
    """Nearest and farthest depth at which `diffraction_matters`, in metres; NaN if there is none.

    The range is 0.61 lambda / A² in vergence to either side of focus. The far end may be infinite.
    """
    airy = airy_radius_px(lens, wavelength_m)
    focus_dpt = focus_vergence_dpt(lens)
    with np.errstate(divide="ignore"):
        half_width_dpt = float(
            np.divide(_FIRST_DARK_RING * wavelength_m, 2.0 * lens.aperture_radius_m**2)
        )
    nearest_dpt, farthest_dpt = focus_dpt + half_width_dpt, focus_dpt - half_width_dpt
    if airy <= _SMALLEST_VISIBLE_RADIUS_PX or nearest_dpt <= 0:
        return (np.nan, np.nan)
    return (1.0 / nearest_dpt, 1.0 / farthest_dpt if farthest_dpt > 0 else np.inf)


def _point_density(radius: FloatArray) -> FloatArray:
    """Density of a point: infinite at the centre, 0 elsewhere."""
    return np.where(radius == 0, np.inf, 0.0)


def _cycles(frequency: ArrayLike, size_px: ArrayLike) -> FloatArray:
    """Frequency times size, in cycles; NaN without a warning for infinite blur at frequency 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.multiply(frequency, size_px, dtype=np.float64))


def _fraction_of_cutoff(frequency: ArrayLike, cutoff: float) -> FloatArray:
    """Ratio |f| / f_c, at most 1; 0 at frequency 0, also for a pinhole, whose cut-off is 0."""
    magnitude = np.abs(np.asarray(frequency, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(magnitude == 0, 0.0, np.minimum(magnitude / cutoff, 1.0))


def _unit_quadrature(phase_rad: FloatArray) -> list[tuple[float, float]]:
    """Nodes and weights on [0, 1] for integrands whose phase changes by up to `phase_rad`.

    Panels of Gauss-Legendre nodes: the cost of computing one long rule grows with the cube of the
    number of nodes.
    """
    largest_rad = np.max(np.abs(phase_rad), initial=0.0, where=np.isfinite(phase_rad))
    panels = 1 + int(largest_rad / _PHASE_PER_PANEL_RAD)
    nodes, weights = _panel_quadrature(panels, _NODES_PER_PANEL)
    return list(zip(nodes.tolist(), weights.tolist(), strict=True))


def _ring_quadrature(max_radius_px: float, ring_px: float) -> tuple[FloatArray, FloatArray]:
    """Radii and weights from 0 to `max_radius_px`, in rings no wider than `ring_px`."""
    rings = max(1, int(np.ceil(max_radius_px / ring_px)))
    nodes, weights = _panel_quadrature(rings, _NODES_PER_RING)
    return max_radius_px * nodes, max_radius_px * weights


def _panel_quadrature(panels: int, nodes_per_panel: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on [0, 1], divided into equal panels."""
    node, weight = np.polynomial.legendre.leggauss(nodes_per_panel)
    start = np.arange(panels)[:, np.newaxis]
    nodes = (start + 0.5 * (node + 1.0)) / panels
    weights = np.broadcast_to(0.5 * weight / panels, nodes.shape)
    return nodes.ravel(), weights.ravel()
