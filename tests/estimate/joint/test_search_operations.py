"""The search over whole shifts: compiled against plain, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import d3s
from d3s.estimate.joint.numba_backend import matching, numba_backend
from d3s.estimate.joint.numba_backend import search as kernels
from d3s.estimate.joint.numba_backend.search import NumbaSearch
from d3s.estimate.joint.numpy_backend import numpy_backend
from d3s.estimate.joint.numpy_backend.search import NumpySearch
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.joint.search import search
from d3s.estimate.joint.types import (
    COST_PADDING,
    FORBIDDEN_TOTAL,
    MAX_COST,
    MAX_PENALTY,
    PathResult,
)
from d3s.runtime.scratch import Scratch

PLAIN = NumpySearch()
# One pixel, one row, one column, narrower than any window, odd, more than one band, tile and strip.
SHAPES = [(1, 1), (1, 9), (7, 1), (2, 3), (3, 7), (5, 6), (23, 31), (kernels._BAND + 9, 17)]
WIDE = (9, 2 * matching._TILE + 5)
SCALES = (40.0, 40.0)  # of the slopes: about what the search takes for these views


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
    ours, theirs = (ops.local_mean(image, half) for ops in (_ops(), PLAIN))
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
    np.testing.assert_allclose(ops.local_mean(image, 9), 5.5)


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
def test_median_of_nine(shape):
    image = _random(shape)
    np.testing.assert_array_equal(_ops().median_3x3(image), PLAIN.median_3x3(image))
    steps = np.round(4 * image)  # many equal ones
    np.testing.assert_array_equal(_ops().median_3x3(steps), PLAIN.median_3x3(steps))


# Costs --------------------------------------------------------------------------------------------


def _assert_same_costs(left, right, first_shift, shifts, scales=SCALES) -> np.ndarray:
    ours, theirs = (
        _costs(ops, left, right, first_shift, shifts, scales) for ops in (_ops(), PLAIN)
    )
    assert ours.dtype == theirs.dtype == np.uint8
    assert ours.shape == theirs.shape == (*left.shape, -(-shifts // COST_PADDING) * COST_PADDING)
    # A slope just between two whole numbers is rounded to one or the other.
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert (ours != theirs).sum() <= 0.001 * ours.size
    return ours


@pytest.mark.parametrize("shape", [*SHAPES, WIDE, (2 * matching._TILE_ROWS + 3, 20)], ids=str)
@pytest.mark.parametrize(("first_shift", "shifts"), [(0, 1), (-5, 12), (3, 33), (-40, 80), (60, 4)])
def test_costs(shape, first_shift, shifts):
    _assert_same_costs(*_pair(shape, 2), first_shift, shifts)


@pytest.mark.parametrize("scales", [(0.0, 0.0), (1.0, 7.0), (1e6, 1e6)], ids=str)
def test_costs_by_other_scales(scales):
    _assert_same_costs(*_pair((20, 60), 4), -2, 18, scales)
    _assert_same_costs(*(np.round(4 * view) for view in _pair((20, 60), 4)), -2, 18, scales)


@BOTH
@pytest.mark.parametrize("shift", [4, -3, 0])
def test_cost_is_zero_at_the_true_shift(ops, shift):
    wide = _random((30, 70))
    left, right = wide[:, 10:60], wide[:, 10 + shift : 60 + shift]
    left, right = (np.ascontiguousarray(view) for view in (left, right))
    costs = _costs(ops, left, right, -6, 12)
    # Windows of 3 x 3 around pixels whose neighbours, two each way, are inside both views.
    inner = costs[:, 10:-10, :12]
    assert (inner[..., shift + 6] == 0).all()
    others = np.delete(inner, shift + 6, axis=2)
    assert others.min() > 20
    assert others.mean() > 80
    # Beyond the shifts that were asked for there is the highest cost.
    assert (costs[:, :, 12:] == MAX_COST).all()


@BOTH
def test_census_by_hand(ops):
    # One bright pixel in the left view, none in the right one: it alone has darker neighbours, 24
    # of them; no other has one. Without slopes, nine windows of 3 x 3 hold it: 24 * 8 * 14 / 128.
    left, right = np.zeros((9, 12), np.float32), np.zeros((9, 12), np.float32)
    left[4, 5] = 1
    costs = _costs(ops, left, right, 0, 1, (0.0, 0.0))[:, :, 0]
    expected = np.zeros((9, 12), int)
    expected[3:6, 4:7] = 24 * 8 * 14 // 128
    np.testing.assert_array_equal(costs[:, 1:-1], expected[:, 1:-1])
    # A window that leaves a view sideways has no cost; above and below, rows are repeated.
    assert (costs[:, [0, -1]] == MAX_COST).all()
    # A dark pixel is darker than each of its 24 neighbours, and has none: 24 pixels of one bit.
    costs = _costs(ops, -left, right, 0, 1, (0.0, 0.0))[:, :, 0]
    assert costs[4, 5] == 8 * 8 * 14 // 128
    assert costs[4, 4] == 8 * 8 * 14 // 128
    assert costs[2, 3] == 4 * 8 * 14 // 128
    assert costs[1, 5] == 3 * 8 * 14 // 128
    assert costs[0, 5] == 0


@BOTH
def test_slopes_by_hand(ops):
    # Ramps have the same order of brightness wherever they are, at any slope above 0. Their Sobel
    # derivative is 8 times the step: 8 * 0.25 * 10 = 20 against 8 * 0.125 * 10 = 10.
    ramp = np.tile(0.25 * np.arange(20, dtype=np.float32), (7, 1))
    for factor, difference in ((0.5, 10), (1.0, 0), (1.25, 5), (4.0, 10)):
        # Slopes are at most 30: four times the slope is no more than half as much again.
        costs = _costs(ops, ramp, factor * ramp, 0, 1, (10.0, 10.0))[:, 3:-3, 0]
        assert (costs == 9 * difference * 14 // 128).all()
    # Own scales make them equal.
    costs = _costs(ops, ramp, 0.5 * ramp, 0, 1, (10.0, 20.0))[:, 3:-3, 0]
    assert (costs == 0).all()


@BOTH
def test_half_a_pixel_of_slope_costs_nothing(ops):
    # Ascending views have the same census everywhere. Steps of 1, then of 3: the Sobel derivative
    # is 8, 16 and 24. Half a pixel later it is 12 and 20, each halfway between two of these.
    steps = np.repeat([1.0, 3.0], 12)
    place = np.arange(25.0)
    heights = np.concatenate([[0], np.cumsum(steps)])
    views = [
        np.tile(np.interp(place + shift, place, heights), (7, 1)).astype(np.float32)
        for shift in (0, 0.5, 2)
    ]
    costs = [_costs(ops, views[0], view, 0, 1, (1.0, 1.0))[3, 6:-6, 0] for view in views]
    assert (costs[0] == 0).all()
    assert (costs[1] == 0).all()
    assert costs[2].max() > 0


CHANGES = {
    "gain": lambda view: 0.6 * view,
    "offset": lambda view: view + 0.2,
    "gamma": lambda view: view**0.5,
    "all": lambda view: 1.7 * view**2.2 + 0.1,
}


@BOTH
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_keeps_the_order_of_brightness_keeps_the_census(ops, change):
    # Of 64 levels, so that no two become equal by rounding.
    rng = np.random.default_rng(0)
    wide = (rng.integers(1, 65, (20, 60)) / 64).astype(np.float32)
    left, right = np.ascontiguousarray(wide[:, 5:55]), np.ascontiguousarray(wide[:, 8:58])
    before = _costs(ops, left, right, 0, 8, (0.0, 0.0))
    after = _costs(ops, left, change(right).astype(np.float32), 0, 8, (0.0, 0.0))
    np.testing.assert_array_equal(before, after)
    after = _costs(ops, change(left).astype(np.float32), right, 0, 8, (0.0, 0.0))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    "backend", [numba_backend(Scratch()), numpy_backend()], ids=["compiled", "plain"]
)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_search_finds_views_of_unlike_exposure(backend, change):
    rig = d3s.Rig.from_pinhole(focal_length_px=500, baseline_m=0.1)
    plan = make_plan(rig.optics, d3s.JointOptions(depth_range_m=(4.0, 20.0)), (40, 120))
    left, right = (0.5 + 0.3 * view for view in _pair((40, 120), 6))
    views = left, change(right).astype(np.float32)
    found = search(views, np.zeros_like(left), plan, backend)
    step = found.step[4:-4, 24:-8] + plan.shifts[0]
    assert (np.abs(step - 6) < 0.5).all()
    assert (found.margin[4:-4, 24:-8] > 0.2).all()


@BOTH
def test_flat_views_cost_nothing_at_any_shift(ops):
    flat = np.full((6, 22), 0.3, np.float32)
    costs = _costs(ops, flat, flat, 0, 9)
    assert (costs[:, 10:-10, :9] == 0).all()
    # No shift is better than another.
    middle = np.ascontiguousarray(costs[:, 10:-10])
    assert (_found(ops, middle, np.ones(9)).margin == 0).all()


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
                _found(ops, costs, np.ones(depth), prices[0], large) for ops in (_ops(), PLAIN)
            )
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
    both = [_found(ops, costs, allowed, small, large) for ops in (_ops(), PLAIN)]
    _assert_same_pick(*both)
    first_shift = seed % 17 - 8
    seen = [ops.right_view_steps(both[1], first_shift) for ops in (_ops(), PLAIN)]
    np.testing.assert_array_equal(*seen)
    left, right = _random((rows, cols), seed), _random((rows, cols), seed + 1)
    ours, theirs = (_costs(ops, left, right, first_shift, depth) for ops in (_ops(), PLAIN))
    assert np.abs(ours.astype(int) - theirs).max() <= 1


@BOTH
def test_pick_by_hand(ops):
    # One pixel: each of the four paths starts there, so the totals are four times the costs.
    costs = np.full((1, 1, COST_PADDING), MAX_COST, np.uint8)
    costs[0, 0, :7] = [90, 20, 10, 40, 50, 30, 80]
    pick = _found(ops, costs, np.ones(7))
    assert (pick.lowest[0, 0], pick.total[0, 0]) == (2, 40)
    assert pick.step[0, 0] == pytest.approx(2 + (20 - 40) / (2 * (20 + 40 - 20)))
    # The neighbours of the lowest one do not count: of the others, the lowest costs 30.
    assert pick.margin[0, 0] == pytest.approx((30 - 10) / 30)
    # Without the third shift the second is at an end: no parabola. The next best is two away.
    pick = _found(ops, costs, [1, 1, 0, 1, 1, 1, 1])
    assert (pick.lowest[0, 0], pick.step[0, 0]) == (1, 1)
    assert pick.margin[0, 0] == pytest.approx((30 - 20) / 30)


@BOTH
def test_equal_costs_have_no_margin(ops):
    costs = np.full((4, 5, COST_PADDING), MAX_COST, np.uint8)
    costs[:, :, :6] = [50, 100, 200, 50, 120, 180]
    pick = _found(ops, costs, np.ones(6))
    assert (pick.lowest == 0).all()
    assert (pick.margin == 0).all()
    # Where no shift is two or more away, nothing speaks against the lowest.
    pick = _found(ops, costs, [1, 1, 0, 0, 0, 0])
    assert (pick.lowest == 0).all()
    assert (pick.margin > 0.95).all()


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
    assert pick.margin[0, 5] == pytest.approx((2 * 510 - 240) / (2 * 510))


# Penalties ----------------------------------------------------------------------------------------


@BOTH
def test_penalties_by_hand(ops):
    view = np.array([[0, 0, 0.5, 3.5], [0, 1, 0.5, 3.5]], np.float32)
    across, down = ops.step_penalties(view, 600.0, 100.0, 0.5)
    assert across.dtype == down.dtype == np.int16
    # 600 / (1 + difference / 0.5): 600, 300 for 0.5, 200 for 1, and 600 / 7 is below the least.
    assert across.tolist() == [[600, 600, 300, 100], [600, 200, 300, 100]]
    assert down.tolist() == [[600, 600, 600, 600], [600, 200, 600, 600]]


@pytest.mark.parametrize("shape", [*SHAPES, WIDE], ids=str)
@pytest.mark.parametrize("numbers", [(550.0, 91.3, 0.2), (0.0, 0.0, 1.0), (7500.0, 83.0, 1e-3)])
def test_penalties(shape, numbers):
    view = _random(shape)
    ours, theirs = (ops.step_penalties(view, *numbers) for ops in (_ops(), PLAIN))
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype == np.int16
        # Just between two whole numbers, rounding decides.
        assert np.abs(one - other).max() <= 1
        assert (one != other).mean() <= 0.01


@BOTH
def test_depth_steps_follow_edges(ops):
    # Ten pixels of one surface, ten of another, and four between them that fit both. The penalty is
    # lower at one place: there the step is, whichever way the paths come.
    costs = np.full((5, 24, COST_PADDING), 90, np.uint8)
    costs[:, :14, 2] = 10
    costs[:, 10:, 9] = 10
    for edge in (10, 12, 14):
        view = np.zeros((5, 24), np.float32)
        view[:, edge:] = 1
        large = ops.step_penalties(view, 400.0, 50.0, 0.25)
        pick = _found(ops, costs, np.ones(COST_PADDING), 30, large)
        expected = np.where(np.arange(24) < edge, 2, 9)
        assert (pick.lowest == expected).all()


@pytest.mark.parametrize("smoothness", [0.0, 1.0, 20.0, 100.0])
def test_penalties_of_any_smoothness_stay_within_the_totals(smoothness):
    # Totals of two bytes hold four paths of 7500 and a cost. Long rows, of costs that all paths
    # pay in full: the totals would be largest here.
    rig = d3s.Rig.from_pinhole(focal_length_px=500, baseline_m=0.1)
    options = d3s.JointOptions(depth_range_m=(4.0, 20.0), smoothness=smoothness)
    plan = make_plan(rig.optics, options, (150, 200))
    views = _pair((150, 200), 6)
    ours, theirs = (
        search(views, np.zeros_like(views[0]), plan, backend)
        for backend in (numba_backend(Scratch()), numpy_backend())
    )
    assert (np.abs(ours.step - theirs.step) < 0.1).mean() > 0.99
    np.testing.assert_allclose(ours.step[4:-4, 24:-8] + plan.shifts[0], 6, atol=0.5)


# Seen from the right ------------------------------------------------------------------------------


@BOTH
def test_seen_by_hand(ops):
    lowest = np.array([[0, 1, 2, 2, 0, 7]], np.int16)
    total = np.array([[9, 5, 5, 4, 8, 1]], np.int16)
    floats = np.zeros((1, 6), np.float32)
    # Pixels 0, 1 and 2 point to right pixel 0 and two have equal totals: the nearer one is seen.
    # 3 points to 1, 4 to 4, and 5 out of the frame.
    pick = PathResult(floats, lowest, total, floats)
    seen = ops.right_view_steps(pick, 0)
    assert seen.dtype == np.int16
    assert seen.tolist() == [[2, 2, 2, 2, 0, -1]]
    assert ops.right_view_steps(pick, -6).tolist() == [[-1, -1, -1, -1, -1, 7]]


def test_a_plane_is_found_and_seen():
    left, right = _pair((40, 120), 6)
    for ops in (_ops(), PLAIN):
        costs = _costs(ops, left, right, -1, 20)
        pick = _found(ops, costs, np.ones(20))
        assert (pick.lowest[:, 12:-12] == 7).all()
        assert (ops.right_view_steps(pick, -1)[:, 20:-20] == 7).all()


# Threads and memory -------------------------------------------------------------------------------


def _everything(memory: Scratch) -> list[np.ndarray]:
    ops = NumbaSearch(memory)
    left, right = _pair((70, 101), 5)
    costs = _costs(ops, left, right, -3, 21)
    large = ops.step_penalties(left, 510.0, 140.0, 0.05)
    pick = _found(ops, costs, np.arange(21) != 4, 128, large)
    rest = ops.right_view_steps(pick, -3), ops.median_3x3(pick.step), ops.local_mean(pick.margin, 7)
    return [part.copy() for part in (costs, *large, *pick, *rest)]


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
