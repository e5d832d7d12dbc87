"""Orders of errors that can be worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from d3s.lab.evaluate.metrics import coverage, rank, ranked_errors_m, threshold_curve, trust_order

NAN = np.nan


@pytest.fixture
def four(depth_map, truth):
    """Errors of 1, 2, 3 and 6 cm, one pixel without depth, one that is not judged."""
    made = depth_map(
        [[1.01, 0.98, 1.03, 1.06, NAN, 5.0]], sigma_m=[[0.03, 0.01, 0.02, 0.04, 1.0, 0.001]]
    )
    made = replace(made, confidence=np.float32([[0.9, 0.5, 0.7, 0.2, 0.9, 1.0]]))
    return made, truth(np.ones((1, 6)), judged=[[1, 1, 1, 1, 1, 0]])


def test_threshold_of_confidence(four):
    none, half, one = threshold_curve(*four, (0.0, 0.7, 0.95))
    assert (none["retained"], none["threshold"]) == (4, 0.0)
    assert none["mae_m"] == pytest.approx(0.03, rel=1e-5)
    assert none["density"] == pytest.approx(4 / 5)
    assert half["retained"] == 2  # 0.9 and 0.7, which is at least 0.7
    assert half["mae_m"] == pytest.approx(0.02, rel=1e-5)
    assert half["median_m"] == pytest.approx(0.02, rel=1e-5)
    assert half["density"] == pytest.approx(2 / 5)
    assert (one["retained"], one["density"]) == (0, 0.0)
    assert math.isnan(one["mae_m"])


def test_order_of_errors(four):
    assert ranked_errors_m(*four, by="sigma_m") == pytest.approx([0.02, 0.03, 0.01, 0.06], rel=1e-4)
    assert ranked_errors_m(*four, by="confidence") == pytest.approx(
        [0.01, 0.03, 0.02, 0.06], rel=1e-4
    )


def test_ranking_by_hand():
    # Means of the first 1, 2, 3, 4: own 2, 2.5, 2, 3; the oracle's 1, 1.5, 2, 3; at random 3.
    found = rank(np.array([2.0, 3.0, 1.0, 6.0]))
    assert found.ause_m == pytest.approx((1 + 1 + 0 + 0) / 4)
    assert found.gain == pytest.approx((3 - 9.5 / 4) / (3 - 7.5 / 4))


def test_the_best_and_the_worst_order():
    errors = np.arange(1.0, 101.0)
    assert rank(errors).gain == pytest.approx(1)
    assert rank(errors).ause_m == 0
    assert rank(errors[::-1]).gain < -0.9
    assert math.isnan(rank(np.ones(5)).gain)  # there is nothing to win
    assert math.isnan(rank(np.array([])).ause_m)


def test_equals_are_in_no_order_of_their_own():
    order = trust_order(np.zeros(1000))
    assert sorted(order) == list(range(1000))
    assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.1
    assert (order == trust_order(np.zeros(1000))).all()


def test_coverage_by_hand(four, depth_map, truth):
    # Errors over sigma: 1/3, 2, 1.5, 1.5.
    assert coverage(*four, (1.0, 1.6, 3.0)) == (0.25, 0.75, 1.0)
    assert math.isnan(coverage(depth_map([[NAN]]), truth([[1.0]]))[0])
