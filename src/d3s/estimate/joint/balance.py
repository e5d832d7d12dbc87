"""Balance: the right view's contrast, made equal to the left one's before the fit.

The search compares order and slope of the brightness, which unlike exposure hardly changes. The fit
compares the brightness itself: a gain of 0.6 in one view would leave a residual as large as the
texture. The ratio of contrasts is measured at the matches that the search has found, over blocks,
since shading differs from place to place. Views with lenses are left as they are: their blur
differs, and with it the contrast.
"""

import numpy as np

from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.types import Array

Views = tuple[Array, Array]

_BLOCK = 48  # side of a block in cells: some hundred independent samples of texture
_STRIDE = 2  # every second cell in both directions is enough
_TOLERANCE = 0.05  # typical difference of contrasts that is left as it is
_LIMITS = 0.25, 4.0  # ratios beyond these are no exposure, but a wrong match
_NEIGHBOURS = 3  # blocks each way that are averaged


def balance_contrast(levels: dict[int, Views], start_px: Array, plan: Plan) -> dict[int, Views]:
    """Return the views by scale, the right one multiplied by the local ratio of contrasts.

    Parameters
    ----------
    levels
        Left and right view by scale.
    start_px
        Disparity of each cell, in pixels of the frame.
    plan
        Camera and options.
    """
    if not plan.is_sharp:
        return levels
    ratios = _ratios(*levels[plan.cell_px], start_px / plan.cell_px)
    if np.median(np.abs(ratios - 1)) <= _TOLERANCE:
        return levels
    import cv2  # imported here: slow to load

    out = {}
    for scale, (left, right) in levels.items():
        rows, cols = right.shape
        gain = cv2.resize(ratios, (cols, rows), interpolation=cv2.INTER_LINEAR)
        out[scale] = left, right * gain.astype(right.dtype)
    return out


def _ratios(left: Array, right: Array, shift: Array) -> Array:
    """Return the standard deviation of the left view over the right one's, by blocks."""
    import cv2

    rows, cols = left.shape
    places = np.arange(0, cols, _STRIDE)
    matches = np.rint(places - shift[::_STRIDE, ::_STRIDE]).astype(np.int64)
    is_inside = (matches >= 0) & (matches < cols)
    lines = np.broadcast_to(np.arange(0, rows, _STRIDE)[:, None], matches.shape)[is_inside]
    matches = matches[is_inside]
    shape = -(-rows // _BLOCK), -(-cols // _BLOCK)
    # Of equal size: the gains between their centres are interpolated.
    block = lines * shape[0] // rows * shape[1] + matches * shape[1] // cols
    one = left[::_STRIDE, ::_STRIDE][is_inside].astype(np.float64)
    other = right[lines, matches].astype(np.float64)
    sums = (
        np.bincount(block, weights, shape[0] * shape[1]).reshape(shape)
        for weights in (np.ones_like(one), one, one**2, other, other**2)
    )
    # Means of neighbouring blocks; blocks with more texture count more.
    count, *moments = (
        cv2.blur(part, (_NEIGHBOURS, _NEIGHBOURS), borderType=cv2.BORDER_REPLICATE) for part in sums
    )
    one, one_square, other, other_square = (part / np.maximum(count, 1e-9) for part in moments)
    spread, other_spread = one_square - one**2, other_square - other**2
    is_known = (spread > 0) & (other_spread > 0)
    ratios = np.sqrt(np.where(is_known, spread, 1) / np.where(is_known, other_spread, 1))
    return np.asarray(np.clip(ratios, *_LIMITS))
