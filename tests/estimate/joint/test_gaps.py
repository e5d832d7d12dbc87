"""Plain gaps between textured parts, which have a depth only if it is asked for."""

import numpy as np
import pytest

import d3s
from d3s.lab.twin.random_scene import fine_mask
from oracle import ORACLE, OURS

SHAPE = (200, 300)
RIGS = {
    "lenses": d3s.Rig.paper_prototype(),
    "pinhole": d3s.Rig.from_pinhole(focal_length_px=700.0, baseline_m=0.04),
}


def _fence(rig, sizes_px, depth_m):
    """Bars, and gaps between them that show a plain wall at twice the depth."""
    mask = fine_mask("fence", SHAPE, *sizes_px, np.random.default_rng(3))
    bars = d3s.Layer(depth_m=depth_m, mask=mask, texture=d3s.Texture(pattern="stone", seed=1))
    wall = d3s.Texture(pattern="stone", seed=2, contrast=0)
    scene = d3s.Layered(layers=[bars, d3s.Layer(depth_m=2 * depth_m, texture=wall)])
    return d3s.simulate(scene, rig, noise=0.01, shape=SHAPE)


@pytest.mark.parametrize(
    ("rig", "sizes_px", "depth_m"),
    [
        ("lenses", (14, 14), 0.7),
        ("pinhole", (14, 14), 0.7),
        ("pinhole", (10, 7), 0.7),
    ],
)
def test_gaps_have_no_depth_unless_it_is_asked_for(rig, sizes_px, depth_m):
    rig = RIGS[rig]
    pair = _fence(rig, sizes_px, depth_m)
    is_wall = pair.depth_m > 1.5 * depth_m
    found = d3s.estimate(pair.left, pair.right, rig)
    assert (found.valid & is_wall).mean() < 0.01
    every = d3s.estimate(pair.left, pair.right, rig, options={"enclosed": True})
    is_enclosed = (every.flags & np.uint16(d3s.Flag.ENCLOSED)) != 0
    wrong = every.valid & is_wall & (np.abs(every.depth_m - pair.depth_m) > 0.05)
    assert wrong.mean() > 0.05
    assert (wrong & ~is_enclosed).mean() < 0.01
    assert every.confidence[is_enclosed].max() <= 0.75
    np.testing.assert_array_equal(every.filter(enclosed=False).valid, found.valid)


@pytest.mark.parametrize("rig", RIGS.values(), ids=RIGS)
@pytest.mark.parametrize("contrast", [1.0, 0.2])
def test_texture_of_its_own_is_no_gap(rig, contrast):
    texture = d3s.Texture(pattern="leaves", seed=5, contrast=contrast)
    pair = d3s.simulate(d3s.Plane(depth_m=1.0, texture=texture), rig, noise=0.005, shape=SHAPE)
    found = d3s.estimate(pair.left, pair.right, rig)
    assert ((found.flags & np.uint16(d3s.Flag.ENCLOSED)) != 0).mean() < 0.05


@pytest.mark.parametrize("shape", [(8, 12), (7, 11), (1, 1)])
def test_sums_of_gradients_agree_with_the_oracle(shape):
    rng = np.random.default_rng(0)
    left, right, weight = rng.normal(size=(3, *shape)).astype(np.float32)
    weight = np.maximum(weight, 0)
    ours, theirs = (ops.gradient_sums(left, right, weight) for ops in (OURS, ORACLE))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    ours, theirs = (ops.squared_gradient(left) for ops in (OURS, ORACLE))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)
