"""The search over whole shifts: compiled against plain, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import d3s
from d3s.estimate.joint.kernels import costs, filters
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.joint.search import search
from d3s.estimate.joint.types import (
    COST_PADDING,
    FORBIDDEN_TOTAL,
    MAX_COST,
    MAX_PENALTY,
    PathResult,
)
from oracle import ORACLE, OURS

# One pixel, one row, one column, narrower than any window, odd, more than one band, tile and strip.
SHAPES = [(1, 1), (1, 9), (7, 1), (2, 3), (3, 7), (5, 6), (23, 31), (filters._BAND + 9, 17)]
WIDE = (9, 2 * costs._TILE + 5)
SCALES = (40.0, 40.0)  # of the slopes: about what the search takes for these views


def _random(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _random_costs(
    shape: tuple[int, ...], depth: int, seed: int, most: int = MAX_COST
) -> np.ndarray:
    deep = -(-depth // COST_PADDING) * COST_PADDING
    costs = np.random.default_rng(seed).integers(0, most + 1, (*shape, deep)).astype(np.uint8)
    costs[:, :, depth:] = MAX_COST
    return costs


def _pair(shape: tuple[int, int], shift: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A texture and the same moved to the left, with a little noise."""
    rng = np.random.default_rng(seed)
    wide = rng.normal(size=(shape[0], shape[1] + 2 * abs(shift) + 2))
    wide = (wide[:, 1:] + wide[:, :-1]) / 8
    start = abs(shift)
    left = wide[:, start : start + shape[1]]
    right = wide[:, start + shift : start + shift + shape[1]]
    return tuple(
        (view + 0.01 * rng.normal(size=shape)).astype(np.float32) for view in (left, right)
    )


def _costs(ops, left, right, first_shift, shifts, scales=SCALES):
    return ops.matching_costs(left, right, first_shift, shifts, scales)


def _found(ops, costs, allowed, small=128, large=510) -> PathResult:
    """Result of the paths; `large` is the penalty everywhere, or a pair of images of it."""
    if isinstance(large, int):
        large = np.full((2, *costs.shape[:2]), min(large, MAX_PENALTY), np.int16)
    across, down = large
    return ops.aggregate_paths(costs, np.asarray(allowed, dtype=bool), small, (across, down))


def _random_penalties(shape: tuple[int, ...], small: int, large: int, seed: int) -> np.ndarray:
    least, most = (min(price, MAX_PENALTY) for price in (small, max(small, large)))
    return np.random.default_rng(seed).integers(least, most + 1, (2, *shape)).astype(np.int16)


def _assert_same_pick(ours: PathResult, theirs: PathResult) -> None:
    for name in ("lowest", "total"):
        one, two = getattr(ours, name), getattr(theirs, name)
        assert one.dtype == two.dtype == np.int16
        np.testing.assert_array_equal(one, two, err_msg=name)
    for name in ("step", "margin"):
        assert getattr(ours, name).dtype == np.float32
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), atol=2e-6, rtol=1e-6, err_msg=name
        )
    assert ((ours.margin >= 0) & (ours.margin <= 1)).all()


# Images -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
@pytest.mark.parametrize("half", [0, 1, 2, 7, 15, 70])
def test_means(shape, half):
    image = _random(shape) + 3
    ours, theirs = (ops.local_mean(image, half) for ops in (OURS, ORACLE))
    assert ours.dtype == np.float32
    assert theirs.dtype == np.float64
    np.testing.assert_allclose(ours, theirs, atol=3e-6)


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
def test_median_of_nine(shape):
    image = _random(shape)
    np.testing.assert_array_equal(OURS.median_3x3(image), ORACLE.median_3x3(image))
    steps = np.round(4 * image)  # many equal ones
    np.testing.assert_array_equal(OURS.median_3x3(steps), ORACLE.median_3x3(steps))


# Costs --------------------------------------------------------------------------------------------


