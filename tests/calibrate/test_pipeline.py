"""Whole calibrations from arrays; calibrations from files are in tests/cli."""

import numpy as np
import pytest

import d3s
from d3s.errors import CalibrationError, InputError
from small_camera import small_rig

DISTANCES_M = (0.30, 0.33, 0.36, 0.40, 0.45, 0.50)


@pytest.mark.slow
def test_error_of_a_step_carries_the_report_of_the_steps_before(small_frames, monkeypatch):
    def refuse(*_, **__):
        raise CalibrationError("no waves.", left_out={2: "it is grey"})

    monkeypatch.setattr("d3s.calibrate.steps.find_defocus", refuse)
    with pytest.raises(CalibrationError, match="no waves") as caught:
        d3s.calibrate([frame.image for frame in small_frames[:6]], DISTANCES_M, design=small_rig())
    report = caught.value.report
    assert report.verdict.grade == "none"
    assert report.problem == "no waves. Left out were frame 2: it is grey."
    assert report.geometry is not None
    assert report.outlines is not None
    assert report.tuning is None
    assert sorted(report.thumbnails) == list(range(6))


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("captures", [0.5]), {}, "distances_m is for frames as arrays"),
        (([np.zeros((4, 4))],), {}, "distances_m must be given with frames as arrays"),
        (([np.zeros((4, 4))] * 5, range(1, 6)), {"design": "rig.toml"}, "must be a Rig"),
    ],
)
def test_wrong_arguments(arguments, options, words):
    with pytest.raises(InputError, match=words):
        d3s.calibrate(*arguments, **options)


def test_pinhole_has_no_focus_to_find():
    pinhole = d3s.Rig.from_pinhole(focal_length_px=1000.0, baseline_m=0.1)
    with pytest.raises(InputError, match="is a pinhole pair"):
        d3s.calibrate("captures", design=pinhole)
