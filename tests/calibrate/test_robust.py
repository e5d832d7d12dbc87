"""Robust estimates: standard deviation, line, homography."""

import numpy as np
import pytest

from d3s.calibrate.robust import (
    apply_homography,
    fit_homography,
    robust_homography,
    robust_line,
    robust_sigma,
    robust_sigmas,
    turn_rad,
)


def test_sigma_of_gaussian_errors_with_outliers():
    errors = np.random.default_rng(0).normal(0.0, 2.0, 20_001)
    errors[:200] = 1e6
    assert robust_sigma(errors) == pytest.approx(2.0, rel=0.03)


def test_sigma_by_hand():
    assert robust_sigma([-3.0, 1.0, 2.0]) == pytest.approx(1.4826 * 2.0)
    columns = [[-3.0, 10.0], [1.0, 0.0], [2.0, -1.0]]
    assert robust_sigmas(columns) == pytest.approx([1.4826 * 2.0, 1.4826 * 1.0])


def test_line_with_outliers():
    x = np.linspace(1.0, 4.0, 12)
    y = 2.0 * x - 3.0
    y[::3] += 50.0
    assert robust_line(x, y) == pytest.approx((2.0, -3.0))


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


def test_rotation_of_a_homography():
    cos, sin = np.cos(0.02), np.sin(0.02)
    matrix = np.array([[0.9 * cos, -0.9 * sin, 5.0], [0.9 * sin, 0.9 * cos, -3.0], [0.0, 0.0, 1.0]])
    assert turn_rad(matrix, np.array([100.0, 50.0])) == pytest.approx(0.02)
    x, y = np.meshgrid([0.0, 50.0, 100.0], [0.0, 50.0, 100.0])
    places = np.stack([x.ravel(), y.ravel()], axis=1)
    fitted = fit_homography(places, apply_homography(matrix, places), np.ones(9))
    np.testing.assert_allclose(fitted, matrix, atol=1e-9)
