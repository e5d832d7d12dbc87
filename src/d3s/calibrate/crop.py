"""What is cut from the raw frame: the largest views around the anchors that both lenses light."""

import numpy as np

from d3s.calibrate.fields import Fields
from d3s.errors import CalibrationError
from d3s.rig import Calibration
from d3s.rig.split import BEHIND, view_to_raw_matrices
from d3s.types import FloatArray

_SMALLEST_PX = 64  # of a view in which windows and disparities find room


def largest_crop(
    fields: Fields, calibration: Calibration, frame_shape: tuple[int, int], disparity_px: float
) -> tuple[int, int]:
    """Rows and columns of the views, however large the calibration has them.

    Both are centred on the anchors, as the paper has it, and lie within the fields. Of all such
    the one is taken in which most pixels have a match at the largest disparity.

    Raises
    ------
    CalibrationError
        When an anchor lies so near the rim of its field that nothing is left around it.
    """
    centred = calibration.replace(crop_rows_px=1, crop_cols_px=1)
    limits = [
        _limits(outline, place, frame_shape)
        for outline, place in zip(
            (fields.left_outline_px, fields.right_outline_px),
            view_to_raw_matrices(centred),
            strict=True,
        )
    ]
    across, down, room = np.concatenate(limits, axis=1)
    half_cols = np.arange(_SMALLEST_PX / 2, max(frame_shape) / 2, 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = (room - np.outer(half_cols, across)) / down
    # A rim that runs down a view leaves any number of rows, or none.
    reach = np.where(down > 1e-12, reach, np.where(room < np.outer(half_cols, across), -1, np.inf))
    half_rows = reach.min(axis=1)
    area = half_rows * (2 * half_cols - disparity_px)
    best = int(np.argmax(area))
    rows, cols = int(2 * half_rows[best]) + 1, int(2 * half_cols[best]) + 1
    if rows < _SMALLEST_PX or area[best] <= 0:
        raise CalibrationError(
            f"around the anchors {_shown(calibration.anchor_left_px)} and "
            f"{_shown(calibration.anchor_right_px)} there is no part that both lenses light. Did "
            "the board move straight towards the camera?"
        )
    return rows, cols


def _limits(outline_px: FloatArray, place: FloatArray, frame_shape: tuple[int, int]) -> FloatArray:
    """What half a view may be, (3, sides): first * half_cols + second * half_rows <= third.

    A view lies within an outline without dents if its corners do.
    """
    rows, cols = frame_shape
    first, last_x, last_y = float(BEHIND), cols - 1.0 - BEHIND, rows - 1.0 - BEHIND
    frame = np.array([[first, first], [last_x, first], [last_x, last_y], [first, last_y]])
    sides = np.concatenate([_sides(outline_px), _sides(frame)])
    normal, distance = sides[:, :2], sides[:, 2]
    across, down = np.abs(normal @ place[:, :2]).T
    return np.stack([across, down, distance - normal @ place[:, 2]])


def _sides(corners: FloatArray) -> FloatArray:
    """Of an outline, (sides, 3): x * first + y * second <= third within."""
    ahead = np.roll(corners, -1, axis=0) - corners
    normal = np.stack([ahead[:, 1], -ahead[:, 0]], axis=1)
    normal /= np.maximum(np.hypot(*normal.T), 1e-12)[:, np.newaxis]
    distance = np.sum(normal * corners, axis=1)
    outwards = np.sign(distance - normal @ corners.mean(axis=0))
    return np.column_stack([normal * outwards[:, np.newaxis], distance * outwards])


def _shown(place: tuple[float, float]) -> str:
    return f"({place[0]:.0f}, {place[1]:.0f})"
