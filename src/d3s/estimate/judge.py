"""Which of the depths are to be believed, how much, and why the others are not."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.flags import Flag
from d3s.estimate.holes import Holes, Mask
from d3s.estimate.levels import is_inside, repeated
from d3s.estimate.operations import Array, Operations
from d3s.estimate.plan import Plan
from d3s.estimate.refine import Fit
from d3s.estimate.search import Found

# How many of its own standard deviations chance may move a correlation, among all the shifts.
_CHANCE = 4.0
# A depth is half as good as can be once its sigma is this, in metres or as a share of the depth.
_SIGMA_M, _SIGMA_SHARE = 0.01, 0.005
# What is left of a correlation without chance, from which on there is texture.
_LEAST_CORRELATION = 0.3
# Residual close by, over what noise and lenses explain: on a plane 3 pixels in 1000 have more.
_LARGEST_MISFIT = 6.0
# Cost by which the best valley must be lower than the next, per path; noise makes one of 1.
_LEAST_MARGIN = 0.05
# Disparities within the small window that are still of one surface, in pixels.
_SPREAD_PX = 2.0
# What a step nearby does to sigma: the window may hold a strip of the other surface.
_CAUTION = 1.5


class Unseen(NamedTuple):
    """Holes of both kinds."""

    missing: Holes
    clipped: Holes


class Judged(NamedTuple):
    """A depth map in the precision of the operations."""

    depth_m: Array
    sigma_m: Array
    confidence: Array
    flags: NDArray[np.uint16]
    disparity_px: Array  # of every pixel, whatever its flags


def judged(fit: Fit, found: Found, unseen: Unseen, plan: Plan, ops: Operations) -> Judged:
    """Depth, sigma, confidence and flags of a fit."""
    vergence = plan.model.vergence_dpt(fit.disparity_px)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        depth = np.where(vergence > 0, 1.0 / vergence, np.inf)
        sigma_px = np.hypot(_cautious_sigma_px(fit, plan, ops), plan.rectification_sigma_px)
        sigma = depth * depth * sigma_px / plan.model.per_dpt_px
        scale = np.maximum(_SIGMA_M, _SIGMA_SHARE * depth)
        correlation = _beyond_chance(fit.correlation, fit.samples)
        confidence = np.nan_to_num(correlation / (1.0 + sigma / scale), nan=0.0, posinf=0.0)
    flags = np.zeros(depth.shape, dtype=np.uint16)
    for flag, mask in (
        *_of_frame(fit, unseen, ops),
        *_of_search(found, plan, depth.shape),
        (Flag.LOW_TEXTURE, ~(correlation >= _LEAST_CORRELATION)),
        (Flag.OUT_OF_RANGE, _outside(depth, plan)),
        (Flag.INCONSISTENT, ~(fit.misfit <= _LARGEST_MISFIT) | _has_step(fit, 0, plan, ops)),
        (Flag.LOW_CONFIDENCE, ~(confidence >= plan.options.min_confidence)),
    ):
        flags[mask] |= np.uint16(flag)
    keep = flags == 0
    return Judged(
        depth_m=np.where(keep, depth, np.nan),
        sigma_m=np.where(keep, sigma, np.nan),
        confidence=np.clip(confidence, 0.0, 1.0),
        flags=flags,
        disparity_px=fit.disparity_px,
    )


def _beyond_chance(correlation: Array, samples: Array) -> Array:
    """What is left of a correlation if chance had a hand in it, 0 to 1 (by Fisher's z)."""
    z = np.arctanh(np.clip(correlation, -1 + 1e-6, 1 - 1e-6))
    return np.asarray(np.maximum(np.tanh(z - _CHANCE / np.sqrt(np.maximum(samples - 3, 1))), 0))


def _outside(depth_m: Array, plan: Plan) -> Mask:
    nearest, farthest = plan.depth_range_m
    return np.asarray(~((depth_m >= 0.995 * nearest) & (depth_m <= 1.005 * farthest)))


def _has_step(fit: Fit, window: int, plan: Plan, ops: Operations) -> Mask:
    """Where the disparities in a window, by its place, are of several surfaces, or of none."""
    halves = plan.halves(1)
    extent = ops.window_extent(fit.disparity_px, halves[min(window, len(halves) - 1)])
    return np.asarray(~(extent <= _SPREAD_PX))


def _cautious_sigma_px(fit: Fit, plan: Plan, ops: Operations) -> Array:
    """Sigma as fitted, and more where a step is near."""
    return np.where(_has_step(fit, 1, plan, ops), _CAUTION * fit.sigma_px, fit.sigma_px)


def _of_search(found: Found, plan: Plan, shape: tuple[int, ...]) -> list[tuple[Flag, Mask]]:
    """Flags that come from the search, at full size."""
    step_px = float(plan.search_scale)
    gap = found.seen_px - found.disparity_px
    first, last = (step_px * shift for shift in (plan.shifts[0], plan.shifts[-1]))
    at_end = (found.disparity_px <= first + 0.5 * step_px) | (
        found.disparity_px >= last - 0.5 * step_px
    )
    masks = {
        Flag.OCCLUDED: gap > step_px,
        Flag.INCONSISTENT: gap < -step_px,
        Flag.AMBIGUOUS: ~(found.margin >= _LEAST_MARGIN),
        Flag.OUT_OF_RANGE: at_end,
    }
    return [(flag, repeated(mask, plan.search_scale, shape)) for flag, mask in masks.items()]


def _of_frame(fit: Fit, unseen: Unseen, ops: Operations) -> list[tuple[Flag, Mask]]:
    """Flags of windows that leave the frame, or hold pixels without an intensity."""
    flags = [(Flag.BORDER, ~is_inside(fit.disparity_px, fit.half_px))]
    kinds = zip((Flag.INVALID_INPUT, Flag.SATURATED), unseen, strict=True)
    for flag, holes in ((flag, holes) for flag, holes in kinds if holes.exist):
        touched = np.zeros(fit.disparity_px.shape, dtype=np.bool_)
        for reach in np.unique(fit.reach_px):
            here = fit.reach_px == reach
            touched |= here & holes.near(int(reach), fit.disparity_px, 1, ops)
        flags.append((flag, touched))
    return flags
