"""Sweeps over the left view: the nearest evidence on each of four sides, around strong edges.

A path from evidence to a cell costs its length, and more where it crosses an edge of the left
view. A sweep goes through the rows once and continues the cheapest of three paths, so that it finds
the cheapest path that never turns back: the evidence above, below, left or right of a cell.
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
