"""The support by texture: compiled against NumPy, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from d3s.estimate.joint.numba_backend.support import NumbaSupport
from d3s.estimate.joint.numpy_backend.support import NumpySupport
from d3s.estimate.joint.trust import DEFOCUSED_MODEL, SHARP_MODEL
from d3s.estimate.joint.types import Evidence, TrustModel
from d3s.runtime.scratch import Scratch

PLAIN = NumpySupport()
BOTH = pytest.mark.parametrize("ops", [NumbaSupport(Scratch()), PLAIN], ids=["compiled", "plain"])
SHAPES = [(1, 1), (1, 12), (11, 1), (2, 9), (7, 5), (31, 40)]
SHAPED = pytest.mark.parametrize("shape", SHAPES, ids=str)
DIAGONAL = np.sqrt(2)


def _ops() -> NumbaSupport:
    return NumbaSupport(Scratch())


def _random(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _surfaces(shape, seed: int = 0) -> np.ndarray:
    """Disparities of patches, quarters of a pixel apart, which single precision holds exactly."""
    rng = np.random.default_rng(seed)
    patches = rng.integers(0, 9, (-(-shape[0] // 6), -(-shape[1] // 6))) / 4
    return patches.repeat(6, 0).repeat(6, 1)[: shape[0], : shape[1]].astype(np.float32)


def _mask(shape, share: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=shape) < share


# Ridges -------------------------------------------------------------------------------------------


def _ridges(ops, view, factor=1.0, noise=1e-6) -> np.ndarray:
    view = np.asarray(view, np.float32)
    return ops.find_ridges(view, np.full(view.shape, noise, np.float32), factor)


@SHAPED
@pytest.mark.parametrize("factor", [0.0, 1.0, 30.0])
def test_ridges(shape, factor):
    noise = np.random.default_rng(2).uniform(0, 0.1, shape).astype(np.float32)
    # Of few different values there are many ties, also between directions.
    for view in (_random(shape), np.round(3 * _random(shape, 1)), np.zeros(shape, np.float32)):
        ours, theirs = (ops.find_ridges(view, noise, factor) for ops in (_ops(), PLAIN))
        assert ours.dtype == theirs.dtype == np.bool_
        assert ours.shape == shape
        # A gradient that is as large as its neighbour but for rounding may be a ridge or not.
        assert (ours != theirs).sum() <= 0.001 * ours.size


@BOTH
@pytest.mark.parametrize("turn", [0, 1])
def test_a_blurred_edge_is_a_ridge_at_its_middle(ops, turn):
    # Differences of both neighbours of 0 0 1 4 11 16 18 18: 1, 4, 10, 12, 7, 2.
    profile = np.array([0, 0, 0, 1, 4, 11, 16, 18, 18, 18])
    view = np.rot90(np.tile(profile, (6, 1)), turn)
    expected = np.rot90(np.tile(np.arange(10) == 5, (6, 1)), turn)
    np.testing.assert_array_equal(_ridges(ops, view), expected)


@BOTH
@pytest.mark.parametrize("sigma", [1.0, 2.0, 4.0])
def test_blur_does_not_widen_a_ridge(ops, sigma):
    edge = np.zeros((9, 61))
    edge[:, 30:] = 1
    found = _ridges(ops, ndimage.gaussian_filter1d(edge, sigma, axis=1), noise=1e-4)
    # The edge is between columns 29 and 30, which are equal.
    np.testing.assert_array_equal(found, np.tile(np.isin(np.arange(61), [29, 30]), (9, 1)))


@BOTH
@pytest.mark.parametrize("sign", [1, -1])
def test_a_diagonal_edge_is_a_ridge_along_the_diagonal(ops, sign):
    # Brightness by row + column, or by row - column: the gradient is along that diagonal.
    row, col = np.indices((21, 21))
    place = row + sign * col - (20 if sign > 0 else 0)
    found = _ridges(ops, np.tanh(place / 3.0))
    inner = (slice(2, -2), slice(2, -2))
    # The next cell along the diagonal is two places on: both neighbours of the middle are as large
    # as the other one, and count too. They are 0.7 cells from the edge.
    np.testing.assert_array_equal(found[inner], (np.abs(place) <= 1)[inner])


@BOTH
def test_a_ridge_is_above_the_noise(ops):
    # A difference of 12 across: its square is 144.
    view = np.tile(np.array([0, 0, 0, 1, 4, 11, 16, 18, 18, 18]), (6, 1))
    assert _ridges(ops, view, factor=143, noise=1.0)[:, 5].all()
    assert not _ridges(ops, view, factor=145, noise=1.0).any()
    assert not _ridges(ops, view, factor=14.3, noise=10.1).any()


@BOTH
def test_an_even_view_has_no_ridges(ops):
    assert not _ridges(ops, np.full((7, 9), 0.4), factor=1.0, noise=0.0).any()


@BOTH
def test_ridges_do_not_depend_on_brightness(ops):
    # Sixteenths, and a power of two as gain: nothing is rounded.
    view = np.round(16 * _random((30, 40))) / 16
    expected = _ridges(ops, view, factor=30.0, noise=0.01)
    assert 0.02 < expected.mean() < 0.5
    np.testing.assert_array_equal(_ridges(ops, view + 3, 30.0, 0.01), expected)
    np.testing.assert_array_equal(_ridges(ops, -view, 30.0, 0.01), expected)
    np.testing.assert_array_equal(_ridges(ops, 4 * view, 30.0, 0.16), expected)


# Gaps ---------------------------------------------------------------------------------------------


def _assert_same_gaps(is_ridge, disparity, tolerance, reach) -> None:
    ours, theirs = (
        ops.support_gaps(is_ridge, disparity, tolerance, reach) for ops in (_ops(), PLAIN)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == np.float32
        assert one.shape == is_ridge.shape
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert (one >= 1).all()
        assert (one <= reach).all()


@SHAPED
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("reach", [1, 7, 255])
def test_gaps(shape, share, reach):
    for tolerance in (0.0, 0.5, 1e9):
        _assert_same_gaps(_mask(shape, share), _surfaces(shape), tolerance, reach)


@settings(max_examples=25)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 60)),
    share=st.floats(0, 1),
    tolerance=st.sampled_from([0.0, 0.25, 0.75, 9.0]),
    reach=st.integers(1, 255),
    seed=st.integers(0, 2**32 - 1),
)
def test_whatever_the_size(shape, share, tolerance, reach, seed):
    _assert_same_gaps(_mask(shape, share, seed), _surfaces(shape, seed), tolerance, reach)


def _outline(size=21, first=5, last=15) -> np.ndarray:
    """The outline of a square."""
    mask = np.zeros((size, size), bool)
    mask[first : last + 1, [first, last]] = True
    mask[[first, last], first : last + 1] = True
    return mask


@BOTH
def test_gaps_of_an_outline_by_hand(ops):
    # A square outline from 5 to 15, all of one surface.
    flat = np.zeros((21, 21), np.float32)
    gap, nearest = ops.support_gaps(_outline(), flat, 0.5, 60)
    # In the middle: five cells to each side, along rows and columns.
    assert (gap[10, 10], nearest[10, 10]) == (5, 5)
    # Two cells right of the left side and in the middle of the rows: two and eight along the row,
    # five both ways along the column. On the diagonals, upper left and lower right: two diagonal
    # steps to the left side, five to the lower one; the farther of each is what counts. The second
    # smallest of 8, 5, and twice 5 diagonals of 1.414 is 7.07.
    assert gap[10, 7] == pytest.approx(5 * DIAGONAL)
    assert nearest[10, 7] == 2
    # Outside, beside the middle of a side: ridges on one side only, in any direction.
    assert (gap[10, 2], nearest[10, 2]) == (60, 3)
    assert (gap[2, 10], nearest[2, 10]) == (60, 3)
    assert (gap[0, 0], nearest[0, 0]) == (60, pytest.approx(5 * DIAGONAL))
    # Everywhere inside, ridges surround the cell; everywhere outside they do not.
    assert (gap[6:15, 6:15] < 11 * DIAGONAL).all()
    outside = np.ones((21, 21), bool)
    outside[5:16, 5:16] = False
    assert (gap[outside] == 60).all()


@BOTH
def test_a_ridge_does_not_support_itself(ops):
    mask = np.zeros((9, 9), bool)
    mask[4, 4] = True
    gap, nearest = ops.support_gaps(mask, np.zeros((9, 9), np.float32), 0.5, 20)
    assert (gap == 20).all()
    assert nearest[4, 4] == 20
    assert nearest[4, 1] == 3
    assert nearest[1, 1] == pytest.approx(3 * DIAGONAL)
    assert nearest[1, 3] == 20  # in none of the eight directions
    assert nearest[1, 2] == pytest.approx(3 * DIAGONAL)  # beside a diagonal
    # But others of a line do. Beside the line there are ridges on one side only.
    mask[4] = True
    gap, nearest = ops.support_gaps(mask, np.zeros((9, 9), np.float32), 0.5, 20)
    assert nearest[4, 4] == nearest[3, 4] == 1
    assert gap[3, 4] == 20


@BOTH
def test_a_diagonal_does_not_slip_through_a_line(ops):
    # Ridges from the lower left to the upper right. From (8, 8) up to the left are 7 7, 6 6 and
    # 5 5; then the line passes by 5 4 and 4 5, and 4 4 is beyond it.
    row, col = np.indices((13, 13))
    mask = row + col == 9
    gap, nearest = ops.support_gaps(mask, np.zeros((13, 13), np.float32), 0.5, 30)
    assert nearest[5, 5] == 1
    assert nearest[8, 8] == pytest.approx(4 * DIAGONAL)
    assert gap[8, 8] == 30


@BOTH
def test_ridges_of_another_surface_do_not_count(ops):
    # The outline of an object in front of a wall: disparity 3 within, 0 around it.
    mask, disparity = _outline(), np.zeros((21, 21), np.float32)
    disparity[5:16, 5:16] = 3
    gap, nearest = ops.support_gaps(mask, disparity, 0.5, 60)
    assert gap[10, 10] == 5
    outside = disparity == 0
    assert (gap[outside] == 60).all()
    assert (nearest[outside] == 60).all()
    # A slope within the tolerance from cell to ridge is one surface; the tolerance is of the whole
    # way, not of a step.
    slope = np.tile(0.125 * np.arange(21, dtype=np.float32), (21, 1))
    mask = np.zeros((21, 21), bool)
    mask[:, [0, 20]] = True
    nearest = ops.support_gaps(mask, slope, 0.5, 60)[1][10]
    np.testing.assert_array_equal(nearest[1:5], [1, 2, 3, 4])
    assert (nearest[5:16] == 60).all()


@BOTH
def test_a_surface_between_hides_a_ridge(ops):
    mask, disparity = np.zeros((1, 12), bool), np.zeros((1, 12), np.float32)
    mask[0, 1] = True
    assert ops.support_gaps(mask, disparity, 0.5, 60)[1][0, 9] == 8
    disparity[0, 5] = 3
    nearest = ops.support_gaps(mask, disparity, 0.5, 60)[1][0]
    np.testing.assert_array_equal(nearest, [1, 60, 1, 2, 3, 60, 60, 60, 60, 60, 60, 60])


@BOTH
def test_gaps_are_the_same_from_all_sides(ops):
    mask, disparity = np.pad(_mask((22, 30), 0.05), 1), np.zeros((24, 32), np.float32)
    disparity[:, 16:] = 2
    expected = ops.support_gaps(mask, disparity, 0.5, 25)
    for turn in (1, 2, 3):
        parts = (np.ascontiguousarray(np.rot90(part, turn)) for part in (mask, disparity))
        found = ops.support_gaps(*parts, 0.5, 25)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, np.rot90(other, turn), rtol=1e-6)


# Probability --------------------------------------------------------------------------------------


def _evidence(shape, seed: int = 0) -> Evidence:
    rng = np.random.default_rng(seed)
    parts = (
        rng.uniform(0, 1, shape),
        rng.uniform(0, 0.5, shape),
        rng.uniform(0, 60, shape),
        10 ** rng.uniform(-2, 3, shape),
        rng.uniform(0, 2, shape),
        rng.uniform(1, 60, shape),
        rng.uniform(1, 60, shape),
    )
    return Evidence(*(part.astype(np.float32) for part in parts))


@SHAPED
@pytest.mark.parametrize("model", [SHARP_MODEL, DEFOCUSED_MODEL], ids=["sharp", "defocused"])
def test_probability(shape, model):
    evidence = _evidence(shape)
    doubles = Evidence(*(part.astype(np.float64) for part in evidence))
    ours, theirs = _ops().probability(evidence, model), PLAIN.probability(doubles, model)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=2e-5)
    assert ((ours > 0) & (ours <= 1)).all()


def _one(ops, model: TrustModel, **changes) -> float:
    """Probability of a single cell without any evidence but the given."""
    # Logarithms are of margin + 0.02 and misfit + 0.3.
    known = {"margin": 0.98, "least": 0.98, "misfit": 0.7, **changes}
    parts = (np.full((1, 1), known.get(name, 0.0), np.float32) for name in Evidence._fields)
    return float(ops.probability(Evidence(*parts), model)[0, 0])


@BOTH
def test_probability_by_hand(ops):
    none = TrustModel(*np.zeros(7))
    assert _one(ops, none) == pytest.approx(0.5)
    # Odds of 1 : 9.
    rare = none._replace(constant=-np.log(9))
    assert _one(ops, rare) == pytest.approx(0.1, rel=1e-5)
    # A coefficient of 1 multiplies the odds by what its logarithm is of.
    e = np.e
    for name, value, factor in (
        ("margin", 0.48, 0.5),
        ("least", 0.08, 0.1),
        ("step", 2.0, 3.0),
        ("misfit", 1.7, 2.0),
        ("move", 1.0, e),
        ("move", 5.0, e),  # at most 1
        ("gap", 3.0, 4.0),
    ):
        field = {"step": "step_px", "gap": "gap_px"}.get(name, name)
        found = _one(ops, rare._replace(**{name: 1.0}), **{field: value})
        assert found == pytest.approx(factor / (factor + 9), rel=1e-5), name
        # With the opposite sign it divides them.
        found = _one(ops, rare._replace(**{name: -1.0}), **{field: value})
        assert found == pytest.approx(1 / (1 + 9 * factor), rel=1e-5), name
    # The distance to the nearest ridge has no part in it.
    assert _one(ops, rare, nearest_px=50.0) == pytest.approx(0.1, rel=1e-5)


@BOTH
@pytest.mark.parametrize("model", [SHARP_MODEL, DEFOCUSED_MODEL], ids=["sharp", "defocused"])
def test_better_evidence_is_a_smaller_probability(ops, model):
    usual = {"margin": 0.2, "least": 0.1, "step_px": 9.0, "misfit": 2.0, "move": 0.1, "gap_px": 5.0}
    expected = _one(ops, model, **usual)
    better = {"margin": 0.9, "least": 0.5, "step_px": 50.0, "misfit": 0.5, "move": 0.0}
    for name, value in better.items():
        found = _one(ops, model, **{**usual, name: value})
        # The margin itself tells nothing more where its minimum close by is known.
        assert found <= expected if name == "margin" else found < expected, name


@BOTH
@pytest.mark.parametrize("name", [name for name in Evidence._fields if name != "nearest_px"])
def test_what_is_not_known_is_not_trusted(ops, name):
    assert _one(ops, DEFOCUSED_MODEL, **{name: np.nan}) == 1


# Threads and memory -------------------------------------------------------------------------------


def _everything(memory: Scratch) -> list[bytes]:
    ops, shape = NumbaSupport(memory), (61, 91)
    noise = np.full(shape, 0.01, np.float32)
    found = ops.find_ridges(_random(shape), noise, 50.0)
    gaps = ops.support_gaps(found, _surfaces(shape), 0.5, 40)
    probability = ops.probability(_evidence(shape), DEFOCUSED_MODEL)
    return [part.tobytes() for part in (found, *gaps, probability)]


def test_same_bytes_whatever_the_threads(monkeypatch):
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("D3S_THREADS", threads)
        results.append(_everything(Scratch()))
    assert results[0] == results[1] == results[2]


def test_same_bytes_whatever_was_in_the_memory():
    memory = Scratch()
    with memory.part():
        expected = _everything(memory)
    for dirt in (0, 127, 255):
        for block in memory._blocks:
            block[:] = dirt
        with memory.part():
            assert _everything(memory) == expected


def test_arguments_stay_as_they_are():
    view, noise = _random((20, 31)), np.full((20, 31), 0.01, np.float32)
    mask, disparity = _mask((20, 31), 0.2), _surfaces((20, 31))
    evidence = _evidence((20, 31))
    arguments = (view, noise, mask, disparity, *evidence)
    before = [part.copy() for part in arguments]
    for ops in (_ops(), PLAIN):
        ops.find_ridges(view, noise, 30.0)
        ops.support_gaps(mask, disparity, 0.5, 30)
        ops.probability(evidence, SHARP_MODEL)
        for part, old in zip(arguments, before, strict=True):
            np.testing.assert_array_equal(part, old)
