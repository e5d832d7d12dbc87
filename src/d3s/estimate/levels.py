"""The refinement from coarse to fine: each pixel at the scale that its blur asks for."""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.holes import Holes, Mask
from d3s.estimate.operations import Array, Operations
from d3s.estimate.plan import Plan
from d3s.estimate.refine import Fit, Level, Windows, refine
from d3s.estimate.search import Found

Views = tuple[Array, Array]

# From which blur radius on, in pixels of the frame, views are fitted at this scale. Where blur is
# wide nothing is lost by it, and the noise that second derivatives bring is.
_BLUR_PX = {2: 4.5, 4: 6.0}
# Half the difference of the blur variances that a Laplacian stands for well enough, in square
# pixels of the scale it is taken at.
_DEFOCUS_PX2 = 0.7
# Disparities of one surface differ by less than this within a window, in pixels or as a share.
_STEP_PX, _STEP_SHARE = 2.0, 0.06
# How far the fit may go from where it started, in pixels of its scale.
_REACH = 1.5


def refined(
    levels: dict[int, Views],
    found: Found,
    noise: Array,
    holes: Holes,
    plan: Plan,
    ops: Operations,
) -> Fit:
    """Fit of each pixel of the frame.

    `levels` has the views by scale; `noise` is the variance around each pixel of the frame.
    """
    shape = levels[1][0].shape
    wanted = _scales(repeated(found.disparity_px, plan.search_scale, shape), levels, plan)
    best: Fit | None = None
    start = found.disparity_px
    scale_of_start = plan.search_scale
    for scale in sorted(levels, reverse=True):
        here = wanted == scale
        if not here.any() and (scale > plan.search_scale or best is not None):
            continue
        views = levels[scale]
        if scale > plan.search_scale:
            begin = _thinned(start, scale // plan.search_scale)
        else:
            begin = enlarged(start, scale_of_start // scale, views[0].shape)
        fit = _fit(views, scale, begin, noise, holes, plan, ops)
        if scale > plan.search_scale:  # the search stands where the coarse fit is not asked for
            coarse = enlarged(fit.disparity_px, scale // plan.search_scale, start.shape)
            start = np.where(_thinned(here, plan.search_scale), coarse, start)
        else:
            start, scale_of_start = fit.disparity_px, scale
        full = fit if scale == 1 else _full_size(fit, scale, shape)
        best = full if best is None else _merged(here, full, best)
    if best is None:
        raise RuntimeError("there must be a level")
    return best


def _scales(disparity_px: Array, levels: dict[int, Views], plan: Plan) -> Array:
    """Scale at which each pixel is fitted."""
    blur, scales = plan.blur_px(disparity_px), np.ones(disparity_px.shape, dtype=np.int64)
    constant, slope = plan.model.defocus_line(1)
    defocus = np.abs(constant + slope * disparity_px)
    for scale, least_px in _BLUR_PX.items():
        if scale in levels:
            scales[(blur >= least_px) | (defocus > _DEFOCUS_PX2 * (scale / 2) ** 2)] = scale
    return scales


def _fit(
    views: Views,
    scale: int,
    start_px: Array,
    noise: Array,
    holes: Holes,
    plan: Plan,
    ops: Operations,
) -> Fit:
    # Noise that is white in the frame is so in a shrunk view, and weaker by the pixels that went
    # into one.
    own = _thinned(noise, scale) / scale**2
    level = Level.of(views, scale, plan.smoothing_px[scale] / scale, own, ops)
    halves = plan.halves(scale)
    usable = [_is_one_surface(start_px, scale, half, plan, ops) for half in halves[1:]]
    if holes.exist:
        for mask, half in zip(usable, halves[1:], strict=True):
            mask &= ~holes.near(half * scale + level.reach_px, start_px, scale, ops)
    return refine(
        level,
        plan.model,
        start_px / scale,
        Windows.of(halves, usable, start_px.shape, ops),
        rounds=plan.options.rounds,
        reach=_REACH,
    )


def _is_one_surface(
    disparity_px: Array, scale: int, half: int, plan: Plan, ops: Operations
) -> Mask:
    """Whether a window is within both views, and its disparities may be of one surface."""
    share = _STEP_SHARE * np.abs(disparity_px - plan.model.offset_px)
    is_one = ops.window_extent(disparity_px, half) <= np.maximum(_STEP_PX, share)
    # A pixel of a shrunk view stands for those after it, too: one more keeps them all inside.
    return np.asarray(is_one & is_inside(disparity_px / scale, half + (scale > 1)))


def is_inside(disparity: Array, half: NDArray[np.int64] | int) -> Mask:
    """Whether a window and its match lie within the frame."""
    rows, cols = disparity.shape
    row, col = np.arange(rows)[:, None], np.arange(cols)[None, :]
    there = col - disparity
    across = np.minimum(np.minimum(col, there), cols - 1 - np.maximum(col, there))
    return np.asarray((across >= half) & (np.minimum(row, rows - 1 - row) >= half))


def _thinned(image: Array, step: int) -> Array:
    return np.ascontiguousarray(image[::step, ::step])


def _merged(mask: Mask, first: Fit, second: Fit) -> Fit:
    return Fit(*(np.where(mask, a, b) for a, b in zip(first, second, strict=True)))


def _full_size(fit: Fit, scale: int, shape: tuple[int, ...]) -> Fit:
    return Fit(
        *(
            enlarged(part, scale, shape) if part.dtype.kind == "f" else repeated(part, scale, shape)
            for part in fit
        )
    )


def repeated(image: Array, scale: int, shape: tuple[int, ...]) -> Array:
    """Image of a shape in which every pixel stands `scale` times each way."""
    if scale == 1:
        return image
    return np.ascontiguousarray(image.repeat(scale, 0).repeat(scale, 1)[: shape[0], : shape[1]])


def enlarged(image: Array, scale: int, shape: tuple[int, ...]) -> Array:
    """Image of a shape, linear between the pixels, which stand at every `scale`-th."""
    if scale == 1:
        return image
    for axis, size in enumerate(shape):
        place = np.arange(size)
        low = place // scale
        high = np.minimum(low + 1, image.shape[axis] - 1)
        weight = ((place % scale) / scale).astype(image.dtype)
        weight = weight[:, None] if axis == 0 else weight[None, :]
        image = (1 - weight) * image.take(low, axis) + weight * image.take(high, axis)
    return image
