"""Cells of one size from cells of another, and which cells are wanted."""

import numpy as np

from d3s.estimate.joint.numba_backend.lines import between_cells, fill
from d3s.estimate.joint.types import Bits, Counts
from d3s.runtime.compile import compiled
from d3s.types import Image, Mask


@compiled
def halve(start: int, stop: int, image: Image, out: Image) -> None:
    """Shrink by two: the mean of the middle two values of each 2 x 2 cells.

    Parameters
    ----------
    start, stop
        Rows of the result, the last one excluded.
    image
        Cells (rows, cols).
    out
        Result of half the size, written in place.
    """
    rows, cols = image.shape
    for row in range(start, stop):
        top, bottom = image[2 * row], image[min(2 * row + 1, rows - 1)]
        line = out[row]
        for col in range(cols // 2):
            a, b, c, d = top[2 * col], top[2 * col + 1], bottom[2 * col], bottom[2 * col + 1]
            least = min(min(a, b), min(c, d))
            most = max(max(a, b), max(c, d))
            line[col] = np.float32(0.5) * (((a + b) + (c + d)) - least - most)
        if cols % 2:
            line[cols // 2] = np.float32(0.5) * (top[cols - 1] + bottom[cols - 1])


@compiled
def double(start: int, stop: int, image: Image, out: Image) -> None:
    """Enlarge by two, by linear interpolation.

    Parameters
    ----------
    start, stop
        Rows of the result, the last one excluded.
    image
        Cells (rows, cols).
    out
        Result of twice the size, written in place.
    """
    cols = image.shape[1]
    work = np.empty(cols + 2, dtype=np.float32)
    for row in range(start, stop):
        between_cells(image, row, 0, cols, work, out[row])


@compiled
def coarsest_scales(
    start: int, stop: int, disparity: Image, scales: Counts, finer_px: Image, out: Counts
) -> None:
    """Coarsest scale of each cell: 1, or a scale if the disparity is outside its interval.

    `finer_px` has a row (low, high) for each of the increasing `scales`.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    disparity
        Disparity of each cell, in pixels of the frame.
    scales
        Scales above 1, increasing.
    finer_px
        Interval of disparities that each scale is too coarse for (scales, 2).
    out
        Result, written in place.
    """
    cols = disparity.shape[1]
    for row in range(start, stop):
        line, target = disparity[row], out[row]
        for col in range(cols):
            target[col] = 1
        for which in range(scales.size):
            scale, low, high = scales[which], finer_px[which, 0], finer_px[which, 1]
            for col in range(cols):
                if line[col] < low or line[col] > high:
                    target[col] = scale


@compiled
def select_cells(
    start: int, stop: int, scales: Counts, least: int, most: int, is_coarse: bool, out: Mask
) -> None:
    """Select cells of scales least to most, or the coarse cells they are interpolated from.

    Parameters
    ----------
    start, stop
        Rows of the result, the last one excluded.
    scales
        Scale of each cell.
    least, most
        Scales to select, both included.
    is_coarse
        Whether `out` has half the size.
    out
        Result, written in place.
    """
    rows, cols = scales.shape
    low, high = np.uint8(least), np.uint8(most)
    line = np.empty(cols + 3, dtype=np.uint8)
    for row in range(start, stop):
        target = out[row]
        if not is_coarse:
            source = scales[row]
            for col in range(cols):
                target[col] = (source[col] >= low) & (source[col] <= high)
            continue
        line[:] = 0
        inner = line[1:]
        for near in range(max(2 * row - 1, 0), min(2 * row + 3, rows)):
            source = scales[near]
            for col in range(cols):
                inner[col] |= (source[col] >= low) & (source[col] <= high)
        for col in range(target.size):
            some = line[2 * col] | line[2 * col + 1]
            more = line[2 * col + 2] | (line[2 * col + 3] if 2 * col + 3 < line.size else 0)
            target[col] = (some | more) > 0


@compiled
def keep_fine(
    start: int,
    stop: int,
    values: Image,
    scales: Counts,
    most: int,
    limit: np.float32,
    out: Image,
) -> None:
    """Copy the values of cells beyond a scale, and of cells that `out` is too far from.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    values
        Values to copy (rows, cols).
    scales
        Scale of each cell.
    most
        Largest scale whose cells may keep the value of `out`.
    limit
        Largest difference of a value that is kept.
    out
        Result, written in place.
    """
    for row in range(start, stop):
        here, source, target = scales[row], values[row], out[row]
        for col in range(here.size):
            if here[col] > most or not abs(target[col] - source[col]) < limit:
                target[col] = source[col]


@compiled
def join(
    start: int,
    stop: int,
    scales: Counts,
    scale: int,
    images: tuple[Image, ...],
    flags: Bits,
    out_images: tuple[Image, ...],
    out_flags: Bits,
) -> None:
    """Copy images and flags of a fit where its scale is wanted, interpolated from coarser cells.

    Parameters
    ----------
    start, stop
        Rows to compute, the last one excluded.
    scales
        Scale of each cell of the result.
    scale
        Scale of the fit to copy.
    images, flags
        Quantities and flags of the fit, of the size of the result or half of it.
    out_images, out_flags
        Result, written in place.
    """
    step = 1 if flags.shape == out_flags.shape else 2
    work = np.empty(flags.shape[1] + 2, dtype=np.float32)
    line = np.empty(out_flags.shape[1], dtype=np.float32)
    for row in range(start, stop):
        here = scales[row]
        first, last = 0, here.size - 1
        while first <= last and here[first] != scale:
            first += 1
        while last > first and here[last] != scale:
            last -= 1
        if first > last:
            continue
        own = here[first : last + 1]
        for which in range(len(images)):
            image, target = images[which], out_images[which][row, first : last + 1]
            if step == 1:
                fill(image[row], line)
            else:
                between_cells(image, row, first // 2, last // 2 + 1, work, line)
            found = line[first:]
            for col in range(own.size):
                target[col] = found[col] if own[col] == scale else target[col]
        bits, out_bits = flags[row // step], out_flags[row]
        for col in range(first, last + 1):
            if here[col] == scale:
                out_bits[col] = bits[col // step]
