"""Least squares over windows of cells; `estimate.joint.refine` explains the fit.

Kernels run along the columns and write one line each, which lets the compiler use vectors. Sums
over windows are taken anew for every row, in single precision: no rounding error accumulates, and
results do not depend on where a thread began.
"""

from typing import Any, NamedTuple

import numpy as np

from d3s.estimate.joint.kernels.filters import fill
from d3s.estimate.joint.kernels.window_sums import (
    find_window_rows,
    sum_along,
    sum_down,
    sum_down_weighted,
    sum_three_rows,
)
from d3s.estimate.joint.types import (
    FLAT,
    TINY,
    UNKNOWN_PX,
    BlurPlane,
    CellSum,
    Counts,
    FitParameters,
    Indices,
    Planes,
    WindowFit,
    window_pixels,
)
from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import (
    FLOATS,
    load_8,
    maximum,
    minimum,
    select_at_most,
    select_equal,
    select_less,
    splat_8,
    sqrt,
    store,
)
from d3s.types import Image, Mask

_DISPARITY_SUMS = 6  # the first planes of `CellSum`, which suffice for a disparity


# Planes of `CellSum` as plain integers, which compile faster.
_G, _H, _GG, _GH, _E, _EE, _SS, _M, _MM, _U, _UU = (int(plane) for plane in CellSum)


_DOWN = len(CellSum)  # further plane of window sums: squared gradients times rows


# Lines of a row of cells: start disparities, those of the search, noise, usable windows, pixels of
# 3 x 3 cells, defocus; behind these, the pixels of each window along the columns.
_START, _ANCHOR, _NOISE, _USABLE, _NEAR_PX, _DEFOCUS, _LINES = range(7)


# Lines of the results, in the order of `WindowFit`.
_RESULTS = len(WindowFit._fields)


_DISPARITY, _SIGMA, _CORRELATION, _MISFIT, _CENTROID_DOWN, _CENTROID_ACROSS, _WINDOW = (
    WindowFit._fields.index(name)
    for name in (
        "disparity",
        "sigma",
        "correlation",
        "misfit",
        "centroid_down",
        "centroid_across",
        "window",
    )
)


class _WindowTables(NamedTuple):
    """Sizes and statistics of the windows; the first index is the window."""

    halves: Indices  # half sides in cells, increasing
    rows_px: Image  # pixels of each window inside the frame, by row of its cell
    cols_px: Image  # the same by column
    near_rows_px: Image  # pixels of 3 x 3 cells, by row
    near_cols_px: Image  # the same by column
    energy_share: Image
    chance_correlation: Image


class _CellStarts(NamedTuple):
    """Disparity, noise and usable windows of each cell before the fit."""

    disparity: Image  # to start from
    anchor: Image  # of the search, with the sigma `anchor_sigma`
    usable: Counts  # number of larger windows that the cell may use
    noise: Image  # variance of one view's white noise around the cell
    wanted: Mask
    defocus: Image  # half the blur-variance difference at disparity 0, of each row or of all


class _FitNumbers(NamedTuple):
    """Numbers of `FitParameters` in single precision."""

    defocus_slope: np.float32
    max_move: np.float32
    anchor_precision: np.float32
    smoothed_gain: np.float32
    laplacian_gain: np.float32
    gradient_gain: np.float32
    noise_area: np.float32
    agreement_sigmas: np.float32
    unexplained_share: np.float32


class _RowSums(NamedTuple):
    """Sums around one row of cells, and where its columns lie in them."""

    columns: Image  # sums down the columns of each window, all planes of both rows, flat
    columns_at: int  # first value of this row
    columns_stride: int  # values of one window
    windows: Image  # sums over windows, flat
    windows_stride: int
    near: Image  # sums down three rows of four planes, flat
    room: int  # values of one plane
    begin: int  # first column of the frame
    width: int  # number of columns


