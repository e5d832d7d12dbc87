"""Candidates of a cell, and the group of them that agrees best.

A hole has up to five candidates: planes from the evidence on four sides, and the weak depth that
the estimator found there below its threshold. Each has a chance of being right, from its path or
from its confidence. The candidate with the most support of others gives the disparity, as a mean of
all that agree with it, weighted by precision.
"""

from typing import NamedTuple

import numpy as np

from d3s.lab.dense.propagation import BLOCK_CELLS, BlockPlanes, Paths
from d3s.runtime.compile import borrowing, part
from d3s.types import Image, Mask

CELL_PX = 2
"""Side of the cells that are filled: depth is not measured finer either."""
SIDES = 4
CANDIDATES = SIDES + 1
_FLOOR_PX = np.float32(0.05)  # sigma that no candidate is better than
_BEND = np.float32(0.006)  # departure from a plane, px of disparity per cell of distance
_UNSURE_PX = np.float32(0.5)  # doubt of a rise at which half of it is followed
_AGREE_PX = np.float32(0.3)  # departure of candidates of one surface beyond their sigma
_APART = np.float32(12)  # evidence nearer to each other than this is partly the same
_ONE = np.float32(1)
_CELL_PX = np.float32(CELL_PX)
_LEAST_WAY = np.float32(0.01)  # in cells, so that the cell itself has no direction
_NO_FOE = np.float32(200)  # length of a path to another surface if there is none


class CellEvidence(NamedTuple):
    """Arrays (rows, cols) of cells that candidates are taken from."""

    disparity_px: Image  # measured and weak; NaN where there is none
    sigma_px: Image
    odds: Image  # log-odds of being right
    is_measured: Mask


class PathModel(NamedTuple):
    """Log-odds that the candidate of a path is right."""

    constant: np.float32
    length: np.float32  # of ln(1 + length in cells)
    edge: np.float32  # of ln(1 + contrast of the edges crossed)


class CellCandidates(NamedTuple):
    """Candidates of one cell: arrays with a value for each."""

    disparity_px: Image
    variance: Image
    support: Image  # -ln of the probability of being wrong
    length: Image  # of the path, in cells
    edge: Image
    row: Image  # where the evidence is
    col: Image
    odds: Image  # log-odds that the evidence is right
    side: Image  # 0 to 3, and 4 for the cell itself


class Group(NamedTuple):
    """Best group of candidates of one cell, and the others."""

    disparity_px: np.float32
    variance: np.float32
    support: np.float32  # of the group
    against: np.float32  # of candidates that do not agree
    strongest: np.float32  # of a single candidate
    spread: np.float32  # variance of the candidates in the group
    length: np.float32  # shortest path
    edge: np.float32  # least contrast crossed
    foe: np.float32  # shortest path from another surface
    hidden_px: np.float32  # part of a near surface that hides the cell from the right view
    odds: np.float32  # log-odds of the evidence of the group
    between: np.float32  # support of the weaker of two opposite sides, above and below or beside
    enclosed: np.float32  # support of the weakest of all sides
    ahead: np.float32  # support from where the texture around the cell is
    behind: np.float32  # support from the other side
    foe_behind: np.float32  # of candidates from the other side that do not agree


@part
def new_candidates() -> CellCandidates:
    """Room for the candidates of one cell."""
    return CellCandidates(
        np.empty(CANDIDATES, np.float32),
        np.empty(CANDIDATES, np.float32),
        np.empty(CANDIDATES, np.float32),
        np.empty(CANDIDATES, np.float32),
        np.empty(CANDIDATES, np.float32),
        np.empty(CANDIDATES, np.float32),
        np.empty(CANDIDATES, np.float32),
        np.empty(CANDIDATES, np.float32),
        np.empty(CANDIDATES, np.float32),
    )


@borrowing
def gather(
    row: int,
    col: int,
    evidence: CellEvidence,
    blocks: BlockPlanes,
    paths: Paths,
    model: PathModel,
    out: CellCandidates,
) -> int:
    """Write the candidates of a cell; return how many there are.

    The weak depth of the cell itself is the last candidate.
    """
    count = 0
    cols = evidence.disparity_px.shape[1]
    for number in range(SIDES):
        source = paths.source[number, row, col]
        if source >= 0 and source != row * cols + col:
            _add_side(row, col, source, evidence, blocks, out, count)
            length, edge = paths.length[number, row, col], paths.edge[number, row, col]
            odds = model.constant + model.length * np.log(_ONE + length)
            odds += model.edge * np.log(_ONE + edge)
            # Both the evidence and the path have to be right.
            right = _chance(odds) * _chance(out.odds[count])
            out.support[count] = -np.log(_ONE - right)
            out.length[count], out.edge[count] = length, edge
            out.side[count] = np.float32(number)
            count += 1
    if np.isfinite(evidence.disparity_px[row, col]):
        out.disparity_px[count] = evidence.disparity_px[row, col]
        out.variance[count] = evidence.sigma_px[row, col] ** 2 + _FLOOR_PX**2
        out.support[count] = np.log(_ONE + np.exp(evidence.odds[row, col]))
        out.length[count], out.edge[count] = _NO_FOE, np.float32(np.inf)
        out.row[count], out.col[count] = np.float32(row), np.float32(col)
        out.odds[count], out.side[count] = evidence.odds[row, col], np.float32(SIDES)
        count += 1
    return count


