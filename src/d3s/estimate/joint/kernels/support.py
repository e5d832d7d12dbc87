"""Ridges of the texture, and the gaps between them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.kernels.filters import fill
from d3s.estimate.joint.types import (
    SMALL_MARGIN,
    SMALL_MISFIT,
    Array,
    Evidence,
    Planes,
    TrustModel,
)
from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import run_over_rows, run_together
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import (
    FLOATS,
    load_8,
    maximum,
    select_at_most,
    select_equal,
    select_less,
    splat_8,
    store,
)
from d3s.types import Image, Mask

Runs = NDArray[np.uint8]


# tan(67.5 degrees): gradients steeper than this count as vertical or horizontal.
_STEEP = 2.4142135


_DIAGONAL = 1.4142135


# Lines of a row of ridges: the view above, here and below; its squared gradient there; noise.
_ABOVE, _HERE, _BELOW, _SQUARE_ABOVE, _SQUARE_HERE, _SQUARE_BELOW, _NOISE, _LINES = range(8)


def find_ridges(memory: Scratch, view: Array, noise: Array, factor: float) -> Mask:
    """Return the pixels at which the gradient is largest along its own direction.

    Its square, by differences of the neighbours on both sides, is above `factor` times the
    noise variance. Beside a blurred edge only the middle of the edge is a ridge.
    """
    out = memory.empty(view.shape, np.bool_)
    with memory.part():
        square = squared_gradient(memory, view)
        run_over_rows(_ridges, len(view), view, square, noise, np.float32(factor), out)
    return out


def squared_gradient(memory: Scratch, view: Array) -> Array:
    """Return the squared gradient by differences of the neighbours on both sides."""
    out = memory.empty(view.shape)
    run_over_rows(_squared_gradient, len(view), view, out)
    return out


def gradient_sums(memory: Scratch, left: Array, right: Array, weight: Array) -> Array:
    """Return sums over blocks of 2 x 2 pixels of weighted differences in both views.

    Planes (8, rows, cols): pixels of a weight above 0; differences across in the left and in the
    right view, and down; the products of left and right, of left with itself and of right with
    itself, those across and down together.
    """
    rows, cols = left.shape
    out = memory.empty((8, -(-rows // 2), -(-cols // 2)))
    run_over_rows(_gradient_sums, out.shape[1], left, right, weight, out)
    return out


def support_gaps(
    memory: Scratch, is_ridge: Mask, disparity: Array, tolerance: float, reach: int
) -> tuple[Array, Array]:
    """Return the gap between ridges around each cell, and the distance to the nearest one.

    Both in cells, at most `reach`. In each of the four directions through a cell, the gap is
    the distance to the farther one of the two next ridges; the result is the second smallest
    of the four. Ridges count if the disparities on the way differ from theirs by at most
    the tolerance. The cell itself does not count.
    """
    gap, nearest = (memory.empty(is_ridge.shape) for _ in range(2))
    with memory.part():
        before, behind = (memory.empty((4, *is_ridge.shape), np.uint8) for _ in range(2))
        limit, most = np.float32(tolerance), np.uint8(reach)
        run_together(
            lambda: _scan(is_ridge, disparity, limit, most, False, before),
            lambda: _scan(is_ridge, disparity, limit, most, True, behind),
        )
        run_over_rows(_gaps, len(is_ridge), before, behind, np.float32(reach), gap, nearest)
    return gap, nearest


def probability(memory: Scratch, evidence: Evidence, model: TrustModel) -> Array:
    """Return the probability of each cell that its disparity is wrong (logistic model)."""
    out = memory.empty(evidence.margin.shape)
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
            odds = model.constant + (margin[col] - margin[col])  # NaN if it is missing
            if model.margin != 0:
                odds += model.margin * np.log(margin[col] + small)
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
def _gradient_sums(
    start: int, stop: int, left: Image, right: Image, weight: Image, out: Planes
) -> None:
    """Sums of weighted differences and their products over blocks; edge pixels are repeated."""
    rows, cols = left.shape
    for block in range(start, stop):
        out[:, block] = 0
        for row in range(2 * block, min(2 * block + 2, rows)):
            up, down = max(row - 1, 0), min(row + 1, rows - 1)
            for col in range(cols):
                w, place = weight[row, col], col // 2
                if w > 0:
                    before, behind = max(col - 1, 0), min(col + 1, cols - 1)
                    a = w * (left[row, behind] - left[row, before])
                    b = w * (right[row, behind] - right[row, before])
                    c = w * (left[down, col] - left[up, col])
                    d = w * (right[down, col] - right[up, col])
                    out[0, block, place] += np.float32(1)
                    out[1, block, place] += a
                    out[2, block, place] += b
                    out[3, block, place] += c
                    out[4, block, place] += d
                    out[5, block, place] += a * b + c * d
                    out[6, block, place] += a * a + c * c
                    out[7, block, place] += b * b + d * d


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
    room = cols + 2 + FLOATS
    lines, found = np.zeros((_LINES, room), dtype=np.float32), np.zeros(room, dtype=np.float32)
    flat = lines.reshape(lines.size)
    steep, zero = np.float32(_STEEP), splat_8(np.float32(0))
    for row in range(start, stop):
        for line, source in enumerate((max(row - 1, 0), row, min(row + 1, rows - 1))):
            _fill_wide(view[source], lines[_ABOVE + line])
            _fill_wide(square[source], lines[_SQUARE_ABOVE + line])
        fill(noise[row], lines[_NOISE])
        for col in range(0, cols, FLOATS):
            up, under = _SQUARE_ABOVE * room + col, _SQUARE_BELOW * room + col
            middle, view_at = _SQUARE_HERE * room + col, _HERE * room + col
            across = load_8(flat, view_at + 2) - load_8(flat, view_at)
            down = load_8(flat, view_at + room + 1) - load_8(flat, view_at - room + 1)
            is_right, is_down = _is_less(zero, across), _is_less(zero, down)
            first = select_equal(is_right, is_down, load_8(flat, up), load_8(flat, up + 2))
            second = select_equal(is_right, is_down, load_8(flat, under + 2), load_8(flat, under))
            width, height = maximum(across, zero - across), maximum(down, zero - down)
            first = select_less(steep * width, height, load_8(flat, up + 1), first)
            second = select_less(steep * width, height, load_8(flat, under + 1), second)
            first = select_less(steep * height, width, load_8(flat, middle), first)
            second = select_less(steep * height, width, load_8(flat, middle + 2), second)
            here = load_8(flat, middle + 1)
            is_ridge = _is_less(factor * load_8(flat, _NOISE * room + col), here)
            is_ridge = select_at_most(first, here, is_ridge, zero)
            store(found, col, select_at_most(second, here, is_ridge, zero))
        target = out[row]
        for col in range(cols):
            target[col] = found[col] > 0


@inlined
def _is_less(a: Any, b: Any) -> Any:
    """1 where a < b, else 0."""
    return select_less(a, b, splat_8(np.float32(1)), splat_8(np.float32(0)))


@part
def _fill_wide(line: Image, out: Image) -> None:
    """Copy a line behind its first value, and repeat its last one."""
    fill(line, out[1:])
    out[0], out[line.size + 1] = line[0], line[line.size - 1]


class _Cells(NamedTuple):
    """Row of cells, with one more at each end."""

    disparity: Image
    ridge: Image  # 1 at a ridge, else 0


class _Traces(NamedTuple):
    """Length of the run that reaches each cell of a row, and the disparity it began with."""

    run: Image
    value: Image


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
    lines, marks = np.zeros((2, cols + 2), np.float32), np.zeros((2, cols + 2), np.float32)
    runs = np.full((2, 4, cols + 2), np.float32(most), np.float32)
    values = np.zeros((2, 4, cols + 2), np.float32)
    step = -1 if is_backward else 1
    for count in range(rows):
        row = rows - 1 - count if is_backward else count
        _scan_row(is_ridge[row], disparity[row], limit, most, is_backward, out[0, row])
        now, last = count % 2, 1 - count % 2
        here, ridge = lines[now, 1:], marks[now, 1:]
        for col in range(cols):
            here[col] = disparity[row, col]
            ridge[col] = np.float32(1) if is_ridge[row, col] else np.float32(0)
        for way in range(1, 4):
            _scan_down(
                (0, 0, -step, step)[way],
                way > 1 and count > 0,
                _Cells(lines[now], marks[now]),
                _Cells(lines[last], marks[last]),
                _Traces(runs[last, way], values[last, way]),
                limit,
                np.float32(most),
                _Traces(runs[now, way, 1:], values[now, way, 1:]),
                out[way, row],
            )


@part
def _scan_row(
    is_ridge: Mask,
    disparity: Image,
    limit: np.float32,
    most: np.uint8,
    is_backward: bool,
    out: NDArray[np.uint8],
) -> None:
    """Count from the neighbour in the row."""
    cols = out.size
    run, value = most, np.float32(0)
    for place in range(cols):
        col = cols - 1 - place if is_backward else place
        has_ended = run >= most or abs(value - disparity[col]) > limit
        run = most if has_ended else np.uint8(run + 1)
        out[col] = run
        if is_ridge[col]:
            run, value = np.uint8(0), disparity[col]


@part
def _scan_down(
    shift: int,
    is_diagonal: bool,
    here: _Cells,
    last: _Cells,
    before: _Traces,
    limit: np.float32,
    most: np.float32,
    after: _Traces,
    out: NDArray[np.uint8],
) -> None:
    """Count from the row before, straight or from the cell that lies `shift` columns beside.

    No column waits for another, and nothing branches: the loop is vectorised.
    """
    zero, one = np.float32(0), np.float32(1)
    run, value = before.run[1 + shift :], before.value[1 + shift :]
    beside, beside_ridge = here.disparity[1 + shift :], here.ridge[1 + shift :]
    above, above_ridge = last.disparity[1:], last.ridge[1:]
    own, ridge = here.disparity[1:], here.ridge[1:]
    for col in range(out.size):
        has_ended = (run[col] >= most) | (abs(value[col] - own[col]) > limit)
        near, origin = most if has_ended else run[col] + one, value[col]
        if is_diagonal:
            # A ridge may pass between two cells of a diagonal.
            passes = (beside_ridge[col] > zero) & (abs(beside[col] - own[col]) <= limit)
            near, origin = one if passes else near, beside[col] if passes else origin
            passes = (above_ridge[col] > zero) & (abs(above[col] - own[col]) <= limit)
            near, origin = one if passes else near, above[col] if passes else origin
        out[col] = np.uint8(np.int32(near))
        after.run[col] = zero if ridge[col] > zero else near
        after.value[col] = own[col] if ridge[col] > zero else origin


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
