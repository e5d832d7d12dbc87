"""Focus over the field from boards blurred by known ellipses."""

from functools import cache

import numpy as np
import pytest

import d3s
from d3s.calibrate.distortion import Board
from d3s.calibrate.focus_map import FocusMap, find_focus_map
from d3s.rig import LensMaps
from lens_pairs import RIG, lens_pair, lens_rig

RADIUS_PX, SHAPE, NOISE = 320.0, (240, 640), 0.005
DEPTHS_M = (0.4, 0.53, 0.7, 0.95)
LENSES = LensMaps(
    field_radius_px=RADIUS_PX,
    focus_left_dpt=(0.0, 0.0, 1.4, 3.0),
    focus_right_dpt=(0.2, -0.1, 1.0, 2.4),
    focus_centre_right=(0.06, 0.0),
)


def found_of(pairs) -> FocusMap:
    return find_focus_map(pairs, DEPTHS_M, RIG.optics, Board(), RADIUS_PX, noise=NOISE)


@cache
def curved() -> FocusMap:
    return found_of(
        [
            lens_pair(z, LENSES, shape=SHAPE, texture="calibration", noise=NOISE, seed=3)
            for z in DEPTHS_M
        ]
    )


def test_curvature_astigmatism_and_tilt_are_found():
    found = curved()
    for values, truth in (
        (found.left_dpt, LENSES.focus_left_dpt),
        (found.right_dpt, LENSES.focus_right_dpt),
    ):
        # Views with few rows tell little of the tilt along y.
        assert values[0] == pytest.approx(truth[0], abs=0.15)
        assert values[1] == pytest.approx(truth[1], abs=0.5)
        assert values[2:] == pytest.approx(truth[2:], rel=0.08)
    assert found.centre_left == pytest.approx((0.0, 0.0), abs=0.03)
    assert found.centre_right == pytest.approx((0.06, 0.0), abs=0.05)
    assert found.after_rms < 0.06 < 0.3 < found.before_rms
    assert found.blocks > 30


def test_blur_over_the_field_is_that_of_the_lenses():
    """The numbers above are correlated; what counts is the blur that they give together."""
    rig = curved().applied_to(lens_rig(LensMaps(field_radius_px=RADIUS_PX)))
    x, y = np.meshgrid(np.linspace(-0.9, 0.9, 7), np.linspace(-0.3, 0.3, 3))
    errors_px = []
    for camera in (0, 1):
        for depth_m in DEPTHS_M:
            blur, truth = (
                lenses.blur_px2(camera, x, y, 1 / depth_m, optics)
                for lenses, optics in (
                    (rig.calibration.lenses, rig.optics),
                    (LENSES, RIG.optics),
                )
            )
            errors_px.append(np.sqrt(blur[[0, 2]]) - np.sqrt(truth[[0, 2]]))
    # Of blurs of up to 8 px.
    assert np.sqrt(np.mean(np.square(errors_px))) < 0.25
    assert np.abs(errors_px).max() < 0.8


def test_perfect_lenses_have_no_curvature():
    board = d3s.Texture(pattern="calibration", seed=3)
    pairs = [
        d3s.simulate(
            d3s.Plane(depth_m=z, texture=board), RIG, noise=NOISE, seed=(3, i), shape=SHAPE
        )
        for i, z in enumerate(DEPTHS_M)
    ]
    found = found_of([(pair.left, pair.right) for pair in pairs])
    # Of 1.4 and 3 dpt that a stock lens has.
    assert np.abs([*found.left_dpt[2:], *found.right_dpt[2:]]).max() < 0.05
    assert np.abs([*found.left_dpt, *found.right_dpt]).max() < 0.3
    assert found.focus_dpt == pytest.approx(
        [1 / distance_m for distance_m in RIG.optics.focus_distances_m], abs=0.05
    )
    assert found.aperture_radius_m == pytest.approx(1e-3, rel=0.04)
    assert found.blur_ratio == pytest.approx(1.0, abs=0.01)


def test_views_without_texture_give_the_focus_of_the_axis_everywhere():
    grey = np.full(SHAPE, 0.5, np.float32)
    found = found_of([(grey, grey)] * len(DEPTHS_M))
    assert found.blocks == 0
    assert not any([*found.left_dpt, *found.right_dpt])
    assert np.isnan(found.after_rms)
