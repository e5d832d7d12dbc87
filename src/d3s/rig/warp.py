"""Resample a view of a lens with distortion and vignetting.

Along one column of a view, the place in the raw frame and the light of the lens are polynomials of
the row. So is, to far less than a thousandth of a pixel, the place at which the column crosses a
row of the sensor. These polynomials are worked out once for a calibration; with them a view is
sampled along the rows of the sensor and then along its own columns, as without distortion.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.rig.calibration import Calibration
from d3s.rig.interpolation import BEFORE, BEHIND, PHASES, TAPS, dot_16, is_plateau
from d3s.rig.places import view_to_raw_places
from d3s.runtime.compile import compiled, inlined, part
from d3s.types import FloatArray, Image

BLOCK_ROWS = 16  # one cache line of a column

_DOWN_NODES = 6  # distortion of 5th order is exact
_LIGHT_NODES = 7  # the highest degree of a map is exact
_ACROSS_NODES = 9
_NEWTON_STEPS = 4
_SIDE_PLACES = 129  # along each side of a view
_CACHED_VIEWS = 8


class Warp(NamedTuple):
    """Polynomials of each column of a view, (cols, 2 + coefficients).

    The argument of a polynomial is (row - first number) * second number.
    """

    across: FloatArray  # raw x at a row of the raw frame
    down: FloatArray  # raw y at a row of the view
    light: FloatArray  # light of the lens at a row of the view


class WarpedView(NamedTuple):
    """Warp of one view, with the places of its border in the raw frame and its range of light."""

    warp: Warp
    border_x_px: FloatArray
    border_y_px: FloatArray
    least_light: float
    largest_light: float


@lru_cache(_CACHED_VIEWS)
def warped_view(calibration: Calibration, camera: int) -> WarpedView:
    """Warp of one view of a calibration with `lenses`; camera 0 is left, 1 is right."""
    lenses = calibration.lenses
    if lenses is None:
        raise ValueError("the calibration has no errors of lenses.")
    rows, cols = calibration.crop_rows_px, calibration.crop_cols_px
    middle, half = (rows - 1) / 2, max((rows - 1) / 2, 0.5)
    j = np.arange(cols, dtype=np.float64)[:, np.newaxis]
    i = middle + half * _nodes(_DOWN_NODES)
    _, y = view_to_raw_places(calibration, camera, j, i)
    place_x = (j - (cols - 1) / 2) / lenses.field_radius_px
    place_y = half * _nodes(_LIGHT_NODES) / lenses.field_radius_px
    light = np.broadcast_to(lenses.illumination(camera, place_x, place_y), (cols, _LIGHT_NODES))
    warp = Warp(
        across=_across(calibration, camera, j),
        down=_curves(y, middle, half),
        light=_curves(light, middle, half),
    )
    everywhere = np.linspace(-1, 1, _SIDE_PLACES)
    grid = lenses.illumination(
        camera, everywhere * place_x[-1], everywhere[:, np.newaxis] * half / lenses.field_radius_px
    )
    border_x, border_y = _border(rows, cols)
    border = view_to_raw_places(calibration, camera, border_x, border_y)
    return WarpedView(warp, border[0], border[1], float(grid.min()), float(grid.max()))


def _nodes(count: int) -> FloatArray:
    """Chebyshev nodes from -1 to 1."""
    return np.cos(np.pi * (np.arange(count) + 0.5) / count)


def _curves(values: FloatArray, middle: float | FloatArray, half: float | FloatArray) -> FloatArray:
    """Polynomials through values (cols, nodes), with the argument (row - middle) / half."""
    cols, count = values.shape
    powers = np.vander(_nodes(count), increasing=True)
    out = np.empty((cols, 2 + count))
    out[:, 0], out[:, 1] = middle, 1 / np.asarray(half)
    out[:, 2:] = np.linalg.solve(powers, values.T).T
    return out


def _across(calibration: Calibration, camera: int, j: FloatArray) -> FloatArray:
    """Raw x at which the columns of a view cross the rows of the sensor, as polynomials.

    They hold for the rows that the kernel reaches from the column.
    """
    last = calibration.crop_rows_px - 1.0
    ends = view_to_raw_places(calibration, camera, j, np.array([0.0, last]))[1]
    top, bottom = ends[:, :1] - TAPS, ends[:, 1:] + TAPS
    middle, half = (top + bottom) / 2, (bottom - top) / 2
    rows = middle + half * _nodes(_ACROSS_NODES)
    i = last / 2 + (rows - middle)
    for _ in range(_NEWTON_STEPS):
        before, y, after = (
            view_to_raw_places(calibration, camera, j, i + step)[1] for step in (-0.5, 0.0, 0.5)
        )
        i = i + (rows - y) / (after - before)
    return _curves(view_to_raw_places(calibration, camera, j, i)[0], middle[:, 0], half[:, 0])


def _border(rows: int, cols: int) -> tuple[FloatArray, FloatArray]:
    """Places (x, y) along the border of a view."""
    across, down = (np.linspace(0, size - 1, _SIDE_PLACES) for size in (cols, rows))
    first, last_x, last_y = np.zeros(_SIDE_PLACES), across[-1:], down[-1:]
    x = np.concatenate([across, across, first, first + last_x])
    y = np.concatenate([first, first + last_y, down, down])
    return x, y


@inlined
def _along_column(
    curves: FloatArray, j: int, first: int, rows: FloatArray, out: FloatArray
) -> None:
    """Values of the polynomial of column `j` at rows that begin at `first`.

    `rows` counts from 0 on. (Loops over `out.size`, and not over a constant, become SIMD code.)
    """
    highest = curves.shape[1] - 1
    scale = curves[j, 1]
    offset = (first - curves[j, 0]) * scale
    for k in range(out.size):
        out[k] = curves[j, highest]
    for power in range(highest - 1, 1, -1):
        coefficient = curves[j, power]
        for k in range(out.size):
            out[k] = out[k] * (rows[k] * scale + offset) + coefficient


@part
def _at_row(curves: FloatArray, j: int, row: float) -> float:
    """Value of the polynomial of column `j` at one row."""
    argument = (row - curves[j, 0]) * curves[j, 1]
    value = 0.0
    for power in range(curves.shape[1] - 1, 1, -1):
        value = value * argument + curves[j, power]
    return value


@compiled
def sample_rows(
    start: int,
    stop: int,
    raw: Image,
    cols: int,
    warp: Warp,
    origin: FloatArray,
    table: Image,
    out: Image,
) -> None:
    """Sensor rows sampled at the columns of the view; `out` is (view column, sensor row).

    `raw` has rows of `cols` values, one after the other; `origin` is the row and column of the raw
    frame of its first value.
    """
    numbers, places = np.arange(0.0, BLOCK_ROWS), np.empty(BLOCK_ROWS)
    first_row, first_col = int(origin[0]), origin[1]
    for first in range(start, stop, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, stop)
        for j in range(out.shape[0]):
            _along_column(warp.across, j, first_row + first, numbers, places)
            for row in range(first, last):
                x = places[row - first] - first_col
                if BEFORE <= x < cols - BEHIND:
                    col = int(x)
                    phase = int((x - col) * PHASES + 0.5)
                    out[j, row] = dot_16(raw, row * cols + col - BEFORE, table, phase * TAPS)
                else:
                    out[j, row] = np.nan


@compiled
def sample_columns(
    start: int,
    stop: int,
    columns: Image,
    raw: Image,
    warp: Warp,
    origin: FloatArray,
    table: Image,
    limits: Image,
    unit: float,
    out: Image,
    clipped: NDArray[np.bool_],
) -> None:
    """Columns sampled at the rows of the view, divided by the light of the lens.

    `columns` are the result of `sample_rows`, `raw` are rows of the sensor (rows, cols). `limits`
    are the smallest value of the frame, the largest that may be clipped there, the smallest that
    may be clipped at the largest value, and this; then the two values that stand for clipped ones.
    `unit` is a factor of the result; `clipped` (rows, 2) marks rows with dark and with bright
    plateaus.
    """
    rows = columns.shape[1]
    flat = columns.reshape(-1)
    numbers = np.arange(0.0, BLOCK_ROWS)
    places, lights = np.empty(BLOCK_ROWS), np.empty(BLOCK_ROWS)
    for first in range(start, stop, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, stop)
        for j in range(out.shape[1]):
            _along_column(warp.down, j, first, numbers, places)
            _along_column(warp.light, j, first, numbers, lights)
            for k in range(lights.size):
                lights[k] = unit / lights[k]
            x, slope = np.nan, 0.0  # of the column within this block, if needed
            for i in range(first, last):
                y = places[i - first] - origin[0]
                if not BEFORE <= y < rows - BEHIND:
                    out[i, j] = np.nan
                    continue
                row = int(y)
                phase = int((y - row) * PHASES + 0.5)
                value = dot_16(flat, j * rows + row - BEFORE, table, phase * TAPS)
                out[i, j] = value * np.float32(lights[i - first])
                if value <= limits[1] or value >= limits[2]:
                    if np.isnan(x):
                        x = _at_row(warp.across, j, places[0]) - origin[1]
                        end = _at_row(warp.across, j, places[0] + BLOCK_ROWS) - origin[1]
                        slope = (end - x) / BLOCK_ROWS
                    col = int(x + slope * (places[i - first] - places[0]) + 0.5)
                    side = 0 if value <= limits[1] else 1
                    if is_plateau(raw, int(y + 0.5), col, limits[3 * side]):
                        out[i, j] = limits[4 + side]
                        clipped[i, side] = True
