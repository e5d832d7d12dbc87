"""Pixels that a sensor could not tell from its white or its black."""

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import over_rows, together
from d3s.runtime.scratch import Memory
from d3s.types import Mask

Floats = NDArray[np.floating]
Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

# Of the nine pixels of a 3x3 block. A plateau with noise on it still has most of them; noise that
# touches the limit here and there does not, and does no harm that a depth would show.
_FEWEST_IN_BLOCK = 5


def clipped(image: Floats, memory: Memory | None = None) -> Mask:
    """Where a view lies on a plateau at its largest or its smallest value.

    A pixel is clipped if it has exactly that value and so have most of the block of 3x3 around
    it, or around a neighbour that has it too. This needs no full scale to be known, and does not
    depend on gain and offset. A constant view is clipped all over; the tops of very smooth
    noiseless views of few grey levels are too. The mask comes out of the memory if there is one.
    """
    image = np.require(image, requirements=["C", "A", "W"])  # the loops are compiled for no others
    room = np.empty if memory is None else memory.empty
    out = np.asarray(room(image.shape, np.bool_))
    ends = together(
        lambda: np.fmin.reduce(image, axis=None), lambda: np.fmax.reduce(image, axis=None)
    )
    limits = np.array(ends, dtype=image.dtype)
    counts = np.empty((image.shape[0], 2), dtype=np.int64)
    over_rows(_count_at_limits, image.shape[0], image, limits, counts)
    # Too few for a plateau anywhere. The edge repeats, so in a corner two would do.
    counts[:, counts.sum(axis=0) < min(_FEWEST_IN_BLOCK, image.size)] = 0
    over_rows(_mark, image.shape[0], image, limits, counts, out)
    return out


@compiled
def _count_at_limits(start: int, stop: int, image: Floats, limits: Floats, counts: Numbers) -> None:
    """How many pixels of each row are at either limit."""
    low, high = limits
    for row in range(start, stop):
        line = image[row]
        at_low, at_high = 0, 0
        for col in range(line.size):
            at_low += line[col] == low
            at_high += line[col] == high
        counts[row, 0], counts[row, 1] = at_low, at_high


@compiled
def _mark(start: int, stop: int, image: Floats, limits: Floats, counts: Numbers, out: Mask) -> None:
    """Mark pixels of plateaus; only rows with pixels at a limit are looked at."""
    rows, cols = image.shape
    # Lines of the last three rows, with one more pixel at both ends, and which rows they are.
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
                        _find_limit(image[other], limits[side], at_limit[other % 3])
                _sum_blocks(at_limit, core, rows, sums, blocks)
                _find_cores(at_limit[core % 3], blocks, cores[core % 3])
            _sum_blocks(cores, row, rows, sums, blocks)
            at = at_limit[row % 3, 1:]
            for col in range(cols):
                result[col] |= (at[col] != 0) & (blocks[col] > 0)


@compiled
def _find_limit(line: Floats, limit: np.floating, out: Bytes) -> None:
    inner = out[1:]
    for col in range(line.size):
        inner[col] = line[col] == limit
    # The edge repeats, so that a plateau does not end where the frame does.
    out[0], out[-1] = out[1], out[-2]


@compiled
def _find_cores(at_limit: Bytes, blocks: Bytes, out: Bytes) -> None:
    """Pixels at the limit, most of whose block are too."""
    at, inner = at_limit[1:], out[1:]
    for col in range(blocks.size):
        inner[col] = (at[col] != 0) & (blocks[col] >= _FEWEST_IN_BLOCK)
    out[0], out[-1] = out[1], out[-2]


@compiled
def _sum_blocks(lines: Bytes, row: int, rows: int, sums: Bytes, out: Bytes) -> None:
    """Sums of 3x3 pixels around a row; a row lies at its number modulo three."""
    up, line, down = lines[max(row - 1, 0) % 3], lines[row % 3], lines[min(row + 1, rows - 1) % 3]
    for col in range(sums.size):
        sums[col] = up[col] + line[col] + down[col]
    middle, after = sums[1:], sums[2:]
    for col in range(out.size):
        out[col] = sums[col] + middle[col] + after[col]
