"""Distortion of a lens: a sharp image or its depth, moved to where the lens draws it.

A point at place p from the centre of the distortion is drawn at

    p (1 + a r² + b r⁴ + 2 c·p) + c r²,

with a and b the radial distortion of third and fifth order and c that of decentring. To fill a
pixel, the inverse is found by iteration. Images are read with the kernel of
`d3s.rig.interpolation`, which adds no blur.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.lab.twin.geometry import View, Window
from d3s.lab.twin.lens_errors import LensErrors
from d3s.rig.interpolation import BEFORE, TAPS, weights
from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.simd import load_8, reduce_sum
from d3s.types import FloatArray, Image

_PHASES = 1024  # fractions of a pixel in the table of weights
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
    corners = Window(window.row, window.col, 2, 2)
    far = 0.0
    for row in (window.row, window.row + window.rows - 2):
        for col in (window.col, window.col + window.cols - 2):
            box = corners._replace(row=row, col=col)
            x, y = undistorted_places(distortion, box)
            away = np.hypot(x - box.col_numbers, y - box.row_numbers[:, np.newaxis])
            far = max(far, float(away.max()))
    return far


def distort(image: Image, distortion: ViewDistortion, window: Window) -> Image:
    """Image as the lens draws it; beyond its border, its outermost pixels are repeated.

    `window` are the pixels of the view that the image holds, and that are filled.
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
            across = int((x - col) * _PHASES + 0.5) * TAPS
            down = int((y - row) * _PHASES + 0.5) * TAPS
            near, far = load_8(table, across), load_8(table, across + 8)
            # The kernel begins BEFORE pixels before the sample, and the margin one further.
            place = (row + 1) * stride + col + 1
            total = np.float32(0.0)
            for t in range(TAPS):
                line = load_8(flat, place) * near + load_8(flat, place + 8) * far
                total += table[down + t] * reduce_sum(line)
                place += stride
            out[i, j] = total
