"""Objective that benchmarks/tune_peers.py minimises."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import d3s
from d3s.lab.evaluate import Contender, PlaneSweep, Score, score
from d3s.lab.evaluate.sweep import make_trial

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import tune_peers

RIG = d3s.Rig.paper_prototype()


@pytest.fixture(scope="module")
def trial():
    sweep = PlaneSweep(patterns=("stone",), shape=(100, 200))
    return make_trial(d3s.Plane(depth_m=0.7, texture="stone"), RIG, sweep, (100, 200), (0,))


@pytest.fixture(scope="module")
def scored(trial) -> Score:
    return score(d3s.estimate(trial.left, trial.right, RIG, method="bm"), trial.truth)


def test_objective_by_hand(scored):
    one, two = (replace(scored, mae_m=mae, density=1.0) for mae in (0.01, 0.04))
    assert tune_peers._term((one, two), 0.95) == pytest.approx(np.log(0.02))
    thin = replace(one, density=0.85)
    # A density 0.1 too low, with a weight of 4.
    assert tune_peers._term((thin,), 0.95) == pytest.approx(np.log(0.01) + 0.4)


def test_empty_map_is_the_worst(scored):
    nothing = replace(scored, retained=0, mae_m=float("nan"), density=0.0)
    assert tune_peers._term((nothing,), 0.95) == pytest.approx(4 * 0.95)


def test_line_of_a_result(trial):
    judged = tune_peers.judge(Contender(method="bm"), [trial] * 6, [trial], sparse=False)
    assert judged.objective < -9
    assert judged.line().count(" cm") == 2


def test_fields_are_parsed():
    fields = tune_peers.parsed(["window_px=21,31", "psf=disk,gaussian", "fit_shift=false"])
    assert fields == {"window_px": [21, 31], "psf": ["disk", "gaussian"], "fit_shift": [False]}
