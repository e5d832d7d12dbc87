"""Prefilter of the joint method: compiled against plain, and what must be true of both."""

import numpy as np
import pytest

from oracle import ORACLE, OURS

SHAPES = [(1, 1), (2, 3), (1, 40), (33, 1), (17, 23), (40, 50), (61, 451)]
SMOOTHING = [(0.0, 1), (0.3, 1), (1.0, 1), (4.0, 1), (0.0, 2), (0.3, 2), (1.5, 2), (4.0, 2)]


def _view(shape, seed=0) -> np.ndarray:
    """Gradient, steps and noise, about zero."""
    rng = np.random.default_rng(seed)
    y, x = np.indices(shape)
    steps = (y // 7 + x // 11) % 2
    return (0.003 * x + 0.4 * steps + 0.1 * rng.standard_normal(shape) - 0.4).astype(np.float32)


# Compiled against plain ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_centred(shape):
    left, right = _view(shape, 1) + 3, _view(shape, 2) * 5 - 1
    left[0, 0], right[-1, -1] = np.nan, np.inf
    found, expected = OURS.centre(left, right), ORACLE.centre(left, right)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-7)
    assert found[0][0, 0] == found[1][-1, -1] == 0


@pytest.mark.parametrize(("sigma", "step"), SMOOTHING)
@pytest.mark.parametrize("shape", SHAPES)
def test_smooth(shape, sigma, step):
    view = _view(shape)
    found, expected = OURS.smooth(view, sigma, step), ORACLE.smooth(view, sigma, step)
    assert found.shape == expected.shape == (-(-shape[0] // step), -(-shape[1] // step))
    # Some ten roundings of numbers up to one.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * (1 + np.abs(view).max()))


@pytest.mark.parametrize("half", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("shape", SHAPES)
def test_noise_variance(shape, half):
    view = _view(shape)
    found, expected = OURS.noise_variance(view, half), ORACLE.noise_variance(view, half)
    assert found.shape == expected.shape == (-(-shape[0] // 2), -(-shape[1] // 2))
    np.testing.assert_allclose(found, expected, rtol=5e-6, atol=3e-9)


# What must be true --------------------------------------------------------------------------------


@pytest.mark.parametrize("gain", [1e-30, 1.0, 1e30])
def test_centred_is_about_zero_and_between_one_and_two(gain):
    views = [np.float32(gain) * (_view((30, 40), seed) + 5) for seed in (1, 2)]
    both = np.stack(OURS.centre(*views))
    assert abs(both.mean(dtype=np.float64)) < 1e-7
    assert 1 <= np.abs(both).max() < 2
