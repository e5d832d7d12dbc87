"""Plain gaps between textured parts, which take the depth of what is around them.

A plain cell between the bars of a fence and one between printed letters look the same, and only for
the letters is the depth of the surroundings right. What can be told is whether the cells between
the edges have a texture of their own, be it weaker than the noise of a pixel, that both views show
at that depth: then their gradients, without those of the edges, are correlated over a window. Where
many cells have none and are enclosed by edges, nothing is known of the gaps. A gap that is both
short and narrower than the blur shows nothing of its own, and is not found.
"""

from functools import reduce
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
# Standard deviations by which gradients are correlated beyond chance, and beyond noise.
_SIGMAS = 3.0


class GapKind(NamedTuple):
    """Limits of a plain gap; lengths in cells."""

    across: int  # its largest width
    edge: int  # half width of an edge
    around: int  # side of the window over which gaps are counted
    share: float  # of that window that gaps cover with their edges
    along: int = 0  # least length of a gap along a line
    long: int = 0  # its least extent, round corners
    clear: int = 0  # without lenses: least distance from an edge,
    apart: int = 0  # and that at which gradients are texture of their own
    leaks: tuple[tuple[int, float], ...] = ()  # with lenses: share that an edge leaves at distances


# Chosen on the tuning cases of `benchmarks/attacks.py`, on planes and scenes of the tuning
# textures, and on the scenes of Middlebury to which the model of wrong matches was fitted. Long
# gaps of sharp views may be narrow: textures have plain spots, but no long ones. With lenses they
# have: gaps full of the blur of their edges look like coarse textures behind real lenses.
_SHARP = (
    GapKind(along=4, across=17, edge=4, around=81, share=0.42, clear=2, apart=2),
    GapKind(long=30, across=17, edge=4, around=81, share=0.58, clear=1, apart=3),
)
_DEFOCUSED = (
    GapKind(along=5, across=11, edge=3, around=61, share=0.31, leaks=((2, 0.02), (3, 5e-4))),
)
_WINDOW = 17  # side of the window in which a cell may have texture of its own
_MORE = 3.0  # factor on leaks where gaps are around


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

    side = plan.cell_px
    variance = noise * noise.dtype.type(2 * difference_gain(plan.smoothing_px[side], side))
    signal = support.squared_gradient(memory, views[0])
    signal /= np.maximum(variance, TINY)
    area = max(2 * np.pi * (plan.smoothing_px[side] / side) ** 2, 1.0)
    found = np.zeros(signal.shape, np.bool_)
    for kind in _SHARP if plan.is_sharp else _DEFOCUSED:
        leak = _leak(signal, kind)
        is_plain = _largest(signal, kind.clear) < np.maximum(leak, _EDGE)
        core = _long_parts(is_plain, kind)
        if not _many(core, kind).any():  # saves the time of the rest
            continue
        core &= _over_lines(cv2.MORPH_CLOSE, ~is_plain, kind.across)
        is_sample = is_plain if kind.leaks else _largest(signal, kind.apart) < _EDGE
        weight = is_sample / np.sqrt(np.maximum(variance + variance * leak, TINY))
        right = _moved(views[1], disparity_px / disparity_px.dtype.type(side))
        sums = support.gradient_sums(memory, views[0], right, weight)
        core &= ~_has_own_texture(sums, area)[: len(core), : core.shape[1]]
        is_around = _many(_long_parts(core, kind), kind)
        is_plain |= signal < np.maximum(_MORE * leak, _EDGE) if kind.leaks else False
        core |= is_plain & _over_lines(cv2.MORPH_CLOSE, ~is_plain, kind.across)
        found |= _grown(core & is_around, kind.edge)
    return found


def _leak(signal: Array, kind: GapKind) -> Any:
    """Return how much of the squared gradient of each cell edges around may have left."""
    parts = [_largest(signal, far) * signal.dtype.type(share) for far, share in kind.leaks]
    return reduce(np.maximum, parts, signal.dtype.type(0))


def _moved(view: Array, disparity: Array) -> Array:
    """Return the right view where the left one shows the same."""
    import cv2

    rows, cols = (np.arange(size, dtype=np.float32) for size in view.shape)
    place = (cols - disparity).astype(np.float32, copy=False)
    lines = np.repeat(rows[:, None], cols.size, axis=1)
    edge = cv2.BORDER_REPLICATE
    return np.asarray(cv2.remap(view, place, lines, cv2.INTER_LINEAR, borderMode=edge))


def _has_own_texture(sums: Array, area: float) -> Mask:
    """Tell where gradients are correlated between the views, in a window around each cell.

    `sums` as of `gradient_sums`, in sigmas of noise; `area` is that of an independent sample.
    """
    import cv2

    side = _WINDOW // 2 | 1
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


def _many(core: Mask, kind: GapKind) -> Mask:
    """Tell where many of the cells around lie in gaps or at their edges."""
    import cv2

    rows, cols = core.shape
    some = _grown(core, kind.edge)[::2, ::2].astype(np.float32)
    found = cv2.blur(some, (kind.around // 2 | 1,) * 2) > kind.share
    return np.asarray(found.repeat(2, 0).repeat(2, 1)[:rows, :cols])


def _largest(values: Any, far: int) -> FloatArray:
    """Maximum over a disk."""
    import cv2

    if not far:
        return np.asarray(values)
    disk = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * far + 1,) * 2)
    return np.asarray(cv2.dilate(values, disk))


def _grown(mask: Mask, far: int) -> Mask:
    return _largest(mask.astype(np.uint8), far) > 0


def _long_parts(mask: Mask, kind: GapKind) -> Mask:
    """Return the parts of a mask that are long enough for a gap."""
    import cv2

    if kind.along:
        return _over_lines(cv2.MORPH_OPEN, mask, kind.along)
    _, label, sizes, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    is_long = sizes[:, cv2.CC_STAT_WIDTH : cv2.CC_STAT_HEIGHT + 1].max(axis=1) >= kind.long
    is_long[0] = False
    return np.asarray(is_long[label])


def _over_lines(operation: int, mask: Mask, length: int) -> Mask:
    """Open or close a mask by lines along the row, the column and the diagonals, in any of them."""
    import cv2

    row, diagonal = np.ones((1, length), np.uint8), np.eye(round(0.71 * length), dtype=np.uint8)
    lines = (row, row.T, diagonal, np.ascontiguousarray(diagonal[::-1]))
    # Outside the frame nothing encloses.
    wide = cv2.copyMakeBorder(mask.astype(np.uint8), *(length,) * 4, cv2.BORDER_CONSTANT, value=0)
    parts = [cv2.morphologyEx(wide, operation, line) for line in lines]
    return np.asarray(np.max(parts, axis=0)[length:-length, length:-length] > 0)
