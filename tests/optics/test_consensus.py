"""Agreement and confidence, with numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3s.optics import consensus


def test_disagreement_is_the_worst_of_the_baselines():
    # 1/1 - 1/0.8 = -0.25; 1/1 - 1/1.25 = 0.2
    gap = consensus.disagreement(1.0, [0.8, 1.25, 1.0])
    assert gap.depth_m == pytest.approx(0.25)
    assert gap.vergence_dpt == pytest.approx(0.25)


def test_confidence_by_hand():
    # (1 + 0.25)(1 + 0.25) = 1.5625
    assert consensus.confidence(1.0, [0.8, 1.25]) == pytest.approx(0.64)
    assert consensus.depth_only_confidence(1.0, [0.8, 1.25]) == pytest.approx(0.8)
    assert consensus.confidence(0.7, [0.7, 0.7, 0.7]) == 1.0


def test_consensus_needs_both_tolerances():
    def agrees(depth_m: float, vergence_dpt: float) -> bool:
        return bool(
            consensus.is_consensus(
                1.0, [0.8, 1.1], depth_tolerance_m=depth_m, vergence_tolerance_dpt=vergence_dpt
            )
        )

    assert agrees(0.21, 0.26)
    assert not agrees(0.19, 0.26)
    assert not agrees(0.21, 0.24)


@given(
    st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, 0.5, 1e300, 1e-300]), min_size=1)
)
def test_confidence_stays_between_zero_and_one_whatever_comes(predictions):
    value = consensus.confidence(0.5, predictions)
    assert 0 <= value <= 1
    if not np.isfinite(predictions).all() or 0.0 in predictions:
        assert value == 0


def test_best_candidate_and_threshold():
    candidates = [0.5, 1.0, 2.0]
    confidences = np.array([[0.2, 0.0, 0.9], [0.7, 0.0, 0.9], [0.1, 0.0, 0.3]])
    pick = consensus.best_candidate(candidates, confidences)
    np.testing.assert_array_equal(pick.depth_m, [1.0, np.nan, 0.5])
    np.testing.assert_array_equal(pick.confidence, [0.7, 0.0, 0.9])
    np.testing.assert_array_equal(consensus.keep_confident(pick, 0.8), [np.nan, np.nan, 0.5])
    silent = consensus.best_candidate(candidates, np.array([[np.nan], [0.4], [0.1]]))
    np.testing.assert_array_equal(silent.depth_m, [1.0])
    # The threshold is exclusive, as printed.
    np.testing.assert_array_equal(consensus.keep_confident(pick, 0.7), [np.nan, np.nan, 0.5])
