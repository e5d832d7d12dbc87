"""The joint method: against its oracle in double precision, and against the truth of the twin."""

import numpy as np
import pytest

import d3s
from d3s.estimate.flags import Flag
from d3s.estimate.joint.method import run_joint
from d3s.estimate.joint.plan import make_plan
from oracle import ORACLE, OURS

RIG = d3s.Rig.paper_prototype()
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.02, disparity_offset_px=-4.5)
# None of these textures was used to choose a number of the method.
HELD_OUT = {0.3: "gravel", 0.5: "bark", 0.85: "grass", 1.2: "carpet", 1.6: "brick", 2.0: "gravel"}


def _layered(shape: tuple[int, int] = (160, 340)) -> d3s.Pair:
    mask = np.zeros(shape, dtype=np.float32)
    mask[:, 170:] = 1
    layers = (
        d3s.Layer(depth_m=0.7, texture="bark", mask=mask),
        d3s.Layer(depth_m=1.1, texture="gravel"),
    )
    return d3s.simulate(d3s.Layered(layers=layers), RIG, noise=0.01, shape=shape)


def _tilted(shape: tuple[int, int] = (160, 300), tilt_rad: float = 0.8) -> d3s.Pair:
    scene = d3s.TiltedPlane(depth_m=0.8, tilt_x_rad=tilt_rad, tilt_y_rad=0.3, texture="gravel")
    return d3s.simulate(scene, RIG, noise=0.01, shape=shape)


# Against the oracle -------------------------------------------------------------------------------


def _assert_engine_is_oracle(left, right, rig=RIG, options=None) -> np.ndarray:
    """Row 13 of the reliability table, and that what follows the search agrees as well.

    Returns where both have a depth.
    """
    options = options or d3s.JointOptions()
    engine = OURS.run(run_joint, left, right, rig, options)
    oracle = ORACLE.run(run_joint, left, right, rig, options)
    assert engine.planes.depth_m.dtype == engine.found.step.dtype == np.float32
    assert oracle.planes.depth_m.dtype == oracle.found.step.dtype == np.float64
    _assert_same_search(engine.found, oracle.found)
    valid = np.isfinite(engine.planes.depth_m)
    both = valid & np.isfinite(oracle.planes.depth_m)
    assert (valid != both).mean() <= 1e-3
    # Where the right view shows nothing, costs are all alike and rounding chooses.
    assert (engine.planes.flags != oracle.planes.flags).mean() <= 1e-2
    if both.any():
        _assert_same_depth(engine.planes, oracle.planes, both)
    return both


def _assert_same_search(engine, oracle) -> None:
    steps = np.abs(engine.step - oracle.step)
    assert (steps < 0.01).mean() >= 0.999
    assert steps.max() <= 1.01


def _assert_same_depth(engine, oracle, both: np.ndarray) -> None:
    depth, sigma = oracle.depth_m[both], oracle.sigma_m[both]
    gap = np.abs(engine.depth_m[both] - depth)
    # Where two windows agree just so, rounding chooses between them: both are right. One such cell
    # shows in the slopes of its neighbours too.
    assert (gap < 0.01 * sigma + 1e-6 * depth).mean() >= 0.998
    assert (gap < sigma).mean() >= 0.9998
    assert (np.abs(engine.sigma_m[both] - sigma) < 1e-3 * sigma).mean() >= 0.99
    assert (np.abs(engine.confidence - oracle.confidence)[both] < 2e-3).mean() >= 0.99


@pytest.mark.parametrize(("depth_m", "texture"), HELD_OUT.items())
def test_engine_is_the_oracle_on_planes(plane, depth_m, texture):
    pair = plane(depth_m, texture)
    assert _assert_engine_is_oracle(pair.left, pair.right).mean() > 0.3


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_engine_is_the_oracle_at_any_noise(plane, noise):
    pair = plane(0.9, "bark", noise)
    assert _assert_engine_is_oracle(pair.left, pair.right).mean() > 0.2


