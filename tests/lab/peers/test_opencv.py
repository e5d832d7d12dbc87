"""OpenCV's matchers behind our call: correct depths, and flags where there is no match."""

import numpy as np
import pytest
from skimage.data import stereo_motorcycle

import d3s
from d3s.errors import InputError, OptionsError
from d3s.estimate import Flag
from d3s.lab.peers.opencv import BmOptions, SgbmOptions

RIG = d3s.Rig.paper_prototype()
PEERS = ("sgbm", "bm")


def plane(depth_m, texture="stone", shape=(120, 320)):
    return d3s.simulate(d3s.Plane(depth_m=depth_m, texture=texture), RIG, noise=0.01, shape=shape)


@pytest.fixture(scope="module")
def one_metre():
    return plane(1.0)


@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize("depth_m", [0.5, 1.0])
def test_depth_of_a_plane(method, depth_m):
    pair = plane(depth_m)
    result = d3s.estimate(pair.left, pair.right, RIG, method=method)
    seen = result.depth_m[20:-20, int(pair.disparity_px.max()) + 20 : -20]
    assert np.isfinite(seen).mean() > 0.95
    # Half of their pixel locking, a tenth of a pixel, plus noise.
    assert np.nanmedian(np.abs(seen - depth_m)) < 0.15 * depth_m**2 / 23.232
    assert result.method == method
    assert (result.confidence == result.valid).all()
    assert ((result.flags == 0) == result.valid).all()
    assert np.isnan(result.sigma_m[~result.valid]).all()


@pytest.mark.parametrize("method", PEERS)
def test_no_depth_where_the_match_lies_outside(method, one_metre):
    result = d3s.estimate(one_metre.left, one_metre.right, RIG, method=method)
    beyond = int(one_metre.disparity_px.min()) - 2
    assert not result.valid[:, :beyond].any()
    # Next to it there are depths; OpenCV itself gives none in columns 0 to 104.
    assert result.valid[30:-30, beyond + 40 : 100].mean() > 0.9


@pytest.mark.parametrize("method", PEERS)
def test_gain_and_offset_do_not_matter(method, one_metre):
    pair = one_metre
    plain = d3s.estimate(pair.left, pair.right, RIG, method=method).depth_m
    for gain, offset in ((4, 0), (0.25, 3), (65535, -100)):
        other = d3s.estimate(
            gain * pair.left + offset, gain * pair.right + offset, RIG, method=method
        ).depth_m
        # A few grey levels are rounded differently.
        assert np.mean(np.isclose(plain, other, atol=0.01, equal_nan=True)) > 0.99


@pytest.mark.parametrize("method", PEERS)
def test_sigma_by_hand(method, one_metre):
    options = {"disparity_sigma_px": 0.3}
    result = d3s.estimate(one_metre.left, one_metre.right, RIG, method=method, options=options)
    row, col = np.argwhere(result.valid)[1000]
    # s0 B / p = 23.232 px m; rounding to sixteenths has a standard deviation of 0.01804 px.
    expected = np.hypot(0.3, 0.01804) * result.depth_m[row, col] ** 2 / 23.232
    assert result.sigma_m[row, col] == pytest.approx(expected, rel=1e-4)


def test_rounding_can_be_taken_out(one_metre):
    left, right = one_metre.left, one_metre.right
    plain = d3s.estimate(left, right, RIG, method="bm", options={"rounding_px": 0.0}).depth_m
    less = d3s.estimate(left, right, RIG, method="bm", options={"rounding_px": 0.25}).depth_m
    gained = RIG.optics.disparity_px(plain) - RIG.optics.disparity_px(less)
    assert gained[60, 200] == pytest.approx(0.25, abs=1e-4)


def test_real_pair_with_ground_truth():
    """Sign, offset and scale: the Motorcycle of Middlebury 2014 at a quarter of its size."""
    left, right, disparity = stereo_motorcycle()
    rig = d3s.Rig.from_pinhole(
        focal_length_px=994.978, baseline_m=0.193001, disparity_offset_px=-31.086, name="motorcycle"
    )
    # Settings of OpenCV's manual for sharp images.
    options = SgbmOptions(block_size_px=5, p1=200, p2=800, prefilter_sigma_px=0.0)
    grey = [image.mean(axis=2) for image in (left, right)]
    result = d3s.estimate(*grey, rig, method="sgbm", options=options)
    truth_m = 994.978 * 0.193001 / (disparity + 31.086)
    both = np.isfinite(disparity) & result.valid
    assert both.sum() > 0.85 * np.isfinite(disparity).sum()
    assert np.median(np.abs(result.depth_m[both] / truth_m[both] - 1)) < 0.005
    error_px = np.abs(rig.optics.disparity_px(result.depth_m[both]) - disparity[both])
    assert np.median(error_px) < 0.2
    assert np.mean(error_px > 2) < 0.08


@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize(
    ("value", "flag"), [(0.0, Flag.LOW_TEXTURE), (0.7, Flag.LOW_TEXTURE), (np.nan, 2 | 8)]
)
def test_views_without_content_give_no_depth(method, value, flag):
    image = np.full((60, 200), value, dtype=np.float32)
    result = d3s.estimate(image, image, RIG, method=method)
    assert not result.valid.any()
    assert (result.flags == flag).all()


