"""Compiled search of the consensus method over candidate depths.

The frame is split into tiles. For each tile, candidates and virtual baselines are computed from the
views to the best candidate, in buffers that fit into the cache of one core. The size of a tile does
not depend on the number of threads, so the result has the same bytes for any number.

The largest gap of a candidate only grows from baseline to baseline. So a row of a tile in which no
pixel can win any more needs no other baseline, and no variance. Candidates that are far apart come
first: what they find leaves little to do for the others.

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
from d3s.runtime.compile import borrowing, compiled
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

    order: NDArray[np.int64]  # (candidates,): in which they are tried
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
    shift_weights: Image  # (baselines,): virtual / real baseline / number of baselines
    with_vergence: bool  # confidence compares inverse depths too (Eq. 14), or depths only (Eq. S5)


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
    shift_m: Image  # from the candidate to where the mean of its predictions meets it


class _Tile(NamedTuple):
    """Rows top to bottom - 1 and columns first to end - 1 of the frame."""

    top: int
    bottom: int
    first: int
    end: int


class _Scores(NamedTuple):
    """One candidate at the pixels of a tile: arrays (tile rows, tile cols)."""

    depth_gap_m: Image  # largest gap in depth so far
    vergence_gap_dpt: Image  # and in inverse depth
    variance_m2: Image
    shift_m: Image
    is_open: NDArray[np.bool_]  # (tile rows,): a pixel of the row may still win


class _Buffers(NamedTuple):
    """Scratch memory of a thread, for one tile, one candidate and one virtual baseline.

    Rows of terms hold products (numerator times denominator), then squares (of the denominator).
    """

    means: Image  # (3, cols): twice the mean of both views, in the last three rows
    differences: Image  # (3, cols): left less right
    terms: Row  # (2 cols,): in one row
    ring: Image  # (window, 2 cols): the terms of the rows of the window
    columns: Sums  # (2 cols,): the rows of the ring, summed
    boxes: Image  # (2, 2 cols): sums of 1, 4, 16 ... columns, alternating
    sums: Row  # (2 cols,): over windows
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
    grids
        Corrections (candidates, 4, rows, cols) at every `GRID_PX` pixels; None for lenses that
        are alike all over the field.
    """
    buffers = _make_buffers(sizes.window, sizes.tile_cols)
    planes = np.zeros((4, sizes.tile_rows, sizes.tile_cols), dtype=np.float32)
    is_open = np.zeros(sizes.tile_rows, dtype=np.bool_)
    scores = _Scores(planes[0], planes[1], planes[2], planes[3], is_open)
    tiles_per_row = -(-left.shape[1] // sizes.tile_cols)
    for number in range(start, stop):
        top = sizes.reach + number // tiles_per_row * sizes.tile_rows
        bottom = min(top + sizes.tile_rows, left.shape[0] - sizes.reach)
        side = number % tiles_per_row * sizes.tile_cols
        for i in trials.order:
            first = max(side, trials.first_cols[i])
            end = min(side + sizes.tile_cols, trials.last_cols[i] + 1)
            if first < end:
                tile = _Tile(top, bottom, first, end)
                lenses = None if grids is None else grids[i]
                if _may_win(left, spline, trials, i, tile, buffers, scores, lenses, best):
                    _keep_better(scores, trials, i, tile, best)


@compiled
def _make_buffers(window: int, tile_cols: int) -> _Buffers:
    # Half a window, and one pixel for the differences, to each side of the tile.
    cols = tile_cols + window + 1
    return _Buffers(
        np.zeros((3, cols), dtype=np.float32),
        np.zeros((3, cols), dtype=np.float32),
        np.zeros(2 * cols, dtype=np.float32),
        np.zeros((window, 2 * cols), dtype=np.float32),
        np.zeros(2 * cols, dtype=np.float64),
        np.zeros((2, 2 * cols), dtype=np.float32),
        np.zeros(2 * cols, dtype=np.float32),
        np.zeros((4, cols), dtype=np.float32),
    )


@borrowing
def _may_win(
    left: Image,
    spline: Image,
    trials: Trials,
    i: int,
    tile: _Tile,
    buffers: _Buffers,
    scores: _Scores,
    grids: Planes | None,
    best: Best,
) -> bool:
    """Score candidate `i` in a tile, as far as it may win; return whether it may after all."""
    scores.is_open[:] = True
    part, rows = tile, tile.bottom - tile.top
    for m in range(trials.variance_weights.size):
        _add_baseline(left, spline, trials, i, m, tile, part, rows, buffers, scores, grids, best)
        while rows > 0 and not scores.is_open[rows - 1]:
            rows -= 1
        if rows == 0:
            return False
        part = _open_part(tile, rows, scores, best)
    return True


@borrowing
def _open_part(tile: _Tile, rows: int, scores: _Scores, best: Best) -> _Tile:
    """Columns of a tile with the pixels that may still win."""
    first, last = tile.end, tile.first - 1
    for row in range(rows):
        if scores.is_open[row]:
            depth_gap, vergence_gap = scores.depth_gap_m[row], scores.vergence_gap_dpt[row]
            least = best.excess[tile.top + row]
            x = tile.first
            while x < first and not (
                _excess(depth_gap[x - tile.first], vergence_gap[x - tile.first]) <= least[x]
            ):
                x += 1
            first = x
            x = tile.end - 1
            while x > last and not (
                _excess(depth_gap[x - tile.first], vergence_gap[x - tile.first]) <= least[x]
            ):
                x -= 1
            last = x
    return _Tile(tile.top, tile.bottom, first, last + 1)


@borrowing
def _add_baseline(
    left: Image,
    spline: Image,
    trials: Trials,
    i: int,
    m: int,
    tile: _Tile,
    part: _Tile,
    rows: int,
    buffers: _Buffers,
    scores: _Scores,
    grids: Planes | None,
    best: Best,
) -> None:
    """Add virtual baseline `m` to the scores of candidate `i`, in the first rows of a part."""
    window = buffers.ring.shape[0]
    half = window // 2
    cols = part.end - part.first + window + 1
    begin = part.first - half - 1
    source = begin - trials.whole_px[i, m] + PAD_PX - 2
    buffers.ring[:] = 0.0
    buffers.columns[:] = 0.0
    laplacian, spread = trials.equations.laplacian[m], trials.equations.denominator_laplacian[m]
    for y in range(tile.top - half - 1, tile.top + rows + half + 1):
        mean, difference = buffers.means[y % 3], buffers.differences[y % 3]
        _align(left[y, begin:], spline[y, source:], trials.taps[i, m], cols, mean, difference)
        middle = y - 1  # the Laplacian of a row needs the row below it
        if middle < tile.top - half:
            continue
        if grids is not None:
            for which in range(4):
                _between_places(grids[which], middle, begin, cols, buffers.corrections[which])
            _correct(middle, cols, buffers)
        mean, difference = buffers.means[middle % 3], buffers.differences[middle % 3]
        gradient = trials.equations.gradient[m]
        if laplacian == 0 and spread == 0:
            _gradient_terms(mean, difference, gradient, trials.noise_square, cols, buffers.terms)
        else:
            above, below = buffers.means[(middle - 1) % 3], buffers.means[y % 3]
            weights = gradient, laplacian, spread
            _terms(
                above, mean, below, difference, weights, trials.noise_square, cols, buffers.terms
            )
        _slide(buffers.terms, buffers.ring[middle % window], 2 * cols, buffers.columns)
        if middle >= tile.top + half:
            row = middle - half - tile.top
            if scores.is_open[row]:
                least = best.excess[middle - half, part.first : part.end]
                _score_row(trials, i, m, buffers, scores, row, part.first - tile.first, least)


@borrowing
def _score_row(
    trials: Trials,
    i: int,
    m: int,
    buffers: _Buffers,
    scores: _Scores,
    row: int,
    begin: int,
    best: Row,
) -> None:
    """Add virtual baseline `m` to the scores of a row from `begin` on; its columns are summed."""
    window, cols = buffers.ring.shape[0], best.size
    apart = cols + window + 1
    _sum_windows(buffers.columns[1:], window, apart + cols, buffers.boxes, buffers.sums)
    products, squares = buffers.sums, buffers.sums[apart:]
    if trials.least_squares > 0:
        _raise(squares, trials.least_squares, cols)
    offset, depth = trials.equations.offset_m[m], trials.depths_m[i]
    depth_gap, vergence_gap = scores.depth_gap_m[row, begin:], scores.vergence_gap_dpt[row, begin:]
    if m == 0:
        _clear(depth_gap, cols)
        _clear(vergence_gap, cols)
    _widen_depth_gap(products, squares, offset, depth, cols, depth_gap)
    # The gap in depth alone often excludes a row.
    scores.is_open[row] = _is_below(depth_gap, vergence_gap, best)
    if scores.is_open[row] and trials.with_vergence:
        _widen_vergence_gap(products, squares, offset, trials.vergences_dpt[i], cols, vergence_gap)
        scores.is_open[row] = _is_below(depth_gap, vergence_gap, best)
    if scores.is_open[row]:
        noise, weight = trials.noise_m2[i], trials.variance_weights[m]
        variance, shift = scores.variance_m2[row, begin:], scores.shift_m[row, begin:]
        if m == 0:
            _clear(variance, cols)
            _clear(shift, cols)
        _add_variance(products, squares, offset - depth, noise, weight, cols, variance)
        _add_shift(products, squares, offset - depth, trials.shift_weights[m], cols, shift)


@borrowing
def _align(left: Row, spline: Row, taps: Row, cols: int, mean: Row, difference: Row) -> None:
    """Shift a row of the right view; write twice the mean of both views and their difference."""
    a, b, c, d, e, f = taps
    for j in range(cols):
        ends = a * spline[j] + f * spline[j + 5]
        sides = b * spline[j + 1] + e * spline[j + 4]
        right = (c * spline[j + 2] + d * spline[j + 3]) + sides + ends
        mean[j] = left[j] + right
        difference[j] = left[j] - right


@borrowing
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


@borrowing
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


@borrowing
def _gradient_terms(
    mean: Row, difference: Row, gradient: np.float32, noise: np.float32, cols: int, terms: Row
) -> None:
    """Compute products, then squares, of the depth equation without Laplacians (Eq. 17)."""
    # The buffers hold twice the mean, and the gradient is half of a central difference.
    weight, squares = np.float32(0.25) * gradient, terms[cols:]
    for j in range(1, cols - 1):
        denominator = difference[j]
        terms[j] = weight * (mean[j + 1] - mean[j - 1]) * denominator
        squares[j] = denominator * denominator - noise


@borrowing
def _terms(
    above: Row,
    here: Row,
    below: Row,
    difference: Row,
    weights: tuple[np.float32, np.float32, np.float32],
    noise: np.float32,
    cols: int,
    terms: Row,
) -> None:
    """Compute products, then squares, of the depth equation (Eq. 10).

    `weights` are those of gradient, Laplacian, and Laplacian of the denominator.
    """
    # The buffers hold twice the mean, and the gradient is half of a central difference.
    gradient_weight = np.float32(0.25) * weights[0]
    laplacian_weight = np.float32(0.5) * weights[1]
    denominator_weight = np.float32(0.5) * weights[2]
    squares = terms[cols:]
    for j in range(1, cols - 1):
        before, after = here[j - 1], here[j + 1]
        laplacian = (before + after) + (above[j] + below[j]) - np.float32(4.0) * here[j]
        denominator = difference[j] + denominator_weight * laplacian
        numerator = gradient_weight * (after - before) + laplacian_weight * laplacian
        terms[j] = numerator * denominator
        squares[j] = denominator * denominator - noise


@borrowing
def _slide(new: Row, oldest: Row, cols: int, columns: Sums) -> None:
    """Move the window down one row: add the new row to the sums, subtract the oldest one.

    In double precision, so that subtracting a row undoes its addition.
    """
    for j in range(cols):
        columns[j] += np.float64(new[j]) - np.float64(oldest[j])
        oldest[j] = new[j]


@borrowing
def _sum_windows(columns: Sums, window: int, cols: int, boxes: Image, out: Row) -> None:
    """Sum `window` neighbouring columns, composed of sums of 1, 4, 16 ... columns.

    A running sum would be slower: each pixel would wait for the one before it.
    """
    last = cols + window - 1
    now, then = 0, 1
    single = boxes[now]
    for j in range(cols):
        single[j] = columns[j]
        out[j] = columns[j]
    for j in range(cols, last):
        single[j] = columns[j]
    width, done, rest = 1, 1, window - 1
    while done < window:
        count = rest // width % 4
        if count > 1:
            _add_two(boxes[now, done:], width, cols, out)
        if count % 2:
            _add(boxes[now, done + (count - 1) * width :], cols, out)
        done += count * width
        rest = window - done
        if rest:
            last -= 3 * width
            _sum_four(boxes[now], width, last, boxes[then])
            now, then = then, now
            width *= 4


@borrowing
def _clear(out: Row, cols: int) -> None:
    for j in range(cols):
        out[j] = 0.0


@borrowing
def _add(values: Row, cols: int, out: Row) -> None:
    for j in range(cols):
        out[j] += values[j]


@borrowing
def _add_two(values: Row, width: int, cols: int, out: Row) -> None:
    second = values[width:]
    for j in range(cols):
        out[j] = (out[j] + values[j]) + second[j]


@borrowing
def _raise(values: Row, least: np.float32, cols: int) -> None:
    for j in range(cols):
        values[j] = np.maximum(values[j], least)


@borrowing
def _sum_four(values: Row, width: int, cols: int, out: Row) -> None:
    """Sum four values that are `width` columns apart."""
    second, third, fourth = values[width:], values[2 * width :], values[3 * width :]
    for j in range(cols):
        out[j] = (values[j] + second[j]) + (third[j] + fourth[j])


@borrowing
def _widen_depth_gap(
    products: Row, squares: Row, offset: float, depth: float, cols: int, gap: Row
) -> None:
    """Raise the largest gap between prediction and candidate; NaN stays NaN."""
    for j in range(cols):
        scaled = products[j] + offset * squares[j]
        gap[j] = np.maximum(gap[j], abs(scaled / squares[j] - depth))


@borrowing
def _widen_vergence_gap(
    products: Row, squares: Row, offset: float, vergence: float, cols: int, gap: Row
) -> None:
    """Raise the largest gap between their inverses; NaN stays NaN."""
    for j in range(cols):
        scaled = products[j] + offset * squares[j]
        gap[j] = np.maximum(gap[j], abs(squares[j] / scaled - vergence))


@borrowing
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


@borrowing
def _add_shift(
    products: Row, squares: Row, offset: float, weight: float, cols: int, shift: Row
) -> None:
    """Add the weighted gap of one virtual baseline; `offset` is less the candidate depth."""
    for j in range(cols):
        shift[j] += weight * (products[j] / squares[j] + offset)


@borrowing
def _excess(depth_gap: np.float32, vergence_gap: np.float32) -> np.float32:
    """Compute (1 + depth gap) (1 + vergence gap) - 1, which never falls as the gaps grow.

    Written as a sum, which keeps the digits of small gaps.
    """
    return depth_gap + (vergence_gap + depth_gap * vergence_gap)


@borrowing
def _is_below(depth_gap: Row, vergence_gap: Row, best: Row) -> bool:
    """Whether a pixel is as good as its best candidate, or better; NaN is not."""
    count = 0
    for j in range(best.size):
        count += _excess(depth_gap[j], vergence_gap[j]) <= best[j]
    return count > 0


@borrowing
def _keep_better(scores: _Scores, trials: Trials, i: int, tile: _Tile, best: Best) -> None:
    """Store candidate `i` where it is better than all before it; of equals the nearest stays."""
    cols = tile.end - tile.first
    for y in range(tile.top, tile.bottom):
        row = y - tile.top
        if not scores.is_open[row]:
            continue
        depth_gap, vergence_gap = scores.depth_gap_m[row], scores.vergence_gap_dpt[row]
        least = best.excess[y, tile.first : tile.end]
        candidate = best.candidate[y, tile.first : tile.end]
        for j in range(cols):
            excess = _excess(depth_gap[j], vergence_gap[j])
            if excess < least[j] or (excess == least[j] < np.inf and i < candidate[j]):
                least[j] = excess
                candidate[j] = i
                variance_m2 = trials.step_variances_m2[i] + scores.variance_m2[row, j]
                best.variance_m2[y, tile.first + j] = variance_m2
                best.shift_m[y, tile.first + j] = scores.shift_m[row, j]