@borrowing
def _chance(odds: np.float32) -> np.float32:
    """Probability of log-odds, below 1."""
    return np.float32(_ONE / (_ONE + np.exp(-min(odds, np.float32(10)))))


@borrowing
def _add_side(
    row: int,
    col: int,
    source: int,
    evidence: CellEvidence,
    blocks: BlockPlanes,
    out: CellCandidates,
    count: int,
) -> None:
    """Add the plane of the evidence at one end of a path."""
    at_row = int(np.uint32(source) // np.uint32(evidence.disparity_px.shape[1]))
    at_col = source - at_row * evidence.disparity_px.shape[1]
    block_row, block_col = at_row // BLOCK_CELLS, at_col // BLOCK_CELLS
    y, x = np.float32(row - at_row), np.float32(col - at_col)
    away2 = y * y + x * x
    slope_sigma = blocks.slope_sigma[block_row, block_col]
    unsure = slope_sigma * slope_sigma * away2
    # A slope is followed as far as it is known.
    rise = blocks.down[block_row, block_col] * y + blocks.right[block_row, block_col] * x
    rise /= _ONE + unsure / _UNSURE_PX**2
    sigma_px = evidence.sigma_px[at_row, at_col]
    out.disparity_px[count] = evidence.disparity_px[at_row, at_col] + rise
    out.variance[count] = sigma_px * sigma_px + _FLOOR_PX**2 + unsure + _BEND**2 * away2
    out.row[count], out.col[count] = np.float32(at_row), np.float32(at_col)
    out.odds[count] = evidence.odds[at_row, at_col]


@borrowing
def best_group(
    found: CellCandidates, count: int, row: int, col: int, aside_x: np.float32, aside_y: np.float32
) -> Group:
    """Find the group of candidates with the most support.

    `aside_x` and `aside_y` are the centre of the texture around the cell, -1 to 1.
    """
    best, most = 0, np.float32(-1)
    for one in range(count):
        total = np.float32(0)
        for other in range(count):
            agreement = _agreement(found, one, other)
            total += agreement * _apart(found, one, other) * found.support[other]
        if total > most:
            best, most = one, total
    zero = np.float32(0)
    weight, mean, square, against, strongest = zero, zero, zero, zero, zero
    length, edge, foe = _NO_FOE, np.float32(np.inf), _NO_FOE
    odds, above, below, left, right = zero, zero, zero, zero, zero
    ahead, behind, foe_behind = zero, zero, zero
    for one in range(count):
        agreement = _agreement(found, best, one)
        share = agreement / found.variance[one]
        gap = found.disparity_px[one] - found.disparity_px[best]
        weight += share
        odds += share * min(found.odds[one], np.float32(6))
        helps, side = agreement * found.support[one], found.side[one]
        if side == 0:
            above = helps
        elif side == 1:
            below = helps
        elif side == 2:
            left = helps
        elif side == 3:
            right = helps
        y, x = found.row[one] - np.float32(row), found.col[one] - np.float32(col)
        toward = (aside_x * x + aside_y * y) / (np.sqrt(x * x + y * y) + _LEAST_WAY)
        ahead += max(toward, zero) * helps
        behind += max(-toward, zero) * helps
        foe_behind += max(-toward, zero) * (_ONE - agreement) * found.support[one]
        mean += share * gap
        square += share * gap * gap
        against += (_ONE - agreement) * found.support[one]
        strongest = max(strongest, found.support[one])
        length, edge = min(length, found.length[one]), min(edge, found.edge[one])
        if agreement < np.float32(0.3):
            foe = min(foe, found.length[one])
    mean /= weight
    spread = max(square / weight - mean * mean, zero)
    mean += found.disparity_px[best]
    hidden = zero
    for one in range(count):
        # A point that is hidden lies left of a near surface, by less than their disparities differ.
        to_the_right = _CELL_PX * (found.col[one] - np.float32(col))
        if to_the_right > 0:
            hidden = max(hidden, found.disparity_px[one] - mean - to_the_right)
    upright, level = min(above, below), min(left, right)
    return Group(
        mean,
        _ONE / weight,
        most,
        against,
        strongest,
        spread,
        length,
        edge,
        foe,
        hidden,
        odds / weight,
        max(upright, level),
        min(upright, level),
        ahead,
        behind,
        foe_behind,
    )


@borrowing
def _agreement(found: CellCandidates, one: int, other: int) -> np.float32:
    """Share to which two candidates can be of one surface, 0 to 1."""
    gap = found.disparity_px[one] - found.disparity_px[other]
    far = gap * gap / (found.variance[one] + found.variance[other] + _AGREE_PX**2)
    falling = _ONE + np.float32(0.25) * far
    return np.float32(_ONE / (falling * falling))


@borrowing
def _apart(found: CellCandidates, one: int, other: int) -> np.float32:
    """Share of the evidence of another candidate that this one does not have."""
    if one == other:
        return _ONE
    y, x = found.row[one] - found.row[other], found.col[one] - found.col[other]
    return min(np.sqrt(y * y + x * x) / _APART, _ONE)
