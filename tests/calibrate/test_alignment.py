"""Alignment: axes, rows and depths from places on the board, and places without shift by blur."""

from functools import cache

import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.calibrate.alignment import Setup, align_matches, bowl_doubt_per_m, lens_maps_of
from d3s.rig import LensMaps
from lens_pairs import lens_rig

DESIGN = d3s.Rig.paper_prototype()
SETUP = Setup(DESIGN, None, "mine", calibration().provenance)
DISTORTION = ((-0.003, 0.0006, 0.0002, -0.0003), (-0.0045, 0.0010, -0.0004, 0.0001))
CURVATURE_DPT = 2.0


@pytest.fixture
def bent(camera):
    """A camera that distorts, before a bent board."""
    return camera.but(distortion=DISTORTION, bend_per_m=(0.05, -0.02, 0.03))


@cache
def aligned(camera):
    matches = camera.matches()
    return align_matches(matches, camera.distances_m, camera.field_radius_px, SETUP)


def curved_rig() -> d3s.Rig:
    """Lenses with field curvature, without astigmatism."""
    focus = (0.0, 0.0, CURVATURE_DPT, CURVATURE_DPT)
    return lens_rig(LensMaps(field_radius_px=900.0, focus_left_dpt=focus, focus_right_dpt=focus))


def test_camera_that_distorts_before_a_bent_board(bent):
    found = aligned(bent)
    assert found.frames == list(range(16))
    np.testing.assert_allclose(found.depths_m, bent.distances_m, rtol=5e-4)
    assert found.geometry.focal_baseline_px_m == pytest.approx(bent.focal_baseline_px_m, rel=5e-4)
    assert found.board.slopes == pytest.approx(bent.slopes, abs=1e-3)
    assert found.board.bend_per_m == pytest.approx((0.05, -0.02, 0.03), abs=5e-3)
    assert found.rectification.rms_px < 0.03
    # Places stay as they were seen: the split takes the distortion out.
    np.testing.assert_array_equal(found.matches.left[0].first_px, bent.matches().left[0].first_px)


def test_as_printed_anchors_are_those_of_least_shift_and_medians_rectify(bent):
    matches, setup = bent.matches(), SETUP._replace(as_printed=True)
    found = align_matches(matches, bent.distances_m, bent.field_radius_px, setup)
    assert found.distortion.largest_px(0) == 0
    assert found.anchors.left_px == found.anchors.left.least_shift_px
    rectified = found.rectification
    assert (rectified.scale, rectified.angle_rad, rectified.shift_y_px) == rectified.median
    assert rectified.baseline_angle_rad == 0
    assert rectified.rms_px > 3 * aligned(bent).rectification.rms_px


def test_bowl_of_a_board_is_believed_the_less_the_more_lenses_imitate_it(bent):
    found = aligned(bent)
    flat, curved = LensMaps(field_radius_px=900.0), lens_maps_of(curved_rig())
    along, mixed, down = found.distortion.bend_per_m
    bowls = []
    for lenses in (flat, curved):
        doubted = found._replace(bowl_doubt_per_m=bowl_doubt_per_m(-1.5, lenses))
        bend = doubted.board.bend_per_m
        bowls.append(bend[0] + bend[2])
        # Saddle and twist are not concerned.
        assert bend[0] - bend[2] == pytest.approx(along - down)
        assert bend[1] == mixed
        assert doubted.bend_sigma_per_m[0] > found.bend_sigma_per_m[0]
    assert 0.8 < bowls[0] / (along + down) < 1
    assert bowls[1] / (along + down) < 0.2
