"""The tuned twin: it carries what was tuned, and works with it on another texture."""

import numpy as np
import pytest

import d3s
from d3s.lab.evaluate.cameras import tuned_rig, tuned_twin
from d3s.lab.reproduce.protocol import TUNED
from made_results import tiny_twin


def test_tuned_on_one_texture_it_is_right_on_another():
    rig = tiny_twin().rig
    pair = d3s.simulate(
        d3s.Plane(depth_m=1.0, texture="gravel"), rig, noise=0.01, seed=5, shape=(140, 260)
    )
    found = TUNED.estimate(pair.left, pair.right, rig)
    assert found.valid.sum() > 1000
    assert np.nanmean(np.abs(found.depth_m - 1.0)) < 0.01


@pytest.mark.slow
def test_the_kept_rig_is_what_tuning_gives():
    kept, made = (one.calibration for one in (tuned_rig(), tuned_twin().rig))
    assert kept.virtual_baselines_m == made.virtual_baselines_m
    # By their values at the baselines used: coefficients of a cubic through a narrow range of
    # baselines depend on the rounding of the machine in the fourth digit, its values do not.
    for baseline_m in made.virtual_baselines_m:
        assert kept.a_m_px(baseline_m) == pytest.approx(made.a_m_px(baseline_m), rel=1e-6)
        assert kept.b_m(baseline_m) == pytest.approx(made.b_m(baseline_m), abs=1e-6)
    assert kept.tuned == made.tuned
