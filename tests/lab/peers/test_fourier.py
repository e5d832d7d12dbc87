"""Blur and subpixel shift of whole views in the frequency domain."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from d3s.lab.peers.matching import PaddedFft
from d3s.optics.psf import gaussian_otf

SHAPE = (41, 67)


def smooth(seed):
    return gaussian_filter(np.random.default_rng(seed).random(SHAPE), 2.0)


@pytest.mark.parametrize("shift", [3, -5])
def test_whole_shift_goes_to_the_right(shift):
    view = smooth(2)
    fft = PaddedFft.with_margin(SHAPE, 10, 20)
    spectrum = fft.spectra((view, view))[0]
    shifted = fft.image(spectrum * fft.shift_factor(shift)) + view.mean()
    inside = slice(5, -5)
    assert np.allclose(shifted[:, inside], np.roll(view, shift, axis=1)[:, inside], atol=1e-6)


def test_blur_equals_the_spatial_filter():
    view = smooth(3)
    fft = PaddedFft.with_margin(SHAPE, 10, 20)
    transfer = gaussian_otf(fft.frequency_radius, 1.5)
    blurred = fft.image(fft.spectra((view, view))[0] * transfer) + view.mean()
    expected = gaussian_filter(view, 1.5, truncate=6.0)
    inside = np.s_[9:-9, 9:-9]  # outside, the frame fades to its mean
    assert np.allclose(blurred[inside], expected[inside], atol=1e-6)
    assert np.allclose(blurred, expected, atol=0.01)
