"""Background beside objects and fattening, on pairs whose answer is plain."""

from dataclasses import replace

import numpy as np
import pytest

from d3s.estimate import Flag
from d3s.lab.evaluate.metrics import background_beside, fattening_of
from d3s.rig import Rig

OPTICS = Rig.paper_prototype().optics
SHAPE = (20, 120)
OBJECT = slice(40, 50)


@pytest.fixture
def scene(truth):
    """Truth of a bar at 0.5 m, columns 40 to 49, before a wall at 1 m."""
    depth_m = np.ones(SHAPE)
    depth_m[:, OBJECT] = 0.5
    return truth(depth_m)


def test_background_lies_within_reach_of_the_object(scene):
    beside = background_beside(scene, OPTICS)
    cols = np.flatnonzero(beside.mask.all(axis=0))
    # 25 px from the outermost column of the object on either side.
    assert cols.tolist() == [*range(15, 40), *range(50, 75)]
    assert beside.mask.any(axis=0).sum() == cols.size
    assert beside.object_px[0, 20] == pytest.approx(float(OPTICS.disparity_px(0.5)))
    near = background_beside(scene, OPTICS, reach_px=3)
    assert near.mask[5].sum() == 6


def test_a_slope_and_a_plane_have_no_background(truth):
    floor = np.broadcast_to(np.linspace(0.8, 1.2, SHAPE[1]), SHAPE)
    assert not background_beside(truth(floor), OPTICS).mask.any()
    assert not background_beside(truth(np.ones(SHAPE)), OPTICS).mask.any()


def test_depths_of_the_object_are_counted_with_and_without_the_flag(scene, depth_map):
    depth_m = scene.depth_m.copy()
    depth_m[:, 50:60] = 0.52  # fattened
    depth_m[:, 60:64] = 0.9  # wrong, but nearer to the wall
    depth_m[:, 64:70] = np.nan
    found = depth_map(depth_m)
    flags = found.flags.copy()
    flags[:, 50:56] |= np.uint16(Flag.CARRIED)
    flags[:, 30] |= np.uint16(Flag.CARRIED)
    found = replace(found, flags=flags)
    beside = background_beside(scene, OPTICS)
    told = fattening_of(found, scene, beside)
    assert (told["beside"], told["beside_retained"]) == (20 * 50, 20 * 44)
    assert (told["fattened"], told["fattened_unflagged"]) == (20 * 10, 20 * 4)
    assert told["beside_carried"] == 20 * 7
    right_half = np.zeros(SHAPE, dtype=bool)
    right_half[:, 58:] = True
    part = fattening_of(found, scene, beside, right_half)
    assert (part["beside"], part["fattened"]) == (20 * 17, 20 * 2)
