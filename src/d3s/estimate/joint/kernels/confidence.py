"""Depth, sigma, confidence and flags."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.flags import Flag
from d3s.estimate.joint.kernels.filters import between_cells, fill
from d3s.estimate.joint.types import (
    MIN_SIGMA_PX,
    Bits,
    CellFit,
    ConfidenceParameters,
    DepthPlanes,
    SearchResult,
    Trust,
)
from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.types import FloatArray, Image

_LOW_TEXTURE, _AMBIGUOUS = int(Flag.LOW_TEXTURE), int(Flag.AMBIGUOUS)


_OUT_OF_RANGE, _OCCLUDED = int(Flag.OUT_OF_RANGE), int(Flag.OCCLUDED)


_INCONSISTENT, _LOW_CONFIDENCE = int(Flag.INCONSISTENT), int(Flag.LOW_CONFIDENCE)


_CARRIED, _ENCLOSED = int(Flag.CARRIED), int(Flag.ENCLOSED)


class _Cells(NamedTuple):
    """Quantities of cells that are interpolated to pixels."""

    weighted: Image  # disparity times precision
    precision: Image  # 1 / sigma²
    bend: Image
    correlation: Image
    wrong: Image  # probability of being wrong
    flags: Bits


class _Numbers(NamedTuple):
    """Numbers of `ConfidenceParameters` in single precision."""

    per_dpt_px: np.float32
    offset_px: np.float32
    nearest_m: np.float32
    farthest_m: np.float32
    min_confidence: np.float32
    wrong_half: np.float32
    sigma_px: np.float32
    sigma_per_px: np.float32
    wrong_px2: np.float32
    harmless: np.float32
    min_correlation: np.float32
    enclosed_confidence: np.float32


def search_flags(memory: Scratch, found: SearchResult, shifts: int, min_margin: float) -> Bits:
    """Return the flags that follow from a search over so many shifts."""
    out = memory.empty(found.step.shape, np.uint16)
    last_step, margin = np.float32(shifts - 1.5), np.float32(min_margin)
    run_over_rows(_search_flags, out.shape[0], found, last_step, margin, out)
    return out


def depth_planes(
    memory: Scratch,
    fit: CellFit,
    trust: Trust,
    flags: Bits,
    parameters: ConfidenceParameters,
) -> DepthPlanes:
    """Return depth, sigma, confidence and flags of each pixel."""
    shape = parameters.frame_shape
    depth, sigma, confidence = (np.empty(shape, np.float32) for _ in range(3))
    out = DepthPlanes(depth, sigma, confidence, np.empty(shape, np.uint16))
    empty, grid = memory.empty, fit.flags.shape
    cells = _Cells(
        weighted=empty(grid),
        precision=empty(grid),
        bend=fit.bend_px,
        correlation=fit.correlation,
        wrong=trust.wrong,
        flags=empty(grid, np.uint16),
    )
    limits = np.float32(parameters.max_misfit), np.float32(parameters.max_carried_px)
    run_over_rows(_judge_cells, grid[0], fit, trust.carried_px, flags, limits, cells)
    side, numbers = parameters.cell_side, _numbers(parameters)
    terms, radius_px = parameters.calibration
    known, reasons = (terms, radius_px), np.int32(~parameters.remarks)
    run_over_rows(_depth_planes, shape[0], cells, side, numbers, known, reasons, out)
    return out


def _numbers(parameters: ConfidenceParameters) -> _Numbers:
    numbers = (
        parameters.per_dpt_px,
        parameters.offset_px,
        parameters.nearest_m,
        parameters.farthest_m,
        parameters.min_confidence,
        parameters.wrong_at_half_confidence,
        parameters.sigma_at_half_confidence_px,
        parameters.sigma_at_half_confidence_per_px,
        parameters.wrong_variance_px2,
        parameters.harmless_wrong,
        parameters.min_correlation,
        parameters.enclosed_confidence,
    )
    return _Numbers(*(np.float32(number) for number in numbers))


@compiled
def _search_flags(
    start: int,
    stop: int,
    found: SearchResult,
    last_step: np.float32,
    min_margin: np.float32,
    out: Bits,
) -> None:
    """Flag occlusion, left-right disagreement, ambiguity, and the ends of the range."""
    first_step, one = np.float32(0.5), np.float32(1)
    for row in range(start, stop):
        steps, margins = found.step[row], found.margin[row]
        right_steps, line = found.right_step[row], out[row]
        for col in range(line.size):
            here, right = steps[col], right_steps[col]
            gap = np.float32(right) - here if right >= 0 else np.float32(0)
            bits = np.int32(_OCCLUDED) if gap > one else np.int32(0)
            bits |= np.int32(_INCONSISTENT) if gap < -one else np.int32(0)
            bits |= np.int32(0) if margins[col] >= min_margin else np.int32(_AMBIGUOUS)
            is_at_end = (here <= first_step) | (here >= last_step)
            bits |= np.int32(_OUT_OF_RANGE) if is_at_end else np.int32(0)
            line[col] = bits


@compiled
def _judge_cells(
    start: int,
    stop: int,
    fit: CellFit,
    carried_px: Image,
    search_flags: Bits,
    limits: tuple[np.float32, np.float32],
    out: _Cells,
) -> None:
    """Combine the flags of cells, and weight their disparities by their precision."""
    max_misfit, max_carried = limits
    one, least = np.float32(1), np.float32(MIN_SIGMA_PX)
    zero, infinity = np.float32(0), np.float32(np.inf)
    for row in range(start, stop):
        carried, misfits, line = carried_px[row], fit.misfit[row], out.flags[row]
        first, second, sigma = search_flags[row], fit.flags[row], fit.sigma_px[row]
        for col in range(line.size):
            is_known = (sigma[col] >= zero) & (sigma[col] < infinity)
            is_bad = (not misfits[col] <= max_misfit) | (not is_known)
            bits = (first[col] | second[col]) | (_INCONSISTENT if is_bad else 0)
            line[col] = bits | (_CARRIED if carried[col] > max_carried else 0)
        precision = out.precision[row]
        for col in range(precision.size):
            is_known = (sigma[col] >= zero) & (sigma[col] < infinity)
            own = sigma[col] if sigma[col] > least else least
            precision[col] = one / (own * own) if is_known else zero
        disparity, weighted = fit.disparity_px[row], out.weighted[row]
        for col in range(precision.size):
            weighted[col] = disparity[col] * precision[col]


@part
def _pixel_line(image: Image, row: int, cell_side: int, work: Image, out: Image) -> None:
    """One row of pixels from cells of one or two pixels a side, by linear interpolation."""
    if cell_side == 1:
        fill(image[row], out)
    else:
        between_cells(image, row, 0, image.shape[1], work, out)


@compiled
def _depth_planes(
    start: int,
    stop: int,
    cells: _Cells,
    cell_side: int,
    numbers: _Numbers,
    calibration: tuple[FloatArray, float],
    reasons: np.int32,
    out: DepthPlanes,
) -> None:
    """Depth, sigma, confidence and flags of pixels from the quantities of cells."""
    zero, one, over = np.float32(0), np.float32(1), np.float32(1) / numbers.per_dpt_px
    nan = np.float32(np.nan)
    rows, cols = out.depth_m.shape
    work = np.empty(cells.precision.shape[1] + 2, dtype=np.float32)
    lines, more_lines = np.empty((4, cols), np.float32), np.empty((3, cols), np.float32)
    known, inner = np.empty(cols, dtype=np.float32), np.empty(cols, dtype=np.float32)
    bits = np.empty(cols, dtype=np.int32)
    disparity, precision, bend, correlation = lines[0], lines[1], lines[2], lines[3]
    wrong, random, vergence = more_lines[0], more_lines[1], more_lines[2]
    for row in range(start, stop):
        _pixel_line(cells.weighted, row, cell_side, work, disparity)
        _pixel_line(cells.precision, row, cell_side, work, precision)
        for col in range(cols):
            disparity[col] = disparity[col] / precision[col]
        _pixel_line(cells.bend, row, cell_side, work, bend)
        _pixel_line(cells.correlation, row, cell_side, work, correlation)
        _pixel_line(cells.wrong, row, cell_side, work, wrong)
        _pixel_flags(cells.flags[row // cell_side], cell_side, bits)
        depth, sigma = out.depth_m[row], out.sigma_m[row]
        confidence, flags = out.confidence[row], out.flags[row]
        for col in range(cols):
            apart = disparity[col] - numbers.offset_px
            far = numbers.per_dpt_px / apart
            depth[col] = far if apart > zero else np.float32(np.inf)
            vergence[col] = apart * over
        _calibration_line(row, rows, calibration, vergence, inner, known)
        for col in range(cols):
            variance = one / precision[col] + bend[col] * bend[col]
            random[col] = np.sqrt(variance)
            doubt = wrong[col] - numbers.harmless
            doubt = doubt if doubt > zero else zero
            sigma_px = np.sqrt(variance + known[col] + numbers.wrong_px2 * doubt)
            sigma[col] = depth[col] * depth[col] * sigma_px * over
        for col in range(cols):
            apart = disparity[col] - numbers.offset_px
            half = numbers.sigma_per_px * apart * apart
            half = half if half > numbers.sigma_px else numbers.sigma_px
            value = one / (one + wrong[col] / numbers.wrong_half + random[col] / half)
            confidence[col] = value if value > zero else zero
        for col in range(cols):
            has_texture = correlation[col] >= numbers.min_correlation
            more = np.int32(0) if has_texture else np.int32(_LOW_TEXTURE)
            inside = (depth[col] >= numbers.nearest_m) & (depth[col] <= numbers.farthest_m)
            more |= np.int32(0) if inside else np.int32(_OUT_OF_RANGE)
            is_sure = confidence[col] >= numbers.min_confidence
            more |= np.int32(0) if is_sure else np.int32(_LOW_CONFIDENCE)
            bits[col] |= more
            is_enclosed = bits[col] & np.int32(_ENCLOSED) != 0
            confidence[col] *= numbers.enclosed_confidence if is_enclosed else one
        for col in range(cols):
            flags[col] = bits[col]
        for col in range(cols):
            depth[col] += zero if bits[col] & reasons == 0 else nan
        for col in range(cols):
            sigma[col] += zero if bits[col] & reasons == 0 else nan


@part
def _calibration_line(
    row: int,
    rows: int,
    calibration: tuple[FloatArray, float],
    vergence: Image,
    inner: Image,
    out: Image,
) -> None:
    """Variance of the disparity of a row of pixels by errors of the calibration."""
    terms, radius_px = calibration
    cols, zero = out.size, np.float32(0)
    down = (row - (rows - 1) / 2) / radius_px
    middle, over = np.float32((cols - 1) / 2), np.float32(1 / radius_px)
    out[:] = zero
    for power in range(terms.shape[0] - 1, -1, -1):
        inner[:] = zero
        for term in range(terms.shape[1] - 1, -1, -1):
            total = 0.0
            for place in range(terms.shape[2] - 1, -1, -1):
                total = total * down + terms[power, term, place]
            here = np.float32(total)
            for col in range(cols):
                inner[col] = inner[col] * ((np.float32(col) - middle) * over) + here
        for col in range(cols):
            out[col] = out[col] * vergence[col] + inner[col]
    for col in range(cols):
        out[col] = out[col] if out[col] > zero else zero


@part
def _pixel_flags(line: Bits, cell_side: int, out: NDArray[np.int32]) -> None:
    """Flags of a row of pixels, from those of its cells."""
    cols = out.size
    if cell_side == 1:
        for col in range(cols):
            out[col] = line[col]
        return
    for col in range(cols // 2):
        out[2 * col] = line[col]
        out[2 * col + 1] = line[col]
    if cols % 2:
        out[cols - 1] = line[cols // 2]
