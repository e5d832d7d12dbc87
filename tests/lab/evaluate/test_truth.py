"""Which pixels count, on pairs whose answer is plain."""

import numpy as np
import pytest

import d3s
from d3s.lab.evaluate import truth_of
from d3s.lab.evaluate.truth import EDGE_REACH_PX, near_jumps

RIG = d3s.Rig.paper_prototype()
SHAPE = (100, 200)


@pytest.fixture(scope="module")
def plane():
    return d3s.simulate(d3s.Plane(depth_m=1.0, texture="stone"), RIG, shape=SHAPE)


def test_the_border_of_a_window_is_left_out_in_both_views(plane):
    judged = truth_of(plane, 0.01).judged
    rows, cols = np.nonzero(judged)
    assert (rows.min(), rows.max()) == (15, 84)
    # The disparity is 23.232 px: from column 39 on, the match is at 15 or more.
    assert (cols.min(), cols.max()) == (39, 184)
    assert judged[15:85, 39:185].all()


def test_the_bound_grows_with_the_noise(plane):
    one, three = truth_of(plane, 0.01), truth_of(plane, 0.03)
    inside = one.judged
    assert three.bound_m[inside] == pytest.approx(3 * one.bound_m[inside])
    assert one.textured[inside].all()
    assert not truth_of(plane, 0.9).textured.any()


def test_regions_cover_all_that_is_judged(plane):
    regions = truth_of(plane, 0.01).regions
    assert list(regions) == ["all", "textured", "flat", "occluded", "near edges", "interior"]
    every = regions["all"]
    assert np.array_equal(regions["textured"] | regions["flat"] | regions["occluded"], every)
    assert np.array_equal(regions["near edges"] ^ regions["interior"], every)
    assert not regions["near edges"].any()


def test_edges_reach_sixteen_pixels():
    disparity = np.full((60, 90), 10.0, dtype=np.float32)
    disparity[:, 45:] = 12.0
    near = near_jumps(disparity, EDGE_REACH_PX)
    assert near[:, 44 - 16 : 45 + 17].all()
    assert not near[:, : 44 - 16].any()
    assert not near[:, 45 + 17 :].any()
    assert np.array_equal(near_jumps(disparity.T, EDGE_REACH_PX), near.T)
    slope = np.linspace(0, 50, 90, dtype=np.float32)
    assert not near_jumps(np.broadcast_to(slope, (60, 90)).copy(), EDGE_REACH_PX).any()


def test_what_is_hidden_from_the_right_view_is_a_region_of_its_own():
    mask = np.zeros(SHAPE)
    mask[:, 110:150] = 1
    scene = d3s.Layered(
        layers=[d3s.Layer(depth_m=0.5, texture="wood", mask=mask), d3s.Layer(depth_m=1.0)]
    )
    truth = truth_of(d3s.simulate(scene, RIG, shape=SHAPE), 0.01)
    occluded = truth.regions["occluded"]
    # Left of the thing, as many columns as the disparities differ by: 46.5 - 23.2.
    cols = np.nonzero(occluded[50])[0]
    assert cols.max() in (108, 109)
    assert 21 <= cols.size <= 25
    assert truth.near_edge[50, 94:126].all()
    assert not truth.near_edge[50, 127:133].any()
    assert not (occluded & truth.textured).any()
