"""Spatial filter: smoother on a surface, no blend across a jump, sigma does not fall."""

import numpy as np
import pytest

from d3s.errors import InputError
from d3s.lab.dense import smooth
from depth_maps import made_depth_map


def test_noise_falls_and_sigma_does_not():
    noisy = 1.0 + np.random.default_rng(0).normal(0, 0.01, (60, 80))
    found = made_depth_map(noisy)
    smoothed = smooth(found)
    assert smoothed.depth_m.std() < 0.35 * found.depth_m.std()
    assert np.median(smoothed.sigma_m) == pytest.approx(0.01, rel=0.05)


def test_a_jump_stays_and_holes_stay():
    depth_m = np.full((30, 40), 1.5)
    depth_m[:, :20] = 0.8
    depth_m[5:8, 5:8] = np.nan
    smoothed = smooth(made_depth_map(depth_m), radius_px=3)
    assert np.array_equal(np.isnan(smoothed.depth_m), np.isnan(depth_m))
    assert np.nanmax(np.abs(smoothed.depth_m - depth_m)) < 1e-3


@pytest.mark.parametrize("radius_px", [0, 1.5])
def test_wrong_radius_is_named(radius_px):
    with pytest.raises(InputError, match="radius_px="):
        smooth(made_depth_map(np.ones((10, 10))), radius_px=radius_px)
