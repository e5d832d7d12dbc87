"""Lenses whose blur and disparity change over the field: compiled, plain, and in depth."""

import numpy as np
import pytest

import d3s
from d3s.estimate.joint.correction import SizeCorrection
from d3s.estimate.joint.method import run_joint
from d3s.estimate.joint.types import BlurPlane
from d3s.estimate.lens_field import (
    COMA_GAIN,
    LensField,
    ScaleLimits,
)
from d3s.rig import LensMaps
from d3s.rig.variance import term_count
from lens_pairs import lens_pair, lens_rig
from oracle import ORACLE, OURS

RIG = d3s.Rig.paper_prototype()
BOTH = pytest.mark.parametrize("ops", [OURS, ORACLE], ids=["fast", "plain"])
GRID = pytest.mark.parametrize(("scale", "cell"), [(1, 2), (1, 1), (2, 2), (4, 1)], ids=str)
SHAPES = [(1, 1), (3, 17), (31, 50)]
LIMITS = (ScaleLimits(2, 5.0, 0.7), ScaleLimits(4, 9.0, 2.8))


def _map(degree: int, size: float, seed: int) -> tuple[float, ...]:
    return tuple(np.random.default_rng(seed).normal(0, size, term_count(degree)))


def _lenses(radius_px: float = 60.0) -> LensMaps:
    """Lenses of which every map does something, and nothing is alike in both."""
    return LensMaps(
        field_radius_px=radius_px,
        focus_left_dpt=(0.1, -0.2, 0.7, 1.6),
        focus_right_dpt=(-0.15, 0.1, 0.9, 1.2),
        blur_ratio=1.08,
        extra_blur_left_px2=_map(4, 0.2, 0),
        extra_blur_right_px2=_map(6, 0.2, 1),
        coma_left_px=(0.2, -0.1, -1.5),
        coma_right_px=(-0.1, 0.3, -1.2),
        disparity_px=(_map(3, 0.2, 2), _map(2, 0.1, 3), _map(6, 0.05, 4)),
        sharp_disparity_px=_map(2, 0.1, 5),
    )


def _field(shape, lenses: LensMaps | None = None) -> LensField:
    correction = SizeCorrection(half_size_px=(_map(2, 0.1, 6), _map(1, 0.05, 7)))
    return LensField(lenses or _lenses(), RIG.optics, shape, correction)


def _disparity(shape, scale: int) -> np.ndarray:
    noise = np.random.default_rng(5).uniform(-4, 4, shape)
    return ((20 + noise) / scale).astype(np.float32)


def _frame(shape, cell_px: int) -> tuple[int, int]:
    return shape[0] * cell_px - (cell_px > 1), shape[1] * cell_px


@GRID
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_blur_differences_are_those_of_the_oracle(scale, cell, shape):
    field = _field(_frame(shape, scale * cell))
    disparity = _disparity(shape, scale)
    ours = OURS.blur_differences(disparity, field, scale, cell)
    theirs = ORACLE.blur_differences(disparity.astype(np.float64), field, scale, cell)
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape == (len(BlurPlane), *shape)
    # Both variances are up to 100 px² here, and their difference is rounded as they are.
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("scale", [1, 2, 4])
def test_skew_of_spots_grows_with_blur(scale):
    in_focus_px = RIG.optics.disparity_px(RIG.optics.focus_distances_m[0])
    lenses = LensMaps(field_radius_px=60.0, extra_blur_left_px2=(9.0,), coma_left_px=(0.6, 0.0, 0))
    along, down = _field((1, 1), lenses).coma_difference(0.0, 0.0, in_focus_px, scale)
    assert down == 0
    # A third of coma times variance, all in pixels of the scale.
    assert along == pytest.approx(COMA_GAIN * 0.6 * 9.0 / (3 * scale**3))


@BOTH
def test_scales_follow_the_widest_blur_and_the_widest_difference(ops):
    field = _field((60, 100))
    disparity = _disparity((30, 50), 1)
    found = ops.scales_by_blur(disparity, field, 2, LIMITS)
    left, right = (
        np.moveaxis(part, 0, -1) for part in field.blur_px2(*field.places((30, 50), 2), disparity)
    )

    def widest(tensor):
        matrix = np.stack([tensor[..., [0, 1]], tensor[..., [1, 2]]], axis=-1)
        return np.abs(np.linalg.eigvalsh(matrix)).max(axis=-1)

    blur, apart = np.maximum(widest(left), widest(right)), 0.5 * widest(right - left)
    expected = np.ones(found.shape)
    for limits in LIMITS:
        expected[(blur > limits.blur_px2) | (apart > limits.difference_px2)] = limits.scale
    assert found.dtype == np.uint8
    assert set(np.unique(expected)) == {1, 2, 4}
    assert (found != expected).mean() < 2e-3


