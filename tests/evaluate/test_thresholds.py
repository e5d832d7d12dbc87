"""Thresholds of confidence, cut afterwards: the same as if the method itself had cut."""

import pytest

from d3s.evaluate import Contender, PlaneSweep, evaluate_planes
from d3s.evaluate.thresholds import evaluate_thresholds

SWEEP = PlaneSweep(depths_m=(0.8, 1.6), patterns=("gravel",), shape=(110, 160))
FEW = {"candidates": 60}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    method = Contender(method="consensus", options=FEW | {"min_confidence": 0.8})
    return evaluate_thresholds(method, (0.0, 0.5, 0.8, 1.0), sweep=SWEEP, workers=1, folder=folder)


def test_one_row_for_each_plane_and_threshold(rows):
    assert [(row.depth_m, row.at.threshold) for row in rows] == [
        (z, t) for z in SWEEP.depths_m for t in (0.0, 0.5, 0.8, 1.0)
    ]


def test_a_higher_threshold_keeps_less(rows):
    for depth_m in SWEEP.depths_m:
        own = [row for row in rows if row.depth_m == depth_m]
        kept = [row.at.retained for row in own]
        assert kept == sorted(kept, reverse=True)
        assert own[0].pixels >= kept[0] > kept[-1]


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_as_if_the_method_had_cut(rows, threshold):
    method = Contender(method="consensus", options=FEW | {"min_confidence": threshold})
    whole = evaluate_planes(method, sweep=SWEEP, workers=1).rows
    cut = [row for row in rows if row.at.threshold == threshold]
    for one, other in zip(whole, cut, strict=True):
        assert one.score.retained == other.at.retained
        assert one.score.pixels == other.pixels
        assert one.score.mae_m == pytest.approx(other.at.mae_m)
        assert one.score.density == pytest.approx(other.at.density)
