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


def average_surfaces(guide: Image, disparity_px: Image, weight: Image) -> Image:
    """Average disparities over cells that no edge of the guide separates.

    Parameters
    ----------
    guide
        Left view in units of contrast (rows, cols, channels).
    disparity_px
        Disparity of cells, NaN where there is none.
    weight
        Precision of the disparity, 1 / px², 0 where it counts for nothing.
    """
    known = np.isfinite(disparity_px) & (weight > 0)
    total = np.where(known, weight, 0).astype(np.float32)
    value = np.where(known, disparity_px, 0).astype(np.float32) * total
    for turn in range(_ROUNDS):
        sigma = _REACH * np.sqrt(3) * 2.0 ** (_ROUNDS - 1 - turn) / np.sqrt(4**_ROUNDS - 1)
        fall = np.float32(-np.sqrt(2) / sigma)
        across = np.ascontiguousarray(guide.swapaxes(0, 1))
        turned = np.ascontiguousarray(value.T), np.ascontiguousarray(total.T)
        run_over_rows(_average_rows, across.shape[0], across, *turned, fall)
        value, total = (np.ascontiguousarray(one.T) for one in turned)
        run_over_rows(_average_rows, guide.shape[0], guide, value, total, fall)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0, value / total, np.float32(np.nan)), np.float32)


@compiled
def _average_rows(
    start: int, stop: int, guide: Image, value: Image, total: Image, fall: np.float32
) -> None:
    """Filter rows to and fro in place; `fall` is the logarithm that a cell of distance costs."""
    cols = value.shape[1]
    shares = np.empty(cols, np.float32)
    per_edge = np.float32(_REACH / _EDGE)
    for row in range(start, stop):
        for col in range(1, cols):
            rise = np.float32(0)
            for channel in range(guide.shape[2]):
                rise = max(rise, abs(guide[row, col, channel] - guide[row, col - 1, channel]))
            shares[col] = np.exp(fall * (np.float32(1) + per_edge * rise))
            value[row, col] += shares[col] * (value[row, col - 1] - value[row, col])
            total[row, col] += shares[col] * (total[row, col - 1] - total[row, col])
        for col in range(cols - 2, -1, -1):
            value[row, col] += shares[col + 1] * (value[row, col + 1] - value[row, col])
            total[row, col] += shares[col + 1] * (total[row, col + 1] - total[row, col])
