"""The support by texture: compiled against NumPy, and both against arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d3s.estimate.joint.trust import DEFOCUSED_MODEL, SHARP_MODEL
from d3s.estimate.joint.types import Evidence
from oracle import ORACLE, OURS

SHAPES = [(1, 1), (1, 12), (11, 1), (2, 9), (7, 5), (31, 40)]
SHAPED = pytest.mark.parametrize("shape", SHAPES, ids=str)


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


@SHAPED
@pytest.mark.parametrize("factor", [0.0, 1.0, 30.0])
def test_ridges(shape, factor):
    noise = np.random.default_rng(2).uniform(0, 0.1, shape).astype(np.float32)
    # Of few different values there are many ties, also between directions.
    for view in (_random(shape), np.round(3 * _random(shape, 1)), np.zeros(shape, np.float32)):
        ours, theirs = (ops.find_ridges(view, noise, factor) for ops in (OURS, ORACLE))
        assert ours.dtype == theirs.dtype == np.bool_
        assert ours.shape == shape
        # A gradient that is as large as its neighbour but for rounding may be a ridge or not.
        assert (ours != theirs).sum() <= 0.001 * ours.size


# Gaps ---------------------------------------------------------------------------------------------


def _assert_same_gaps(is_ridge, disparity, tolerance, reach) -> None:
    ours, theirs = (
        ops.support_gaps(is_ridge, disparity, tolerance, reach) for ops in (OURS, ORACLE)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == np.float32
        assert one.shape == is_ridge.shape
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert (one >= 1).all()
        assert (one <= reach).all()


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
    ours, theirs = OURS.probability(evidence, model), ORACLE.probability(doubles, model)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=2e-5)
    assert ((ours > 0) & (ours <= 1)).all()
