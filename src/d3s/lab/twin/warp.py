"""Images moved: layers of uneven depth to any view, and sharp images to where a lens draws them.

A lens with distortion draws a point at place p from the centre of the distortion at

    p (1 + a r² + b r⁴ + 2 c·p) + c r²,

with a and b the radial distortion of third and fifth order and c that of decentring. To fill a
pixel, the inverse is found by iteration.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.lab.twin.geometry import View, Window
from d3s.lab.twin.lens_errors import LensErrors
from d3s.rig.interpolation import BEFORE, PHASES, TAPS, dot_16, weights
from d3s.runtime.compile import compiled, part
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
    alpha: Image
    disparity_px: Image


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
    table = _sinc_table()
    run_over_rows(_warp_rows, window.rows, relief, near, to_ideal, view.camera, table, seen)
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
    relief: Relief,
    near: NDArray[np.uint8],
    to_ideal: FloatArray,
    camera: int,
    table: Image,
    out: Relief,
) -> None:
    """Fill rows; `to_ideal` (2, 3) maps pixels of the view to those of the perfect left view."""
    _, colour, alpha, disparity = relief
    _, out_colour, out_alpha, out_disparity = out
    rows = colour.shape[0]
    for i in range(start, stop):
        for j in range(out_colour.shape[1]):
            y0, x0 = i + out.window.row, j + out.window.col
            x = to_ideal[0, 0] * x0 + to_ideal[0, 1] * y0 + to_ideal[0, 2] - relief.window.col
            y = to_ideal[1, 0] * x0 + to_ideal[1, 1] * y0 + to_ideal[1, 2] - relief.window.row
            y = min(max(y, 0.0), rows - 1.0)
            row = min(int(y + 0.5), rows - 1)
            place, shift = _find(disparity[row], x, camera, table.shape[1] // 2)
            out_disparity[i, j] = shift
            out_colour[i, j], out_alpha[i, j] = 0.0, 0.0
            if near[row, int(place)]:
                out_colour[i, j], out_alpha[i, j] = _read(colour, alpha, table, place, y)


@compiled
def _find(disparity: Image, x: float, camera: int, reach: int) -> tuple[float, float]:
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
def _read(colour: Image, alpha: Image, table: Image, x: float, y: float) -> tuple[float, float]:
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


_MOST_STEPS = 60
_EXACT_PX = 1e-7


class ViewDistortion(NamedTuple):
    """Distortion of a view: its centre in pixels, the unit of places, and the coefficients."""

    centre_x: float
    centre_y: float
    radius_px: float
    third: float
    fifth: float
    decentring_x: float
    decentring_y: float


def distortion_of(errors: LensErrors, view: View) -> ViewDistortion:
    """Distortion of a lens in the pixels of a view."""
    return ViewDistortion(
        *errors.centre_px(view),
        errors.field_radius_px,
        errors.distortion_third,
        errors.distortion_fifth,
        errors.decentring_x,
        errors.decentring_y,
    )


def undistorted_places(distortion: ViewDistortion, window: Window) -> tuple[FloatArray, FloatArray]:
    """Pixels (x, y) without distortion that are drawn at the pixels of a window."""
    x, y = np.empty(window.shape), np.empty(window.shape)
    run_over_rows(_fill_places, window.rows, distortion, window, x, y)
    return x, y


def largest_shift_px(distortion: ViewDistortion, window: Window) -> float:
    """Largest distance between a pixel of a window and its place without distortion."""
    far = []
    for row in (window.row, window.row + window.rows - 2):
        for col in (window.col, window.col + window.cols - 2):
            corner = Window(row, col, 2, 2)
            x, y = undistorted_places(distortion, corner)
            away = np.hypot(x - corner.col_numbers, y - corner.row_numbers[:, np.newaxis])
            far.append(float(away.max()))
    return max(far)


def distort(image: Image, distortion: ViewDistortion, window: Window) -> Image:
    """Image as the lens draws it; beyond its border, its outermost pixels are repeated.

    The kernel of `d3s.rig.interpolation` adds no blur. `window` are the pixels of the
    view that the image holds, and that are filled.
    """
    before, behind = BEFORE + 1, TAPS - BEFORE
    padded = np.ascontiguousarray(np.pad(image, (before, behind), mode="edge"))
    out = np.empty(window.shape, dtype=np.float32)
    table = weights().reshape(-1)
    run_over_rows(_distort_rows, window.rows, padded, distortion, window, table, out)
    return out


def nearest_pixels(
    distortion: ViewDistortion, window: Window, source: Window
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns in `source` nearest to the undistorted places of the pixels of `window`.

    Places beyond `source` are clamped to it.
    """
    x, y = undistorted_places(distortion, window)
    rows = np.clip(np.rint(y).astype(np.int64) - source.row, 0, source.rows - 1)
    cols = np.clip(np.rint(x).astype(np.int64) - source.col, 0, source.cols - 1)
    return rows, cols


@part
def _undistorted(distortion: ViewDistortion, x: float, y: float) -> tuple[float, float]:
    """Place that is drawn at pixel (x, y), by fixed-point iteration."""
    radius = distortion.radius_px
    drawn_x, drawn_y = (x - distortion.centre_x) / radius, (y - distortion.centre_y) / radius
    a, b = drawn_x, drawn_y
    for _ in range(_MOST_STEPS):
        square = a * a + b * b
        lean = 2 * (distortion.decentring_x * a + distortion.decentring_y * b)
        more = distortion.third * square + distortion.fifth * square * square + lean
        next_a = drawn_x - a * more - distortion.decentring_x * square
        next_b = drawn_y - b * more - distortion.decentring_y * square
        change = abs(next_a - a) + abs(next_b - b)
        a, b = next_a, next_b
        if change * radius < _EXACT_PX:
            break
    return a * radius + distortion.centre_x, b * radius + distortion.centre_y


@compiled
def _fill_places(
    start: int, stop: int, distortion: ViewDistortion, window: Window, x: FloatArray, y: FloatArray
) -> None:
    for i in range(start, stop):
        for j in range(window.cols):
            x[i, j], y[i, j] = _undistorted(distortion, window.col + j, window.row + i)


@compiled
def _distort_rows(
    start: int,
    stop: int,
    padded: Image,
    distortion: ViewDistortion,
    window: Window,
    table: Image,
    out: Image,
) -> None:
    """Fill rows from an image with a margin of BEFORE + 1 before it and enough behind it."""
    flat, stride = padded.reshape(-1), padded.shape[1]
    last_row, last_col = out.shape[0] - 1.0, out.shape[1] - 1.0
    for i in range(start, stop):
        for j in range(out.shape[1]):
            x, y = _undistorted(distortion, window.col + j, window.row + i)
            x = min(max(x - window.col, 0.0), last_col)
            y = min(max(y - window.row, 0.0), last_row)
            col, row = int(x), int(y)
            across = int((x - col) * PHASES + 0.5) * TAPS
            down = int((y - row) * PHASES + 0.5) * TAPS
            # The kernel begins BEFORE pixels before the sample, and the margin one further.
            place = (row + 1) * stride + col + 1
            total = np.float32(0.0)
            for t in range(TAPS):
                total += table[down + t] * dot_16(flat, place, table, across)
                place += stride
            out[i, j] = total
