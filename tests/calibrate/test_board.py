"""Depth of a tilted, bent board by hand."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.distortion import Board

OPTICS = d3s.Rig.paper_prototype().optics
SHAPE = (401, 801)  # the axis is at row 200, column 400


def depth_m(board, x_px, y_px, on_axis_m=0.5) -> float:
    """Depth at a place from the axis."""
    return float(board.depth_m(400 + x_px, 200 + y_px, on_axis_m, SHAPE, OPTICS))


def test_flat_board_has_one_depth():
    assert depth_m(Board(), 400, -200) == 0.5
    assert depth_m(Board((0.1, 0.2), (0.3, 0.4, 0.5)), 0, 0) == 0.5


def test_tilted_plane():
    # Z = 0.5 + 0.1 X with X = x Z / f: at x / f = 0.05, Z = 0.5 / (1 - 0.005).
    x_px = 0.05 * OPTICS.focal_length_px
    assert depth_m(Board((0.1, 0.0)), x_px, 0) == pytest.approx(0.5 / 0.995, rel=1e-12)
    assert depth_m(Board((0.1, -0.2)), x_px, x_px) == pytest.approx(0.5 / 1.005, rel=1e-12)


@pytest.mark.parametrize(
    ("bend_per_m", "added_m"),
    [((0.4, 0.0, 0.0), 0.4 * 9e-4), ((0.0, 0.4, 0.0), -0.4 * 3e-4), ((0.0, 0.0, 0.4), 0.4 * 1e-4)],
)
def test_bent_board(bend_per_m, added_m):
    # X = 3 cm and Y = -1 cm at 0.5 m.
    x_px, y_px = (size / 0.5 * OPTICS.focal_length_px for size in (0.03, -0.01))
    assert depth_m(Board(bend_per_m=bend_per_m), x_px, y_px) == pytest.approx(0.5 + added_m)


def test_all_pixels_of_a_view():
    cols, rows = np.arange(801)[np.newaxis], np.arange(401)[:, np.newaxis]
    depth = Board((0.1, 0.0)).depth_m(cols, rows, 0.5, SHAPE, OPTICS)
    assert depth.shape == (1, 801) or depth.shape == SHAPE
    assert depth[0, 0] < 0.5 < depth[0, -1]


def test_bend_is_the_same_disparity_at_every_distance():
    """A board of 0.5 m that is bent by 2 mm: 0.016 px at the side of a view, near and far."""
    board, shape = Board(bend_per_m=(0.032, 0.0, 0.0)), (902, 1802)
    assert 0.032 * 0.25**2 == 0.002
    for depth_m in (0.3, 1.0, 1.9):
        side = board.depth_m(0, 450.5, depth_m, shape, OPTICS)
        shift_px = OPTICS.disparity_px(side) - OPTICS.disparity_px(depth_m)
        assert shift_px == pytest.approx(-0.0165, abs=3e-4)
