"""Errors over depth, the depth range that has all boards, and the working range."""

import math

import numpy as np
import pytest

import d3s
from d3s.calibrate.baselines import choose_baselines
from d3s.calibrate.distortion import Board
from d3s.calibrate.tuning import CONSENSUS, find_tuning
from d3s.calibrate.validation import errors_over_depth, widened_depth_range_m
from d3s.errors import InputError
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


def test_camera_that_is_right():
    found = errors_over_depth(boards(), DEPTHS_M, RIG)
    assert found.method == "joint"
    assert (found.mae_m < 0.01).all()
    assert (found.median_m <= found.mae_m).all()
    assert (found.density > 0.9).all()
    assert found.working_range_m == (0.4, 1.6)
    assert found.overall_mae_m == pytest.approx(found.mae_m.mean())
    assert not found.left_out


def test_baseline_that_is_wrong_shows_in_the_bias():
    wrong = RIG.replace(optics=RIG.optics.replace(baseline_m=1.02 * RIG.optics.baseline_m))
    found = errors_over_depth(boards(), DEPTHS_M, wrong)
    np.testing.assert_allclose(found.bias_m, 0.02 * np.array(DEPTHS_M), rtol=0.2)
    assert found.working_range_m == (0.4, 0.4)


def test_errors_of_a_camera_that_is_right_are_within_sigma():
    found = errors_over_depth(boards(), DEPTHS_M, RIG)
    assert (found.within_1_sigma > 0.5).all()
    assert (found.within_3_sigma > 0.95).all()
    assert (found.sigma_m < 0.01).all()
    assert (np.diff(found.sigma_m[1:]) > 0).all()  # beyond the focus, depth is known less well


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


def test_fewer_rows_and_another_method():
    options = d3s.ConsensusOptions(candidates=60)
    found = errors_over_depth(boards()[:1], DEPTHS_M[:1], RIG, "consensus", options, rows_px=60)
    assert found.method == "consensus"
    assert found.density[0] > 0.5


def test_consensus_is_judged_as_it_was_tuned():
    told = {"prefilter_sigma_px": 4.0, "window_px": 31, "candidates": 960, "min_confidence": 0.8}
    views, depths_m = boards()[1:2], DEPTHS_M[1:2]
    found = errors_over_depth(views, depths_m, RIG, "consensus", rows_px=70)
    same = errors_over_depth(views, depths_m, RIG, "consensus", told, rows_px=70)
    assert found.mae_m == same.mae_m
    assert found.density == same.density


def test_board_without_texture_has_no_error_and_is_named():
    grey = np.random.default_rng(0).normal(0.5, 0.01, (2, 120, 360)).astype(np.float32)
    views = [*boards()[:3], tuple(grey)]
    found = errors_over_depth(views, DEPTHS_M, RIG)
    assert found.left_out == {3: "joint found no depth in it"}
    assert np.isnan(found.mae_m[3])
    assert np.isnan(found.within_3_sigma[3])
    assert found.density[3] == 0
    assert found.working_range_m == (0.4, 1.1)


def test_depths_that_are_too_few():
    with pytest.raises(InputError, match="4 views must have as many depths, not 3"):
        errors_over_depth(boards(), DEPTHS_M[:3], RIG)


# Boards beyond the default range ------------------------------------------------------------------


PAPER = d3s.Rig.paper_prototype()
# s0 B / p = 12.1 mm * 3.84 mm / 6 um = 7.74 px m, and 9.3 px of disparity are at 0.833 m.
COARSE = PAPER.replace(optics=PAPER.optics.replace(pixel_pitch_m=6e-6))


def test_default_range_is_kept_if_boards_are_in_it():
    assert widened_depth_range_m(PAPER.optics, (0.25, 1.97)) is None
    # The ends are known to half a per cent.
    nearest_m, farthest_m = default_depth_range_m(PAPER.optics)
    assert widened_depth_range_m(PAPER.optics, (0.996 * nearest_m, 1.004 * farthest_m)) is None


def test_range_is_widened_only_towards_the_boards():
    nearest_m, farthest_m = default_depth_range_m(COARSE.optics)
    assert farthest_m == pytest.approx(0.833, abs=1e-3)
    assert widened_depth_range_m(COARSE.optics, (0.4, 1.8)) == pytest.approx((nearest_m, 2.0))
    farthest_m = default_depth_range_m(PAPER.optics)[1]
    assert widened_depth_range_m(PAPER.optics, (0.22, 0.5)) == pytest.approx((0.2, farthest_m))


@pytest.fixture(scope="module")
def far_boards() -> tuple[list, tuple[float, ...]]:
    depths_m = (0.5, 0.6, 0.72, 0.9, 1.1, 1.3)
    pairs = [
        d3s.simulate(
            d3s.Plane(depth_m=z, texture="calibration"),
            COARSE,
            noise=0.01,
            seed=i,
            shape=(160, 320),
        )
        for i, z in enumerate(depths_m)
    ]
    return [(pair.left, pair.right) for pair in pairs], depths_m


def test_camera_of_large_pixels_is_tested_where_the_boards_are(far_boards):
    views, depths_m = far_boards
    found = errors_over_depth(views, depths_m, COARSE)
    assert (found.mae_m < 0.02 * found.depths_m).all()
    assert (found.density > 0.6).all()
    cut = errors_over_depth(views, depths_m, COARSE, options={"depth_range_m": (0.25, 0.833)})
    assert cut.density[-1] < 0.1  # with the default range


def test_baselines_are_chosen_with_the_boards_in_range(far_boards):
    views, depths_m = far_boards
    options = CONSENSUS.replace(candidates=240)
    tuning = find_tuning(views, depths_m, COARSE, options=options)
    wide = choose_baselines(views, depths_m, COARSE, tuning, options=options)
    told = options.replace(depth_range_m=(0.25, 0.833))
    narrow = choose_baselines(views, depths_m, COARSE, tuning, options=told)
    # Half the boards cannot be right in the narrow range.
    assert wide.chosen.cost_m < 0.75 * narrow.chosen.cost_m
