"""Variance of the disparity by errors of a calibration, over the field and the vergence."""

import numpy as np
import pytest

import d3s
from d3s.rig import LensMaps

OPTICS = d3s.Rig.paper_prototype().optics
LENSES = LensMaps(
    field_radius_px=400.0,
    disparity_sigma_px=0.02,
    edge_sigma_px=0.05,
    scale_sigma=0.001,
    # A slope over the field that falls with 1/Z, and an error of the distances.
    disparity_errors_px=(((0.0, 0.03, -0.01), (0.0, -0.01, 0.0)), ((0.04,), (0.0,), (-0.01,))),
)


def test_variance_is_the_sum_of_squares():
    rng = np.random.default_rng(0)
    x, y, u = rng.uniform(-1, 1, 50), rng.uniform(-1, 1, 50), rng.uniform(0.4, 4, 50)
    per_dpt_px = OPTICS.focal_length_px * OPTICS.baseline_m
    parts = (
        0.02 + 0 * x,
        0.05 * (x**2 + y**2),
        0.001 * per_dpt_px * u,
        0.03 * x - 0.01 * y - 0.01 * u * x,
        0.04 - 0.01 * u**2,
    )
    expected = sum(part**2 for part in parts)
    np.testing.assert_allclose(LENSES.disparity_variance(OPTICS).at(x, y, u), expected, rtol=1e-9)


def test_what_is_left_everywhere_may_be_larger():
    found = LENSES.disparity_variance(OPTICS, 0.3).at(0.2, 0.1, 1.0)
    known = LENSES.disparity_variance(OPTICS).at(0.2, 0.1, 1.0)
    assert found - known == pytest.approx(0.3**2 - 0.02**2)


def test_pixels_are_counted_from_the_middle():
    variance = LENSES.disparity_variance(OPTICS)
    u = np.random.default_rng(1).uniform(0.5, 2, (5, 9))
    over = variance.over(u)
    assert over.shape == (5, 9)
    assert over[2, 4] == pytest.approx(float(variance.at(0.0, 0.0, u[2, 4])))
    assert over[0, 8] == pytest.approx(float(variance.at(4 / 400, -2 / 400, u[0, 8])))
