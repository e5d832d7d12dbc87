"""SIFT keypoints: few depths, mostly correct, none without a match."""

import numpy as np
import pytest

import d3s

RIG = d3s.Rig.paper_prototype()


@pytest.fixture(scope="module")
def plane():
    scene = d3s.Plane(depth_m=0.8, texture="leaves")
    return d3s.simulate(scene, RIG, noise=0.005, shape=(160, 260))


def test_depths_are_few_and_most_are_true(plane):
    result = d3s.estimate(plane.left, plane.right, RIG, method="sift")
    assert 20 < result.valid.sum() < 0.05 * result.valid.size
    error_px = RIG.optics.disparity_px(result.depth_m[result.valid]) - 23.232 / 0.8
    assert np.median(np.abs(error_px)) < 0.5
    assert np.mean(np.abs(error_px) > 3) < 0.1
    assert (result.confidence[~result.valid] == 0).all()


def test_sigma_is_proportional_to_the_option(plane):
    one, two = (
        d3s.estimate(
            plane.left, plane.right, RIG, method="sift", options={"column_sigma": factor}
        ).sigma_m
        for factor in (0.05, 0.1)
    )
    assert np.allclose(two, 2 * one, equal_nan=True)


def test_rows_must_agree(plane):
    moved = np.roll(plane.right, 6, axis=0)
    result = d3s.estimate(plane.left, moved, RIG, method="sift")
    same = d3s.estimate(plane.left, plane.right, RIG, method="sift")
    assert result.valid.sum() < 0.2 * same.valid.sum()