@pytest.mark.parametrize("make", [_layered, _tilted])
def test_engine_is_the_oracle_on_scenes(make):
    pair = make()
    assert _assert_engine_is_oracle(pair.left, pair.right).mean() > 0.4


@pytest.mark.parametrize(
    "changes",
    [
        {"windows_px": (15,)},
        {"windows_px": (5, 7, 11, 31)},
        {"use_defocus": False},
        {"search_scale": 1, "depth_range_m": (0.6, 1.5)},
        {"search_scale": 4},
        {"finest_scale": 2},
        {"finest_scale": 2, "search_scale": 4},
        {"smoothness": 0.0},
        {"prefilter_sigma_px": 2.0, "rounds": 4},
        {"candidates": 30},
        {"rectification_sigma_px": 0.05, "min_confidence": 0.0},
    ],
    ids=str,
)
def test_engine_is_the_oracle_whatever_the_options(plane, changes):
    pair = plane(0.9, "bark", shape=(90, 200))
    _assert_engine_is_oracle(pair.left, pair.right, options=d3s.JointOptions(**changes))


def test_engine_is_the_oracle_of_a_sharp_pair():
    scene = d3s.Plane(depth_m=0.9, texture="gravel")
    pair = d3s.simulate(scene, PINHOLE, noise=0.01, shape=(90, 200))
    assert _assert_engine_is_oracle(pair.left, pair.right, PINHOLE).mean() > 0.5


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 60), (60, 5), (17, 33), (50, 101)])
def test_engine_is_the_oracle_whatever_the_size(plane, shape):
    pair = plane(0.9, shape=(60, 150))
    views = (np.ascontiguousarray(view[: shape[0], : shape[1]]) for view in (pair.left, pair.right))
    _assert_engine_is_oracle(*views)


# Against the truth --------------------------------------------------------------------------------


def _judged(found: d3s.DepthMap, truth_m: np.ndarray) -> np.ndarray:
    """Where the largest window and its match are inside the frame."""
    rows, cols = truth_m.shape
    half = make_plan(found.rig.optics, found.options, (rows, cols)).windows_px[-1] // 2
    there = np.arange(cols) - found.rig.optics.disparity_px(truth_m)
    inside = np.zeros((rows, cols), dtype=bool)
    inside[half:-half, half:-half] = True
    return inside & (there >= half)


@pytest.mark.parametrize("tilt_rad", [0.4, 0.8, 1.1])
def test_tilted_plane(assert_explained, tilt_rad):
    pair = _tilted(tilt_rad=tilt_rad)
    found = d3s.estimate(pair.left, pair.right, RIG)
    assert_explained(found)
    kept = found.valid & _judged(found, pair.depth_m)
    error = found.depth_m[kept] - pair.depth_m[kept]
    assert found.density > 0.5
    assert np.abs(error).mean() < 0.003
    assert abs(error.mean()) < 0.001
    # The slope itself, not a staircase: errors do not follow the column.
    cols = np.nonzero(kept)[1]
    assert abs(np.polyfit(cols, error, 1)[0]) * 200 < 0.003


def test_step_in_depth(assert_explained):
    pair = _layered()
    found = d3s.estimate(pair.left, pair.right, RIG)
    assert_explained(found)
    assert found.density > 0.6
    error = np.abs(found.depth_m - pair.depth_m)
    assert np.nanmean(error) < 0.004
    assert (error[found.valid] < 0.05).mean() > 0.999
    # The right view does not see the 13 px to the left of the step.
    hidden = pair.occluded & (np.arange(340) > 60)
    assert hidden.sum() > 1000
    assert found.valid[hidden].mean() < 0.05
    near = np.zeros(hidden.shape, dtype=bool)
    near[:, 150:175] = True
    flags = found.flags[near & ~found.valid]
    # Beside a step the search is less sure; the views themselves disagree in part of it only.
    why = Flag.OCCLUDED | Flag.INCONSISTENT | Flag.AMBIGUOUS | Flag.LOW_TEXTURE
    assert ((flags & int(why)) != 0).mean() > 0.5
    assert ((flags & int(why | Flag.LOW_CONFIDENCE)) != 0).mean() > 0.95
    assert ((found.flags[hidden] & Flag.OCCLUDED) != 0).mean() > 0.2
    # Both surfaces are there again outside of the small window and the blur.
    for columns in (slice(70, 140), slice(190, 310)):
        assert found.valid[10:-10, columns].mean() > 0.9


