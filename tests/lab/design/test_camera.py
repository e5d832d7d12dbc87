"""Cameras on paper: sizes worked by hand, and cameras that cannot be."""

import pytest

from d3s.errors import D3SError
from d3s.lab.design.camera import Camera
from d3s.rig import Rig

LENSES = {
    "focal_length_m": 12e-3,
    "f_number": 6.0,
    "baseline_m": 3.84e-3,
    "focus_m": (0.8, 0.9),
    "pixel_pitch_m": 2e-6,
}


def test_lenses_become_the_optics_of_the_thin_lens():
    camera = Camera.of_lenses(**LENSES)
    optics = camera.optics
    assert optics.focus_distances_m == pytest.approx((0.8, 0.9))
    assert optics.aperture_radius_m == pytest.approx(1e-3)
    # 1 / s0 = 1/f - (1/0.8 + 1/0.9) / 2
    assert 1 / optics.sensor_distance_m == pytest.approx(1 / 12e-3 - (1.25 + 1 / 0.9) / 2)
    assert camera.focal_length_m == pytest.approx(12e-3)
    assert camera.f_number == pytest.approx(6.0)
    # A lens moved by s0² times the difference of the vergences, 0.139 dpt.
    assert camera.focus_difference_m == pytest.approx(0.13889 * 12.17e-3**2, rel=1e-3)


def test_prototype_is_that_of_the_rig_and_has_the_size_of_its_sensor():
    camera = Camera.paper_prototype()
    assert camera.optics == Rig.paper_prototype().optics
    assert camera.focus_difference_m == pytest.approx(14.6e-6, abs=0.1e-6)
    width, height, length = camera.box_m
    assert (width, height) == pytest.approx((7.68e-3, 4.32e-3))  # 3840 x 2160 px of 2 um
    assert length == pytest.approx(12.1e-3 + 0.4 * 2.222e-3, rel=1e-3)
    assert camera.view_px == (2160, 1920)
    assert camera.light_um2 == pytest.approx((2 / camera.f_number) ** 2)


def test_long_baseline_takes_two_sensors():
    camera = Camera.of_lenses(**{**LENSES, "baseline_m": 20e-3}, sensor_px=(1000, 2000))
    assert camera.sensors == 2
    assert camera.view_px == (1000, 2000)
    assert camera.box_m[0] == pytest.approx(24e-3)  # the baseline and the width of a sensor


def test_axis_off_the_middle_of_its_half_narrows_the_view():
    camera = Camera.of_lenses(**{**LENSES, "baseline_m": 3e-3})
    assert camera.view_px[1] == 1920 - 420  # 1500 px apart instead of 1920


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"focus_m": (0.02, 0.9)}, r"focus_m=0.02 of the left lens must be above 2 focal lengths"),
        ({"f_number": 2.0}, r"lenses of 6.67 mm do not fit 3.84 mm apart.*Lengthen the baseline"),
        ({"baseline_m": 7e-3}, r"a sensor 7.68 mm wide takes both views for a baseline of 1.92"),
        ({"lens_diameter_m": 1e-3}, r"lens_diameter_m=0.001 must be at least 0.002"),
    ],
)
def test_impossible_camera_names_its_rule(wrong, words):
    with pytest.raises(D3SError, match=words):
        Camera.of_lenses(**{**LENSES, **wrong})


def test_pinhole_and_focus_beyond_infinity_are_no_cameras():
    optics = Camera.of_lenses(**LENSES).optics
    with pytest.raises(D3SError, match="a pinhole passes no light"):
        Camera(optics=optics.replace(aperture_radius_m=0.0))
    with pytest.raises(D3SError, match="the right lens is focused beyond infinity"):
        Camera(optics=optics.replace(optical_power_right_dpt=81.0))
