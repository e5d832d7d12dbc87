"""The printed forms are what the paper prints: evaluated by hand for small whole numbers.

With w = p = 1, so that the pixels of the package and the metres of the paper are the same.
"""

import numpy as np
import pytest

from d3s.lab.reproduce import errata as printed
from d3s.optics.lens import ImageDerivatives, Lens, Rates
from d3s.optics.relation import DepthCubic


def _lens(reference: float) -> Lens:
    return Lens(
        optical_power_dpt=3.0,
        aperture_radius_m=2.0,
        sensor_distance_m=2.0,
        reference_distance_m=reference,
        pixel_pitch_m=1.0,
        aperture_gaussian_width=1.0,
    )


RATES = Rates(
    lateral_x_m=17.0,
    axial_m=5.0,
    optical_power_dpt=11.0,
    aperture_radius_m=7.0,
    sensor_distance_m=13.0,
)
IMAGE = ImageDerivatives(rate=231.0, grad_x=1.0, grad_y=0.0, laplacian=1.0, radial=19.0)


def test_blur_rate():
    # -22 - 13/4 + (1 - 3) 7 - 10
    assert printed.blur_rate_px(1.0, _lens(1.0), RATES) == pytest.approx(-49.25)


def test_coefficients_of_the_cubic():
    cubic = printed.depth_cubic(IMAGE, _lens(1.0), RATES)
    assert cubic.a0 == pytest.approx(20)  # 4 * 5
    assert cubic.a1 == pytest.approx(-64)  # -60 + 10 - 14
    assert cubic.a2 == pytest.approx(85)  # 44 + 13 + 168 - 28 - 17 - 95
    assert cubic.a3 == pytest.approx(1)  # 231 - (132 + 39 - 22 - 6.5 + 126 - 42 + 3.5)


def test_axial_image_rate():
    # 5 * 19 - 4/2 * 5 * (1 + 2 * (1 - 3)) * 1
    assert printed.axial_image_rate(IMAGE, 1.0, _lens(1.0), RATES) == pytest.approx(125)


def test_raw_sensor_distance():
    # 1 / (3 - 1/2 - 2 (231 - 13/2 * 19) / (4 * 13))
    depth = printed.raw_sensor_distance_depth_m(IMAGE, _lens(2.0), RATES)
    assert depth == pytest.approx(1 / (2.5 - 215 / 52))


def test_raw_combined_quadratic():
    c0, c1, c2 = printed.raw_combined_quadratic(IMAGE, _lens(2.0), RATES)
    assert c2 == pytest.approx(104)  # 4 * 2 * 13
    assert c1 == pytest.approx(-714)  # 4 (13 - 156 - 44) + 2 * 17
    assert c0 == pytest.approx(865.5)  # 4 (234 - 39 + 132 - 22) - 123.5 - 231


def test_cardano():
    # (Z - 1)(Z - 2)(Z - 4): three real roots, of which the principal one is 4.
    cubic = DepthCubic(*(np.array(v) for v in (-8.0, 14.0, -7.0, 1.0)))
    assert printed.cardano_depth_m(cubic) == pytest.approx(4)
