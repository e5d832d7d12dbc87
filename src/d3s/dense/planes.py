"""Planes through the evidence around each block of cells, in inverse depth.

A plane in space has an inverse depth that is linear over the image. Blocks of the frame hold the
median disparity of their evidence; a robust fit over blocks close by gives the slope, which carries
evidence along a slanted wall or floor.
"""

from typing import NamedTuple

import numpy as np

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image

BLOCK_CELLS = 4
"""Side of a block, in cells."""
_REACH = 9  # blocks on each side that a fit looks at
_FEWEST = 2  # cells of evidence in a block
_TOLERANCE_PX = np.float32(0.4)  # distance of a block from the plane, in disparity
_PRIOR_SLOPE = np.float32(0.05)  # standard deviation of slopes: floors have 0.1 px per cell
_BLOCK_SIGMA_PX = np.float32(0.25)  # what remains of a block around a plane
_ROUNDS = 3


class Blocks(NamedTuple):
    """Evidence of blocks of cells, and the plane around each: arrays (block rows, block cols)."""

    disparity_px: Image  # median of the block; NaN if it has too little evidence
    down: Image  # slope of the disparity, px per cell
    right: Image
    slope_sigma: Image  # standard deviation of the slopes


def block_planes(disparity_px: Image) -> Blocks:
    """Fit a plane around each block of the evidence (rows, cols), NaN where there is none."""
    rows, cols = disparity_px.shape
    shape = -(-rows // BLOCK_CELLS), -(-cols // BLOCK_CELLS)
    blocks = Blocks(*(np.empty(shape, np.float32) for _ in range(4)))
    run_over_rows(_medians, shape[0], disparity_px, blocks.disparity_px)
    run_over_rows(_slopes, shape[0], blocks.disparity_px, blocks)
    return blocks


@compiled
def _medians(start: int, stop: int, disparity_px: Image, out: Image) -> None:
    rows, cols = disparity_px.shape
    values = np.empty(BLOCK_CELLS * BLOCK_CELLS, np.float32)
    for down in range(start, stop):
        for right in range(out.shape[1]):
            count = 0
            for row in range(down * BLOCK_CELLS, min((down + 1) * BLOCK_CELLS, rows)):
                for col in range(right * BLOCK_CELLS, min((right + 1) * BLOCK_CELLS, cols)):
                    value = disparity_px[row, col]
                    if np.isfinite(value):
                        values[count] = value
                        count += 1
            if count < _FEWEST:
                out[down, right] = np.nan
            else:
                out[down, right] = np.sort(values[:count])[count // 2]


@compiled
def _slopes(start: int, stop: int, medians: Image, out: Blocks) -> None:
    """Fit slopes by least squares over the blocks near the plane, which is fitted anew."""
    rows, cols = medians.shape
    side = np.float32(BLOCK_CELLS)
    ridge = _BLOCK_SIGMA_PX**2 / _PRIOR_SLOPE**2
    for row in range(start, stop):
        for col in range(cols):
            here = medians[row, col]
            down, right, sigma = np.float32(0), np.float32(0), _PRIOR_SLOPE
            if np.isfinite(here):
                for turn in range(_ROUNDS):
                    # The first round does not know the slope, and takes any that is likely.
                    slack = _PRIOR_SLOPE * side if turn == 0 else np.float32(0)
                    dd, rr, dr, dq, rq = ridge, ridge, np.float32(0), np.float32(0), np.float32(0)
                    for i in range(max(row - _REACH, 0), min(row + _REACH + 1, rows)):
                        for j in range(max(col - _REACH, 0), min(col + _REACH + 1, cols)):
                            y, x = side * np.float32(i - row), side * np.float32(j - col)
                            rise = medians[i, j] - here
                            far = np.float32(max(abs(i - row), abs(j - col)))
                            if abs(rise - down * y - right * x) <= _TOLERANCE_PX + slack * far:
                                dd += y * y
                                rr += x * x
                                dr += y * x
                                dq += y * rise
                                rq += x * rise
                    whole = dd * rr - dr * dr
                    down, right = (rr * dq - dr * rq) / whole, (dd * rq - dr * dq) / whole
                    sigma = _BLOCK_SIGMA_PX * np.sqrt(np.float32(0.5) * (dd + rr) / whole)
            out.down[row, col] = down
            out.right[row, col] = right
            out.slope_sigma[row, col] = sigma
