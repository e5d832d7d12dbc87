"""The balance of contrast: sharp views of unlike exposure become alike, all others stay."""

import numpy as np
import pytest
from scipy import ndimage

import d3s
from d3s.estimate.joint.balance import balance_contrast
from d3s.estimate.joint.plan import make_plan

PINHOLE = d3s.Rig.from_pinhole(focal_length_px=500, baseline_m=0.1)
SHIFT = 6
SHAPE = (240, 337)  # no multiple of the blocks


def _plan(rig: d3s.Rig = PINHOLE, shape=SHAPE, **options):
    options = {"depth_range_m": (4.0, 20.0), **options}
    return make_plan(rig.optics, d3s.JointOptions(**options), shape)


def _texture(shape=SHAPE, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (0.2 * ndimage.gaussian_filter(rng.normal(size=shape), 0.7)).astype(np.float32)


def _pair(shape=SHAPE, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    wide = _texture((shape[0], shape[1] + SHIFT), seed)
    return wide[:, : shape[1]].copy(), wide[:, SHIFT:].copy()


def _balanced(left, right, start=None, plan=None) -> tuple[np.ndarray, np.ndarray]:
    plan = plan or _plan(shape=left.shape)
    start = np.full(left.shape, SHIFT, np.float32) if start is None else start
    return balance_contrast({1: (left, right)}, start, plan)[1]


@pytest.mark.parametrize("gain", [0.3, 0.6, 0.9, 1.5, 3.0])
@pytest.mark.parametrize("offset", [0.0, 0.05])
def test_a_gain_is_recovered(gain, offset):
    left, right = _pair()
    seen = np.float32(gain) * right + np.float32(offset)
    same, found = _balanced(left, seen)
    assert same is left
    assert found.dtype == np.float32
    # Each block and its neighbours have 9 * 24² samples: their contrast is known to 1 or 2 %.
    np.testing.assert_allclose(found / seen, 1 / gain, rtol=0.03)


def test_the_gain_is_that_of_the_right_view_at_the_match():
    # Texture of the left half is seen in the right half of the other view, with a gain of 0.6.
    shape = (96, 480)
    left = _texture(shape)
    right = np.roll(left, 192, axis=1)
    right[:, 240:] *= np.float32(0.6)
    _, found = _balanced(left, right, np.full(shape, -192, np.float32), _plan(shape=shape))
    np.testing.assert_allclose((found / right)[:, 340:440], 1 / 0.6, rtol=0.03)


@pytest.mark.parametrize("gain", [1.0, 0.96, 1.04])
def test_equal_views_stay_as_they_are(gain):
    left, right = _pair()
    right *= np.float32(gain)
    levels = {1: (left, right)}
    start = np.full(SHAPE, SHIFT, np.float32)
    assert balance_contrast(levels, start, _plan()) is levels


def test_views_with_lenses_stay_as_they_are():
    # Their blur differs, and with it the contrast.
    left, right = _pair((120, 168))
    levels = {2: (left, np.float32(0.6) * right)}
    start = np.full((120, 168), 2 * SHIFT, np.float32)
    plan = make_plan(d3s.Rig.paper_prototype().optics, d3s.JointOptions(), (240, 336))
    assert balance_contrast(levels, start, plan) is levels


def test_where_nothing_is_known_nothing_changes():
    flat = np.zeros(SHAPE, np.float32)
    assert _balanced(flat, flat)[1] is flat
    left, right = _pair()
    assert _balanced(left, flat)[1] is flat
    # Every match is out of the frame.
    right *= np.float32(0.6)
    assert _balanced(left, right, np.full(SHAPE, 1e4, np.float32))[1] is right


# The whole estimate -------------------------------------------------------------------------------


def _views() -> tuple[np.ndarray, np.ndarray]:
    """A plane at a disparity of 6 px, in views of brightness 0.1 to 0.9."""
    left, right = (np.clip(0.5 + 1.5 * view, 0.1, 0.9) for view in _pair((120, 200)))
    return left, right


def _estimate(left, right) -> d3s.DepthMap:
    return d3s.estimate(left, right, PINHOLE, options=d3s.JointOptions(depth_range_m=(4.0, 20.0)))


def test_a_gain_costs_little_depth():
    left, right = _views()
    ramp = np.linspace(0.55, 0.75, right.shape[1], dtype=np.float32)
    even = _estimate(left, right)
    truth = float(PINHOLE.optics.depth_m(SHIFT))
    for gain in (np.float32(0.6), ramp):
        found = _estimate(left, gain * right)
        assert found.valid.mean() > 0.95 * even.valid.mean()
        error = np.abs(found.depth_m[found.valid] / truth - 1)
        assert np.median(error) < 0.01
