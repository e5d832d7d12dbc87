"""`DepthMap`: fields, properties and filter."""

import dataclasses

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.estimate.flags import Flag

NAN = np.nan


def _made() -> d3s.DepthMap:
    return d3s.DepthMap(
        depth_m=np.array([[1, 2, 3], [4, NAN, NAN]], dtype=np.float32),
        sigma_m=np.array([[0.01, 0.02, 0.03], [0.04, NAN, NAN]], dtype=np.float32),
        confidence=np.array([[0.9, 0.6, 0.8], [0.7, 0.1, 0.95]], dtype=np.float32),
        flags=np.array([[0, 0, 0], [0, 256, 1]], dtype=np.uint16),
        rig=d3s.Rig.paper_prototype(),
        method="by hand",
        options=d3s.JointOptions(),
        warnings=("a warning",),
        timings_s={"all": 1.0},
    )


def test_valid_and_density():
    made = _made()
    np.testing.assert_array_equal(made.valid, [[True, True, True], [True, False, False]])
    assert made.density == pytest.approx(4 / 6)


def test_disparity_by_hand():
    rig = d3s.Rig.from_pinhole(focal_length_px=1000.0, baseline_m=0.1, disparity_offset_px=-20.0)
    made = dataclasses.replace(_made(), rig=rig)
    # f B = 100 px m: 100 / Z - 20, and sigma times 100 / Z²
    expected = [[80, 30, 100 / 3 - 20], [5, NAN, NAN]]
    np.testing.assert_allclose(made.disparity_px, expected, rtol=1e-6)
    np.testing.assert_allclose(made.sigma_px, [[1.0, 0.5, 1 / 3], [0.25, NAN, NAN]], rtol=1e-5)
    assert made.disparity_px.dtype == made.sigma_px.dtype == np.float32


def test_filter_by_confidence():
    kept = _made().filter(min_confidence=0.7)
    np.testing.assert_array_equal(kept.depth_m, np.float32([[1, NAN, 3], [4, NAN, NAN]]))
    np.testing.assert_array_equal(kept.flags, [[0, 256, 0], [0, 256, 1]])


def test_filter_by_sigma():
    kept = _made().filter(max_sigma_m=0.025)
    np.testing.assert_array_equal(kept.depth_m, np.float32([[1, 2, NAN], [NAN, NAN, NAN]]))
    np.testing.assert_array_equal(kept.sigma_m, np.float32([[0.01, 0.02, NAN], [NAN, NAN, NAN]]))
    np.testing.assert_array_equal(kept.flags, [[0, 0, 512], [512, 256, 1]])


def test_filter_leaves_the_original_and_other_fields_unchanged():
    made = _made()
    kept = made.filter(min_confidence=1.0, max_sigma_m=0.0)
    assert kept.density == 0
    assert made.density > 0
    np.testing.assert_array_equal(made.flags, _made().flags)
    for name in ("rig", "method", "options", "warnings", "timings_s"):
        assert getattr(kept, name) == getattr(made, name)
    np.testing.assert_array_equal(kept.confidence, made.confidence)
    assert kept.depth_m.dtype == kept.sigma_m.dtype == np.float32


def test_filter_keeps_carried_depths_unless_told_otherwise(assert_same_bytes):
    remarks = np.array([[0, Flag.CARRIED, 0], [0, 256 | Flag.CARRIED, 1]], dtype=np.uint16)
    made = dataclasses.replace(_made(), flags=remarks)
    assert_same_bytes(made.filter(), made)
    strict = made.filter(min_confidence=0.7)
    np.testing.assert_array_equal(strict.flags, [[0, 256 | Flag.CARRIED, 0], [0, 1280, 1]])
    kept = made.filter(carried=False)
    np.testing.assert_array_equal(kept.depth_m, np.float32([[1, NAN, 3], [4, NAN, NAN]]))
    np.testing.assert_array_equal(kept.sigma_m, np.float32([[0.01, NAN, 0.03], [0.04, NAN, NAN]]))
    np.testing.assert_array_equal(kept.flags, remarks)


@pytest.mark.parametrize("value", [-0.1, NAN, "high", [0.5, 0.6]])
def test_filter_rejects_wrong_limits(value):
    with pytest.raises(InputError, match=r"min_confidence=.* must be a number from 0 to 1\."):
        _made().filter(min_confidence=value)
    with pytest.raises(InputError, match=r"max_sigma_m=.* must be a number from 0 up, in metres"):
        _made().filter(max_sigma_m=value)