def update_disparity(
    memory: Scratch,
    sums: Planes,
    disparity: Image,
    anchor: Image,
    usable: Counts,
    wanted: Mask,
    parameters: FitParameters,
) -> Image:
    """Return the least-squares disparity of the wanted cells; others keep theirs."""
    out = memory.empty((1, *disparity.shape))
    starts = _CellStarts(disparity, anchor, usable, disparity, wanted, disparity)
    _fit(memory, sums, starts, parameters, out)
    return np.asarray(out[0])


def fit_windows(
    memory: Scratch,
    sums: Planes,
    disparity: Image,
    anchor: Image,
    usable: Counts,
    noise: Image,
    wanted: Mask,
    parameters: FitParameters,
    blur: Planes | None = None,
) -> WindowFit:
    """Fit each wanted cell over the largest usable window that its smaller windows agree with.

    `noise` is the variance of one view's white noise around each cell. Cells outside `wanted`
    keep their disparity; their sigma is `UNKNOWN_PX`.
    """
    out = memory.empty((len(WindowFit._fields) - 1, *disparity.shape))
    line = parameters.defocus
    if blur is None:
        defocus = np.full((1, disparity.shape[1]), line.constant, dtype=np.float32)
    else:
        defocus = blur[BlurPlane.EVEN]
        parameters = parameters._replace(defocus=line._replace(slope=0.0))
    starts = _CellStarts(disparity, anchor, usable, noise, wanted, defocus)
    used = _fit(memory, sums, starts, parameters, out)
    return WindowFit._make([*out, used])


