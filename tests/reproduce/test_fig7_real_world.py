"""Rendered scenes: where their parts are, what a densifier may touch, and the quick run."""

import numpy as np
import pytest

import d3s
from d3s.estimate import DepthMap, Options
from d3s.evaluate import TUNING_PATTERNS
from d3s.reproduce.fig7_real_world import DEPTHS_M, SCENES, densified, make_real_world
from d3s.reproduce.item import Context

RIG = d3s.Rig.paper_prototype()
SHAPE = (60, 120)


def sparse_map(depth_m):
    depth_m = np.asarray(depth_m, dtype=np.float32)
    valid = np.isfinite(depth_m)
    return DepthMap(
        depth_m=depth_m,
        sigma_m=np.where(valid, 0.01, np.nan).astype(np.float32),
        confidence=valid.astype(np.float32),
        flags=np.where(valid, 0, 128).astype(np.uint16),
        rig=RIG,
        method="by hand",
        options=Options(),
    )


def test_what_is_known_stays_and_the_rest_is_between():
    depth_m = np.full((20, 30), 1.0, dtype=np.float32)
    depth_m[:, 15:] = 0.5
    depth_m[:, 12:18] = np.nan
    sparse = sparse_map(depth_m)
    dense = densified(sparse)
    np.testing.assert_array_equal(dense.depth_m[sparse.valid], depth_m[sparse.valid])
    assert dense.valid.all()
    assert dense.depth_m.min() >= 0.5
    assert dense.depth_m.max() <= 1.0
    assert (dense.flags[:, 12:18] != 0).all()  # that it was filled can still be seen


def test_where_nothing_is_known_nothing_is_made_up():
    empty = sparse_map(np.full((8, 9), np.nan))
    assert not densified(empty).valid.any()


@pytest.mark.parametrize("name", SCENES)
def test_scenes_are_between_the_depths_of_the_papers(name):
    scene = SCENES[name](SHAPE, 0, RIG)
    pair = d3s.simulate(scene, RIG, shape=SHAPE)
    nearest_m, farthest_m = DEPTHS_M
    assert pair.depth_m.min() >= nearest_m
    assert pair.depth_m.max() <= farthest_m
    assert np.ptp(pair.depth_m) > 0.1


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
        assert 40 < kept[name, "Joint"] < 100
    (edges,) = [one for one in result.comparisons if one.what == "near edges of depth"]
    assert edges.agrees
    (picture,) = result.pictures
    picture.figure.draw_without_rendering()
