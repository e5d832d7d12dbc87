"""Rig and frames that the tests of a check share."""

import pytest

import d3s
from check_frames import raw_of, small_rig


@pytest.fixture(scope="session")
def rig():
    return small_rig()


@pytest.fixture(scope="session")
def frames():
    """Raw frames of six random scenes."""
    patterns = ("stone", "leaves")
    scenes = [
        d3s.RandomScene(seed=seed, patterns=patterns, nearest_m=0.4, farthest_m=1.2)
        for seed in range(6)
    ]
    return [raw_of(scene, seed) for seed, scene in enumerate(scenes)]
