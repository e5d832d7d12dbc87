"""Places of the pixels of rectified views in the raw frame."""

import numpy as np
from numpy.typing import ArrayLike

from d3s.rig.calibration import Calibration
from d3s.types import FloatArray


def view_to_raw_matrices(calibration: Calibration) -> tuple[FloatArray, FloatArray]:
    """2x3 matrices, left and right, from (x, y, 1) in a view to (x, y) in the raw frame.

    Distortion is left out: see `view_to_raw_places`.
    """
    cos, sin = np.cos(calibration.baseline_angle_rad), np.sin(calibration.baseline_angle_rad)
    turn = np.array([[cos, -sin], [sin, cos]])
    middle = np.array([calibration.crop_cols_px - 1, calibration.crop_rows_px - 1]) / 2
    from_left = np.linalg.inv(calibration.rectification_matrix)
    places = []
    for anchor, inverse in (
        (calibration.anchor_left_px, np.eye(3)),
        (calibration.anchor_right_px, from_left),
    ):
        linear = inverse[:2, :2] @ turn
        start = np.array(anchor) + inverse[:2, 2] - linear @ middle
        places.append(np.column_stack([linear, start]))
    return places[0], places[1]


def view_to_raw_places(
    calibration: Calibration, camera: int, x: ArrayLike, y: ArrayLike
) -> FloatArray:
    """Places (2, ...), x and y, in the raw frame of places in a rectified view, with distortion.

    Camera 0 is left, 1 is right; x and y are columns and rows of the view, also fractions of them.
    """
    (a, b, c), (d, e, f) = view_to_raw_matrices(calibration)[camera]
    across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    raw_x, raw_y = a * across + b * down + c, d * across + e * down + f
    lenses = calibration.lenses
    if lenses is None:
        return np.stack([raw_x, raw_y])
    axis_x, axis_y = (calibration.anchor_left_px, calibration.anchor_right_px)[camera]
    radius_px = lenses.field_radius_px
    from_axis = lenses.distorted(camera, (raw_x - axis_x) / radius_px, (raw_y - axis_y) / radius_px)
    return np.stack([axis_x + radius_px * from_axis[0], axis_y + radius_px * from_axis[1]])