def _assert_same_costs(left, right, first_shift, shifts, scales=SCALES) -> np.ndarray:
    ours, theirs = (_costs(ops, left, right, first_shift, shifts, scales) for ops in (OURS, ORACLE))
    assert ours.dtype == theirs.dtype == np.uint8
    assert ours.shape == theirs.shape == (*left.shape, -(-shifts // COST_PADDING) * COST_PADDING)
    # A slope just between two whole numbers is rounded to one or the other.
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert (ours != theirs).sum() <= 0.001 * ours.size
    return ours


@pytest.mark.parametrize("shape", [*SHAPES, WIDE, (2 * costs._TILE_ROWS + 3, 20)], ids=str)
@pytest.mark.parametrize(("first_shift", "shifts"), [(0, 1), (-5, 12), (3, 33), (-40, 80), (60, 4)])
def test_costs(shape, first_shift, shifts):
    _assert_same_costs(*_pair(shape, 2), first_shift, shifts)


@pytest.mark.parametrize("scales", [(0.0, 0.0), (1.0, 7.0), (1e6, 1e6)], ids=str)
def test_costs_by_other_scales(scales):
    _assert_same_costs(*_pair((20, 60), 4), -2, 18, scales)
    _assert_same_costs(*(np.round(4 * view) for view in _pair((20, 60), 4)), -2, 18, scales)


CHANGES = {
    "gain": lambda view: 0.6 * view,
    "offset": lambda view: view + 0.2,
    "gamma": lambda view: view**0.5,
    "all": lambda view: 1.7 * view**2.2 + 0.1,
}


@pytest.mark.parametrize("ops", [OURS, ORACLE], ids=["compiled", "plain"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_search_finds_views_of_unlike_exposure(ops, change):
    rig = d3s.Rig.from_pinhole(focal_length_px=500, baseline_m=0.1)
    plan = make_plan(rig.optics, d3s.JointOptions(depth_range_m=(4.0, 20.0)), (40, 120))
    left, right = (0.5 + 0.3 * view for view in _pair((40, 120), 6))
    views = left, change(right).astype(np.float32)
    found = ops.run(search, views, np.zeros_like(left), plan)
    step = found.step[4:-4, 24:-8] + plan.shifts[0]
    assert (np.abs(step - 6) < 0.5).all()
    assert (found.margin[4:-4, 24:-8] > 0.2).all()


# Paths and pick -----------------------------------------------------------------------------------


PRICES = [(0, 0), (1, 3), (128, 510), (12750, 51000), (MAX_PENALTY, MAX_PENALTY)]


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
@pytest.mark.parametrize("prices", PRICES, ids=str)
@pytest.mark.parametrize("depth", [1, 2, 3, 16, 17, 46, 130])
def test_found(shape, prices, depth):
    for most in (MAX_COST, 3):  # with few different costs there are many ties
        costs = _random_costs(shape, depth, seed=depth, most=most)
        penalties = _random_penalties(shape, *prices, seed=most)
        for large in (prices[1], penalties):
            ours, theirs = (
                _found(ops, costs, np.ones(depth), prices[0], large) for ops in (OURS, ORACLE)
            )
            _assert_same_pick(ours, theirs)


@pytest.mark.parametrize("prices", PRICES, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_only_what_is_allowed_is_found(prices, share):
    costs = _random_costs((19, 40), 37, seed=1)
    allowed = np.random.default_rng(2).uniform(size=37) < share
    ours, theirs = (_found(ops, costs, allowed, *prices) for ops in (OURS, ORACLE))
    _assert_same_pick(ours, theirs)
    if allowed.any():
        assert allowed[ours.lowest].all()
        assert (ours.total < FORBIDDEN_TOTAL).all()
    else:
        assert (ours.total == FORBIDDEN_TOTAL).all()
        assert (ours.margin == 0).all()


@settings(max_examples=40)
@given(
    rows=st.integers(1, 40),
    cols=st.integers(1, 40),
    depth=st.integers(1, 70),
    small=st.integers(0, 600),
    more=st.integers(0, 2000),
    most=st.sampled_from([1, 20, MAX_COST]),
    seed=st.integers(0, 2**32 - 1),
)
def test_whatever_the_size(rows, cols, depth, small, more, most, seed):
    costs = _random_costs((rows, cols), depth, seed, most)
    allowed = np.random.default_rng(seed).uniform(size=depth) < 0.9
    large = _random_penalties((rows, cols), small, small + more, seed)
    both = [_found(ops, costs, allowed, small, large) for ops in (OURS, ORACLE)]
    _assert_same_pick(*both)
    first_shift = seed % 17 - 8
    seen = [ops.right_view_steps(both[1], first_shift) for ops in (OURS, ORACLE)]
    np.testing.assert_array_equal(*seen)
    left, right = _random((rows, cols), seed), _random((rows, cols), seed + 1)
    ours, theirs = (_costs(ops, left, right, first_shift, depth) for ops in (OURS, ORACLE))
    assert np.abs(ours.astype(int) - theirs).max() <= 1


# Penalties ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
@pytest.mark.parametrize("numbers", [(550.0, 91.3, 0.2), (0.0, 0.0, 1.0), (7500.0, 83.0, 1e-3)])
def test_penalties(shape, numbers):
    view = _random(shape)
    ours, theirs = (ops.step_penalties(view, *numbers) for ops in (OURS, ORACLE))
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype == np.int16
        # Just between two whole numbers, rounding decides.
        assert np.abs(one - other).max() <= 1
        assert (one != other).mean() <= 0.01


@pytest.mark.parametrize("smoothness", [0.0, 1.0, 20.0, 100.0])
def test_penalties_of_any_smoothness_stay_within_the_totals(smoothness):
    # Totals of two bytes hold four paths of 7500 and a cost. Long rows, of costs that all paths
    # pay in full: the totals would be largest here.
    rig = d3s.Rig.from_pinhole(focal_length_px=500, baseline_m=0.1)
    options = d3s.JointOptions(depth_range_m=(4.0, 20.0), smoothness=smoothness)
    plan = make_plan(rig.optics, options, (150, 200))
    views = _pair((150, 200), 6)
    ours, theirs = (ops.run(search, views, np.zeros_like(views[0]), plan) for ops in (OURS, ORACLE))
    assert (np.abs(ours.step - theirs.step) < 0.1).mean() > 0.99
    np.testing.assert_allclose(ours.step[4:-4, 24:-8] + plan.shifts[0], 6, atol=0.5)


# Seen from the right ------------------------------------------------------------------------------


# Threads and memory -------------------------------------------------------------------------------
