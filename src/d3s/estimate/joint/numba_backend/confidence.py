"""Compiled loops of the judgement."""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.flags import Flag
from d3s.estimate.joint.confidence_types import LEAST_SIGMA_PX, Judged, Judging
from d3s.estimate.joint.numba_backend.lines import between_cells, fill
from d3s.estimate.joint.search import Found
from d3s.estimate.joint.types import Refined
from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import over_rows
from d3s.runtime.scratch import Memory
from d3s.types import Image

Counts = NDArray[np.uint8]
Bits = NDArray[np.uint16]

_LOW_TEXTURE, _AMBIGUOUS = int(Flag.LOW_TEXTURE), int(Flag.AMBIGUOUS)
_OUT_OF_RANGE, _OCCLUDED = int(Flag.OUT_OF_RANGE), int(Flag.OCCLUDED)
_INCONSISTENT, _LOW_CONFIDENCE = int(Flag.INCONSISTENT), int(Flag.LOW_CONFIDENCE)


class CompiledJudge:
    """Single precision; what it gives outlives the memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def of_search(self, found: Found, depth: int, least_margin: float) -> Bits:
        """Flags that come from the search, which looked at so many shifts."""
        out = self._memory.empty(found.step.shape, np.uint16)
        numbers = np.float32(depth - 1.5), np.float32(least_margin)
        over_rows(_of_search, out.shape[0], found.step, found.margin, found.seen, *numbers, out)
        return out

    def judged(self, fit: Refined, is_one: Counts, flags: Bits, judging: Judging) -> Judged:
        """All of a frame; `is_one` says where there is one surface, `flags` are of the search."""
        shape = judging.shape
        depth, sigma, confidence = (np.empty(shape, np.float32) for _ in range(3))
        out = Judged(depth, sigma, confidence, np.empty(shape, np.uint16))
        numbers = np.array(
            (
                judging.per_dpt_px,
                judging.offset_px,
                judging.rectification_sigma_px**2,
                judging.nearest_m,
                judging.farthest_m,
                judging.min_confidence,
                judging.sigma_m,
                judging.sigma_share,
                judging.least_correlation,
            ),
            dtype=np.float32,
        )
        empty, cells = self._memory.empty, fit.flags.shape
        bits, weighted, weight = empty(cells, np.uint16), empty(cells), empty(cells)
        over_rows(
            _of_cells,
            is_one.shape[0],
            is_one,
            flags,
            fit.flags,
            fit.misfit,
            fit.disparity_px,
            fit.sigma_px,
            np.float32(judging.largest_misfit),
            bits,
            weighted,
            weight,
        )
        over_rows(
            _judged,
            shape[0],
            weighted,
            weight,
            fit.bend_px,
            fit.correlation,
            bits,
            judging.cell,
            numbers,
            *out,
        )
        return out


@compiled
def _of_search(
    start: int,
    stop: int,
    step: Image,
    margin: Image,
    seen: NDArray[np.int16],
    last: np.float32,
    least: np.float32,
    out: Bits,
) -> None:
    first, one = np.float32(0.5), np.float32(1)
    for row in range(start, stop):
        steps, margins, others, line = step[row], margin[row], seen[row], out[row]
        for col in range(line.size):
            here = steps[col]
            gap = np.float32(others[col]) - here if others[col] >= 0 else np.float32(0)
            bits = np.int32(_OCCLUDED) if gap > one else np.int32(0)
            bits |= np.int32(_INCONSISTENT) if gap < -one else np.int32(0)
            bits |= np.int32(0) if margins[col] >= least else np.int32(_AMBIGUOUS)
            bits |= np.int32(_OUT_OF_RANGE) if (here <= first) | (here >= last) else np.int32(0)
            line[col] = bits


@compiled
def _of_cells(
    start: int,
    stop: int,
    is_one: Counts,
    of_search: Bits,
    of_frame: Bits,
    misfit: Image,
    disparity: Image,
    sigma: Image,
    most: np.float32,
    flags: Bits,
    weighted: Image,
    weight: Image,
) -> None:
    """Flags of cells, their precision, and disparities times it."""
    one, least = np.float32(1), np.float32(LEAST_SIGMA_PX)
    none, never = np.float32(0), np.float32(np.inf)
    for row in range(start, stop):
        count, misfits, line = is_one[row], misfit[row], flags[row]
        first, second, before = of_search[row], of_frame[row], sigma[row]
        for col in range(line.size):
            is_known = (before[col] >= none) & (before[col] < never)
            is_bad = (count[col] < 1) | (not misfits[col] <= most) | (not is_known)
            line[col] = (first[col] | second[col]) | (_INCONSISTENT if is_bad else 0)
        after = weight[row]
        for col in range(after.size):
            is_known = (before[col] >= none) & (before[col] < never)
            own = before[col] if before[col] > least else least
            after[col] = one / (own * own) if is_known else none
        here, product = disparity[row], weighted[row]
        for col in range(after.size):
            product[col] = here[col] * after[col]


@part
def _full_line(image: Image, row: int, cell: int, work: Image, out: Image) -> None:
    """One row of a frame out of cells of one or two pixels a side."""
    if cell == 1:
        fill(image[row], out)
    else:
        between_cells(image, row, 0, image.shape[1], work, out)


@compiled
def _judged(
    start: int,
    stop: int,
    weighted: Image,
    weight: Image,
    bend: Image,
    correlation: Image,
    cell_flags: Bits,
    cell: int,
    numbers: Image,
    out_depth: Image,
    out_sigma: Image,
    out_confidence: Image,
    out_flags: Bits,
) -> None:
    per_dpt, offset, rectification = numbers[0], numbers[1], numbers[2]
    nearest, farthest, least = numbers[3], numbers[4], numbers[5]
    zero, one, over = np.float32(0), np.float32(1), np.float32(1) / numbers[0]
    sigma_m, share, textured = numbers[6], numbers[7], numbers[8]
    nothing = np.float32(np.nan)
    cols = out_depth.shape[1]
    work = np.empty(weight.shape[1] + 2, dtype=np.float32)
    lines = np.empty((4, cols), dtype=np.float32)
    bits = np.empty(cols, dtype=np.int32)
    here, spread, bent, alike = lines[0], lines[1], lines[2], lines[3]
    for row in range(start, stop):
        _full_line(weighted, row, cell, work, here)
        _full_line(weight, row, cell, work, spread)
        for col in range(cols):
            here[col] = here[col] / spread[col]
        _full_line(bend, row, cell, work, bent)
        _full_line(correlation, row, cell, work, alike)
        source = cell_flags[row // cell]
        if cell == 1:
            for col in range(cols):
                bits[col] = source[col]
        else:
            for col in range(cols // 2):
                bits[2 * col] = source[col]
                bits[2 * col + 1] = source[col]
            if cols % 2:
                bits[cols - 1] = source[cols // 2]
        depth, sigmas = out_depth[row], out_sigma[row]
        confidence, flags = out_confidence[row], out_flags[row]
        for col in range(cols):
            apart = here[col] - offset
            far = per_dpt / apart
            depth[col] = far if apart > zero else np.float32(np.inf)
        for col in range(cols):
            all_px = np.sqrt(one / spread[col] + bent[col] * bent[col] + rectification)
            sigmas[col] = depth[col] * depth[col] * all_px * over
        for col in range(cols):
            scale = share * depth[col]
            scale = scale if scale > sigma_m else sigma_m
            value = alike[col] / (one + sigmas[col] / scale)
            confidence[col] = value if value > zero else zero
        for col in range(cols):
            more = np.int32(0) if alike[col] >= textured else np.int32(_LOW_TEXTURE)
            inside = (depth[col] >= nearest) & (depth[col] <= farthest)
            more |= np.int32(0) if inside else np.int32(_OUT_OF_RANGE)
            more |= np.int32(0) if confidence[col] >= least else np.int32(_LOW_CONFIDENCE)
            bits[col] |= more
        for col in range(cols):
            flags[col] = bits[col]
        for col in range(cols):
            depth[col] += zero if bits[col] == 0 else nothing
        for col in range(cols):
            sigmas[col] += zero if bits[col] == 0 else nothing
