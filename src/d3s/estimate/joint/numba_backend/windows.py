"""Least squares over windows of cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.numba_backend.lines import fill
from d3s.estimate.joint.types import FLAT, TINY, UNKNOWN_PX, Fit, Plane
from d3s.runtime.compile import compiled, part
from d3s.runtime.simd import (
    EIGHT,
    higher,
    if_at_most,
    if_equal,
    if_lower,
    load_8,
    lower,
    root,
    spread_8,
    store,
)
from d3s.types import Image, Mask

Planes = NDArray[np.float32]  # (planes, rows, cols)
Counts = NDArray[np.uint8]
Indices = NDArray[np.int64]

LIGHT = 6  # planes that a disparity alone needs: the first of all
# The planes as plain numbers, which compile faster.
_G, _H, _GG, _GH, _E, _EE, _SS, _M, _MM, _U, _UU = (int(plane) for plane in Plane)
_DOWN = len(Plane)  # behind the planes: squared gradients times rows
# Lines of a row of cells: disparities to start from, noise, usable windows, pixels of three by
# three cells; then pixels of each window.
_START, _NOISE, _USABLE, _NEAR_PX, _LINES = range(5)
_RESULTS = len(Fit._fields)


@compiled
def fit_windows(
    start: int,
    stop: int,
    flat: Image,
    count: int,
    disparity: Image,
    usable: Counts,
    noise: Image,
    wanted: Mask,
    halves: Indices,
    rows_px: Image,
    cols_px: Image,
    near_rows_px: Image,
    near_cols_px: Image,
    share: Image,
    chance: Image,
    numbers: Image,
    out: Planes,
    used: Counts,
) -> None:
    """Sums over all windows of a row, and what follows from them; start and stop are pairs of rows.

    The planes are one behind the other, then come zeros of a row. Sums along the columns come
    first, for two rows at a time, since they have most rows of their windows in common; those along
    a row go over all planes at once, and what they mix up at the ends of the planes nobody reads.
    """
    rows, cols = disparity.shape
    places, margin = halves.size, max(halves[halves.size - 1], 1)
    is_light = count == LIGHT
    total = count if is_light else count + 1
    most = -(-(cols + 2 * margin) // EIGHT) * EIGHT
    tall = np.zeros((2, places, total * most + margin + EIGHT), dtype=np.float32)
    works = np.zeros((2, total * most + EIGHT), dtype=np.float32)
    sums = np.zeros((places, total * most + EIGHT), dtype=np.float32)
    small = np.zeros((2, 4 * most + margin + EIGHT), dtype=np.float32)
    lines = np.zeros((_LINES + places, most), dtype=np.float32)
    found = np.zeros((_RESULTS, most), dtype=np.float32)
    for place in range(places):
        fill(cols_px[place], lines[_LINES + place])
    fill(near_cols_px, lines[_NEAR_PX])
    zeros = _DOWN * rows * cols
    inner, firsts = np.empty(2 * margin, dtype=np.int64), np.empty((2, places), dtype=np.int64)
    ends = np.empty(places, dtype=np.int64)
    for pair in range(start, stop):
        top = 2 * pair
        two = min(top + 2, rows)
        begin, end = _span(wanted, top, two, margin)
        if begin < end:
            # The columns that windows of wanted cells reach are all there is, for this pair.
            width = end - begin
            room = -(-(width + 2 * margin) // EIGHT) * EIGHT
            size = _rows_of_windows(top, rows, cols, halves, zeros, inner, firsts, ends)
            for plane in range(count):
                base, at = plane * rows * cols + begin, plane * room + margin
                _sum_down(flat, base, zeros, width, room, inner, firsts, ends, tall, at)
            if not is_light:
                base, at = _GG * rows * cols + begin, count * room + margin
                few = inner[:size]
                _sum_down_weighted(
                    flat, base, zeros, width, room, top * cols, cols, few, firsts, ends, tall, at
                )
                for which in range(4):
                    base = (_E, _EE, _M, _MM)[which] * rows * cols + begin
                    at = which * room + margin
                    _sum_three(flat, base, zeros, top, rows, cols, width, room, small, at)
            for row in range(top, two):
                for place in range(places):
                    first, side, length = (
                        margin - halves[place],
                        2 * halves[place] + 1,
                        total * room,
                    )
                    _window_sums(tall[row - top, place], first, side, length, works, sums[place])
                for col in range(begin, end):
                    lines[_START, col] = disparity[row, col]
                    lines[_NOISE, col] = noise[row, col]
                    lines[_USABLE, col] = usable[row, col]
                _fit_line(
                    tall,
                    row - top,
                    sums,
                    small[row - top],
                    room,
                    lines,
                    begin,
                    width,
                    halves,
                    rows_px,
                    row,
                    near_rows_px[row],
                    share,
                    chance,
                    numbers,
                    is_light,
                    found,
                )
                for plane in range(out.shape[0]):
                    for col in range(width):
                        out[plane, row, begin + col] = found[plane, col]
                if not is_light:
                    for col in range(width):
                        used[row, begin + col] = np.int32(found[_RESULTS - 1, col])
        _leave_alone(top, two, disparity, wanted, out, used)


@part
def _span(wanted: Mask, top: int, bottom: int, margin: int) -> tuple[int, int]:
    """Columns that windows of the wanted cells of some rows reach, from the first to the last."""
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
def _leave_alone(
    start: int, stop: int, disparity: Image, wanted: Mask, out: Planes, used: Counts
) -> None:
    """Cells that nobody wants stay where they are, and nothing is known of them."""
    for row in range(start, stop):
        for col in range(disparity.shape[1]):
            if not wanted[row, col]:
                out[0, row, col] = disparity[row, col]
                used[row, col] = 0
                for plane in range(1, out.shape[0]):
                    out[plane, row, col] = np.float32(UNKNOWN_PX) if plane == 1 else np.float32(0)


@part
def _rows_of_windows(
    top: int,
    rows: int,
    cols: int,
    halves: Indices,
    zeros: int,
    inner: Indices,
    firsts: Indices,
    ends: Indices,
) -> int:
    """Where the rows begin that windows around two rows sum over.

    `inner` are those that both rows have in common, from the smallest window on, which has
    ends[0] of them; firsts[0] and firsts[1] those that the upper and the lower row have besides.
    """
    count, reach = 0, 0
    for place in range(halves.size):
        half = halves[place]
        for step in range(reach + 1, half + 1):
            for row in (top + 1 - step, top + step):
                if 0 <= row < rows:
                    inner[count] = row * cols
                    count += 1
        ends[place] = count
        reach = half
        for which in range(2):
            row = top - half if which == 0 else top + 1 + half
            firsts[which, place] = row * cols if 0 <= row < rows else -1
    return count


@part
def _sum_down(
    flat: Image,
    base: int,
    zeros: int,
    width: int,
    room: int,
    inner: Indices,
    firsts: Indices,
    ends: Indices,
    tall: Planes,
    at: int,
) -> None:
    """Sums of columns over the rows of windows, one within the other, for two rows."""
    places, stride = ends.size, tall.shape[2]
    target = tall.reshape(tall.size)
    for col in range(0, width, EIGHT):
        total = spread_8(np.float32(0))
        begin = 0
        for place in range(places):
            for step in range(begin, ends[place]):
                total = total + load_8(flat, base + inner[step] + col)
            begin = ends[place]
            for which in range(2):
                first = firsts[which, place]
                source = base + first if first >= 0 else zeros
                value = total + load_8(flat, source + col)
                store(target, (which * places + place) * stride + at + col, value)
    for line in range(2 * places):
        for col in range(at + width, at + room):
            target[line * stride + col] = 0


@part
def _sum_down_weighted(
    flat: Image,
    base: int,
    zeros: int,
    width: int,
    room: int,
    here: int,
    cols: int,
    inner: Indices,
    firsts: Indices,
    ends: Indices,
    tall: Planes,
    at: int,
) -> None:
    """The same of the image times the rows down from each of the two."""
    places, stride = ends.size, tall.shape[2]
    target = tall.reshape(tall.size)
    for col in range(0, width, EIGHT):
        total, moment = spread_8(np.float32(0)), spread_8(np.float32(0))
        begin = 0
        for place in range(places):
            for step in range(begin, ends[place]):
                value = load_8(flat, base + inner[step] + col)
                total = total + value
                moment = moment + np.float32((inner[step] - here) // cols) * value
            begin = ends[place]
            for which in range(2):
                first = firsts[which, place]
                source = base + first if first >= 0 else zeros
                value = load_8(flat, source + col)
                down = np.float32((first - here) // cols if first >= 0 else 0)
                result = moment + down * value - np.float32(which) * (total + value)
                store(target, (which * places + place) * stride + at + col, result)
    for line in range(2 * places):
        for col in range(at + width, at + room):
            target[line * stride + col] = 0


@part
def _sum_three(
    flat: Image,
    base: int,
    zeros: int,
    top: int,
    rows: int,
    cols: int,
    width: int,
    room: int,
    small: Image,
    at: int,
) -> None:
    """Sums of columns over three rows, for two of them."""
    stride = small.shape[1]
    target = small.reshape(small.size)
    places = (
        base + (top - 1) * cols if top > 0 else zeros,
        base + top * cols,
        base + (top + 1) * cols if top + 1 < rows else zeros,
        base + (top + 2) * cols if top + 2 < rows else zeros,
    )
    for col in range(0, width, EIGHT):
        both = load_8(flat, places[1] + col) + load_8(flat, places[2] + col)
        store(target, at + col, both + load_8(flat, places[0] + col))
        store(target, stride + at + col, both + load_8(flat, places[3] + col))
    for which in range(2):
        for col in range(at + width, at + room):
            target[which * stride + col] = 0


@part
def _window_sums(line: Image, first: int, side: int, size: int, works: Image, out: Image) -> None:
    """Sums over `side` values of a line from each on, the first of them `first` ahead.

    By sums of two, four, eight and so on. Behind the last whole window comes what nobody reads.
    """
    flat = works.reshape(works.size)
    stride = works.shape[1]
    power, done, turn, is_first = 1, first, 0, True
    while True:
        if side & power:
            for col in range(0, size - done, EIGHT):
                value = (
                    load_8(line, done + col)
                    if power == 1
                    else load_8(flat, (1 - turn) * stride + done + col)
                )
                if not is_first:
                    value = value + load_8(out, col)
                store(out, col, value)
            done += power
            is_first = False
        if 2 * power > side:
            break
        for col in range(0, size - 2 * power + 1, EIGHT):
            if power == 1:
                value = load_8(line, col) + load_8(line, col + 1)
            else:
                before = (1 - turn) * stride + col
                value = load_8(flat, before) + load_8(flat, before + power)
            store(flat, turn * stride + col, value)
        turn = 1 - turn
        power *= 2


@part
def _fit_line(
    both_tall: Planes,
    which: int,
    all_sums: Image,
    small: Image,
    room: int,
    all_lines: Image,
    begin_col: int,
    width: int,
    halves: Indices,
    rows_px: Image,
    row: int,
    near_rows_px: np.float32,
    share: Image,
    chance: Image,
    numbers: Image,
    is_light: bool,
    all_found: Image,
) -> None:
    """Window of each cell of a line, its disparity, and how good that is."""
    places, margin = halves.size, max(halves[halves.size - 1], 1)
    tall, tall_stride = both_tall.reshape(both_tall.size), both_tall.shape[2]
    sums, sums_stride = all_sums.reshape(all_sums.size), all_sums.shape[1]
    lines, most = all_lines.reshape(all_lines.size), all_lines.shape[1]
    found = all_found.reshape(all_found.size)
    constant, slope, reach = numbers[0], numbers[1], numbers[2]
    smoothed, laplacian, gradient = numbers[3], numbers[4], numbers[5]
    factor, unexplained = numbers[7] * numbers[7] * numbers[6], numbers[8]
    half, two, four = np.float32(0.5), np.float32(2), np.float32(4)
    zero, one = spread_8(np.float32(0)), spread_8(np.float32(1))
    flat, tiny = spread_8(np.float32(FLAT)), spread_8(np.float32(TINY))
    unknown = spread_8(np.float32(UNKNOWN_PX))
    for col in range(0, width, EIGHT):
        there = begin_col + col
        begin, usable = load_8(lines, _START * most + there), load_8(lines, _USABLE * most + there)
        index, last, spread_out = zero, zero, zero
        best_gg, best_d, best_ee, best_over = zero, zero, zero, zero
        all_gg, slow, by_shift, mean, square, through = zero, zero, zero, zero, zero, zero
        down, across, kept, by_chance = zero, zero, zero, zero
        for place in range(places):
            at = place * sums_stride + col
            pixels = rows_px[place, row] * load_8(lines, (_LINES + place) * most + there)
            over = one / higher(pixels, one)
            s_g, s_gg = load_8(sums, at), load_8(sums, at + _GG * room)
            g = s_g * over
            gg = s_gg * over - g * g
            safe = higher(gg, flat)
            d = (
                load_8(sums, at + _GH * room) * over - g * (load_8(sums, at + _H * room) * over)
            ) / safe
            e = load_8(sums, at + _E * room) * over
            ee = higher(load_8(sums, at + _EE * room) * over - e * e, zero)
            gap = d - last
            taken = if_at_most(gap * gap, spread_out, one, zero)
            taken = if_equal(index, spread_8(np.float32(place - 1)), taken, zero)
            taken = if_at_most(spread_8(np.float32(place)), usable, taken, zero)
            if place == 0:
                taken = one
            else:
                index = index + taken
            spread_out = factor * ee * over / safe
            last = d
            best_gg = if_lower(zero, taken, gg, best_gg)
            best_d = if_lower(zero, taken, d, best_d)
            best_ee = if_lower(zero, taken, ee, best_ee)
            best_over = if_lower(zero, taken, over, best_over)
            if not is_light:
                all_gg = if_lower(zero, taken, s_gg, all_gg)
                value = load_8(sums, at + _U * room)
                slow = if_lower(zero, taken, value, slow)
                value = load_8(sums, at + _SS * room)
                by_shift = if_lower(zero, taken, value, by_shift)
                value = load_8(sums, at + _M * room)
                mean = if_lower(zero, taken, value, mean)
                value = load_8(sums, at + _MM * room)
                square = if_lower(zero, taken, value, square)
                value = load_8(sums, at + _UU * room)
                through = if_lower(zero, taken, value, through)
                value = load_8(sums, at + _DOWN * room)
                down = if_lower(zero, taken, value, down)
                value = _sum_across(
                    tall,
                    (which * places + place) * tall_stride + _GG * room + margin + col,
                    halves[place],
                )
                across = if_lower(zero, taken, value, across)
                kept = if_lower(zero, taken, spread_8(share[place]), kept)
                by_chance = if_lower(zero, taken, spread_8(chance[place]), by_chance)
        moved = lower(higher(best_d, begin - reach), begin + reach)
        moved = if_lower(flat, best_gg, moved, begin)
        store(found, col, moved)
        if is_light:
            continue
        noise = load_8(lines, _NOISE * most + there)
        defocus = constant + slope * moved
        per_noise = two * smoothed + half * laplacian * defocus * defocus
        residual = best_ee / per_noise
        sensor = lower(noise, residual)
        mixed = sensor + unexplained * (residual - sensor)
        telling = lower(best_gg, by_shift * best_over) - half * gradient * mixed
        telling = higher(higher(telling, np.float32(0.03) * best_gg), np.float32(0.1) * flat)
        slow = slow * best_over
        energy = higher(through * best_over - slow * slow, zero)
        sigma = root(two * mixed * energy * kept * best_over) / telling
        mean = mean * best_over
        signal = four * higher(square * best_over - mean * mean, zero)
        grain = higher(two * smoothed * mixed, tiny)
        alike = (signal - grain) / (signal + grain)
        beyond = higher((alike - by_chance) / (one - alike * by_chance), zero)
        near = margin + col - 1
        near_over = one / higher(near_rows_px * load_8(lines, _NEAR_PX * most + there), one)
        e, ee = _three(small, near) * near_over, _three(small, near + room) * near_over
        m, mm = (
            _three(small, near + 2 * room) * near_over,
            _three(small, near + 3 * room) * near_over,
        )
        explained = noise * per_noise + np.float32(0.01) * higher(mm - m * m, zero)
        misfit = higher(ee - e * e, zero) / higher(explained, tiny)
        weight = if_lower(flat, best_gg, one / higher(all_gg, tiny), zero)
        store(found, most + col, if_lower(flat, best_gg, sigma, unknown))
        store(found, 2 * most + col, if_lower(flat, best_gg, beyond, zero))
        store(found, 3 * most + col, misfit)
        store(found, 4 * most + col, down * weight)
        store(found, 5 * most + col, across * weight)
        store(found, 6 * most + col, index)


@part
def _three(line: Image, place: int) -> Any:
    return (load_8(line, place) + load_8(line, place + 1)) + load_8(line, place + 2)


@part
def _sum_across(line: Image, place: int, half: int) -> Any:
    """Sum of a line around a place, times the columns from there."""
    total = spread_8(np.float32(0))
    for step in range(1, half + 1):
        apart = load_8(line, place + step) - load_8(line, place - step)
        total = total + np.float32(step) * apart
    return total
