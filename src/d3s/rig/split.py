"""Resample a raw frame into the rectified pair, by an interpolation kernel that adds no blur.

A view is sampled along the rows of the sensor and then along its own columns. With lenses that
distort and vignette, place and light are polynomials of the row along one column of a view. So is,
to far less than a thousandth of a pixel, the place at which the column crosses a row of the sensor.
"""

import warnings
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import DepthWarning, InputError
from d3s.rig.bayer import MONO, check_said, luminance, unsaid_warning
from d3s.rig.calibration import Calibration, view_to_raw_matrices, view_to_raw_places
from d3s.rig.interpolation import BEFORE, BEHIND, PHASES, TAPS, dot_16, is_plateau, weights
from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import run_over_rows, run_together, thread_count
from d3s.types import FloatArray, Image

_FULL_SCALES = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}

# A sample may be clipped if it is nearer to the smallest or largest value of the frame than this
# share of the range between them. The kernel overshoots beside a plateau, by less than this.
_NEAR_LIMIT = 0.25

_BLOCK_ROWS = 16  # one cache line of a column

_DOWN_NODES = 6  # distortion of 5th order is exact
_LIGHT_NODES = 7  # the highest degree of a map is exact
_ACROSS_NODES = 9
_NEWTON_STEPS = 4
_SIDE_PLACES = 129  # along each side of a view
_CACHED_VIEWS = 8


class ScaledFrame(NamedTuple):
    """Frame of real numbers, and the factor that scales it to full scale 1."""

    values: NDArray[Any]
    unit: float


class _Warp(NamedTuple):
    """Polynomials of each column of a view, (cols, 2 + coefficients), and what a frame adds.

    The argument of a polynomial is (row - first number) * second number.
    """

    across: FloatArray  # raw x at a row of the raw frame
    down: FloatArray  # raw y at a row of the view
    light: FloatArray  # light of the lens at a row of the view
    origin: FloatArray  # row and column in the raw frame of the first value that is given
    unit: float  # factor on the values


class _WarpedView(NamedTuple):
    """_Warp of one view, with the places of its border in the raw frame and its range of light."""

    warp: _Warp
    border_px: FloatArray  # (2, places), x and y
    light_range: FloatArray


def checked_frame(raw: Any, name: str = "raw", full_scale: float | None = None) -> ScaledFrame:
    """Validate a raw frame, with its scale; masked pixels become NaN.

    Integers of 8 and 16 bits have the full scale of their type, unless that of the sensor is given,
    such as 4095; floats have full scale 1. `name` stands in the text of an error.
    """
    try:
        values = np.asarray(raw)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an image, an array of (rows, cols).") from error
    if values.ndim != 2 or not values.size:
        remedy = " Turn colour into grey first." if values.ndim == 3 else ""
        raise InputError(f"{name} has shape {values.shape}: it must be (rows, cols).{remedy}")
    dtype = values.dtype.newbyteorder("=")
    if dtype.kind != "f" and dtype not in _FULL_SCALES:
        raise InputError(
            f"{name} has dtype {values.dtype}: it must be uint8, uint16, or floats with full scale "
            "1. Divide other integers by the largest that the sensor gives."
        )
    if isinstance(raw, np.ma.MaskedArray):
        values = np.ma.filled(raw.astype(np.float64), np.nan)
    if full_scale is None:
        return ScaledFrame(values, 1 / _FULL_SCALES.get(dtype, 1.0))
    largest = values.max() if values.dtype.kind == "u" else 0
    if not full_scale > 0 or largest > full_scale:
        raise InputError(
            f"{name} has values up to {largest}, and full_scale={full_scale:g} must be the largest "
            "that the sensor gives: 4095 for 12 bits. Cameras that send 12 bits in the upper part "
            "of 16 have 65520."
        )
    return ScaledFrame(values, 1 / full_scale)


def split(
    raw: Any, calibration: Calibration, full_scale: float | None = None, bayer: str | None = None
) -> tuple[Image, Image]:
    """Split a raw frame into the left and right view; see `Rig.split`."""
    order = check_said(bayer, calibration.bayer)
    frame = grey_frame(raw, full_scale, order, calibration.channel_gains)
    expected = calibration.frame_rows_px, calibration.frame_cols_px
    if expected[0] is not None and frame.values.shape != expected:
        raise InputError(
            f"raw has shape {frame.values.shape}, and the rig was calibrated for {expected}. "
            "Give the whole frame, of the same camera and in the same mode."
        )
    frame, value_range = finite_range(frame)
    works = [partial(_view, frame, calibration, value_range, camera) for camera in (0, 1)]
    # With two threads each takes a view, with all its steps. More share the rows of one view.
    left, right = run_together(*works) if thread_count() == 2 else [work() for work in works]
    return left, right


