"""Cells of one size from cells of another, and which cells are wanted."""

import numpy as np

from d3s.estimate.joint.kernels.filters import between_cells, double, fill
from d3s.estimate.joint.types import (
    Bits,
    CellFit,
    Counts,
)
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.types import Image, Mask


def scales_by_disparity(
    memory: Scratch, disparity_px: Image, finer_px: dict[int, tuple[float, float]]
) -> Counts:
    """Return the coarsest scale at which each cell may be fitted.

    `finer_px` has, for each scale, the interval of disparities that need a finer one.
    """
    out = memory.empty(disparity_px.shape, np.uint8)
    scales = np.array(sorted(finer_px), dtype=np.uint8)
    ends = np.array([finer_px[int(scale)] for scale in scales], dtype=np.float32)
    run_over_rows(
        _scales_by_disparity, out.shape[0], disparity_px, scales, ends.reshape(-1, 2), out
    )
    return out


@compiled
def _scales_by_disparity(
    start: int, stop: int, disparity: Image, scales: Counts, finer_px: Image, out: Counts
) -> None:
    """Coarsest scale of each cell: 1, or a scale if the disparity is outside its interval.

    `finer_px` has a row (low, high) for each of the increasing `scales`.
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


def select_cells(
    memory: Scratch, scales: Counts, least: int, most: int, *, is_coarse: bool
) -> Mask:
    """Select the cells of scales least to most.

    On a coarse grid of half the size: the cells from which these are interpolated.
    """
    step = 2 if is_coarse else 1
    shape = -(-scales.shape[0] // step), -(-scales.shape[1] // step)
    out = memory.empty(shape, np.bool_)
    run_over_rows(_select_cells, shape[0], scales, least, most, is_coarse, out)
    return out


@compiled
def _select_cells(
    start: int, stop: int, scales: Counts, least: int, most: int, is_coarse: bool, out: Mask
) -> None:
    """Select cells of scales least to most, or the coarse cells they are interpolated from."""
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


def merge_coarse(
    memory: Scratch,
    disparity_px: Image,
    coarse_px: Image,
    scales: Counts,
    most: int,
    max_move_px: float,
) -> Image:
    """Return the disparities of a coarser grid for cells up to a scale, else the given ones.

    Also the given ones where the two are `max_move_px` or more apart: beside a step in depth
    the coarser grid mixes both sides.
    """
    out = double(memory, coarse_px, scales.shape)
    rows, limit = scales.shape[0], np.float32(max_move_px)
    run_over_rows(_keep_fine, rows, disparity_px, scales, most, limit, out)
    return out


@compiled
def _keep_fine(
    start: int,
    stop: int,
    values: Image,
    scales: Counts,
    most: int,
    limit: np.float32,
    out: Image,
) -> None:
    """Copy the values of cells beyond a scale, and of cells that `out` is too far from."""
    for row in range(start, stop):
        here, source, target = scales[row], values[row], out[row]
        for col in range(here.size):
            if here[col] > most or not abs(target[col] - source[col]) < limit:
                target[col] = source[col]


def join_scales(memory: Scratch, parts: dict[int, CellFit], scales: Counts) -> CellFit:
    """Take each cell from the fit of its scale, interpolated if that is coarser."""
    shape = scales.shape
    # The part that has the size of the grid becomes the result; the others are copied into it.
    best = next((fit for fit in parts.values() if fit.flags.shape == shape), None)
    if best is None:
        images = (memory.empty(shape) for _ in CellFit._fields[:-1])
        best = CellFit._make([*images, memory.empty(shape, np.uint16)])
    for scale, fit in parts.items():
        if fit is not best:
            rows = shape[0]
            run_over_rows(_join, rows, scales, scale, fit[:-1], fit.flags, best[:-1], best.flags)
    return best


@compiled
def _join(
    start: int,
    stop: int,
    scales: Counts,
    scale: int,
    images: tuple[Image, ...],
    flags: Bits,
    out_images: tuple[Image, ...],
    out_flags: Bits,
) -> None:
    """Copy images and flags of a fit where its scale is wanted, interpolated from coarser cells."""
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
