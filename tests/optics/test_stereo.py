"""Two-view geometry, with numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3s.optics import stereo

PROTOTYPE = {"focal_length_px": 6050.0, "baseline_m": 3.84e-3}
MIDDLEBURY = {
    "focal_length_px": 994.978,
    "baseline_m": 0.193001,
    "disparity_offset_px": -31.086,
}


def test_disparity_of_the_prototype():
    # 6050 * 0.00384 = 23.232 px m
    disparity = stereo.disparity_px([1.0, 0.25, np.inf], disparity_offset_px=0.0, **PROTOTYPE)
    np.testing.assert_allclose(disparity, [23.232, 92.928, 0.0])


def test_offset_has_the_turned_sign_of_middleburys_doffs():
    # Z = B f / (d + doffs) with doffs = 31.086: d = 0 lies at 192.0316 / 31.086 = 6.17743 m.
    assert stereo.depth_from_disparity_m(0.0, **MIDDLEBURY) == pytest.approx(6.17743, abs=1e-5)


@given(st.floats(0.05, 50), st.floats(-40, 40))
def test_depth_comes_back_from_disparity(depth, offset):
    there = stereo.disparity_px(depth, disparity_offset_px=offset, **PROTOTYPE)
    back = stereo.depth_from_disparity_m(there, disparity_offset_px=offset, **PROTOTYPE)
    assert back == pytest.approx(depth, rel=1e-9)


def test_slope_is_the_derivative():
    h = 1e-5
    ahead = stereo.disparity_px(0.7 + h, disparity_offset_px=3.0, **PROTOTYPE)
    behind = stereo.disparity_px(0.7 - h, disparity_offset_px=3.0, **PROTOTYPE)
    slope = stereo.disparity_slope_px_per_m(0.7, **PROTOTYPE)
    assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-8)


def test_alignment_leaves_the_virtual_baseline():
    # At 1 m a virtual baseline of 0.5 mm leaves 6050 * 0.0005 = 3.025 px of the 23.232 px.
    line = {"disparity_offset_px": 0.0, **PROTOTYPE}
    assert stereo.alignment_shift_px(1.0, 0.5e-3, **line) == pytest.approx(23.232 - 3.025)
    assert stereo.alignment_shift_px(1.0, 0.0, **line) == pytest.approx(23.232)
    assert stereo.alignment_shift_px(1.0, 3.84e-3, **line) == pytest.approx(0.0, abs=1e-12)


def test_edges_of_the_range_are_infinite_not_warnings():
    assert stereo.depth_from_disparity_m(-0.0, disparity_offset_px=0.0, **PROTOTYPE) == np.inf
    assert stereo.depth_error_m(0.1, np.inf, **PROTOTYPE) == np.inf
    assert stereo.disparity_error_px(0.1, np.inf, **PROTOTYPE) == 0
    assert stereo.farthest_depth_m(0.01, 0.0, **PROTOTYPE) == np.inf


def test_error_conversion_by_hand():
    # 0.1 px at 1 m: 0.1 / 23.232 = 4.3044 mm; four times as much at 2 m.
    assert stereo.depth_error_m(0.1, 1.0, **PROTOTYPE) == pytest.approx(4.30441e-3, rel=1e-5)
    assert stereo.depth_error_m(0.1, 2.0, **PROTOTYPE) == pytest.approx(17.21763e-3, rel=1e-5)


@given(st.floats(1e-3, 1), st.floats(0.1, 10))
def test_error_conversions_are_inverse(error_px, depth):
    error_m = stereo.depth_error_m(error_px, depth, **PROTOTYPE)
    assert stereo.disparity_error_px(error_m, depth, **PROTOTYPE) == pytest.approx(error_px)
    assert stereo.farthest_depth_m(error_m, error_px, **PROTOTYPE) == pytest.approx(depth)
