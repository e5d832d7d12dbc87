"""Operations of the support in NumPy: one direction at a time, cell by cell.

Written from the definition of the operations, not from the compiled loops.
"""

import numpy as np

from d3s.estimate.joint.types import SMALL_MARGIN, SMALL_MISFIT, Array, Evidence, TrustModel
from d3s.types import Mask

# Opposite directions (rows, columns) through a cell.
_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def find_ridges(view: Array, noise: Array, factor: float) -> Mask:
    """Return the pixels at which the gradient is largest along its own direction.

    Its square, by differences of the neighbours on both sides, is above `factor` times the
    noise variance. Beside a blurred edge only the middle of the edge is a ridge.
    """
    across, down = _differences(view)
    square = squared_gradient(view)
    steep = np.tan(np.radians(67.5))
    is_across = np.abs(across) > steep * np.abs(down)
    is_down = ~is_across & (np.abs(down) > steep * np.abs(across))
    is_falling = ~is_across & ~is_down & ((across > 0) == (down > 0))
    is_rising = ~(is_across | is_down | is_falling)
    near = np.pad(square, 1, mode="edge")
    rows, cols = view.shape
    out = square > factor * noise
    for mask, (step_down, step_across) in (
        (is_across, (0, 1)),
        (is_down, (1, 0)),
        (is_falling, (1, 1)),
        (is_rising, (1, -1)),
    ):
        for sign in (-1, 1):
            top, side = 1 + sign * step_down, 1 + sign * step_across
            out &= ~mask | (square >= near[top : top + rows, side : side + cols])
    return np.asarray(out)


def squared_gradient(view: Array) -> Array:
    """Return the squared gradient by differences of the neighbours on both sides."""
    return np.asarray(sum(part**2 for part in _differences(view)))


def gradient_sums(left: Array, right: Array, weight: Array) -> Array:
    """Return sums over blocks of 2 x 2 pixels of weighted differences in both views.

    Planes (8, rows, cols): pixels of a weight above 0; differences across in the left and in the
    right view, and down; the products of left and right, of left with itself and of right with
    itself, those across and down together.
    """
    (a, c), (b, d) = ([weight * part for part in _differences(view)] for view in (left, right))
    planes = np.stack([weight > 0, a, b, c, d, a * b + c * d, a**2 + c**2, b**2 + d**2])
    even = np.pad(planes, [(0, 0), *((0, size % 2) for size in left.shape)])
    return np.asarray(sum(even[:, i::2, j::2] for i in (0, 1) for j in (0, 1)))


def _differences(view: Array) -> tuple[Array, Array]:
    wide = np.pad(view, 1, mode="edge")
    return wide[1:-1, 2:] - wide[1:-1, :-2], wide[2:, 1:-1] - wide[:-2, 1:-1]


def support_gaps(
    is_ridge: Mask, disparity: Array, tolerance: float, reach: int
) -> tuple[Array, Array]:
    """Return the gap between ridges around each cell, and the distance to the nearest one.

    Both in cells, at most `reach`. In each of the four directions through a cell, the gap is
    the distance to the farther one of the two next ridges; the result is the second smallest
    of the four. Ridges count if the disparities on the way differ from theirs by at most
    the tolerance. The cell itself does not count.
    """
    gaps, nearest = [], np.full(is_ridge.shape, float(reach))
    for step in _DIRECTIONS:
        length = np.hypot(*step)
        runs = [
            np.minimum(length * _run(is_ridge, disparity, tolerance, reach, towards), reach)
            for towards in (step, (-step[0], -step[1]))
        ]
        gaps.append(np.maximum(*runs))
        nearest = np.minimum(nearest, np.minimum(*runs))
    return np.sort(gaps, axis=0)[1], nearest


def probability(evidence: Evidence, model: TrustModel) -> Array:
    """Return the probability of each cell that its disparity is wrong (logistic model)."""
    odds = model.constant + sum(
        weight * part for weight, part in zip(model[1:], features(evidence), strict=True)
    )
    value = 1 / (1 + np.exp(-odds))
    return np.asarray(np.where(np.isnan(value), 1.0, value))


def features(evidence: Evidence) -> tuple[Array, ...]:
    """Return the images that the coefficients of a `TrustModel` multiply, in their order."""
    return (
        np.log(evidence.margin + SMALL_MARGIN),
        np.log(evidence.least + SMALL_MARGIN),
        np.log1p(evidence.step_px),
        np.log(evidence.misfit + SMALL_MISFIT),
        np.minimum(evidence.move, 1),
        np.log1p(evidence.gap_px),
    )


def _run(
    is_ridge: Mask, disparity: Array, tolerance: float, reach: int, towards: tuple[int, int]
) -> Array:
    """Count the cells since the last ridge of the same surface, on the way to each cell.

    A ridge that passes between two cells of a diagonal counts as one cell away.
    """
    rows, cols = is_ridge.shape
    down, across = towards
    out = np.full((rows, cols), reach, dtype=np.float64)
    state = np.full((rows, cols), reach, dtype=np.float64)  # as `out`, but 0 at a ridge
    origin = np.zeros((rows, cols))  # disparity of the ridge
    for row in range(rows)[:: -1 if down < 0 else 1]:
        for col in range(cols)[:: -1 if across < 0 else 1]:
            here = disparity[row, col]
            before, beside = row - down, col - across
            if 0 <= before < rows and 0 <= beside < cols:
                count, value = state[before, beside], origin[before, beside]
                if count < reach and abs(value - here) <= tolerance:
                    out[row, col] = min(count + 1, reach)
                origin[row, col] = value
            if down and across and 0 <= before < rows:
                for near in ((before, col), (row, beside)):
                    is_inside = 0 <= near[1] < cols
                    if is_inside and is_ridge[near] and abs(disparity[near] - here) <= tolerance:
                        out[row, col], origin[row, col] = 1, disparity[near]
                        break
            state[row, col] = out[row, col]
            if is_ridge[row, col]:
                state[row, col], origin[row, col] = 0, here
    return out
