"""Cells of one size out of cells of another, and which of them are wanted."""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.numba_backend.lines import between_cells, fill
from d3s.runtime.compile import compiled, part
from d3s.types import Image, Mask

Counts = NDArray[np.uint8]


@compiled
def halved(start: int, stop: int, image: Image, out: Image) -> None:
    """Mean of the middle two of each 2 x 2 cells."""
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
def doubled(start: int, stop: int, image: Image, out: Image) -> None:
    """Linear between the cells."""
    cols = image.shape[1]
    work = np.empty(cols + 2, dtype=np.float32)
    for row in range(start, stop):
        between_cells(image, row, 0, cols, work, out[row])


@compiled
def scales_of(start: int, stop: int, disparity: Image, numbers: Image, out: Counts) -> None:
    """Coarsest scale of each cell: one, or those whose disparities are beyond their ends."""
    cols = disparity.shape[1]
    for row in range(start, stop):
        line, target = disparity[row], out[row]
        for col in range(cols):
            target[col] = 1
        for which in range(numbers.shape[0]):
            scale, low, high = np.uint8(numbers[which, 0]), numbers[which, 1], numbers[which, 2]
            for col in range(cols):
                if line[col] < low or line[col] > high:
                    target[col] = scale


@compiled
def wanted_cells(
    start: int, stop: int, scales: Counts, least: int, most: int, is_coarse: bool, out: Mask
) -> None:
    """Cells of these scales, or those of half as many that they are interpolated from."""
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
def put(
    start: int, stop: int, values: Image, scales: Counts, least: int, most: int, out: Image
) -> None:
    """Values of the cells of these scales."""
    for row in range(start, stop):
        here, source, target = scales[row], values[row], out[row]
        for col in range(here.size):
            if least <= here[col] <= most:
                target[col] = source[col]


@compiled
def join(
    start: int,
    stop: int,
    scales: Counts,
    scale: int,
    disparity: Image,
    sigma: Image,
    bend: Image,
    correlation: Image,
    misfit: Image,
    flags: NDArray[np.uint16],
    out_disparity: Image,
    out_sigma: Image,
    out_bend: Image,
    out_correlation: Image,
    out_misfit: Image,
    out_flags: NDArray[np.uint16],
) -> None:
    """Put a part where its scale is wanted, linear between the cells if they are twice as large."""
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
        _join_line(disparity, row, step, here, scale, first, last, work, line, out_disparity[row])
        _join_line(sigma, row, step, here, scale, first, last, work, line, out_sigma[row])
        _join_line(bend, row, step, here, scale, first, last, work, line, out_bend[row])
        _join_line(
            correlation, row, step, here, scale, first, last, work, line, out_correlation[row]
        )
        _join_line(misfit, row, step, here, scale, first, last, work, line, out_misfit[row])
        bits, target = flags[row // step], out_flags[row]
        for col in range(first, last + 1):
            if here[col] == scale:
                target[col] = bits[col // step]


@part
def _join_line(
    image: Image,
    row: int,
    step: int,
    here: Counts,
    scale: int,
    first: int,
    last: int,
    work: Image,
    line: Image,
    out: Image,
) -> None:
    if step == 1:
        fill(image[row], line)
    else:
        between_cells(image, row, first // 2, last // 2 + 1, work, line)
    for col in range(first, last + 1):
        out[col] = line[col] if here[col] == scale else out[col]
