"""Which of the depths? A semi-global search over whole shifts, where the views are small.

The cost of a shift is the misfit of the two views once they are blurred alike: at the right one
both cues agree, stereo and defocus. Paths from four sides then let neighbours decide where a window
alone cannot (Hirschmüller, "Stereo processing by semiglobal matching and mutual information",
PAMI 2008).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.backend import Operations
from d3s.estimate.joint.model import Array
from d3s.estimate.joint.numpy_backend.search import MOST
from d3s.estimate.joint.plan import Plan

# In units of the misfit that noise makes, which is one. Tuned by `benchmarks/ablation.py` on the
# tuning textures; half or twice of each changes the error on planes by less than a tenth.
_LIMIT = 2.0  # a misfit beyond this tells no more: what is occluded fits nowhere
_SMALL_STEP = 1.0  # price of a neighbour whose shift differs by one
_LARGE_STEP = 4.0  # price of a neighbour whose shift is any other
_TOLERANCE = 0.25  # misfit forgiven, as a share of the texture's energy: lenses are not perfect
_WINDOW_HALF = 2
_MEAN_HALF = 15  # brightness that varies more slowly than this is taken out


class Found(NamedTuple):
    """What the search found, at its own resolution, in steps of the shifts from the first one."""

    step: Array
    margin: Array  # how much more misfit the next best valley has, over a window
    seen: NDArray[np.int16]  # step that the right view finds for the same point; -1 if out of it


def search(views: tuple[Array, Array], noise_floor: float, plan: Plan, ops: Operations) -> Found:
    """Best shift of each pixel; `noise_floor` is the misfit that noise alone makes."""
    constant, slope = plan.model.defocus_line(plan.search_scale)
    left, right = (ops.search.without_mean(view, _MEAN_HALF) for view in views)
    first = int(plan.shifts[0])
    costs = ops.search.matching_costs(
        left,
        right,
        first,
        constant + slope * plan.shifts.astype(np.float64),
        half=_WINDOW_HALF,
        floor=noise_floor,
        tolerance=_TOLERANCE,
        limit=_LIMIT,
    )
    price = plan.options.smoothness * MOST / _LIMIT
    pick = ops.search.found(
        costs,
        plan.allowed,
        small=round(price * _SMALL_STEP),
        large=round(price * _LARGE_STEP),
        limit=_LIMIT,
    )
    # By the misfits themselves: paths add up the smallest preference, such as that for a valley
    # that happens to lie at a whole shift, until it looks like certainty.
    margin = ops.search.window_means(pick.gap, _MEAN_HALF // 2)
    step = ops.search.median_of_nine(pick.step)
    return Found(step, margin, ops.search.seen(pick, first))
