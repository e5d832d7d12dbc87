"""benchmarks/drift.py: its tables are those of the page, and hold what was asked for."""

import re
import sys

import numpy as np
import pytest

import d3s
from check_frames import raw_of, small_rig
from pages import DOCS, ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import drift
import drift_frames

PAGE = (DOCS / "check_results.md").read_text()


def _table(name):
    part = PAGE.partition(f"<!-- drift: {name} -->")[2].partition("<!-- end of")[0]
    rows = re.findall(r"^\| (.+) \|$", part, re.MULTILINE)
    return [tuple(cell.strip() for cell in row.split("|")) for row in rows][1:]


@pytest.mark.parametrize("name", drift.PARTS)
def test_page_has_every_table(name):
    assert _table(name)


def test_drifts_are_found():
    rows = _table("found")
    assert {row[0] for row in rows} == set(drift.DRIFTS)
    for row in rows:
        right, count = row[2].split(" of ")
        assert right == count, row


def test_depth_is_mended():
    for row in _table("depth")[1:]:
        assert float(row[5]) <= 1.5, row
        assert float(row[4]) >= 95, row


def test_disparity_is_zeroed():
    assert float(_table("walls")[0][4].removesuffix(" px")) < 0.03


def test_no_alarm_without_a_drift():
    rows = _table("good")
    assert sum(int(row[1]) for row in rows) == 100
    assert [row[2] for row in rows] == ["0"] * len(rows)
    assert _table("warnings")[0][1:3] == ("0 of 20", "no")


def test_frames_that_cannot_tell_have_their_exit_code():
    for row in _table("unknown"):
        assert row[1:] == ("unknown", "0", "6")


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
