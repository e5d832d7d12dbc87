"""Passes over the intensities of a view: mean, extremes, scaling, conversion.

Shared by the check of the user's arrays and by the methods.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image

_LANES = 64  # parallel sums along a row: a fixed order of additions that vectorises


def common_mean(views: Sequence[NDArray[np.floating]]) -> float:
    """Return the mean of all finite values, each row summed by itself; 0 if there are none."""
    rows = views[0].shape[0]
    sums, counts = np.empty((len(views), rows)), np.empty((len(views), rows), dtype=np.int64)
    for view, total, count in zip(views, sums, counts, strict=True):
        run_over_rows(_row_sums, rows, view, total, count)
    return float(sums.sum()) / max(int(counts.sum()), 1)


def finite_ends(image: NDArray[np.floating]) -> tuple[float, float]:
    """Return the smallest and the largest finite value; zeros if there is none."""
    ends = float(image.min()), float(image.max())
    if not np.isfinite(ends).all():
        known = image[np.isfinite(image)]
        ends = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    return ends


def power_of_two(largest: float) -> float:
    """Return the largest power of two that is at most a number; 1 for zero and infinity."""
    # At least 2^-1000: a smaller divisor could overflow.
    return float(2.0 ** max(np.floor(np.log2(largest)), -1000)) if 0 < largest < np.inf else 1.0


@compiled
def _row_sums(
    start: int,
    stop: int,
    image: NDArray[np.floating],
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None:
    """Sum and count the finite values of each row."""
    cols = image.shape[1]
    zero = image.dtype.type(0)
    lanes = np.empty(_LANES, dtype=np.float64)
    for row in range(start, stop):
        line = image[row]
        count = 0
        for col in range(cols):
            count += line[col] - line[col] == zero
        for lane in range(_LANES):
            lanes[lane] = 0.0
        for first in range(0, cols, _LANES):
            part = line[first : first + _LANES]
            for lane in range(part.size):
                value = part[lane]
                lanes[lane] += value if value - value == zero else zero
        total = 0.0
        for lane in range(_LANES):
            total += lanes[lane]
        sums[row], counts[row] = total, count


@compiled
def centre_and_scale(
    start: int,
    stop: int,
    image: NDArray[np.floating],
    mean: float,
    scale: float,
    missing: np.float32,
    out: Image,
) -> None:
    """Subtract a mean and scale; non-finite values become `missing`.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    image
        Intensities (rows, cols).
    mean
        Value to subtract.
    scale
        Factor after that.
    missing
        Value of non-finite pixels in the result.
    out
        Result, written in place.
    """
    cols = image.shape[1]
    zero = image.dtype.type(0)
    for row in range(start, stop):
        line, result = image[row], out[row]
        for col in range(cols):
            value = line[col]
            scaled = np.float32((value - mean) * scale)
            result[col] = scaled if value - value == zero else missing


@compiled
def to_single_precision(
    start: int, stop: int, image: NDArray[np.float64], out: Image, is_exact: NDArray[np.bool_]
) -> None:
    """Convert to single precision and mark rows that stay exact; stops at the first inexact row.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    image
        Intensities (rows, cols) in double precision.
    out
        Result, written in place.
    is_exact
        True for each row that float32 holds exactly (rows,), written in place.
    """
    cols = image.shape[1]
    for row in range(start, stop):
        line, result = image[row], out[row]
        wrong = 0
        for col in range(cols):
            value = line[col]
            result[col] = np.float32(value)
            wrong += (np.float64(np.float32(value)) != value) & (value == value)
        if wrong:
            return
        is_exact[row] = True


@compiled
def mask_outside(
    start: int, stop: int, image: Image, low: np.float32, high: np.float32, out: Image
) -> None:
    """Keep values from low to high; others become NaN.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    image
        Intensities (rows, cols).
    low, high
        Limits, both kept.
    out
        Result, written in place.
    """
    cols = image.shape[1]
    for row in range(start, stop):
        line, result = image[row], out[row]
        for col in range(cols):
            value = line[col]
            result[col] = value if (value >= low) & (value <= high) else np.float32(np.nan)
