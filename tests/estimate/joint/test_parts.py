"""Parts of the joint method by themselves, against arithmetic."""

import numpy as np
import pytest

import d3s
from d3s.estimate.joint.method import _noise
from d3s.estimate.joint.plan import Model, make_plan
from d3s.estimate.joint.refine import Holes, fit_parameters
from d3s.estimate.joint.smoothing import (
    chance_correlation,
    energy_share,
    gaussian_taps,
    noise_gains,
)
from d3s.estimate.joint.types import window_pixels
from oracle import ORACLE, OURS
from oracle.refine import _gradient_x, _second_derivatives

RIG = d3s.Rig.paper_prototype()
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.02, disparity_offset_px=-12.5)
BOTH = pytest.mark.parametrize("ops", [OURS, ORACLE], ids=["compiled", "plain"])


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


def test_plan_searches_one_step_beyond_the_range():
    plan = make_plan(RIG.optics, d3s.JointOptions(depth_range_m=(0.5, 2.0)), (300, 1000))
    nearest, farthest = (float(RIG.optics.disparity_px(depth_m)) / 2 for depth_m in (0.5, 2.0))
    assert plan.search_scale == 2
    assert farthest - 2 < plan.shifts[0] <= farthest - 1
    assert nearest + 1 <= plan.shifts[-1] < nearest + 2
    assert (np.diff(plan.shifts) == 1).all()
    assert plan.allowed.all()


def _direct_scales(optics: d3s.Optics, model: Model, disparity_px: np.ndarray) -> np.ndarray:
    """By the radii of both blurs and the defocus, pixel by pixel."""
    depth_m = 1 / model.vergence_dpt(disparity_px)
    blur = np.max([np.abs(optics.blur_radius_px(depth_m, camera)) for camera in (0, 1)], axis=0)
    constant, slope = model.defocus_line(1)
    defocus = np.abs(constant + slope * disparity_px)
    scales = np.ones(disparity_px.shape, dtype=np.uint8)
    for scale, widest_px in ((2, 4.5), (4, 6.0)):
        scales[(blur >= widest_px) | (defocus > 0.7 * (scale / 2) ** 2)] = scale
    return scales


def _rigs() -> dict[str, d3s.Rig]:
    optics = RIG.optics
    mirrored = optics.replace(
        optical_power_left_dpt=optics.optical_power_right_dpt,
        optical_power_right_dpt=optics.optical_power_left_dpt,
    )
    return {
        "prototype": RIG,
        "mirrored": RIG.replace(optics=mirrored),
        "offset": RIG.replace(optics=optics.replace(disparity_offset_px=-7.25)),
        "alike": RIG.replace(
            optics=optics.replace(optical_power_right_dpt=optics.optical_power_left_dpt)
        ),
        "wide": RIG.replace(optics=optics.replace(aperture_radius_m=3 * optics.aperture_radius_m)),
    }


@pytest.mark.parametrize("name", ["prototype", "mirrored", "offset", "alike", "wide"])
@pytest.mark.parametrize("use_defocus", [True, False])
def test_scale_follows_blur_and_defocus(name, use_defocus):
    optics = _rigs()[name].optics
    plan = make_plan(optics, d3s.JointOptions(use_defocus=use_defocus), (300, 1000))
    disparity = optics.disparity_px(1 / np.linspace(0.05, 8, 20001))
    expected = _direct_scales(optics, plan.model, disparity)
    found = ORACLE.scales_by_disparity(disparity[None], plan.finer_px)[0]
    # At the ends themselves rounding decides.
    assert (found != expected).sum() <= 4
    assert set(np.unique(found)) == set(np.unique(expected))


@pytest.mark.parametrize("rig", [RIG, PINHOLE], ids=["lenses", "pinhole"])
def test_without_the_finest_scale_all_is_fitted_at_half_size_or_less(rig):
    told = d3s.JointOptions(depth_range_m=(0.3, 2), finest_scale=2)
    plan = make_plan(rig.optics, told, (100, 300))
    assert (plan.search_scale, plan.cell_px, set(plan.smoothing_px)) == (2, 2, {2, 4})
    scales = ORACLE.scales_by_disparity(np.linspace(-50, 300, 1000)[None], plan.finer_px)
    assert (scales >= 2).all()
    assert (scales == 2).any()


def test_a_search_that_no_memory_holds_is_refused():
    rig = d3s.Rig.from_pinhole(focal_length_px=4000, baseline_m=0.19)
    options = d3s.JointOptions(depth_range_m=(1.5, 50.0))
    with pytest.raises(
        d3s.D3SError, match=r"2000 x 3000 pixels and \d+ shifts.*Narrow depth_range"
    ):
        make_plan(rig.optics, options, (2000, 3000))


# Windows ------------------------------------------------------------------------------------------


def _fit_parameters(scale: int, windows_px=(9, 23, 57), search_scale=None):
    options = d3s.JointOptions(windows_px=windows_px, search_scale=search_scale)
    return fit_parameters((90, 120), scale, make_plan(RIG.optics, options, (90, 120)))


def test_windows_at_each_scale():
    # In cells of 2, 4 and 4 pixels of the frame: 10, 22 and 58 px; 12, 20 and 60; and from 28 on.
    assert [_fit_parameters(scale).cell_side for scale in (1, 2, 4)] == [2, 2, 1]
    assert _fit_parameters(1).window_halves == (2, 5, 14)
    assert _fit_parameters(2).window_halves == (1, 2, 7)
    assert _fit_parameters(4).window_halves == (3, 7)
    # Those that come to the same are one.
    assert _fit_parameters(1, (3, 5, 7)).window_halves == (1,)
    # Cells of one pixel have the windows to the pixel.
    assert _fit_parameters(1, (9, 23, 57), search_scale=1).window_halves == (4, 11, 28)


