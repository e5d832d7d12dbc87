"""Sums over the windows of a row of cells: down the columns, then along the row."""

import numpy as np

from d3s.estimate.joint.types import Indices, Planes
from d3s.runtime.compile import part
from d3s.runtime.simd import FLOATS, load_8, splat_8, store
from d3s.types import Image


@part
def find_window_rows(
    top: int,
    rows: int,
    cols: int,
    halves: Indices,
    inner: Indices,
    firsts: Indices,
    ends: Indices,
) -> int:
    """Find where the rows begin that the windows of two neighbouring rows sum over.

    `inner` gets the rows that both windows share, from the smallest window on; the first ends[k]
    belong to window k. firsts[0, k] and firsts[1, k] get the further row of the upper and of the
    lower window, -1 outside of the frame. Returns the number of shared rows.
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
def sum_down(
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
    """Sum each column over the rows of nested windows, for two rows of cells."""
    places, stride = ends.size, tall.shape[2]
    target = tall.reshape(tall.size)
    for col in range(0, width, FLOATS):
        total = splat_8(np.float32(0))
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
def sum_down_weighted(
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
    """Sum each column times its row, counted from each of the two rows of cells."""
    places, stride = ends.size, tall.shape[2]
    target = tall.reshape(tall.size)
    for col in range(0, width, FLOATS):
        total, moment = splat_8(np.float32(0)), splat_8(np.float32(0))
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
def sum_three_rows(
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
    """Sum each column over three rows, for two rows of cells."""
    stride = small.shape[1]
    target = small.reshape(small.size)
    places = (
        base + (top - 1) * cols if top > 0 else zeros,
        base + top * cols,
        base + (top + 1) * cols if top + 1 < rows else zeros,
        base + (top + 2) * cols if top + 2 < rows else zeros,
    )
    for col in range(0, width, FLOATS):
        both = load_8(flat, places[1] + col) + load_8(flat, places[2] + col)
        store(target, at + col, both + load_8(flat, places[0] + col))
        store(target, stride + at + col, both + load_8(flat, places[3] + col))
    for which in range(2):
        for col in range(at + width, at + room):
            target[which * stride + col] = 0


@part
def sum_along(line: Image, first: int, side: int, size: int, works: Image, out: Image) -> None:
    """Sum `side` consecutive values from each value of a line on, shifted by `first`.

    By sums of 2, 4, 8 and so on. Values behind the last whole window are undefined.
    """
    flat = works.reshape(works.size)
    stride = works.shape[1]
    power, done, turn, is_first = 1, first, 0, True
    while True:
        if side & power:
            for col in range(0, size - done, FLOATS):
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
        for col in range(0, size - 2 * power + 1, FLOATS):
            if power == 1:
                value = load_8(line, col) + load_8(line, col + 1)
            else:
                before = (1 - turn) * stride + col
                value = load_8(flat, before) + load_8(flat, before + power)
            store(flat, turn * stride + col, value)
        turn = 1 - turn
        power *= 2
