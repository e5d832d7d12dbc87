"""Texture and surfaces around cells, and the mean along surfaces."""

import numpy as np
import pytest

from d3s.dense.average import average_surfaces
from d3s.dense.evidence import surroundings_of, texture_of


def step(rows=40, cols=60):
    """View with one edge between columns 29 and 30, in units of contrast."""
    guide = np.zeros((rows, cols, 1), np.float32)
    guide[:, 30:] = 20
    return guide


def test_texture_is_aside_beside_an_edge_and_not_on_it():
    fine, middle, _, aside, far_aside = np.moveaxis(texture_of(step()), -1, 0)
    on, beside = (20, 30), (20, 25)
    assert aside[on] < 0.2 < 0.7 < aside[beside]
    assert far_aside[20, 18] > 0.7
    assert fine[beside] < middle[beside] < fine[on]


def test_even_texture_is_not_aside():
    guide = np.random.default_rng(0).normal(0, 5, (40, 60, 1)).astype(np.float32)
    assert np.median(texture_of(guide)[15:-15, 15:-15, 3:]) < 0.15


def test_surroundings_hold_the_nearest_and_farthest_surface():
    disparity = np.full((40, 200), np.nan, np.float32)
    disparity[20, 20], disparity[20, 25] = 10, 30
    found = surroundings_of(disparity, np.zeros((40, 200, 1), np.float32))
    assert found[20, 22, :4].tolist() == [10, 30, 10, 30]
    assert np.isnan(found[20, 150, :4]).all()
    assert found[20, 40, 2:4].tolist() == [10, 30]
    assert np.isnan(found[20, 40, 0])


def test_what_differs_from_the_evidence_beside_it_is_unlike():
    guide = step()
    disparity = np.where(np.arange(60) < 30, 10, np.nan) * np.ones((40, 1))
    found = surroundings_of(disparity.astype(np.float32), guide)
    assert found[20, 27, 4] == pytest.approx(0, abs=1e-3)
    assert found[20, 32, 4] == pytest.approx(np.log1p(20), rel=1e-3)


def test_mean_runs_along_a_surface_and_stops_at_an_edge():
    rng = np.random.default_rng(0)
    true = np.where(np.arange(60) < 30, 10.0, 20.0) * np.ones((40, 1))
    noisy = (true + rng.normal(0, 0.5, true.shape)).astype(np.float32)
    noisy[10:15, 5:10] = np.nan
    found = average_surfaces(step(), noisy, np.ones_like(noisy))
    assert np.abs(found - true).max() < 0.3
    assert np.std(found - true) < 0.15 * 0.5


def test_what_weighs_nothing_does_not_count():
    disparity = np.full((20, 30), 10, np.float32)
    disparity[:, 15:] = 50
    weight = np.where(np.arange(30) < 15, 1, 0) * np.ones((20, 1))
    found = average_surfaces(
        np.zeros((20, 30, 1), np.float32), disparity, weight.astype(np.float32)
    )
    assert np.allclose(found, 10, rtol=1e-4)
