"""Texture and surfaces around cells, and the mean along surfaces."""

import numpy as np
import pytest

import d3s
from d3s.lab.dense.evidence import cells_of, make_ground, surroundings_of
from d3s.lab.dense.model import load_model


def step(rows=40, cols=60):
    """View with one edge between columns 29 and 30, in units of contrast."""
    guide = np.zeros((rows, cols, 1), np.float32)
    guide[:, 30:] = 20
    return guide


def ground_beside_an_object():
    """Object with texture on the left, plain wall on the right, and no depth right of column 34.

    Measured depths go beyond the outline of the object, at column 29, as windows of the estimator
    do.
    """
    rng = np.random.default_rng(0)
    view = np.full((80, 160), 0.6, np.float32)
    view[:, :60] = rng.uniform(0, 1, (80, 60))
    disparity = np.full((80, 160), np.nan, np.float32)
    is_hole = np.arange(160) >= 66
    depth_m = np.where(is_hole, np.float32(np.nan), np.float32(0.8)) * np.ones((80, 1), np.float32)
    depth_map = d3s.DepthMap(
        depth_m=depth_m.astype(np.float32),
        sigma_m=np.where(np.isnan(depth_m), np.nan, 0.002).astype(np.float32),
        confidence=np.full(disparity.shape, 0.9, np.float32),
        flags=np.zeros(disparity.shape, np.uint16),
        rig=d3s.Rig.paper_prototype(),
        method="joint",
        options=d3s.JointOptions(),
        intensity=view,
    )
    cells = cells_of(depth_map, depth_map.valid)
    return cells, make_ground(cells, load_model().evidence)


def test_evidence_beyond_an_outline_is_doubted():
    """Depth of the object counts on the object, and less on the plain wall beside it."""
    cells, ground = ground_beside_an_object()
    assert cells.is_measured[:, :33].all()
    inside, beyond = ground.evidence.odds[10:30, 20:26], ground.evidence.odds[10:30, 31:33]
    assert np.median(beyond) < np.median(inside) - 1


def test_surroundings_hold_the_nearest_and_farthest_surface():
    disparity = np.full((40, 200), np.nan, np.float32)
    disparity[20, 20], disparity[20, 25] = 10, 30
    found = surroundings_of(disparity, np.zeros((40, 200, 1), np.float32))
    assert found[:4, 20, 22].tolist() == [10, 30, 10, 30]
    assert np.isnan(found[:4, 20, 150]).all()
    assert found[2:4, 20, 40].tolist() == [10, 30]
    assert np.isnan(found[0, 20, 40])


def test_what_differs_from_the_evidence_beside_it_is_unlike():
    guide = step()
    disparity = np.where(np.arange(60) < 30, 10, np.nan) * np.ones((40, 1))
    found = surroundings_of(disparity.astype(np.float32), guide)
    assert found[4, 20, 27] == pytest.approx(0, abs=1e-3)
    assert found[4, 20, 32] == pytest.approx(np.log1p(20), rel=1e-3)
