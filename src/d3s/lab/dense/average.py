"""Mean of filled disparities along surfaces: a domain transform weighted by precision.

The recursive domain transform (Gastal and Oliveira, 2011) goes to and fro along columns and rows,
in three rounds of falling reach. Measured cells and filled ones both count, by their precision, so
that a filled depth is a mean over the surface and not that of the nearest cells alone.
"""

import numpy as np

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image

_REACH, _EDGE = 25.0, 2.0  # in cells, and in units of contrast: best on tuning rooms
_ROUNDS = 3
_AT_ONCE = 8  # rows that are filtered at once


def average_surfaces(guide: Image, disparity_px: Image, weight: Image) -> Image:
    """Average disparities over cells that no edge of the guide separates.

    `guide` is the left view in units of contrast (rows, cols, channels). Disparities are NaN where
    there is none, and weigh by their precision in 1 / px².
    """
    known = np.isfinite(disparity_px) & (weight > 0)
    total = np.where(known, weight, np.float32(0))
    value = np.where(known, disparity_px, np.float32(0)) * total
    rows, cols = total.shape
    down, right = np.empty((rows, cols), np.float32), np.empty((rows, cols), np.float32)
    sigma = _REACH * np.sqrt(3) * 2.0 ** (_ROUNDS - 1) / np.sqrt(4**_ROUNDS - 1)
    run_over_rows(_write_shares, rows, guide, np.float32(-np.sqrt(2) / sigma), down, right)
    for turn in range(_ROUNDS):
        if turn:  # half the reach: shares of twice the distance
            down *= down
            right *= right
        run_over_rows(_average_columns, cols, down, value, total)
        run_over_rows(_average_rows, rows, right, value, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0, value / total, np.float32(np.nan)), np.float32)


@compiled
def _write_shares(
    start: int, stop: int, guide: Image, fall: np.float32, down: Image, right: Image
) -> None:
    """Write the share that a cell has of the one above it, and of the one left of it.

    `fall` is the logarithm that a cell of distance costs.
    """
    per_edge = np.float32(_REACH / _EDGE)
    for row in range(start, stop):
        for col in range(guide.shape[1]):
            above, beside = np.float32(0), np.float32(0)
            for channel in range(guide.shape[2]):
                here = guide[row, col, channel]
                above = max(above, abs(here - guide[max(row - 1, 0), col, channel]))
                beside = max(beside, abs(here - guide[row, max(col - 1, 0), channel]))
            down[row, col] = np.exp(fall * (np.float32(1) + per_edge * above))
            right[row, col] = np.exp(fall * (np.float32(1) + per_edge * beside))


@compiled
def _average_columns(start: int, stop: int, share: Image, value: Image, total: Image) -> None:
    """Filter some columns to and fro in place, all of them at once, which SIMD takes."""
    rows = value.shape[0]
    for row in range(1, rows):
        for col in range(start, stop):
            value[row, col] += share[row, col] * (value[row - 1, col] - value[row, col])
            total[row, col] += share[row, col] * (total[row - 1, col] - total[row, col])
    for row in range(rows - 2, -1, -1):
        for col in range(start, stop):
            value[row, col] += share[row + 1, col] * (value[row + 1, col] - value[row, col])
            total[row, col] += share[row + 1, col] * (total[row + 1, col] - total[row, col])


@compiled
def _average_rows(start: int, stop: int, share: Image, value: Image, total: Image) -> None:
    """Filter some rows to and fro in place, a few at once: none waits for its last cell."""
    cols = value.shape[1]
    for first in range(start, stop, _AT_ONCE):
        end = min(first + _AT_ONCE, stop)
        for col in range(1, cols):
            for row in range(first, end):
                value[row, col] += share[row, col] * (value[row, col - 1] - value[row, col])
                total[row, col] += share[row, col] * (total[row, col - 1] - total[row, col])
        for col in range(cols - 2, -1, -1):
            for row in range(first, end):
                part = share[row, col + 1]
                value[row, col] += part * (value[row, col + 1] - value[row, col])
                total[row, col] += part * (total[row, col + 1] - total[row, col])
