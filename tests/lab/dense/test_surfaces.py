"""Texture and surfaces around cells, and the mean along surfaces."""

import numpy as np
import pytest

import d3s
from d3s.lab.dense.evidence import cells_of, make_ground, surroundings_of, texture_of
from d3s.lab.dense.judge import Feature, TextureFeature, features_at
from d3s.lab.dense.model import load_model


def step(rows=40, cols=60):
    """View with one edge between columns 29 and 30, in units of contrast."""
    guide = np.zeros((rows, cols, 1), np.float32)
    guide[:, 30:] = 20
    return guide


def test_texture_is_aside_beside_an_edge_and_not_on_it():
    fine, middle, _, aside, far_aside = texture_of(step())[:5]
    on, beside = (20, 30), (20, 25)
    assert aside[on] < 0.2 < 0.7 < aside[beside]
    assert far_aside[20, 18] > 0.7
    assert fine[beside] < middle[beside] < fine[on]


def test_centre_of_the_texture_is_where_the_edge_is():
    found = texture_of(step())
    left, right = found[:, 20, 25], found[:, 20, 34]
    for x, y in (
        (TextureFeature.ASIDE_X, TextureFeature.ASIDE_Y),
        (TextureFeature.FAR_ASIDE_X, TextureFeature.FAR_ASIDE_Y),
    ):
        assert right[x] < -0.2 < 0.2 < left[x]
        assert abs(left[y]) < 0.05
    below = texture_of(np.ascontiguousarray(step().swapaxes(0, 1)))[:, 25, 20]
    assert below[TextureFeature.ASIDE_Y] > 0.7


def test_texture_is_told_from_noise():
    rng = np.random.default_rng(0)
    guide = rng.normal(0, 0.2, (60, 80, 1)).astype(np.float32)
    guide[:, 40:] += rng.normal(0, 5, (60, 40, 1)).astype(np.float32)
    found = texture_of(guide)[TextureFeature.OVER_NOISE]
    assert np.median(found[:, :35]) < 1.5 < 4 < np.median(found[:, 45:])
    edge = texture_of(guide)[TextureFeature.STRONG_EDGE, 30, 37]
    assert edge > found[30, 30]


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


def test_features_tell_on_which_side_of_the_cell_texture_and_evidence_are():
    _, ground = ground_beside_an_object()
    _, features = features_at(ground, load_model().paths, np.array([[20, 36], [20, 70]]))
    beside, far = features
    assert beside[Feature.SAME_BESIDE] > far[Feature.SAME_BESIDE]
    assert beside[Feature.SAME_TOWARD_TEXTURE] > 0.1
    assert beside[Feature.AHEAD] > 10 * beside[Feature.BEHIND]
    assert far[Feature.SAME_TOWARD_TEXTURE] == 0


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
