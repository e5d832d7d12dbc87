"""Compiled search for texture that repeats along the rows, and for matches out of the range."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.types import Array, Real
from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import FLOATS, load_8, splat_from, store
from d3s.types import Image

_STRIDE = 4  # every fourth pixel both ways: a mean of 3 x 3 pixels
_HIGHER = 0.02  # by which a peak is higher than an earlier one, not by chance
_FLAT = 1e-5  # variance over mean square that is a rounding error


class Limits(NamedTuple):
    """Correlations from which on texture repeats, or matches out of the range."""

    surely: Real  # of a view with itself at its period
    share: Real  # the same over that of the best match in the range,
    least: Real  # and at least
    dip: Real  # lowest correlation at distances below the period, at most
    outside: Real  # of a match out of the range, at least
    lead: Real  # of that over the best match in the range


class Periods(NamedTuple):
    """Repetition and matches out of the range, by block of the left view."""

    period: Array  # distance to the left or right at which the view repeats; 0 if it does not
    likeness: Array  # its correlation with itself there
    lead: Array  # correlation of the best match out of the range over that of the best one in it


def find_periods(
    memory: Scratch,
    views: tuple[Array, Array],
    ends: tuple[int, int, int, int],
    sizes: tuple[int, int],
    limits: Limits,
) -> Periods:
    """Return where the left view repeats along its rows, or matches out of the range.

    The period is the distance at which the correlation of the view with itself has its highest peak
    after a dip, of equal ones the first. A window is twice as wide and high as its block; what it
    is compared with is inside the frame.

    Parameters
    ----------
    memory
        Where intermediate images live.
    views
        Left and right view (rows, cols).
    ends
        Smallest shift that is compared, first and last shift of the range, largest shift.
    sizes
        Distance below which periods are looked for, and side of a block.
    limits
        Correlations that count; a lead that does not is 0.
    """
    left, right = views
    shape = -(-left.shape[0] // sizes[1]), -(-left.shape[1] // sizes[1])
    out = Periods(memory.empty(shape), memory.empty(shape), memory.empty(shape))
    numbers = Limits(*(np.float32(one) for one in limits))
    run_over_rows(_find_periods, shape[0], left, right, ends, sizes, numbers, out)
    return out


@compiled
def _find_periods(
    start: int,
    stop: int,
    left: Image,
    right: Image,
    ends: tuple[int, int, int, int],
    sizes: tuple[int, int],
    limits: Limits,
    out: Periods,
) -> None:
    """Periods and leads of the blocks of some rows of blocks.

    A window is compared with places from `before` to its left on: with itself by distance, with the
    right view by shift, the largest shift first.
    """
    rows, cols = left.shape
    reach, side = sizes
    blocks = out.period.shape[1]
    own_depth, depth = 2 * reach + 1, ends[3] - ends[0] + 1
    own_deep, deep = -(-own_depth // FLOATS) * FLOATS, -(-depth // FLOATS) * FLOATS
    before, after = max(ends[3], 0), max(-ends[0], 0)
    own_line = np.zeros(cols + 2 * reach + own_deep, dtype=np.float32)
    line = np.zeros(cols + before + after + deep, dtype=np.float32)
    own_sums = np.empty(blocks * 3 * own_deep, dtype=np.float32)
    sums = np.empty(blocks * 3 * deep, dtype=np.float32)
    own_curve = np.empty(own_depth, dtype=np.float32)
    curve = np.empty(depth, dtype=np.float32)
    for band in range(start, stop):
        own_sums[:] = 0
        sums[:] = 0
        top, bottom = band * side - side // 2, band * side + side + side // 2
        lines = 0
        for row in range(max(top, 1), min(bottom, rows - 1), _STRIDE):
            lines += 1
            _means(left, row, own_line[reach : reach + cols])
            _means(right, row, line[before : before + cols])
            for block in range(blocks):
                span = _span(block, side, cols)
                _add(own_line, reach, own_line, 0, span, own_deep, own_sums, block)
                _add(own_line, reach, line, before - ends[3], span, deep, sums, block)
        for block in range(blocks):
            first, last = _span(block, side, cols)
            samples = max(-(-(last - first) // _STRIDE), 1)
            last = first + (samples - 1) * _STRIDE
            count = np.float32(max(lines * samples, 1))
            own = own_sums[block * 3 * own_deep : (block + 1) * 3 * own_deep].reshape(3, own_deep)
            mean = own[2, reach] / count
            spread = own[1, reach] / count - mean * mean
            if not spread > np.float32(_FLAT) * own[1, reach] / count:
                spread = np.float32(0)
            _correlations(own, mean, spread, count, own_curve)
            pair = sums[block * 3 * deep : (block + 1) * 3 * deep].reshape(3, deep)
            _correlations(pair, mean, spread, count, curve)
            inside = outside = np.float32(0)
            for k in range(depth):
                shift = ends[3] - k
                if first - shift >= 1 and last - shift < cols - 1:
                    if ends[1] <= shift <= ends[2]:
                        inside = max(inside, curve[k])
                    else:
                        outside = max(outside, curve[k])
            is_ahead = outside >= limits.outside and outside - inside >= limits.lead
            out.lead[band, block] = outside - inside if is_ahead else np.float32(0)
            least = limits.surely if inside == 0 else min(limits.surely, limits.share * inside)
            least = max(least, limits.least)
            to_left = max(min(first - 1, reach), 0)
            to_right = max(min(cols - 2 - last, reach), 0)
            one, peak = _period(own_curve[reach - to_left : reach + 1][::-1], least, limits.dip)
            two, other_peak = _period(own_curve[reach : reach + to_right + 1], least, limits.dip)
            if other_peak > peak + np.float32(_HIGHER) or (
                0 < two < one and other_peak > peak - np.float32(_HIGHER)
            ):
                one, peak = two, other_peak
            out.period[band, block], out.likeness[band, block] = one, peak


@part
def _span(block: int, side: int, cols: int) -> tuple[int, int]:
    """First column of the window of a block, and the one after its last."""
    return max(block * side - side // 2, 1), min(block * side + side + side // 2, cols - 1)


@inlined
def _add(
    line: Image,
    at: int,
    others: Image,
    before: int,
    span: tuple[int, int],
    deep: int,
    sums: Image,
    block: int,
) -> None:
    """Add products of pixels with others, squares and values of these, at each distance."""
    room = block * 3 * deep
    for k in range(0, deep, FLOATS):
        place = room + k
        product = load_8(sums, place)
        square, total = load_8(sums, place + deep), load_8(sums, place + 2 * deep)
        for col in range(span[0], span[1], _STRIDE):
            other = load_8(others, before + col + k)
            product = product + splat_from(line, at + col) * other
            square = square + other * other
            total = total + other
        store(sums, place, product)
        store(sums, place + deep, square)
        store(sums, place + 2 * deep, total)


@part
def _means(view: Image, row: int, out: Image) -> None:
    """Sums over 3 x 3 pixels of a row; 0 at its ends."""
    above, here, below = view[row - 1], view[row], view[row + 1]
    for col in range(1, out.size - 1):
        left = above[col - 1] + here[col - 1] + below[col - 1]
        middle = above[col] + here[col] + below[col]
        right = above[col + 1] + here[col + 1] + below[col + 1]
        out[col] = left + middle + right


@part
def _correlations(
    sums: NDArray[np.float32], mean: np.float32, spread: np.float32, count: np.float32, out: Image
) -> None:
    """Correlations of a window, of a mean and a variance, with what lies at each distance."""
    zero, over = np.float32(0), np.float32(1) / count
    for k in range(out.size):
        other_mean = sums[2, k] * over
        norm = spread * (sums[1, k] * over - other_mean * other_mean)
        product = sums[0, k] * over - mean * other_mean
        out[k] = product / np.sqrt(norm) if norm > zero else zero


@part
def _period(curve: Image, least: Real, dip: Real) -> tuple[np.float32, np.float32]:
    """Distance and height of the highest peak after a dip, the first of equal ones; 0 without.

    The peak is the vertex of a parabola.
    """
    half, quarter, higher = np.float32(0.5), np.float32(0.25), np.float32(_HIGHER)
    lowest, place, height = curve[0], np.float32(0), np.float32(0)
    for k in range(1, curve.size - 1):
        before, here, after = curve[k - 1], curve[k], curve[k + 1]
        lowest = min(lowest, here)
        bend = before - here - here + after
        if lowest <= dip and here >= before and here >= after and bend < 0:
            offset = half * (before - after) / bend
            peak = here - quarter * (before - after) * offset
            if peak >= least and peak > height + higher:
                place, height = np.float32(k) + offset, peak
    return place, height
