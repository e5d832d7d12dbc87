"""Boards that stood where the camera would not look by itself."""

import pytest

import d3s
from d3s.calibrate.baselines import choose_baselines
from d3s.calibrate.reach import reach_m
from d3s.calibrate.tuning import CONSENSUS, find_tuning
from d3s.calibrate.validate import errors_over_depth
from d3s.estimate.candidates import default_depth_range_m

PAPER = d3s.Rig.paper_prototype()
# s0 B / p = 12.1 mm * 3.84 mm / 6 um = 7.74 px m, and 9.3 px of disparity are at 0.833 m.
COARSE = PAPER.replace(optics=PAPER.optics.replace(pixel_pitch_m=6e-6))


def test_default_stays_where_it_will_do():
    assert reach_m(PAPER.optics, (0.25, 1.97)) is None
    # Half a per cent is what the ends are good for.
    nearest_m, farthest_m = default_depth_range_m(PAPER.optics)
    assert reach_m(PAPER.optics, (0.996 * nearest_m, 1.004 * farthest_m)) is None


def test_range_grows_only_where_boards_are():
    nearest_m, farthest_m = default_depth_range_m(COARSE.optics)
    assert farthest_m == pytest.approx(0.833, abs=1e-3)
    assert reach_m(COARSE.optics, (0.4, 1.8)) == pytest.approx((nearest_m, 2.0))
    farthest_m = default_depth_range_m(PAPER.optics)[1]
    assert reach_m(PAPER.optics, (0.22, 0.5)) == pytest.approx((0.2, farthest_m))


@pytest.fixture(scope="module")
def boards() -> tuple[list, tuple[float, ...]]:
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


def test_camera_of_large_pixels_is_tested_where_the_boards_are(boards):
    views, depths_m = boards
    found = errors_over_depth(views, depths_m, COARSE)
    assert (found.mae_m < 0.02 * found.depths_m).all()
    assert (found.density > 0.6).all()
    cut = errors_over_depth(views, depths_m, COARSE, options={"depth_range_m": (0.25, 0.833)})
    assert cut.density[-1] < 0.1  # as it was


def test_baselines_are_chosen_with_the_boards_in_reach(boards):
    views, depths_m = boards
    options = CONSENSUS.replace(candidates=240)
    tuning = find_tuning(views, depths_m, COARSE, options=options)
    wide = choose_baselines(views, depths_m, COARSE, tuning, options=options)
    told = options.replace(depth_range_m=(0.25, 0.833))
    narrow = choose_baselines(views, depths_m, COARSE, tuning, options=told)
    # Half the boards cannot be right in the narrow range.
    assert wide.chosen.cost_m < 0.75 * narrow.chosen.cost_m
