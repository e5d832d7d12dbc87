"""The compiled search of the consensus.

The frame is done in tiles, each by itself: all depths, all virtual baselines, from the images to
the best candidate, in buffers that fit into a core's own cache. Tiles are of one size whatever the
number of threads, so the bytes are the same too.

A virtual baseline enters as four numbers (g, l, k, b). With S the mean of both views, D their
difference, S_x and S_L the gradient and the Laplacian, the depth that it predicts is

    sum((g S_x + l S_L) (D + k S_L)) / sum((D + k S_L)²) + b

over a window: the depth equation as printed (Eq. 10), and as tuned (Eq. 17).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.types import Image

Sums = NDArray[np.float64]
Place = tuple[int, int, int, int]

PAD_PX = 3
"""Columns that the coefficients of a spline go on for beyond the frame: it reads so far."""


class Trials(NamedTuple):
    """What to try, as the kernels take it: arrays (candidates, ...) and (baselines, ...)."""

    depths_m: Image
    vergences_dpt: Image
    step_variances_m2: Image
    noise_m2: Image  # (candidates,): what noise adds to the variance, times a window's energy
    first_cols: NDArray[np.int64]
    last_cols: NDArray[np.int64]
    whole_px: NDArray[np.int64]  # (candidates, baselines): the shift, rounded up
    taps: Image  # (candidates, baselines, 6): weights of the spline for what was rounded
    equations: Image  # (baselines, 4): g, l, k and b
    weights: Image  # (baselines,): squared share of the baseline, over their number


class Sizes(NamedTuple):
    """Of windows and tiles, in pixels."""

    window: int
    reach: int  # of a depth into the views, to each side
    tile_rows: int
    tile_cols: int


class Best(NamedTuple):
    """The best candidate so far, per pixel; `excess` is 1 / confidence - 1."""

    excess: Image
    candidate: NDArray[np.int32]
    variance_m2: Image


class _Buffers(NamedTuple):
    """What a thread works in, one tile and one shift at a time."""

    means: Image  # 3 rows: of both views
    differences: Image  # 3 rows
    terms: Image  # 2 rows: product and square
    ring: Image  # (2, window, cols): the terms of the rows of the window
    columns: Sums  # 2 rows: their sums
    boxes: Image  # 3 rows: sums of 1, 4, 16 ... columns
    sums: Image  # 2 rows: over windows


@compiled
def search_tiles(
    start: int,
    stop: int,
    left: Image,
    spline: Image,
    trials: Trials,
    best: Best,
    sizes: Sizes,
    with_vergence: bool,
) -> None:
    """Search tiles `start` to `stop` - 1, numbered along the rows.

    `spline` has the coefficients of the right view.
    """
    buffers = _make_buffers(sizes.window, sizes.tile_cols)
    gaps = np.zeros((3, sizes.tile_rows, sizes.tile_cols), dtype=np.float32)
    abreast = -(-left.shape[1] // sizes.tile_cols)
    for tile in range(start, stop):
        top = sizes.reach + tile // abreast * sizes.tile_rows
        bottom = min(top + sizes.tile_rows, left.shape[0] - sizes.reach)
        side = tile % abreast * sizes.tile_cols
        for i in range(trials.depths_m.size):
            first = max(side, trials.first_cols[i])
            end = min(side + sizes.tile_cols, trials.last_cols[i] + 1)
            if first < end:
                place = (top, bottom, first, end)
                _try_candidate(left, spline, trials, i, place, buffers, gaps, with_vergence)
                _keep_better(gaps, trials, i, place, best)


@compiled
def _make_buffers(window: int, tile_cols: int) -> _Buffers:
    cols = tile_cols + window + 1  # half a window, and the reach of the differences, to each side
    return _Buffers(
        np.zeros((3, cols), dtype=np.float32),
        np.zeros((3, cols), dtype=np.float32),
        np.zeros((2, cols), dtype=np.float32),
        np.zeros((2, window, cols), dtype=np.float32),
        np.zeros((2, cols), dtype=np.float64),
        np.zeros((3, cols), dtype=np.float32),
        np.zeros((2, tile_cols), dtype=np.float32),
    )


@compiled
def _try_candidate(
    left: Image,
    spline: Image,
    trials: Trials,
    i: int,
    place: Place,
    buffers: _Buffers,
    gaps: Image,
    with_vergence: bool,
) -> None:
    """Excess (first) and variance (last of `gaps`) of one candidate, for the pixels of a tile."""
    top, bottom, first, end = place
    gaps[:] = 0.0
    for m in range(trials.equations.shape[0]):
        _try_baseline(left, spline, trials, i, m, place, buffers, gaps)
    if with_vergence:
        for y in range(bottom - top):
            _add_vergence(gaps[0, y], gaps[1, y], end - first)


@compiled
def _try_baseline(
    left: Image,
    spline: Image,
    trials: Trials,
    i: int,
    m: int,
    place: Place,
    buffers: _Buffers,
    gaps: Image,
) -> None:
    """Widen the gaps by those of one virtual baseline, row by row down the tile."""
    top, bottom, first, end = place
    window = buffers.ring.shape[1]
    half = window // 2
    cols = end - first + window + 1
    begin = first - half - 1
    source = begin - trials.whole_px[i, m] + PAD_PX - 2
    buffers.ring[:] = 0.0
    buffers.columns[:] = 0.0
    for y in range(top - half - 1, bottom + half + 1):
        mean, difference = buffers.means[y % 3], buffers.differences[y % 3]
        _align(left[y, begin:], spline[y, source:], trials.taps[i, m], cols, mean, difference)
        middle = y - 1
        if middle < top - half:
            continue
        above, here = buffers.means[(middle - 1) % 3], buffers.means[middle % 3]
        rate = buffers.differences[middle % 3]
        _terms(above, here, mean, rate, trials.equations[m], cols, buffers.terms)
        for part in range(2):
            oldest = buffers.ring[part, middle % window]
            _slide(buffers.terms[part], oldest, cols, buffers.columns[part])
        if middle >= top + half:
            _compare(trials, i, m, end - first, buffers, gaps, middle - half - top)


@compiled
def _compare(
    trials: Trials, i: int, m: int, cols: int, buffers: _Buffers, gaps: Image, row: int
) -> None:
    """Widen the gaps of a row whose windows have been summed down."""
    window = buffers.ring.shape[1]
    products, squares = buffers.sums[0], buffers.sums[1]
    _box(buffers.columns[0, 1:], window, cols, buffers.boxes, products)
    _box(buffers.columns[1, 1:], window, cols, buffers.boxes, squares)
    b, depth, vergence = trials.equations[m, 3], trials.depths_m[i], trials.vergences_dpt[i]
    _widen(products, squares, b, depth, vergence, cols, gaps[0, row], gaps[1, row])
    noise, weight = trials.noise_m2[i], trials.weights[m]
    _add_variance(products, squares, b - depth, noise, weight, cols, gaps[2, row])


@compiled
def _align(
    left: Image, spline: Image, taps: Image, cols: int, mean: Image, difference: Image
) -> None:
    """Twice the mean of a row of both views, the right one moved, and their difference."""
    a, b, c, d, e, f = taps
    for j in range(cols):
        ends = a * spline[j] + f * spline[j + 5]
        sides = b * spline[j + 1] + e * spline[j + 4]
        right = (c * spline[j + 2] + d * spline[j + 3]) + sides + ends
        mean[j] = left[j] + right
        difference[j] = left[j] - right


@compiled
def _terms(
    above: Image,
    here: Image,
    below: Image,
    difference: Image,
    equation: Image,
    cols: int,
    terms: Image,
) -> None:
    """Numerator times denominator, and denominator squared; the rows are twice the mean."""
    gradient_weight = np.float32(0.25) * equation[0]
    laplacian_weight = np.float32(0.5) * equation[1]
    rate_weight = np.float32(0.5) * equation[2]
    products, squares = terms[0], terms[1]
    for j in range(1, cols - 1):
        before, after = here[j - 1], here[j + 1]
        laplacian = (before + after) + (above[j] + below[j]) - np.float32(4.0) * here[j]
        denominator = difference[j] + rate_weight * laplacian
        numerator = gradient_weight * (after - before) + laplacian_weight * laplacian
        products[j] = numerator * denominator
        squares[j] = denominator * denominator


@compiled
def _slide(new: Image, old: Image, cols: int, column: Sums) -> None:
    """Move the window down a row. In double precision, where what came in goes out again."""
    for j in range(cols):
        column[j] += np.float64(new[j]) - np.float64(old[j])
        old[j] = new[j]


@compiled
def _box(column: Sums, window: int, cols: int, boxes: Image, out: Image) -> None:
    """Sums of `window` neighbours, put together from sums of 1, 4, 16 ... of them.

    A running sum would have each pixel wait for the one before it.
    """
    last = cols + window - 1
    now, then = 0, 1
    for j in range(last):
        boxes[now, j] = column[j]
    _start(boxes[now], cols, out)
    width, done, rest = 1, 1, window - 1
    while done < window:
        for _ in range(rest // width % 4):
            _add(boxes[now, done:], cols, out)
            done += width
        rest = window - done
        if rest:
            last -= 3 * width
            _fourfold(boxes[now], width, last, boxes[then])
            now, then = then, now
            width *= 4


@compiled
def _start(values: Image, cols: int, out: Image) -> None:
    for j in range(cols):
        out[j] = values[j]


@compiled
def _add(values: Image, cols: int, out: Image) -> None:
    for j in range(cols):
        out[j] += values[j]


@compiled
def _fourfold(values: Image, width: int, cols: int, out: Image) -> None:
    second, third, fourth = values[width:], values[2 * width :], values[3 * width :]
    for j in range(cols):
        out[j] = (values[j] + second[j]) + (third[j] + fourth[j])


@compiled
def _widen(
    products: Image,
    squares: Image,
    b: float,
    depth: float,
    vergence: float,
    cols: int,
    in_depth: Image,
    in_vergence: Image,
) -> None:
    """Largest gaps so far between prediction and candidate; NaN for good where one is NaN."""
    for j in range(cols):
        scaled = products[j] + b * squares[j]
        in_depth[j] = np.maximum(in_depth[j], abs(scaled / squares[j] - depth))
        in_vergence[j] = np.maximum(in_vergence[j], abs(squares[j] / scaled - vergence))


@compiled
def _add_variance(
    products: Image,
    squares: Image,
    offset: float,
    noise: float,
    weight: float,
    cols: int,
    variance: Image,
) -> None:
    for j in range(cols):
        inverse = np.float32(1.0) / squares[j]
        gap = products[j] * inverse + offset
        variance[j] += weight * (gap * gap + noise * inverse)


@compiled
def _add_vergence(in_depth: Image, in_vergence: Image, cols: int) -> None:
    """(1 + gap in depth) (1 + gap in vergence) - 1, which keeps the digits of small gaps."""
    for j in range(cols):
        in_depth[j] += in_vergence[j] + in_depth[j] * in_vergence[j]


@compiled
def _keep_better(gaps: Image, trials: Trials, i: int, place: Place, best: Best) -> None:
    """Put the candidate where it is better than all before it; the first of equals stays."""
    top, bottom, first, end = place
    for y in range(top, bottom):
        excess, variance = gaps[0, y - top], gaps[2, y - top]
        for j in range(end - first):
            if excess[j] < best.excess[y, first + j]:
                best.excess[y, first + j] = excess[j]
                best.candidate[y, first + j] = i
                best.variance_m2[y, first + j] = trials.step_variances_m2[i] + variance[j]
