"""The consensus of the paper, as printed and fast: `reference.py` says what it computes.

All that a depth equation takes from the images depends on the shift between them, and is summed in
compiled loops (`consensus_kernels`) in single precision.
"""

import math
import time

import numpy as np

from d3s.estimate.consensus import kernels
from d3s.estimate.consensus.plan import Plan, make_plan
from d3s.estimate.consensus.prefilter import noise_variance, smoothed
from d3s.estimate.consensus.result import Chosen, as_depth_map
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.images import CheckedPair
from d3s.estimate.options import ConsensusOptions
from d3s.rig import Rig
from d3s.runtime.parallel import over_rows, together
from d3s.types import FloatArray, Image

__all__ = ["ConsensusOptions", "estimate_consensus"]

# A window's height of rows has to be read before the first row of a tile is done. Longer rows are
# faster, as they are less often begun; larger tiles would leave some cores without any.
_LEAST_TILE_ROWS = 64
_TILE_ROWS_PER_WINDOW = 3
_TILE_COLS = 1024


def estimate_consensus(left: Image, right: Image, rig: Rig, options: ConsensusOptions) -> DepthMap:
    """Depth by consensus of the depth equation and stereo; images as `checked_pair` gives them.

    What it computes, and what `sigma_m` means, is said at `reference.reference_consensus`.
    """
    begun = time.perf_counter()
    pair = CheckedPair(left, right)
    plan = make_plan(rig, options, left.shape)
    first, second = together(
        *(lambda view=view: smoothed(view, plan.settings.prefilter_sigma_px) for view in pair)
    )
    noise = sum(together(*(lambda view=view: noise_variance(view) for view in pair)))
    prepared = time.perf_counter()
    chosen = _search(first, second, plan, rig, options, noise)
    searched = time.perf_counter()
    depth_map = as_depth_map(chosen, pair, first, plan, rig, options)
    ended = time.perf_counter()
    depth_map.timings_s.update(
        prepare=prepared - begun, search=searched - prepared, judge=ended - searched
    )
    return depth_map


def _search(
    left: FloatArray,
    right: FloatArray,
    plan: Plan,
    rig: Rig,
    options: ConsensusOptions,
    noise: float,
) -> Chosen:
    best = kernels.Best(
        excess=np.full(left.shape, np.inf, dtype=np.float32),
        candidate=np.full(left.shape, -1, dtype=np.int32),
        variance_m2=np.full(left.shape, np.inf, dtype=np.float32),
    )
    rows = left.shape[0] - 2 * plan.reach_px
    if rows > 0 and (plan.first_cols <= plan.last_cols).any():
        middle, scale = _middle_and_scale(left, right)
        trials = _trials(plan, rig, noise / scale**2)
        sizes = _sizes(left.shape, plan)
        over_rows(
            kernels.search_tiles,
            math.ceil(rows / sizes.tile_rows) * math.ceil(left.shape[1] / sizes.tile_cols),
            ((left - middle) / scale).astype(np.float32),
            _spline((right - middle) / scale),
            trials,
            best,
            sizes,
            options.agreement_in == "depth and vergence",
        )
    return Chosen(best.candidate, 1.0 / (1.0 + best.excess), best.variance_m2)


def _sizes(shape: tuple[int, ...], plan: Plan) -> kernels.Sizes:
    # Nothing here may depend on the number of threads: the bytes of the result would.
    return kernels.Sizes(
        window=plan.settings.window_px,
        reach=plan.reach_px,
        tile_rows=max(_LEAST_TILE_ROWS, _TILE_ROWS_PER_WINDOW * plan.settings.window_px),
        tile_cols=min(_TILE_COLS, shape[1]),
    )


def _middle_and_scale(left: FloatArray, right: FloatArray) -> tuple[float, float]:
    """What to take off both views, and to divide them by, so that single precision is enough.

    The scale is a power of two, which leaves every digit as it is.
    """
    lowest = min(left.min(), right.min())
    highest = max(left.max(), right.max())
    middle = 0.5 * (lowest + highest)
    return float(middle), 2.0 ** math.frexp(highest - middle)[1]


def _spline(right: FloatArray) -> Image:
    """Coefficients of the quintic spline along the rows, going on as a mirror image."""
    from scipy.ndimage import spline_filter1d  # importing scipy takes longer than the rest of d3s

    coefficients = spline_filter1d(right, order=5, axis=1, mode="mirror")
    padding = ((0, 0), (kernels.PAD_PX, kernels.PAD_PX))
    return np.pad(coefficients.astype(np.float32), padding, mode="reflect")


def _trials(plan: Plan, rig: Rig, noise: float) -> kernels.Trials:
    # Shifts of depths that are out of every frame may be too large for whole numbers.
    shifts = np.clip(plan.shifts_px, -1e9, 1e9)
    whole = np.ceil(shifts)
    with np.errstate(over="ignore", divide="ignore"):
        return kernels.Trials(
            depths_m=plan.candidates_m.astype(np.float32),
            vergences_dpt=(1.0 / plan.candidates_m).astype(np.float32),
            step_variances_m2=(plan.steps_m**2 / 12).astype(np.float32),
            noise_m2=(plan.candidates_m**2 * noise).astype(np.float32),
            first_cols=plan.first_cols,
            last_cols=plan.last_cols,
            whole_px=whole.astype(np.int64),
            taps=_quintic_taps(whole - shifts).astype(np.float32),
            equations=_equations(plan, rig).astype(np.float32),
            weights=(plan.shares**2 / plan.shares.size).astype(np.float32),
        )


def _equations(plan: Plan, rig: Rig) -> FloatArray:
    """The numbers g, l, k and b of `consensus_kernels`, for each virtual baseline."""
    baselines, zeros = plan.baselines_m, np.zeros(plan.baselines_m.size)
    if rig.calibration is not None:
        # The cubics are of its magnitude, and a view moved the other way has the other sign.
        scale = np.sign(baselines) * rig.calibration.a_m_px(baselines)
        numbers = (scale, zeros, zeros, rig.calibration.b_m(baselines))
    else:
        alpha, kappa = rig.optics.alpha_px2_m, rig.optics.kappa_dpt
        flow = -rig.optics.focal_length_px * baselines
        numbers = (flow, zeros - alpha, zeros - alpha * kappa, zeros)
    return np.stack(numbers, axis=1)


def _quintic_taps(t: FloatArray) -> FloatArray:
    """Weights of coefficients -2 to 3 for the value at t, 0 <= t < 1: the B-spline of degree 5."""
    distance = np.abs(t[..., np.newaxis] - np.arange(-2, 4))
    total = np.zeros(distance.shape)
    for weight, edge in ((1, 3), (-6, 2), (15, 1)):  # truncated powers, summed from the far end
        total += weight * np.clip(edge - distance, 0.0, None) ** 5
    return total / 120.0
