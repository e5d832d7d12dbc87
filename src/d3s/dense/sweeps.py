"""Sweeps over the left view: the nearest evidence on each of four sides, around strong edges.

A path from evidence to a cell costs its length, and more where it crosses an edge of the left
view. A sweep goes through the rows once and continues the cheapest of three paths, so that it finds
the cheapest path that never turns back: the evidence above, below, left or right of a cell.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled, inlined
from d3s.runtime.parallel import run_together
from d3s.types import Image

EDGE_COST = np.float32(4)
"""Detour in cells that an edge of one unit of contrast is worth."""
_DIAGONAL = np.float32(np.sqrt(2))


class Paths(NamedTuple):
    """Cheapest path from evidence to each cell, from one side."""

    source: NDArray[np.int32]  # cell where the path begins, row * cols + col; -1 for none
    length: Image  # in cells
    edge: Image  # contrast of the edges that it crosses, in units of the guide


def sweep_sides(guide: Image, start: Image) -> list[Paths]:
    """Find the nearest evidence above, below, left and right of each cell.

    Parameters
    ----------
    guide
        Left view, smoothed, in units of contrast: (rows, cols, channels), of which the one that
        changes most counts.
    start
        Cost at which paths begin at a cell, in cells; 0 for measured cells, infinite where there
        is no evidence.
    """
    across = np.ascontiguousarray(guide.swapaxes(0, 1)), np.ascontiguousarray(start.T)
    return run_together(
        lambda: _swept(guide, start, is_down=True),
        lambda: _swept(guide, start, is_down=False),
        lambda: _turned(_swept(*across, is_down=True)),
        lambda: _turned(_swept(*across, is_down=False)),
    )


def _swept(guide: Image, start: Image, *, is_down: bool) -> Paths:
    shape = start.shape
    out = Paths(np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape, np.float32))
    _sweep(guide, start, is_down, EDGE_COST, out)
    return out


def _turned(paths: Paths) -> Paths:
    """Paths over the transposed frame, back in the frame."""
    cols, rows = paths.source.shape
    col, row = np.divmod(paths.source, np.int32(rows))
    source = np.where(paths.source < 0, paths.source, row * np.int32(cols) + col)
    return Paths(*(np.ascontiguousarray(part.T) for part in (source, *paths[1:])))


@compiled
def _sweep(guide: Image, start: Image, is_down: bool, edge_cost: np.float32, out: Paths) -> None:
    """Continue paths from row to row."""
    rows, cols = start.shape
    infinite, straight = np.float32(np.inf), np.float32(1)
    before, cost = np.full(cols, infinite, np.float32), np.full(cols, infinite, np.float32)
    for count in range(rows):
        row = count if is_down else rows - 1 - count
        last = row - 1 if is_down else row + 1
        for col in range(cols):
            best, come = start[row, col], -1
            if best > 0 and count > 0:
                for side in range(max(col - 1, 0), min(col + 2, cols)):
                    if before[side] < infinite:
                        step = straight if side == col else _DIAGONAL
                        rise = _rise(guide[row, col], guide[last, side])
                        total = before[side] + step + edge_cost * rise
                        if total < best:
                            best, come = total, side
            cost[col] = best
            if come >= 0:
                out.source[row, col] = out.source[last, come]
                step = straight if come == col else _DIAGONAL
                out.length[row, col] = out.length[last, come] + step
                rise = _rise(guide[row, col], guide[last, come])
                out.edge[row, col] = out.edge[last, come] + rise
            else:
                out.source[row, col] = row * cols + col if best < infinite else -1
                out.length[row, col] = np.float32(0)
                out.edge[row, col] = np.float32(0)
        before, cost = cost, before


@inlined
def _rise(one: Image, other: Image) -> np.float32:
    """Contrast between two cells: of the channel that changes most."""
    most = np.float32(0)
    for channel in range(one.size):
        most = max(most, abs(one[channel] - other[channel]))
    return most
