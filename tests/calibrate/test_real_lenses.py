"""A whole calibration of a camera with real lenses, from raw frames to walls of another texture."""

import numpy as np
import pytest

import d3s
from d3s.rig.calibration import LEAST_SIGMA_PX
from small_camera import SMALL_LAYOUT, SMALL_MOUNTS, small_rig

pytestmark = pytest.mark.slow

RADIUS_PX = 200.0  # 1.8 mm on the sensor
LENSES = (
    d3s.LensErrors(
        field_radius_px=RADIUS_PX,
        distortion_third=-0.006,
        decentring_x=0.0005,
        focus_sagittal_dpt=1.4,
        focus_tangential_dpt=3.0,
        falloff=0.08,
    ),
    d3s.LensErrors(
        field_radius_px=RADIUS_PX,
        distortion_third=-0.009,
        distortion_fifth=0.001,
        focus_sagittal_dpt=1.2,
        focus_tangential_dpt=2.6,
        transmission=0.95,
        falloff=0.1,
        falloff_centre_x_px=8.0,
    ),
)
DISTANCES_M = np.round(np.geomspace(0.3, 0.9, 13), 3)


def raw_frame(depth_m: float, texture: str, seed: int, tilt_rad: float = 0.0) -> np.ndarray:
    return d3s.simulate_raw(
        d3s.TiltedPlane(depth_m=depth_m, tilt_x_rad=tilt_rad, texture=texture),
        small_rig(),
        noise=0.005,
        seed=seed,
        layout=SMALL_LAYOUT,
        mounts=SMALL_MOUNTS,
        lenses=LENSES,
    ).image


@pytest.fixture(scope="module")
def calibrated() -> tuple[d3s.Rig, d3s.calibrate.Report]:
    boards = [raw_frame(float(z), "calibration", seed, 0.01) for seed, z in enumerate(DISTANCES_M)]
    return d3s.calibrate(boards, DISTANCES_M, design=small_rig())


def errors(rig: d3s.Rig, depth_m: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Errors and sigma, in metres, of the pixels with a depth; and their share."""
    views = rig.split(raw_frame(depth_m, "gravel", 100))
    found = d3s.estimate(*views, rig, options={"depth_range_m": (0.2, 1.2)})
    error = found.depth_m - depth_m
    return error[found.valid], found.sigma_m[found.valid], found.valid.mean()


def test_verdict_is_good_and_errors_of_lenses_are_found(calibrated):
    rig, report = calibrated
    assert report.verdict.grade == "good"
    lenses = rig.calibration.lenses
    larger = lenses.field_radius_px / RADIUS_PX
    assert report.distortion.before_rms_px > 2 * report.distortion.after_rms_px
    # At the radius of the field, in pixels.
    for camera, truth in enumerate((0.006, 0.009 - 0.001)):
        at_radius = truth * larger**2 * lenses.field_radius_px
        assert report.distortion.largest_px(camera) == pytest.approx(at_radius, abs=0.35)
    light = [lenses.illumination(camera, 0.0, 0.0) for camera in (0, 1)]
    assert light == pytest.approx([1.0, 0.95], abs=0.01)
    assert report.illumination.after_rms < 0.005 < 0.03 < report.illumination.before_rms
    assert report.focus_map.after_rms < report.focus_map.before_rms
    # More along the radius than across it, in both lenses.
    for focus in (lenses.focus_left_dpt, lenses.focus_right_dpt):
        assert focus[3] - focus[2] == pytest.approx(1.6 * larger**2, abs=0.6)


@pytest.mark.parametrize("depth_m", [0.35, 0.5, 0.75])
def test_walls_of_another_texture(calibrated, depth_m):
    rig, _ = calibrated
    error, sigma, density = errors(rig, depth_m)
    # 0.01 px of disparity.
    assert np.mean(np.abs(error)) < 0.01 * depth_m**2 / 5.16
    assert density > 0.8
    assert np.mean(np.abs(error) < sigma) > 0.58
    assert np.mean(np.abs(error) < 3 * sigma) > 0.95


@pytest.mark.parametrize("depth_m", [0.35, 0.75])
def test_without_the_maps_errors_are_many_times_as_large(calibrated, depth_m):
    rig, _ = calibrated
    bare = rig.replace(calibration=rig.calibration.replace(lenses=None))
    with_maps, _, _ = errors(rig, depth_m)
    without, sigma, _ = errors(bare, depth_m)
    assert np.mean(np.abs(without)) > 6 * np.mean(np.abs(with_maps))
    assert np.mean(np.abs(without) < 3 * sigma) < 0.6


def test_sigma_of_the_disparity_is_never_zero(calibrated):
    rig, _ = calibrated
    assert LEAST_SIGMA_PX <= rig.calibration.lenses.disparity_sigma_px < 0.05
