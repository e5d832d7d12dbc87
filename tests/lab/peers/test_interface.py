"""Interface that every method of the table must keep, ours and the rivals."""

from functools import cache

import numpy as np
import pytest

import d3s
from d3s.estimate import Flag, Options
from d3s.estimate.methods import methods

RIG = d3s.Rig.paper_prototype()
SHAPE = (90, 190)
DEPTH_M = 0.6  # 39 px of disparity
HOLE = (45, 125)
RADIUS_PX = 62  # half a window of 41 px and a Gaussian of 10 px: the widest of all methods

# On an easy plane these are exact to 0.1 px of disparity nearly everywhere. Of other methods 1 px
# is required, and a depth for half of the pixels.
EXACT = ("joint", "sgbm", "bm", "phase", "li2010", "takeda2013")
# At 0.6 m differential defocus is exact to a few centimetres, and a pixel is 1.5 cm. Keypoints are
# few. The consensus chooses among discrete candidates.
TOLERANCE_PX = dict.fromkeys(EXACT, 0.1) | {"guo2017": 2.5, "consensus": 2.0}
LEAST_SHARE = dict.fromkeys(EXACT, 0.9) | {"sift": 1e-3, "consensus": 0.3}

ALL = pytest.mark.parametrize("method", methods())


@cache
def plane():
    scene = d3s.Plane(depth_m=DEPTH_M, texture="leaves")
    return d3s.simulate(scene, RIG, noise=0.005, shape=SHAPE)


@cache
def found(method):
    return d3s.estimate(plane().left, plane().right, RIG, method=method)


def assert_consistent(result, shape):
    for name in ("depth_m", "sigma_m", "confidence"):
        values = getattr(result, name)
        assert values.shape == shape
        assert values.dtype == np.float32
    assert result.flags.shape == shape
    assert result.flags.dtype == np.uint16
    assert (result.flags < 2 * max(Flag)).all()
    has_depth = (result.flags & ~np.uint16(Flag.CARRIED)) == 0  # CARRIED is a remark
    assert np.array_equal(has_depth, np.isfinite(result.depth_m))
    assert np.array_equal(has_depth, np.isfinite(result.sigma_m))
    assert (result.depth_m[has_depth] > 0).all()
    assert (result.sigma_m[has_depth] >= 0).all()
    assert ((result.confidence >= 0) & (result.confidence <= 1)).all()


@ALL
def test_result_is_complete(method):
    result = found(method)
    assert_consistent(result, SHAPE)
    assert result.method == method
    assert result.rig == RIG
    assert isinstance(result.options, Options)
    assert result.timings_s


@ALL
def test_textured_plane_is_found(method):
    result = found(method)
    searched = np.zeros(SHAPE, dtype=bool)
    searched[25:-25, 65:-25] = True
    seen = result.depth_m[searched & result.valid]
    assert seen.size >= LEAST_SHARE.get(method, 0.5) * searched.sum()
    error_px = np.abs(RIG.optics.disparity_px(seen) - RIG.optics.disparity_px(DEPTH_M))
    assert np.median(error_px) < TOLERANCE_PX.get(method, 1.0)


@ALL
def test_same_bytes_again(method):
    again = d3s.estimate(plane().left, plane().right, RIG, method=method)
    for name in ("depth_m", "sigma_m", "confidence", "flags"):
        assert getattr(again, name).tobytes() == getattr(found(method), name).tobytes()


@ALL
@pytest.mark.parametrize("value", [0.0, 0.7, np.nan], ids=["black", "grey", "NaN"])
def test_views_without_content_give_no_depth(method, value):
    image = np.full(SHAPE, value, dtype=np.float32)
    result = d3s.estimate(image, image, RIG, method=method)
    assert_consistent(result, SHAPE)
    assert not result.valid.any()


@ALL
def test_black_half_has_no_depth(method):
    left, right = plane().left.copy(), plane().right.copy()
    left[:, 95:] = right[:, 95 - 39 :] = 0.0
    result = d3s.estimate(left, right, RIG, method=method)
    assert_consistent(result, SHAPE)
    # Beyond the window and the blur of the textured half.
    assert not result.valid[:, 165:].any()


@ALL
@pytest.mark.parametrize("view", [0, 1], ids=["left", "right"])
def test_nan_pixel_affects_its_surroundings_only(method, view):
    """The inputs are not changed."""
    views = [plane().left.copy(), plane().right.copy()]
    row, column = HOLE[0], HOLE[1] - (39 if view == 1 else 0)
    views[view][row, column] = np.nan
    before = [one.tobytes() for one in views]
    result = d3s.estimate(*views, RIG, method=method)
    assert [one.tobytes() for one in views] == before
    assert_consistent(result, SHAPE)
    assert not result.valid[HOLE]
    if view == 0:
        assert result.flags[HOLE] & Flag.INVALID_INPUT
    whole = found(method)
    away = np.ones(SHAPE, dtype=bool)
    away[:, HOLE[1] - RADIUS_PX : HOLE[1] + RADIUS_PX + 1] = False
    same = np.isclose(result.depth_m, whole.depth_m, rtol=1e-3, equal_nan=True)
    assert same[away].mean() > 0.99


@ALL
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 60), (60, 5), (17, 40)])
def test_tiny_frames(method, shape):
    image = np.random.default_rng(1).random(shape).astype(np.float32)
    assert_consistent(d3s.estimate(image, image, RIG, method=method), shape)


@ALL
def test_gain_and_offset_do_not_matter(method):
    result = d3s.estimate(100 * plane().left - 7, 100 * plane().right - 7, RIG, method=method)
    same = np.isclose(result.depth_m, found(method).depth_m, rtol=0.01, equal_nan=True)
    assert same.mean() > 0.98


@ALL
def test_range_is_kept(method):
    options = {"depth_range_m": (0.3, 0.45)}
    result = d3s.estimate(plane().left, plane().right, RIG, method=method, options=options)
    assert_consistent(result, SHAPE)
    # One pixel of disparity beyond the range, the margin at its ends.
    assert not (result.depth_m > 0.46).any()
