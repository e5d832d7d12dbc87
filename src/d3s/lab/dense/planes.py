"""Planes through the evidence around each block of cells, in inverse depth.

A plane in space has an inverse depth that is linear over the image. Blocks of the frame hold the
median disparity of their evidence; a robust fit over blocks close by gives the slope, which carries
evidence along a slanted wall or floor.
"""

from typing import NamedTuple

import numpy as np

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image, Mask

BLOCK_CELLS = 4
"""Side of a block, in cells."""
_REACH = 9  # blocks on each side that a fit looks at
_FEWEST = 2  # cells of evidence in a block
_TOLERANCE_PX = np.float32(0.4)  # distance of a block from the plane, in disparity
_PRIOR_SLOPE = np.float32(0.05)  # standard deviation of slopes: floors have 0.1 px per cell
_BLOCK_SIGMA_PX = np.float32(0.25)  # what remains of a block around a plane
_ROUNDS = 3
_NO_BLOCK = np.float32(1e9)  # disparity beyond any, for blocks without evidence


class Blocks(NamedTuple):
    """Evidence of blocks of cells, and the plane around each: arrays (block rows, block cols)."""

    disparity_px: Image  # median of the block; NaN if it has too little evidence
    down: Image  # slope of the disparity, px per cell
    right: Image
    slope_sigma: Image  # standard deviation of the slopes


def block_planes(disparity_px: Image, wanted: Mask) -> Blocks:
    """Fit a plane around blocks of the evidence.

    Disparities are NaN where there is no evidence. Blocks without a `wanted` cell are taken to be
    level.
    """
    rows, cols = disparity_px.shape
    shape = -(-rows // BLOCK_CELLS), -(-cols // BLOCK_CELLS)
    blocks = Blocks(*(np.empty(shape, np.float32) for _ in range(4)))
    run_over_rows(_medians, shape[0], disparity_px, blocks.disparity_px)
    known = np.where(np.isnan(blocks.disparity_px), _NO_BLOCK, blocks.disparity_px)
    padded = np.pad(known, _REACH, constant_values=_NO_BLOCK)
    run_over_rows(_slopes, shape[0], padded, wanted, blocks)
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
def _slopes(start: int, stop: int, padded: Image, wanted: Mask, out: Blocks) -> None:
    """Fit slopes by least squares over the blocks near the plane, which is fitted anew.

    `padded` has the medians with `_REACH` more blocks on each side, and `_NO_BLOCK` for none. Sums
    are kept for each column of the window, so that they are computed at once.
    """
    width = 2 * _REACH + 1
    side, one, zero = np.float32(BLOCK_CELLS), np.float32(1), np.float32(0)
    ridge = _BLOCK_SIGMA_PX**2 / _PRIOR_SLOPE**2
    sums = np.empty((5, width), np.float32)
    x, far = np.empty(width, np.float32), np.empty(width, np.float32)
    for j in range(width):
        x[j] = side * np.float32(j - _REACH)
    for row in range(start, stop):
        for col in range(out.down.shape[1]):
            here = padded[row + _REACH, col + _REACH]
            down, right, sigma = zero, zero, _PRIOR_SLOPE
            top, left = row * BLOCK_CELLS, col * BLOCK_CELLS
            is_wanted = wanted[top : top + BLOCK_CELLS, left : left + BLOCK_CELLS].any()
            if here < _NO_BLOCK and is_wanted:
                for turn in range(_ROUNDS):
                    # The first round does not know the slope, and takes any that is likely.
                    slack = _PRIOR_SLOPE if turn == 0 else zero
                    sums[:] = zero
                    for i in range(width):
                        y = side * np.float32(i - _REACH)
                        window = padded[row + i, col : col + width]
                        for j in range(width):
                            far[j] = _TOLERANCE_PX + slack * max(abs(y), abs(x[j]))
                        for j in range(width):
                            rise = window[j] - here
                            is_near = abs(rise - down * y - right * x[j]) <= far[j]
                            weight = one if is_near else zero
                            sums[0, j] += weight * y * y
                            sums[1, j] += weight * x[j] * x[j]
                            sums[2, j] += weight * y * x[j]
                            sums[3, j] += weight * y * rise
                            sums[4, j] += weight * x[j] * rise
                    dd, rr, dr, dq, rq = ridge, ridge, zero, zero, zero
                    for j in range(width):
                        dd += sums[0, j]
                        rr += sums[1, j]
                        dr += sums[2, j]
                        dq += sums[3, j]
                        rq += sums[4, j]
                    whole = dd * rr - dr * dr
                    down, right = (rr * dq - dr * rq) / whole, (dd * rq - dr * dq) / whole
                    sigma = _BLOCK_SIGMA_PX * np.sqrt(np.float32(0.5) * (dd + rr) / whole)
            out.down[row, col] = down
            out.right[row, col] = right
            out.slope_sigma[row, col] = sigma
