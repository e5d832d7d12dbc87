"""benchmarks/drift.py: a drift is put into the rig, and a trial tells right from wrong."""

import sys

import d3s
from check_frames import raw_of, small_rig
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import drift
import drift_frames


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
