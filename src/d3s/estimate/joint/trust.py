"""Trust: the probability that the disparity of a cell is wrong by more than a pixel.

A fit knows the noise of its window. It does not know whether the search chose the right surface,
nor whether the texture of the window belongs to the cell at its centre. Evidence about that are the
margin of the search, steps in depth close by, the misfit of the views, and the support: whether
texture of the same depth surrounds the cell. Beside an object in front of a plain wall, texture
lies on one side only: such a cell takes the depth of the object, with a small residual. A logistic
model combines the evidence; `benchmarks/tune_trust.py` fits it.
"""

import numpy as np

from d3s.estimate.joint.kernels import filters, support
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.smoothing import difference_gain
from d3s.estimate.joint.types import Array, CellFit, Evidence, SearchResult, Trust, TrustModel
from d3s.runtime.scratch import Scratch
from d3s.types import FloatArray, Mask

# Squared gradient of a ridge over that of noise. Much less counts noise as texture, much more
# leaves weak texture out.
_RIDGE_FACTOR = 15.0
# Difference of disparity within a surface, in pixels of the search, and the longest gap, in cells.
_SURFACE_PX, _REACH = 0.75, 60
# Difference of disparity that is a step in depth, in pixels of the search.
_STEP_PX = 0.75
# Half side of the minimum over margins, in pixels of the search.
_LEAST_HALF = 3

# Mean probability around a cell of a sharp pair from which on nothing is trusted, and half the side
# of that window: views that show different things match here and there by chance. Real pairs have
# less at 99 % of the cells that are kept, smooth noise more.
_MAX_AROUND, _AROUND_HALF = 0.45, 30

# Fitted to real stereo pairs.
SHARP_MODEL = TrustModel(
    constant=-2.96, margin=-1.38, least=-0.49, step=-0.83, misfit=0.30, move=1.70, gap=-0.01
)
# Fitted to path-traced rooms, and to planes and scenes of the tuning textures, also weak ones.
DEFOCUSED_MODEL = TrustModel(
    constant=-5.49, margin=0.0, least=-2.22, step=-0.40, misfit=0.42, move=2.19, gap=0.63
)


def judge_cells(
    view: Array, noise: Array, fit: CellFit, found: SearchResult, plan: Plan, memory: Scratch
) -> Trust:
    """Return the probability that each disparity is wrong, and the distance to texture.

    Parameters
    ----------
    view
        Left view (rows, cols), one pixel per cell.
    noise
        Variance of white noise around each cell, in the views before smoothing.
    fit
        Fit of each cell.
    found
        Result of the search.
    plan
        Camera and options.
    memory
        Where intermediate images live.
    """
    evidence = gather_evidence(view, noise, fit, found, plan, memory)
    model = SHARP_MODEL if plan.is_sharp else DEFOCUSED_MODEL
    wrong = support.probability(memory, evidence, model)
    if plan.is_sharp:
        around = filters.local_mean(memory, wrong, _AROUND_HALF)
        wrong[around > _MAX_AROUND] = 1
    return Trust(wrong, evidence.nearest_px)


def gather_evidence(
    view: Array, noise: Array, fit: CellFit, found: SearchResult, plan: Plan, memory: Scratch
) -> Evidence:
    """Return what the search and the surroundings tell about each cell.

    Parameters: see `judge_cells`.
    """
    import cv2  # imported here: slow to load

    scale, side = plan.search_scale, plan.cell_px
    start_px = (found.step + found.step.dtype.type(plan.shifts[0])) * scale
    window = np.ones((2 * _LEAST_HALF + 1, 2 * _LEAST_HALF + 1))
    margin, least = found.margin, cv2.erode(found.margin, window)
    if scale > side:
        shape = fit.flags.shape[0], fit.flags.shape[1]
        start_px, margin, least = (
            filters.double(memory, np.ascontiguousarray(part), shape)
            for part in (start_px, margin, least)
        )
    gain = difference_gain(plan.smoothing_px[side], side)
    is_ridge = support.find_ridges(memory, view, noise, 2 * _RIDGE_FACTOR * gain)
    gap, nearest = support.support_gaps(memory, is_ridge, start_px, _SURFACE_PX * scale, _REACH)
    to_px = gap.dtype.type(side)
    return Evidence(
        margin=margin,
        least=least,
        step_px=_step_distance(start_px, _STEP_PX * scale) * side,
        misfit=fit.misfit,
        move=np.abs(fit.disparity_px - start_px) * start_px.dtype.type(1 / scale),
        gap_px=gap * to_px,
        nearest_px=nearest * to_px,
    )


def _step_distance(disparity: Array, limit: float) -> FloatArray:
    """Return the distance of each cell to a step in depth, in cells."""
    is_step = np.zeros(disparity.shape, dtype=np.bool_)
    down = np.abs(disparity[1:] - disparity[:-1]) > limit
    across = np.abs(disparity[:, 1:] - disparity[:, :-1]) > limit
    is_step[1:] |= down
    is_step[:-1] |= down
    is_step[:, 1:] |= across
    is_step[:, :-1] |= across
    return _distance(is_step)


def _distance(mask: Mask) -> FloatArray:
    import cv2

    if not mask.any():
        return np.full(mask.shape, _REACH, dtype=np.float32)
    free = np.logical_not(mask).astype(np.uint8)
    return np.asarray(np.minimum(cv2.distanceTransform(free, cv2.DIST_L2, 5), _REACH))
