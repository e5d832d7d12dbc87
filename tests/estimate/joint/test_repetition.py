"""Texture that repeats: costs around the chosen shift, by hand, and compiled against plain."""

import numpy as np
import pytest

import d3s
from d3s.estimate.diagnosis import Cause
from d3s.estimate.flags import Flag
from d3s.estimate.joint.kernels.periods import Limits
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.joint.search import find_hidden, find_repetition
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


def _is_repeated(*blocks: list[float], known: int = 10, is_periodic: bool = False) -> list[bool]:
    """Blocks in a row, by their mean costs at the distances -4 to 4; NaN if no pixel has one."""
    mean = np.array([blocks])
    counts = np.where(np.isnan(mean), 0, known).astype(np.int64)
    sums = (np.nan_to_num(mean) * counts).astype(np.int64)
    return find_repetition(sums, counts, np.array([is_periodic] * len(blocks))[None])[0].tolist()


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
    assert _is_repeated([100, 30, 100, 60, 10, 60, 90, 100, 100], is_periodic=True) == [True]


def test_blocks_without_another_valley_follow_their_neighbours():
    assert _is_repeated(UNSEEN) == [False]
    assert _is_repeated(UNSEEN, WAVE, UNIQUE, UNSEEN) == [True, True, False, False]


def _views(period_px: float, shift: int, shape: tuple[int, int], share: float = 0.7):
    """Pattern of a period, the rest of which does not repeat, and the same moved to the left."""
    rng = np.random.default_rng(2)
    rows, cols = np.arange(shape[0])[:, None], np.arange(shape[1] + shift)
    wave = np.sin(2 * np.pi * (cols + 0.2 * rows) / period_px) / np.sqrt(0.5)
    rest = rng.normal(size=(shape[0] // 3 + 1, cols.size // 3 + 1)).repeat(3, 0).repeat(3, 1)
    whole = share * wave + np.sqrt(1 - share**2) * rest[: shape[0], : cols.size]
    return whole[:, : shape[1]].astype(np.float32), whole[:, shift:].astype(np.float32)


LIMITS = Limits(surely=0.92, share=0.95, least=0.7, dip=0.6, outside=0.7, lead=0.05)
ENDS = 0, 2, 20, 40  # smallest shift, range, largest shift


@pytest.mark.parametrize("shape", [(1, 1), (30, 60), (61, 130)])
@pytest.mark.parametrize(("period_px", "shift", "share"), [(13.4, 9, 1), (22, 31, 0.9), (8, 30, 0)])
def test_periods_of_the_engine_are_those_of_the_oracle(shape, period_px, shift, share):
    views = _views(period_px, shift, shape, share)
    found, expected = (ops.find_periods(views, ENDS, (33, 24), LIMITS) for ops in (OURS, ORACLE))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)


def test_periods_and_matches_out_of_the_range_are_found():
    repeated = OURS.find_periods(_views(13.4, 9, (61, 200), 1), ENDS, (33, 24), LIMITS)
    np.testing.assert_allclose(repeated.period[:, 1:-1], 13.4, atol=0.1)
    assert not repeated.lead[:, 1:-1].any()
    outside = OURS.find_periods(_views(8, 30, (61, 200), 0), ENDS, (33, 24), LIMITS)
    assert (outside.lead[:, 3:-1] > 0.3).all()
    assert not outside.period.any()


def test_only_hidden_matches_are_ambiguous():
    pinhole = d3s.Rig.from_pinhole(focal_length_px=700, baseline_m=0.06)
    plan = make_plan(pinhole.optics, d3s.JointOptions(depth_range_m=(1.05, 4.2)), (1, 100))
    assert plan.shifts[[0, -1]].tolist() == [9, 41]
    lowest = np.full((1, 100), 11, dtype=np.int16)  # shift 20

    def hidden(period: float) -> list[bool]:
        wide = np.full((1, 100), period, dtype=np.float32)
        return find_hidden(wide, lowest, plan)[0, [25, 60]].tolist()

    assert hidden(0) == [False, False]
    assert hidden(10) == [True, False]  # shifts 30 and 10 are in the range; 30 leaves the frame
    assert hidden(15) == [True, True]  # shift 5 is out of the range
    assert hidden(22) == [True, True]  # shift 42; -2 is beyond infinity


@pytest.mark.parametrize("range_m", [(0.9, 4.0), None])
def test_repetition_out_of_the_range_has_no_depth(range_m):
    pinhole = d3s.Rig.from_pinhole(focal_length_px=700, baseline_m=0.06)
    image = np.tile(np.random.default_rng(0).random((20, 20)), (16, 40)).astype(np.float32)
    photo = d3s.Photo(image=image, width_m=0.35, encoding="linear")  # a period of 25 px
    pair = d3s.simulate(
        d3s.Plane(depth_m=0.25, texture=photo), pinhole, noise=0.01, shape=(160, 300)
    )
    found = d3s.estimate(pair.left, pair.right, pinhole, options={"depth_range_m": range_m})
    assert found.density < 0.01
    assert any(words.startswith(Cause.REPEATED) for words in found.warnings)


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
