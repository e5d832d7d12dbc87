"""A layer of uneven depth, seen by a camera that does not stand where it was painted."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import over_rows
from d3s.scene.geometry import View, Window
from d3s.types import FloatArray, Image

# Reading between pixels: a windowed sinc of 20 pixels, tabulated. A shorter one softens what is in
# focus, and pulls it to whole pixels.
REACH_PX = 10
_PHASES = 1024
_KAISER_BETA = 7.0

# To find the point that a pixel of the right view sees; each gains a factor of the slope of the
# disparity, which is small on anything that still faces the camera.
_ITERATIONS = 12


class Relief(NamedTuple):
    """A layer on the pixels of a perfect left view, its light already masked."""

    window: Window
    colour: Image
    alpha: Image
    disparity_px: Image


def looked_at(relief: Relief, view: View, window: Window, middle_px: tuple[float, float]) -> Relief:
    """The relief on the pixels of a view; its disparity tells what is seen, not where.

    `middle_px` is the pixel (x, y) of the perfect left view that its axis meets.
    """
    import cv2

    # To pixels of a perfect view. The rest of the way is the disparity, offset included.
    to_ideal = view.ray_matrix[:2] * view.optics.focal_length_px
    to_ideal[:, 2] += middle_px
    if view.camera:
        to_ideal[0, 2] -= view.optics.disparity_offset_px
    elif np.array_equal(to_ideal, np.eye(3)[:2]):
        part = window.within(relief.window)
        return Relief(window, *(np.ascontiguousarray(values[part]) for values in relief[1:]))
    seen = Relief(window, *(np.empty(window.shape, dtype=np.float32) for _ in range(3)))
    kernel = np.ones((2 * REACH_PX + 1, 2 * REACH_PX + 1), dtype=np.uint8)
    near = cv2.dilate((relief.alpha > 0).astype(np.uint8), kernel)
    over_rows(
        _look_rows,
        window.rows,
        *relief[1:],
        near,
        to_ideal,
        float(view.camera),
        np.array([window.row, window.col, relief.window.row, relief.window.col]),
        _sinc_table(),
        *seen[1:],
    )
    np.clip(seen.alpha, 0.0, 1.0, out=seen.alpha)
    return seen


@cache
def _sinc_table() -> Image:
    offset = np.arange(_PHASES + 1)[:, np.newaxis] / _PHASES - np.arange(1 - REACH_PX, REACH_PX + 1)
    inside = np.clip(1 - (offset / REACH_PX) ** 2, 0.0, None)
    weights = np.sinc(offset) * np.i0(_KAISER_BETA * np.sqrt(inside))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)


@compiled
def _look_rows(
    start: int,
    stop: int,
    colour: Image,
    alpha: Image,
    disparity: Image,
    near: NDArray[np.uint8],
    to_ideal: FloatArray,
    camera: float,
    corners: NDArray[np.int64],
    table: Image,
    out: Image,
    mask: Image,
    moved: Image,
) -> None:
    rows = colour.shape[0]
    for i in range(start, stop):
        for j in range(out.shape[1]):
            y0, x0 = i + corners[0], j + corners[1]
            x = to_ideal[0, 0] * x0 + to_ideal[0, 1] * y0 + to_ideal[0, 2] - corners[3]
            y = to_ideal[1, 0] * x0 + to_ideal[1, 1] * y0 + to_ideal[1, 2] - corners[2]
            y = min(max(y, 0.0), rows - 1.0)
            row = min(int(y + 0.5), rows - 1)
            place, shift = _find(disparity[row], x, camera, table.shape[1] // 2)
            moved[i, j] = shift
            out[i, j], mask[i, j] = 0.0, 0.0
            if near[row, int(place)]:
                out[i, j], mask[i, j] = _read(colour, alpha, table, place, y)


@compiled
def _find(disparity: Image, x: float, camera: float, reach: int) -> tuple[float, float]:
    """Where on a row of the left view a pixel looks, and the disparity there."""
    last = disparity.size - reach - 1.001
    place = min(max(x, reach - 1.0), last)
    if camera == 0:
        return place, disparity[int(place + 0.5)]
    shift = 0.0
    for _ in range(_ITERATIONS):
        k = int(place)
        share = place - k
        shift = disparity[k] * (1 - share) + disparity[k + 1] * share
        before = place
        place = min(max(x + shift, reach - 1.0), last)
        if abs(place - before) < 1e-4:
            break
    return place, shift


@compiled
def _read(colour: Image, alpha: Image, table: Image, x: float, y: float) -> tuple[float, float]:
    """Colour and opacity between pixels: of one row where the view is level, as most are."""
    rows = colour.shape[0]
    reach, phases = table.shape[1] // 2, table.shape[0] - 1
    col, row, level_row = int(x), int(y), min(int(y + 0.5), rows - 1)
    across, down = table[int((x - col) * phases + 0.5)], table[int((y - row) * phases + 0.5)]
    is_level = abs(y - level_row) < 1e-6
    total = cover = 0.0
    for m in range(1 if is_level else 2 * reach):
        line = level_row if is_level else min(max(row - reach + 1 + m, 0), rows - 1)
        line_total = line_cover = 0.0
        for t in range(2 * reach):
            line_total += across[t] * colour[line, col - reach + 1 + t]
            line_cover += across[t] * alpha[line, col - reach + 1 + t]
        share = 1.0 if is_level else down[m]
        total += share * line_total
        cover += share * line_cover
    return total, cover
