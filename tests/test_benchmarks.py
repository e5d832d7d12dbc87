"""Benchmarks measure what they say: the speed, the warnings of spoilt pairs, the ablation."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import d3s
from d3s.estimate.diagnosis import Cause
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import ablation
import causes
import faults
import fresh
import measures
import speed
import workloads
from figures import TARGETS, Row, sheet
from timing import Work, best_seconds, race

ASKED = [key for key, target in TARGETS.items() if target.sense is not None]
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


@pytest.mark.parametrize("key", ASKED)
def test_missed_target_is_not_held(key):
    target = TARGETS[key]
    worse = -1e-6 if target.sense == ">=" else 1e-6
    missed = Row(key=key, measured=target.limit + worse)
    assert missed.held is False
    assert "yes" not in missed.cells()
    assert Row(key=key, measured=target.limit - worse).held is True
    assert Row(key=key, measured=target.limit).held is (target.sense != "<")
    assert Row(key=key, measured=math.nan).held is False
    assert "yes" not in Row(key=key, measured=None).cells()


def test_contenders_take_turns():
    order: list[str] = []
    works = {
        name: Work(lambda name=name: order.append(name), lambda: order.append("set"))
        for name in "ab"
    }
    best = race(works, rounds=2)
    assert order == ["set", "a", "set", "b"] * 3  # the first round is to warm up
    assert list(best) == ["a", "b"]
    assert all(0 <= seconds < 1 for seconds in best.values())
    assert len(best_seconds(list, dict, repeats=2)) == 2


def test_slow_contenders_have_fewer_turns():
    count: list[int] = []
    race({"one": Work(lambda: count.append(1))}, rounds=50, least=3, budget_s=0.0, warm=False)
    assert len(count) == 3


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


@pytest.mark.slow
def test_new_processes_are_measured():
    pair = workloads.simulated(workloads.SCENE, (200, 300))
    rows = measures.in_new_processes(pair, TINY)
    figures = {row.key: row.measured for row in rows}
    assert figures["first_ever"] > figures["warm_call"] > figures["import"] > 0
    assert 0 < figures["memory"] < 1000


# Faults and variants ------------------------------------------------------------------------------


def test_every_cause_that_can_be_provoked_is():
    provoked = {cause for one in faults.faults() for cause in one.causes}
    assert set(Cause) - provoked == {Cause.MISSING, Cause.OFFSET, Cause.EMPTY}


def test_sheets_count_what_was_named():
    case = faults.cases_to_spoil(("bark",), 3)[1]
    some = [one for one in faults.faults() if one.what == "swapped" or one.size == "-10 %"]
    result = causes.namings([case], some)
    assert [one.named for one in result] == [[True], [True]]
    assert [line[3] for line in causes.naming_sheet(result).lines] == ["100", "100"]
    (alarm,) = causes.alarms([case])
    assert causes.alarm_sheet([alarm._replace(name="prototype: x at 1 m")]).lines[-1][3] == "0"


@pytest.mark.parametrize("rows", [0.5, 2, 8])
def test_rows_move_down(rows):
    ramp = np.repeat(np.arange(40, dtype=np.float32)[:, None], 30, axis=1)
    moved = faults.moved_down(ramp, rows)
    np.testing.assert_allclose(moved[12:-12], ramp[12:-12] - rows, atol=1e-4)


def test_clipping_takes_its_share():
    view = np.random.default_rng(0).uniform(size=(50, 60)).astype(np.float32)
    white = faults.clipped(view, 0.2, white=True)
    assert np.mean(white == white.max()) == pytest.approx(0.2, abs=0.01)


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
