"""Prefilter of the consensus: holes, smoothing, and the noise of a view."""

import numpy as np
import pytest

from d3s.estimate.consensus.smoothing import filled, noise_variance, reach_px, smoothed


def _noise(shape: tuple[int, int] = (40, 50)) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("sigma_px", [0.4, 1.0, 2.5])
def test_weights_are_a_gaussian(sigma_px):
    dot = np.zeros((41, 41), dtype=np.float32)
    dot[20, 20] = 1
    spread = smoothed(dot, sigma_px)
    y, x = np.mgrid[-20:21, -20:21]
    expected = np.exp(-(x**2 + y**2) / (2 * sigma_px**2))
    reach = reach_px(sigma_px)
    expected[(abs(x) > reach) | (abs(y) > reach)] = 0
    np.testing.assert_allclose(spread, expected / expected.sum(), atol=1e-15)


def test_sigma_of_zero_changes_nothing():
    np.testing.assert_array_equal(smoothed(_noise(), 0.0), _noise())


def test_view_is_mirrored_at_its_borders():
    view = _noise()
    wide = np.pad(view, 10, mode="reflect")
    np.testing.assert_allclose(smoothed(view, 1.5), smoothed(wide, 1.5)[10:-10, 10:-10], atol=1e-15)


@pytest.mark.parametrize("sigma_px", [0.0, 1.0, 2.0])
def test_hole_reaches_no_farther_than_reach_px(sigma_px):
    view = _noise()
    view[15, 30] = np.nan
    given = view.copy()
    with_hole, without = smoothed(view, sigma_px), smoothed(_noise(), sigma_px)
    reach = reach_px(sigma_px)
    touched = np.zeros(view.shape, dtype=bool)
    touched[15 - reach : 16 + reach, 30 - reach : 31 + reach] = True
    assert np.isfinite(with_hole).all()
    np.testing.assert_array_equal((with_hole != without) & ~touched, False)
    np.testing.assert_array_equal(view, given)


def test_holes_are_filled_from_around_them():
    y, x = np.mgrid[0:30.0, 0:40.0]
    ramp = 3 * x + 2 * y + 100
    view = ramp.copy()
    view[12, 20] = np.nan
    np.testing.assert_allclose(filled(view, 1.0), ramp, atol=1e-12)  # the mean of a ramp's middle
    view[5:25, 5:30] = np.nan
    assert filled(view, 1.0)[15, 17] == pytest.approx(np.nanmean(view))  # far from everything


def test_view_of_holes_alone():
    nothing = np.full((6, 7), np.nan, dtype=np.float32)
    assert not smoothed(nothing, 1.0).any()
    assert noise_variance(nothing) == 0


@pytest.mark.parametrize("gain", [0.25, 3.0])
def test_holes_follow_gain_and_offset(gain):
    view = _noise().astype(np.float64)
    view[10:30, 10:30] = np.nan
    view[3, 3] = np.nan
    changed = smoothed(gain * view + 7, 1.0)
    np.testing.assert_allclose(changed, gain * smoothed(view, 1.0) + 7, rtol=1e-12)


def test_noise_variance_ignores_ramps_edges_and_holes():
    y, x = np.mgrid[0:200.0, 0:300.0]
    view = 0.01 * x - 0.02 * y + (x > 100) + 2.0 * (y > 80)
    assert noise_variance(view) < 1e-25
    view += np.random.default_rng(1).normal(scale=0.03, size=view.shape)
    view[50:60, 70:90] = np.nan
    assert noise_variance(view) ** 0.5 == pytest.approx(0.03, rel=0.03)


@pytest.mark.parametrize("shape", [(1, 1), (2, 50), (50, 2), (3, 3)])
def test_noise_variance_of_very_small_views(shape):
    assert noise_variance(np.ones(shape, dtype=np.float32)) == 0
