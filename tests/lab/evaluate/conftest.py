"""A depth map and a truth of a few pixels, to be worked out by hand."""

import numpy as np
import pytest

from d3s.estimate import DepthMap, Options
from d3s.lab.evaluate import Truth
from d3s.rig import Rig


def made_depth_map(depth_m, sigma_m=0.01):
    depth_m = np.asarray(depth_m, dtype=np.float32)
    valid = np.isfinite(depth_m)
    return DepthMap(
        depth_m=depth_m,
        sigma_m=np.where(valid, sigma_m, np.nan).astype(np.float32),
        confidence=valid.astype(np.float32),
        flags=np.where(valid, 0, 128).astype(np.uint16),
        rig=Rig.paper_prototype(),
        method="by hand",
        options=Options(),
    )


def made_truth(depth_m, bound_m=0.001, **masks):
    depth_m = np.asarray(depth_m, dtype=np.float64)
    every = np.ones(depth_m.shape, dtype=bool)
    values = {"judged": every, "visible": every, "near_edge": ~every}
    values |= {name: np.asarray(mask, dtype=bool) for name, mask in masks.items()}
    return Truth(depth_m=depth_m, bound_m=np.broadcast_to(bound_m, depth_m.shape), **values)


@pytest.fixture
def depth_map():
    return made_depth_map


@pytest.fixture
def truth():
    return made_truth
