"""OpenCV's matchers behind our call: correct depths, and none where there is no match."""

import numpy as np
import pytest
from skimage.data import stereo_motorcycle

import d3s
from d3s.errors import InputError, OptionsError
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
def test_sigma_by_hand(method, one_metre):
    options = {"disparity_sigma_px": 0.3}
    result = d3s.estimate(one_metre.left, one_metre.right, RIG, method=method, options=options)
    row, col = np.argwhere(result.valid)[1000]
    # s0 B / p = 23.232 px m; rounding to sixteenths has a standard deviation of 0.01804 px.
    expected = np.hypot(0.3, 0.01804) * result.depth_m[row, col] ** 2 / 23.232
    assert result.sigma_m[row, col] == pytest.approx(expected, rel=1e-4)


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


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (SgbmOptions, {"block_size_px": 4}, "must be odd: a window has a pixel at its centre. Try"),
        (SgbmOptions, {"p1": 500, "p2": 100}, "p2=100 must be above p1=500."),
        (BmOptions, {"block_size_px": 3}, "block_size_px=3 must be at least 5"),
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
