"""Each erratum of docs/reproduction.md: the printed form fails, by how much; the derived one holds.

Judged by images in closed form (`analytic.py`), not by algebra; `test_derivation.py` has that.
"""

from dataclasses import replace

import numpy as np
import pytest

import analytic
from analytic import PITCH, RESTING, S0, WIDTH, Camera, Texture
from d3s.lab.reproduce import errata as printed
from d3s.lab.reproduce import fig6_systems as systems
from d3s.optics import cases, consensus, d3, psf, relation, roots, stereo, thin_lens
from d3s.optics.lens import ImageDerivatives, Lens, Rates
from d3s.optics.relation import DepthCubic

CAMERA = Camera(x=1e-3, y=-2e-3, depth=0.7, power=82.9, aperture=1.1e-3, sensor=0.0122)
LENS = analytic.lens_of(CAMERA)
RATES = Camera(x=1e-5, y=-2e-5, depth=0.03, power=0.05, aperture=2e-5, sensor=1e-5)


def _moving(*names: str) -> Camera:
    return replace(RESTING, **{name: getattr(RATES, name) for name in names})


def _images(rates: Camera, **options: object) -> ImageDerivatives:
    return analytic.derivatives(Texture.random(1), CAMERA, rates, *analytic.pixels(1), **options)


def _residual(cubic: DepthCubic) -> float:
    """Residual of the cubic at the true depth, relative to its terms."""
    terms = np.stack([coefficient * CAMERA.depth**n for n, coefficient in enumerate(cubic)])
    return float(np.median(np.abs(terms.sum(axis=0)) / np.abs(terms).max(axis=0)))


def _numeric_blur_rate(rates: Camera) -> float:
    """Rate of the blur of the analytic camera, in pixels, positive nearer than the focus."""

    def sigma(t: float) -> float:
        camera = CAMERA.moved(rates, t)
        return -WIDTH * camera.blur_radius_m() / PITCH * S0 / camera.sensor

    return (sigma(1e-3) - sigma(-1e-3)) / 2e-3


@pytest.mark.parametrize("name", ["sensor", "aperture"])
def test_e01_blur_rate_of_a_moving_sensor_and_an_opening_aperture(name):
    true = _numeric_blur_rate(_moving(name))
    rates = analytic.rates_of(_moving(name))
    assert thin_lens.blur_rate_px(CAMERA.depth, LENS, rates) == pytest.approx(true, rel=1e-6)
    # Printed: more than ten times too much.
    assert abs(printed.blur_rate_px(CAMERA.depth, LENS, rates)) > 10 * abs(true)


@pytest.mark.parametrize("name", ["power", "depth"])
def test_e01_blur_rate_is_right_as_printed_otherwise(name):
    rates = analytic.rates_of(_moving(name))
    true = _numeric_blur_rate(_moving(name))
    assert printed.blur_rate_px(CAMERA.depth, LENS, rates) == pytest.approx(true, rel=1e-6)


def test_e02_psf_rate_has_no_further_factor():
    """A numerical heat equation: the printed factor |Sigma|² A² would be 5e-9 here."""
    sigma, sigma_rate, r, h = 2.0, 0.3, 1.3, 1e-3
    rate = (
        psf.gaussian_psf(r, sigma + sigma_rate * h) - psf.gaussian_psf(r, sigma - sigma_rate * h)
    ) / (2 * h)
    offsets = np.hypot(r + np.array([0, h, -h, 0, 0]), np.array([0, 0, 0, h, -h]))
    values = psf.gaussian_psf(offsets, sigma)
    laplacian = (values[1:].sum() - 4 * values[0]) / h**2
    assert rate == pytest.approx(sigma * sigma_rate * laplacian, rel=1e-4)
    assert (WIDTH**4) ** 2 * CAMERA.aperture**2 < 1e-8


def test_e03_cubic_of_an_opening_aperture():
    rates = analytic.rates_of(_moving("aperture"))
    images = _images(_moving("aperture"))
    assert _residual(relation.depth_cubic(images, LENS, rates)) < 1e-9
    assert _residual(printed.depth_cubic(images, LENS, rates)) > 0.3


