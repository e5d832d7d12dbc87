"""Texture and surfaces around cells, and the mean along surfaces."""

import numpy as np
import pytest

from d3s.lab.dense.evidence import surroundings_of


def step(rows=40, cols=60):
    """View with one edge between columns 29 and 30, in units of contrast."""
    guide = np.zeros((rows, cols, 1), np.float32)
    guide[:, 30:] = 20
    return guide


def test_surroundings_hold_the_nearest_and_farthest_surface():
    disparity = np.full((40, 200), np.nan, np.float32)
    disparity[20, 20], disparity[20, 25] = 10, 30
    found = surroundings_of(disparity, np.zeros((40, 200, 1), np.float32))
    assert found[:4, 20, 22].tolist() == [10, 30, 10, 30]
    assert np.isnan(found[:4, 20, 150]).all()
    assert found[2:4, 20, 40].tolist() == [10, 30]
    assert np.isnan(found[0, 20, 40])


def test_what_differs_from_the_evidence_beside_it_is_unlike():
    guide = step()
    disparity = np.where(np.arange(60) < 30, 10, np.nan) * np.ones((40, 1))
    found = surroundings_of(disparity.astype(np.float32), guide)
    assert found[4, 20, 27] == pytest.approx(0, abs=1e-3)
    assert found[4, 20, 32] == pytest.approx(np.log1p(20), rel=1e-3)
