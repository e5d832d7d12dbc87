"""D3 on numbers worked by hand; `tests/physics` tests it on images."""

from dataclasses import replace

import numpy as np
import pytest

from d3s.errors import InputError
from d3s.optics import d3
from d3s.optics.thin_lens import blur_variance_px2


def test_alpha_and_kappa_of_the_prototype(left, right):
    # (0.5 * 6.05)² * 0.1 = 9.150625 * 0.1 px² m; 83.83 - 82.644628 1/m
    assert d3.alpha_px2_m(left, right) == pytest.approx(0.9150625)
    assert d3.kappa_dpt(left, right) == pytest.approx(1.185372, abs=1e-6)


@pytest.mark.parametrize("depth", [0.25, 0.8436, 2.0])
def test_they_give_the_difference_of_the_blurs_exactly(left, right, depth):
    difference = blur_variance_px2(depth, left) - blur_variance_px2(depth, right)
    alpha, kappa = d3.alpha_px2_m(left, right), d3.kappa_dpt(left, right)
    assert difference == pytest.approx(-2 * alpha * (1 / depth - kappa), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("depth", [0.25, 2.0])
def test_lenses_may_differ_in_sensor_distance_instead(left, depth):
    """As the prototype was built: one power, two sensor distances 14.6 um apart, one image size."""
    near = replace(left, optical_power_dpt=83.83, sensor_distance_m=0.0121 + 7.3e-6)
    far = replace(left, optical_power_dpt=83.83, sensor_distance_m=0.0121 - 7.3e-6)
    alpha, kappa = d3.alpha_px2_m(near, far), d3.kappa_dpt(near, far)
    difference = blur_variance_px2(depth, near) - blur_variance_px2(depth, far)
    assert alpha == pytest.approx(0.9125, rel=1e-3)  # 9.150625 * 14.6e-6 / 0.0121²
    assert difference == pytest.approx(-2 * alpha * (1 / depth - kappa), rel=1e-9)


def test_lenses_of_different_aperture_are_refused(left):
    with pytest.raises(InputError, match="must have one aperture"):
        d3.alpha_px2_m(left, replace(left, aperture_radius_m=1.1e-3))


def _derivatives(difference: float, grad_x: float, laplacian: float) -> d3.PairDerivatives:
    return d3.PairDerivatives(*(np.full((7, 7), v) for v in (difference, grad_x, laplacian)))


def test_depth_by_hand():
    # Z = (-(1000 * 1e-3) * 0.2 - 0.5 * 0.4) / (-0.9 - 0.5 * 1.25 * 0.4) = -0.4 / -1.15
    depth = d3.d3_depth_m(
        _derivatives(-0.9, 0.2, 0.4), 1e-3, focal_length_px=1000.0, alpha_px2_m=0.5, kappa_dpt=1.25
    )
    np.testing.assert_allclose(depth, 0.4 / 1.15)


def test_without_defocus_it_is_differential_stereo():
    # A feature at 2 m, a baseline of 1 mm and f = 1000 px give a disparity of 0.5 px, so that
    # left - right is -0.5 px times the gradient.
    derivatives = _derivatives(-0.5 * 0.2, 0.2, 0.0)
    depth = d3.d3_depth_m(derivatives, 1e-3, focal_length_px=1000.0, alpha_px2_m=0.0, kappa_dpt=0.0)
    np.testing.assert_allclose(depth, 2.0)
    ratio = d3.gradient_ratio_per_px(derivatives, 3)
    np.testing.assert_allclose(d3.practical_depth_m(ratio, a_m_px=-1.0, b_m=0.0), 2.0)
    np.testing.assert_allclose(d3.practical_depth_m(ratio, a_m_px=-1.0, b_m=0.25), 2.25)


def test_window_is_a_least_squares_fit():
    rng = np.random.default_rng(0)
    derivatives = d3.PairDerivatives(*rng.normal(size=(3, 5, 5)))
    terms = {"focal_length_px": 1000.0, "alpha_px2_m": 0.5, "kappa_dpt": 1.25}
    numerator = -(1.0 * derivatives.mean_grad_x) - 0.5 * derivatives.mean_laplacian
    denominator = derivatives.difference - 0.625 * derivatives.mean_laplacian
    expected, *_ = np.linalg.lstsq(denominator.reshape(-1, 1), numerator.ravel(), rcond=None)
    depth = d3.d3_windowed_depth_m(derivatives, 1e-3, window_px=5, **terms)
    assert depth[2, 2] == pytest.approx(expected[0])


def test_finite_differences_by_hand():
    left = np.tile([0.0, 1.0, 3.0, 6.0], (3, 1))
    right = np.tile([0.0, 1.0, 1.0, 2.0], (3, 1))
    derivatives = d3.finite_differences(left, right)
    np.testing.assert_array_equal(derivatives.difference[1], [0, 0, 2, 4])
    np.testing.assert_array_equal(derivatives.mean_grad_x[1], [np.nan, 1.0, 1.5, np.nan])
    # mean is 0, 1, 2, 4: second differences 0 and 1
    np.testing.assert_array_equal(derivatives.mean_laplacian[1], [np.nan, 0, 1, np.nan])
