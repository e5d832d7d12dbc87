"""`DepthMap`: fields, properties and filter."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_filter_without_a_threshold_changes_nothing(assert_same_bytes):
    assert_same_bytes(_made().filter(), _made())


def test_filter_by_confidence():
    kept = _made().filter(min_confidence=0.7)
    np.testing.assert_array_equal(kept.depth_m, np.float32([[1, NAN, 3], [4, NAN, NAN]]))
    np.testing.assert_array_equal(kept.flags, [[0, 256, 0], [0, 256, 1]])


def test_filter_by_sigma():
    kept = _made().filter(max_sigma_m=0.025)
    np.testing.assert_array_equal(kept.depth_m, np.float32([[1, 2, NAN], [NAN, NAN, NAN]]))
    np.testing.assert_array_equal(kept.sigma_m, np.float32([[0.01, 0.02, NAN], [NAN, NAN, NAN]]))
    np.testing.assert_array_equal(kept.flags, [[0, 0, 512], [512, 256, 1]])


def test_filter_by_both_flags_the_first_that_failed():
    kept = _made().filter(min_confidence=0.75, max_sigma_m=0.025)
    np.testing.assert_array_equal(kept.flags, [[0, 256, 512], [256, 256, 1]])


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


_shares = st.floats(0, 1)


@given(low=_shares, more=_shares, wide=_shares, less=_shares)
def test_filter_is_monotone(low, more, wide, less):
    made = _made()
    one = made.filter(min_confidence=low, max_sigma_m=wide / 10)
    two = one.filter(min_confidence=max(low, more), max_sigma_m=min(wide, less) / 10)
    assert (two.valid <= one.valid).all()
    direct = made.filter(min_confidence=max(low, more), max_sigma_m=min(wide, less) / 10)
    np.testing.assert_array_equal(two.depth_m, direct.depth_m)
    for kept in (one, two, direct):
        np.testing.assert_array_equal(kept.valid, kept.flags == 0)


def test_filter_of_an_estimated_depth_map(plane, assert_explained):
    pair = plane(1.0)
    found = d3s.estimate(pair.left, pair.right, pair.rig)
    middle = float(np.nanmedian(found.sigma_m))
    kept = found.filter(max_sigma_m=middle)
    assert_explained(kept)
    assert kept.density == pytest.approx(found.density / 2, rel=0.01)
    assert ((kept.flags & Flag.LARGE_SIGMA) != 0).sum() == found.valid.sum() - kept.valid.sum()


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


@pytest.mark.parametrize("value", [-0.1, 1.1, NAN, "high", [0.5, 0.6], 1j])
def test_filter_rejects_wrong_confidence(value):
    with pytest.raises(InputError, match=r"min_confidence=.* must be a number from 0 to 1\."):
        _made().filter(min_confidence=value)


@pytest.mark.parametrize("value", [-0.1, NAN, "1 cm", [0.5, 0.6]])
def test_filter_rejects_wrong_sigma(value):
    with pytest.raises(InputError, match=r"max_sigma_m=.* must be a number from 0 up, in metres"):
        _made().filter(max_sigma_m=value)


def test_depth_map_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        _made().depth_m = np.zeros((2, 3), dtype=np.float32)
