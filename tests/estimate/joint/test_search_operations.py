"""The search over whole shifts: compiled against plain, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d3s.estimate.joint.numba_backend import matching
from d3s.estimate.joint.numba_backend import search as kernels
from d3s.estimate.joint.numba_backend.search import NumbaSearch
from d3s.estimate.joint.numpy_backend.search import NumpySearch
from d3s.estimate.joint.types import (
    COST_PADDING,
    FORBIDDEN_TOTAL,
    MAX_COST,
    MAX_PENALTY,
    CostParameters,
    PathParameters,
    PathResult,
)
from d3s.runtime.scratch import Scratch

PLAIN = NumpySearch()
# One pixel, one row, one column, narrower than any window, odd, more than one band, tile and strip.
SHAPES = [(1, 1), (1, 9), (7, 1), (2, 3), (3, 7), (5, 6), (23, 31), (kernels._BAND + 9, 17)]
WIDE = (9, 2 * matching._TILE + 5)
LIMIT = 2.0


def _ops() -> NumbaSearch:
    return NumbaSearch(Scratch())


BOTH = pytest.mark.parametrize("ops", [_ops(), PLAIN], ids=["compiled", "plain"])


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


def _costs(ops, left, right, first_shift, defocus, half=2, floor=4e-4):
    return ops.matching_costs(
        left, right, first_shift, defocus, CostParameters(half, floor, 0.25, LIMIT)
    )


def _found(ops, costs, allowed, small=128, large=510) -> PathResult:
    return ops.aggregate_paths(
        costs, np.asarray(allowed, dtype=bool), PathParameters(small, large, LIMIT)
    )


def _assert_same_pick(ours: PathResult, theirs: PathResult) -> None:
    for name in ("lowest", "runner_up", "total"):
        one, two = getattr(ours, name), getattr(theirs, name)
        assert one.dtype == two.dtype == np.int16
        np.testing.assert_array_equal(one, two, err_msg=name)
    for name in ("step", "gap"):
        assert getattr(ours, name).dtype == np.float32
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), atol=2e-6, rtol=1e-6, err_msg=name
        )


# Images -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
@pytest.mark.parametrize("half", [0, 1, 2, 7, 15, 70])
def test_means(shape, half):
    image = _random(shape) + 3
    for name in ("local_mean", "subtract_local_mean"):
        ours, theirs = (getattr(ops, name)(image, half) for ops in (_ops(), PLAIN))
        assert ours.dtype == np.float32
        assert theirs.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, atol=3e-6)


@BOTH
def test_means_by_hand(ops):
    image = np.arange(12, dtype=np.float32).reshape(3, 4)
    means = ops.local_mean(image, 1)
    assert means[0, 0] == pytest.approx((0 + 1 + 4 + 5) / 4)
    assert means[1, 2] == pytest.approx(6)
    assert means[2, 3] == pytest.approx((6 + 7 + 10 + 11) / 4)
    assert ops.subtract_local_mean(image, 1)[2, 3] == pytest.approx(11 - 8.5)
    np.testing.assert_allclose(ops.local_mean(image, 9), 5.5)


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
def test_median_of_nine(shape):
    image = _random(shape)
    np.testing.assert_array_equal(_ops().median_3x3(image), PLAIN.median_3x3(image))
    steps = np.round(4 * image)  # many equal ones
    np.testing.assert_array_equal(_ops().median_3x3(steps), PLAIN.median_3x3(steps))


# Costs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
@pytest.mark.parametrize(("first_shift", "depth"), [(0, 1), (-5, 12), (3, 33), (-40, 80), (60, 4)])
def test_costs(shape, first_shift, depth):
    left, right = _pair(shape, 2)
    defocus = np.linspace(-0.7, 1.1, depth)
    ours, theirs = (_costs(ops, left, right, first_shift, defocus) for ops in (_ops(), PLAIN))
    assert ours.dtype == theirs.dtype == np.uint8
    assert ours.shape == theirs.shape == (*shape, -(-depth // COST_PADDING) * COST_PADDING)
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert (ours != theirs).sum() <= 0.001 * ours.size


@pytest.mark.parametrize("half", [0, 1, 3])
def test_costs_of_other_windows(half):
    left, right = _pair((20, 60), 4)
    ours, theirs = (
        _costs(ops, left, right, -2, np.linspace(0, 1, 18), half=half) for ops in (_ops(), PLAIN)
    )
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert (ours != theirs).mean() <= 0.001


@BOTH
def test_cost_by_hand(ops):
    # Differences of 0.1 of flat views: e² = 0.01, energy 0.25 + 0.16, at any window and no blur.
    left, right = np.full((8, 30), 0.5, np.float32), np.full((8, 30), 0.4, np.float32)
    costs = _costs(ops, left, right, -1, np.array([3.0, 0.0, -2.0]), floor=0.02)
    expected = np.floor(0.01 / (0.02 + 0.25 * 0.41) * MAX_COST / LIMIT + 0.5)
    assert (costs[:, 3:-3, :3] == expected).all()
    # Two columns at each side belong to windows that leave one of the views.
    assert (costs[:, [0, 1, -2, -1]] == MAX_COST).all()
    assert (costs[:, -3, 0] == MAX_COST).all()
    assert (costs[:, 2, 0] == expected).all()
    assert (costs[:, 2, 2] == MAX_COST).all()
    assert (costs[:, -3, 2] == expected).all()
    assert (costs[:, :, 3:] == MAX_COST).all()


@BOTH
def test_a_difference_of_blur_is_undone(ops):
    # A right view that is sharper by a fifth of the Laplacian: the defocus of that size and sign
    # makes both alike to the first order, the opposite one makes it worse.
    left, right = _pair((40, 80), 3)
    wide = np.pad(right, 1, mode="edge")
    lap = np.diff(wide[:, 1:-1], 2, axis=0) + np.diff(wide[1:-1], 2, axis=1)
    sharper = (right - 0.2 * lap).astype(np.float32)
    defocus = np.array([0.2, 0.0, -0.2])
    wrong, none, good = (
        _costs(ops, left, sharper, 3, defocus[k : k + 1])[5:-5, 10:-10, 0].mean() for k in range(3)
    )
    assert good < 0.4 * none
    assert none < 0.7 * wrong


@BOTH
def test_no_texture_and_no_noise_explain_nothing(ops):
    flat = np.zeros((6, 12), np.float32)
    assert (_costs(ops, flat, flat, 0, np.zeros(3), floor=0.0) == MAX_COST).all()


# Paths and pick -----------------------------------------------------------------------------------


PRICES = [(0, 0), (1, 3), (128, 510), (12750, 51000), (MAX_PENALTY, MAX_PENALTY)]


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
@pytest.mark.parametrize("prices", PRICES, ids=str)
@pytest.mark.parametrize("depth", [1, 2, 3, 16, 17, 46, 130])
def test_found(shape, prices, depth):
    for most in (MAX_COST, 3):  # with few different costs there are many ties
        costs = _random_costs(shape, depth, seed=depth, most=most)
        ours, theirs = (_found(ops, costs, np.ones(depth), *prices) for ops in (_ops(), PLAIN))
        _assert_same_pick(ours, theirs)


@pytest.mark.parametrize("prices", PRICES, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_only_what_is_allowed_is_found(prices, share):
    costs = _random_costs((19, 40), 37, seed=1)
    allowed = np.random.default_rng(2).uniform(size=37) < share
    ours, theirs = (_found(ops, costs, allowed, *prices) for ops in (_ops(), PLAIN))
    _assert_same_pick(ours, theirs)
    if allowed.any():
        assert allowed[ours.lowest].all()
        assert allowed[ours.runner_up[ours.runner_up >= 0]].all()
        assert (ours.total < FORBIDDEN_TOTAL).all()
    else:
        assert (ours.total == FORBIDDEN_TOTAL).all()
        assert (ours.runner_up == -1).all()


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
    both = [_found(ops, costs, allowed, small, small + more) for ops in (_ops(), PLAIN)]
    _assert_same_pick(*both)
    first_shift = seed % 17 - 8
    seen = [ops.right_view_steps(both[1], first_shift) for ops in (_ops(), PLAIN)]
    np.testing.assert_array_equal(*seen)
    left, right = _random((rows, cols), seed), _random((rows, cols), seed + 1)
    defocus = np.linspace(-0.3, 0.3, depth)
    ours, theirs = (_costs(ops, left, right, first_shift, defocus) for ops in (_ops(), PLAIN))
    assert np.abs(ours.astype(int) - theirs).max() <= 1


@BOTH
def test_pick_by_hand(ops):
    # One pixel: each of the four paths starts there, so the totals are four times the costs.
    costs = np.full((1, 1, COST_PADDING), MAX_COST, np.uint8)
    costs[0, 0, :7] = [90, 20, 10, 40, 50, 30, 80]
    pick = _found(ops, costs, np.ones(7))
    assert (pick.lowest[0, 0], pick.runner_up[0, 0], pick.total[0, 0]) == (2, 5, 40)
    assert pick.step[0, 0] == pytest.approx(2 + (20 - 40) / (2 * (20 + 40 - 20)))
    deep_here, deep_there = 10 - 20**2 / (8 * 40), 30 - 30**2 / (8 * 70)
    assert pick.gap[0, 0] == pytest.approx((deep_there - deep_here) * LIMIT / MAX_COST)
    # Without the third shift the second is at an end, and so is the fourth: no valley, no parabola.
    pick = _found(ops, costs, [1, 1, 0, 1, 1, 1, 1])
    assert (pick.lowest[0, 0], pick.step[0, 0], pick.runner_up[0, 0]) == (1, 1, 5)


@BOTH
def test_no_other_valley(ops):
    costs = np.full((4, 5, COST_PADDING), MAX_COST, np.uint8)
    costs[:, :, :6] = [200, 100, 50, 60, 120, 180]
    pick = _found(ops, costs, np.ones(6))
    assert (pick.lowest == 2).all()
    assert (pick.runner_up == -1).all()
    np.testing.assert_allclose(pick.gap, LIMIT)


@BOTH
def test_neighbours_decide(ops):
    # One pixel of eleven prefers another shift: free to, it takes it; for a price, it does not.
    costs = np.full((1, 11, COST_PADDING), 200, np.uint8)
    costs[:, :, 3] = 20
    costs[0, 5, 3], costs[0, 5, 9] = 60, 0
    assert _found(ops, costs, np.ones(COST_PADDING), 0, 0).lowest[0, 5] == 9
    pick = _found(ops, costs, np.ones(COST_PADDING))
    assert (pick.lowest == 3).all()
    # It starts anew in the paths along its column, and pays a large step in those along the row.
    assert pick.total[0, 5] == 4 * 60
    assert pick.runner_up[0, 5] == 9


# Seen from the right ------------------------------------------------------------------------------


@BOTH
def test_seen_by_hand(ops):
    lowest = np.array([[0, 1, 2, 2, 0, 7]], np.int16)
    total = np.array([[9, 5, 5, 4, 8, 1]], np.int16)
    floats = np.zeros((1, 6), np.float32)
    # Pixels 0, 1 and 2 point to right pixel 0 and two have equal totals: the nearer one is seen.
    # 3 points to 1, 4 to 4, and 5 out of the frame.
    pick = PathResult(floats, lowest, lowest, floats, total)
    seen = ops.right_view_steps(pick, 0)
    assert seen.dtype == np.int16
    assert seen.tolist() == [[2, 2, 2, 2, 0, -1]]
    assert ops.right_view_steps(pick, -6).tolist() == [[-1, -1, -1, -1, -1, 7]]


def test_a_plane_is_found_and_seen():
    left, right = _pair((40, 120), 6)
    for ops in (_ops(), PLAIN):
        costs = _costs(ops, left, right, -1, np.zeros(20))
        pick = _found(ops, costs, np.ones(20))
        assert (pick.lowest[:, 12:-12] == 7).all()
        assert (ops.right_view_steps(pick, -1)[:, 20:-20] == 7).all()


# Threads and memory -------------------------------------------------------------------------------


def _everything(memory: Scratch) -> list[np.ndarray]:
    ops = NumbaSearch(memory)
    left, right = (ops.subtract_local_mean(view, 3) for view in _pair((70, 101), 5))
    costs = _costs(ops, left, right, -3, np.linspace(-0.5, 0.5, 21))
    pick = _found(ops, costs, np.arange(21) != 4)
    rest = ops.right_view_steps(pick, -3), ops.median_3x3(pick.step), ops.local_mean(pick.gap, 7)
    return [part.copy() for part in (left, right, costs, *pick, *rest)]


def test_same_bytes_whatever_the_threads(monkeypatch):
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("D3S_THREADS", threads)
        results.append([part.tobytes() for part in _everything(Scratch())])
    assert results[0] == results[1] == results[2]


def test_same_bytes_whatever_was_in_the_memory():
    memory = Scratch()
    with memory.part():
        fresh = _everything(memory)
    for dirt in (0, 127, 255):
        for block in memory._blocks:
            block[:] = dirt
        with memory.part():
            again = _everything(memory)
        for one, two in zip(fresh, again, strict=True):
            assert one.tobytes() == two.tobytes()
