"""Resample a raw frame into the rectified pair, by an interpolation kernel that adds no blur.

The camera measures blur, so resampling must not add any. The kernel has one set of weights for each
fraction of a pixel, all with the same frequency response: flat up to 0.35 cycles per pixel, where
the camera has signal, and falling to 0 at half a cycle per pixel. Sharpness and noise are therefore
equal in both views and in all parts of a view, wherever the samples lie between sensor pixels.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.rig.calibration import Calibration
from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.simd import load_8, reduce_sum
from d3s.types import FloatArray, Image

# Kernel length: two SIMD vectors. With 8 weights no response is flat to 1 % up to 0.35 cycles per
# pixel and equal for all fractions; 12 weights nearly reach it.
TAPS = 16
# Taps before and behind the pixel at or before the sample position.
BEFORE, BEHIND = TAPS // 2 - 1, TAPS // 2
FLAT_UP_TO = 0.36  # cycles per pixel; beyond, the response falls like a squared cosine
# Weight of errors in the flat part of the response. A larger weight makes the response flatter, but
# less equal between fractions.
_FLAT_WEIGHT_UP_TO, _FLAT_WEIGHT = 0.35, 30.0
_PHASES = 1024  # tabulated fractions of a pixel; the nearest is at most 0.0005 px away

_FULL_SCALES = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
_BLOCK_ROWS = 16  # one cache line of a column

# A sample may be clipped if it is nearer to the smallest or largest value of the frame than this
# share of the range between them. The kernel overshoots beside a plateau, by less than this.
_NEAR_LIMIT = 0.25


class ScaledFrame(NamedTuple):
    """Frame of real numbers, and the factor that scales it to full scale 1."""

    values: NDArray[Any]
    unit: float


def checked_frame(raw: Any, name: str = "raw") -> ScaledFrame:
    """Validate a raw frame, with its scale; masked pixels become NaN.

    Integers of 8 and 16 bits have the full scale of their type, floats have full scale 1.

    Raises
    ------
    InputError
        If the frame is not a grey image; the text calls it `name`.
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
    return ScaledFrame(values, 1 / _FULL_SCALES.get(dtype, 1.0))


def split(raw: Any, calibration: Calibration) -> tuple[Image, Image]:
    """Split a raw frame into the left and right view; see `Rig.split`."""
    frame = checked_frame(raw)
    expected = calibration.frame_rows_px, calibration.frame_cols_px
    if expected[0] is not None and frame.values.shape != expected:
        raise InputError(
            f"raw has shape {frame.values.shape}, and the rig was calibrated for {expected}. "
            "Give the whole frame, of the same camera and in the same mode."
        )
    frame, value_range = _finite_range(frame)
    left, right = (
        _view(frame, matrix, calibration, value_range, side)
        for side, matrix in zip(("left", "right"), view_to_raw_matrices(calibration), strict=True)
    )
    return left, right


def view_to_raw_matrices(calibration: Calibration) -> tuple[FloatArray, FloatArray]:
    """2x3 matrices, left and right, from (x, y, 1) in a view to (x, y) in the raw frame."""
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


def _finite_range(frame: ScaledFrame) -> tuple[ScaledFrame, tuple[float, float]]:
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
    frame: ScaledFrame,
    matrix: FloatArray,
    calibration: Calibration,
    value_range: tuple[float, float],
    side: str,
) -> Image:
    """One view, resampled at the positions that `matrix` gives in the frame."""
    shape = calibration.crop_rows_px, calibration.crop_cols_px
    rows, cols = _needed_window(matrix, shape, frame.values.shape)
    if rows.stop - rows.start < TAPS or cols.stop - cols.start < TAPS:
        anchor = getattr(calibration, f"anchor_{side}_px")
        raise InputError(
            f"the {side} view lies outside of raw, which has shape {frame.values.shape}: "
            f"anchor_{side}_px={anchor}. Is it the whole frame of the camera of this rig?"
        )
    if frame.values.dtype == np.float32:
        cols = slice(0, frame.values.shape[1])  # whole rows, which need no copy
    # The kernels are compiled for writable arrays only.
    lines = np.require(frame.values[rows, cols], np.float32, ["C", "A", "W"])
    moved = matrix - np.array([[0.0, 0.0, cols.start], [0.0, 0.0, rows.start]])
    return _resample(lines, moved, shape, value_range, frame.unit)


