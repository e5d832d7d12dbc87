"""Which of the depths are to be believed, how much, and why the others are not."""

import numpy as np

from d3s.estimate.joint.backend import Operations
from d3s.estimate.joint.confidence_types import Judged, Judging
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.search import Found
from d3s.estimate.joint.types import Refined

# A depth is half as good as can be once its sigma is this, in metres or as a share of the depth.
_SIGMA_M, _SIGMA_SHARE = 0.01, 0.005
# What is left of a correlation without chance, from which on there is texture.
_LEAST_CORRELATION = 0.3
# Residual close by, over what noise and lenses explain: on a plane 3 pixels in 1000 have more.
_LARGEST_MISFIT = 6.0
# Cost by which the best valley must be lower than the next; noise makes one of 1.
_LEAST_MARGIN = 0.05
# Disparities within the small window that are still of one surface, in pixels.
_SPREAD_PX = 2.0
# Ends of the range are not exact to more than this share.
_RANGE_SHARE = 0.005


def judged(
    fit: Refined, found: Found, shape: tuple[int, int], plan: Plan, ops: Operations
) -> Judged:
    """Depth, sigma, confidence and flags of every pixel of a frame."""
    # Whether the disparities of the smallest window are of one surface.
    half = max(round((plan.options.windows_px[0] / plan.cell_px - 1) / 2), 1)
    is_one = ops.refine.one_surface(fit.disparity_px, (half,), _SPREAD_PX, 0.0, 0.0)
    flags = ops.judge.of_search(found, plan.shifts.size, _LEAST_MARGIN)
    if plan.search_scale > plan.cell_px:
        rows, cols = fit.flags.shape
        flags = np.ascontiguousarray(flags.repeat(2, 0).repeat(2, 1)[:rows, :cols])
    return ops.judge.judged(fit, is_one, flags, judging_of(shape, plan))


def judging_of(shape: tuple[int, int], plan: Plan) -> Judging:
    """Numbers of the judgement of a frame."""
    return Judging(
        shape=shape,
        cell=plan.cell_px,
        per_dpt_px=plan.model.per_dpt_px,
        offset_px=plan.model.offset_px,
        rectification_sigma_px=plan.rectification_sigma_px,
        nearest_m=plan.depth_range_m[0] * (1 - _RANGE_SHARE),
        farthest_m=plan.depth_range_m[1] * (1 + _RANGE_SHARE),
        min_confidence=plan.options.min_confidence,
        sigma_m=_SIGMA_M,
        sigma_share=_SIGMA_SHARE,
        least_correlation=_LEAST_CORRELATION,
        largest_misfit=_LARGEST_MISFIT,
    )
