"""Parts of the joint method by themselves, against arithmetic."""

import numpy as np
import pytest

import d3s
from d3s.estimate.joint import _filled, _noise
from d3s.estimate.judge import _beyond_chance
from d3s.estimate.levels import enlarged, is_inside, repeated
from d3s.estimate.operations import CompiledOperations
from d3s.estimate.plan import make_plan
from d3s.estimate.reference_operations import PlainOperations
from d3s.estimate.search import Model, window_counts

RIG = d3s.Rig.paper_prototype()
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.02, disparity_offset_px=-12.5)
OPS = PlainOperations()


# Sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 2, 4])
@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (9, 13), (12, 16)])
def test_enlarged_is_linear_between_the_pixels(scale, shape):
    row, col = np.indices(shape)
    image = 2.0 * row - 3.0 * col
    large = enlarged(np.ascontiguousarray(image[::scale, ::scale]), scale, shape)
    assert large.shape == shape
    # Behind the last pixel there is nothing to go on to.
    rows, cols = (size - (size - 1) % scale for size in shape)
    np.testing.assert_allclose(large[:rows, :cols], image[:rows, :cols])
    np.testing.assert_allclose(large[rows:], np.broadcast_to(large[rows - 1], large[rows:].shape))


def test_repeated_stands_for_its_neighbours():
    image = np.array([[1, 2], [3, 4]])
    np.testing.assert_array_equal(
        repeated(image, 2, (3, 4)), [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4]]
    )


def test_window_counts():
    counts = window_counts(np.empty((3, 4), dtype=np.float32), 1)
    np.testing.assert_array_equal(counts, [[4, 6, 6, 4], [6, 9, 9, 6], [4, 6, 6, 4]])
    assert counts.dtype == np.float32
    np.testing.assert_array_equal(window_counts(np.empty((2, 3)), 50), np.full((2, 3), 6))


def test_inside_is_both_views():
    disparity = np.full((5, 12), 4.0)
    inside = is_inside(disparity, 1)
    assert not inside[[0, -1]].any()
    np.testing.assert_array_equal(np.nonzero(inside[2])[0], np.arange(5, 11))
    np.testing.assert_array_equal(np.nonzero(is_inside(-disparity, 1)[2])[0], np.arange(1, 7))


# Camera -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 2, 4])
@pytest.mark.parametrize("depth_m", [0.4, 0.8436, 1.7])
def test_defocus_line_is_half_the_difference_of_variances(depth_m, scale):
    optics = RIG.optics
    constant, slope = Model.of(optics, use_defocus=True).defocus_line(scale)
    left, right = (0.5 * float(optics.blur_radius_px(depth_m, camera)) for camera in (0, 1))
    disparity = float(optics.disparity_px(depth_m)) / scale
    # The width of the prototype's aperture is half of its radius.
    assert constant + slope * disparity == pytest.approx(
        (right**2 - left**2) / 2 / scale**2, abs=1e-9
    )


@pytest.mark.parametrize("rig", [RIG, PINHOLE])
def test_vergence_is_the_inverse_of_depth(rig):
    model = Model.of(rig.optics, use_defocus=True)
    depth = np.array([0.3, 1.0, 7.0])
    np.testing.assert_allclose(model.vergence_dpt(rig.optics.disparity_px(depth)), 1 / depth)
    assert Model.of(rig.optics, use_defocus=False).defocus_line(1) == (0.0, 0.0)


def test_plan_searches_one_step_beyond_the_range():
    plan = make_plan(RIG.optics, d3s.JointOptions(depth_range_m=(0.5, 2.0)), (300, 1000))
    nearest, farthest = (float(RIG.optics.disparity_px(depth_m)) / 2 for depth_m in (0.5, 2.0))
    assert plan.search_scale == 2
    assert farthest - 2 < plan.shifts[0] <= farthest - 1
    assert nearest + 1 <= plan.shifts[-1] < nearest + 2
    assert (np.diff(plan.shifts) == 1).all()
    assert plan.allowed.all()


def test_plan_of_a_narrow_frame_has_three_shifts():
    plan = make_plan(RIG.optics, d3s.JointOptions(), (1, 1))
    assert plan.shifts.size >= 3


def test_a_search_that_no_memory_holds_is_refused():
    rig = d3s.Rig.from_pinhole(focal_length_px=4000, baseline_m=0.19)
    options = d3s.JointOptions(depth_range_m=(1.5, 50.0))
    with pytest.raises(
        d3s.D3SError, match=r"2000 x 3000 pixels and \d+ shifts.*Narrow depth_range"
    ):
        make_plan(rig.optics, options, (2000, 3000))


def test_plan_of_few_candidates_leaves_out_the_rest():
    plan = make_plan(RIG.optics, d3s.JointOptions(candidates_m=(0.4, 1.0)), (300, 1000))
    wanted = RIG.optics.disparity_px(np.array([0.4, 1.0])) / 2
    inner = plan.shifts[1:-1][plan.allowed[1:-1]]
    assert inner.size == 4
    assert (np.abs(inner[:, None] - wanted).min(axis=1) < 1).all()


def test_windows_at_each_scale():
    plan = make_plan(RIG.optics, d3s.JointOptions(windows_px=(3, 9, 57)), (300, 1000))
    assert plan.halves(1) == (1, 4, 28)
    assert plan.halves(2) == (2, 14)
    assert plan.halves(4) == (3, 7)


# Pictures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ops", [CompiledOperations(), OPS])
@pytest.mark.parametrize("sigma", [0.001, 0.05])
def test_noise_is_that_of_noise(ops, sigma):
    rng = np.random.default_rng(0)
    slope = np.add.outer(np.arange(300), np.arange(300)) / 300
    view = (slope + sigma * rng.standard_normal((300, 300))).astype(ops.dtype)
    variance = _noise(view, ops)
    assert np.median(variance) == pytest.approx(sigma**2, rel=0.03)
    assert variance.std() < 0.15 * sigma**2


@pytest.mark.parametrize("gain", [1e-30, 1.0, 1e30])
def test_views_have_a_range_of_about_one(gain):
    rng = np.random.default_rng(0)
    views = [(gain * (3 + rng.uniform(size=(9, 11)))).astype(np.float32) for _ in range(2)]
    views[0][3, 4] = np.nan
    left, right = _filled(*views, CompiledOperations())
    assert 1 <= max(np.abs(left).max(), np.abs(right).max()) < 2
    assert left[3, 4] == 0
    known = np.isfinite(views[0])
    assert left[known].sum() + right.sum() == pytest.approx(0, abs=1e-3)


def test_views_without_anything():
    for value in (0.0, 7.0, np.nan):
        views = [np.full((3, 4), value, dtype=np.float32)] * 2
        for view in _filled(*views, CompiledOperations()):
            np.testing.assert_array_equal(view, 0)


def test_chance_takes_its_share_of_a_correlation():
    # Of pure noise the correlation is 0 +- 1 / sqrt(n - 3): four of these are left out.
    rng = np.random.default_rng(0)
    samples = np.full(20000, 50.0)
    pairs = rng.standard_normal((2, 20000, 50))
    found = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(*pairs, strict=True)])
    assert (_beyond_chance(found, samples) > 0).mean() < 2e-4
    np.testing.assert_allclose(_beyond_chance(np.ones(3), np.full(3, 500.0)), 1, atol=1e-3)
    assert (_beyond_chance(np.array([-1.0, 0.0, 0.2]), np.full(3, 2.0)) == 0).all()
