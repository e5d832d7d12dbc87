"""Sharp views that do not match around a pixel: chance matches are not trusted."""

import numpy as np

import d3s

PINHOLE = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.05)


def test_half_of_a_frame_may_be_noise():
    rng = np.random.default_rng(1)
    scene = d3s.Plane(depth_m=1.5, texture="gravel")
    pair = d3s.simulate(scene, PINHOLE, noise=0.01, shape=(200, 420))
    left, right = pair.left.copy(), pair.right.copy()
    for view in (left, right):
        view[:, 250:] = rng.uniform(0, 1, view[:, 250:].shape)
    found = d3s.estimate(left, right, PINHOLE)
    assert found.valid[20:-20, 70:180].mean() > 0.95
    assert found.valid[:, 300:].mean() < 0.001