@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize("view", [0, 1])
def test_nan_pixel_is_flagged_in_its_window_only(method, view, one_metre):
    views = [one_metre.left.copy(), one_metre.right.copy()]
    column = 200 if view == 0 else round(200 - 23.232)
    views[view][60, column] = np.nan
    result = d3s.estimate(*views, RIG, method=method)
    assert result.flags[60, 200] & Flag.INVALID_INPUT
    rows, cols = np.nonzero(result.flags & Flag.INVALID_INPUT)
    assert np.ptp(rows) < 60
    assert np.ptp(cols) < 60
    # Far away nothing changes, except a little along the paths of sgbm.
    whole = d3s.estimate(one_metre.left, one_metre.right, RIG, method=method)
    away = np.ones(result.valid.shape, dtype=bool)
    away[rows.min() - 5 : rows.max() + 6, cols.min() - 5 : cols.max() + 6] = False
    same = np.isclose(whole.depth_m, result.depth_m, atol=0.01, equal_nan=True)
    assert same[away].mean() > 0.999


@pytest.mark.parametrize("method", PEERS)
def test_pair_with_negative_disparities(method):
    rng = np.random.default_rng(0)
    texture = rng.random((100, 240)).astype(np.float32)
    rig = d3s.Rig.from_pinhole(
        focal_length_px=1000.0, baseline_m=0.2, disparity_offset_px=-50.0, name="offset"
    )
    left, right = texture[:, 10:210], texture[:, 5:205]  # a point lies 5 px further right there
    options = {"depth_range_m": (3.0, 20.0), "prefilter_sigma_px": 0.7}
    result = d3s.estimate(left, right, rig, method=method, options=options)
    # 1000 * 0.2 / (-5 + 50)
    inside = result.depth_m[30:-30, 30:-30]
    assert np.nanmedian(inside) == pytest.approx(4.444, abs=0.02)
    assert np.isfinite(inside).mean() > 0.9


@pytest.mark.parametrize("method", PEERS)
def test_filters_can_be_switched_off(method):
    """As docs/evaluation.md says: no left-right check, uniqueness test or speckle filter."""
    unfiltered = {"disp12_max_diff_px": -1, "uniqueness_percent": 0, "speckle_window_px": 0}
    if method == "sgbm":
        unfiltered["block_size_px"] = (
            11  # with larger blocks its sums overflow where nothing matches
        )
    pair = d3s.simulate(d3s.RandomScene(seed=3), RIG, noise=0.02, shape=(160, 320))
    with_them = d3s.estimate(pair.left, pair.right, RIG, method=method)
    without = d3s.estimate(pair.left, pair.right, RIG, method=method, options=unfiltered)
    inner = np.s_[20:-20, 110:-20]
    assert without.valid[inner].mean() > 0.98
    assert with_them.valid[inner].mean() < without.valid[inner].mean() - 0.02
    checked = d3s.estimate(
        pair.left, pair.right, RIG, method=method, options=unfiltered | {"disp12_max_diff_px": 1}
    )
    assert checked.valid[inner].mean() < without.valid[inner].mean() - 0.001
    # The rejected pixels are worse than the kept ones.
    kept = with_them.valid & without.valid
    dropped = without.valid & ~with_them.valid
    error_m = np.abs(without.depth_m - pair.depth_m)
    assert error_m[dropped].mean() > 3 * error_m[kept].mean()


@pytest.mark.parametrize("method", PEERS)
def test_depths_outside_the_range_are_rejected(method, one_metre):
    options = {"depth_range_m": (0.3, 0.7)}
    result = d3s.estimate(one_metre.left, one_metre.right, RIG, method=method, options=options)
    assert not (result.depth_m > 0.73).any()
    by_list = d3s.estimate(
        one_metre.left, one_metre.right, RIG, method=method, options={"candidates_m": (0.3, 0.7)}
    )
    assert np.array_equal(result.depth_m, by_list.depth_m, equal_nan=True)


@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 300), (40, 9), (200, 7)])
def test_frames_too_small_for_a_match(method, shape):
    image = np.random.default_rng(1).random(shape).astype(np.float32)
    result = d3s.estimate(image, image, RIG, method=method)
    assert result.depth_m.shape == shape
    assert not result.valid.any() or shape == (3, 300)


def test_same_bytes_again(one_metre):
    for method in PEERS:
        one, two = (
            d3s.estimate(one_metre.left, one_metre.right, RIG, method=method) for _ in range(2)
        )
        assert one.depth_m.tobytes() == two.depth_m.tobytes()


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (SgbmOptions, {"block_size_px": 4}, "must be odd: a window has a pixel at its centre. Try"),
        (SgbmOptions, {"p1": 500, "p2": 100}, "p2=100 must be above p1=500."),
        (SgbmOptions, {"p1": 100_000}, "must be above p1=100000."),
        (SgbmOptions, {"mode": "full"}, "mode='full' must be 'sgbm', 'hh', '3way' or 'hh4'."),
        (BmOptions, {"block_size_px": 3}, "block_size_px=3 must be at least 5"),
        (BmOptions, {"pre_filter_cap": 64}, "pre_filter_cap=64 must be at most 63"),
        (BmOptions, {"blocksize": 9}, "blocksize is unknown. Did you mean block_size_px?"),
    ],
)
def test_wrong_options_are_refused(kind, values, words):
    with pytest.raises(OptionsError) as caught:
        kind(**values)
    assert words in str(caught.value)


def test_range_beyond_opencv_is_refused():
    image = np.random.default_rng(2).random((40, 5000)).astype(np.float32)
    with pytest.raises(InputError, match="Narrow the range in the options"):
        d3s.estimate(image, image, RIG, method="bm", options={"depth_range_m": (0.005, 1.0)})
