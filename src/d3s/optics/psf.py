"""Point-spread functions of a defocused lens: Gaussian, uniform disk, and diffraction.

Each family is round and comes as the intensity density at a radius (per px², of unit energy), the
transfer function at a frequency (cycles per pixel; real, one at zero) and the second moment along
one axis (px²). Blur may be signed, as `thin_lens` gives it; the sign changes nothing here.

The Gaussian is the model of the depth equations and the disk the geometric truth behind it. Both
are sharp in focus, which no lens is: diffraction sets a floor. A 12.1 mm, 1 mm radius lens
(f/6.05) over 2 µm pixels has, at 550 nm, an Airy radius of 2.03 px (four pixels across), a full
width at half maximum of 1.71 px, and passes nothing above 0.60 cycles/px.
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

# A pixel reaches half a pixel to each side of its centre; a smaller spot is lost in it.
_SMALLEST_VISIBLE_RADIUS_PX = 0.5

# On +-12 rad of phase 24 nodes are exact to rounding (the error is of the order of 6^48 / 48!).
_NODES_PER_PANEL = 24
_PHASE_PER_PANEL_RAD = 24.0

# Enough for an Airy ring, or a Gaussian of a third of a pixel, within one pixel of radius.
_NODES_PER_RING = 16


def gaussian_psf(radius_px: ArrayLike, sigma_px: ArrayLike) -> FloatArray:
    """Density of a Gaussian blur, per px²; for no blur infinite at the centre, zero elsewhere."""
    radius = np.asarray(radius_px, dtype=np.float64)
    variance = np.square(np.asarray(sigma_px, dtype=np.float64))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        density = np.exp(-(radius**2) / (2.0 * variance)) / (2.0 * np.pi * variance)
    return np.where(variance == 0, _point_density(radius), density)


def gaussian_otf(frequency: ArrayLike, sigma_px: ArrayLike) -> FloatArray:
    """Transfer of a Gaussian blur at a frequency in cycles/px, exp(-2 (pi sigma f)^2)."""
    return np.asarray(np.exp(-2.0 * np.square(np.pi * _cycles(frequency, sigma_px))))


def gaussian_second_moment_px2(sigma_px: ArrayLike) -> FloatArray:
    """Variance along one axis of a Gaussian blur, in px²."""
    return np.square(np.asarray(sigma_px, dtype=np.float64))


def disk_psf(radius_px: ArrayLike, disk_radius_px: ArrayLike) -> FloatArray:
    """Density of a uniform disk, per px²; of radius zero, infinite at the centre, zero elsewhere.

    What geometric optics gives for a round aperture: `disk_radius_px` is
    `thin_lens.blur_radius_px`.
    """
    radius = np.abs(np.asarray(radius_px, dtype=np.float64))
    disk = np.abs(np.asarray(disk_radius_px, dtype=np.float64))
    with np.errstate(divide="ignore"):
        density = np.where(radius > disk, 0.0, 1.0 / (np.pi * disk**2))
    return np.where(disk == 0, _point_density(radius), density)


def disk_otf(frequency: ArrayLike, disk_radius_px: ArrayLike) -> FloatArray:
    """Transfer of a uniform disk at a frequency in cycles/px, 2 J1(x) / x for x = 2 pi R f.

    Zero at R f = 0.610 and negative beyond, where the contrast of a grating is reversed.
    """
    from scipy.special import j1  # here, to keep `import d3s` fast

    x = np.asarray(2.0 * np.pi * _cycles(frequency, disk_radius_px))
    return np.asarray(np.divide(2.0 * j1(x), x, out=np.ones_like(x), where=x != 0))


def disk_second_moment_px2(disk_radius_px: ArrayLike) -> FloatArray:
    """Variance along one axis of a uniform disk, R²/4, in px²."""
    return np.asarray(np.square(np.asarray(disk_radius_px, dtype=np.float64)) / 4.0)


def pixel_otf(frequency_x: ArrayLike, frequency_y: ArrayLike) -> FloatArray:
    """Transfer of a square pixel that is sensitive all over, at frequencies in cycles/px.

    The one function here that is not round: it goes by the two axes.
    """
    transfer_x = np.sinc(np.asarray(frequency_x, dtype=np.float64))
    transfer_y = np.sinc(np.asarray(frequency_y, dtype=np.float64))
    return np.asarray(transfer_x * transfer_y)


def optical_cutoff(lens: Lens, wavelength_m: float) -> float:
    """Highest frequency that an incoherent image through the lens can hold, in cycles/px.

    p 2A / (lambda s0): one over wavelength times f-number. It is measured in the rescaled image,
    so that it does not depend on the sensor distance, and it is not lowered by defocus.
    """
    angular_cutoff_rad = 2.0 * lens.aperture_radius_m / wavelength_m
    return angular_cutoff_rad * lens.pixel_pitch_m / lens.reference_distance_m


def airy_radius_px(lens: Lens, wavelength_m: float) -> float:
    """Radius of the first dark ring in focus, 1.22 lambda N / p, in pixels; infinite for a pinhole.

    84 % of the light falls within it, and half the peak is reached at 0.42 of it.
    """
    with np.errstate(divide="ignore"):
        return float(np.divide(_FIRST_DARK_RING, optical_cutoff(lens, wavelength_m)))


def defocus_wavefront_m(defocus_radius_px: ArrayLike, lens: Lens) -> FloatArray:
    """Defocus W20 of the wavefront at the edge of the pupil, R A / (2 s0), in metres.

    With the path error W = W20 rho², rho the radius in the pupil over A, a ray meets the sensor
    (s / A) dW/drho off the centre, which is 2 s W20 / A at the edge. The rescaling from s to s0
    makes that the radius R = 2 s0 W20 / A of the rescaled image.
    """
    radius_m = np.asarray(defocus_radius_px, dtype=np.float64) * lens.pixel_pitch_m
    return np.asarray(radius_m * lens.aperture_radius_m / (2.0 * lens.reference_distance_m))


def diffraction_otf(
    frequency: ArrayLike, defocus_radius_px: ArrayLike, lens: Lens, wavelength_m: float
) -> FloatArray:
    """Transfer of a defocused circular pupil at a frequency in cycles/px, in one wavelength.

    Incoherent light, a hard-edged pupil, and no aberration but defocus. It is the overlap of two
    pupils 2q apart (q the frequency over the cut-off, the pupil's radius one). Across the overlap
    the phases differ by 4 k W20 q x, so that::

        H = (4/pi) int_0^arccos(q) cos(4 k W20 q (cos t - q)) sin² t dt.

    Zero beyond the cut-off. It differs from `disk_otf` of the same radius by no more than focus
    itself loses, 1 - H(in focus), about 4q/pi: geometry is right for frequencies low against the
    cut-off. For a large grid of frequencies, tabulate by radius.

    Parameters
    ----------
    defocus_radius_px
        Signed radius of the geometric blur, `thin_lens.blur_radius_px`.
    """
    cutoff = optical_cutoff(lens, wavelength_m)
    wave_number = 2.0 * np.pi / wavelength_m
    q = _fraction_of_cutoff(frequency, cutoff)
    end = np.arccos(q)
    overlap = np.zeros(np.broadcast_shapes(q.shape, np.shape(defocus_radius_px)))
    with np.errstate(invalid="ignore"):
        phase = 4.0 * wave_number * defocus_wavefront_m(defocus_radius_px, lens) * q
        # Node by node: a frame of frequencies times all nodes would not fit in memory.
        for node, weight in _unit_quadrature(phase * end):
            t = node * end
            overlap += weight * np.cos(phase * (np.cos(t) - q)) * np.sin(t) ** 2
    return np.asarray(4.0 / np.pi * end * overlap)


def diffraction_psf(
    radius_px: ArrayLike, defocus_radius_px: ArrayLike, lens: Lens, wavelength_m: float
) -> FloatArray:
    """Density of a defocused circular pupil's image of a point, per px², in one wavelength.

    ``|2 int_0^1 J0(v rho) exp(i k W20 rho²) rho drho|²`` for v = pi f_c r, times the density
    pi f_c²/4 at the centre in focus, f_c the cut-off in cycles/px. See
    `diffraction_otf` for what is assumed.

    The second moment is infinite: a hard edge throws light so far out (1 / (pi³ f_c r³) on the
    average) that the moment within a radius L grows as L / (pi² f_c), in focus or out of it. What
    defocus *adds* to it is finite, and is the R²/4 of the geometric disk: the moment within L,
    less that in focus, falls short of it by the fraction 12 / (pi² f_c L). See
    `encircled_second_moment_px2`.
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
    """Share of the light within a radius; arguments as for `encircled_second_moment_px2`."""
    radius, width = _ring_quadrature(max_radius_px, ring_px)
    return float(np.sum(2.0 * np.pi * radius * psf(radius) * width))


def encircled_second_moment_px2(
    psf: RadialPsf, max_radius_px: float, *, ring_px: float = 1.0
) -> float:
    """Second moment along one axis of the light within a radius, in px², by quadrature.

    pi int_0^L r³ psf(r) dr. The way to give a diffracted spot a second moment at all, since its
    whole one is infinite: the value means something only beside its radius, or as a difference.

    Parameters
    ----------
    psf
        Density per px² at an array of radii, of unit energy.
    ring_px
        Width of the rings that are integrated by 16 nodes each. A pixel is fine for anything a
        pixel can see; for a spot far smaller, take its own size, and for a spot with a jump, a
        width that divides the radius of the jump.
    """
    radius, width = _ring_quadrature(max_radius_px, ring_px)
    return float(np.sum(np.pi * radius**3 * psf(radius) * width))


def diffraction_matters(depth_m: ArrayLike, lens: Lens, wavelength_m: float) -> BoolArray:
    """Tell the depths at which diffraction, not defocus or the pixel, sets the size of a spot.

    True where the Airy radius exceeds the geometric blur radius, so that a model without
    diffraction draws a disk that is smaller than the spot in perfect focus. Never true for an Airy
    radius within half a pixel, which a pixel cannot tell from a point. The first condition is
    ``|W20| < 0.305`` wavelengths whatever the lens: a little more than the quarter wave that, by
    Rayleigh's rule, is as good as focus.
    """
    airy = airy_radius_px(lens, wavelength_m)
    blur = np.abs(blur_radius_px(depth_m, lens))
    return np.asarray((airy > blur) & (airy > _SMALLEST_VISIBLE_RADIUS_PX))


def diffraction_range_m(lens: Lens, wavelength_m: float) -> tuple[float, float]:
    """Nearest and farthest depth at which `diffraction_matters`; two NaN if it nowhere does.

    In vergence it is 0.61 lambda / A² to either side of focus. The far end is infinite when that
    reaches infinity.
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
    """Density of a spot without any size."""
    return np.where(radius == 0, np.inf, 0.0)


def _cycles(frequency: ArrayLike, size_px: ArrayLike) -> FloatArray:
    """Frequency times a size; NaN, without a warning, where an endless blur meets no frequency."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.multiply(frequency, size_px, dtype=np.float64))


def _fraction_of_cutoff(frequency: ArrayLike, cutoff: float) -> FloatArray:
    """|f| / f_c, at most one; zero at zero frequency even for a pinhole, which cuts off at zero."""
    magnitude = np.abs(np.asarray(frequency, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(magnitude == 0, 0.0, np.minimum(magnitude / cutoff, 1.0))


def _unit_quadrature(phase_rad: FloatArray) -> list[tuple[float, float]]:
    """Nodes and weights on [0, 1] for integrands whose phase changes there by up to `phase_rad`.

    Panels of Gauss-Legendre nodes rather than one long rule, whose nodes cost the cube of their
    number to find.
    """
    largest_rad = np.max(np.abs(phase_rad), initial=0.0, where=np.isfinite(phase_rad))
    panels = 1 + int(largest_rad / _PHASE_PER_PANEL_RAD)
    nodes, weights = _panel_quadrature(panels, _NODES_PER_PANEL)
    return list(zip(nodes.tolist(), weights.tolist(), strict=True))


def _ring_quadrature(max_radius_px: float, ring_px: float) -> tuple[FloatArray, FloatArray]:
    """Radii and weights from the centre to `max_radius_px`, in rings no wider than `ring_px`."""
    rings = max(1, int(np.ceil(max_radius_px / ring_px)))
    nodes, weights = _panel_quadrature(rings, _NODES_PER_RING)
    return max_radius_px * nodes, max_radius_px * weights


def _panel_quadrature(panels: int, nodes_per_panel: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on [0, 1], cut into equal panels."""
    node, weight = np.polynomial.legendre.leggauss(nodes_per_panel)
    start = np.arange(panels)[:, np.newaxis]
    nodes = (start + 0.5 * (node + 1.0)) / panels
    weights = np.broadcast_to(0.5 * weight / panels, nodes.shape)
    return nodes.ravel(), weights.ravel()
