"""A calibrated rig: targets from its calibration, and the distance from its disparity."""

import numpy as np
import pytest

import d3s
from align_frames import LAYOUT, RIG, benchmark
from d3s.camera.align import measure

MOUNTS = (
    d3s.Mount(scale=1.002, roll_rad=0.004, shift_x_px=6.0, shift_y_px=-4.0),
    d3s.Mount(scale=0.999, roll_rad=-0.006, shift_x_px=-8.0, shift_y_px=5.0),
)


@pytest.fixture(scope="module")
def calibrated():
    """Rig with the true calibration of the mounts, and a frame of a wall at 0.5 m."""
    frame = d3s.simulate_raw(
        d3s.Plane(depth_m=0.5, texture="stone"), RIG, layout=LAYOUT, mounts=MOUNTS
    )
    truth = {name: np.asarray(value).tolist() for name, value in frame.truth().items()}
    calibration = d3s.Calibration(
        anchor_left_px=tuple(truth["anchor_left_px"]),
        anchor_right_px=tuple(truth["anchor_right_px"]),
        crop_rows_px=300,
        crop_cols_px=300,
        rectify_scale=truth["rectify_scale"],
        rectify_angle_rad=truth["rectify_angle_rad"],
        rectify_shift_y_px=0.0,
        baseline_angle_rad=0.004,
        virtual_baselines_m=(-1e-5, 1e-5),
        a_cubic_m_px=(1.0, 0.0, 0.0, 0.0),
        b_cubic_m=(0.0, 0.0, 0.0, 0.0),
        provenance=d3s.Provenance(
            residuals={},
            input_sha256={},
            created="2026-01-31T12:00:00+00:00",
            d3s_version=d3s.__version__,
        ),
    )
    return RIG.replace(calibration=calibration), benchmark.noisy(frame.image, 4)


def test_camera_that_did_not_move_is_good(calibrated):
    rig, frame = calibrated
    found = measure(frame, rig)
    for name in ("rows_px", "roll_rad", "scale"):
        assert found[name].state == "good", name
        assert found[name].value == pytest.approx(found[name].target, abs=0.1 * found[name].limit)
    assert found["rows_px"].target == pytest.approx(9.0, abs=0.5)


def test_distance_comes_from_the_calibration(calibrated):
    rig, frame = calibrated
    found = measure(frame, rig)
    assert found.distance_m == pytest.approx(0.5, rel=0.03)
    assert "at 0.5" in found["rows_px"].note
    assert np.isfinite(found["focus_m"].value)
