"""Compiled operations of the search: local means, median, costs and paths."""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.numba_backend.matching import (
    FEATURES,
    matching_costs,
    store_features,
)
from d3s.estimate.joint.numba_backend.paths import (
    FORBIDDEN_COST,
    STRIP,
    paths_along_cols,
    paths_along_rows,
    right_view_steps,
)
from d3s.estimate.joint.types import (
    MAX_COST,
    MAX_PENALTY,
    Array,
    Costs,
    Indices,
    PathResult,
    Steps,
)
from d3s.runtime.compile import compiled, inlined
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import SHORTS, load_16, maximum, minimum, splat_16, store
from d3s.types import Image, Mask

_BAND = 64  # rows that share one running sum down the columns


class NumbaSearch:
    """`SearchOperations` in single precision and whole numbers, with results in scratch memory."""

    def __init__(self, memory: Scratch) -> None:
        self._memory = memory

    def local_mean(self, image: Array, half: int) -> Array:
        """Return the mean over those of 2 half + 1 pixels each way that are inside the frame."""
        out = self._memory.empty(image.shape)
        run_over_rows(_means, -(-image.shape[0] // _BAND), image, half, out)
        return out

    def median_3x3(self, image: Array) -> Array:
        """Return the median over 3 x 3 pixels; edge pixels are repeated."""
        out = self._memory.empty(image.shape)
        run_over_rows(_median_3x3, image.shape[0], image, out)
        return out

    def matching_costs(
        self, left: Array, right: Array, first_shift: int, shifts: int, scales: tuple[float, float]
    ) -> Costs:
        """Return the difference of the views at each whole shift, as bytes.

        Parameters: see `SearchOperations.matching_costs`.
        """
        rows, cols = left.shape
        deep = _filled(shifts)
        costs = self._memory.empty((rows, cols, deep), np.uint8)
        with self._memory.part():
            parts = []
            for view, scale, end, is_reversed, length in (
                (left, scales[0], 1, False, cols + 2),
                (right, scales[1], cols - first_shift, True, cols + 2 + deep),
            ):
                size = FEATURES * rows * _filled(length)
                parts.append(self._memory.empty((size,), np.int16))
                run_over_rows(
                    store_features, rows, view, np.float32(scale), end, is_reversed, parts[-1]
                )
            shape = rows, cols, shifts
            run_over_rows(matching_costs, rows, *parts, first_shift, shape, costs.reshape(-1))
        return costs

    def aggregate_paths(
        self, costs: Costs, allowed: Mask, small: int, large: tuple[Steps, Steps]
    ) -> PathResult:
        """Add up the paths along the rows, then down and up the columns with the best shift.

        Parameters: see `SearchOperations.aggregate_paths`.
        """
        rows, cols, deep = costs.shape
        empty = self._memory.empty
        step, margin = empty((rows, cols)), empty((rows, cols))
        lowest, total = (empty((rows, cols), np.int16) for _ in range(2))
        out = PathResult(step, lowest, total, margin)
        walls = np.full(deep, FORBIDDEN_COST, dtype=np.int16)
        walls[: allowed.size][allowed] = 0
        penalty = np.int16(min(small, MAX_PENALTY))
        across, down = large
        strips = -(-cols // STRIP)
        flat = costs.reshape(-1)
        with self._memory.part():
            sums = empty((strips * rows * STRIP * deep,), np.int16)
            run_over_rows(paths_along_rows, rows, flat, walls, penalty, across, sums)
            run_over_rows(paths_along_cols, strips, flat, walls, penalty, down, sums, out)
        return out

    def step_penalties(
        self, view: Array, penalty: float, least: float, unit: float
    ) -> tuple[Steps, Steps]:
        """Return the penalty of large steps between neighbours, lower across edges of the view.

        Parameters: see `SearchOperations.step_penalties`.
        """
        across, down = (self._memory.empty(view.shape, np.int16) for _ in range(2))
        numbers = np.float32(penalty), np.float32(least), np.float32(1 / unit)
        run_over_rows(_step_penalties, view.shape[0], view, *numbers, across, down)
        return across, down

    def aligned_costs(
        self, costs: Costs, lowest: Steps, allowed: Mask, side: int, stride: int
    ) -> tuple[Indices, Indices]:
        """Add up the costs of each block by their distance from the chosen shift, and count them.

        Parameters: see `SearchOperations.aligned_costs`.
        """
        shape = *(-(-size // side) for size in lowest.shape), 2 * allowed.size - 1
        sums, counts = (self._memory.empty(shape, np.int64) for _ in range(2))
        flat, steps = costs.reshape(-1), (side, stride)
        run_over_rows(_aligned_costs, shape[0], flat, lowest, allowed, steps, sums, counts)
        return sums, counts

    def right_view_steps(self, paths: PathResult, first_shift: int) -> Steps:
        """Return the step that the right view chooses for each pixel's match, or -1."""
        out = self._memory.empty(paths.lowest.shape, np.int16)
        run_over_rows(right_view_steps, len(out), paths.lowest, paths.total, first_shift, out)
        return out


def _filled(length: int) -> int:
    return -(-length // SHORTS) * SHORTS


@compiled
def _aligned_costs(
    start: int,
    stop: int,
    costs: NDArray[np.uint8],
    lowest: Steps,
    allowed: Mask,
    steps: tuple[int, int],
    sums: Indices,
    counts: Indices,
) -> None:
    """Sums and counts of costs by their distance from the chosen shift; start, stop in blocks."""
    rows, cols = lowest.shape
    deep, depth = costs.size // (rows * cols), allowed.size
    side, stride = steps
    for band in range(start, stop):
        sums[band] = 0
        counts[band] = 0
        for row in range(band * side, min((band + 1) * side, rows), stride):
            for block in range(sums.shape[1]):
                for col in range(block * side, min((block + 1) * side, cols), stride):
                    first = depth - 1 - lowest[row, col]
                    place = (row * cols + col) * deep
                    sum_line = sums[band, block, first : first + depth]
                    count_line = counts[band, block, first : first + depth]
                    for k in range(depth):
                        cost = costs[place + k]
                        is_known = (cost != MAX_COST) & allowed[k]
                        sum_line[k] += cost if is_known else 0
                        count_line[k] += 1 if is_known else 0


@compiled
def _means(start: int, stop: int, image: Image, half: int, out: Image) -> None:
    """Mean over a window; start and stop count bands of rows.

    Down the columns by running sums in double precision, along the rows by sums of 1, 2, 4 and so
    on.
    """
    rows, cols = image.shape
    room = cols + 2 * half + 3 * SHORTS
    down = np.empty(cols, dtype=np.float64)
    powers = np.zeros(room, dtype=np.float32)
    inner = powers[half:]
    across = np.empty(room, dtype=np.float32)
    counts = np.empty(cols, dtype=np.float32)
    for col in range(cols):
        counts[col] = min(col + half, cols - 1) - max(col - half, 0) + 1
    for band in range(start, stop):
        first = band * _BAND
        for col in range(cols):
            down[col] = 0
        for row in range(max(first - half, 0), min(first + half, rows)):
            line = image[row]
            for col in range(cols):
                down[col] += line[col]
        for row in range(first, min(first + _BAND, rows)):
            if row + half < rows:
                line = image[row + half]
                for col in range(cols):
                    down[col] += line[col]
            for place in range(0, powers.size - SHORTS, SHORTS):
                store(powers, place, splat_16(np.float32(0.0)))
            for col in range(cols):
                inner[col] = down[col]
            _sum_across(powers, across, cols, 2 * half + 1)
            count = np.float32(min(row + half, rows - 1) - max(row - half, 0) + 1)
            line = out[row]
            for col in range(cols):
                line[col] = across[col] / (count * counts[col])
            if row - half >= 0:
                line = image[row - half]
                for col in range(cols):
                    down[col] -= line[col]


@inlined
def _sum_across(powers: Image, out: Image, cols: int, width: int) -> None:
    """out[i] = sum of `width` values from powers[i] on; `powers` is overwritten."""
    for col in range(0, cols, SHORTS):
        store(out, col, splat_16(np.float32(0.0)))
    offset, power, room = 0, 1, cols + width - 1
    while power <= width:
        if width & power:
            for col in range(0, cols, SHORTS):
                store(out, col, (load_16(out, col) + load_16(powers, col + offset)))
            offset += power
        if 2 * power <= width:
            for place in range(0, room - power, SHORTS):
                both = load_16(powers, place) + load_16(powers, place + power)
                store(powers, place, both)
        power *= 2


@compiled
def _median_3x3(start: int, stop: int, image: Image, out: Image) -> None:
    """Median over 3 x 3 pixels, by columns of three that are sorted once.

    It is the median of the largest low, the median of the middles and the smallest high.
    """
    rows, cols = image.shape
    room = cols + 2 * SHORTS
    lines = np.zeros(3 * room, dtype=np.float32)
    result = np.empty(room, dtype=np.float32)
    for row in range(start, stop):
        for near in range(3):
            first, line = near * room, image[min(max(row + near - 1, 0), rows - 1)]
            for col in range(cols):
                lines[first + 1 + col] = line[col]
            lines[first], lines[first + 1 + cols] = line[0], line[cols - 1]
        for col in range(0, cols + 2, SHORTS):
            a, b = load_16(lines, col), load_16(lines, col + room)
            a, b, c = minimum(a, b), maximum(a, b), load_16(lines, col + 2 * room)
            b, c = minimum(b, c), maximum(b, c)
            store(lines, col, minimum(a, b))
            store(lines, col + room, maximum(a, b))
            store(lines, col + 2 * room, c)
        for col in range(0, cols, SHORTS):
            a, b, c = (
                load_16(lines, col),
                load_16(lines, col + room),
                load_16(lines, col + 2 * room),
            )
            d = load_16(lines, col + 1 + room)
            a = maximum(maximum(a, load_16(lines, col + 1)), load_16(lines, col + 2))
            c = minimum(
                minimum(c, load_16(lines, col + 1 + 2 * room)), load_16(lines, col + 2 + 2 * room)
            )
            b = minimum(maximum(b, d), maximum(minimum(b, d), load_16(lines, col + 2 + room)))
            store(result, col, minimum(maximum(a, b), maximum(minimum(a, b), c)))
        line = out[row]
        for col in range(cols):
            line[col] = result[col]


@compiled
def _step_penalties(
    start: int,
    stop: int,
    view: Image,
    penalty: np.float32,
    least: np.float32,
    per_unit: np.float32,
    across: Steps,
    down: Steps,
) -> None:
    """Penalties across and down: divided by 1 + the difference of the neighbours in units."""
    one, half = np.float32(1), np.float32(0.5)
    for row in range(start, stop):
        here, above = view[row], view[max(row - 1, 0)]
        line, line_down = across[row], down[row]
        line[0] = np.int16(max(penalty, least) + half)
        for col in range(1, line.size):
            step = abs(here[col] - here[col - 1]) * per_unit
            line[col] = np.int16(max(penalty / (one + step), least) + half)
        for col in range(line.size):
            step = abs(here[col] - above[col]) * per_unit
            line_down[col] = np.int16(max(penalty / (one + step), least) + half)
