"""Clipped pixels: plateaus at the largest or the smallest value of a view."""

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows, run_together
from d3s.types import Mask

Floats = NDArray[np.floating]
Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]

# Pixels at the limit, of the nine of a 3x3 block. A plateau with noise still has this many. Noise
# that reaches the limit in single pixels has fewer, and does not harm the depth.
_MIN_IN_BLOCK = 5


def clipped(image: Floats) -> Mask:
    """Mask (rows, cols) of the pixels on a plateau at the largest or smallest value of a view.

    A pixel at one of these limits is clipped if most of the 3x3 block around it, or around a
    neighbour at the limit, are at the limit too. The full scale need not be known, and gain and
    offset do not matter. A constant view is clipped everywhere; so are the extrema of very smooth
    views without noise and with few grey levels. NaN pixels are not clipped.
    """
    # The kernels are compiled for contiguous, aligned, writeable arrays only.
    image = np.require(image, requirements=["C", "A", "W"])
    out = np.empty(image.shape, np.bool_)
    ends = run_together(
        lambda: np.fmin.reduce(image, axis=None), lambda: np.fmax.reduce(image, axis=None)
    )
    limits = np.array(ends, dtype=image.dtype)
    counts = np.empty((image.shape[0], 2), dtype=np.int64)
    run_over_rows(_count_at_limits, image.shape[0], image, limits, counts)
    # Fewer pixels in the whole view are no plateau. In a corner, whose pixels repeat in the blocks,
    # two pixels would be enough otherwise.
    counts[:, counts.sum(axis=0) < min(_MIN_IN_BLOCK, image.size)] = 0
    run_over_rows(_mark_plateaus, image.shape[0], image, limits, counts, out)
    return out


@compiled
def _count_at_limits(start: int, stop: int, image: Floats, limits: Floats, counts: Counts) -> None:
    """Count the pixels of each row that are at the low and at the high limit."""
    low, high = limits
    for row in range(start, stop):
        line = image[row]
        at_low, at_high = 0, 0
        for col in range(line.size):
            at_low += line[col] == low
            at_high += line[col] == high
        counts[row, 0], counts[row, 1] = at_low, at_high


@compiled
def _mark_plateaus(
    start: int, stop: int, image: Floats, limits: Floats, counts: Counts, out: Mask
) -> None:
    """Mark the pixels of plateaus; rows without pixels at a limit are skipped.

    A core is a pixel at the limit with most of its block at the limit; a pixel at the limit with a
    core in its block is clipped.
    """
    rows, cols = image.shape
    # Masks of three rows, with one more pixel at both ends; row r is in line r % 3, and
    # `limit_rows` and `core_rows` say which row a line holds.
    at_limit, cores = np.empty((3, cols + 2), np.uint8), np.empty((3, cols + 2), np.uint8)
    limit_rows, core_rows = np.empty(3, np.int64), np.empty(3, np.int64)
    sums, blocks = np.empty(cols + 2, np.uint8), np.empty(cols, np.uint8)
    for side in range(2):
        for i in range(3):
            limit_rows[i], core_rows[i] = -1, -1
        for row in range(start, stop):
            result = out[row]
            if side == 0:
                for col in range(cols):
                    result[col] = False
            if counts[row, side] == 0:
                continue
            for core in range(max(row - 1, 0), min(row + 2, rows)):
                if core_rows[core % 3] == core:
                    continue
                core_rows[core % 3] = core
                for other in range(max(core - 1, 0), min(core + 2, rows)):
                    if limit_rows[other % 3] != other:
                        limit_rows[other % 3] = other
                        _mark_limit(image[other], limits[side], at_limit[other % 3])
                _sum_blocks(at_limit, core, rows, sums, blocks)
                _mark_cores(at_limit[core % 3], blocks, cores[core % 3])
            _sum_blocks(cores, row, rows, sums, blocks)
            at = at_limit[row % 3, 1:]
            for col in range(cols):
                result[col] |= (at[col] != 0) & (blocks[col] > 0)


@compiled
def _mark_limit(line: Floats, limit: np.floating, out: Bytes) -> None:
    """Mark the pixels of a row that are at the limit."""
    inner = out[1:]
    for col in range(line.size):
        inner[col] = line[col] == limit
    # The border pixels repeat, so that a plateau does not end at the frame.
    out[0], out[-1] = out[1], out[-2]


@compiled
def _mark_cores(at_limit: Bytes, blocks: Bytes, out: Bytes) -> None:
    """Mark the pixels at the limit with most of their 3x3 block at the limit."""
    at, inner = at_limit[1:], out[1:]
    for col in range(blocks.size):
        inner[col] = (at[col] != 0) & (blocks[col] >= _MIN_IN_BLOCK)
    out[0], out[-1] = out[1], out[-2]


@compiled
def _sum_blocks(lines: Bytes, row: int, rows: int, sums: Bytes, out: Bytes) -> None:
    """Sum the 3x3 block around each pixel of a row; row r is in line r % 3."""
    up, line, down = lines[max(row - 1, 0) % 3], lines[row % 3], lines[min(row + 1, rows - 1) % 3]
    for col in range(sums.size):
        sums[col] = up[col] + line[col] + down[col]
    middle, after = sums[1:], sums[2:]
    for col in range(out.size):
        out[col] = sums[col] + middle[col] + after[col]
