"""Compiled operations of the support: ridges of the texture, and the gaps between them."""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.types import SMALL_MARGIN, SMALL_MISFIT, Array, Evidence, TrustModel
from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import run_over_rows, run_together
from d3s.runtime.scratch import Scratch
from d3s.types import Image, Mask

Runs = NDArray[np.uint8]

# tan(67.5 degrees): gradients steeper than this count as vertical or horizontal.
_STEEP = 2.4142135
_DIAGONAL = 1.4142135


class NumbaSupport:
    """`SupportOperations` in single precision, with results in scratch memory."""

    def __init__(self, memory: Scratch) -> None:
        self._memory = memory

    def find_ridges(self, view: Array, noise: Array, factor: float) -> Mask:
        """Return the pixels at which the gradient is largest along its own direction.

        Parameters: see `SupportOperations.find_ridges`.
        """
        out = self._memory.empty(view.shape, np.bool_)
        with self._memory.part():
            square = self._memory.empty(view.shape)
            run_over_rows(_squared_gradient, len(view), view, square)
            run_over_rows(_ridges, len(view), view, square, noise, np.float32(factor), out)
        return out

    def support_gaps(
        self, is_ridge: Mask, disparity: Array, tolerance: float, reach: int
    ) -> tuple[Array, Array]:
        """Return the gap between ridges around each cell, and the distance to the nearest one.

        Parameters: see `SupportOperations.support_gaps`.
        """
        gap, nearest = (self._memory.empty(is_ridge.shape) for _ in range(2))
        with self._memory.part():
            before, behind = (self._memory.empty((4, *is_ridge.shape), np.uint8) for _ in range(2))
            limit, most = np.float32(tolerance), np.uint8(reach)
            run_together(
                lambda: _scan(is_ridge, disparity, limit, most, False, before),
                lambda: _scan(is_ridge, disparity, limit, most, True, behind),
            )
            run_over_rows(_gaps, len(is_ridge), before, behind, np.float32(reach), gap, nearest)
        return gap, nearest

    def probability(self, evidence: Evidence, model: TrustModel) -> Array:
        """Return the probability of each cell that its disparity is wrong (logistic model)."""
        out = self._memory.empty(evidence.margin.shape)
        numbers = TrustModel(*(np.float32(number) for number in model))
        run_over_rows(_probability, len(out), evidence, numbers, out)
        return out


@compiled
def _probability(start: int, stop: int, evidence: Evidence, model: TrustModel, out: Image) -> None:
    """Logistic model of wrong disparities; 1 where evidence is missing."""
    one = np.float32(1)
    small, rest = np.float32(SMALL_MARGIN), np.float32(SMALL_MISFIT)
    for row in range(start, stop):
        margin, least, misfit = evidence.margin[row], evidence.least[row], evidence.misfit[row]
        step, move, gap = evidence.step_px[row], evidence.move[row], evidence.gap_px[row]
        line = out[row]
        for col in range(line.size):
            odds = model.constant + model.margin * np.log(margin[col] + small)
            odds += model.least * np.log(least[col] + small)
            odds += model.step * np.log(one + step[col])
            odds += model.misfit * np.log(misfit[col] + rest)
            odds += model.move * min(move[col], one)
            odds += model.gap * np.log(one + gap[col])
            value = one / (one + np.exp(-odds))
            line[col] = value if value <= one else one


@compiled
def _squared_gradient(start: int, stop: int, view: Image, out: Image) -> None:
    """Squared gradient by central differences; edge pixels are repeated."""
    rows, cols = view.shape
    for row in range(start, stop):
        here, above, below = view[row], view[max(row - 1, 0)], view[min(row + 1, rows - 1)]
        line = out[row]
        for col in range(cols):
            across = here[min(col + 1, cols - 1)] - here[max(col - 1, 0)]
            down = below[col] - above[col]
            line[col] = across * across + down * down


