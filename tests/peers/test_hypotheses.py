"""Depths to try, and the best of costs that come one at a time."""

import numpy as np
import pytest

import d3s
from d3s.peers.hypotheses import Hypotheses, Minimum, Winner, block_match, independent_samples

OPTICS = d3s.Rig.paper_prototype().optics  # a disparity of 23.232 px at 1 m


def test_hypotheses_by_hand():
    tried = Hypotheses.of(OPTICS, (1.0, 2.0), 0.5, 200)
    # 11.616 to 23.232 px and a pixel to each side, in whole multiples of the step.
    assert tried.disparity_px[[0, -1]].tolist() == [11.0, 24.0]
    assert np.diff(tried.disparity_px).tolist() == [0.5] * 26


def test_hypotheses_stay_in_the_frame_and_before_infinity():
    assert Hypotheses.of(OPTICS, (0.25, 2.5), 1.0, 20).disparity_px[-1] == 19.0
    assert Hypotheses.of(OPTICS, (0.25, 2.5), 1.0, 10) is None
    far = Hypotheses.of(OPTICS, (10.0, 1000.0), 0.01, 200)
    assert np.isfinite(OPTICS.depth_m(far.disparity_px)).all()


def _streamed(costs, shifts):
    winner = Winner(costs.shape[1:])
    for cost, shift in zip(costs, shifts, strict=True):
        winner.add(cost, shift)
    return winner


def test_winner_is_the_least_of_all():
    costs = np.random.default_rng(0).random((9, 20, 30)).astype(np.float32)
    winner = _streamed(costs, range(9))
    best = costs.argmin(axis=0)
    assert np.array_equal(winner.index, best)
    assert np.array_equal(winner.least, costs.min(axis=0))
    padded = np.pad(costs, [(1, 1), (0, 0), (0, 0)], constant_values=np.nan)
    before, after = (
        np.take_along_axis(padded, best[None] + step, axis=0)[0].astype(float) for step in (0, 2)
    )
    expected = 0.5 * (before + after) - costs.min(axis=0)
    assert np.allclose(winner.minimum.curvature, expected, equal_nan=True)
    assert np.allclose(winner.distinctness, 1 - costs.min(axis=0) / costs.mean(axis=0), atol=1e-5)


def test_first_of_equals_wins():
    assert (_streamed(np.ones((4, 2, 3), dtype=np.float32), range(4)).index == 0).all()


def test_right_view_agrees_with_a_shift():
    """A scene all at a disparity of 2, of three that are tried."""
    costs = np.ones((3, 4, 12), dtype=np.float32)
    costs[1] = 0.0
    winner = _streamed(costs, (1.0, 2.0, 3.0))
    agreed = winner.disagreement_px(np.full((4, 12), 2.0))
    assert np.isnan(agreed[:, :2]).all()
    assert (agreed[:, 2:] == 0).all()
    assert (winner.disagreement_px(np.full((4, 12), 3.0))[:, 3:] == 1).all()


@pytest.mark.parametrize("place", [-0.4, 0.0, 0.3])
def test_parabola_is_exact(place):
    costs = [0.7 + 5.0 * (step - place) ** 2 for step in (-1, 0, 1)]
    minimum = Minimum.through(*costs)
    assert minimum.offset == pytest.approx(place)
    assert minimum.least == pytest.approx(0.7)
    assert minimum.curvature == pytest.approx(5.0)
    # The root of 0.7 / (100 * 5), half a pixel each.
    assert minimum.sigma_px(0.5, 100) == pytest.approx(0.5 * 0.037417, rel=1e-4)


def test_no_parabola_through_a_flat_cost():
    assert np.isnan(Minimum.through(1.0, 1.0, 1.0).offset)


def test_independent_samples_by_hand():
    assert independent_samples(31, 0.0) == 961
    assert independent_samples(31, 2.0) == pytest.approx(961 / (16 * np.pi))
    assert independent_samples(3, 9.0) == 1


def test_predicted_deviation_is_the_sampled_one():
    """Least squares of a shift, in many windows of white noise and a texture of known slope."""
    rng = np.random.default_rng(1)
    slope, noise, samples, repeats = 0.3, 0.05, 400, 2000
    gradient = rng.normal(0, slope, samples)
    errors, predicted = [], []
    for _ in range(repeats):
        difference = rng.normal(0, noise, samples)
        costs = [np.mean((difference - gradient * shift) ** 2) for shift in (-1, 0, 1)]
        minimum = Minimum.through(*costs)
        errors.append(float(minimum.offset))
        predicted.append(float(minimum.sigma_px(1.0, samples)))
    # A deviation of 2000 draws is known to 1.6 %.
    assert np.std(errors) == pytest.approx(np.mean(predicted), rel=0.06)


def test_block_match_finds_a_shift():
    texture = np.random.default_rng(2).random((40, 120))
    tried = Hypotheses(np.arange(0.0, 20.0), 1.0)
    matched = block_match(texture[:, :100], texture[:, 7:107], tried, 9)
    assert np.allclose(matched.disparity_px[:, 12:], 7, atol=0.1)
    assert (matched.disagreement_px[:, 12:] < 0.1).all()
