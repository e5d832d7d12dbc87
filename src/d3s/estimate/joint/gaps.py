"""Plain gaps between textured parts: whose depth is it?

A plain cell between the bars of a fence and one between printed letters look the same. Both take
the depth of what is around them, and only for the letters is it right. What can be told apart is
whether the cells between the edges have a texture of their own, be it weaker than the noise of a
pixel, that both views show at that depth: then their gradients, over a window and without those of
the edges, are correlated. Without, they are plain, and where much is plain and enclosed by texture,
nothing there is known.
"""

from typing import Any, NamedTuple

import numpy as np

from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.smoothing import difference_gain
from d3s.estimate.joint.types import Array
from d3s.types import FloatArray, Image, Mask

# Squared gradient of an edge over that of noise, as of the ridges of `trust`.
_EDGE = 15.0
# Share of an edge's squared gradient that smoothing and blur leave two and three cells away.
_LEAKS = {2: 0.02, 3: 5e-4}
# Factor on it where gaps are around.
_MORE = 3.0
# Standard deviations by which gradients are correlated beyond chance, and beyond noise.
_SIGMAS = 3.0


class Reach(NamedTuple):
    """Lengths in cells."""

    window: int  # side of the window that texture of one's own is looked for in
    across: int  # widest gap
    around: int  # side of the window over which gaps are counted
    edge: int  # half width of an edge
    least: int  # narrowest gap
    share: float  # of the window around that gaps cover


# Chosen on the tuning cases of `benchmarks/attack_gaps.py` and tuning scenes, and on Middlebury.
_SHARP = Reach(window=17, across=17, around=81, edge=4, least=3, share=0.32)
_DEFOCUSED = Reach(window=17, across=11, around=61, edge=3, least=2, share=0.2)


def find_gaps(views: tuple[Array, Array], noise: Array, disparity_px: Array, plan: Plan) -> Mask:
    """Return the cells in plain gaps and at their edges.

    Parameters
    ----------
    views
        Left and right view (rows, cols), one pixel per cell.
    noise
        Variance of white noise around each cell, in the views before smoothing.
    disparity_px
        Disparity of each cell.
    plan
        Camera and options.
    """
    import cv2  # imported here: slow to load

    reach, side = _SHARP if plan.is_sharp else _DEFOCUSED, plan.cell_px
    smoothing_px = plan.smoothing_px[side]
    left, right = (view.astype(np.float32, copy=False) for view in views)
    noise = noise.astype(np.float32, copy=False)
    place = np.arange(left.shape[1]) - disparity_px / side
    rows = np.broadcast_to(np.arange(left.shape[0], dtype=np.float32)[:, None], left.shape)
    moved = cv2.remap(
        right,
        place.astype(np.float32),
        rows.copy(),
        cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    one, other = _gradients(left), _gradients(moved)
    variance = np.float32(2 * difference_gain(smoothing_px, side)) * noise
    signal = (one[0] ** 2 + one[1] ** 2) / variance
    if plan.is_sharp:
        leak = np.zeros_like(signal)
        is_faint = is_plain = _largest(signal, 2) < _EDGE
    else:
        leak = np.asarray(
            np.max([share * _largest(signal, far) for far, share in _LEAKS.items()], axis=0)
        )
        is_faint = signal < np.maximum(leak, _EDGE)
        is_plain = signal < np.maximum(_MORE * leak, _EDGE)
    weight = is_faint / np.sqrt(variance * (1 + leak))
    has_own = _has_own_texture(one, other, is_faint, weight, reach.window, smoothing_px / side)
    core = _opened(is_faint & ~has_own, reach.least) & _enclosed(~is_faint, reach.across)
    size = (reach.around, reach.around)
    share = cv2.blur(_grown(core, reach.edge).astype(np.float32), size)
    core |= is_plain & _enclosed(~is_plain, reach.across)
    core &= share > reach.share
    return _grown(core, reach.edge)


def _gradients(view: Image) -> tuple[FloatArray, FloatArray]:
    import cv2

    return tuple(
        cv2.Sobel(view, cv2.CV_32F, *way, ksize=1, borderType=cv2.BORDER_REPLICATE)
        for way in ((1, 0), (0, 1))
    )


def _has_own_texture(one, other, is_faint, weight, side: int, smoothing: float) -> Mask:
    """Whether the gradients of faint cells are correlated between the views, over a window."""
    import cv2

    shape = is_faint.shape
    half = shape[1] // 2 + shape[1] % 2, shape[0] // 2 + shape[0] % 2

    def mean(values: Any) -> FloatArray:
        small = cv2.resize(values, half, interpolation=cv2.INTER_AREA)
        return cv2.blur(small, (side // 2 | 1,) * 2, borderType=cv2.BORDER_REPLICATE)

    count = mean(is_faint.astype(np.float32)) + 1e-6
    both = first = second = 0.0
    for a, b in zip(one, other, strict=True):
        a, b = a * weight, b * weight
        mean_a, mean_b = mean(a), mean(b)
        both = both + mean(a * b) - mean_a * mean_b / count
        first = first + mean(a * a) - mean_a**2 / count
        second = second + mean(b * b) - mean_b**2 / count
    samples = count * side**2 / max(2 * np.pi * smoothing**2, 1.0)
    chance = np.sqrt(np.maximum(first * second, 1e-12) / (2 * samples))
    noise = np.maximum(chance, count * np.sqrt(0.5 / samples))
    found = (both > _SIGMAS * noise).astype(np.uint8)
    return cv2.resize(found, shape[::-1], interpolation=cv2.INTER_NEAREST) > 0


def _largest(values: Image, far: int) -> FloatArray:
    import cv2

    return cv2.dilate(values, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * far + 1,) * 2))


def _grown(mask: Mask, far: int) -> Mask:
    return _largest(mask.astype(np.uint8), far) > 0


def _opened(mask: Mask, side: int) -> Mask:
    import cv2

    square = np.ones((side, side), np.uint8)
    return cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, square) > 0


def _enclosed(mask: Mask, across: int) -> Mask:
    """Cells between two of a mask on opposite sides: along the row, the column or a diagonal."""
    import cv2

    diagonal = np.eye(int(0.71 * across), dtype=np.uint8)
    row = np.ones((1, across), np.uint8)
    values, out = mask.astype(np.uint8), np.zeros(mask.shape, np.uint8)
    values = cv2.copyMakeBorder(values, *(across,) * 4, cv2.BORDER_CONSTANT, value=0)
    for line in (row, row.T, diagonal, np.ascontiguousarray(diagonal[::-1])):
        out |= cv2.morphologyEx(values, cv2.MORPH_CLOSE, line)[across:-across, across:-across]
    return out > 0
