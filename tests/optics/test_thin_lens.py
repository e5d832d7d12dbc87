"""The thin lens, with numbers worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from d3s.optics import thin_lens
from d3s.optics.lens import Lens, Rates


def test_focus_distances_of_the_prototype(left, right):
    # 1/0.0121 = 82.644628; 83.88 - 82.644628 = 1.235372 1/m, 83.78 - 82.644628 = 1.135372 1/m
    assert thin_lens.focus_vergence_dpt(left) == pytest.approx(1.235372, abs=1e-6)
    assert thin_lens.focus_distance_m(left) == pytest.approx(0.809473, abs=1e-6)
    assert thin_lens.focus_distance_m(right) == pytest.approx(0.880769, abs=1e-6)


def test_conjugates_of_a_one_metre_lens():
    # f = 1 m: 2 m in front is sharp 2 m behind; 1 m in front nowhere; 0.5 m is virtual at -1 m.
    np.testing.assert_allclose(
        thin_lens.conjugate_distance_m([2, 1, 0.5, np.inf], 1.0), [2, np.inf, -1, 1]
    )


def test_blur_is_zero_in_focus_positive_before_it_negative_beyond(left):
    focus = thin_lens.focus_distance_m(left)
    assert thin_lens.blur_sigma_px(focus, left) == pytest.approx(0, abs=1e-12)
    assert thin_lens.blur_sigma_px(0.9 * focus, left) > 0
    assert thin_lens.blur_sigma_px(1.1 * focus, left) < 0


def test_blur_of_the_prototype_at_half_a_metre(left):
    # s0 A / p = 6.05 px m; 1/0.5 - 1.235372 = 0.764628 1/m; radius 4.626 px, sigma half of it.
    assert thin_lens.blur_radius_px(0.5, left) == pytest.approx(4.625999, abs=1e-5)
    assert thin_lens.blur_sigma_px(0.5, left) == pytest.approx(2.313000, abs=1e-5)
    assert thin_lens.blur_variance_px2(0.5, left) == pytest.approx(5.349967, abs=1e-4)


def test_blur_is_the_cone_between_aperture_and_conjugate_plane(left):
    for depth in (0.3, 0.7, 1.0, 3.0):
        sharp = thin_lens.conjugate_distance_m(depth, left.optical_power_dpt)
        # A near point is sharp behind the sensor, where the cone is still wide: positive.
        cone_m = left.aperture_radius_m * (sharp - left.sensor_distance_m) / sharp
        assert thin_lens.blur_radius_px(depth, left) == pytest.approx(cone_m / 2e-6)


@pytest.mark.parametrize("depth", [0.3, 0.8, 2.0])
def test_depth_comes_back_from_blur(left, depth):
    sigma = thin_lens.blur_sigma_px(depth, left)
    assert thin_lens.depth_at_blur_m(sigma, left) == pytest.approx(depth)


@pytest.mark.parametrize("name", thin_lens.BlurSensitivity._fields)
@pytest.mark.parametrize("depth", [0.4, 1.5])
def test_every_derivative_of_the_blur_against_finite_differences(left, name, depth):
    lens = replace(left, sensor_distance_m=0.0124)

    def sigma(factor: float) -> float:
        if name == "depth_m":
            return float(thin_lens.blur_sigma_px(depth * factor, lens))
        return float(
            thin_lens.blur_sigma_px(depth, replace(lens, **{name: getattr(lens, name) * factor}))
        )

    value = depth if name == "depth_m" else getattr(lens, name)
    numeric = (sigma(1 + 1e-5) - sigma(1 - 1e-5)) / (2e-5 * value)
    assert getattr(thin_lens.blur_sensitivity(depth, lens), name) == pytest.approx(
        numeric, rel=1e-6
    )


def test_blur_rate_adds_the_parameters_up(left):
    rates = Rates(
        axial_m=0.1, optical_power_dpt=0.2, aperture_radius_m=1e-4, sensor_distance_m=2e-5
    )

    def sigma(t: float) -> float:
        moved: Lens = replace(
            left,
            optical_power_dpt=left.optical_power_dpt + 0.2 * t,
            aperture_radius_m=left.aperture_radius_m + 1e-4 * t,
            sensor_distance_m=left.sensor_distance_m + 2e-5 * t,
        )
        return float(thin_lens.blur_sigma_px(0.6 + 0.1 * t, moved))

    numeric = (sigma(1e-4) - sigma(-1e-4)) / 2e-4
    assert thin_lens.blur_rate_px(0.6, left, rates) == pytest.approx(numeric, rel=1e-6)


def test_f_number_and_field_of_view(left):
    assert thin_lens.f_number(left) == pytest.approx(6.05)
    assert thin_lens.f_number(replace(left, aperture_radius_m=0.0)) == np.inf
    # 1802 px of 2 um are 3.604 mm; 2 atan(1.802 / 12.1) = 16.9411 degrees.
    assert np.degrees(thin_lens.field_of_view_rad(1802, left)) == pytest.approx(16.9411, abs=1e-4)


def test_blur_gain_of_the_prototype(left):
    assert thin_lens.blur_gain_px_m(left) == pytest.approx(0.5 * 12.1e-3 * 1e-3 / 2e-6)
    assert thin_lens.aperture_gain_px(left) == pytest.approx(3025)
