"""Rendered scenes: where their parts are, and the quick run."""

import numpy as np
import pytest

import d3s
from d3s.lab.evaluate import TUNING_PATTERNS
from d3s.lab.reproduce.fig7_real_world import SCENES, make_real_world
from d3s.lab.reproduce.item import Context

RIG = d3s.Rig.paper_prototype()
SHAPE = (60, 120)


def test_stairs_come_nearer_from_top_to_bottom():
    stairs = SCENES["stairs"](SHAPE, 0, RIG)
    assert not {layer.texture.pattern for layer in stairs.layers} & set(TUNING_PATTERNS)
    depth_m = d3s.simulate(stairs, RIG, shape=SHAPE).depth_m
    assert depth_m[0, 60] == pytest.approx(1.7)
    assert depth_m[-1, 60] == pytest.approx(0.5)
    assert (np.diff(depth_m[:, 60]) <= 0).all()


@pytest.mark.slow
def test_quick_run(tmp_path):
    result = make_real_world(Context(folder=tmp_path, quick=True))
    (table,) = result.tables
    error_cm = {(row["scene"], row["what"]): row["MAE"] for row in table.rows}
    kept = {(row["scene"], row["what"]): row["pixels with a depth"] for row in table.rows}
    for name in SCENES:
        assert error_cm[name, "Joint"] < 0.5 * error_cm[name, "Consensus, C > 0.5"]
        assert error_cm[name, "Densified"] > error_cm[name, "Consensus, C > 0.5"]
        assert kept[name, "Densified"] == 100
        assert 40 < kept[name, "Joint"] < kept[name, "Joint, densified"] < 100
        assert error_cm[name, "Joint, densified"] < error_cm[name, "Densified"]
    (edges,) = [one for one in result.comparisons if one.what == "near edges of depth"]
    assert edges.agrees
    (picture,) = result.pictures
    picture.figure.draw_without_rendering()
