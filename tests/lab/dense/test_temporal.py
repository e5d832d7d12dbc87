"""Fusion of frames: sigma falls and stays true, and what moves leaves no ghost."""

from dataclasses import replace

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.lab.dense.filters import TemporalFilter, fuse
from depth_maps import made_depth_map

RIG = d3s.Rig.paper_prototype()
SHAPE = (120, 180)


def frames(scene, count, noise=0.02, shape=SHAPE):
    for seed in range(count):
        pair = d3s.simulate(scene, RIG, noise=noise, shape=shape, seed=seed)
        yield d3s.estimate(pair.left, pair.right, RIG)


def test_sigma_of_a_still_scene_falls_and_stays_true():
    scene = d3s.Plane(depth_m=1.2, texture=d3s.Texture(pattern="gravel", seed=5))
    found = list(frames(scene, 8))
    fused = fuse(found)
    both = found[-1].valid & fused.valid
    assert fused.density >= found[-1].density
    assert np.median(found[-1].sigma_m[both] / fused.sigma_m[both]) > 2.3
    error_m = np.abs(fused.depth_m - 1.2)[fused.valid]
    share = np.mean(error_m < fused.sigma_m[fused.valid])
    assert 0.5 < share < 0.9
    assert np.mean(error_m < 3 * fused.sigma_m[fused.valid]) > 0.95
    single_m = np.abs(found[-1].depth_m - 1.2)[both]
    assert np.median(single_m) / np.median(np.abs(fused.depth_m - 1.2)[both]) > 1.5


def board(first):
    mask = np.zeros(SHAPE, np.float32)
    mask[20:100, first : first + 60] = 1
    near = d3s.Layer(depth_m=0.8, mask=mask, texture=d3s.Texture(pattern="gravel", seed=1))
    wall = d3s.Layer(depth_m=1.4, texture=d3s.Texture(pattern="bark", seed=2))
    return d3s.Layered(layers=[near, wall]), mask > 0


def test_a_moving_object_leaves_no_ghost():
    """A frame after it has moved, no pixel keeps the depth of where it was."""
    kept = TemporalFilter()
    scene, before = board(30)
    for one in frames(scene, 4, noise=0.01):
        kept.add(one)
    scene, after = board(90)
    for one in frames(scene, 2, noise=0.01):
        fused = kept.add(one)
        alone = one
    left_free = before & ~after
    ghosts = fused.valid & (np.abs(fused.depth_m - 0.8) < 0.1) & left_free
    ghosts_alone = alone.valid & (np.abs(alone.depth_m - 0.8) < 0.1) & left_free
    assert ghosts.sum() <= ghosts_alone.sum() + 0.01 * left_free.sum()


def test_a_hole_keeps_the_depth_of_earlier_frames_while_the_view_stays():
    view = np.random.default_rng(0).uniform(0, 1, (40, 50)).astype(np.float32)
    full = np.full(view.shape, 1.0)
    holed = full.copy()
    holed[10:20, 10:20] = np.nan
    fused = fuse([made_depth_map(full, view=view), made_depth_map(holed, view=view)])
    assert fused.valid.all()
    assert (fused.flags == 0).all()
    other = view.copy()
    other[5:25, 5:25] = 0.9
    moved = fuse([made_depth_map(full, view=view), made_depth_map(holed, view=other)])
    assert not moved.valid[12:18, 12:18].any()
    assert (moved.flags[12:18, 12:18] == d3s.Flag.LOW_TEXTURE).all()


def test_filled_depths_are_no_evidence():
    depth_map = made_depth_map(np.full((30, 40), 1.0))
    flags = depth_map.flags.copy()
    flags[10:, :] = d3s.Flag.FILLED
    fused = fuse([replace(depth_map, flags=flags)])
    assert fused.valid[:10].all()
    assert not fused.valid[10:].any()


def test_frames_that_do_not_belong_together_are_refused():
    with pytest.raises(InputError, match="Begin a new filter"):
        fuse([made_depth_map(np.ones((20, 30))), made_depth_map(np.ones((30, 20)))])
    with pytest.raises(InputError, match="at least one"):
        fuse([])