@pytest.mark.parametrize("name", ["x", "y", "power", "sensor"])
def test_e03_cubic_is_right_as_printed_for_the_other_parameters(name):
    rates = analytic.rates_of(_moving(name))
    assert _residual(printed.depth_cubic(_images(_moving(name)), LENS, rates)) < 1e-9


def test_e04_image_rate_of_a_lateral_motion_scales_with_the_depth():
    images = _images(_moving("x"))
    as_printed = np.asarray(images.grad_x) * RATES.x
    scale = S0 / (CAMERA.depth * PITCH)
    np.testing.assert_allclose(images.rate, scale * as_printed, rtol=1e-6)
    assert scale > 8000


def test_e04_image_rate_of_an_axial_motion_goes_with_the_relative_speed():
    """A camera in focus: its blur is neither changed nor magnified, to first order."""
    focused = replace(CAMERA, depth=1 / (CAMERA.power - 1 / CAMERA.sensor))
    texture, pixels = Texture.random(1), analytic.pixels(1)
    images = analytic.derivatives(texture, focused, _moving("depth"), *pixels)
    expected = RATES.depth / focused.depth * np.asarray(images.radial)
    np.testing.assert_allclose(images.rate, expected, atol=1e-9 * np.abs(images.rate).max())
    as_printed = -PITCH / S0 * np.asarray(images.radial)
    assert np.abs(as_printed).max() < 0.01 * np.abs(images.rate).max()


def test_e05_alpha_of_a_moving_sensor_away_from_the_reference_distance():
    images = _images(_moving("sensor"))
    right = cases.sensor_distance_depth_m(images, LENS, sensor_rate_m=RATES.sensor)
    np.testing.assert_allclose(right, CAMERA.depth, rtol=1e-6)
    # Printed alpha A² s' instead of s0² A² s'/s²: too large by (s/s0)² = 1.0166.
    wrong = cases.sensor_distance_depth_m(
        images, LENS, sensor_rate_m=RATES.sensor * (CAMERA.sensor / S0) ** 2
    )
    assert np.abs(wrong / CAMERA.depth - 1).min() > 1e-3


def _prototype_lens(power: float) -> Lens:
    return replace(LENS, optical_power_dpt=power, sensor_distance_m=S0, aperture_radius_m=1e-3)


def test_e06_half_the_power_difference_halves_the_defocus_signal():
    whole = d3.alpha_px2_m(_prototype_lens(83.88), _prototype_lens(83.78))
    half = d3.alpha_px2_m(_prototype_lens(83.855), _prototype_lens(83.805))
    assert whole == pytest.approx(2 * half)


def test_e07_disparity_error_of_the_papers_own_row():
    own = systems.COMPARED_SYSTEMS[-1]
    # 0.01 * 0.00384 * 0.0121 / (1.56² * 2e-6) = 0.09546
    computed = systems.disparity_error_at_farthest_px(own)
    assert computed == pytest.approx(0.09546, abs=1e-5)
    assert str(own.printed_disparity_error_px) == "0.11"
    disagreeing = [s for s in systems.COMPARED_SYSTEMS if not systems.printed_values_agree(s)]
    assert disagreeing == [own]


def test_e08_cardanos_principal_root_is_the_largest_not_the_physical_one():
    """A camera that opens its aperture: the target lies nearer than the focus."""
    rates = analytic.rates_of(_moving("aperture"))
    cubic = relation.depth_cubic(_images(_moving("aperture")), LENS, rates)
    found = roots.real_cubic_roots(*cubic)
    assert np.isfinite(found).all(), "three real roots: 0, the depth, and one beyond the focus"
    b, c, d = cubic.a2 / cubic.a3, cubic.a1 / cubic.a3, cubic.a0 / cubic.a3
    p, q = c - b**2 / 3, 2 * b**3 / 27 - b * c / 3 + d
    assert ((q / 2) ** 2 + (p / 3) ** 3 < 0).all(), "the paper has it positive as a rule"
    principal = printed.cardano_depth_m(cubic)
    np.testing.assert_allclose(principal, found.max(axis=0), rtol=1e-6)
    assert np.abs(principal / CAMERA.depth - 1).min() > 0.5
    assert np.nanmin(np.abs(found / CAMERA.depth - 1), axis=0).max() < 1e-6


