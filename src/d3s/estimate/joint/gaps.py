"""Plain gaps between textured parts, which take the depth of what is around them.

A plain cell between the bars of a fence and one between printed letters look the same, and only for
the letters is the depth of the surroundings right. What can be told is whether the cells between
the edges have a texture of their own, be it weaker than the noise of a pixel, that both views show
at that depth: then their gradients, without those of the edges, are correlated over a window. Where
many cells have none and are enclosed by edges, nothing is known of the gaps.
"""

from typing import Any, NamedTuple

import numpy as np

from d3s.estimate.joint.kernels import support
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.smoothing import difference_gain
from d3s.estimate.joint.types import TINY, Array
from d3s.runtime.scratch import Scratch
from d3s.types import FloatArray, Mask

# Squared gradient of an edge over that of noise, as of the ridges of `trust`.
_EDGE = 15.0
# Share of the squared gradient of an edge that its blur may leave two and three cells away, and a
# factor on it where gaps are around.
_LEAKS, _MORE = {2: 0.02, 3: 5e-4}, 3.0
# Standard deviations by which gradients are correlated beyond chance, and beyond noise.
_SIGMAS = 3.0


class GapSizes(NamedTuple):
    """Lengths in cells."""

    window: int  # side of the window in which a cell may have texture of its own
    along: int  # least length of a gap
    across: int  # widest gap
    edge: int  # half width of an edge
    around: int  # side of the window over which gaps are counted
    share: float  # of that window that gaps cover


# Chosen on the tuning cases of `benchmarks/attacks.py`, on planes and scenes of the tuning
# textures, and on the scenes of Middlebury to which the model of wrong matches was fitted.
_SHARP = GapSizes(window=17, along=4, across=17, edge=4, around=81, share=0.42)
_DEFOCUSED = GapSizes(window=17, along=5, across=11, edge=3, around=61, share=0.31)


def find_gaps(
    views: tuple[Array, Array], noise: Array, disparity_px: Array, plan: Plan, memory: Scratch
) -> Mask:
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
    memory
        Where intermediate images live.
    """
    import cv2  # imported here: slow to load

    reach, side = _SHARP if plan.is_sharp else _DEFOCUSED, plan.cell_px
    variance = noise * noise.dtype.type(2 * difference_gain(plan.smoothing_px[side], side))
    signal = support.squared_gradient(memory, views[0])
    signal /= np.maximum(variance, TINY)
    if plan.is_sharp:
        leak = None
        core = is_faint = is_plain = _largest(signal, 2) < _EDGE
    else:
        leak = np.maximum(*(_largest(signal, far) * share for far, share in _LEAKS.items()))
        core = is_faint = signal < np.maximum(leak, _EDGE)
        is_plain = signal < np.maximum(_MORE * leak, _EDGE)
    core = _over_lines(cv2.MORPH_OPEN, core, reach.along)
    core &= _over_lines(cv2.MORPH_CLOSE, ~is_faint, reach.across)
    if not _many(core, reach).any():  # saves the time of the rest
        return np.zeros(core.shape, np.bool_)
    if leak is not None:
        variance += variance * leak
    weight = is_faint / np.sqrt(np.maximum(variance, TINY))
    right = _moved(views[1], disparity_px / disparity_px.dtype.type(side))
    sums = support.gradient_sums(memory, views[0], right, weight)
    samples = 2 * np.pi * (plan.smoothing_px[side] / side) ** 2
    core &= ~_has_own_texture(sums, reach.window, max(samples, 1.0))[: len(core), : core.shape[1]]
    is_around = _many(_over_lines(cv2.MORPH_OPEN, core, reach.along), reach)
    core |= is_plain & _over_lines(cv2.MORPH_CLOSE, ~is_plain, reach.across)
    return _grown(core & is_around, reach.edge)


def _moved(view: Array, disparity: Array) -> Array:
    """Return the right view where the left one shows the same."""
    import cv2

    rows, cols = (np.arange(size, dtype=np.float32) for size in view.shape)
    place = (cols - disparity).astype(np.float32, copy=False)
    lines = np.repeat(rows[:, None], cols.size, axis=1)
    edge = cv2.BORDER_REPLICATE
    return np.asarray(cv2.remap(view, place, lines, cv2.INTER_LINEAR, borderMode=edge))


def _has_own_texture(sums: Array, window: int, area: float) -> Mask:
    """Tell where gradients are correlated between the views, in a window around each cell.

    `sums` as of `gradient_sums`, in sigmas of noise; `area` is that of an independent sample.
    """
    import cv2

    side = window // 2 | 1
    edge = cv2.BORDER_REPLICATE
    means = [cv2.blur(plane, (side, side), borderType=edge) for plane in sums]
    count, a, b, c, d, both, left, right = means
    over = 1 / np.maximum(count, 1e-6)
    both -= (a * b + c * d) * over
    left -= (a * a + c * c) * over
    right -= (b * b + d * d) * over
    # Each sample is two differences with half the variance; chance has that of the views.
    least = np.maximum(left * right, np.square(count))
    found = both > _SIGMAS * np.sqrt(least * over * (area / (2 * side**2)))
    return np.asarray(found.repeat(2, 0).repeat(2, 1))


def _many(core: Mask, reach: GapSizes) -> Mask:
    """Tell where many of the cells around lie in gaps or at their edges."""
    import cv2

    rows, cols = core.shape
    some = _grown(core, reach.edge)[::2, ::2].astype(np.float32)
    found = cv2.blur(some, (reach.around // 2 | 1,) * 2) > reach.share
    return np.asarray(found.repeat(2, 0).repeat(2, 1)[:rows, :cols])


def _largest(values: Any, far: int) -> FloatArray:
    """Maximum over a disk."""
    import cv2

    disk = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * far + 1,) * 2)
    return np.asarray(cv2.dilate(values, disk))


def _grown(mask: Mask, far: int) -> Mask:
    return _largest(mask.astype(np.uint8), far) > 0


def _over_lines(operation: int, mask: Mask, length: int) -> Mask:
    """Open or close a mask by lines along the row, the column and the diagonals, in any of them."""
    import cv2

    row, diagonal = np.ones((1, length), np.uint8), np.eye(round(0.71 * length), dtype=np.uint8)
    lines = (row, row.T, diagonal, np.ascontiguousarray(diagonal[::-1]))
    # Outside the frame nothing encloses.
    wide = cv2.copyMakeBorder(mask.astype(np.uint8), *(length,) * 4, cv2.BORDER_CONSTANT, value=0)
    parts = [cv2.morphologyEx(wide, operation, line) for line in lines]
    return np.asarray(np.max(parts, axis=0)[length:-length, length:-length] > 0)
