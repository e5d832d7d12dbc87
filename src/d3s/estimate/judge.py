"""Which of the depths are to be believed, how much, and why the others are not."""

from d3s.estimate.fitting import Refined
from d3s.estimate.judging import SPREAD_PX, Judged, Judging
from d3s.estimate.operations import Operations
from d3s.estimate.plan import Plan
from d3s.estimate.search import Found


def judged(
    fit: Refined, found: Found, shape: tuple[int, int], plan: Plan, ops: Operations
) -> Judged:
    """Depth, sigma, confidence and flags of every pixel of a frame."""
    # Whether the disparities of the smallest window, and of the next, are of one surface.
    sides = (*plan.options.windows_px[:2], plan.options.windows_px[0])[:2]
    halves = tuple(max(round((px / plan.cell_px - 1) / 2), 1) for px in sides)
    steps = ops.refine.one_surface(fit.disparity_px, halves, SPREAD_PX, 0.0, 0.0)
    flags = ops.judge.of_search(found, plan.shifts.size)
    return ops.judge.judged(fit, steps, flags, judging_of(shape, plan))


def judging_of(shape: tuple[int, int], plan: Plan) -> Judging:
    """Numbers of the judgement of a frame."""
    return Judging(
        shape=shape,
        cell=plan.cell_px,
        per_dpt_px=plan.model.per_dpt_px,
        offset_px=plan.model.offset_px,
        rectification_sigma_px=plan.rectification_sigma_px,
        nearest_m=plan.depth_range_m[0],
        farthest_m=plan.depth_range_m[1],
        min_confidence=plan.options.min_confidence,
    )
