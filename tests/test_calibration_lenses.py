"""benchmarks/calibration_lenses.py: figures of typical lenses, and their tables."""

import math
import sys

import numpy as np
import pytest

import d3s
from calibrations import calibration as calibration_of
from d3s.optics.information import depth_bound_map
from d3s.rig import LensMaps
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import calibration_field
import lens_figures
from calibration_field import Camera


def test_range_of_accurate_depths_is_interpolated():
    near, far = lens_figures.accurate_range_m([2.0, 0.0, 0.1, 0.1, 0.5, 1.5])
    assert near == pytest.approx(0.325, abs=0.002)
    assert far == pytest.approx(1.65, abs=0.002)
    assert all(map(math.isnan, lens_figures.accurate_range_m([2.0] * 6)))


def test_bound_of_views_of_equal_blur_is_that_of_a_pair():
    shape, depth_m = (90, 180), 0.85
    rig = d3s.Rig.paper_prototype()
    pair = d3s.simulate(d3s.Plane(depth_m=depth_m, texture="gravel"), rig, shape=shape)
    optics = rig.optics
    expected = depth_bound_map(
        pair.left,
        pair.right,
        depth_m,
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
        disparity_offset_px=optics.disparity_offset_px,
        alpha_px2_m=0.0,
        noise_sigma=0.01,
        window_px=31,
    ).stereo_m
    views = calibration_of(
        crop_rows_px=shape[0], crop_cols_px=shape[1], noise_read=0.01, noise_gain=0.0
    )
    camera = Camera.of(rig.replace(calibration=views))
    disparity = camera.disparity_px(depth_m)
    larger, found = calibration_field._bounds_m(camera, (pair.left, pair.right), depth_m, disparity)
    inside = np.isfinite(expected)
    np.testing.assert_allclose(found[inside], expected[inside], rtol=0.05)
    assert (larger[inside] <= found[inside]).all()


def test_noise_of_a_view_is_larger_where_a_lens_is_dark():
    lenses = LensMaps(field_radius_px=100.0, illumination_left=(0.5,), illumination_right=(0.5,))
    views = calibration_of(noise_read=0.01, noise_gain=0.0, lenses=lenses)
    camera = Camera.of(d3s.Rig.paper_prototype().replace(calibration=views))
    flat = np.full((61, 81), 0.4, dtype=np.float32)
    np.testing.assert_allclose(camera.noise((flat, flat)), 0.02)
