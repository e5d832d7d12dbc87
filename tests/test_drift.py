"""benchmarks/drift.py: a drift is put into the rig, and a trial tells right from wrong."""

import sys

import numpy as np
import pytest

import d3s
from check_frames import raw_of, small_rig
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import drift
import drift_frames


def test_drift_is_put_into_the_rig():
    camera = drift_frames.Camera(small_rig(), [np.zeros((240, 640), np.float32)])
    before = drift_frames.drifted(camera.rig, {"roll_rad": 0.002, "rows_px": 0.5})
    assert before.calibration.rectify_angle_rad == pytest.approx(0.002)
    (frame,) = camera.noisy([0], 1, gain=0.05)
    assert frame.std() == pytest.approx(drift_frames.NOISE, rel=0.05)


def test_trial_tells_right_from_wrong():
    scenes = [
        d3s.RandomScene(seed=seed, patterns=("stone",), nearest_m=0.4, farthest_m=1.2)
        for seed in range(5)
    ]
    camera = drift_frames.Camera(small_rig(), [raw_of(one, 1) for one in scenes])
    found = drift.trial(camera, {"rows_px": 0.8}, 1)
    assert found.is_right({"rows_px": 0.8})
    assert not found.is_right({"rows_px": 0.4})
    assert not found.is_right({"rows_px": 0.8, "scale": 5e-3})
