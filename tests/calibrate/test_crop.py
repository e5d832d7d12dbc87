"""What is cut from the frame: numbers worked by hand for fields that are a box and a circle."""

import numpy as np
import pytest

from calibrations import calibration
from d3s.calibrate.crop import largest_crop
from d3s.calibrate.fields import Box, Fields
from d3s.errors import CalibrationError
from d3s.rig import Calibration
from d3s.rig.split import view_to_raw_matrices

FRAME = (1000, 2000)


def centred(**changes) -> Calibration:
    """Anchors in the middle of both halves."""
    return calibration(anchor_left_px=(1500.0, 500.0), anchor_right_px=(500.0, 500.0), **changes)


def fields(left: np.ndarray, right: np.ndarray) -> Fields:
    nowhere = Box(0, 0, 1, 1)
    return Fields(nowhere, nowhere, left, right, (1.0, 1.0), None)


def rectangle(first_x, first_y, last_x, last_y) -> np.ndarray:
    return np.array(
        [[first_x, first_y], [last_x, first_y], [last_x, last_y], [first_x, last_y]], dtype=float
    )


def circle(x, y, radius) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, 180, endpoint=False)
    return np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle)], axis=1)


def test_boxes_leave_what_is_on_both_sides_of_the_anchor():
    left = rectangle(1100, 200, 1850, 760)  # 350 to the right, 260 below
    right = rectangle(100, 100, 900, 900)
    assert largest_crop(fields(left, right), centred(), FRAME, 0.0) == (521, 701)


def test_rows_beyond_the_frame_do_not_count():
    both = rectangle(1100, -100, 1900, 1100), rectangle(100, -100, 900, 1100)
    rows, _ = largest_crop(fields(*both), centred(), FRAME, 0.0)
    assert rows == 2 * (999 - 8 - 500) + 1  # the kernel reaches eight pixels further


def test_largest_rectangle_in_a_circle_is_a_square():
    both = circle(1500, 500, 400), circle(500, 500, 400)
    rows, cols = largest_crop(fields(*both), centred(), FRAME, 0.0)
    assert rows == pytest.approx(800 / 2**0.5, abs=4)
    assert cols == pytest.approx(800 / 2**0.5, abs=4)


def test_room_for_disparity_makes_it_wider():
    both = circle(1500, 500, 400), circle(500, 500, 400)
    rows, cols = largest_crop(fields(*both), centred(), FRAME, 100.0)
    assert cols > 590 > 540 > rows


def test_corners_of_both_views_lie_within_the_fields():
    turned = centred(
        rectify_scale=1.01, rectify_angle_rad=0.02, baseline_angle_rad=-0.03, rectify_shift_y_px=4.0
    )
    both = circle(1520, 480, 400), circle(480, 510, 390)
    rows, cols = largest_crop(fields(*both), turned, FRAME, 50.0)
    cut = turned.replace(crop_rows_px=rows, crop_cols_px=cols)
    ends = np.array(
        [[0, 0, 1], [cols - 1, 0, 1], [0, rows - 1, 1], [cols - 1, rows - 1, 1]], dtype=float
    )
    away = [
        np.hypot(*(ends @ place.T - middle).T).max() - radius
        for place, middle, radius in zip(
            view_to_raw_matrices(cut), ((1520, 480), (480, 510)), (400, 390), strict=True
        )
    ]
    assert -1.5 < max(away) <= 0


def test_anchor_beside_its_field():
    both = rectangle(1600, 200, 1900, 700), rectangle(100, 100, 900, 900)
    with pytest.raises(CalibrationError, match=r"around the anchors \(1500, 500\) and"):
        largest_crop(fields(*both), centred(), FRAME, 0.0)
