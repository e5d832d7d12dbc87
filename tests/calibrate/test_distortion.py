"""Distortion of both lenses and bend of the board: found, told apart, and taken out."""

from functools import cache

import numpy as np
import pytest

import d3s
from d3s.calibrate.anchors import find_anchors
from d3s.calibrate.distortion_fit import Board, find_distortion
from d3s.calibrate.geometry import find_geometry
from d3s.calibrate.rectification import find_rectification

DESIGN = d3s.Rig.paper_prototype().optics
# Third and fifth order and decentring, unlike between the lenses: 3 px and 4 px at the radius.
LEFT, RIGHT = (-0.003, 0.0006, 0.0002, -0.0003), (-0.0045, 0.0010, -0.0004, 0.0001)
BEND_PER_M = (0.05, -0.02, 0.03)  # a board of 0.5 m is bent by 3 mm


@cache
def found_of(camera, distances_m=None):
    return found_from(camera.matches(), distances_m or camera.distances_m)


def found_from(matches, distances_m):
    return find_distortion(
        matches,
        find_anchors(matches),
        distances_m,
        focal_length_px=DESIGN.focal_length_px,
        field_radius_px=900.0,
    )


def numbers_of(found) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of the lenses and of the board, and their standard deviations."""
    values = np.array([*found.left, *found.right, *found.bend_per_m])
    return values, np.array([*found.left_sigma, *found.right_sigma, *found.bend_sigma_per_m])


@pytest.fixture
def distorted(camera):
    return camera.but(distortion=(LEFT, RIGHT))


def test_both_lenses_and_the_board_are_found(distorted):
    found, _ = found_of(distorted.but(bend_per_m=BEND_PER_M))
    values, sigma = numbers_of(found)
    errors = values - [*LEFT, *RIGHT, *BEND_PER_M]
    assert (np.abs(errors) < 4 * sigma + 1e-5).all()
    # 0.1 px at the radius; 0.2 mm at the edge of a board of 0.5 m.
    assert (sigma[:8] < 1e-4).all()
    assert (sigma[8:] < 3e-3).all()
    assert found.before_rms_px > 3 * found.after_rms_px
    assert found.after_rms_px == pytest.approx(1.0, abs=0.1)


def test_distortion_that_changes_with_distance_is_no_bend(distorted):
    """As of pupils that the rim of a lens cuts off: 0.5 px at the radius for each dioptre."""
    changing = distorted.but(third_per_dpt=(6e-4, -3e-4))
    found, anchors = found_of(changing)
    assert found.left_per_dpt == pytest.approx((6e-4, 0.0), abs=5e-5)
    assert found.right_per_dpt == pytest.approx((-3e-4, 0.0), abs=5e-5)
    values, sigma = numbers_of(found)
    assert (np.abs(values - [*LEFT, *RIGHT, 0, 0, 0]) < 4 * sigma + 2e-5).all()
    straight = found.removed_from(changing.matches())
    rectification = find_rectification(straight, anchors)
    assert rectification.rms_px < 0.03


def test_distorted_camera_becomes_the_perfect_one(distorted):
    found, anchors = found_of(distorted)
    straight = found.removed_from(distorted.matches())
    rectification = find_rectification(straight, anchors)
    geometry = find_geometry(straight, anchors, rectification, distorted.distances_m, DESIGN)
    left, right = distorted.rolls_rad
    assert rectification.scale == pytest.approx(distorted.scales[0] / distorted.scales[1], abs=1e-5)
    assert rectification.angle_rad == pytest.approx(left - right, abs=1e-5)
    assert geometry.focal_baseline_px_m == pytest.approx(distorted.focal_baseline_px_m, rel=2e-4)
    assert np.abs(geometry.residuals_px).max() < 0.02


@pytest.mark.slow
def test_sigma_agrees_with_the_scatter(distorted):
    truth, scores = np.array([*LEFT, *RIGHT, *BEND_PER_M]), []
    for seed in range(8):
        values, sigma = numbers_of(found_of(distorted.but(seed=seed, bend_per_m=BEND_PER_M))[0])
        scores.append((values - truth) / sigma)
    assert 0.5 < np.sqrt(np.mean(np.square(scores))) < 1.6


# Board by hand ------------------------------------------------------------------------------------


BOARD_OPTICS = d3s.Rig.paper_prototype().optics
BOARD_SHAPE = (401, 801)  # the axis is at row 200, column 400


def depth_of(board, x_px, y_px, on_axis_m=0.5) -> float:
    """Depth at a place from the axis."""
    return float(board.depth_m(400 + x_px, 200 + y_px, on_axis_m, BOARD_SHAPE, BOARD_OPTICS))


@pytest.mark.parametrize(
    ("bend_per_m", "added_m"),
    [((0.4, 0.0, 0.0), 0.4 * 9e-4), ((0.0, 0.4, 0.0), -0.4 * 3e-4), ((0.0, 0.0, 0.4), 0.4 * 1e-4)],
)
def test_bent_board(bend_per_m, added_m):
    # X = 3 cm and Y = -1 cm at 0.5 m.
    x_px, y_px = (size / 0.5 * BOARD_OPTICS.focal_length_px for size in (0.03, -0.01))
    assert depth_of(Board(bend_per_m=bend_per_m), x_px, y_px) == pytest.approx(0.5 + added_m)