def test_defocus_is_used(plane):
    # The twin blurs its views unlike at 0.4 m: who takes them for alike finds another depth.
    pair = plane(0.4, "gravel", shape=(160, 340))
    both = d3s.estimate(pair.left, pair.right, RIG)
    alone = d3s.estimate(pair.left, pair.right, RIG, options={"use_defocus": False})
    error, other = (np.abs(one.depth_m - 0.4) for one in (both, alone))
    assert both.density > 1.1 * alone.density or np.nanmean(error) < 0.8 * np.nanmean(other)


def test_pinhole_pair(assert_explained):
    scene = d3s.Plane(depth_m=0.9, texture="gravel")
    pair = d3s.simulate(scene, PINHOLE, noise=0.01, shape=(120, 260))
    found = d3s.estimate(pair.left, pair.right, PINHOLE)
    assert_explained(found)
    assert found.density > 0.6
    assert np.nanmean(np.abs(found.depth_m - 0.9)) < 0.01
    # Somebody else's rectification is a tenth of a pixel, and no sigma is below that.
    assert np.nanmin(found.sigma_m) > 0.09 * 0.9**2 / 20


# Candidates and ranges ----------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [84, 240, 400])
def test_number_of_candidates_does_not_matter(plane, candidates):
    pair = plane(0.9, "bark")
    expected = d3s.estimate(pair.left, pair.right, RIG)
    found = d3s.estimate(pair.left, pair.right, RIG, options={"candidates": candidates})
    np.testing.assert_array_equal(found.flags, expected.flags)
    np.testing.assert_array_equal(found.depth_m, expected.depth_m)


def test_candidates_of_ones_own(plane):
    pair = plane(0.9, "bark")
    ends = {"depth_range_m": (0.5, 2.0)}
    expected = d3s.estimate(pair.left, pair.right, RIG, options=ends)
    candidates = tuple((1 / np.linspace(2.0, 0.5, 100)).tolist())
    found = d3s.estimate(pair.left, pair.right, RIG, options={"candidates_m": candidates})
    np.testing.assert_array_equal(found.flags, expected.flags)
    np.testing.assert_array_equal(found.depth_m, expected.depth_m)
    # A few around the right depth are enough.
    few = d3s.estimate(pair.left, pair.right, RIG, options={"candidates_m": (0.8, 0.9, 1.0)})
    assert few.density > 0.4
    assert np.nanmean(np.abs(few.depth_m - 0.9)) < 0.003


@pytest.mark.parametrize("ends_m", [(0.3, 0.6), (1.4, 2.5)])
def test_range_without_the_truth_has_no_depth(plane, ends_m):
    pair = plane(0.9, "bark")
    found = d3s.estimate(pair.left, pair.right, RIG, options={"depth_range_m": ends_m})
    assert found.density < 0.001
    inner = found.flags[30:-30, 90:-30]
    why = Flag.OUT_OF_RANGE | Flag.INCONSISTENT | Flag.LOW_TEXTURE
    assert ((inner & int(why)) != 0).mean() > 0.9
    assert ((inner & int(why | Flag.LOW_CONFIDENCE)) != 0).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (2, 3), (9, 40), (31, 31)])
def test_frames_too_small_for_a_match(plane, assert_explained, shape):
    pair = plane(0.4, shape=(300, 300))
    found = d3s.estimate(pair.left[: shape[0], : shape[1]], pair.right[: shape[0], : shape[1]], RIG)
    assert_explained(found)
    assert found.density == 0
    assert found.flags.shape == shape
