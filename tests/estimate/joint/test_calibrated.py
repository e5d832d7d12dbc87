"""What a calibration knows of the noise, in sigma."""

import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.estimate.joint.method import _with_calibrated
from d3s.lab.twin.geometry import Mount
from d3s.lab.twin.raw import RawLayout, simulate_raw

RIG = d3s.Rig.paper_prototype()
MOUNTS = (
    Mount(roll_rad=0.004, shift_x_px=6.3, shift_y_px=-4.1),
    Mount(scale=1.0012, roll_rad=-0.0065, shift_x_px=-8.7, shift_y_px=5.2),
)


def test_noise_is_at_least_that_of_the_sensor_at_each_intensity():
    rng = np.random.default_rng(0)
    left = rng.uniform(0.1, 0.9, (40, 60)).astype(np.float32)
    scale, mean = 4.0, 0.37
    centred = (left - mean) * scale
    known = calibration(noise_read=0.02, noise_gain=1e-3)
    little, much = np.full(left.shape, 1e-9, np.float32), np.full(left.shape, 1.0, np.float32)
    found = _with_calibrated(little, left, centred, (centred, centred), known)
    np.testing.assert_allclose(found, scale**2 * (0.02**2 + 1e-3 * left), rtol=1e-4)
    assert found.dtype == np.float32
    found = _with_calibrated(much, left, centred, (centred, centred), known)
    np.testing.assert_array_equal(found, much)


@pytest.mark.parametrize("known", [None, calibration()], ids=["none", "without noise"])
def test_without_a_noise_model_noise_is_as_measured(known):
    noise, view = np.full((8, 9), 0.1, np.float32), np.zeros((8, 9), np.float32)
    assert _with_calibrated(noise, view, view, (view, view), known) is noise


def test_sigma_of_resampled_views_is_true_with_the_noise_of_the_sensor():
    layout = RawLayout(rows_px=400, cols_px=2400, field_radius_px=420)
    scene = d3s.Plane(depth_m=1.2, texture="leaves")
    frame = simulate_raw(scene, RIG, noise=0.01, seed=3, layout=layout, mounts=MOUNTS)
    truth = frame.truth()
    known = {
        "crop_rows_px": 200,
        "crop_cols_px": 400,
        "anchor_left_px": frame.anchor_left_px,
        "anchor_right_px": frame.anchor_right_px,
        "rectify_scale": float(truth["rectify_scale"]),
        "rectify_angle_rad": float(truth["rectify_angle_rad"]),
        "baseline_angle_rad": MOUNTS[0].roll_rad,
    }
    within = []
    for noise in ({}, {"noise_read": 0.01, "noise_gain": 0.0}):
        rig = RIG.replace(calibration=calibration(**known, **noise))
        est = d3s.estimate(*rig.split(frame.image), rig)
        error = np.abs(est.depth_m - 1.2)
        is_known = np.isfinite(error)
        assert is_known.mean() > 0.5
        within.append((error < est.sigma_m)[is_known].mean())
    assert within[0] < within[1] - 0.04
    assert 0.6 < within[1] < 0.8
