"""Scenes without depth, as docs/how_good.md lists them, and the flag that says why."""

import numpy as np
import pytest

import d3s
from d3s.estimate.flags import share_of_each

RIG = d3s.Rig.paper_prototype()


def stripes_along_the_rows() -> d3s.Photo:
    steps = np.random.default_rng(0).uniform(0.02, 0.08, 1024)
    wave = 0.5 + 0.3 * np.sin(2 * np.pi * np.cumsum(steps))
    image = np.repeat(wave[:, np.newaxis], 1024, axis=1).astype(np.float32)
    return d3s.Photo(image=image, width_m=0.2, encoding="linear")


def grid(depth_m: float, period_px: float) -> d3s.Photo:
    period_m = period_px * depth_m / RIG.optics.focal_length_px
    wave = np.sin(2 * np.pi * np.arange(64 * 32) / 32)
    image = (0.5 + 0.25 * wave + 0.15 * wave[:, np.newaxis]).astype(np.float32)
    return d3s.Photo(image=image, width_m=64 * period_m, encoding="linear")


@pytest.mark.parametrize(
    ("texture", "depth_m", "flag"),
    [
        (grid(0.6, 10.0), 0.6, "AMBIGUOUS"),
        (stripes_along_the_rows(), 1.0, "LOW_CONFIDENCE"),
        ("gravel", 0.22, "OUT_OF_RANGE"),
        ("gravel", 2.8, "OUT_OF_RANGE"),
    ],
)
def test_scene_without_depth(texture, depth_m, flag):
    scene = d3s.Plane(depth_m=depth_m, texture=texture)
    pair = d3s.simulate(scene, RIG, noise=0.01, shape=(80, 300))
    est = d3s.estimate(pair.left, pair.right, RIG)
    assert est.density == 0
    assert share_of_each(est.flags)[flag] > 0.6


def test_wall_without_texture():
    left, right = np.random.default_rng(0).normal(0.5, 0.01, (2, 80, 300))
    est = d3s.estimate(left, right, RIG)
    assert est.density == 0
    assert share_of_each(est.flags)["LOW_TEXTURE"] > 0.95
