"""Benchmarks measure what they say: the speed, the warnings of spoilt pairs, the ablation."""

import sys
from dataclasses import replace

import pytest

import d3s
from d3s.estimate.diagnosis import Cause
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import ablation
import causes
import faults
import fresh
import speed
import workloads
from figures import TARGETS, sheet

TINY = replace(
    workloads.QUICK,
    frame=(100, 240),
    tile=(50, 120),
    numbers=(32, 48),
    counts=(4, 8),
    joint_oracle=(60, 160),
    consensus_oracle=(40, 160),
    rounds=1,
    budget_s=0.0,
)


@pytest.mark.slow
def test_every_target_is_measured_on_tiny_frames(monkeypatch, capsys):
    # What needs new processes, and compiles, has figures that miss.
    calls = fresh.FirstCalls(ever_s=99.0, said=(), warm_s=9.0, import_s=9.0)
    memory = fresh.Memory(peak=999_000_000, peak_by_rusage=999_000_000, kept=1)
    monkeypatch.setattr(fresh, "first_calls", lambda *_: calls)
    monkeypatch.setattr(fresh, "memory", lambda *_: memory)
    rows, sheets = speed.measured(TINY)
    assert [row.key for row in rows] == list(TARGETS)
    missed = {row.key for row in rows if row.held is False}
    assert missed >= {"memory", "warm_call", "import", "first_ever", "first_ever_line"}
    (same,) = (row.measured for row in rows if row.key == "joint_same")
    assert same >= 99
    speed.show([sheet(rows), *sheets])
    shown = capsys.readouterr().out
    assert all(one.title.split(",")[0] in shown for one in sheets)
    assert "`" not in shown


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