@pytest.mark.parametrize("cell", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 7, 12])
@pytest.mark.parametrize("half", [0, 1, 3, 20])
def test_pixels_of_a_window(size, cell, half):
    cells = -(-size // cell)
    expected = [
        sum(abs(pixel // cell - place) <= half for pixel in range(size)) for place in range(cells)
    ]
    np.testing.assert_array_equal(window_pixels(size, cell, (half,))[0], expected)


# Noise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma_px", [0.0, 0.5, 0.75, 1.0, 1.25, 2.0])
def test_noise_gains_are_those_of_noise(sigma_px):
    noise = np.random.default_rng(0).standard_normal((400, 400))
    spread = ORACLE.smooth(noise, sigma_px)
    gains = noise_gains(sigma_px)
    near = {"rel": 0.08}  # of some 10,000 independent samples, or fewer
    assert gains.smoothed == pytest.approx(spread.var(), **near)
    across, _, down = _second_derivatives(spread)
    assert gains.laplacian == pytest.approx((across + down).var(), **near)
    assert gains.gradient == pytest.approx(_gradient_x(spread)[:, 2:-2].var(), **near)


@pytest.mark.parametrize("side", [4, 10])
def test_area_is_that_of_an_independent_sample(side):
    # Mean squares of n pixels of noise are as uncertain as those of n / area independent ones.
    rng = np.random.default_rng(0)
    noise = ORACLE.smooth(rng.standard_normal((800, 800)), 1.0)
    big = 10 * side
    squares = (noise[: 800 // big * big, : 800 // big * big] ** 2).reshape(
        800 // big, big, 800 // big, big
    )
    means = squares.mean(axis=(1, 3))
    gains = noise_gains(1.0)
    expected = gains.smoothed * np.sqrt(2 * gains.area_px / big**2)
    assert means.std() == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(("smoothing_px", "side_px"), [(1.0, 9), (1.0, 57), (2.5, 30)])
def test_share_of_energy_that_stays_inside(smoothing_px, side_px):
    fine = 16
    box = np.zeros(fine * (side_px + 200))
    box[fine * 100 : fine * (100 + side_px)] = 1
    smooth = np.convolve(box, gaussian_taps(fine * smoothing_px), mode="same")
    share = (smooth**2).sum() / (fine * side_px)
    assert energy_share(smoothing_px, side_px) == pytest.approx(share**2, rel=5e-3)


def test_chance_takes_its_share_of_a_correlation():
    # Of pure noise the correlation is 0 +- 1 / sqrt(n - 3): four of these are left out.
    rng = np.random.default_rng(0)
    pairs = rng.standard_normal((2, 20000, 50))
    found = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(*pairs, strict=True)])
    assert (found > chance_correlation(50)).mean() < 2e-4
    assert chance_correlation(50) < 1.15 * np.abs(found).max()
    assert 0.9 < chance_correlation(2.0) < 1
    assert chance_correlation(0.0) == chance_correlation(4.0)
    assert chance_correlation(1e6) == pytest.approx(4e-3, rel=1e-3)


@BOTH
@pytest.mark.parametrize("sigma", [0.001, 0.05])
@pytest.mark.parametrize("search_scale", [1, 2])
def test_noise_is_that_of_noise(ops, sigma, search_scale):
    rng = np.random.default_rng(0)
    slope = np.add.outer(np.arange(300), np.arange(301)) / 300
    views = tuple(
        (slope + sigma * rng.standard_normal(slope.shape)).astype(np.float32) for _ in range(2)
    )
    options = d3s.JointOptions(depth_range_m=(0.8, 1.2), search_scale=search_scale)
    variance = ops.run(_noise, views, make_plan(RIG.optics, options, slope.shape))
    assert variance.shape == (slope.shape if search_scale == 1 else (150, 151))
    assert np.median(variance) == pytest.approx(sigma**2, rel=0.03)
    assert variance.std() < 0.15 * sigma**2


# Holes --------------------------------------------------------------------------------------------


def _distance_by_hand(holes: Holes, disparity_px: np.ndarray, cell_px: int) -> np.ndarray:
    def places(mask: np.ndarray) -> list[tuple[int, int]]:
        return [(row // cell_px, col // cell_px) for row, col in np.argwhere(mask)]

    def nearest(row: int, col: int, where: list[tuple[int, int]]) -> float:
        return min((max(abs(row - y), abs(col - x)) for y, x in where), default=np.inf)

    left, right = places(holes.left), places(holes.right)
    found = np.empty(disparity_px.shape)
    for row, col in np.ndindex(found.shape):
        there = int(np.rint(col - disparity_px[row, col] / cell_px))
        there = min(max(there, 0), found.shape[1] - 1)
        found[row, col] = min(nearest(row, col, left), nearest(row, there, right))
    return found


@pytest.mark.parametrize("cell_px", [1, 2, 4])
@pytest.mark.parametrize("shape", [(1, 1), (2, 9), (13, 22), (24, 31)], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.004, 0.1, 1.0])
def test_distance_to_holes(shape, cell_px, share):
    rng = np.random.default_rng(3)
    holes = Holes(*(rng.uniform(size=shape) < share for _ in range(2)))
    cells = tuple(-(-size // cell_px) for size in shape)
    for disparity in (0.0, 4.2, -7.7, 1e9):
        disparity_px = (disparity + rng.uniform(-1, 1, cells)).astype(np.float32)
        found = holes.distance(disparity_px, cell_px)
        assert found.shape == cells
        expected = _distance_by_hand(holes, np.clip(disparity_px, -1e6, 1e6), cell_px)
        np.testing.assert_array_equal(found, expected)
    assert holes.exist == bool(holes.left.any() or holes.right.any())
