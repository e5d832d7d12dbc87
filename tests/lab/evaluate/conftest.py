"""A depth map and a truth of a few pixels, to be worked out by hand."""

import numpy as np
import pytest

from d3s.lab.evaluate import Truth
from depth_maps import made_depth_map


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
