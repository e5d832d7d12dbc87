"""Errors over depth, the depth range that has all boards, and residuals over the field."""

import math
import warnings

import numpy as np
import pytest

import d3s
from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.validation import FieldResiduals, errors_over_depth, widened_depth_range_m
from d3s.estimate.candidates import default_depth_range_m

# Errors over depth --------------------------------------------------------------------------------


RIG = d3s.Rig.paper_prototype()
DEPTHS_M = (0.4, 0.7, 1.1, 1.6)


def boards(tilt_rad: float = 0.0, texture: str = "leaves", depths_m=DEPTHS_M):
    pairs = [
        d3s.simulate(
            d3s.TiltedPlane(depth_m=z, tilt_x_rad=tilt_rad, texture=texture),
            RIG,
            noise=0.01,
            seed=i,
            shape=(120, 360),
        )
        for i, z in enumerate(depths_m)
    ]
    return [(pair.left, pair.right) for pair in pairs]


@pytest.fixture(scope="module")
def usual():
    return errors_over_depth(boards(), DEPTHS_M, RIG)


def test_camera_that_is_right(usual):
    found = usual
    assert found.method == "joint"
    assert (found.mae_m < 0.01).all()
    assert (found.median_m <= found.mae_m).all()
    assert (found.density > 0.9).all()
    assert found.working_range_m == (0.4, 1.6)
    assert found.overall_mae_m == pytest.approx(found.mae_m.mean())
    assert (found.within_1_sigma > 0.5).all()
    assert (found.within_3_sigma > 0.95).all()
    assert not found.left_out


def test_baseline_that_is_wrong_shows_in_the_bias():
    wrong = RIG.replace(optics=RIG.optics.replace(baseline_m=1.02 * RIG.optics.baseline_m))
    found = errors_over_depth(boards(), DEPTHS_M, wrong)
    np.testing.assert_allclose(found.bias_m, 0.02 * np.array(DEPTHS_M), rtol=0.2)
    assert found.working_range_m == (0.4, 0.4)


def test_sigma_does_not_cover_a_wrong_baseline_but_a_rough_ruler_does():
    wrong = RIG.replace(optics=RIG.optics.replace(baseline_m=1.02 * RIG.optics.baseline_m))
    views, depths_m = boards(depths_m=(0.7,)), (0.7,)
    found = errors_over_depth(views, depths_m, wrong)
    assert found.within_3_sigma[0] < 0.05
    rough = errors_over_depth(views, depths_m, wrong, truth_sigma_m=0.01)  # 2 % of 0.7 m is 1.4 cm
    assert rough.within_3_sigma[0] > 0.95
    assert rough.within_1_sigma[0] < 0.5
    assert rough.sigma_m == found.sigma_m


def test_tilt_is_of_the_board_and_not_an_error():
    tilt_rad = math.radians(20)
    views = boards(tilt_rad)
    known = errors_over_depth(views, DEPTHS_M, RIG, board=Board((math.tan(tilt_rad), 0.0)))
    ignored = errors_over_depth(views, DEPTHS_M, RIG)
    assert (known.mae_m < 0.5 * ignored.mae_m).all()


def test_board_without_texture_has_no_error_and_is_named():
    grey = np.random.default_rng(0).normal(0.5, 0.01, (2, 120, 360)).astype(np.float32)
    views = [*boards()[:3], tuple(grey)]
    found = errors_over_depth(views, DEPTHS_M, RIG)
    assert found.left_out == {3: "joint found no depth in it"}
    assert np.isnan(found.mae_m[3])
    assert np.isnan(found.within_3_sigma[3])
    assert found.density[3] == 0
    assert found.working_range_m == (0.4, 1.1)


# Boards beyond the default range ------------------------------------------------------------------


PAPER = d3s.Rig.paper_prototype()
# s0 B / p = 12.1 mm * 3.84 mm / 6 um = 7.74 px m, and 9.3 px of disparity are at 0.833 m.
COARSE = PAPER.replace(optics=PAPER.optics.replace(pixel_pitch_m=6e-6))


def test_range_is_widened_only_towards_the_boards():
    nearest_m, farthest_m = default_depth_range_m(COARSE.optics)
    assert farthest_m == pytest.approx(0.833, abs=1e-3)
    assert widened_depth_range_m(COARSE.optics, (0.4, 1.8)) == pytest.approx((nearest_m, 2.0))
    farthest_m = default_depth_range_m(PAPER.optics)[1]
    assert widened_depth_range_m(PAPER.optics, (0.22, 0.5)) == pytest.approx((0.2, farthest_m))


# Residuals over the field -------------------------------------------------------------------------


def residuals(values, **changes) -> FieldResiduals:
    """Residuals (frames, rows, cols) on a grid over the whole field."""
    values = np.asarray(values, dtype=np.float64)
    frames, rows, cols = values.shape
    y, x = np.meshgrid(np.linspace(-0.5, 0.5, rows), np.linspace(-1, 1, cols), indexing="ij")
    found = FieldResiduals(
        depths_m=np.linspace(0.3, 1.9, frames),
        x=x,
        y=y,
        residual_px=values,
        sigma_px=np.full(values.shape, 0.01),
        rows_px=np.full(values.shape, -0.1),
        light_ratio=np.full((rows, cols), 1.02),
    )
    return found._replace(**changes)


def test_unknown_cells_do_not_count():
    values = np.full((2, 6, 6), 0.1)
    values[0, :, :3] = np.nan  # the right view does not show the left side of a near board
    values[1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = residuals(values)
        assert found.rms_px == pytest.approx(0.1)
        assert np.allclose(found.frame_mean_px, [0.1, np.nan], equal_nan=True)
        assert np.isnan(found.ninths_px[0, :, 0]).all()
        assert np.allclose(found.ninths_px[0, :, 1:], 0.1)
        assert np.allclose(found.largest_ninth_px, [0.1, np.nan], equal_nan=True)
