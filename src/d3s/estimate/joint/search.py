"""Search: the best whole shift of each pixel, by semi-global matching of shrunk views.

The cost of a shift is the misfit of the two views after blurring them alike: at the right shift
stereo and defocus agree. Paths from four sides carry the decision to pixels whose own window does
not suffice (Hirschmüller, "Stereo processing by semiglobal matching and mutual information", PAMI
2008).
"""

import numpy as np

from d3s.estimate.joint.backend import Backend
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.types import (
    MAX_COST,
    Array,
    CostParameters,
    PathParameters,
    SearchResult,
)

# In units of the misfit that noise makes, which is one. Tuned by `benchmarks/ablation.py` on the
# tuning textures; half or twice each value changes the error on planes by less than a tenth.
_LIMIT = 2.0  # larger misfits carry no information: an occluded pixel fits nowhere
_SMALL_STEP = 1.0  # penalty of neighbours one shift apart
_LARGE_STEP = 4.0  # penalty of neighbours further apart
_TOLERANCE = 0.25  # misfit explained by imperfect lenses, as a share of the texture's energy
_WINDOW_HALF = 2
_MEAN_HALF = 15  # brightness that varies more slowly than this window is removed


def search(
    views: tuple[Array, Array], noise_floor: float, plan: Plan, backend: Backend
) -> SearchResult:
    """Find the best shift of each pixel of the search scale.

    Parameters
    ----------
    views
        Left and right view (rows, cols) at the search scale.
    noise_floor
        Squared difference of the views that noise alone makes.
    plan
        Shifts, defocus and options.
    backend
        Operations on images.
    """
    operations = backend.search
    left, right = (operations.subtract_local_mean(view, _MEAN_HALF) for view in views)
    first_shift = int(plan.shifts[0])
    line = plan.model.defocus_line(plan.search_scale)
    costs = operations.matching_costs(
        left,
        right,
        first_shift,
        line.constant + line.slope * plan.shifts.astype(np.float64),
        CostParameters(_WINDOW_HALF, noise_floor, _TOLERANCE, _LIMIT),
    )
    penalty = plan.options.smoothness * MAX_COST / _LIMIT
    paths = operations.aggregate_paths(
        costs,
        plan.allowed,
        PathParameters(round(penalty * _SMALL_STEP), round(penalty * _LARGE_STEP), _LIMIT),
    )
    # The margin is of misfits, not of path totals: paths add up the smallest preference, such as
    # that for a valley that happens to lie at a whole shift, until it looks like certainty.
    margin = operations.local_mean(paths.gap, _MEAN_HALF // 2)
    step = operations.median_3x3(paths.step)
    return SearchResult(step, margin, operations.right_view_steps(paths, first_shift))