def test_e08_cardano_is_right_when_there_is_one_real_root():
    cubic = DepthCubic(*(np.array([v]) for v in (-8.0, 0.0, 0.0, 1.0)))
    np.testing.assert_allclose(printed.cardano_depth_m(cubic), 2.0)


def test_e09_axial_motion_magnifies_the_sharp_image_not_the_blur():
    rates = analytic.rates_of(_moving("depth"))
    images = _images(_moving("depth"))
    derived = relation.image_rate(images, CAMERA.depth, LENS, rates)
    as_printed = printed.axial_image_rate(images, CAMERA.depth, LENS, rates)
    scale = np.abs(images.rate).max()
    assert np.abs(derived - images.rate).max() < 1e-9 * scale
    assert np.abs(as_printed - images.rate).max() > 0.02 * scale
    missing = rates.axial_m / CAMERA.depth * thin_lens.blur_variance_px2(CAMERA.depth, LENS)
    np.testing.assert_allclose(
        as_printed + missing * images.laplacian, images.rate, atol=1e-9 * scale
    )


def test_e10_the_general_relation_is_a_quadratic():
    everything = _moving("x", "y", "depth", "power", "aperture", "sensor")
    images, rates = _images(everything), analytic.rates_of(everything)
    derived = relation.depth_cubic(images, LENS, rates)
    assert not derived.a0.any()
    assert _residual(derived) < 1e-9
    assert _residual(printed.depth_cubic(images, LENS, rates)) > 0.05


def test_e11_axial_motion_has_a_closed_form():
    images = _images(_moving("depth"))
    depths = cases.axial_depths_m(images, LENS, depth_rate_m=RATES.depth)
    assert np.nanmin(np.abs(depths / CAMERA.depth - 1), axis=0).max() < 1e-6


def _raw(*names: str) -> tuple[ImageDerivatives, Lens, Rates]:
    rates = _moving(*names)
    return _images(rates, raw=True), analytic.lens_of(CAMERA, raw=True), analytic.rates_of(rates)


def test_e12_the_raw_image_is_linear_in_inverse_depth_too():
    images, lens, rates = _raw("x", "y", "power", "sensor")
    depth = cases.combined_depth_m(
        relation.rescaled_derivatives(images, lens, rates),
        lens,
        lateral_x_m=rates.lateral_x_m,
        lateral_y_m=rates.lateral_y_m,
        power_rate_dpt=rates.optical_power_dpt,
        sensor_rate_m=rates.sensor_distance_m,
    )
    np.testing.assert_allclose(depth, CAMERA.depth, rtol=1e-6)
    c0, c1, c2 = printed.raw_combined_quadratic(images, lens, rates)
    wrong = 1 / roots.real_quadratic_roots(c0, c1, c2)
    assert np.nanmedian(np.nanmin(np.abs(wrong / CAMERA.depth - 1), axis=0)) > 1e-3


def test_e12_the_printed_quadratic_is_right_while_the_sensor_rests():
    images, lens, rates = _raw("x", "y", "power")
    c0, c1, c2 = printed.raw_combined_quadratic(images, lens, rates)
    assert not np.any(c2)
    np.testing.assert_allclose(-c1 / c0, CAMERA.depth, rtol=1e-6)


def test_e13_sensor_distance_from_the_raw_image():
    images, lens, rates = _raw("sensor")
    depth = cases.sensor_distance_depth_m(
        relation.rescaled_derivatives(images, lens, rates), lens, sensor_rate_m=RATES.sensor
    )
    np.testing.assert_allclose(depth, CAMERA.depth, rtol=1e-6)
    wrong = printed.raw_sensor_distance_depth_m(images, lens, rates)
    assert np.median(np.abs(wrong / CAMERA.depth - 1)) > 0.1


def test_e14_the_printed_sign_belongs_to_an_upright_image():
    upright, inverted = (_images(_moving("x"), orientation=sign) for sign in (1, -1))
    lateral = {"lateral_x_m": RATES.x, "lateral_y_m": 0.0}
    np.testing.assert_allclose(
        cases.lateral_depth_m(upright, LENS, **lateral), CAMERA.depth, rtol=1e-6
    )
    np.testing.assert_allclose(
        cases.lateral_depth_m(inverted, LENS, **lateral), -CAMERA.depth, rtol=1e-6
    )


