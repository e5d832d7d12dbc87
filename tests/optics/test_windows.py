"""Derivatives of sampled images and sums over windows."""

import numpy as np
import pytest

from d3s.errors import D3SError
from d3s.optics import windows


def _wave(k: float, angle: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A plane wave with its exact x-derivative and Laplacian."""
    y, x = np.mgrid[0:40.0, 0:50.0]
    kx, ky = k * np.cos(angle), k * np.sin(angle)
    phase = kx * x + ky * y
    return np.sin(phase), kx * np.cos(phase), -(k**2) * np.sin(phase)


@pytest.mark.parametrize(("k", "tolerance"), [(0.5, 1e-9), (1.0, 1e-5), (1.8, 0.012)])
def test_sharp_derivatives_are_nearly_exact_for_well_sampled_images(k, tolerance):
    image, grad_x, laplacian = _wave(k)
    m = windows.MARGIN_PX
    np.testing.assert_allclose(
        windows.sharp_gradient_x(image)[:, m:-m], grad_x[:, m:-m], atol=tolerance * k
    )
    np.testing.assert_allclose(
        windows.sharp_laplacian(image)[m:-m, m:-m], laplacian[m:-m, m:-m], atol=tolerance * k**2
    )


def test_three_point_derivatives_by_hand():
    image = np.array([[0, 0, 0, 0], [0, 1, 4, 0], [0, 0, 0, 0.0]])
    np.testing.assert_array_equal(windows.central_gradient_x(image)[1], [np.nan, 2, -0.5, np.nan])
    np.testing.assert_array_equal(windows.five_point_laplacian(image)[1], [np.nan, 0, -15, np.nan])


def test_window_sum_against_a_plain_loop():
    values = np.random.default_rng(0).normal(size=(9, 11))
    expected = [
        [values[max(0, i - 2) : i + 3, max(0, j - 2) : j + 3].sum() for j in range(11)]
        for i in range(9)
    ]
    np.testing.assert_allclose(windows.window_sum(values, 5), expected, atol=1e-12)


def test_one_nan_touches_only_its_window():
    values = np.ones((21, 21))
    values[10, 10] = np.nan
    touched = np.isnan(windows.window_sum(values, 5))
    expected = np.zeros((21, 21), dtype=bool)
    expected[8:13, 8:13] = True
    np.testing.assert_array_equal(touched, expected)


@pytest.mark.parametrize("window", [0, -3, 4])
def test_wrong_window_is_named(window):
    with pytest.raises(D3SError, match=f"window_px={window} must be odd and positive"):
        windows.window_sum(np.ones((5, 5)), window)


@pytest.mark.parametrize("function", [windows.sharp_gradient_x, windows.sharp_laplacian])
def test_too_small_an_image_is_named(function):
    with pytest.raises(D3SError, match="at least 17"):
        function(np.ones((16, 30)))


def test_shift_is_exact_for_smooth_images():
    y, x = np.mgrid[0:30.0, 0:80.0]

    def wave(u: np.ndarray) -> np.ndarray:
        return np.sin(0.7 * u + 0.3 * y) + np.cos(0.4 * u - 0.2 * y)

    for shift in (3.0, 7.37, -2.5):
        moved = windows.shifted_right(wave(x), shift)
        np.testing.assert_allclose(moved[:, 24:-24], wave(x - shift)[:, 24:-24], atol=2e-5)
    by_map = windows.shifted_right(wave(x), np.full((30, 80), 7.37))
    np.testing.assert_array_equal(by_map, windows.shifted_right(wave(x), 7.37))


def test_shift_knows_what_it_cannot_see():
    moved = windows.shifted_right(np.ones((3, 10)), 2.5)
    assert np.isnan(moved[:, :3]).all()
    np.testing.assert_allclose(moved[:, 3:], 1.0)
    assert np.isnan(windows.shifted_right(np.ones((3, 10)), np.nan)).all()
