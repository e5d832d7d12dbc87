"""The tuned twin: it carries what was tuned, and works with it on another texture."""

from functools import cache

import numpy as np
import pytest

import d3s
from d3s.lab.evaluate.cameras import tuned_rig, tuned_twin
from d3s.lab.reproduce.protocol import TUNED, consecutive

TINY_DEPTHS_M = (0.35, 0.45, 0.6, 0.75, 0.9, 1.1, 1.3, 1.6)


@cache
def twin():
    return tuned_twin(depths_m=TINY_DEPTHS_M, shape=(210, 420))


def test_the_rig_carries_what_was_found():
    calibration = twin().rig.calibration
    assert calibration.virtual_baselines_m == twin().baselines.chosen.virtual_baselines_m
    assert calibration.a_cubic_m_px == twin().tuning.a_cubic.coefficients
    line = twin().tuning.line_at(5e-4)
    assert float(calibration.a_m_px(5e-4)) == line.a_m_px
    assert float(calibration.b_m(5e-4)) == line.b_m
    assert d3s.Rig(**twin().rig.model_dump(mode="json", exclude_none=True)) == twin().rig


def test_tuned_on_one_texture_it_is_right_on_another():
    rig = twin().rig
    pair = d3s.simulate(
        d3s.Plane(depth_m=1.0, texture="gravel"), rig, noise=0.01, seed=5, shape=(140, 260)
    )
    found = TUNED.estimate(pair.left, pair.right, rig)
    assert found.valid.sum() > 1000
    assert np.nanmean(np.abs(found.depth_m - 1.0)) < 0.01


def test_progress_of_works_consecutive():
    told = []
    first, second = consecutive(lambda done, all_of_it: told.append((done, all_of_it)), (3, 2))
    first(1, 3)
    first(3, 3)
    second(1, 2)
    second(2, 2)
    assert told == [(1, 5), (3, 5), (4, 5), (5, 5)]
    assert consecutive(None, (3, 2)) == [None, None]


def test_the_kept_rig_is_the_prototype_and_finds_depth():
    rig = tuned_rig()
    assert rig.optics == d3s.Rig.paper_prototype().optics
    pair = d3s.simulate(
        d3s.Plane(depth_m=1.2, texture="gravel"), rig, noise=0.01, seed=5, shape=(140, 260)
    )
    found = TUNED.estimate(pair.left, pair.right, rig)
    assert np.nanmean(np.abs(found.depth_m - 1.2)) < 0.01


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
