"""Objective that benchmarks/tune_peers.py minimises."""

import sys
from pathlib import Path

import pytest

import d3s
from d3s.lab.evaluate import Contender, PlaneSweep
from d3s.lab.evaluate.sweep import make_trial

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import tune_peers

RIG = d3s.Rig.paper_prototype()


@pytest.fixture(scope="module")
def trial():
    sweep = PlaneSweep(patterns=("stone",), shape=(100, 200))
    return make_trial(d3s.Plane(depth_m=0.7, texture="stone"), RIG, sweep, (100, 200), (0,))


def test_line_of_a_result(trial):
    judged = tune_peers.judge(Contender(method="bm"), [trial] * 6, [trial], sparse=False)
    assert judged.objective < -9
    assert judged.line().count(" cm") == 2
