"""Focus over the field from boards blurred by known ellipses."""

from functools import cache

import numpy as np
import pytest

from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.focus_map import FocusMap, find_focus_map
from d3s.rig import LensMaps
from lens_pairs import RIG, lens_pair

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


def test_views_without_texture_give_the_focus_of_the_axis_everywhere():
    grey = np.full(SHAPE, 0.5, np.float32)
    found = found_of([(grey, grey)] * len(DEPTHS_M))
    assert found.blocks == 0
    assert not any([*found.left_dpt, *found.right_dpt])
    assert np.isnan(found.after_rms)
