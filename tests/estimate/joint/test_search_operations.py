"""The search over whole shifts: compiled against plain, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d3s.estimate.joint.kernels import costs, filters
from d3s.estimate.joint.types import (
    COST_PADDING,
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


def _costs(ops, left, right, first_shift, shifts):
    return ops.matching_costs(left, right, first_shift, shifts, SCALES)


def _found(ops, costs, allowed, small, large) -> PathResult:
    """Result of the paths; `large` is a pair of images of the penalty."""
    return ops.aggregate_paths(costs, np.asarray(allowed, dtype=bool), small, tuple(large))


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


@pytest.mark.parametrize("shape", [*SHAPES, WIDE, (2 * costs._TILE_ROWS + 3, 20)], ids=str)
@pytest.mark.parametrize(("first_shift", "shifts"), [(0, 1), (-5, 12), (3, 33), (-40, 80), (60, 4)])
def test_costs(shape, first_shift, shifts):
    left, right = _pair(shape, 2)
    ours, theirs = (_costs(ops, left, right, first_shift, shifts) for ops in (OURS, ORACLE))
    assert ours.dtype == theirs.dtype == np.uint8
    assert ours.shape == theirs.shape == (*left.shape, -(-shifts // COST_PADDING) * COST_PADDING)
    # A slope just between two whole numbers is rounded to one or the other.
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert (ours != theirs).sum() <= 0.001 * ours.size


# Paths and pick -----------------------------------------------------------------------------------


PRICES = [(0, 0), (1, 3), (128, 510), (12750, 51000), (MAX_PENALTY, MAX_PENALTY)]


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
@pytest.mark.parametrize("prices", PRICES, ids=str)
@pytest.mark.parametrize("depth", [1, 2, 17, 130])
def test_found(shape, prices, depth):
    for most in (MAX_COST, 3):  # with few different costs there are many ties
        costs = _random_costs(shape, depth, seed=depth, most=most)
        large = _random_penalties(shape, *prices, seed=most)
        both = (_found(ops, costs, np.ones(depth), prices[0], large) for ops in (OURS, ORACLE))
        _assert_same_pick(*both)


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
