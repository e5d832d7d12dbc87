"""Where the two lenses light the sensor: two bright fields, and the shadow of a partition between.

What is bright depends on the board, so several frames are looked at together: light that any of
them shows gets there. Dark ink that is left is filled in, as a field has no holes and no dents.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.captures import Captures
from d3s.calibrate.kinds import Half
from d3s.errors import CalibrationError, InputError
from d3s.record import shown
from d3s.types import FloatArray, Image, Mask

_FRAMES = 7  # that are looked at, from the nearest to the farthest
_CELLS_ACROSS = 480  # what is told apart, in columns of the frame
_FILLED_CELLS = 6  # radius of dark ink that is filled in
_PARTITION_WITHIN = (0.2, 0.8)  # of the width of the frame
_DARKEST_SHARE = 0.6  # that the shadow of the partition may have of the light beside it
_LEAST_LIGHT = 0.1  # of the weaker field, of the light of the other
# Half of the light at the rim of a field that loses a third by vignetting.
_LIT = 0.35
_SMALLEST_SHARE = 0.02  # of the frame, for a field to be one
_SMALLEST_BOX_PX = 32


class Box(NamedTuple):
    """A part of the frame."""

    row: int
    col: int
    rows: int
    cols: int

    def of(self, image: NDArray[np.generic]) -> NDArray[np.generic]:
        """That part of an image."""
        return image[self.row : self.row + self.rows, self.col : self.col + self.cols]


class Fields(NamedTuple):
    """What each lens lights well: a box, and within it an outline without dents."""

    left: Box
    right: Box
    left_outline_px: FloatArray  # (corners, 2): x, y in the raw frame
    right_outline_px: FloatArray
    light: tuple[float, float]  # the bright parts of the board, left and right, of full scale
    partition_px: float | None  # column of the middle of its shadow; None where boxes were given

    def mask(self, camera: int) -> Mask:
        """Pixels within the outline, of the box of camera 0 (left) or 1 (right)."""
        import cv2

        box = (self.left, self.right)[camera]
        outline = (self.left_outline_px, self.right_outline_px)[camera]
        mask = np.zeros((box.rows, box.cols), dtype=np.uint8)
        corners = np.rint(outline - (box.col, box.row)).astype(np.int32)
        cv2.fillConvexPoly(mask, corners, 1)
        return mask.astype(np.bool_)


def find_fields(
    captures: Captures,
    *,
    left_lens: Half = "right",
    boxes: tuple[Box, Box] | None = None,
) -> Fields:
    """Fields of both lenses.

    Parameters
    ----------
    captures
        Frames of a board.
    left_lens
        The half of the upright frame that the left lens lights; boxes say it themselves.
    boxes
        Those of the left and the right lens, in this order, if they are known better.

    Raises
    ------
    CalibrationError
        When there are not two fields.
    InputError
        When the boxes cannot be.
    """
    if left_lens not in ("left", "right"):
        raise InputError(f"left_lens={left_lens!r} must be 'left' or 'right'.")
    given = None if boxes is None else _checked_boxes(boxes, captures.shape)
    light, cell_px = _light(captures)
    if given is not None:
        return _given(given, light, cell_px)
    light = np.maximum(light - np.float32(np.percentile(light, 1)), 0)  # without the black level
    partition = _partition(light)
    halves = light[:, :partition], light[:, partition:]
    first, second = (_outline(half, cell_px) for half in halves)
    outlines = first, second + np.array([partition * cell_px, 0.0])
    levels = [_level(half) for half in halves]
    order = (1, 0) if left_lens == "right" else (0, 1)
    left, right = (outlines[number] for number in order)
    return Fields(
        left=_box(left, captures.shape),
        right=_box(right, captures.shape),
        left_outline_px=left,
        right_outline_px=right,
        light=(levels[order[0]], levels[order[1]]),
        partition_px=partition * cell_px - 0.5,
    )


def _light(captures: Captures) -> tuple[Image, float]:
    """The most light that any of several frames shows, in cells, and the size of one."""
    import cv2

    rows, cols = captures.shape
    cell_px = max(cols / _CELLS_ACROSS, 1.0)
    size = max(round(cols / cell_px), 1), max(round(rows / cell_px), 1)
    numbers = np.unique(np.linspace(0, len(captures) - 1, _FRAMES).round().astype(int))
    cells = [
        cv2.resize(captures.image(int(number)), size, interpolation=cv2.INTER_AREA)
        for number in numbers
    ]
    return np.max(cells, axis=0), cols / size[0]


def _level(light: Image) -> float:
    """Light of the bright parts of the board."""
    return float(np.percentile(light, 95)) if light.size else 0.0


def _partition(light: Image) -> int:
    """First column of the right half: the middle of the shadow."""
    cols = light.shape[1]
    across = np.percentile(light, 90, axis=0)
    first, last = (round(share * cols) for share in _PARTITION_WITHIN)
    darkest = first + int(np.argmin(across[first:last]))
    beside = min(_level(light[:, :darkest]), _level(light[:, darkest:]))
    if beside < _LEAST_LIGHT * _level(light):
        raise CalibrationError(
            "only one field of light was found, and a camera of two lenses has two, with a shadow "
            "between them. Is a lens covered, or are these frames of one view?"
        )
    if across[darkest] > _DARKEST_SHARE * beside:
        raise CalibrationError(
            "no shadow of a partition was found between two fields of light: the darkest column "
            f"still has {across[darkest] / beside:.0%} of the light beside it. Give the boxes of "
            "both views, or mend the partition."
        )
    limit = (across[darkest] + beside) / 2
    start, stop = darkest, darkest
    while start > 0 and across[start - 1] < limit:
        start -= 1
    while stop < cols - 1 and across[stop + 1] < limit:
        stop += 1
    return int(start + stop + 2) // 2


def _outline(light: Image, cell_px: float) -> FloatArray:
    """Corners (x, y) of the field in one half, in pixels of that half."""
    import cv2

    size = 2 * _FILLED_CELLS + 1
    disk = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    # Darkness all around, or what is dark beside an end of the half would be filled in.
    filled = cv2.morphologyEx(np.pad(light, size), cv2.MORPH_CLOSE, disk)[size:-size, size:-size]
    lit = (filled > _LIT * _level(light)).astype(np.uint8)
    # Thin bridges to stray light go, and so does a rim of one cell, in which light falls off.
    count, labels, statistics, _ = cv2.connectedComponentsWithStats(cv2.erode(lit, np.ones((3, 3))))
    areas = statistics[1:count, cv2.CC_STAT_AREA]
    if not areas.size or areas.max() < _SMALLEST_SHARE * light.size:
        raise CalibrationError(
            "one of the two fields of light is too small to be the view of a lens. Is the board "
            "lit evenly, and is each lens before its half of the sensor?"
        )
    rows, cols = np.nonzero(labels == 1 + int(np.argmax(areas)))
    corners = np.concatenate(
        [np.stack([cols + x, rows + y], axis=1) for x in (0, 1) for y in (0, 1)]
    )
    hull = cv2.convexHull(corners.astype(np.int32))[:, 0]
    return np.asarray(hull * cell_px - 0.5, dtype=np.float64)


def _box(outline_px: FloatArray, shape: tuple[int, int]) -> Box:
    low, high = np.ceil(outline_px.min(axis=0)), np.floor(outline_px.max(axis=0))
    col, row = (int(value) for value in np.maximum(low, 0))
    last_col, last_row = (int(value) for value in np.minimum(high, (shape[1] - 1, shape[0] - 1)))
    return Box(row, col, last_row - row + 1, last_col - col + 1)


def _given(boxes: tuple[Box, Box], light: Image, cell_px: float) -> Fields:
    left, right = boxes
    outlines = []
    levels = []
    for box in (left, right):
        ends = np.array([box.col, box.row, box.col + box.cols - 1, box.row + box.rows - 1], float)
        outlines.append(ends[[[0, 1], [2, 1], [2, 3], [0, 3]]])
        cells = Box(*(int(value / cell_px) for value in box))
        levels.append(_level(np.asarray(cells.of(light), dtype=np.float32)))
    return Fields(left, right, outlines[0], outlines[1], (levels[0], levels[1]), None)


def _checked_boxes(boxes: Any, shape: tuple[int, int]) -> tuple[Box, Box]:
    try:
        left, right = boxes
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the boxes of the lenses (regions=) are {shown(boxes)}: they must be two, of the left "
            "and of the right lens, and each of them row, col, rows and cols."
        ) from error
    return _checked(left, "left", shape), _checked(right, "right", shape)


def _checked(box: Any, name: str, shape: tuple[int, int]) -> Box:
    try:
        whole = Box(*(int(value) for value in box))
        is_whole = tuple(whole) == tuple(box)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise InputError(
            f"the box of the {name} lens is {shown(box)}: it must be four whole numbers, row, col, "
            "rows and cols."
        )
    is_within = whole.row >= 0 and whole.col >= 0
    is_within &= whole.row + whole.rows <= shape[0] and whole.col + whole.cols <= shape[1]
    if not is_within or min(whole.rows, whole.cols) < _SMALLEST_BOX_PX:
        raise InputError(
            f"the box of the {name} lens, {tuple(whole)}, must lie within the frame of {shape} and "
            f"have at least {_SMALLEST_BOX_PX} rows and columns. It is row, col, rows, cols."
        )
    return whole