def _fit(
    memory: Scratch, sums: Planes, starts: _CellStarts, parameters: FitParameters, out: Planes
) -> Counts:
    """Fit the planes of `out`, all or the disparity alone, and return the windows used."""
    shape = starts.disparity.shape
    planes = _DISPARITY_SUMS if len(out) == 1 else len(CellSum)
    used = memory.empty(shape, np.uint8)
    run_over_rows(
        _fit_windows,
        -(-shape[0] // 2),
        sums.reshape(-1),
        planes,
        starts,
        _window_tables(parameters),
        _fit_numbers(parameters),
        out,
        used,
    )
    return used


def _window_tables(parameters: FitParameters) -> _WindowTables:
    side, halves = parameters.cell_side, parameters.window_halves
    rows_px, cols_px = (window_pixels(size, side, halves) for size in parameters.view_shape)
    near_rows, near_cols = (window_pixels(size, side, (1,))[0] for size in parameters.view_shape)
    return _WindowTables(
        halves=np.array(halves, dtype=np.int64),
        rows_px=rows_px,
        cols_px=cols_px,
        near_rows_px=near_rows,
        near_cols_px=near_cols,
        energy_share=np.array(parameters.energy_share, dtype=np.float32),
        chance_correlation=np.array(parameters.chance_correlation, dtype=np.float32),
    )


def _fit_numbers(parameters: FitParameters) -> _FitNumbers:
    return _FitNumbers(
        defocus_slope=np.float32(parameters.defocus.slope),
        max_move=np.float32(parameters.max_move),
        anchor_precision=np.float32(1 / parameters.anchor_sigma**2),
        smoothed_gain=np.float32(parameters.smoothed_gain),
        laplacian_gain=np.float32(parameters.laplacian_gain),
        gradient_gain=np.float32(parameters.gradient_gain),
        noise_area=np.float32(parameters.noise_area),
        agreement_sigmas=np.float32(parameters.agreement_sigmas),
        unexplained_share=np.float32(parameters.unexplained_share),
    )


@compiled
def _fit_windows(
    start: int,
    stop: int,
    sums: Image,
    planes: int,
    starts: _CellStarts,
    tables: _WindowTables,
    numbers: _FitNumbers,
    out: Planes,
    used: Counts,
) -> None:
    """Fit the cells of pairs of rows `start` to `stop`.

    `sums` are the planes of `CellSum`, flat, then a row of zeros; the first `planes` are used. Sums
    down the columns come first, for two rows at a time, whose windows share most rows. Sums along
    a row run over all planes at once; what they mix up at the ends of the planes is never read.
    """
    disparity, wanted = starts.disparity, starts.wanted
    rows, cols = disparity.shape
    halves = tables.halves
    places, margin = halves.size, max(halves[halves.size - 1], 1)
    is_light = planes == _DISPARITY_SUMS
    total = planes if is_light else planes + 1
    most = -(-(cols + 2 * margin) // FLOATS) * FLOATS
    tall = np.zeros((2, places, total * most + margin + FLOATS), dtype=np.float32)
    works = np.zeros((2, total * most + FLOATS), dtype=np.float32)
    window_sums = np.zeros((places, total * most + FLOATS), dtype=np.float32)
    small = np.zeros((2, 4 * most + margin + FLOATS), dtype=np.float32)
    lines = np.zeros((_LINES + places, most), dtype=np.float32)
    found = np.zeros((_RESULTS, most), dtype=np.float32)
    for place in range(places):
        fill(tables.cols_px[place], lines[_LINES + place])
    fill(tables.near_cols_px, lines[_NEAR_PX])
    zeros = _DOWN * rows * cols
    inner, firsts = np.empty(2 * margin, dtype=np.int64), np.empty((2, places), dtype=np.int64)
    ends = np.empty(places, dtype=np.int64)
    for pair in range(start, stop):
        top = 2 * pair
        two = min(top + 2, rows)
        begin, end = _span(wanted, top, two, margin)
        if begin < end:
            # Only the columns that windows of wanted cells reach are summed for this pair.
            width = end - begin
            room = -(-(width + 2 * margin) // FLOATS) * FLOATS
            size = find_window_rows(top, rows, cols, halves, inner, firsts, ends)
            for plane in range(planes):
                base, at = plane * rows * cols + begin, plane * room + margin
                sum_down(sums, base, zeros, width, room, inner, firsts, ends, tall, at)
            if not is_light:
                base, at = _GG * rows * cols + begin, planes * room + margin
                few = inner[:size]
                sum_down_weighted(
                    sums, base, zeros, width, room, top * cols, cols, few, firsts, ends, tall, at
                )
                for which in range(4):
                    base = (_E, _EE, _M, _MM)[which] * rows * cols + begin
                    at = which * room + margin
                    sum_three_rows(sums, base, zeros, top, rows, cols, width, room, small, at)
            for row in range(top, two):
                for place in range(places):
                    first = margin - halves[place]
                    side, length = 2 * halves[place] + 1, total * room
                    line = tall[row - top, place]
                    sum_along(line, first, side, length, works, window_sums[place])
                fill(disparity[row, begin:end], lines[_START, begin:])
                fill(starts.anchor[row, begin:end], lines[_ANCHOR, begin:])
                fill(starts.noise[row, begin:end], lines[_NOISE, begin:])
                usable, counts = starts.usable[row, begin:end], lines[_USABLE, begin:]
                for col in range(width):
                    counts[col] = usable[col]
                if not is_light:
                    defocus = starts.defocus[row % starts.defocus.shape[0]]
                    fill(defocus[begin:end], lines[_DEFOCUS, begin:])
                row_sums = _RowSums(
                    tall.reshape(tall.size),
                    (row - top) * places * tall.shape[2],
                    tall.shape[2],
                    window_sums.reshape(window_sums.size),
                    window_sums.shape[1],
                    small[row - top],
                    room,
                    begin,
                    width,
                )
                _fit_line(row_sums, lines, row, tables, numbers, is_light, found)
                for plane in range(out.shape[0]):
                    fill(found[plane], out[plane, row, begin:end])
                if not is_light:
                    windows, here = found[_WINDOW], used[row, begin:end]
                    for col in range(here.size):
                        here[col] = np.int32(windows[col])
        _keep_unwanted(top, two, disparity, wanted, out, used)


@part
def _span(wanted: Mask, top: int, bottom: int, margin: int) -> tuple[int, int]:
    """Return the first column that windows of wanted cells reach, and the one behind the last."""
    cols = wanted.shape[1]
    begin, end = cols, 0
    for row in range(top, bottom):
        first, last = 0, cols
        while first < last and not wanted[row, first]:
            first += 1
        while last > first and not wanted[row, last - 1]:
            last -= 1
        if first < last:
            begin, end = min(begin, first), max(end, last)
    return max(begin - margin, 0), min(end + margin, cols) if end > 0 else 0


@part
def _keep_unwanted(
    start: int, stop: int, disparity: Image, wanted: Mask, out: Planes, used: Counts
) -> None:
    """Cells outside `wanted` keep their disparity; sigma = UNKNOWN_PX, all else 0."""
    for row in range(start, stop):
        is_wanted, kept = wanted[row], disparity[row]
        windows, line = used[row], out[_DISPARITY, row]
        for col in range(line.size):
            line[col] = line[col] if is_wanted[col] else kept[col]
        for col in range(line.size):
            windows[col] = windows[col] if is_wanted[col] else windows.dtype.type(0)
        for plane in range(1, out.shape[0]):
            line, value = out[plane, row], np.float32(UNKNOWN_PX if plane == _SIGMA else 0)
            for col in range(line.size):
                line[col] = line[col] if is_wanted[col] else value


@part
def _fit_line(
    row_sums: _RowSums,
    all_lines: Image,
    row: int,
    tables: _WindowTables,
    numbers: _FitNumbers,
    is_light: bool,
    all_found: Image,
) -> None:
    """Choose the window of each cell of a row, and fit its disparity, sigma and so on."""
    halves = tables.halves
    places, margin = halves.size, max(halves[halves.size - 1], 1)
    sums, room, begin_col = row_sums.windows, row_sums.room, row_sums.begin
    tall, small = row_sums.columns, row_sums.near
    lines, most = all_lines.reshape(all_lines.size), all_lines.shape[1]
    found = all_found.reshape(all_found.size)
    near_rows_px = tables.near_rows_px[row]
    factor = numbers.agreement_sigmas * numbers.agreement_sigmas * numbers.noise_area
    most_moved = numbers.max_move * numbers.max_move
    anchor_share = numbers.noise_area * numbers.anchor_precision
    half, two, four = np.float32(0.5), np.float32(2), np.float32(4)
    zero, one = splat_8(np.float32(0)), splat_8(np.float32(1))
    flat, tiny = splat_8(np.float32(FLAT)), splat_8(np.float32(TINY))
    unknown = splat_8(np.float32(UNKNOWN_PX))
    for col in range(0, row_sums.width, FLOATS):
        there = begin_col + col
        begin, usable = load_8(lines, _START * most + there), load_8(lines, _USABLE * most + there)
        anchor = load_8(lines, _ANCHOR * most + there)
        index, last, spread_out = zero, zero, zero
        best_gg, best_d, best_ee, best_over = zero, zero, zero, zero
        all_gg, slow, by_shift, mean, square, through = zero, zero, zero, zero, zero, zero
        down, across, kept, by_chance = zero, zero, zero, zero
        for place in range(places):
            at = place * row_sums.windows_stride + col
            pixels = tables.rows_px[place, row] * load_8(lines, (_LINES + place) * most + there)
            over = one / maximum(pixels, one)
            s_g, s_gg = load_8(sums, at), load_8(sums, at + _GG * room)
            g = s_g * over
            gg = s_gg * over - g * g
            safe = maximum(gg, flat)
            d = (
                load_8(sums, at + _GH * room) * over - g * (load_8(sums, at + _H * room) * over)
            ) / safe
            e = load_8(sums, at + _E * room) * over
            ee = maximum(load_8(sums, at + _EE * room) * over - e * e, zero)
            gap = d - last
            taken = select_at_most(gap * gap, spread_out, one, zero)
            taken = select_equal(index, splat_8(np.float32(place - 1)), taken, zero)
            taken = select_at_most(splat_8(np.float32(place)), usable, taken, zero)
            if place == 0:
                taken = one
            else:
                index = index + taken
            spread_out = factor * ee * over / safe
            last = d
            best_gg = select_less(zero, taken, gg, best_gg)
            best_d = select_less(zero, taken, d, best_d)
            best_ee = select_less(zero, taken, ee, best_ee)
            best_over = select_less(zero, taken, over, best_over)
            if not is_light:
                all_gg = select_less(zero, taken, s_gg, all_gg)
                value = load_8(sums, at + _U * room)
                slow = select_less(zero, taken, value, slow)
                value = load_8(sums, at + _SS * room)
                by_shift = select_less(zero, taken, value, by_shift)
                value = load_8(sums, at + _M * room)
                mean = select_less(zero, taken, value, mean)
                value = load_8(sums, at + _MM * room)
                square = select_less(zero, taken, value, square)
                value = load_8(sums, at + _UU * room)
                through = select_less(zero, taken, value, through)
                value = load_8(sums, at + _DOWN * room)
                down = select_less(zero, taken, value, down)
                value = _sum_across(
                    tall,
                    row_sums.columns_at
                    + place * row_sums.columns_stride
                    + _GG * room
                    + margin
                    + col,
                    halves[place],
                )
                across = select_less(zero, taken, value, across)
                kept = select_less(zero, taken, splat_8(tables.energy_share[place]), kept)
                value = splat_8(tables.chance_correlation[place])
                by_chance = select_less(zero, taken, value, by_chance)
        # The search counts as a measurement of its own.
        weight = anchor_share * best_ee * best_over
        safe = maximum(best_gg, flat)
        best_d = (best_d * safe + weight * anchor) / (safe + weight)
        apart = best_d - anchor
        moved = select_less(apart * apart, splat_8(most_moved), best_d, anchor)
        moved = select_less(flat, best_gg, moved, begin)
        store(found, _DISPARITY * most + col, moved)
        if is_light:
            continue
        noise = load_8(lines, _NOISE * most + there)
        defocus = load_8(lines, _DEFOCUS * most + there) + numbers.defocus_slope * moved
        per_noise = two * numbers.smoothed_gain + half * numbers.laplacian_gain * defocus * defocus
        residual = best_ee / per_noise
        sensor = minimum(noise, residual)
        noise_like = sensor + numbers.unexplained_share * (residual - sensor)
        information = minimum(best_gg, by_shift * best_over)
        information = information - half * numbers.gradient_gain * noise_like
        information = maximum(information, np.float32(0.03) * best_gg)
        information = maximum(information, np.float32(0.1) * flat)
        slow = slow * best_over
        energy = maximum(through * best_over - slow * slow, zero)
        sigma = sqrt(two * noise_like * energy * kept * best_over) / information
        mean = mean * best_over
        signal = four * maximum(square * best_over - mean * mean, zero)
        grain = maximum(two * numbers.smoothed_gain * noise_like, tiny)
        alike = (signal - grain) / (signal + grain)
        beyond = maximum((alike - by_chance) / (one - alike * by_chance), zero)
        near = margin + col - 1
        near_over = one / maximum(near_rows_px * load_8(lines, _NEAR_PX * most + there), one)
        e, ee = _three(small, near) * near_over, _three(small, near + room) * near_over
        m, mm = (
            _three(small, near + 2 * room) * near_over,
            _three(small, near + 3 * room) * near_over,
        )
        explained = noise * per_noise + np.float32(0.01) * maximum(mm - m * m, zero)
        misfit = maximum(ee - e * e, zero) / maximum(explained, tiny)
        weight = select_less(flat, best_gg, one / maximum(all_gg, tiny), zero)
        store(found, _SIGMA * most + col, select_less(flat, best_gg, sigma, unknown))
        store(found, _CORRELATION * most + col, select_less(flat, best_gg, beyond, zero))
        store(found, _MISFIT * most + col, misfit)
        store(found, _CENTROID_DOWN * most + col, down * weight)
        store(found, _CENTROID_ACROSS * most + col, across * weight)
        store(found, _WINDOW * most + col, index)


@part
def _three(line: Image, place: int) -> Any:
    return (load_8(line, place) + load_8(line, place + 1)) + load_8(line, place + 2)


@part
def _sum_across(line: Image, place: int, half: int) -> Any:
    """Sum the values around a place times their distance in columns."""
    total = splat_8(np.float32(0))
    for step in range(1, half + 1):
        apart = load_8(line, place + step) - load_8(line, place - step)
        total = total + np.float32(step) * apart
    return total