def test_e15_pixels_need_the_pitch_in_the_depth_equation():
    images = _images(_moving("x"))
    as_printed = S0 * np.asarray(images.grad_x) * RATES.x / images.rate
    np.testing.assert_allclose(as_printed, CAMERA.depth * PITCH, rtol=1e-6)


def test_e16_the_pupil_function_needs_its_normalisation():
    """Energy of the printed Gaussian aperture of unit radius, 2 pi w², against one."""
    r = (np.arange(20000) + 0.5) * 1e-3
    printed_energy = np.sum(2 * np.pi * r * np.exp(-0.5 * (r / WIDTH) ** 2)) * 1e-3
    assert printed_energy == pytest.approx(2 * np.pi * WIDTH**2, rel=1e-6)
    energy = np.sum(2 * np.pi * r * psf.gaussian_psf(r, WIDTH)) * 1e-3
    assert energy == pytest.approx(1, rel=1e-6)


def test_e17_magnification_between_the_lenses_is_not_negligible():
    """Refocused by the sensor distance, 0.1 1/m is 14.6 um, and the image 0.12 % larger."""
    step = 0.1 * S0**2
    assert step == pytest.approx(14.64e-6, rel=1e-3)
    magnification = step / S0
    at_the_border_px = magnification * 1802 / 2
    assert at_the_border_px == pytest.approx(1.090, rel=1e-3)
    error_m = stereo.depth_error_m(
        at_the_border_px, 1.0, focal_length_px=S0 / PITCH, baseline_m=3.84e-3
    )
    assert error_m == pytest.approx(0.0469, rel=1e-2)


def test_e18_the_depth_equation_needs_the_laplacian_not_a_norm():
    """A saddle, x² - y², does not change with blur, though the norm of its Hessian is not zero."""
    hessian = np.array([[2.0, 0.0], [0.0, -2.0]])
    assert np.linalg.norm(hessian) > 2
    h, n = 0.05, 200
    y, x = np.mgrid[-n : n + 1, -n : n + 1] * h
    kernel = psf.gaussian_psf(np.hypot(x, y), 1.5) * h**2
    assert np.sum(kernel * (x**2 - y**2)) == pytest.approx(0, abs=1e-9)
    # A bowl has the same norm and does change, by its Laplacian: sigma² / 2 times 4.
    assert np.sum(kernel * (x**2 + y**2)) == pytest.approx(4.5, rel=1e-3)


def test_e19_confidence_adds_metres_to_a_number():
    """A prediction 12 cm beside a candidate at 1 m passes 0.8 in metres, and no other unit."""
    assert consensus.confidence(1.0, [1.12]) > 0.8
    assert consensus.confidence(100.0, [112.0]) < 0.1  # the same in centimetres
    assert consensus.confidence(0.3, [0.33]) < 0.8 < consensus.confidence(1.64, [1.81])


def test_e20_the_practical_equation_is_stereo_alone():
    """Eq. 10 without its Laplacian is Eq. 17 with b = 0 and the a of the optics."""
    derivatives = d3.PairDerivatives(*np.random.default_rng(0).normal(size=(3, 7, 7)))
    stereo_alone = d3.d3_windowed_depth_m(
        derivatives, 5e-4, focal_length_px=S0 / PITCH, alpha_px2_m=0.0, kappa_dpt=0.0, window_px=5
    )
    ratio = d3.gradient_ratio_per_px(derivatives, 5)
    practical = d3.practical_depth_m(ratio, a_m_px=-5e-4 * S0 / PITCH, b_m=0.0)
    np.testing.assert_allclose(practical, stereo_alone)


def test_e21_an_earlier_system_reaches_nearly_as_far_with_less_than_ten_times_the_baseline():
    rival = next(one for one in systems.COMPARED_SYSTEMS if one.name == "Takeda et al. 2013")
    own = systems.OWN
    assert float(rival.printed_farthest_m / own.printed_farthest_m) == pytest.approx(
        0.94, abs=0.005
    )
    assert rival.baseline_m / own.baseline_m == pytest.approx(3.6, abs=0.05)
