"""Windowed phase correlation: subpixel disparities, no interpolation across edges."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import d3s

RIG = d3s.Rig.paper_prototype()


def pair(shift_px, shape=(100, 220)):
    """Texture and its shifted copy, by a Fourier shift."""
    rng = np.random.default_rng(0)
    texture = gaussian_filter(rng.normal(size=(shape[0], 512)), 1.5, mode="wrap")
    phase = np.exp(2j * np.pi * np.fft.rfftfreq(512) * shift_px)
    shifted = np.fft.irfft(np.fft.rfft(texture, axis=1) * phase, 512, axis=1)
    return texture[:, 100 : 100 + shape[1]], shifted[:, 100 : 100 + shape[1]]


@pytest.mark.parametrize("shift_px", [20.1, 33.37])
def test_subpixel_shift_is_found(shift_px):
    result = d3s.estimate(*pair(shift_px), RIG, method="phase")
    inside = RIG.optics.disparity_px(result.depth_m[30:-30, 75:-30])
    assert np.isfinite(inside).mean() > 0.99
    assert np.median(inside) == pytest.approx(shift_px, abs=0.003)
    assert np.std(inside) < 0.01


def test_no_interpolation_between_two_surfaces():
    near, far = pair(40.0), pair(15.0)
    left, right = (np.vstack([a[:50], b[50:]]) for a, b in zip(near, far, strict=True))
    options = {"window_px": 16, "stride_px": 8, "coarse_window_px": 9}
    result = d3s.estimate(left, right, RIG, method="phase", options=options)
    found_px = RIG.optics.disparity_px(result.depth_m[10:-10, 60:-20])
    near_either = (np.abs(found_px - 40) < 1) | (np.abs(found_px - 15) < 1) | np.isnan(found_px)
    # A few windows hold both surfaces.
    assert near_either.mean() > 0.95