@compiled
def _ridges(
    start: int,
    stop: int,
    view: Image,
    square: Image,
    noise: Image,
    factor: np.float32,
    out: Mask,
) -> None:
    """Cells above `factor` times the noise whose neighbours along the gradient are not larger."""
    rows, cols = view.shape
    steep = np.float32(_STEEP)
    for row in range(start, stop):
        up, under = max(row - 1, 0), min(row + 1, rows - 1)
        for col in range(cols):
            here = square[row, col]
            if not here > factor * noise[row, col]:
                out[row, col] = False
                continue
            left, right = max(col - 1, 0), min(col + 1, cols - 1)
            across = view[row, right] - view[row, left]
            down = view[under, col] - view[up, col]
            if abs(across) > steep * abs(down):
                one, other = square[row, left], square[row, right]
            elif abs(down) > steep * abs(across):
                one, other = square[up, col], square[under, col]
            elif (across > 0) == (down > 0):
                one, other = square[up, left], square[under, right]
            else:
                one, other = square[up, right], square[under, left]
            out[row, col] = (here >= one) & (here >= other)


@compiled
def _scan(
    is_ridge: Mask,
    disparity: Image,
    limit: np.float32,
    most: np.uint8,
    is_backward: bool,
    out: Runs,
) -> None:
    """Count the cells to the last ridge of the same surface, from four of eight directions.

    Along the row, and along the column and both diagonals from the row before. The cell itself does
    not count.
    """
    rows, cols = is_ridge.shape
    runs = np.empty((4, cols + 2), dtype=np.uint8)
    values = np.empty((4, cols + 2), dtype=np.float32)
    next_runs, next_values = np.empty_like(runs), np.empty_like(values)
    runs[:], next_runs[:] = most, most
    values[:], next_values[:] = 0, 0
    step = -1 if is_backward else 1
    for count in range(rows):
        row = rows - 1 - count if is_backward else count
        last = row - step
        run, value = most, np.float32(0)
        for place in range(cols):
            col = cols - 1 - place if is_backward else place
            here, ridge = disparity[row, col], is_ridge[row, col]
            # From the neighbour in the row.
            near = _next(run, value, here, limit, most)
            out[0, row, col] = near
            run, value = (np.uint8(0), here) if ridge else (near, value)
            # From the row before: straight, and from both sides.
            for way in range(1, 4):
                shift = (0, 0, -step, step)[way]
                beside = col + 1 + shift
                near = _next(runs[way, beside], values[way, beside], here, limit, most)
                origin = values[way, beside]
                if way > 1 and count > 0:
                    # A ridge may pass between two cells of a diagonal.
                    if is_ridge[last, col] and abs(disparity[last, col] - here) <= limit:
                        near, origin = np.uint8(1), disparity[last, col]
                    elif (
                        0 <= col + shift < cols
                        and is_ridge[row, col + shift]
                        and abs(disparity[row, col + shift] - here) <= limit
                    ):
                        near, origin = np.uint8(1), disparity[row, col + shift]
                out[way, row, col] = near
                next_runs[way, col + 1] = np.uint8(0) if ridge else near
                next_values[way, col + 1] = here if ridge else origin
        runs, next_runs = next_runs, runs
        values, next_values = next_values, values


@part
def _next(
    run: np.uint8, value: np.float32, here: np.float32, limit: np.float32, most: np.uint8
) -> np.uint8:
    """Length of a run one cell further, or `most` if it ends."""
    if run >= most or abs(value - here) > limit:
        return most
    return np.uint8(run + 1)


@compiled
def _gaps(
    start: int,
    stop: int,
    before: Runs,
    behind: Runs,
    reach: np.float32,
    gap: Image,
    nearest: Image,
) -> None:
    """Second smallest of the larger distances in four opposite directions; smallest of all."""
    diagonal = np.float32(_DIAGONAL)
    for row in range(start, stop):
        for col in range(gap.shape[1]):
            low = second = close = reach
            for way in range(4):
                length = diagonal if way > 1 else np.float32(1)
                # The two diagonals of the scan backward are those of the scan forward, reversed.
                one, other = before[way, row, col], behind[way, row, col]
                far = min(length * np.float32(max(one, other)), reach)
                close = min(close, length * np.float32(min(one, other)))
                if far < low:
                    low, second = far, low
                elif far < second:
                    second = far
            gap[row, col] = second
            nearest[row, col] = close
