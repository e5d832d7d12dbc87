"""Choice of virtual baselines: cost, consensus and search."""

import numpy as np
import pytest

import d3s
from d3s.calibrate import baselines
from d3s.calibrate.baselines import MISSING_M, choose_baselines, cost_m
from d3s.calibrate.tuning import CONSENSUS, find_tuning
from d3s.errors import InputError
from d3s.optics.consensus import best_candidate, confidence

RIG = d3s.Rig.paper_prototype()
DEPTHS_M = (0.35, 0.45, 0.6, 0.8, 1.0, 1.3)
OPTIONS = CONSENSUS.replace(candidates=240)


@pytest.fixture(scope="module")
def chosen():
    views = [
        d3s.simulate(
            d3s.Plane(depth_m=z, texture="calibration"), RIG, noise=0.01, seed=i, shape=(200, 440)
        )
        for i, z in enumerate(DEPTHS_M)
    ]
    views = [(view.left, view.right) for view in views]
    tuning = find_tuning(views, DEPTHS_M, RIG, options=OPTIONS)
    return choose_baselines(views, DEPTHS_M, RIG, tuning, options=OPTIONS)


def test_cost_by_hand():
    # Errors of 1 cm, -3 cm, and one of low confidence, with weights of a half and two quarters.
    errors, sure = np.array([0.01, -0.03, 5.0]), np.array([0.9, 0.81, 0.8])
    weights = np.array([0.5, 0.25, 0.25])
    assert cost_m(errors, sure, 0.8, weights) == pytest.approx(0.005 + 0.0075 + MISSING_M / 4)


def test_consensus_of_sets_is_that_of_the_paper():
    rng = np.random.default_rng(3)
    candidates = np.linspace(0.3, 2.0, 40)
    predicted = candidates + rng.normal(0, 0.3, (25, 4, 40))
    predicted[3, 1, 5:20] = np.nan
    predicted[4] = np.nan
    truth = rng.uniform(0.3, 2.0, 25)
    weight = np.full(25, 1 / 25)
    predictions = baselines._Predictions(predicted.astype(np.float32), truth, weight)
    options = CONSENSUS.replace(min_confidence=0.85)
    sampled = np.array([1e-4, 2e-4, 3e-4, 4e-4])
    trial = baselines._Trial(predictions, candidates, sampled, options)
    sets = np.array([[0, 1], [1, 3], [2, 3]])
    for numbers, result in zip(sets, trial.compare(sets), strict=True):
        values = np.array(
            [
                [confidence(z, predicted[i, numbers, c]) for c, z in enumerate(candidates)]
                for i in range(25)
            ]
        )
        pick = best_candidate(candidates, values.T)
        kept = pick.confidence > 0.85
        assert 0 < kept.sum() < 24
        assert result.density == pytest.approx(kept.mean())
        assert result.mae_m == pytest.approx(np.abs(pick.depth_m - truth)[kept].mean(), rel=1e-5)
        assert result.virtual_baselines_m == tuple(sampled[numbers])


def test_chosen_set_is_the_best_of_all(chosen):
    assert len(chosen.chosen.virtual_baselines_m) == 3
    assert chosen.chosen == chosen.best_of_count[2]
    assert chosen.chosen.cost_m == np.nanmin(chosen.surface_m)
    assert [len(best.virtual_baselines_m) for best in chosen.best_of_count] == [1, 2, 3, 4, 5]
    assert chosen.chosen.mae_m < 0.005
    assert chosen.chosen.density > 0.9
    assert chosen.sets_tried > 560


def test_invalid_count(chosen):
    with pytest.raises(InputError, match="count=7 must be a whole number from 1 to 5"):
        choose_baselines((), (), RIG, None, count=7)
