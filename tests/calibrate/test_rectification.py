"""Rectification: rows agree at any tilt of the board and any angle of the baseline."""

import numpy as np
import pytest

from d3s.calibrate.rectification import find_rectification
from d3s.errors import CalibrationError


def found_of(camera):
    return camera.steps()[-1]


def truth_of(camera) -> np.ndarray:
    left, right = camera.rolls_rad
    return np.array([camera.scales[0] / camera.scales[1], left - right, 0.0, left])


def values_of(found) -> np.ndarray:
    return np.array([found.scale, found.angle_rad, found.shift_y_px, found.baseline_angle_rad])


def test_lens_errors_are_found(camera):
    found = found_of(camera)
    # The limits asked for are 1e-4, 0.01° and 0.1 px.
    errors = np.abs(values_of(found) - truth_of(camera))
    assert (errors < [3e-6, 3e-6, 0.03, 1e-4]).all()
    assert found.left_out == {}


def test_tilt_of_the_board_does_not_matter_to_rows(camera):
    flat, steep = (
        found_of(camera.but(slopes=slopes)) for slopes in ((0.0, 0.0), (0.0175, -0.0175))
    )
    truth = truth_of(camera)
    assert abs(steep.scale - truth[0]) < 3e-6
    # Similarities take tilt for scale: the reason to fit rows only.
    assert abs(steep.median.scale - truth[0]) > 5e-5
    assert abs(flat.median.scale - truth[0]) < abs(steep.median.scale - truth[0])
    assert steep.rms_px < steep.median_rms_px


def test_rows_agree_after_rectification(camera):
    matches, anchors, found = camera.steps()
    for pair, depth_m in zip(matches.across, camera.distances_m, strict=True):
        places = (anchors.left_px, anchors.right_px)
        left, right = found.rectified(pair.first_px, pair.second_px, places)
        assert np.abs(np.mean(left[:, 1] - right[:, 1])) < 0.01
        expected = camera.focal_baseline_px_m / depth_m
        assert np.median(left[:, 0] - right[:, 0]) == pytest.approx(expected, rel=5e-3)
    before = [one.before_rms_px for one in found.residuals]
    after = [one.after_rms_px for one in found.residuals]
    assert min(before) > 3.0
    assert max(after) < 0.03
    assert [one.frame for one in found.residuals] == list(range(16))


def test_frame_whose_rows_disagree_is_named(camera):
    matches, anchors, _ = camera.steps()
    across = list(matches.across)
    across[5] = across[5]._replace(second_px=across[5].second_px + np.array([0.0, 2.0]))
    found = find_rectification(matches._replace(across=tuple(across)), anchors)
    assert list(found.left_out) == [5]
    assert "-2.0" in found.left_out[5]
    assert abs(found.scale - truth_of(camera)[0]) < 3e-6


def test_too_few_frames(camera):
    matches, anchors, _ = camera.steps()
    few = matches._replace(across=matches.across[:4])
    with pytest.raises(CalibrationError, match=r"4 frames have views .*, and at least 5 are"):
        find_rectification(few, anchors)
