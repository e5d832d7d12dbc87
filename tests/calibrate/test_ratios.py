"""Sums over whole shifts, compared with the functions of the paper's equations."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.ratios import shift_sums
from d3s.estimate.consensus.smoothing import smoothed
from d3s.optics.d3 import finite_differences, gradient_ratio_per_px
from d3s.optics.windows import shifted_right

RIG = d3s.Rig.paper_prototype()
OPTIONS = d3s.ConsensusOptions(prefilter_sigma_px=2.0, window_px=21)


@pytest.fixture(scope="module")
def pair():
    scene = d3s.Plane(depth_m=0.6, texture="leaves")
    return d3s.simulate(scene, RIG, noise=0.01, shape=(160, 320))


@pytest.mark.parametrize("shift_px", [31.0, 32.25, 33.5, 36.9])
def test_ratio_is_that_of_the_views_moved_by_any_shift(pair, shift_px):
    windows, sums = shift_sums(pair.left, pair.right, (31.0, 37.0), OPTIONS, 100)
    views = [smoothed(view, 2.0) for view in (pair.left, pair.right)]
    derivatives = finite_differences(views[0], shifted_right(views[1], shift_px))
    expected = gradient_ratio_per_px(derivatives, 21)[windows.rows, windows.cols]
    found = sums.ratios_per_px(np.array([[shift_px]]))[0]
    assert windows.rows.size > 20
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=1e-4)


def test_ratio_with_the_blur_of_other_places_added(pair):
    windows, sums = shift_sums(pair.left, pair.right, (31.0, 37.0), OPTIONS, 100, with_blur=True)
    plain_windows, plain = shift_sums(pair.left, pair.right, (31.0, 37.0), OPTIONS, 100)
    np.testing.assert_array_equal(windows.cols, plain_windows.cols)
    shift_px, factors = 36.25, np.array([3.0, -1.0, 2.0])
    left, right = (smoothed(view, 2.0) for view in (pair.left, pair.right))
    right = shifted_right(right, shift_px)
    derivatives = finite_differences(left, right)
    mean = 0.5 * (left + right)
    mixed = np.gradient(np.gradient(mean, axis=1), axis=0)
    along, upright = (np.roll(mean, 1, k) + np.roll(mean, -1, k) - 2 * mean for k in (1, 0))
    added = factors[0] * along + factors[1] * 2 * mixed + factors[2] * upright
    moved = derivatives._replace(difference=derivatives.difference + added)
    expected = gradient_ratio_per_px(moved, 21)[windows.rows, windows.cols]
    shift = np.array([[shift_px]])
    found = sums.ratios_per_px(shift, factors[:, np.newaxis, np.newaxis])[0]
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=1e-4)
    assert np.abs(found / plain.ratios_per_px(shift)[0] - 1).max() > 0.1
    # Without factors, the second derivatives change nothing.
    np.testing.assert_allclose(sums.ratios_per_px(shift), plain.ratios_per_px(shift), rtol=1e-12)
