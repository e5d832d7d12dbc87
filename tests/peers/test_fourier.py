"""Shifts and blurs of whole views, as products."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from d3s.optics.psf import gaussian_otf
from d3s.peers.fourier import Plane

SHAPE = (41, 67)


def smooth(seed):
    return gaussian_filter(np.random.default_rng(seed).random(SHAPE), 2.0)


def test_image_of_a_spectrum_is_the_view():
    views = smooth(0), smooth(1)
    plane = Plane.around(SHAPE, 10, 20)
    mean = 0.5 * (views[0].mean() + views[1].mean())
    for view, spectrum in zip(views, plane.spectra(views), strict=True):
        assert np.allclose(plane.image(spectrum), view - mean, atol=1e-6)


def test_views_keep_their_difference_of_level():
    plane = Plane.around(SHAPE, 10, 20)
    left, right = plane.spectra((smooth(0) + 0.2, smooth(0)))
    assert np.mean(plane.image(left - right)) == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("shift", [3, -5])
def test_whole_shift_moves_to_the_right(shift):
    view = smooth(2)
    plane = Plane.around(SHAPE, 10, 20)
    spectrum = plane.spectra((view, view))[0]
    moved = plane.image(spectrum * plane.moved(shift)) + view.mean()
    inside = slice(5, -5)
    assert np.allclose(moved[:, inside], np.roll(view, shift, axis=1)[:, inside], atol=1e-6)


def test_blur_is_that_of_space():
    view = smooth(3)
    plane = Plane.around(SHAPE, 10, 20)
    transfer = gaussian_otf(plane.radius, 1.5)
    blurred = plane.image(plane.spectra((view, view))[0] * transfer) + view.mean()
    expected = gaussian_filter(view, 1.5, truncate=6.0)
    inside = np.s_[9:-9, 9:-9]  # beyond, the frame fades to its mean
    assert np.allclose(blurred[inside], expected[inside], atol=1e-6)
    assert np.allclose(blurred, expected, atol=0.01)


def test_frame_of_a_pixel():
    plane = Plane.around((1, 1), 0, 0)
    assert plane.image(plane.spectra((np.ones((1, 1)), np.zeros((1, 1))))[0]) == 0.5
