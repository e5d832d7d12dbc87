"""Errors of the disparity that a calibration cannot exclude."""

from types import SimpleNamespace

import numpy as np
import pytest

import d3s
from d3s.calibrate.coma import Coma
from d3s.calibrate.disparity_map import board_errors_px, distance_errors_px, texture_errors_px
from d3s.calibrate.distortion import Board
from d3s.rig import LensMaps
from d3s.rig.variance import DisparityVariance

OPTICS = d3s.Rig.paper_prototype().optics
RADIUS_PX = 900.0
LENSES = LensMaps(field_radius_px=RADIUS_PX)
RANGE_DPT = (0.5, 4.0)


def sigma_px(errors, x, y, u):
    return np.sqrt(DisparityVariance.of_errors(errors, RADIUS_PX).at(x, y, u))


def test_errors_of_distances_are_alike_all_over_the_field():
    geometry = SimpleNamespace(disparity_errors_px=np.array([[0.03, 0.0, 0.01], [0.0, 0.05, 0.0]]))
    errors = distance_errors_px(geometry)
    for x in (-0.8, 0.0, 0.5):
        expected = np.hypot(0.03 + 0.01 * 4, 0.05 * 2)
        assert sigma_px(errors, x, 0.3, 2.0) == pytest.approx(expected)


@pytest.mark.parametrize("depth_m", [0.3, 1.5])
def test_errors_of_the_board_are_those_of_its_shape(depth_m):
    tilts, bends = (2e-3, 1e-3), (0.02, 0.03, 0.01)
    found = board_errors_px(SimpleNamespace(tilt_sigma_rad=tilts), bends, OPTICS, RADIUS_PX)
    shape = (1401, 1601)
    cols, rows = 1500.0, 200.0
    x, y = (cols - 800) / RADIUS_PX, (rows - 700) / RADIUS_PX
    boards = [
        *(Board(slopes=tuple(np.eye(2)[axis] * tilts[axis])) for axis in (0, 1)),
        *(Board(bend_per_m=tuple(np.eye(3)[kind] * bends[kind])) for kind in range(3)),
    ]
    for board, error in zip(boards, found, strict=True):
        at = board.depth_m(cols, rows, depth_m, shape, OPTICS)
        moved = abs(float(OPTICS.disparity_px(at) - OPTICS.disparity_px(depth_m)))
        assert sigma_px([error], x, y, 1 / depth_m) == pytest.approx(moved, rel=0.02)


def test_unknown_coma_shifts_other_textures_at_the_sides():
    coma = Coma(sigma_px=0.6, board_slope=0.3)
    errors = texture_errors_px(coma, LENSES, OPTICS, RANGE_DPT)
    sides, middle = (sigma_px(errors, x, 0.0, 0.6) for x in (-0.8, 0.05))
    assert sides > 3 * middle
    assert 0.005 < sides < 0.3
    # In proportion to what coma may be.
    twice = texture_errors_px(coma._replace(sigma_px=1.2), LENSES, OPTICS, RANGE_DPT)
    assert sigma_px(twice, -0.8, 0.0, 0.6) == pytest.approx(2 * sides)


def test_known_coma_leaves_no_error_of_textures():
    assert (
        texture_errors_px(
            Coma((0.0, 0.0, -1.0), (0.0, 0.0, -1.0), 0.0, 0.3), LENSES, OPTICS, RANGE_DPT
        )
        == []
    )
