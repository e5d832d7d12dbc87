"""Copies and interpolation of image rows, for the other kernels."""

import numpy as np

from d3s.runtime.compile import part
from d3s.types import Image


@part
def fill(line: Image, out: Image) -> None:
    """Copy a line, as far as both lines reach."""
    for col in range(min(line.size, out.size)):
        out[col] = line[col]


@part
def between_cells(image: Image, row: int, begin: int, end: int, work: Image, out: Image) -> None:
    """Interpolate a row of pixels linearly between the centres of cells of 2 x 2 pixels.

    For the columns of cells `begin` to `end`; edge cells are repeated. `work` has two values more
    than there are cells.

    Parameters
    ----------
    image
        Cells (rows, cols) of 2 x 2 pixels.
    row
        Row of pixels.
    begin, end
        Columns of cells, the last one excluded.
    work
        Scratch line of two values more than there are cells.
    out
        Result, written in place.
    """
    near, far = np.float32(0.75), np.float32(0.25)
    rows, cols = image.shape
    other = max(row // 2 - 1, 0) if row % 2 == 0 else min(row // 2 + 1, rows - 1)
    # Loops begin at 0, over parts of the lines: only such loops are vectorised.
    first, last = max(begin - 1, 0), min(end + 1, cols)
    one, two, mixed = image[row // 2, first:last], image[other, first:last], work[first + 1 :]
    for col in range(last - first):
        mixed[col] = near * one[col] + far * two[col]
    if begin == 0:
        work[0] = work[1]
    if end == cols:
        work[cols + 1] = work[cols]
    before, middle, after = work[begin:], work[begin + 1 :], work[begin + 2 :]
    target = out[2 * begin :]
    for col in range(min(end - begin, target.size // 2)):
        target[2 * col] = near * middle[col] + far * before[col]
        target[2 * col + 1] = near * middle[col] + far * after[col]
    whole = out.size // 2
    if whole < end:
        out[2 * whole] = near * work[whole + 1] + far * work[whole]
