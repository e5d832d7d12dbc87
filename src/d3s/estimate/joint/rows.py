"""Rows by which the right view lies lower than the left one, after the rectification.

The openings of real lenses are off their axes, by some micrometres up or down, and coma and clipped
pupils shift points too. This moves the views by rows that depend on the depth, which no
rectification can take out. The search finds the matches, and the rows follow from the residual:
the left view less the right one is the rows times the vertical derivative. They are measured over
blocks of cells; over the frame and the depth they are a smooth function.
"""

import numpy as np

from d3s.estimate.diagnosis.light import robust_fit
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.types import Array
from d3s.types import FloatArray, Mask

Views = tuple[Array, Array]

_BLOCK = 16  # side of a block in cells
_STRIDE = 3  # one row of blocks of so many is measured: hundreds of blocks are enough
_REACH = 2  # rows above and below a block that its vertical derivative needs
_FEWEST = 60  # blocks for a fit of twelve numbers
_STEP_PX = 2.0  # extent of the disparities of a block on one surface, in pixels of the frame
_DEPTHS_DPT = 0.1  # spread of 1/Z from which on a dependence on the depth can be told
_LEAST_PX, _MOST_PX = 0.02, 1.0  # rows that are left as they are, and that no camera has
_SHARE = 5  # percent of the blocks at each end of 1/Z, beyond which nothing is extrapolated
_SMALLEST = 0.02  # size, over the largest, of combinations of terms that the blocks can tell
_SIGMAS = 4.0  # combinations of terms whose factor is less certain count as 0
_DERIVATIVE = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12


def measure_rows(levels: dict[int, Views], start_px: Array, plan: Plan) -> Array | None:
    """Return the rows by which the right view lies lower at each cell, in pixels of the frame.

    None for cameras whose lenses are not known to have errors, and for rows that do not matter.

    Parameters
    ----------
    levels
        Left and right view by scale.
    start_px
        Disparity of each cell, in pixels of the frame.
    plan
        Camera and options.
    """
    field, scale = plan.field, plan.cell_px
    if field is None or min(start_px.shape) < _BLOCK + 2 * _REACH:
        return None
    used = _used_rows(start_px.shape[0])
    views = [np.asarray(view[used], dtype=np.float32) for view in levels[scale]]
    shift = np.asarray(start_px[used], dtype=np.float32) / np.float32(scale)
    rows, weight, is_good = _by_blocks(views[0], views[1], shift, _STEP_PX / scale)
    if is_good.sum() < _FEWEST:
        return None
    x, y = field.places(start_px.shape, scale)
    places = np.broadcast_arrays(x, y[used], field.vergence_dpt(start_px[used]))
    across, down, vergence = (_block_means(part)[is_good] for part in places)
    low, middle, high = np.percentile(vergence, (_SHARE, 50, 100 - _SHARE))
    terms = [np.ones(across.shape), across, down, across**2, across * down, down**2]
    if high - low > _DEPTHS_DPT:
        terms += [(vergence - middle) * term for term in terms]
    factors = _fitted(np.stack(terms, axis=1), scale * rows[is_good], np.sqrt(weight[is_good]))
    if factors is None:
        return None
    kind = start_px.dtype
    total = _polynomial(factors[:6], x, y, kind)
    if factors.size > 6:
        change = np.clip(field.vergence_dpt(start_px), low, high) - middle
        total = total + change.astype(kind) * _polynomial(factors[6:], x, y, kind)
    if np.sqrt(np.mean(np.square(total))) < _LEAST_PX:
        return None
    return np.clip(total, -_MOST_PX, _MOST_PX)


def _used_rows(count: int) -> Array:
    """Return the rows of every few blocks, with those that their derivatives need."""
    high = _BLOCK + 2 * _REACH
    starts = np.arange(0, count - high + 1, _STRIDE * _BLOCK)
    return np.asarray((starts[:, np.newaxis] + np.arange(high)).ravel())


def _fitted(terms: FloatArray, target: FloatArray, root: FloatArray) -> FloatArray | None:
    """Return the factors of the terms (samples, terms), which need not all be told apart."""
    weighted = terms * root[:, np.newaxis]
    _, sizes, directions = np.linalg.svd(weighted, full_matrices=False)
    known = directions[sizes > _SMALLEST * sizes[0]]
    found = robust_fit(weighted @ known.T, target * root)
    if found is None:
        return None
    values, sigmas = found
    return np.asarray(np.where(np.abs(values) > _SIGMAS * sigmas, values, 0) @ known)


def _polynomial(factors: FloatArray, x: FloatArray, y: FloatArray, kind: np.dtype) -> Array:
    """Return the value of 1, x, y, x², xy and y², times the factors."""
    one, by_x, by_y, by_xx, by_xy, by_yy = factors
    along, down = one + by_x * x + by_xx * x**2, by_y * y + by_yy * y**2
    mixed = (by_xy * y).astype(kind) * x.astype(kind)
    return np.asarray(along.astype(kind) + down.astype(kind) + mixed)


def _by_blocks(
    left: Array, right: Array, shift: Array, step: float
) -> tuple[FloatArray, FloatArray, Mask]:
    """Return the rows of each block, their weight, and whether the block lies on one surface.

    One pixel of the views is a cell; the views are strips of one row of blocks each.
    """
    import cv2  # imported here: slow to load

    size = left.shape
    place = np.arange(size[1], dtype=np.float32) - shift
    line = np.broadcast_to(np.arange(size[0], dtype=np.float32)[:, np.newaxis], size).copy()
    moved = cv2.remap(right, place, line, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    mean, residual, one = np.float32(0.5) * (left + moved), left - moved, np.ones(1)
    across = cv2.sepFilter2D(mean, -1, _DERIVATIVE, one)
    down = cv2.sepFilter2D(mean, -1, one, _DERIVATIVE)
    pairs = (across, across), (across, down), (down, down), (residual, across), (residual, down)
    xx, xy, yy, ex, ey = (_block_means(first * second) for first, second in pairs)
    # What is left of the disparity is a second unknown of each block.
    weight = yy - xy**2 / np.maximum(xx, 1e-30)
    rows = (ey - ex * xy / np.maximum(xx, 1e-30)) / np.maximum(weight, 1e-30)
    low, high = (_blocks(shift).min(axis=(1, 3)), _blocks(shift).max(axis=(1, 3)))
    first = _BLOCK * np.arange(rows.shape[1])
    is_good = (high - low < step) & (weight > 0)
    is_good &= (first - high >= 1) & (first + _BLOCK - low <= size[1] - 2)
    return rows, weight, is_good


def _blocks(image: Array) -> Array:
    """Return the cells by block: (blocks down, rows, blocks across, cols)."""
    high, cols = _BLOCK + 2 * _REACH, image.shape[1] // _BLOCK
    strips = image[:, : cols * _BLOCK].reshape(-1, high, cols, _BLOCK)
    return strips[:, _REACH : high - _REACH]


def _block_means(image: Array) -> FloatArray:
    return np.asarray(_blocks(image).mean(axis=3).mean(axis=1), dtype=np.float64)
