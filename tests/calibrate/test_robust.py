"""Robust estimates: standard deviation, line, homography."""

import numpy as np
import pytest

from d3s.calibrate.robust import apply_homography, robust_homography, robust_sigma


def test_sigma_of_gaussian_errors_with_outliers():
    errors = np.random.default_rng(0).normal(0.0, 2.0, 20_001)
    errors[:200] = 1e6
    assert robust_sigma(errors) == pytest.approx(2.0, rel=0.03)


def test_homography_with_outliers():
    rng = np.random.default_rng(1)
    matrix = np.array([[0.9, 0.02, 30.0], [-0.02, 0.91, 12.0], [3e-5, -2e-5, 1.0]])
    first = rng.uniform(0, 600, (200, 2))
    second = apply_homography(matrix, first) + rng.normal(0, 0.05, (200, 2))
    second[::5] += 4.0
    found = robust_homography(first, second, np.full(200, 0.01))
    assert (
        np.abs(apply_homography(found.matrix, first) - apply_homography(matrix, first)).max() < 0.06
    )
    assert not found.is_kept[::5].any()
    assert found.is_kept.sum() > 155
    # Sigma is found from the scatter, independent of the scale of the sigma given.
    assert np.median(found.sigma_px) == pytest.approx(0.05, rel=0.2)