@BOTH
def test_remaining_disparity_is_that_of_the_depth_left_without_it(ops):
    field = _field((60, 100))
    x, y = field.places((30, 50), 2)
    vergence = np.random.default_rng(1).uniform(0.6, 1.5, (30, 50))
    further = field.correction.half_size_px
    added = field.lenses.remaining_disparity_px(x, y, vergence, field.optics, further)
    assert 0.1 < np.abs(added).mean() < 1
    disparity = RIG.optics.disparity_px(1 / vergence) + added
    found = ops.remaining_disparity(disparity.astype(np.float32), field, 2, 2)
    # Two rounds are enough where the disparity added changes little with that depth.
    np.testing.assert_allclose(found, added, atol=2e-4)


# The method ---------------------------------------------------------------------------------------

SMALL = LensMaps(
    field_radius_px=250.0, focus_left_dpt=(0, 0, 0.6, 1.2), focus_right_dpt=(0, 0, 0.6, 1.2)
)


def _run(views, rig, ops, options):
    return ops.run(run_joint, *views, rig, options).planes


@pytest.mark.parametrize(
    "options",
    [{}, {"search_scale": 1}, {"finest_scale": 2, "search_scale": 4}, {"rounds": 1}],
    ids=str,
)
def test_engine_is_the_oracle_with_lens_maps(options):
    shape = (81, 301)
    views, options = lens_pair(0.9, SMALL, shape=shape), d3s.JointOptions(**options)
    lenses = SMALL.replace(
        disparity_px=(_map(2, 0.05, 1), _map(1, 0.02, 2)),
        extra_blur_right_px2=(0.1, 0.05, 0.0),
        coma_left_px=(0.3, -0.2, 0.6),
        coma_right_px=(-0.3, 0.4, -0.6),
    )
    rig = lens_rig(lenses)
    engine = _run(views, rig, OURS, options)
    oracle = _run(views, rig, ORACLE, options)
    both = np.isfinite(engine.depth_m) & np.isfinite(oracle.depth_m)
    assert (np.isfinite(engine.depth_m) != both).mean() <= 1e-3
    assert both.mean() > 0.5
    gap = np.abs(engine.depth_m - oracle.depth_m)[both]
    assert (gap < 0.02 * oracle.sigma_m[both] + 2e-6).mean() >= 0.995
    sigma = np.abs(engine.sigma_m - oracle.sigma_m)[both]
    assert (sigma < 1e-3 * oracle.sigma_m[both]).mean() >= 0.99


def test_maps_of_perfect_lenses_change_nothing(plane, assert_same_bytes):
    pair = plane(0.9)
    # Sigma of lenses that were calibrated is never zero, unless it is said.
    options = d3s.JointOptions(rectification_sigma_px=0.0)
    rigs = RIG, lens_rig(LensMaps(field_radius_px=100.0))
    without, known = (d3s.estimate(pair.left, pair.right, rig, options=options) for rig in rigs)
    assert_same_bytes(without, known)


def test_remaining_disparity_is_subtracted(plane):
    pair = plane(0.9)
    lenses = LensMaps(field_radius_px=100.0, disparity_px=((0.25,),))
    known = d3s.estimate(pair.left, pair.right, lens_rig(lenses))
    optics = RIG.optics.replace(disparity_offset_px=0.25)
    moved = RIG.optics.depth_m(RIG.optics.disparity_px(0.9) - 0.25)
    assert optics.depth_m(RIG.optics.disparity_px(0.9)) == pytest.approx(moved)
    assert np.nanmedian(known.depth_m) == pytest.approx(moved, rel=1e-3)


def test_sigma_grows_off_the_axis_and_with_the_depth(plane):
    pair = plane(0.9)
    maps = LensMaps(field_radius_px=100.0, edge_sigma_px=0.3, scale_sigma=0.01)
    found = d3s.estimate(pair.left, pair.right, lens_rig(maps))
    plain = d3s.estimate(pair.left, pair.right, lens_rig(LensMaps(field_radius_px=100.0)))
    rows, cols = plain.depth_m.shape
    y, x = np.mgrid[:rows, :cols] - np.array([rows - 1, cols - 1])[:, None, None] / 2
    per_px = plain.depth_m**2 / (RIG.optics.focal_length_px * RIG.optics.baseline_m)
    parts = plain.sigma_m, 0.3 * (x**2 + y**2) / 100**2 * per_px, 0.01 * plain.depth_m
    expected = np.sqrt(sum(part**2 for part in parts))
    np.testing.assert_allclose(found.sigma_m, expected, rtol=1e-4)


def test_known_lenses_mend_depth_and_sigma_beside_the_axis():
    depth_m, shape = 0.9, (120, 500)
    views = lens_pair(depth_m, SMALL, shape=shape)
    errors, within, density = [], [], []
    for rig in (RIG, lens_rig(SMALL)):
        found = d3s.estimate(*views, rig)
        side = np.s_[20:-20, -120:-30]
        error = np.abs(found.depth_m - depth_m)[side]
        valid = np.isfinite(error)
        errors.append(error[valid].mean())
        within.append((error < 3 * found.sigma_m[side])[valid].mean())
        density.append(valid.mean())
    assert errors[1] < 0.7 * errors[0]
    assert within[1] > 0.95
    assert density[1] > 0.95
