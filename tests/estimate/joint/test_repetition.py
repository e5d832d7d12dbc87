"""Texture that repeats: costs around the chosen shift, by hand, and compiled against plain."""

import numpy as np
import pytest

import d3s
from d3s.estimate.flags import Flag
from d3s.estimate.joint.search import find_repetition
from d3s.estimate.joint.types import MAX_COST
from oracle import ORACLE, OURS

RIG = d3s.Rig.paper_prototype()


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (25, 49), (50, 24)])
@pytest.mark.parametrize("shifts", [3, 16, 37])
def test_aligned_costs_of_the_engine_are_those_of_the_oracle(shape, shifts):
    rng = np.random.default_rng(3)
    costs = rng.integers(0, MAX_COST + 1, (*shape, -(-shifts // 16) * 16)).astype(np.uint8)
    lowest = rng.integers(0, shifts, shape).astype(np.int16)
    allowed = rng.uniform(size=shifts) < 0.8
    found, expected = (ops.aligned_costs(costs, lowest, allowed, 24, 4) for ops in (OURS, ORACLE))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def _is_repeated(*blocks: list[float], known: int = 10) -> list[bool]:
    """Blocks in a row, by their mean costs at the distances -4 to 4; NaN if no pixel has one."""
    mean = np.array([blocks])
    counts = np.where(np.isnan(mean), 0, known).astype(np.int64)
    sums = (np.nan_to_num(mean) * counts).astype(np.int64)
    return find_repetition(sums, counts)[0].tolist()


NONE = np.nan
UNIQUE = [100, 80, 90, 60, 10, 60, 90, 85, 100]
WAVE = [100, 11, 100, 60, 10, 60, 90, 100, 100]
PLAIN = [52, 50, 52, 51, 50, 51, 52, 51, 52]
SLOPE = [5, 20, 60, 60, 10, 60, 90, 100, 100]  # the end of the range is no valley
UNSEEN = [NONE, NONE, NONE, 60, 10, 60, NONE, NONE, NONE]


def test_a_second_valley_is_a_repetition():
    assert _is_repeated(UNIQUE) == [False]
    assert _is_repeated(WAVE) == [True]
    assert _is_repeated(PLAIN) == [False]
    assert _is_repeated(SLOPE) == [False]
    assert _is_repeated([100, 40, 100, 60, 10, 60, 90, 100, 100]) == [False]


def test_blocks_without_another_valley_follow_their_neighbours():
    assert _is_repeated(UNSEEN) == [False]
    assert _is_repeated(UNSEEN, WAVE, UNIQUE, UNSEEN) == [True, True, False, False]


@pytest.mark.parametrize(("depth_m", "period_px"), [(0.4, 24), (0.6, 13), (0.6, 24), (0.85, 16)])
def test_waves_before_lenses_are_ambiguous(depth_m, period_px):
    period_m = period_px * depth_m / RIG.optics.focal_length_px
    wave = np.sin(2 * np.pi * np.arange(64 * 32) / 32)
    image = (0.5 + 0.25 * wave + 0.15 * wave[:, np.newaxis]).astype(np.float32)
    photo = d3s.Photo(image=image, width_m=64 * period_m, encoding="linear")
    pair = d3s.simulate(
        d3s.Plane(depth_m=depth_m, texture=photo), RIG, noise=0.01, shape=(160, 300)
    )
    found = d3s.estimate(pair.left, pair.right, RIG)
    assert (np.abs(found.depth_m - depth_m) > 0.02).mean() < 0.01
    assert ((found.flags & Flag.AMBIGUOUS) != 0).mean() > 0.7


@pytest.mark.parametrize("texture", ["bark", "gravel", "grass", "brick", "text"])
def test_other_textures_are_not_ambiguous(plane, texture):
    for depth_m in (0.4, 1.0):
        pair = plane(depth_m, texture, 0.02)
        found = d3s.estimate(pair.left, pair.right, RIG)
        assert ((found.flags & Flag.AMBIGUOUS) != 0).mean() < 0.005
