"""Predictions: what they depend on, and the twin beside them."""

import numpy as np
import pytest

from d3s.errors import D3SError
from d3s.lab.design.camera import Camera
from d3s.lab.design.predict import ErrorLimit, predict, working_range_m
from d3s.lab.design.verify import measure_plane
from d3s.lab.design.wall import Lighting, Wall

CAMERA = Camera.paper_prototype()
DEPTHS = [0.5, 1.0, 2.0]


@pytest.fixture(scope="module")
def prediction():
    return predict(CAMERA, depths_m=DEPTHS)


def test_prediction_is_what_the_twin_measures(prediction):
    for depth, mae in zip(DEPTHS, prediction.mae_m, strict=True):
        measured = measure_plane(CAMERA, depth, search_m=(0.4, 2.4), draws=2)
        # A region of 280 px has some twenty independent windows: 15 to 20 % of scatter.
        assert measured.mae_m == pytest.approx(mae, rel=0.4)
        assert measured.density > 0.9


def test_parts_of_sigma_add_up_and_the_bound_is_below(prediction):
    parts = np.hypot(prediction.noise_m, prediction.misfit_m)
    np.testing.assert_allclose(parts, prediction.sigma_m, rtol=1e-9)
    assert (prediction.over_bound > 0.9).all()
    stereo, defocus = prediction.by_cue_m
    np.testing.assert_allclose(stereo**-2.0 + defocus**-2.0, prediction.sigma_m**-2.0, rtol=1e-6)


def test_noise_contrast_and_baseline_scale_the_error(prediction):
    at = [2.0]
    base = prediction.noise_m[2]
    louder = predict(CAMERA, depths_m=at, light=Lighting(noise=0.02)).noise_m[0]
    assert louder == pytest.approx(2 * base, rel=0.02)
    weaker = predict(CAMERA, depths_m=at, wall=Wall(contrast=0.075)).noise_m[0]
    assert weaker == pytest.approx(2 * base, rel=0.02)
    longer = CAMERA.replace(optics=CAMERA.optics.replace(baseline_m=2 * 3.84e-3))
    assert predict(longer.replace(sensor_px=(2160, 7680)), depths_m=at).noise_m[0] == (
        pytest.approx(0.5 * base, rel=0.02)
    )


def test_working_range_is_the_longest_interval_below_the_wish():
    depth = np.array([0.5, 1.0, 2.0, 4.0])
    mae = np.array([0.02, 0.005, 0.005, 0.02])
    ones = np.ones(4)
    near, far = working_range_m(depth, mae, ones, ErrorLimit(error_m=0.01))
    # Half way, in logarithms, between 0.005 and 0.02.
    assert (near, far) == pytest.approx((0.5 * 2**0.5, 2 * 2**0.5))
    assert working_range_m(depth, mae, ones, ErrorLimit(error_m=0.001)) is None
    few = np.array([1.0, 1.0, 0.2, 1.0])
    assert working_range_m(depth, mae, few, ErrorLimit(error_m=0.01))[1] == 1.0


def test_depth_of_field_is_where_both_lenses_are_sharp(prediction):
    near, far = prediction.depth_of_field_m
    for depth in (near, far):
        radii = [abs(float(CAMERA.optics.blur_radius_px(depth, lens))) for lens in (0, 1)]
        assert 2 * max(radii) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("reach", "words"),
    [
        ((0.01, 2.0), "begins too near: a point at 0.01 m is .* px apart in the two views"),
        ((2.0, 1.0), r"reach_m=\(2.0, 1.0\) must be the nearest depth"),
    ],
)
def test_reach_that_cannot_be_seen_is_refused(reach, words):
    with pytest.raises(D3SError, match=words):
        predict(CAMERA, reach_m=reach)


def test_focus_beyond_reach_and_blur_beyond_the_field_are_refused():
    wide = Camera.of_lenses(
        focal_length_m=25e-3,
        f_number=2.0,
        baseline_m=20e-3,
        focus_m=(10.0, 11.0),
        pixel_pitch_m=2e-6,
        sensor_px=(1000, 2000),
    )
    with pytest.raises(D3SError, match=r"focus at 10 m and 11 m is beyond the reach of 1 to 2 m"):
        predict(wide, reach_m=(1.0, 2.0))
    small = wide.replace(sensor_px=(80, 4000))
    with pytest.raises(D3SError, match=r"is blurred over \d+ px, and the field is 4000 x 80 px"):
        predict(small, reach_m=(0.5, 2.0))
