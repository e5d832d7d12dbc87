"""Simulated pairs, and checks that hold for every depth map."""

from functools import lru_cache

import numpy as np
import pytest

import d3s
from d3s.estimate.flags import Flag

REASONS = np.uint16(0xFFFF - Flag.CARRIED)


@lru_cache(maxsize=64)
def _plane(depth_m, texture, noise, seed, shape):
    scene = d3s.Plane(depth_m=depth_m, texture=texture)
    return d3s.simulate(scene, d3s.Rig.paper_prototype(), noise=noise, seed=seed, shape=shape)


def plane_pair(depth_m, texture="gravel", noise=0.01, seed=0, shape=(120, 260)) -> d3s.Pair:
    return _plane(depth_m, texture, noise, seed, shape)


def check_explained(found: d3s.DepthMap) -> None:
    """A pixel has a depth, a sigma and at most a remark, or neither and at least one reason."""
    shape = found.depth_m.shape
    assert found.sigma_m.shape == found.confidence.shape == found.flags.shape == shape
    assert found.depth_m.dtype == found.sigma_m.dtype == found.confidence.dtype == np.float32
    np.testing.assert_array_equal(found.valid, (found.flags & REASONS) == 0)
    np.testing.assert_array_equal(found.valid, np.isfinite(found.sigma_m))
    assert (found.depth_m[found.valid] > 0).all()
    assert (found.sigma_m[found.valid] >= 0).all()
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()


def check_same_bytes(one: d3s.DepthMap, other: d3s.DepthMap) -> None:
    for name in ("depth_m", "sigma_m", "confidence", "flags"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


@pytest.fixture
def plane():
    return plane_pair


@pytest.fixture
def assert_explained():
    return check_explained


@pytest.fixture
def assert_same_bytes():
    return check_same_bytes
