"""Errors over depth: what is counted, and what a working range is."""

import math

import numpy as np
import pytest

import d3s
from d3s.calibrate.validate import errors_over_depth
from d3s.errors import InputError

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


def test_tilt_is_of_the_board_and_not_an_error():
    tilt_rad = math.radians(20)
    views = boards(tilt_rad)
    known = errors_over_depth(views, DEPTHS_M, RIG, tilt=(math.tan(tilt_rad), 0.0))
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
    assert found.density[3] == 0
    assert found.working_range_m == (0.4, 1.1)


def test_depths_that_are_too_few():
    with pytest.raises(InputError, match="4 views must have as many depths, not 3"):
        errors_over_depth(boards(), DEPTHS_M[:3], RIG)
