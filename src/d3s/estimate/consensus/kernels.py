"""Compiled search of the consensus method over candidate depths.

The frame is split into tiles. For each tile, all candidates and all virtual baselines are computed
from the views to the best candidate, in buffers that fit into the cache of one core. The size of a
tile does not depend on the number of threads, so the result has the same bytes for any number.

Each virtual baseline has a depth equation with four weights (g, l, k, b), see `Equations`. With S
the mean of both views, D their difference (left less right), S_x the gradient of S along the rows
and S_L its Laplacian, the predicted depth is

    sum((g S_x + l S_L) (D + k S_L)) / sum((D + k S_L)²) + b

over a window: Eq. 10 of the paper for a rig without calibration, Eq. 17 for a calibrated rig. The
noise of D may be taken from the squares.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.consensus.lens_corrections import GRID_PX
from d3s.runtime.compile import compiled
from d3s.types import Image

Sums = NDArray[np.float64]
Row = NDArray[np.float32]
Planes = NDArray[np.float32]
"""Corrections (4, rows, cols) at places of a grid."""
Grids = NDArray[np.float32]
"""Corrections (candidates, 4, rows, cols) at places of a grid."""

PAD_PX = 3
"""Columns that the spline coefficients extend beyond the frame on either side."""


class Equations(NamedTuple):
    """Weights of the depth equations, one per virtual baseline: arrays (baselines,)."""

    gradient: Image  # g, in m px
    laplacian: Image  # l, in m px²
    denominator_laplacian: Image  # k, in px²
    offset_m: Image  # b


class Trials(NamedTuple):
    """Candidates and virtual baselines of the search, one entry each."""

    depths_m: Image  # (candidates,)
    vergences_dpt: Image  # (candidates,): 1 / depth
    step_variances_m2: Image  # (candidates,): variance of the rounding to a candidate
    noise_m2: Image  # (candidates,): variance due to noise, times the energy of a window
    first_cols: NDArray[np.int64]  # (candidates,): first and last column whose match
    last_cols: NDArray[np.int64]  # lies in the frame
    whole_px: NDArray[np.int64]  # (candidates, baselines): shift of the right view, rounded up
    taps: Image  # (candidates, baselines, 6): spline weights for the rest of the shift
    equations: Equations
    variance_weights: Image  # (baselines,): (virtual / real baseline)² / number of baselines
    noise_square: np.float32  # variance of the noise of D that is taken from its square
    least_squares: np.float32  # least sum of squares that is left of a window


class Sizes(NamedTuple):
    """Sizes of windows and tiles, in pixels."""

    window: int
    reach: int  # distance to each side over which a depth depends on a view
    tile_rows: int
    tile_cols: int


class Best(NamedTuple):
    """Best candidate so far, per pixel: arrays (rows, cols)."""

    excess: Image  # 1 / confidence - 1
    candidate: NDArray[np.int32]  # index
    variance_m2: Image


class _Tile(NamedTuple):
    """Rows top to bottom - 1 and columns first to end - 1 of the frame."""

    top: int
    bottom: int
    first: int
    end: int


class _Scores(NamedTuple):
    """One candidate at the pixels of a tile: arrays (tile rows, tile cols)."""

    excess: Image  # 1 / confidence - 1; the largest gap in depth, in m, until all are known
    vergence_gap_dpt: Image  # largest gap in inverse depth
    variance_m2: Image


class _Buffers(NamedTuple):
    """Scratch memory of a thread, for one tile, one candidate and one virtual baseline."""

    means: Image  # (3, cols): twice the mean of both views, in the last three rows
    differences: Image  # (3, cols): left less right
    products: Row  # numerator times denominator, in one row
    squares: Row  # denominator squared
    product_ring: Image  # (window, cols): the products of the rows of the window
    square_ring: Image
    product_columns: Sums  # the rows of the ring, summed
    square_columns: Sums
    boxes: Image  # (2, cols): sums of 1, 4, 16 ... columns, alternating
    product_sums: Row  # over windows
    square_sums: Row
    corrections: Image  # (4, cols): factors of S_xx, 2 S_xy, S_yy and S_x in one row


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
    grids: Grids | None,
) -> None:
    """Search the best candidate of each pixel, in tiles `start` to `stop` - 1.

    Parameters
    ----------
    start, stop
        Range of tiles, numbered along the rows of tiles.
    left
        Left view (rows, cols), smoothed, without NaN.
    spline
        Quintic spline coefficients of the right view along its rows, (rows, cols + 2 `PAD_PX`).
    trials
        Candidates and virtual baselines.
    best
        Result, updated in place; `excess` begins as infinity.
    sizes
        Sizes of windows and tiles.
    with_vergence
        Whether confidence compares inverse depths too (Eq. 14) or depths only (Eq. S5).
    grids
        Corrections (candidates, 4, rows, cols) at every `GRID_PX` pixels; None for lenses that
        are alike all over the field.
    """
    buffers = _make_buffers(sizes.window, sizes.tile_cols)
    scores = _Scores(
        np.zeros((sizes.tile_rows, sizes.tile_cols), dtype=np.float32),
        np.zeros((sizes.tile_rows, sizes.tile_cols), dtype=np.float32),
        np.zeros((sizes.tile_rows, sizes.tile_cols), dtype=np.float32),
    )
    tiles_per_row = -(-left.shape[1] // sizes.tile_cols)
    for number in range(start, stop):
        top = sizes.reach + number // tiles_per_row * sizes.tile_rows
        bottom = min(top + sizes.tile_rows, left.shape[0] - sizes.reach)
        side = number % tiles_per_row * sizes.tile_cols
        for i in range(trials.depths_m.size):
            first = max(side, trials.first_cols[i])
            end = min(side + sizes.tile_cols, trials.last_cols[i] + 1)
            if first < end:
                tile = _Tile(top, bottom, first, end)
                lenses = None if grids is None else grids[i]
                _score_candidate(
                    left, spline, trials, i, tile, buffers, scores, with_vergence, lenses
                )
                _keep_better(scores, trials, i, tile, best)


@compiled
def _make_buffers(window: int, tile_cols: int) -> _Buffers:
    # Half a window, and one pixel for the differences, to each side of the tile.
    cols = tile_cols + window + 1
    return _Buffers(
        np.zeros((3, cols), dtype=np.float32),
        np.zeros((3, cols), dtype=np.float32),
        np.zeros(cols, dtype=np.float32),
        np.zeros(cols, dtype=np.float32),
        np.zeros((window, cols), dtype=np.float32),
        np.zeros((window, cols), dtype=np.float32),
        np.zeros(cols, dtype=np.float64),
        np.zeros(cols, dtype=np.float64),
        np.zeros((2, cols), dtype=np.float32),
        np.zeros(tile_cols, dtype=np.float32),
        np.zeros(tile_cols, dtype=np.float32),
        np.zeros((4, cols), dtype=np.float32),
    )


@compiled
def _score_candidate(
    left: Image,
    spline: Image,
    trials: Trials,
    i: int,
    tile: _Tile,
    buffers: _Buffers,
    scores: _Scores,
    with_vergence: bool,
    grids: Planes | None,
) -> None:
    """Compute excess and variance of candidate `i` for the pixels of a tile."""
    scores.excess[:] = 0.0
    scores.vergence_gap_dpt[:] = 0.0
    scores.variance_m2[:] = 0.0
    for m in range(trials.variance_weights.size):
        _add_baseline(left, spline, trials, i, m, tile, buffers, scores, grids)
    if with_vergence:
        for y in range(tile.bottom - tile.top):
            _add_vergence(scores.excess[y], scores.vergence_gap_dpt[y], tile.end - tile.first)


@compiled
def _add_baseline(
    left: Image,
    spline: Image,
    trials: Trials,
    i: int,
    m: int,
    tile: _Tile,
    buffers: _Buffers,
    scores: _Scores,
    grids: Planes | None,
) -> None:
    """Add virtual baseline `m` to the scores of candidate `i`, row by row down the tile."""
    window = buffers.product_ring.shape[0]
    half = window // 2
    cols = tile.end - tile.first + window + 1
    begin = tile.first - half - 1
    source = begin - trials.whole_px[i, m] + PAD_PX - 2
    buffers.product_ring[:] = 0.0
    buffers.square_ring[:] = 0.0
    buffers.product_columns[:] = 0.0
    buffers.square_columns[:] = 0.0
    for y in range(tile.top - half - 1, tile.bottom + half + 1):
        mean, difference = buffers.means[y % 3], buffers.differences[y % 3]
        _align(left[y, begin:], spline[y, source:], trials.taps[i, m], cols, mean, difference)
        middle = y - 1  # the Laplacian of a row needs the row below it
        if middle < tile.top - half:
            continue
        if grids is not None:
            for which in range(4):
                _between_places(grids[which], middle, begin, cols, buffers.corrections[which])
            _correct(middle, cols, buffers)
        _compute_terms(middle, trials.equations, m, trials.noise_square, cols, buffers)
        oldest = middle % window
        _slide(buffers.products, buffers.product_ring[oldest], cols, buffers.product_columns)
        _slide(buffers.squares, buffers.square_ring[oldest], cols, buffers.square_columns)
        if middle >= tile.top + half:
            row = middle - half - tile.top
            _score_row(trials, i, m, tile.end - tile.first, buffers, scores, row)


@compiled
def _score_row(
    trials: Trials, i: int, m: int, cols: int, buffers: _Buffers, scores: _Scores, row: int
) -> None:
    """Add virtual baseline `m` to the scores of one row, whose columns have been summed."""
    window = buffers.product_ring.shape[0]
    products, squares = buffers.product_sums, buffers.square_sums
    _sum_windows(buffers.product_columns[1:], window, cols, buffers.boxes, products)
    _sum_windows(buffers.square_columns[1:], window, cols, buffers.boxes, squares)
    if trials.least_squares > 0:
        _raise(squares, trials.least_squares, cols)
    offset, depth = trials.equations.offset_m[m], trials.depths_m[i]
    vergence, vergence_gap = trials.vergences_dpt[i], scores.vergence_gap_dpt[row]
    _widen_gaps(products, squares, offset, depth, vergence, cols, scores.excess[row], vergence_gap)
    noise, weight = trials.noise_m2[i], trials.variance_weights[m]
    variance = scores.variance_m2[row]
    _add_variance(products, squares, offset - depth, noise, weight, cols, variance)


@compiled
def _align(left: Row, spline: Row, taps: Row, cols: int, mean: Row, difference: Row) -> None:
    """Shift a row of the right view; write twice the mean of both views and their difference."""
    a, b, c, d, e, f = taps
    for j in range(cols):
        ends = a * spline[j] + f * spline[j + 5]
        sides = b * spline[j + 1] + e * spline[j + 4]
        right = (c * spline[j + 2] + d * spline[j + 3]) + sides + ends
        mean[j] = left[j] + right
        difference[j] = left[j] - right


@compiled
def _between_places(grid: Image, row: int, begin: int, cols: int, out: Row) -> None:
    """Interpolate a row of pixels from `begin` on between places of a grid."""
    top, over = row // GRID_PX, np.float32(1 / GRID_PX)
    share = np.float32(row % GRID_PX) * over
    above, below = grid[top], grid[top + 1]
    j = 0
    while j < cols:
        place, step = (begin + j) // GRID_PX, (begin + j) % GRID_PX
        here = above[place] + share * (below[place] - above[place])
        slope = (above[place + 1] + share * (below[place + 1] - above[place + 1]) - here) * over
        many = min(GRID_PX - step, cols - j)
        for k in range(many):
            out[j + k] = here + slope * np.float32(step + k)
        j += many


@compiled
def _correct(row: int, cols: int, buffers: _Buffers) -> None:
    """Add to the difference of a row what its lenses have removed from it beside the axis."""
    above, here = buffers.means[(row - 1) % 3], buffers.means[row % 3]
    below, difference = buffers.means[(row + 1) % 3], buffers.differences[row % 3]
    across, mixed = buffers.corrections[0], buffers.corrections[1]
    down, shift = buffers.corrections[2], buffers.corrections[3]
    half, quarter, two = np.float32(0.5), np.float32(0.25), np.float32(2)
    for j in range(1, cols - 1):
        # The buffers hold twice the mean.
        before, after = here[j - 1], here[j + 1]
        xx, yy = before + after - two * here[j], above[j] + below[j] - two * here[j]
        xy = quarter * ((below[j + 1] - above[j + 1]) - (below[j - 1] - above[j - 1]))
        blur = across[j] * xx + two * mixed[j] * xy + down[j] * yy
        difference[j] += half * blur + quarter * shift[j] * (after - before)


@compiled
def _compute_terms(
    row: int, equations: Equations, m: int, noise: np.float32, cols: int, buffers: _Buffers
) -> None:
    """Compute numerator times denominator and denominator squared of the depth equation."""
    above, here = buffers.means[(row - 1) % 3], buffers.means[row % 3]
    below, difference = buffers.means[(row + 1) % 3], buffers.differences[row % 3]
    # The buffers hold twice the mean, and the gradient is half of a central difference.
    gradient_weight = np.float32(0.25) * equations.gradient[m]
    laplacian_weight = np.float32(0.5) * equations.laplacian[m]
    denominator_weight = np.float32(0.5) * equations.denominator_laplacian[m]
    products, squares = buffers.products, buffers.squares
    for j in range(1, cols - 1):
        before, after = here[j - 1], here[j + 1]
        laplacian = (before + after) + (above[j] + below[j]) - np.float32(4.0) * here[j]
        denominator = difference[j] + denominator_weight * laplacian
        numerator = gradient_weight * (after - before) + laplacian_weight * laplacian
        products[j] = numerator * denominator
        squares[j] = denominator * denominator - noise


@compiled
def _slide(new: Row, oldest: Row, cols: int, columns: Sums) -> None:
    """Move the window down one row: add the new row to the sums, subtract the oldest one.

    In double precision, so that subtracting a row undoes its addition.
    """
    for j in range(cols):
        columns[j] += np.float64(new[j]) - np.float64(oldest[j])
        oldest[j] = new[j]


@compiled
def _sum_windows(columns: Sums, window: int, cols: int, boxes: Image, out: Row) -> None:
    """Sum `window` neighbouring columns, composed of sums of 1, 4, 16 ... columns.

    A running sum would be slower: each pixel would wait for the one before it.
    """
    last = cols + window - 1
    now, then = 0, 1
    for j in range(last):
        boxes[now, j] = columns[j]
    _copy(boxes[now], cols, out)
    width, done, rest = 1, 1, window - 1
    while done < window:
        for _ in range(rest // width % 4):
            _add(boxes[now, done:], cols, out)
            done += width
        rest = window - done
        if rest:
            last -= 3 * width
            _sum_four(boxes[now], width, last, boxes[then])
            now, then = then, now
            width *= 4


@compiled
def _copy(values: Row, cols: int, out: Row) -> None:
    for j in range(cols):
        out[j] = values[j]


@compiled
def _add(values: Row, cols: int, out: Row) -> None:
    for j in range(cols):
        out[j] += values[j]


@compiled
def _raise(values: Row, least: np.float32, cols: int) -> None:
    for j in range(cols):
        values[j] = np.maximum(values[j], least)


@compiled
def _sum_four(values: Row, width: int, cols: int, out: Row) -> None:
    """Sum four values that are `width` columns apart."""
    second, third, fourth = values[width:], values[2 * width :], values[3 * width :]
    for j in range(cols):
        out[j] = (values[j] + second[j]) + (third[j] + fourth[j])


@compiled
def _widen_gaps(
    products: Row,
    squares: Row,
    offset: float,
    depth: float,
    vergence: float,
    cols: int,
    depth_gap: Row,
    vergence_gap: Row,
) -> None:
    """Raise the largest gaps between prediction and candidate; NaN stays NaN."""
    for j in range(cols):
        scaled = products[j] + offset * squares[j]
        depth_gap[j] = np.maximum(depth_gap[j], abs(scaled / squares[j] - depth))
        vergence_gap[j] = np.maximum(vergence_gap[j], abs(squares[j] / scaled - vergence))


@compiled
def _add_variance(
    products: Row,
    squares: Row,
    offset: float,
    noise: float,
    weight: float,
    cols: int,
    variance: Row,
) -> None:
    """Add disagreement and noise of one virtual baseline; `offset` is less the candidate depth."""
    for j in range(cols):
        inverse = np.float32(1.0) / squares[j]
        gap = products[j] * inverse + offset
        variance[j] += weight * (gap * gap + noise * inverse)


@compiled
def _add_vergence(depth_gap: Row, vergence_gap: Row, cols: int) -> None:
    """Replace depth gaps by (1 + depth gap) (1 + vergence gap) - 1.

    Written as a sum, which keeps the digits of small gaps.
    """
    for j in range(cols):
        depth_gap[j] += vergence_gap[j] + depth_gap[j] * vergence_gap[j]


@compiled
def _keep_better(scores: _Scores, trials: Trials, i: int, tile: _Tile, best: Best) -> None:
    """Store candidate `i` where it is better than all before it; of equals the first stays."""
    first = tile.first
    for y in range(tile.top, tile.bottom):
        excess, variance = scores.excess[y - tile.top], scores.variance_m2[y - tile.top]
        for j in range(tile.end - first):
            if excess[j] < best.excess[y, first + j]:
                best.excess[y, first + j] = excess[j]
                best.candidate[y, first + j] = i
                best.variance_m2[y, first + j] = trials.step_variances_m2[i] + variance[j]