def _resample(
    lines: Image,
    matrix: FloatArray,
    shape: tuple[int, int],
    value_range: tuple[float, float],
    unit: float,
) -> Image:
    """Interpolate along the rows of the sensor first, then along the columns of the view.

    Columns of the view are not parallel to columns of the sensor: each sensor row is sampled where
    the column of the view crosses it.
    """
    (a, b, c), (d, e, f) = matrix
    flat, table = lines.reshape(-1), weights().reshape(-1)
    columns = np.empty((shape[1], lines.shape[0]), dtype=np.float32)
    along = np.array([a - b * d / e, b / e, c - b * f / e])
    run_over_rows(_sample_rows, lines.shape[0], flat, lines.shape[1], along, table, columns)
    low, high = value_range
    margin = _NEAR_LIMIT * (high - low) if np.isfinite(high - low) else 0.0
    limits = np.array([low, low + margin, high - margin, high], dtype=np.float32)
    out, clipped = np.empty(shape, dtype=np.float32), np.zeros((shape[0], 2), dtype=np.bool_)
    run_over_rows(_sample_columns, shape[0], columns, lines, matrix, table, limits, out, clipped)
    is_clipped = clipped.any(axis=0)
    if is_clipped.any():
        # The kernel overshoots beside a plateau: clip, so that the plateau stays the extreme value.
        np.clip(out, *np.where(is_clipped, limits[[0, 3]], (-np.inf, np.inf)), out=out)
    if unit != 1:
        out *= np.float32(unit)
    return out


def _needed_window(
    matrix: FloatArray, shape: tuple[int, int], frame_shape: tuple[int, ...]
) -> tuple[slice, slice]:
    """Rows and columns of the frame that the kernel can reach; empty if the view is outside."""
    rows, cols = shape[0] - 1, shape[1] - 1
    corners = np.array([[0, 0, 1], [cols, 0, 1], [0, rows, 1], [cols, rows, 1]])
    x, y = matrix @ corners.T
    slices = []
    for places, size in ((y, frame_shape[0]), (x, frame_shape[1])):
        first, last = np.floor(places.min()) - TAPS, np.ceil(places.max()) + TAPS
        start = int(np.clip(first, 0, size))
        slices.append(slice(start, max(int(np.clip(last, 0, size)), start)))
    return slices[0], slices[1]


@cache
def weights() -> Image:
    """Interpolation weights for each fraction of a pixel from 0 to 1, (fractions, TAPS).

    The first tap is `BEFORE` pixels before the sample. The weights are a least-squares fit to the
    desired frequency response, subject to a sum of 1 and first and second moments of 0: no shift
    and no blur.
    """
    cycles = np.linspace(0.0, 0.5, 129)
    fall = np.clip((cycles - FLAT_UP_TO) / (0.5 - FLAT_UP_TO), 0.0, 1.0)
    response = np.cos(0.5 * np.pi * fall) ** 2
    weight = np.where(cycles <= _FLAT_WEIGHT_UP_TO, _FLAT_WEIGHT, 1.0)
    offsets = np.arange(-BEFORE, BEHIND + 1) - np.arange(_PHASES + 1)[:, np.newaxis] / _PHASES
    # Least squares over the frequencies and over the real and imaginary part of
    # exp(-2 pi i cycles offset), with Lagrange multipliers for the moments. The product of two such
    # waves depends on the distance of their taps only.
    distance = np.arange(TAPS)[:, np.newaxis] - np.arange(TAPS)
    products = np.cos(2 * np.pi * distance[..., np.newaxis] * cycles) @ weight
    sides = np.cos(2 * np.pi * offsets[..., np.newaxis] * cycles) @ (weight * response)
    moments = np.stack([offsets**0, offsets, offsets**2], axis=1)
    system = np.zeros((_PHASES + 1, TAPS + 3, TAPS + 3))
    system[:, :TAPS, :TAPS] = products
    system[:, TAPS:, :TAPS] = moments
    system[:, :TAPS, TAPS:] = moments.transpose(0, 2, 1)
    right = np.zeros((_PHASES + 1, TAPS + 3, 1))
    right[:, :TAPS, 0], right[:, TAPS, 0] = sides, 1.0
    return np.ascontiguousarray(np.linalg.solve(system, right)[:, :TAPS, 0], dtype=np.float32)


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
                    phase = int((x - col) * _PHASES + 0.5)
                    out[j, row] = _dot_16(raw, row * cols + col - BEFORE, table, phase * TAPS)
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
                phase = int((y - row) * _PHASES + 0.5)
                value = _dot_16(flat, j * rows + row - BEFORE, table, phase * TAPS)
                if value <= limits[1] or value >= limits[2]:
                    x = matrix[0, 0] * j + matrix[0, 1] * i + matrix[0, 2]
                    limit = limits[0] if value <= limits[1] else limits[3]
                    if _is_plateau(raw, int(y + 0.5), int(x + 0.5), limit):
                        value = limit
                        clipped[i, 0 if limit == limits[0] else 1] = True
                out[i, j] = value


@part
def _is_plateau(raw: Image, row: int, col: int, limit: np.float32) -> bool:
    """Whether a pixel and its eight neighbours have the value `limit`."""
    for i in range(row - 1, row + 2):
        for j in range(col - 1, col + 2):
            if raw[i, j] != limit:
                return False
    return True


@part
def _dot_16(values: Image, place: int, table: Image, weight: int) -> Any:
    """Dot product of 16 values and 16 weights."""
    near = load_8(values, place) * load_8(table, weight)
    far = load_8(values, place + 8) * load_8(table, weight + 8)
    return reduce_sum(near + far)
