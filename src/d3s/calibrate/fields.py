"""Fields: the parts of the sensor that the two lenses light; and the views cut from these.

Two bright fields have the shadow of a partition between them. The board has dark parts, so the
brightest of several frames is taken at each pixel. Dark ink that is left is filled in: a field is
convex, without holes.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.frames import Captures
from d3s.errors import CalibrationError, InputError
from d3s.record import short_repr
from d3s.rig import Calibration
from d3s.rig.calibration import view_to_raw_matrices, view_to_raw_places
from d3s.rig.interpolation import BEHIND
from d3s.types import FloatArray, Image, Mask

Half = Literal["left", "right"]
"""One half of the upright raw frame."""

_FRAMES = 7  # frames that are used, from the nearest to the farthest
_CELLS_ACROSS = 480  # cells over the width of the frame: the resolution of the outlines
_FILLED_CELLS = 6  # radius of dark ink that is filled in
_PARTITION_WITHIN = (0.2, 0.8)  # range of the partition, as shares of the width of the frame
DARKEST_SHARE = 0.6  # largest light in the shadow of the partition, of the light beside it
_LEAST_LIGHT = 0.1  # least light of the weaker field, as a share of the other
# Lit cells have at least this share of the light of the field: half of the light at the edge of a
# field that loses a third by vignetting.
_LIT = 0.35
_SMALLEST_SHARE = 0.02  # least area of a field, as a share of its half of the frame
_SMALLEST_BOX_PX = 32
_SMALLEST_VIEW_PX = 64  # rows and columns of a view: room for windows and disparities
_NEAR_SIZES = 0.15  # largest change of the size of a view by distortion
_BORDER_PLACES = 17  # along each side of a view
_HALVINGS = 20  # from the height of a frame to a small part of a pixel


class Box(NamedTuple):
    """A rectangle in the frame, in pixels."""

    row: int
    col: int
    rows: int
    cols: int

    def of(self, image: NDArray[np.generic]) -> NDArray[np.generic]:
        """The part of an image within this box."""
        return image[self.row : self.row + self.rows, self.col : self.col + self.cols]


class Fields(NamedTuple):
    """Fields of both lenses: a box each, and within it a convex outline."""

    left: Box
    right: Box
    left_outline_px: FloatArray  # (corners, 2): x, y in the raw frame
    right_outline_px: FloatArray
    light: tuple[float, float]  # brightness of white on the board, left and right, of full scale
    partition_px: float | None  # column of the middle of the shadow; None if boxes were given

    @property
    def radius_px(self) -> float:
        """Half the longest side of a field: the unit of places in a view."""
        return max(self.left.rows, self.left.cols, self.right.rows, self.right.cols) / 2

    def mask(self, camera: int) -> Mask:
        """Pixels within the outline, (box.rows, box.cols); camera 0 is left, 1 is right."""
        import cv2

        box = (self.left, self.right)[camera]
        outline = (self.left_outline_px, self.right_outline_px)[camera]
        mask = np.zeros((box.rows, box.cols), dtype=np.uint8)
        corners = np.rint(outline - (box.col, box.row)).astype(np.int32)
        cv2.fillConvexPoly(mask, corners, 1)
        return mask.astype(np.bool_)


def find_fields(
    captures: Captures, *, left_lens: Half = "right", boxes: tuple[Box, Box] | None = None
) -> Fields:
    """Find the fields of both lenses from the light in several frames.

    `left_lens` is the half of the upright frame that the left lens lights. It is ignored if boxes
    of the left and the right lens, in this order, are given.
    """
    if left_lens not in ("left", "right"):
        raise InputError(f"left_lens={left_lens!r} must be 'left' or 'right'.")
    given = None if boxes is None else _checked_boxes(boxes, captures.shape)
    light, cell_px = _brightest_cells(captures)
    if given is not None:
        return _from_boxes(given, light, cell_px)
    light = np.maximum(light - np.float32(np.percentile(light, 1)), 0)  # subtract the black level
    partition = _partition(light)
    halves = light[:, :partition], light[:, partition:]
    first, second = (_outline(half, cell_px) for half in halves)
    outlines = first, second + np.array([partition * cell_px, 0.0])
    levels = [_white_level(half) for half in halves]
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


def _brightest_cells(captures: Captures) -> tuple[Image, float]:
    """Maximum over several frames, averaged over cells; and the size of a cell in pixels."""
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


def _white_level(light: Image) -> float:
    """Brightness of the white parts of the board: the 95th percentile."""
    return float(np.percentile(light, 95)) if light.size else 0.0


def _partition(light: Image) -> int:
    """First column of the right half, in cells: the middle of the shadow of the partition."""
    cols = light.shape[1]
    across = np.percentile(light, 90, axis=0)
    first, last = (round(share * cols) for share in _PARTITION_WITHIN)
    darkest = first + int(np.argmin(across[first:last]))
    beside = min(_white_level(light[:, :darkest]), _white_level(light[:, darkest:]))
    if beside < _LEAST_LIGHT * _white_level(light):
        raise CalibrationError(
            "only one field of light was found, and a camera of two lenses has two, with a shadow "
            "between them. Is a lens covered, or are these frames of one view?"
        )
    if across[darkest] > DARKEST_SHARE * beside:
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
    """Corners (corners, 2) of the field in one half of the frame, in pixels of that half."""
    import cv2

    size = 2 * _FILLED_CELLS + 1
    disk = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    # Pad with darkness: otherwise closing would fill dark parts at the edge of the half.
    filled = cv2.morphologyEx(np.pad(light, size), cv2.MORPH_CLOSE, disk)[size:-size, size:-size]
    lit = (filled > _LIT * _white_level(light)).astype(np.uint8)
    # Erosion removes thin bridges to stray light, and the outermost cells, where light falls off.
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


def _from_boxes(boxes: tuple[Box, Box], light: Image, cell_px: float) -> Fields:
    left, right = boxes
    outlines = []
    levels = []
    for box in (left, right):
        ends = np.array([box.col, box.row, box.col + box.cols - 1, box.row + box.rows - 1], float)
        outlines.append(ends[[[0, 1], [2, 1], [2, 3], [0, 3]]])
        cells = Box(*(int(value / cell_px) for value in box))
        levels.append(_white_level(np.asarray(cells.of(light), dtype=np.float32)))
    return Fields(left, right, outlines[0], outlines[1], (levels[0], levels[1]), None)


def _checked_boxes(boxes: Any, shape: tuple[int, int]) -> tuple[Box, Box]:
    try:
        left, right = boxes
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the boxes of the lenses (regions=) are {short_repr(boxes)}: they must be two, of the "
            "left and of the right lens, and each of them row, col, rows and cols."
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
            f"the box of the {name} lens is {short_repr(box)}: it must be four whole numbers, row, "
            "col, rows and cols."
        )
    is_within = whole.row >= 0 and whole.col >= 0
    is_within &= whole.row + whole.rows <= shape[0] and whole.col + whole.cols <= shape[1]
    if not is_within or min(whole.rows, whole.cols) < _SMALLEST_BOX_PX:
        raise InputError(
            f"the box of the {name} lens, {tuple(whole)}, must lie within the frame of {shape} and "
            f"have at least {_SMALLEST_BOX_PX} rows and columns. It is row, col, rows, cols."
        )
    return whole


# Crop ---------------------------------------------------------------------------------------------


def largest_crop(
    fields: Fields, calibration: Calibration, frame_shape: tuple[int, int], disparity_px: float
) -> tuple[int, int]:
    """Rows and columns of the largest views around the anchors that both lenses light.

    Both views are centred on the anchors, as in the paper, and lie within the fields. Of all such
    rectangles, the result is the one in which most pixels have a match at the largest disparity.

    The calibration gives anchors and rectification; its crop is ignored. The disparity is the
    largest, that of the nearest board. Raises a `CalibrationError` if an anchor lies so near the
    edge of its field that no view of 64 px fits around it.
    """
    centred = calibration.replace(crop_rows_px=1, crop_cols_px=1)
    sides = [
        _limiting_sides(outline, frame_shape)
        for outline in (fields.left_outline_px, fields.right_outline_px)
    ]
    half_cols = np.arange(_SMALLEST_VIEW_PX / 2, max(frame_shape) / 2, 0.5)
    half_rows = _straight_reach(centred, sides, half_cols)
    area = half_rows * (2 * half_cols - disparity_px)
    if calibration.lenses is not None:
        most_rows = (1 + _NEAR_SIZES) * half_rows.max()
        # Distortion changes the size little: look around the best without it, then more closely.
        for reach_px, step_px in ((_NEAR_SIZES * half_cols[np.argmax(area)], 8.0), (8.0, 0.5)):
            middle, steps = half_cols[np.argmax(area)], round(reach_px / step_px)
            half_cols = middle + step_px * np.arange(-steps, steps + 1)
            half_rows = _distorted_reach(centred, sides, half_cols, most_rows)
            area = half_rows * (2 * half_cols - disparity_px)
    best = int(np.argmax(area))
    rows, cols = int(2 * half_rows[best]) + 1, int(2 * half_cols[best]) + 1
    if rows < _SMALLEST_VIEW_PX or area[best] <= 0:
        raise CalibrationError(
            f"around the anchors {_rounded(calibration.anchor_left_px)} and "
            f"{_rounded(calibration.anchor_right_px)} there is no part that both lenses light. Did "
            "the board move straight towards the camera?"
        )
    return rows, cols


def _limiting_sides(outline_px: FloatArray, frame_shape: tuple[int, int]) -> FloatArray:
    """Sides of a field, and of the frame less what the kernel needs; as `_sides` gives them."""
    rows, cols = frame_shape
    first, last_x, last_y = float(BEHIND), cols - 1.0 - BEHIND, rows - 1.0 - BEHIND
    frame = np.array([[first, first], [last_x, first], [last_x, last_y], [first, last_y]])
    return np.concatenate([_sides(outline_px), _sides(frame)])


def _straight_reach(
    centred: Calibration, sides: list[FloatArray], half_cols: FloatArray
) -> FloatArray:
    """Largest half of the rows of views with these halves of columns, without distortion.

    A view lies within a convex outline if its corners do. So each side limits half a view by
    across * half_cols + down * half_rows <= room.
    """
    reach = np.full(half_cols.shape, np.inf)
    for place, (normal_x, normal_y, distance) in zip(
        view_to_raw_matrices(centred), (one.T for one in sides), strict=True
    ):
        normal = np.stack([normal_x, normal_y], axis=1)
        across, down = np.abs(normal @ place[:, :2]).T
        room = distance - normal @ place[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = (room - np.outer(half_cols, across)) / down
        # A vertical edge limits the columns only: it leaves any number of rows, or none.
        is_within = room >= np.outer(half_cols, across)
        rows = np.where(down > 1e-12, rows, np.where(is_within, np.inf, -1))
        reach = np.minimum(reach, rows.min(axis=1))
    return reach


def _distorted_reach(
    centred: Calibration, sides: list[FloatArray], half_cols: FloatArray, most_rows: float
) -> FloatArray:
    """Largest half of the rows as `_straight_reach` gives it, but with distortion.

    The border of a view is curved: many places along it lie within the outline. The largest view is
    found by bisection.
    """
    along, end = np.linspace(-1, 1, _BORDER_PLACES), np.ones(_BORDER_PLACES)
    unit_x, unit_y = np.concatenate([[along, end], [along, -end], [end, along], [-end, along]], 1)
    low = np.zeros(half_cols.shape)
    high = np.full(half_cols.shape, max(most_rows, 0.0))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = np.ones(half_cols.shape, dtype=np.bool_)
        for camera, limits in enumerate(sides):
            places = view_to_raw_places(
                centred, camera, np.outer(half_cols, unit_x), np.outer(middle, unit_y)
            )
            outside = np.tensordot(limits[:, :2], places, 1) - limits[:, 2, np.newaxis, np.newaxis]
            fits &= outside.max(axis=(0, 2)) <= 0
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def _sides(corners: FloatArray) -> FloatArray:
    """Sides of an outline, (sides, 3): x * first + y * second <= third for points within."""
    ahead = np.roll(corners, -1, axis=0) - corners
    normal = np.stack([ahead[:, 1], -ahead[:, 0]], axis=1)
    normal /= np.maximum(np.hypot(*normal.T), 1e-12)[:, np.newaxis]
    distance = np.sum(normal * corners, axis=1)
    outwards = np.sign(distance - normal @ corners.mean(axis=0))
    return np.column_stack([normal * outwards[:, np.newaxis], distance * outwards])


def _rounded(place: tuple[float, float]) -> str:
    return f"({place[0]:.0f}, {place[1]:.0f})"
