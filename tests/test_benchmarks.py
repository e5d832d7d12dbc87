"""Benchmarks measure what they say: speed, calibrations, warnings, the ablation."""

import sys

import numpy as np
import pandas as pd
import pytest

import d3s
from d3s.estimate.diagnosis import Cause
from depth_maps import made_depth_map
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import ablation
import calibration
import causes
import faults
import run


@pytest.mark.slow
def test_times_and_memory_are_measured_on_small_frames(capsys):
    run.main(["--quick", "--only", "against_opencv", "with_threads", "growth", "files"])
    shown = capsys.readouterr().out
    assert shown.count(" x ") >= 8
    assert "refine" in shown


def test_walls_are_judged_in_each_part_of_the_field(tmp_path):
    found = made_depth_map(np.full((60, 200), 1.01), sigma_m=0.004)
    full = calibration.figures(found, 1.0, np.s_[:, :])
    assert full["bias_cm"] == pytest.approx(1.0, abs=1e-4)
    assert (full["within_1"], full["within_3"]) == (0, 100)
    calibration.keep(tmp_path / "walls.csv", "lens1", [full])
    calibration.keep(tmp_path / "walls.csv", "lens2", [full, full])
    calibration.keep(tmp_path / "walls.csv", "lens1", [full])
    assert list(pd.read_csv(tmp_path / "walls.csv")["set"]) == ["lens2", "lens2", "lens1"]


# Faults and variants ------------------------------------------------------------------------------


def test_every_cause_that_can_be_provoked_is():
    provoked = {cause for one in faults.faults() for cause in one.causes}
    attacked = {Cause.BLOCKS, Cause.COLUMNS, Cause.CROSSTALK, Cause.REPEATED}  # by attacks.py
    assert set(Cause) - provoked - attacked == {Cause.MISSING, Cause.OFFSET, Cause.EMPTY}


def test_sheets_count_what_was_named():
    case = faults.cases_to_spoil(("bark",), 3)[1]
    some = [one for one in faults.faults() if one.what == "swapped" or one.size == "-10 %"]
    result = causes.namings([case], some)
    assert [one.named for one in result] == [[True], [True]]
    assert [line[3] for line in causes.naming_sheet(result).lines] == ["100", "100"]
    (alarm,) = causes.alarms([case])
    assert causes.alarm_sheet([alarm._replace(name="prototype: x at 1 m")]).lines[-1][3] == "0"


def test_every_variant_changes_something_and_leaves_no_trace():
    """A name that is exchanged but not used would measure nothing."""
    rig = d3s.Rig.paper_prototype()
    scene = d3s.RandomScene(seed=5, nearest_m=0.3, farthest_m=2.0)
    pair = d3s.simulate(scene, rig, noise=0.03, shape=(150, 280))

    def seen(variant) -> bytes:
        est = variant.estimate(pair.left, pair.right, rig)
        arrays = (est.depth_m, est.sigma_m, est.confidence, est.flags)
        return b"".join(array.tobytes() for array in arrays)

    default = seen(ablation.DEFAULT)
    assert [one.name for one in ablation.PARTS if seen(one) == default] == ["default"]
    assert seen(ablation.DEFAULT) == default
