"""Point-spread functions against quadrature, FFTs and tables, not against their own formulas."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad, simpson
from scipy.optimize import brentq
from scipy.special import j0, j1

from d3s.optics import psf
from d3s.optics.lens import Lens
from d3s.optics.thin_lens import blur_radius_px, conjugate_distance_m

GREEN_M = 550e-9
# The paper's prototype, its left lens; the right one has 83.78 dpt.
LEFT = Lens(
    optical_power_dpt=83.88,
    aperture_radius_m=1e-3,
    sensor_distance_m=12.1e-3,
    reference_distance_m=12.1e-3,
    pixel_pitch_m=2e-6,
    aperture_gaussian_width=0.5,
)
RIGHT = replace(LEFT, optical_power_dpt=83.78)
# 2 * 1 mm / 550 nm * 2 um / 12.1 mm
CUTOFF = 0.601052


def diffracted(defocus_radius_px: float) -> psf.RadialPsf:
    return lambda radius: psf.diffraction_psf(radius, defocus_radius_px, LEFT, GREEN_M)


def hankel(radial, argument: float, end: float) -> float:
    """Transform of a round function: its own inverse, so it serves both ways."""
    integrand = lambda x: 2 * np.pi * x * float(radial(x)) * j0(2 * np.pi * x * argument)  # noqa: E731
    return quad(integrand, 0, end, epsabs=1e-11, epsrel=1e-10, limit=400)[0]


# --- Gaussian and disk -----------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.4, -1.7])
def test_gaussian_has_unit_energy_and_its_transfer(sigma: float):
    density = lambda r: psf.gaussian_psf(r, sigma)  # noqa: E731
    assert hankel(density, 0.0, 12 * abs(sigma)) == pytest.approx(1, abs=1e-9)
    for frequency in (0.03, 0.2, 0.5):
        transfer = psf.gaussian_otf(frequency, sigma)
        assert transfer == pytest.approx(hankel(density, frequency, 12 * abs(sigma)), abs=1e-9)


@pytest.mark.parametrize("disk", [0.7, -5.3])
def test_disk_has_unit_energy_and_its_transfer(disk: float):
    density = lambda r: psf.disk_psf(r, disk)  # noqa: E731
    assert hankel(density, 0.0, abs(disk)) == pytest.approx(1, abs=1e-9)
    assert psf.disk_psf(1.001 * abs(disk), disk) == 0
    for frequency in (0.03, 0.2, 0.5):
        transfer = psf.disk_otf(frequency, disk)
        assert transfer == pytest.approx(hankel(density, frequency, abs(disk)), abs=1e-9)


def test_disk_transfer_by_hand():
    # Tables: J1(1) = 0.4400505857, first zero of J1 at 3.8317060 = 2 pi * 0.6098350.
    assert psf.disk_otf(0.5 / np.pi, 1.0) == pytest.approx(0.8801011715, abs=1e-10)
    assert psf.disk_otf(0.609835 / 7.0, 7.0) == pytest.approx(0, abs=1e-7)
    assert psf.disk_otf(0.8, 1.0) < 0


@pytest.mark.parametrize(
    ("otf", "second_moment", "size", "by_hand_px2"),
    [
        (psf.gaussian_otf, psf.gaussian_second_moment_px2, 1.5, 2.25),
        (psf.disk_otf, psf.disk_second_moment_px2, 3.0, 2.25),
    ],
)
def test_second_moment_is_the_curvature_of_the_transfer(otf, second_moment, size, by_hand_px2):
    step = 1e-4
    # H = 1 - 2 pi^2 m f^2 + ...
    curvature = (1 - otf(step, size)) / (2 * np.pi**2 * step**2)
    assert curvature == pytest.approx(by_hand_px2, rel=1e-5)
    assert second_moment(size) == pytest.approx(by_hand_px2, rel=1e-14)
    assert second_moment(-size) == second_moment(size)


# --- diffraction: figures of the prototype ---------------------------------------------------


def test_figures_of_the_prototype():
    # N = 12.1 / 2 = 6.05; 1.21967 * 0.55 um * 6.05 / 2 um
    assert psf.airy_radius_px(LEFT, GREEN_M) == pytest.approx(2.0292, abs=1e-4)
    assert psf.optical_cutoff(LEFT, GREEN_M) == pytest.approx(CUTOFF, abs=1e-6)
    peak = float(psf.diffraction_psf(0.0, 0.0, LEFT, GREEN_M))
    half_px = brentq(lambda r: float(psf.diffraction_psf(r, 0.0, LEFT, GREEN_M)) - peak / 2, 0.5, 1)
    # Full width at half maximum of an Airy disk: 1.0290 lambda N.
    assert 2 * half_px == pytest.approx(1.0290 * 0.55 * 6.05 / 2, rel=1e-4)
    assert psf.diffraction_psf(psf.airy_radius_px(LEFT, GREEN_M), 0.0, LEFT, GREEN_M) < 1e-25


@pytest.mark.parametrize(
    ("lens", "near_m", "far_m"),
    [
        # Focus at 83.88 - 82.6446 = 1.2354 dpt, +- 0.609835 * 0.55e-6 / 1e-6 = 0.3354 dpt.
        (LEFT, 0.63663, 1.11116),
        (RIGHT, 0.67991, 1.25006),
    ],
)
def test_diffraction_range_of_the_prototype(lens: Lens, near_m: float, far_m: float):
    near, far = psf.diffraction_range_m(lens, GREEN_M)
    assert (near, far) == pytest.approx((near_m, far_m), rel=2e-5)
    depths = [0.3, near - 1e-6, near + 1e-6, 0.9, far - 1e-6, far + 1e-6, 2.0, np.nan]
    np.testing.assert_array_equal(
        psf.diffraction_matters(depths, lens, GREEN_M),
        [False, False, True, True, True, False, False, False],
    )


def test_diffraction_range_at_its_limits():
    # An Airy radius of 0.41 px: the pixel hides it.
    fast = replace(LEFT, aperture_radius_m=5e-3)
    assert np.isnan(psf.diffraction_range_m(fast, GREEN_M)).all()
    assert not psf.diffraction_matters(1 / 1.23545, fast, GREEN_M)
    # Focus at 0.1 dpt less 0.34 dpt is beyond infinity.
    hyperfocal = replace(LEFT, optical_power_dpt=82.7446)
    assert psf.diffraction_range_m(hyperfocal, GREEN_M) == pytest.approx((2.297, np.inf), rel=1e-3)
    # Focus at -1 dpt: no depth comes close to it.
    beyond = replace(LEFT, optical_power_dpt=81.6446)
    assert np.isnan(psf.diffraction_range_m(beyond, GREEN_M)).all()


def test_a_pinhole_diffracts_without_bound():
    pinhole = replace(LEFT, aperture_radius_m=0.0)
    assert psf.airy_radius_px(pinhole, GREEN_M) == np.inf
    assert psf.diffraction_range_m(pinhole, GREEN_M) == (0, np.inf)
    np.testing.assert_allclose(psf.diffraction_otf([0.0, 0.1], 0.0, pinhole, GREEN_M), [1, 0])
    np.testing.assert_array_equal(psf.diffraction_psf([0.0, 9.0], 0.0, pinhole, GREEN_M), 0)


# --- diffraction: wavefront ------------------------------------------------------------------


@pytest.mark.parametrize("sensor_m", [12.1e-3, 12.0e-3])
@pytest.mark.parametrize("depth_m", [0.3, 1.9])
def test_wavefront_against_rays_and_spheres(depth_m: float, sensor_m: float):
    # A narrow lens, since blur is linear in the aperture only for rays close to the axis.
    lens = replace(LEFT, aperture_radius_m=1e-5, sensor_distance_m=sensor_m)
    image_m = float(conjugate_distance_m(depth_m, lens.optical_power_dpt))
    # The ray from the rim to the image point crosses the sensor this far from the axis.
    hit_m = lens.aperture_radius_m * (1 - sensor_m / image_m)
    radius_px = hit_m / sensor_m * lens.reference_distance_m / lens.pixel_pitch_m
    assert blur_radius_px(depth_m, lens) == pytest.approx(radius_px, rel=1e-9)

    # The wavefront is a sphere about the image, and ought to be one about the sensor's centre.
    def sag(distance):
        return lens.aperture_radius_m**2 / (
            distance + np.sqrt(distance**2 - lens.aperture_radius_m**2)
        )

    error_m = sag(sensor_m) - sag(image_m)
    assert psf.defocus_wavefront_m(radius_px, lens) == pytest.approx(error_m, rel=1e-5)


# --- diffraction: transfer and spread --------------------------------------------------------


def test_transfer_in_focus_is_the_known_closed_form():
    q = np.array([0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 1.5])
    # (2/pi)(acos q - q sqrt(1 - q^2)); at 1/2 it is 2/3 - sqrt(3)/(2 pi) = 0.391002.
    inside = np.minimum(q, 1)
    known = 2 / np.pi * (np.arccos(inside) - inside * np.sqrt(1 - inside**2))
    transfer = psf.diffraction_otf(q * psf.optical_cutoff(LEFT, GREEN_M), 0.0, LEFT, GREEN_M)
    np.testing.assert_allclose(transfer, known, atol=1e-14)
    assert transfer[3] == pytest.approx(0.391002, abs=1e-6)
    assert transfer[-1] == 0


@pytest.mark.parametrize("defocus_px", [0.0, 4.0, 12.7])
def test_transfer_against_an_fft_autocorrelation_of_the_pupil(defocus_px: float):
    # Waves of defocus at the rim: R A / (2 s0) over the wavelength.
    waves = defocus_px * 2e-6 * 1e-3 / (2 * 12.1e-3) / GREEN_M
    radius, size = 200, 1024
    x = np.arange(size) - size // 2
    rho2 = (x[:, np.newaxis] ** 2 + x**2) / radius**2
    pupil = np.where(rho2 <= 1, np.exp(2j * np.pi * waves * rho2), 0)
    overlap = np.fft.ifft2(np.abs(np.fft.fft2(pupil)) ** 2)[0]
    known = (overlap / overlap[0])[: 2 * radius]
    frequency = np.arange(2 * radius) / (2 * radius) * CUTOFF
    transfer = psf.diffraction_otf(frequency, defocus_px, LEFT, GREEN_M)
    # The stepped rim of the sampled pupil is wrong by a part in some hundreds of its area.
    np.testing.assert_allclose(known.imag, 0, atol=1e-12)
    np.testing.assert_allclose(transfer, known.real, atol=2e-3)


@pytest.mark.parametrize("defocus_px", [0.0, 3.0, 12.7])
def test_spread_is_the_transform_of_the_transfer(defocus_px: float):
    transfer = lambda f: psf.diffraction_otf(f, defocus_px, LEFT, GREEN_M)  # noqa: E731
    for radius in (0.0, 0.8, 2.5, 12.0, 31.0):
        density = float(psf.diffraction_psf(radius, defocus_px, LEFT, GREEN_M))
        assert hankel(transfer, radius, CUTOFF) == pytest.approx(density, abs=2e-9)


def test_far_defocus_keeps_its_accuracy():
    # 2000 px of blur: a panel too few would leave errors of the order of one. At R f = 40, and
    # 0.033 of the cut-off, against the same overlap integrated over x by an adaptive rule.
    frequency, q = 0.02, 0.02 / psf.optical_cutoff(LEFT, GREEN_M)
    known = quad(
        lambda x: 4 / np.pi * np.sqrt(1 - (x + q) ** 2),
        0,
        1 - q,
        weight="cos",
        wvar=2 * np.pi * 2000 * frequency,
        limit=400,
    )[0]
    transfer = float(psf.diffraction_otf(frequency, 2000.0, LEFT, GREEN_M))
    assert transfer == pytest.approx(known, abs=1e-10)


def test_in_focus_the_encircled_energy_is_rayleighs():
    # 1 - J0^2(v) - J1^2(v), v = pi f_c r: Born and Wolf, 8.5.2. 0.838 at the first dark ring.
    for radius in (1.0, psf.airy_radius_px(LEFT, GREEN_M), 7.5, 40.0):
        v = np.pi * psf.optical_cutoff(LEFT, GREEN_M) * radius
        known = 1 - j0(v) ** 2 - j1(v) ** 2
        assert psf.encircled_energy(diffracted(0.0), radius) == pytest.approx(known, abs=1e-10)


@pytest.mark.parametrize("defocus_px", [0.0, 3.0, 12.0])
def test_diffraction_has_unit_energy(defocus_px: float):
    edge_px = 200.0
    radius = np.linspace(0, edge_px, 20001)
    inside = simpson(2 * np.pi * radius * diffracted(defocus_px)(radius), x=radius)
    # Beyond the edge the density is 1 / (pi^3 f_c r^3) on the average.
    outside = 2 / (np.pi**2 * CUTOFF * edge_px)
    assert inside + outside == pytest.approx(1, abs=1e-5)


def test_large_defocus_tends_to_the_disk():
    # The same R f, so the same shape of the disk's transfer, at ever lower frequencies.
    cycles = np.linspace(0, 2, 100)
    errors = [
        np.max(np.abs(psf.diffraction_otf(cycles / r, r, LEFT, GREEN_M) - psf.disk_otf(cycles, 1)))
        for r in (30.0, 300.0, 3000.0)
    ]
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.15)
    assert errors[2] < 1e-3


# --- diffraction: second moment --------------------------------------------------------------


@pytest.mark.parametrize("defocus_px", [3.0, 6.0, 12.0])
def test_defocus_adds_the_second_moment_of_the_disk(defocus_px: float):
    edge_px = 200.0
    focused = psf.encircled_second_moment_px2(diffracted(0.0), edge_px)
    added = psf.encircled_second_moment_px2(diffracted(defocus_px), edge_px) - focused
    # Light at the edge counts 3 R^2 / r^2 more than in focus, so 12 / (pi^2 f_c L) = 1.01 % is
    # still to come.
    missing = 12 / (np.pi**2 * CUTOFF * edge_px)
    assert missing == pytest.approx(0.01011, rel=1e-3)
    assert added / (defocus_px**2 / 4) == pytest.approx(1 - missing, abs=1e-4)


# --- properties of all -----------------------------------------------------------------------


FAMILY_FUNCTIONS = [
    (psf.gaussian_psf, ()),
    (psf.gaussian_otf, ()),
    (psf.disk_psf, ()),
    (psf.disk_otf, ()),
    (psf.diffraction_psf, (LEFT, GREEN_M)),
    (psf.diffraction_otf, (LEFT, GREEN_M)),
]


@pytest.mark.parametrize(("function", "optics"), FAMILY_FUNCTIONS)
def test_arrays_broadcast_and_the_sign_of_the_blur_does_not_matter(function, optics):
    at = np.array([0.0, 0.1, 0.7])[:, np.newaxis]
    blur = np.array([[0.4, 5.0]])
    table = function(at, blur, *optics)
    assert table.shape == (3, 2)
    assert table.dtype == np.float64
    np.testing.assert_array_equal(function(at, -blur, *optics), table)
    np.testing.assert_allclose(function(-at, blur, *optics), table, rtol=1e-14)
    one = function(0.1, 5.0, *optics)
    assert one.shape == ()
    # The number of nodes follows the largest blur of a call, so not to the last bit.
    assert one == pytest.approx(table[1, 1], rel=1e-12)


def test_pixel_transfer():
    # sinc(1/2) = 2/pi on each axis; nothing at one cycle per pixel.
    expected = [1, 2 / np.pi, 4 / np.pi**2]
    np.testing.assert_allclose(psf.pixel_otf([0, 0.5, 0.5], [0, 0, 0.5]), expected, rtol=1e-14)
    assert psf.pixel_otf(1.0, 0.0) == pytest.approx(0, abs=1e-15)


def test_importing_does_not_load_scipy():
    # It would take more time than all the rest of the package.
    code = "import sys, d3s.optics.psf, d3s.optics.information; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