def grey_frame(
    raw: Any,
    full_scale: float | None,
    order: str | None,
    gains: tuple[float, float, float] | None = None,
) -> ScaledFrame:
    """Raw frame without colours: as it is, or the luminance of a colour sensor.

    `order` is that of the colours, `MONO`, or None if nothing is said: then a frame that looks like
    that of a colour sensor gets a `DepthWarning`, at the line that calls a method of `Rig`.
    """
    frame = checked_frame(raw, full_scale=full_scale)
    if order is None:
        words = unsaid_warning(frame.values, is_quick=True)
        if words:
            warnings.warn(f"raw {words}", DepthWarning, stacklevel=4)
    elif order != MONO:
        return frame._replace(values=luminance(frame.values, order, gains))
    return frame


def finite_range(frame: ScaledFrame) -> tuple[ScaledFrame, tuple[float, float]]:
    """Frame with NaN for non-finite values, and its smallest and largest finite value."""
    values = frame.values
    low, high = float(values.min()), float(values.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        is_number = np.isfinite(values)
        values = np.where(is_number, values, np.nan)
        low = float(np.min(values, where=is_number, initial=np.inf))
        high = float(np.max(values, where=is_number, initial=-np.inf))
    return frame._replace(values=values), (low, high)


def _view(
    frame: ScaledFrame, calibration: Calibration, value_range: tuple[float, float], camera: int
) -> Image:
    """One view, resampled at its places in the frame."""
    shape = calibration.crop_rows_px, calibration.crop_cols_px
    if calibration.lenses is None:
        matrix = view_to_raw_matrices(calibration)[camera]
        last_row, last_col = shape[0] - 1.0, shape[1] - 1.0
        corners = [[0.0, last_col, 0.0, last_col], [0.0, 0.0, last_row, last_row], [1.0] * 4]
        border_px = matrix @ np.array(corners)
    else:
        warped = _warped_view(calibration, camera)
        border_px = warped.border_px
    rows, cols = _needed_window(border_px, frame.values.shape)
    if rows.stop - rows.start < TAPS or cols.stop - cols.start < TAPS:
        side = ("left", "right")[camera]
        anchor = getattr(calibration, f"anchor_{side}_px")
        raise InputError(
            f"the {side} view lies outside of raw, which has shape {frame.values.shape}: "
            f"anchor_{side}_px={anchor}. Is it the whole frame of the camera of this rig?"
        )
    if frame.values.dtype == np.float32:
        cols = slice(0, frame.values.shape[1])  # whole rows, which need no copy
    # The kernels are compiled for writable arrays only.
    lines = np.require(frame.values[rows, cols], np.float32, ["C", "A", "W"])
    if calibration.lenses is None:
        moved = matrix - np.array([[0.0, 0.0, cols.start], [0.0, 0.0, rows.start]])
        return resample(lines, moved, shape, value_range, frame.unit)
    origin = np.array([rows.start, cols.start], dtype=np.float64)
    warp = warped.warp._replace(origin=origin, unit=frame.unit)
    return _resample_warped(lines, warp, warped.light_range, shape, value_range)


def resample(
    lines: Image,
    matrix: FloatArray,
    shape: tuple[int, int],
    value_range: tuple[float, float],
    unit: float,
) -> Image:
    """Sample an image at the places of a view; NaN where the kernel leaves the image.

    Interpolation is along the rows of the sensor first, then along the columns of the view.
    Columns of the view are not parallel to columns of the sensor: each sensor row is sampled where
    the column of the view crosses it. `lines` are contiguous and writeable; `matrix` gives column
    and row in the image (2, 3) of a column, a row and 1 in the view. Plateaus at the ends of
    `value_range`, that of the whole image, are clipped. `unit` is a factor on the values.
    """
    (a, b, c), (d, e, f) = matrix
    flat, table = lines.reshape(-1), weights().reshape(-1)
    columns = np.empty((shape[1], lines.shape[0]), dtype=np.float32)
    along = np.array([a - b * d / e, b / e, c - b * f / e])
    run_over_rows(_sample_rows, lines.shape[0], flat, lines.shape[1], along, table, columns)
    limits = clipping_limits(*value_range)
    out, clipped = np.empty(shape, dtype=np.float32), np.zeros((shape[0], 2), dtype=np.bool_)
    run_over_rows(_sample_columns, shape[0], columns, lines, matrix, table, limits, out, clipped)
    hold(out, clipped, limits[[0, 3]])
    if unit != 1:
        out *= np.float32(unit)
    return out


def _resample_warped(
    lines: Image,
    warp: _Warp,
    light_range: FloatArray,
    shape: tuple[int, int],
    value_range: tuple[float, float],
) -> Image:
    """Interpolate as `resample` does, at the places of a warp, and divide by the light."""
    flat, table = lines.reshape(-1), weights().reshape(-1)
    columns = np.empty((shape[1], lines.shape[0]), dtype=np.float32)
    run_over_rows(_warped_sample_rows, lines.shape[0], flat, lines.shape[1], warp, table, columns)
    # A plateau has one value all over the view, beyond all others: `estimate` knows it by that.
    ends = np.outer(value_range, warp.unit / light_range)
    held = np.array([ends[0].min(), ends[1].max()], dtype=np.float32)
    limits = np.concatenate([clipping_limits(*value_range), held])
    out, clipped = np.empty(shape, dtype=np.float32), np.zeros((shape[0], 2), dtype=np.bool_)
    given = columns, lines, warp, table, limits, out, clipped
    run_over_rows(_warped_sample_columns, shape[0], *given)
    hold(out, clipped, held)
    return out


def clipping_limits(low: float, high: float) -> Image:
    """Smallest and largest value of a frame; between them, those from which on a value is near."""
    margin = _NEAR_LIMIT * (high - low) if np.isfinite(high - low) else 0.0
    return np.array([low, low + margin, high - margin, high], dtype=np.float32)


def hold(view: Image, clipped: NDArray[np.bool_], ends: Image) -> None:
    """Clip a view that has plateaus: the kernel overshoots beside them, and they stay extreme.

    The view is changed in place; `clipped` (rows, 2) says whether a row has a dark and a bright
    plateau, and `ends` are the values of both.
    """
    is_clipped = clipped.any(axis=0)
    if is_clipped.any():
        np.clip(view, *np.where(is_clipped, ends, (-np.inf, np.inf)), out=view)


def _needed_window(border_px: FloatArray, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Rows and columns of the frame that the kernel can reach from a view; none if it is outside.

    The border has places (x, y) of the frame.
    """
    slices = []
    for places, size in zip(border_px[::-1], shape, strict=True):
        first, last = np.floor(places.min()) - TAPS, np.ceil(places.max()) + TAPS
        start = int(np.clip(first, 0, size))
        slices.append(slice(start, max(int(np.clip(last, 0, size)), start)))
    return slices[0], slices[1]


@compiled
def _sample_rows(
    start: int, stop: int, raw: Image, cols: int, along: FloatArray, table: Image, out: Image
) -> None:
    """Sensor rows sampled at the columns of the view; `out` is (view column, sensor row)."""
    for first in range(start, stop, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, stop)
        for j in range(out.shape[0]):
            for row in range(first, last):
                x = along[0] * j + along[1] * row + along[2]
                if BEFORE <= x < cols - BEHIND:
                    col = int(x)
                    phase = int((x - col) * PHASES + 0.5)
                    out[j, row] = dot_16(raw, row * cols + col - BEFORE, table, phase * TAPS)
                else:
                    out[j, row] = np.nan


@compiled
def _sample_columns(
    start: int,
    stop: int,
    columns: Image,
    raw: Image,
    matrix: FloatArray,
    table: Image,
    limits: Image,
    out: Image,
    clipped: NDArray[np.bool_],
) -> None:
    """Columns sampled at the rows of the view; `clipped` (rows, 2) marks dark and bright rows."""
    rows = columns.shape[1]
    flat = columns.reshape(-1)
    for first in range(start, stop, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, stop)
        for j in range(out.shape[1]):
            for i in range(first, last):
                y = matrix[1, 0] * j + matrix[1, 1] * i + matrix[1, 2]
                if not BEFORE <= y < rows - BEHIND:
                    out[i, j] = np.nan
                    continue
                row = int(y)
                phase = int((y - row) * PHASES + 0.5)
                value = dot_16(flat, j * rows + row - BEFORE, table, phase * TAPS)
                if value <= limits[1] or value >= limits[2]:
                    x = matrix[0, 0] * j + matrix[0, 1] * i + matrix[0, 2]
                    limit = limits[0] if value <= limits[1] else limits[3]
                    if is_plateau(raw, int(y + 0.5), int(x + 0.5), limit):
                        value = limit
                        clipped[i, 0 if limit == limits[0] else 1] = True
                out[i, j] = value


@lru_cache(_CACHED_VIEWS)
def _warped_view(calibration: Calibration, camera: int) -> _WarpedView:
    """_Warp of one view of a calibration with `lenses`; camera 0 is left, 1 is right."""
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
    warp = _Warp(
        across=_across(calibration, camera, j),
        down=_curves(y, middle, half),
        light=_curves(light, middle, half),
        origin=np.zeros(2),
        unit=1.0,
    )
    everywhere = np.linspace(-1, 1, _SIDE_PLACES)
    grid = lenses.illumination(
        camera, everywhere * place_x[-1], everywhere[:, np.newaxis] * half / lenses.field_radius_px
    )
    border = view_to_raw_places(calibration, camera, *_border(rows, cols))
    return _WarpedView(warp, border, np.array([grid.min(), grid.max()]))


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
    """Raw x at which columns of a view cross the rows that the kernel reaches: polynomials."""
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
    """Values of the polynomial of column `j` at `rows`, counted from `first` on."""
    highest = curves.shape[1] - 1  # loops over out.size, no constant, become SIMD code
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
def _warped_sample_rows(
    start: int, stop: int, raw: Image, cols: int, warp: _Warp, table: Image, out: Image
) -> None:
    """Sensor rows sampled at the columns of the view; `out` is (view column, sensor row)."""
    numbers, places = np.arange(0.0, _BLOCK_ROWS), np.empty(_BLOCK_ROWS)
    first_row, first_col = int(warp.origin[0]), warp.origin[1]
    for first in range(start, stop, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, stop)
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
def _warped_sample_columns(
    start: int,
    stop: int,
    columns: Image,
    raw: Image,
    warp: _Warp,
    table: Image,
    limits: Image,
    out: Image,
    clipped: NDArray[np.bool_],
) -> None:
    """Columns sampled at the rows of the view, divided by the light of the lens.

    `limits` are those of `clipping_limits`, and the two values that stand for clipped ones.
    """
    rows = columns.shape[1]
    flat = columns.reshape(-1)
    numbers = np.arange(0.0, _BLOCK_ROWS)
    places, lights = np.empty(_BLOCK_ROWS), np.empty(_BLOCK_ROWS)
    for first in range(start, stop, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, stop)
        for j in range(out.shape[1]):
            _along_column(warp.down, j, first, numbers, places)
            _along_column(warp.light, j, first, numbers, lights)
            for k in range(lights.size):
                lights[k] = warp.unit / lights[k]
            x, slope = np.nan, 0.0  # of the column within this block, if needed
            for i in range(first, last):
                y = places[i - first] - warp.origin[0]
                if not BEFORE <= y < rows - BEHIND:
                    out[i, j] = np.nan
                    continue
                row = int(y)
                phase = int((y - row) * PHASES + 0.5)
                value = dot_16(flat, j * rows + row - BEFORE, table, phase * TAPS)
                out[i, j] = value * np.float32(lights[i - first])
                if value <= limits[1] or value >= limits[2]:
                    if np.isnan(x):
                        x = _at_row(warp.across, j, places[0]) - warp.origin[1]
                        end = _at_row(warp.across, j, places[0] + _BLOCK_ROWS) - warp.origin[1]
                        slope = (end - x) / _BLOCK_ROWS
                    col = int(x + slope * (places[i - first] - places[0]) + 0.5)
                    side = 0 if value <= limits[1] else 1
                    if is_plateau(raw, int(y + 0.5), col, limits[3 * side]):
                        out[i, j] = limits[4 + side]
                        clipped[i, side] = True
