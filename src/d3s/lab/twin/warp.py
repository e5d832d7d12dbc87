"""Warp a layer of uneven depth from the perfect left view to any view, and images to any places."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.lab.twin.geometry import View, Window
from d3s.lab.twin.masks import Coverage
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.simd import FLOATS, load_8, reduce_sum
from d3s.types import FloatArray, Image

# Interpolation between pixels: a tabulated windowed sinc of 20 pixels. A shorter kernel softens
# regions in focus, and biases shifts towards whole pixels.
REACH_PX = 10
_PHASES = 1024
_KAISER_BETA = 7.0

# Fixed-point iterations for the point that a pixel of the right view sees. Each reduces the error
# by the slope of the disparity, which is small on surfaces that face the camera.
_ITERATIONS = 12


class Relief(NamedTuple):
    """A layer with a disparity per pixel, on a window of a view.

    `colour` is already multiplied by `alpha`.
    """

    window: Window
    colour: Image
    alpha: Coverage
    disparity_px: Image


class _Look(NamedTuple):
    """Map from pixels of the view to the arrays of a relief."""

    to_ideal: FloatArray  # (2, 3): pixel (x, y, 1) of the view to (x, y) of the perfect left view
    camera: float  # 0: left; 1: right, the disparity is added
    row: int  # first pixel of the window in the view
    col: int
    source_row: int  # first pixel of the relief in the perfect left view
    source_col: int


def warp_to_view(
    relief: Relief, view: View, window: Window, middle_px: tuple[float, float]
) -> Relief:
    """Relief of a perfect left view, as seen by another view on the pixels of `window`.

    `middle_px` is the pixel (x, y) of the perfect left view on the optical axis. The disparity of
    the result is that of the point seen at each pixel.
    """
    import cv2

    # Map to pixels of a perfect view; the disparity, offset included, is added in the kernel.
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
    corners = (window.row, window.col, relief.window.row, relief.window.col)
    look = _Look(to_ideal, float(view.camera), *corners)
    run_over_rows(_warp_rows, window.rows, *relief[1:], near, look, _sinc_table(), *seen[1:])
    np.clip(seen.alpha, 0.0, 1.0, out=seen.alpha)
    return seen


def read_at(image: Image, x: FloatArray, y: FloatArray) -> Image:
    """Values of an image at places (x, y) between its pixels; its border is repeated beyond it."""
    # Behind the last column, room for the vectors that the loop loads.
    padded = np.pad(image, ((REACH_PX, REACH_PX), (REACH_PX, REACH_PX + FLOATS)), mode="edge")
    table = _sinc_table()
    across = np.zeros((table.shape[0], 3 * FLOATS), dtype=np.float32)
    across[:, : table.shape[1]] = table
    values = np.empty(x.shape, dtype=np.float32)
    run_over_rows(_read_rows, x.shape[0], padded, x, y, table, across, values)
    return values


@compiled
def _read_rows(
    start: int,
    stop: int,
    padded: Image,
    x: FloatArray,
    y: FloatArray,
    down: Image,
    across: Image,
    out: Image,
) -> None:
    """Weighted sum of 20 rows and 20 columns; weights `across` are filled up to 24 with zeros."""
    taps, phases, stride = down.shape[1], down.shape[0] - 1, padded.shape[1]
    last_row, last_col = padded.shape[0] - taps - 1.0, stride - taps - FLOATS - 1.0
    flat, weights = padded.reshape(-1), across.reshape(-1)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            right, below = min(max(x[i, j], 0.0), last_col), min(max(y[i, j], 0.0), last_row)
            col, row = int(right), int(below)
            lines = down[int((below - row) * phases + 0.5)]
            place = (row + 1) * stride + col + 1
            first = lines[0] * load_8(flat, place)
            second = lines[0] * load_8(flat, place + 8)
            third = lines[0] * load_8(flat, place + 16)
            for m in range(1, taps):
                place += stride
                first = first + lines[m] * load_8(flat, place)
                second = second + lines[m] * load_8(flat, place + 8)
                third = third + lines[m] * load_8(flat, place + 16)
            weight = int((right - col) * phases + 0.5) * (3 * FLOATS)
            total = first * load_8(weights, weight) + second * load_8(weights, weight + 8)
            out[i, j] = reduce_sum(total + third * load_8(weights, weight + 16))


@cache
def _sinc_table() -> Image:
    offset = np.arange(_PHASES + 1)[:, np.newaxis] / _PHASES - np.arange(1 - REACH_PX, REACH_PX + 1)
    inside = np.clip(1 - (offset / REACH_PX) ** 2, 0.0, None)
    weights = np.sinc(offset) * np.i0(_KAISER_BETA * np.sqrt(inside))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)


@compiled
def _warp_rows(
    start: int,
    stop: int,
    colour: Image,
    alpha: Coverage,
    disparity: Image,
    near: NDArray[np.uint8],
    look: _Look,
    table: Image,
    out_colour: Image,
    out_alpha: Coverage,
    out_disparity: Image,
) -> None:
    rows, to_ideal = colour.shape[0], look.to_ideal
    for i in range(start, stop):
        for j in range(out_colour.shape[1]):
            y0, x0 = i + look.row, j + look.col
            x = to_ideal[0, 0] * x0 + to_ideal[0, 1] * y0 + to_ideal[0, 2] - look.source_col
            y = to_ideal[1, 0] * x0 + to_ideal[1, 1] * y0 + to_ideal[1, 2] - look.source_row
            y = min(max(y, 0.0), rows - 1.0)
            row = min(int(y + 0.5), rows - 1)
            place, shift = _find(disparity[row], x, look.camera, table.shape[1] // 2)
            out_disparity[i, j] = shift
            out_colour[i, j], out_alpha[i, j] = 0.0, 0.0
            if near[row, int(place)]:
                out_colour[i, j], out_alpha[i, j] = _read(colour, alpha, table, place, y)


@compiled
def _find(disparity: Image, x: float, camera: float, reach: int) -> tuple[float, float]:
    """Position in a row of the left view that a pixel sees, and the disparity there."""
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
def _read(colour: Image, alpha: Coverage, table: Image, x: float, y: float) -> tuple[float, float]:
    """Interpolated colour and opacity; from one row where the view is not rotated."""
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
