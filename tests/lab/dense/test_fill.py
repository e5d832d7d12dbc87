"""Densify: measured depths stay, holes are filled from the right surface, sigma holds errors."""

from dataclasses import replace

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.estimate.methods import estimate_quietly
from d3s.lab.dense.fill import densify, measured_pixels
from d3s.lab.dense.surfaces import spread
from depth_maps import made_depth_map

RIG = d3s.Rig.paper_prototype()


def made(depth_m, *, hole=None, view=None):
    """Depth map of known depths, with a hole."""
    holed = np.array(depth_m, np.float32)
    if hole is not None:
        holed[hole] = np.nan
    return made_depth_map(holed, sigma_m=0.002, view=view)


def textured(shape, seed=0):
    return np.random.default_rng(seed).uniform(0, 1, shape).astype(np.float32)


def square(shape, first, last):
    hole = np.zeros(shape, bool)
    hole[first:last, first:last] = True
    return hole


def test_measured_depths_and_their_sigma_stay_bit_for_bit():
    scene = d3s.RandomScene(seed=4, surfaces="weak", nearest_m=0.5)
    pair = d3s.simulate(scene, RIG, noise=0.01, shape=(120, 200))
    usual = estimate_quietly(pair.left, pair.right, RIG)
    everything = estimate_quietly(pair.left, pair.right, RIG, options={"min_confidence": 0.0})
    dense = densify(everything, max_sigma_m=None)
    kept = usual.valid
    assert dense.depth_m[kept].tobytes() == usual.depth_m[kept].tobytes()
    assert dense.sigma_m[kept].tobytes() == usual.sigma_m[kept].tobytes()
    assert np.array_equal(dense.flags[kept], usual.flags[kept])
    assert np.array_equal(dense.confidence, everything.confidence)
    assert dense.valid.all()
    assert np.isfinite(dense.sigma_m).all()


def test_filled_pixels_have_their_flag_and_can_be_removed_again():
    hole = square((80, 100), 30, 42)
    sparse = made(np.full(hole.shape, 1.0), hole=hole, view=textured(hole.shape))
    dense = densify(sparse, max_sigma_m=None)
    is_filled = (dense.flags & d3s.Flag.FILLED) != 0
    assert np.array_equal(is_filled, hole)
    assert ((dense.flags[hole] & d3s.Flag.LOW_TEXTURE) != 0).all()
    back = dense.filter(filled=False)
    assert np.array_equal(back.flags, sparse.flags)
    assert np.array_equal(back.depth_m, sparse.depth_m, equal_nan=True)


def test_hole_in_a_slanted_wall_is_filled_along_its_plane():
    rows, cols = np.indices((120, 160))
    depth_m = 1 / (0.8 + 0.001 * cols + 0.0015 * rows)
    hole = square(depth_m.shape, 50, 74)
    dense = densify(made(depth_m, hole=hole, view=textured(hole.shape)), max_sigma_m=None)
    error_m = np.abs(dense.depth_m - depth_m)[hole]
    # The wall falls by 7 cm over the hole; the mean along the surface flattens it a little.
    assert error_m.max() < 0.015
    assert np.median(error_m) < 0.005
    # Its slope, 0.07 px per cell, is that of a floor close by: the mean flattens it by up to 1 cm,
    # and sigma, fitted to rooms, is 2 mm. A mean that follows slopes was no better in the rooms.
    assert np.mean(error_m < 3 * dense.sigma_m[hole]) > 0.9


def test_hole_takes_the_surface_that_no_edge_of_the_view_parts_it_from():
    depth_m = np.full((100, 160), 1.4, np.float32)
    depth_m[:, :80] = 0.7
    view = np.where(depth_m < 1, 0.2, 0.7).astype(np.float32)
    hole = np.zeros(depth_m.shape, bool)
    hole[:, 60:100] = True  # the jump of depth is in the middle of it
    dense = densify(made(depth_m, hole=hole, view=view), max_sigma_m=None)
    right = np.abs(dense.depth_m - depth_m)[hole] < 0.05
    assert right.mean() > 0.95


def test_colour_guides_where_grey_does_not():
    depth_m = np.full((100, 160), 1.4, np.float32)
    depth_m[:, :80] = 0.7
    hole = np.zeros(depth_m.shape, bool)
    hole[:, 50:100] = True  # its middle is not the jump
    colour = np.full((*depth_m.shape, 3), 120, np.uint8)
    colour[:, :80, 0], colour[:, :80, 2] = 200, 40
    sparse = made(depth_m, hole=hole, view=np.full(depth_m.shape, 0.5, np.float32))
    wrong = [
        np.mean(np.abs(densify(one, max_sigma_m=None).depth_m - depth_m)[hole] > 0.05)
        for one in (sparse, replace(sparse, colour=colour))
    ]
    assert wrong[1] < 0.05 < wrong[0]


def test_what_cannot_be_known_stays_open():
    depth_m = np.full((120, 200), 1.5, np.float32)
    depth_m[:, 150:] = 0.6
    hole = np.zeros(depth_m.shape, bool)
    hole[:, 20:150] = True  # plain, and far from what is measured on both sides
    sparse = made(depth_m, hole=hole, view=np.full(depth_m.shape, 0.5, np.float32))
    dense, closed = densify(sparse), densify(sparse, max_sigma_m=None)
    middle = np.s_[:, 80:90]
    assert not dense.valid[middle].any()
    assert (dense.sigma_m[dense.valid & hole] <= 0.05).all()
    assert closed.valid.all()
    assert (closed.sigma_m[middle] > 0.05).all()


def test_measured_pixels_are_those_that_a_filter_keeps():
    scene = d3s.RandomScene(seed=3, nearest_m=0.5, surfaces="weak")
    pair = d3s.simulate(scene, RIG, noise=0.01, shape=(120, 180))
    found = d3s.estimate(pair.left, pair.right, RIG, options={"min_confidence": 0.0})
    assert np.array_equal(measured_pixels(found), found.filter(min_confidence=0.5).valid)
    dense = densify(found, max_sigma_m=None)
    kept = dense.filter(min_confidence=0.7, filled=False).valid
    assert np.array_equal(measured_pixels(dense, 0.7), kept)


def domain_transform(guide, value, reach=25.0, edge=2.0):
    """Recursive domain transform of one image, row by row as the paper has it."""
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


def test_evidence_is_spread_by_the_domain_transform():
    rng = np.random.default_rng(2)
    guide = rng.normal(0, 0.05, (33, 47, 2)).astype(np.float32)
    value = rng.uniform(0.1, 10, (33, 47))
    found = spread(guide, value[None])[0]
    assert np.allclose(found, domain_transform(guide, value), rtol=1e-6)


@pytest.mark.parametrize("value", [0, "much"])
def test_a_wrong_sigma_is_named(value):
    with pytest.raises(InputError, match=r"max_sigma_m=.*above 0"):
        densify(made(np.ones((20, 20))), max_sigma_m=value)
