"""Search: the best whole shift of each pixel, by semi-global matching.

The cost of a shift compares order and slope of the brightness, not the brightness itself, so that
views of unlike exposure, contrast or shading match too. Paths from four sides carry the decision to
pixels whose own window does not suffice (Hirschmüller, "Stereo processing by semiglobal matching
and mutual information", PAMI 2008); steps in depth cost less where the left view has an edge.
"""

from math import isqrt

import numpy as np

from d3s.estimate.joint.backend import Backend
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.repetition import BLOCK, STRIDE, find_repetition
from d3s.estimate.joint.types import MAX_PENALTY, Array, SearchResult

# In units of the matching cost. Tuned on real stereo pairs and on the tuning textures.
_SMALL_STEP = 83.0  # penalty of neighbours one shift apart
_LARGE_STEP = 550.0  # penalty of neighbours further apart
_LEAST_LARGE = 1.1  # smallest penalty of these, at edges, over the small one
# Step in brightness that halves the large penalty, and slope of one unit, over the contrast of the
# view: its standard deviation.
_EDGE_SHARE = 0.2
_SLOPE_SHARE = 0.01
# Noise over contrast from which on views with lenses are smoothed for the search, and with which
# the smoothing is largest; largest and smallest smoothing, in pixels of the search.
_NOISE_SHARES = 0.15, 0.3
_MAX_SMOOTHING_PX, _MIN_SMOOTHING_PX = 1.0, 0.3
_MARGIN_HALF = 2  # half side of the mean of margins
_MANY = 20_000  # pixels that suffice for a standard deviation


def search(views: tuple[Array, Array], noise: Array, plan: Plan, backend: Backend) -> SearchResult:
    """Find the best shift of each pixel of the search scale.

    Parameters
    ----------
    views
        Left and right view (rows, cols) at the search scale.
    noise
        Variance of one view's white noise around each cell.
    plan
        Shifts and options.
    backend
        Operations on images.
    """
    operations = backend.search
    left, right = _smoothed(views, noise, plan, backend)
    first_shift = int(plan.shifts[0])
    contrasts = _contrast(left), _contrast(right)
    scales = tuple(1 / (_SLOPE_SHARE * contrast) if contrast > 0 else 0.0 for contrast in contrasts)
    costs = operations.matching_costs(
        left, right, first_shift, plan.shifts.size, (scales[0], scales[1])
    )
    small, large = (
        min(plan.options.smoothness * step, MAX_PENALTY) for step in (_SMALL_STEP, _LARGE_STEP)
    )
    unit = _EDGE_SHARE * contrasts[0] or 1.0
    least = min(_LEAST_LARGE * small, MAX_PENALTY)
    penalties = operations.step_penalties(left, large, least, unit)
    paths = operations.aggregate_paths(costs, plan.allowed, round(small), penalties)
    margin = operations.local_mean(paths.margin, _MARGIN_HALF)
    aligned = operations.aligned_costs(costs, paths.lowest, plan.allowed, BLOCK, STRIDE)
    is_repeated = find_repetition(*aligned)
    if is_repeated.any():
        rows, cols = margin.shape
        margin[is_repeated.repeat(BLOCK, 0).repeat(BLOCK, 1)[:rows, :cols]] = 0
    return SearchResult(
        operations.median_3x3(operations.median_3x3(paths.step)),
        margin,
        operations.right_view_steps(paths, first_shift),
    )


def _smoothed(
    views: tuple[Array, Array], noise: Array, plan: Plan, backend: Backend
) -> tuple[Array, Array]:
    """Smooth views with lenses further where noise is a large share of their contrast.

    The order of brightness is soon lost in noise, and blurred views have no fine detail to lose.
    """
    contrast = _contrast(views[0])
    if plan.is_sharp or contrast == 0:
        return views
    stride = max(isqrt(noise.size // _MANY), 1)
    share = float(np.sqrt(np.median(noise[::stride, ::stride]))) / contrast
    low, high = _NOISE_SHARES
    sigma_px = float(np.clip((share - low) / (high - low), 0, 1)) * _MAX_SMOOTHING_PX
    if sigma_px < _MIN_SMOOTHING_PX:
        return views
    left, right = (backend.prefilter.smooth(view, sigma_px) for view in views)
    return left, right


def _contrast(view: Array) -> float:
    """Return the standard deviation of a view, from some of its pixels."""
    stride = max(isqrt(view.size // _MANY), 1)
    return float(np.std(view[::stride, ::stride], dtype=np.float64))
