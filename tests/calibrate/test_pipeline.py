"""Whole calibrations from arrays; calibrations from files are in tests/cli."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.steps import _even_focus_px, _rejected_files
from d3s.errors import CalibrationError, InputError
from d3s.rig import LensMaps
from small_camera import small_rig

DISTANCES_M = (0.30, 0.33, 0.36, 0.40, 0.45, 0.50)


@pytest.mark.slow
def test_few_frames_are_usable_with_remarks(small_frames):
    images = [frame.image for frame in small_frames[:6]]
    told: list[int] = []
    rig, report = d3s.calibrate(
        images,
        DISTANCES_M,
        design=small_rig(),
        name="mine",
        progress=lambda done, total: told.append(done * 100 // total),
    )
    assert report.verdict.grade == "usable"
    words = " ".join(remark.words for remark in report.verdict.remarks)
    assert "The number of frames is 4 below ten" in words
    assert "The nearest distance is 60% of the farthest" in words
    assert report.validation == ()  # three frames do not make a calibration
    truth = small_frames[0].truth()
    found = rig.calibration
    assert found.anchor_left_px == pytest.approx(truth["anchor_left_px"], abs=0.2)
    assert found.anchor_right_px == pytest.approx(truth["anchor_right_px"], abs=0.2)
    assert found.rectify_angle_rad == pytest.approx(float(truth["rectify_angle_rad"]), abs=2e-4)
    assert rig.name == "mine"
    assert rig.optics.disparity_offset_px == 0
    assert (found.frame_rows_px, found.frame_cols_px) == images[0].shape
    assert found.noise_read == pytest.approx(0.01, rel=0.3)
    left, right = rig.split(images[0])
    est = d3s.estimate(left, right, rig)
    middle = est.depth_m[left.shape[0] // 2 - 20 :, :][:40]
    assert np.nanmedian(middle) == pytest.approx(0.30, abs=0.003)
    assert told == sorted(told)
    assert told[-1] <= 100


def test_failed_step_names_files():
    names = ("a.png", "b.png", "c.png")
    error = CalibrationError(
        "too few.", left_out={2: "it is grey", 1: "it is black", 0: "it is grey"}
    )
    assert (
        _rejected_files(error, names)
        == " Left out were a.png, c.png: it is grey; b.png: it is black."
    )
    assert _rejected_files(InputError("nothing."), names) == ""


@pytest.mark.slow
def test_error_of_a_step_carries_the_report_of_the_steps_before(small_frames, monkeypatch):
    def refuse(*_, **__):
        raise CalibrationError("no waves.", left_out={2: "it is grey"})

    monkeypatch.setattr("d3s.calibrate.steps.find_defocus", refuse)
    with pytest.raises(CalibrationError, match="no waves") as caught:
        d3s.calibrate([frame.image for frame in small_frames[:6]], DISTANCES_M, design=small_rig())
    report = caught.value.report
    assert report.verdict.grade == "bad"
    assert report.problem == "no waves. Left out were frame 2: it is grey."
    assert report.geometry is not None
    assert report.outlines is not None
    assert report.tuning is None
    assert sorted(report.thumbnails) == list(range(6))


def test_middle_of_even_focus():
    def size_px(*focus_dpt):
        return _even_focus_px(LensMaps(field_radius_px=900.0, focus_right_dpt=focus_dpt))

    # 0.15 dpt are reached at a quarter of the way to 2.4 dpt, and at half of that to 0.6 dpt.
    assert size_px(0.0, 0.0, 0.3, 0.6) == 900
    assert size_px(0.0, 0.0, 1.0, 2.4) == 500  # no less
    assert size_px(0.0, 0.0, 0.0, 0.0) > 1e4


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
