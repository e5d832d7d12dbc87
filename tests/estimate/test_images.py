"""`checked_pair`: views of any type, converted to float32."""

from pathlib import Path

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.estimate.checked_pair import checked_pair


def _view(shape, seed=0) -> np.ndarray:
    """Gradient, steps and noise, about zero."""
    rng = np.random.default_rng(seed)
    y, x = np.indices(shape)
    steps = (y // 7 + x // 11) % 2
    return (0.003 * x + 0.4 * steps + 0.1 * rng.standard_normal(shape) - 0.4).astype(np.float32)


def test_valid_float32_views_are_not_copied():
    left, right = _view((20, 30), 1), _view((20, 30), 2)
    checked = checked_pair(left, right)
    assert checked.left is left
    assert checked.right is right


@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf, 1e7, -1e7])
def test_faults_become_nan_in_a_copy(fault):
    left, right = _view((60, 70), 1), _view((60, 70), 2)
    left[31, 17] = fault
    before = left.copy()
    found = checked_pair(left, right)
    assert not np.shares_memory(found.left, left)
    np.testing.assert_array_equal(left, before)
    before[31, 17] = np.nan
    np.testing.assert_array_equal(found.left, before)
    assert found.right is right


def test_doubles_that_float32_cannot_hold_are_scaled_together():
    left, right = (_view((30, 40), seed).astype(np.float64) + 1e9 for seed in (1, 2))
    left[3, 4] = np.inf
    found = checked_pair(left, right)
    known = np.isfinite(left)
    mean = np.append(left[known], right).mean()
    # The range of the values is a little over one, so the scale is one.
    np.testing.assert_allclose(found.left[known], (left - mean)[known], atol=2e-7)
    np.testing.assert_allclose(found.right, right - mean, atol=2e-7)
    assert np.isnan(found.left[3, 4])


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_answered_with_the_loader(kind):
    with pytest.raises(InputError, match=r"right='b\.png' is a path.*d3s\.load_pair\(left, right"):
        d3s.estimate(_view((40, 50)), kind("b.png"), d3s.Rig.paper_prototype())
