"""Compiled loops of the fill against plain NumPy, on small random frames."""

import numpy as np

import d3s
from d3s.lab.dense import densify
from d3s.lab.dense.evidence import (
    EVIDENCE_FEATURES,
    cells_of,
    evidence_features,
    guide_of,
    texture_of,
)
from d3s.lab.dense.fill import measured_pixels
from d3s.lab.dense.judge import TextureFeature
from d3s.lab.dense.propagation import (
    EDGE_COST,
    average_surfaces,
    sweep_sides,
)


def random_guide(rows=18, cols=26, channels=2):
    return np.random.default_rng(0).normal(0, 1, (rows, cols, channels)).astype(np.float32)


def random_start(rows=18, cols=26):
    rng = np.random.default_rng(1)
    start = np.full((rows, cols), np.inf, np.float32)
    known = rng.random(start.shape) < 0.1
    start[known] = rng.uniform(0, 5, known.sum())
    return start


def paths_from_above(guide, start):
    """Cheapest paths that go down row by row: source, length and edge of each cell."""
    rows, cols = start.shape
    cost = start.astype(float)
    source = np.where(np.isfinite(start), np.arange(rows * cols).reshape(rows, cols), -1)
    length, edge = np.zeros((rows, cols)), np.zeros((rows, cols))
    for row in range(1, rows):
        for col in range(cols):
            for side in range(max(col - 1, 0), min(col + 2, cols)):
                step = 1 if side == col else np.sqrt(2)
                rise = np.abs(guide[row, col] - guide[row - 1, side]).max()
                total = cost[row - 1, side] + step + EDGE_COST * rise
                if total < cost[row, col]:
                    cost[row, col], source[row, col] = total, source[row - 1, side]
                    length[row, col] = length[row - 1, side] + step
                    edge[row, col] = edge[row - 1, side] + rise
    return source, length, edge


def test_paths_are_the_cheapest_from_each_side():
    guide, start = random_guide(), random_start()
    found = sweep_sides(guide, start)
    rows, cols = start.shape
    number = np.arange(rows * cols).reshape(rows, cols)
    turns = [
        lambda one: one,
        lambda one: one[::-1],
        lambda one: one.swapaxes(0, 1),
        lambda one: one.swapaxes(0, 1)[::-1],
    ]
    for side, turn in enumerate(turns):
        source, length, edge = paths_from_above(turn(guide), turn(start))
        place = np.where(source < 0, -1, turn(number).ravel()[source])
        assert np.array_equal(turn(found.source[side]), place)
        assert np.allclose(turn(found.length[side]), length, atol=1e-4)
        assert np.allclose(turn(found.edge[side]), edge, atol=1e-4)


def domain_transform(guide, value, reach=25.0, edge=2.0):
    """Recursive domain transform of one image, in double precision."""
    value = value.astype(float).copy()
    for turn in range(3):
        sigma = reach * np.sqrt(3) * 2.0 ** (2 - turn) / np.sqrt(63)
        for axis in (0, 1):
            rise = np.abs(np.diff(guide.astype(float), axis=axis)).max(axis=-1)
            share = np.exp(-np.sqrt(2) / sigma * (1 + reach / edge * rise))
            share, along = np.moveaxis(share, axis, 0), np.moveaxis(value, axis, 0)
            for one in range(1, len(along)):
                along[one] += share[one - 1] * (along[one - 1] - along[one])
            for one in range(len(along) - 2, -1, -1):
                along[one] += share[one] * (along[one + 1] - along[one])
    return value


def test_mean_along_surfaces_is_the_domain_transform():
    rng = np.random.default_rng(2)
    guide = random_guide(33, 47) / np.float32(20)
    disparity = rng.uniform(10, 30, (33, 47)).astype(np.float32)
    weight = rng.uniform(0.1, 10, (33, 47)).astype(np.float32)
    disparity[rng.random(disparity.shape) < 0.3] = np.nan
    known = np.isfinite(disparity)
    total = domain_transform(guide, np.where(known, weight, 0))
    wanted = domain_transform(guide, np.where(known, weight * disparity, 0)) / total
    assert np.allclose(average_surfaces(guide, disparity, weight), wanted, rtol=1e-5)


def frame():
    """Cells of a simulated scene with holes, and weak depths in them."""
    rig = d3s.Rig.paper_prototype()
    scene = d3s.RandomScene(seed=3, nearest_m=0.5, surfaces="weak")
    pair = d3s.simulate(scene, rig, noise=0.01, shape=(120, 180))
    return d3s.estimate(pair.left, pair.right, rig, options={"min_confidence": 0.0})


def test_measured_pixels_are_those_that_a_filter_keeps():
    found = frame()
    assert np.array_equal(measured_pixels(found), found.filter(min_confidence=0.5).valid)
    dense = densify(found, max_sigma_m=None)
    kept = dense.filter(min_confidence=0.7, filled=False).valid
    assert np.array_equal(measured_pixels(dense, 0.7), kept)


def test_features_of_evidence_are_those_of_the_formulas():
    found = frame()
    cells = cells_of(found, measured_pixels(found))
    texture = texture_of(guide_of(cells.depth_map))
    where = cells.depth_map.valid & ~cells.is_measured
    features = evidence_features(cells, texture, where)
    assert features.shape == (where.sum(), len(EVIDENCE_FEATURES))
    named = dict(zip(EVIDENCE_FEATURES, features.T, strict=True))
    confidence = np.clip(cells.depth_map.confidence[where], 0.01, 0.99)
    assert np.allclose(named["confidence"], np.log(confidence / (1 - confidence)), atol=1e-5)
    carried = (cells.depth_map.flags[where] & np.uint16(d3s.Flag.CARRIED)) != 0
    assert np.array_equal(named["carried"], carried)
    assert np.allclose(named["frame"], np.log(cells.is_measured.mean() + 0.02), atol=1e-5)
    assert np.array_equal(named["texture"], texture[TextureFeature.MIDDLE][where])
    assert np.array_equal(named["strong edge"], texture[TextureFeature.STRONG_EDGE][where])
    assert (np.abs(named["one-sided"]) <= np.sqrt(2)).all()
