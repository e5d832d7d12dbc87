"""Scatter, whatever a few values do."""

import numpy as np
import pytest

from d3s.calibrate.robust import robust_sigma, robust_sigmas


def test_sigma_is_that_of_gaussian_errors_in_spite_of_gross_ones():
    errors = np.random.default_rng(0).normal(0.0, 2.0, 20_001)
    errors[:200] = 1e6
    assert robust_sigma(errors) == pytest.approx(2.0, rel=0.03)


def test_sigma_by_hand():
    assert robust_sigma([-3.0, 1.0, 2.0]) == pytest.approx(1.4826 * 2.0)
    columns = [[-3.0, 10.0], [1.0, 0.0], [2.0, -1.0]]
    assert robust_sigmas(columns) == pytest.approx([1.4826 * 2.0, 1.4826 * 1.0])
