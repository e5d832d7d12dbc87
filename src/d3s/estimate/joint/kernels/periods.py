"""Compiled search for texture that repeats along the rows of a view."""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.types import Array
from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import FLOATS, load_8, splat_from, store
from d3s.types import Image

_STRIDE = 4  # every fourth pixel both ways: a mean of 3 x 3 pixels
_FLAT = 1e-5  # variance over mean square that is a rounding error


def find_periods(
    memory: Scratch, view: Array, reach: int, side: int, least: float, dip: float
) -> Array:
    """Return the period of each block of a view along its rows, or 0 if it does not repeat.

    It is the smallest distance to the left or right, up to `reach` - 1, at which the correlation of
    the view with itself has a peak of at least `least`, after it has been as low as `dip`. A window
    is twice as wide and high as its block; it and what it is compared with are inside the frame.
    """
    shape = -(-view.shape[0] // side), -(-view.shape[1] // side)
    out = memory.empty(shape)
    limits = np.float32(least), np.float32(dip)
    run_over_rows(_find_periods, shape[0], view, reach, side, limits, out)
    return out


@compiled
def _find_periods(
    start: int,
    stop: int,
    view: Image,
    reach: int,
    side: int,
    limits: tuple[np.float32, np.float32],
    out: Image,
) -> None:
    """Periods of the blocks of some rows of blocks."""
    rows, cols = view.shape
    blocks, depth = out.shape[1], 2 * reach + 1
    deep = -(-depth // FLOATS) * FLOATS
    line = np.zeros(cols + 2 * reach + deep, dtype=np.float32)
    sums = np.empty(blocks * 3 * deep, dtype=np.float32)
    curve = np.empty(depth, dtype=np.float32)
    for band in range(start, stop):
        sums[:] = 0
        top, bottom = band * side - side // 2, band * side + side + side // 2
        lines = 0
        for row in range(max(top, 1), min(bottom, rows - 1), _STRIDE):
            lines += 1
            _means(view, row, line[reach : reach + cols])
            for block in range(blocks):
                first, last = _ends(block, side, cols)
                _add_products(line, first, last, reach, deep, sums, block * 3 * deep)
        for block in range(blocks):
            first, last = _ends(block, side, cols)
            samples = -(-(last - first) // _STRIDE)
            own = sums[block * 3 * deep : (block + 1) * 3 * deep].reshape(3, deep)
            _correlations(own, np.float32(lines * max(samples, 0)), curve)
            nearest = max(reach - first, 0)
            farthest = min(cols - 1 - (first + (samples - 1) * _STRIDE), reach)
            left = _period(curve[nearest : reach + 1][::-1], limits)
            right = _period(curve[reach : reach + farthest + 1], limits)
            shorter, longer = min(left, right), max(left, right)
            out[band, block] = shorter if shorter > 0 else longer


@part
def _ends(block: int, side: int, cols: int) -> tuple[int, int]:
    """First column of the window of a block, and the one after its last."""
    return max(block * side - side // 2, 1), min(block * side + side + side // 2, cols - 1)


@inlined
def _add_products(
    line: Image, first: int, last: int, reach: int, deep: int, sums: Image, at: int
) -> None:
    """Add products with the pixel itself, squares and values at each distance from it."""
    for k in range(0, deep, FLOATS):
        product = load_8(sums, at + k)
        square, total = load_8(sums, at + deep + k), load_8(sums, at + 2 * deep + k)
        for col in range(first, last, _STRIDE):
            other = load_8(line, col + k)
            product = product + splat_from(line, reach + col) * other
            square = square + other * other
            total = total + other
        store(sums, at + k, product)
        store(sums, at + deep + k, square)
        store(sums, at + 2 * deep + k, total)


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
def _correlations(sums: NDArray[np.float32], count: np.float32, out: Image) -> None:
    """Correlations of a window with the window at each distance."""
    depth = out.size
    middle, zero = depth // 2, np.float32(0)
    over = np.float32(1) / max(count, np.float32(1))
    mean = sums[2, middle] * over
    own = sums[1, middle] * over - mean * mean
    own = own if own > np.float32(_FLAT) * sums[1, middle] * over else zero
    for k in range(depth):
        other_mean = sums[2, k] * over
        other = sums[1, k] * over - other_mean * other_mean
        norm = own * other
        product = sums[0, k] * over - mean * other_mean
        out[k] = product / np.sqrt(norm) if norm > zero else zero


@part
def _period(curve: Image, limits: tuple[np.float32, np.float32]) -> float:
    """Distance of the first high peak after a dip; 0 without one.

    The peak is the vertex of a parabola.
    """
    least, dip = limits
    lowest = curve[0]
    for k in range(1, curve.size - 1):
        before, here, after = curve[k - 1], curve[k], curve[k + 1]
        lowest = min(lowest, here)
        bend = before - here - here + after
        if lowest <= dip and here >= before and here >= after and bend < 0:
            offset = np.float32(0.5) * (before - after) / bend
            if here - np.float32(0.25) * (before - after) * offset >= least:
                return k + offset
    return 0.0
