"""Grid of disparities, running minimum of costs, subpixel parabola and block matching."""

import numpy as np
import pytest

import d3s
from d3s.estimate import Options
from d3s.lab.evaluate.cameras import tuned_rig
from d3s.lab.peers.common import MethodCall
from d3s.lab.peers.matching import (
    DisparityGrid,
    Parabola,
    RunningMinimum,
    block_match,
    independent_samples,
)
from d3s.rig import LensMaps

OPTICS = d3s.Rig.paper_prototype().optics  # a disparity of 23.232 px at 1 m


def test_disparity_grid_by_hand():
    grid = DisparityGrid.covering(OPTICS, (1.0, 2.0), 0.5, 200)
    # From 11.616 to 23.232 px plus a margin of 1 px, in whole multiples of the step.
    assert grid.disparity_px[[0, -1]].tolist() == [11.0, 24.0]
    assert np.diff(grid.disparity_px).tolist() == [0.5] * 26


def test_disparity_grid_stays_in_the_frame_and_before_infinity():
    assert DisparityGrid.covering(OPTICS, (0.25, 2.5), 1.0, 20).disparity_px[-1] == 19.0
    assert DisparityGrid.covering(OPTICS, (0.25, 2.5), 1.0, 10) is None
    far = DisparityGrid.covering(OPTICS, (10.0, 1000.0), 0.01, 200)
    assert np.isfinite(OPTICS.depth_m(far.disparity_px)).all()


def _running_minimum(costs, shifts):
    best = RunningMinimum(costs.shape[1:])
    for cost, shift in zip(costs, shifts, strict=True):
        best.add(cost, shift)
    return best


def test_running_minimum_is_the_smallest_cost():
    costs = np.random.default_rng(0).random((9, 20, 30)).astype(np.float32)
    best = _running_minimum(costs, range(9))
    expected_index = costs.argmin(axis=0)
    assert np.array_equal(best.index, expected_index)
    assert np.array_equal(best.least, costs.min(axis=0))
    padded = np.pad(costs, [(1, 1), (0, 0), (0, 0)], constant_values=np.nan)
    before, after = (
        np.take_along_axis(padded, expected_index[None] + step, axis=0)[0].astype(float)
        for step in (0, 2)
    )
    expected = 0.5 * (before + after) - costs.min(axis=0)
    assert np.allclose(best.parabola.curvature, expected, equal_nan=True)
    assert np.allclose(best.distinctness, 1 - costs.min(axis=0) / costs.mean(axis=0), atol=1e-5)


def test_right_view_agrees_with_a_shift():
    """Every pixel has a disparity of 2, the second of three."""
    costs = np.ones((3, 4, 12), dtype=np.float32)
    costs[1] = 0.0
    best = _running_minimum(costs, (1.0, 2.0, 3.0))
    difference_px = best.left_right_difference_px(np.full((4, 12), 2.0))
    assert np.isnan(difference_px[:, :2]).all()
    assert (difference_px[:, 2:] == 0).all()
    assert (best.left_right_difference_px(np.full((4, 12), 3.0))[:, 3:] == 1).all()


@pytest.mark.parametrize("position", [-0.4, 0.0, 0.3])
def test_parabola_is_exact(position):
    costs = [0.7 + 5.0 * (step - position) ** 2 for step in (-1, 0, 1)]
    parabola = Parabola.through(*costs)
    assert parabola.offset == pytest.approx(position)
    assert parabola.least == pytest.approx(0.7)
    assert parabola.curvature == pytest.approx(5.0)
    # sqrt(0.7 / (100 * 5)) steps of half a pixel.
    assert parabola.sigma_px(0.5, 100) == pytest.approx(0.5 * 0.037417, rel=1e-4)


def test_independent_samples_by_hand():
    assert independent_samples(31, 0.0) == 961
    assert independent_samples(31, 2.0) == pytest.approx(961 / (16 * np.pi))
    assert independent_samples(3, 9.0) == 1


def test_predicted_deviation_is_the_sampled_one():
    """Least-squares shift of many windows with white noise and a texture of known gradient."""
    rng = np.random.default_rng(1)
    slope, noise, samples, repeats = 0.3, 0.05, 400, 2000
    gradient = rng.normal(0, slope, samples)
    errors, predicted = [], []
    for _ in range(repeats):
        difference = rng.normal(0, noise, samples)
        costs = [np.mean((difference - gradient * shift) ** 2) for shift in (-1, 0, 1)]
        parabola = Parabola.through(*costs)
        errors.append(float(parabola.offset))
        predicted.append(float(parabola.sigma_px(1.0, samples)))
    # The standard deviation of 2000 draws is known to 1.6 %.
    assert np.std(errors) == pytest.approx(np.mean(predicted), rel=0.06)


def test_block_match_finds_a_shift():
    texture = np.random.default_rng(2).random((40, 120))
    grid = DisparityGrid(np.arange(0.0, 20.0), 1.0)
    match = block_match(texture[:, :100], texture[:, 7:107], grid, 9)
    assert np.allclose(match.disparity_px[:, 12:], 7, atol=0.1)
    assert (match.left_right_difference_px[:, 12:] < 0.1).all()


def test_disparity_that_lenses_add_is_subtracted():
    lenses = LensMaps(field_radius_px=100.0, disparity_px=((0.5,), (0.1,)))
    plain = tuned_rig()
    rig = plain.replace(calibration=plain.calibration.replace(lenses=lenses))
    views = (np.zeros((3, 5), dtype=np.float32),) * 2
    disparity_px = np.full((3, 5), 23.832)  # 23.232 px at 1 m, and 0.5 + 0.1 / m
    results = [
        MethodCall("bm", views, one, Options()).finish_disparity(
            np.zeros((3, 5), dtype=np.uint16), disparity_px, 0.1, np.ones((3, 5))
        )
        for one in (rig, plain)
    ]
    # The vergence is that of the measured disparity: 1.026 / m instead of 1.
    assert results[0].depth_m == pytest.approx(np.full((3, 5), 1.0), abs=2e-4)
    assert results[1].depth_m == pytest.approx(np.full((3, 5), 23.232 / 23.832), abs=1e-6)
