"""How evidence spreads over the frame: along paths, along planes, and as a mean over surfaces.

A path from evidence to a cell costs its length, and more where it crosses an edge of the left
view. A sweep goes through the rows once and continues the cheapest of three paths, so that it finds
the cheapest path that never turns back: the evidence above, below, left or right of a cell.

A plane in space has an inverse depth that is linear over the image. Blocks of the frame hold the
median disparity of their evidence; a robust fit over blocks close by gives the slope, which carries
evidence along a slanted wall or floor.

The mean over surfaces is a recursive domain transform (Gastal and Oliveira, 2011), weighted by
precision: to and fro along columns and rows, in three rounds of falling reach. Measured cells and
filled ones both count, so that a filled depth is a mean over the surface and not that of the
nearest cells alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled, inlined
from d3s.runtime.parallel import run_over_rows, run_together
from d3s.types import Image, Mask

EDGE_COST = np.float32(4)
"""Detour in cells that an edge of one unit of contrast is worth."""
_DIAGONAL = np.float32(np.sqrt(2))


class Paths(NamedTuple):
    """Cheapest paths from evidence to each cell: arrays (sides, rows, cols).

    The sides are those that the evidence is on: above, below, left and right.
    """

    source: NDArray[np.int32]  # cell where the path begins, row * cols + col; -1 for none
    length: Image  # in cells
    edge: Image  # contrast of the edges that it crosses, in units of the guide

    def sources_of(self, cells: Mask) -> Mask:
        """Cells where paths to some cells begin."""
        out = np.zeros(cells.size, np.bool_)
        run_over_rows(_mark_sources, len(cells), self.source, cells, out)
        return out.reshape(cells.shape)


def sweep_sides(guide: Image, start: Image) -> Paths:
    """Find the nearest evidence above, below, left and right of each cell.

    `guide` is the left view, smoothed, in units of contrast: (rows, cols, channels), of which the
    one that changes most counts. Paths begin at a cell at the cost `start`, in cells; it is
    infinite where there is no evidence.
    """
    rows, cols = start.shape
    shape = (4, rows, cols)
    out = Paths(np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape, np.float32))
    across = np.ascontiguousarray(guide.swapaxes(0, 1)), np.ascontiguousarray(start.T)
    place = np.arange(rows * cols, dtype=np.int32).reshape(rows, cols)
    turned = np.ascontiguousarray(place.T)
    run_together(
        lambda: _sweep(guide, start, place, True, EDGE_COST, _side(out, 0)),
        lambda: _sweep(guide, start, place, False, EDGE_COST, _side(out, 1)),
        lambda: _sweep_turned(*across, turned, True, _side(out, 2)),
        lambda: _sweep_turned(*across, turned, False, _side(out, 3)),
    )
    return out


def _side(paths: Paths, number: int) -> Paths:
    return Paths(*(part[number] for part in paths))


def _sweep_turned(
    guide: Image, start: Image, place: NDArray[np.int32], is_down: bool, out: Paths
) -> None:
    """Sweep the transposed frame; `out` is that of the frame."""
    shape = start.shape
    found = Paths(
        np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape, np.float32)
    )
    _sweep(guide, start, place, is_down, EDGE_COST, found)
    for to, part in zip(out, found, strict=True):
        to[:] = part.T


@compiled
def _mark_sources(start: int, stop: int, source: NDArray[np.int32], cells: Mask, out: Mask) -> None:
    """Mark the sources of the cells of some rows; several threads may mark the same one."""
    for side in range(source.shape[0]):
        for row in range(start, stop):
            for col in range(cells.shape[1]):
                if cells[row, col] and source[side, row, col] >= 0:
                    out[source[side, row, col]] = True


@compiled
def _sweep(
    guide: Image,
    start: Image,
    place: NDArray[np.int32],
    is_down: bool,
    edge_cost: np.float32,
    out: Paths,
) -> None:
    """Continue paths from row to row; `place` is the number of each cell."""
    rows, cols = start.shape
    source, length, edge = out.source, out.length, out.edge
    infinite, straight = np.float32(np.inf), np.float32(1)
    # Costs of the last row, with one more cell on either side.
    before = np.full(cols + 2, infinite, np.float32)
    cost = np.full(cols + 2, infinite, np.float32)
    for count in range(rows):
        row = count if is_down else rows - 1 - count
        last = row - 1 if is_down else row + 1
        for col in range(cols):
            best, come, rise = start[row, col], -1, np.float32(0)
            if best > straight and count > 0:  # no path from elsewhere is shorter than a step
                for side in range(col - 1, col + 2):
                    if before[side + 1] < best:
                        step = straight if side == col else _DIAGONAL
                        crossed = _rise(guide, row, col, last, side)
                        total = before[side + 1] + step + edge_cost * crossed
                        if total < best:
                            best, come, rise = total, side, crossed
            cost[col + 1] = best
            if come >= 0:
                source[row, col] = source[last, come]
                step = straight if come == col else _DIAGONAL
                length[row, col] = length[last, come] + step
                edge[row, col] = edge[last, come] + rise
            else:
                source[row, col] = place[row, col] if best < infinite else np.int32(-1)
                length[row, col] = np.float32(0)
                edge[row, col] = np.float32(0)
        before, cost = cost, before


@inlined
def _rise(guide: Image, row: int, col: int, other_row: int, other_col: int) -> np.float32:
    """Contrast between two cells: of the channel that changes most."""
    most = np.float32(0)
    for channel in range(guide.shape[2]):
        most = max(most, abs(guide[row, col, channel] - guide[other_row, other_col, channel]))
    return most


BLOCK_CELLS = 4
"""Side of a block, in cells."""
_REACH = 9  # blocks on each side that a fit looks at
_FEWEST = 2  # cells of evidence in a block
_TOLERANCE_PX = np.float32(0.4)  # distance of a block from the plane, in disparity
_PRIOR_SLOPE = np.float32(0.05)  # standard deviation of slopes: floors have 0.1 px per cell
_BLOCK_SIGMA_PX = np.float32(0.25)  # what remains of a block around a plane
_FIT_ROUNDS = 3
_NO_BLOCK = np.float32(1e9)  # disparity beyond any, for blocks without evidence


class BlockPlanes(NamedTuple):
    """Evidence of blocks of cells, and the plane around each: arrays (block rows, block cols)."""

    disparity_px: Image  # median of the block; NaN if it has too little evidence
    down: Image  # slope of the disparity, px per cell
    right: Image
    slope_sigma: Image  # standard deviation of the slopes


def block_planes(disparity_px: Image, wanted: Mask) -> BlockPlanes:
    """Fit a plane around blocks of the evidence.

    Disparities are NaN where there is no evidence. Blocks without a `wanted` cell are taken to be
    level.
    """
    rows, cols = disparity_px.shape
    shape = -(-rows // BLOCK_CELLS), -(-cols // BLOCK_CELLS)
    blocks = BlockPlanes(*(np.empty(shape, np.float32) for _ in range(4)))
    run_over_rows(_medians, shape[0], disparity_px, blocks.disparity_px)
    known = np.where(np.isnan(blocks.disparity_px), _NO_BLOCK, blocks.disparity_px)
    padded = np.pad(known, _REACH, constant_values=_NO_BLOCK)
    run_over_rows(_slopes, shape[0], padded, wanted, blocks)
    return blocks


@compiled
def _medians(start: int, stop: int, disparity_px: Image, out: Image) -> None:
    rows, cols = disparity_px.shape
    values = np.empty(BLOCK_CELLS * BLOCK_CELLS, np.float32)
    for down in range(start, stop):
        for right in range(out.shape[1]):
            count = 0
            for row in range(down * BLOCK_CELLS, min((down + 1) * BLOCK_CELLS, rows)):
                for col in range(right * BLOCK_CELLS, min((right + 1) * BLOCK_CELLS, cols)):
                    value = disparity_px[row, col]
                    if np.isfinite(value):
                        values[count] = value
                        count += 1
            if count < _FEWEST:
                out[down, right] = np.nan
            else:
                out[down, right] = np.sort(values[:count])[count // 2]


@compiled
def _slopes(start: int, stop: int, padded: Image, wanted: Mask, out: BlockPlanes) -> None:
    """Fit slopes by least squares over the blocks near the plane, which is fitted anew.

    `padded` has the medians with `_REACH` more blocks on each side, and `_NO_BLOCK` for none. Sums
    are kept for each column of the window, so that they are computed at once.
    """
    width = 2 * _REACH + 1
    side, one, zero = np.float32(BLOCK_CELLS), np.float32(1), np.float32(0)
    ridge = _BLOCK_SIGMA_PX**2 / _PRIOR_SLOPE**2
    sums = np.empty((5, width), np.float32)
    x, far = np.empty(width, np.float32), np.empty(width, np.float32)
    for j in range(width):
        x[j] = side * np.float32(j - _REACH)
    for row in range(start, stop):
        for col in range(out.down.shape[1]):
            here = padded[row + _REACH, col + _REACH]
            down, right, sigma = zero, zero, _PRIOR_SLOPE
            top, left = row * BLOCK_CELLS, col * BLOCK_CELLS
            is_wanted = wanted[top : top + BLOCK_CELLS, left : left + BLOCK_CELLS].any()
            if here < _NO_BLOCK and is_wanted:
                for turn in range(_FIT_ROUNDS):
                    # The first round does not know the slope, and takes any that is likely.
                    slack = _PRIOR_SLOPE if turn == 0 else zero
                    sums[:] = zero
                    for i in range(width):
                        y = side * np.float32(i - _REACH)
                        window = padded[row + i, col : col + width]
                        for j in range(width):
                            far[j] = _TOLERANCE_PX + slack * max(abs(y), abs(x[j]))
                        for j in range(width):
                            rise = window[j] - here
                            is_near = abs(rise - down * y - right * x[j]) <= far[j]
                            weight = one if is_near else zero
                            sums[0, j] += weight * y * y
                            sums[1, j] += weight * x[j] * x[j]
                            sums[2, j] += weight * y * x[j]
                            sums[3, j] += weight * y * rise
                            sums[4, j] += weight * x[j] * rise
                    dd, rr, dr, dq, rq = ridge, ridge, zero, zero, zero
                    for j in range(width):
                        dd += sums[0, j]
                        rr += sums[1, j]
                        dr += sums[2, j]
                        dq += sums[3, j]
                        rq += sums[4, j]
                    whole = dd * rr - dr * dr
                    down, right = (rr * dq - dr * rq) / whole, (dd * rq - dr * dq) / whole
                    sigma = _BLOCK_SIGMA_PX * np.sqrt(np.float32(0.5) * (dd + rr) / whole)
            out.down[row, col] = down
            out.right[row, col] = right
            out.slope_sigma[row, col] = sigma


_MEAN_REACH, _EDGE = 25.0, 2.0  # in cells, and in units of contrast: best on tuning rooms
_ROUNDS = 3
_AT_ONCE = 8  # rows that are filtered at once


def average_surfaces(guide: Image, disparity_px: Image, weight: Image) -> Image:
    """Average disparities over cells that no edge of the guide separates.

    `guide` is the left view in units of contrast (rows, cols, channels). Disparities are NaN where
    there is none, and weigh by their precision in 1 / px².
    """
    known = np.isfinite(disparity_px) & (weight > 0)
    total = np.where(known, weight, np.float32(0))
    value = np.where(known, disparity_px, np.float32(0)) * total
    rows, cols = total.shape
    down, right = np.empty((rows, cols), np.float32), np.empty((rows, cols), np.float32)
    sigma = _MEAN_REACH * np.sqrt(3) * 2.0 ** (_ROUNDS - 1) / np.sqrt(4**_ROUNDS - 1)
    run_over_rows(_write_shares, rows, guide, np.float32(-np.sqrt(2) / sigma), down, right)
    for turn in range(_ROUNDS):
        if turn:  # half the reach: shares of twice the distance
            down *= down
            right *= right
        run_over_rows(_average_columns, cols, down, value, total)
        run_over_rows(_average_rows, rows, right, value, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0, value / total, np.float32(np.nan)), np.float32)


@compiled
def _write_shares(
    start: int, stop: int, guide: Image, fall: np.float32, down: Image, right: Image
) -> None:
    """Write the share that a cell has of the one above it, and of the one left of it.

    `fall` is the logarithm that a cell of distance costs.
    """
    per_edge = np.float32(_MEAN_REACH / _EDGE)
    for row in range(start, stop):
        for col in range(guide.shape[1]):
            above, beside = np.float32(0), np.float32(0)
            for channel in range(guide.shape[2]):
                here = guide[row, col, channel]
                above = max(above, abs(here - guide[max(row - 1, 0), col, channel]))
                beside = max(beside, abs(here - guide[row, max(col - 1, 0), channel]))
            down[row, col] = np.exp(fall * (np.float32(1) + per_edge * above))
            right[row, col] = np.exp(fall * (np.float32(1) + per_edge * beside))


@compiled
def _average_columns(start: int, stop: int, share: Image, value: Image, total: Image) -> None:
    """Filter some columns to and fro in place, all of them at once, which SIMD takes."""
    rows = value.shape[0]
    for row in range(1, rows):
        for col in range(start, stop):
            value[row, col] += share[row, col] * (value[row - 1, col] - value[row, col])
            total[row, col] += share[row, col] * (total[row - 1, col] - total[row, col])
    for row in range(rows - 2, -1, -1):
        for col in range(start, stop):
            value[row, col] += share[row + 1, col] * (value[row + 1, col] - value[row, col])
            total[row, col] += share[row + 1, col] * (total[row + 1, col] - total[row, col])


@compiled
def _average_rows(start: int, stop: int, share: Image, value: Image, total: Image) -> None:
    """Filter some rows to and fro in place, a few at once: none waits for its last cell."""
    cols = value.shape[1]
    for first in range(start, stop, _AT_ONCE):
        end = min(first + _AT_ONCE, stop)
        for col in range(1, cols):
            for row in range(first, end):
                value[row, col] += share[row, col] * (value[row, col - 1] - value[row, col])
                total[row, col] += share[row, col] * (total[row, col - 1] - total[row, col])
        for col in range(cols - 2, -1, -1):
            for row in range(first, end):
                part = share[row, col + 1]
                value[row, col] += part * (value[row, col + 1] - value[row, col])
                total[row, col] += part * (total[row, col + 1] - total[row, col])
