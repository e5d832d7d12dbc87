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
