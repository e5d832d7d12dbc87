"""`estimate_consensus`: the consensus of the paper, with a compiled search.

The search runs in single precision on views without offset; `kernels` holds its loops.
"""

import math
import time
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.checked_pair import CheckedPair
from d3s.estimate.consensus import kernels
from d3s.estimate.consensus.consensus_plan import ConsensusPlan, filtered, make_plan
from d3s.estimate.consensus.lens_corrections import correction_grids
from d3s.estimate.consensus.noise_and_gain import LEAST_SHARE, equal_contrast, removed_noise
from d3s.estimate.consensus.result import ChosenCandidates, as_depth_map
from d3s.estimate.consensus.smoothing import noise_variance
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.lens_field import LensField
from d3s.estimate.options import ConsensusOptions
from d3s.rig import Rig
from d3s.runtime.parallel import run_over_rows, run_together
from d3s.types import FloatArray, Image

__all__ = ["ConsensusOptions", "estimate_consensus"]

# Each tile first reads as many rows as the window is high, so tiles are several windows high. Long
# rows are faster, since each row has a fixed cost; larger tiles would leave some cores idle.
_MIN_TILE_ROWS = 64
_TILE_ROWS_PER_WINDOW = 3
_TILE_COLS = 256


def estimate_consensus(left: Image, right: Image, rig: Rig, options: ConsensusOptions) -> DepthMap:
    """Estimate depth by consensus of the depth equation and stereo (section 4 of the paper).

    Parameters
    ----------
    left, right
        Rectified views (rows, cols) as `checked_pair` returns them; NaN where there is no value.
    rig
        The camera. The depth equation is Eq. 17, with a and b of its calibration or its optics;
        as printed and without calibration Eq. 10.
    options
        Candidates, virtual baselines, window, prefilter and threshold.

    Returns
    -------
    DepthMap
        `depth_m` is one of the candidates as printed, between them else. `confidence` is Eq. 14 or
        Eq. S5 of the paper, 0 to 1, with depths in metres and inverse depths in 1/m.

    Raises
    ------
    OptionsError
        If a virtual baseline is not below the baseline of the rig.

    Notes
    -----
    For a pixel of depth Z, `sigma_m` is the root of the sum of three variances:

    - step² / 12, where step is the distance between neighbouring candidates;
    - mean of ((Z_j - Z) dX_j / B)² over the virtual baselines dX_j, with the prediction Z_j and the
      baseline B: the disagreement of the predictions with the candidate. The factor dX_j / B is
      there because a candidate that is wrong by e moves a prediction by e (B - dX) / dX in the
      opposite direction, so candidate and prediction meet after dX / B of their distance;
    - mean of (Z dX_j / B)² (n_0² + n_1²) / sum(denominator²), the noise n of both views propagated
      through the least squares over the window.

    `sigma_m` does not contain the systematic error of the method, which comes from finite
    differences over a residual disparity of several pixels. The virtual baselines disagree by a
    part of this error only and share the rest, which is several times larger. Nor does it contain
    wrong depths on which the predictions agree by chance.
    """
    begun = time.perf_counter()
    pair = CheckedPair(left, right)
    plan = make_plan(rig, options, left.shape)
    left_smoothed, right_smoothed = run_together(
        *(lambda view=view: filtered(view, plan) for view in pair)
    )
    noises = run_together(*(lambda view=view: noise_variance(view) for view in pair))
    removed = removed_noise(rig, (left, right), options)
    prepared = time.perf_counter()
    search = partial(_search, noise=sum(noises), removed=removed)
    right_smoothed = equal_contrast(left_smoothed, right_smoothed, noises, plan, search)
    found = search(left_smoothed, right_smoothed, plan)
    searched = time.perf_counter()
    depth_map = as_depth_map(found, pair, left_smoothed, plan)
    ended = time.perf_counter()
    depth_map.timings_s.update(
        prepare=prepared - begun, search=searched - prepared, confidence=ended - searched
    )
    return depth_map


def _search(
    left: FloatArray, right: FloatArray, plan: ConsensusPlan, noise: float, removed: float
) -> ChosenCandidates:
    """Search smoothed views.

    `noise` is the sum of the noise variances of both views, and `removed` that of their difference
    once smoothed, which is taken from the denominator of the depth equation.
    """
    best = kernels.Best(
        excess=np.full(left.shape, np.inf, dtype=np.float32),
        candidate=np.full(left.shape, -1, dtype=np.int32),
        variance_m2=np.full(left.shape, np.inf, dtype=np.float32),
        shift_m=np.zeros(left.shape, dtype=np.float32),
    )
    rows = left.shape[0] - 2 * plan.reach_px
    if rows > 0 and (plan.first_cols <= plan.last_cols).any():
        middle, scale = _middle_and_scale(left, right)
        sizes = _sizes(left.shape, plan)
        run_over_rows(
            kernels.search_tiles,
            math.ceil(rows / sizes.tile_rows) * math.ceil(left.shape[1] / sizes.tile_cols),
            ((left - middle) / scale).astype(np.float32),
            _spline((right - middle) / scale),
            _trials(plan, noise / scale**2, removed / scale**2),
            best,
            sizes,
            _grids(plan),
        )
    return ChosenCandidates(
        best.candidate, 1.0 / (1.0 + best.excess), best.variance_m2, best.shift_m
    )


def _grids(plan: ConsensusPlan) -> kernels.Grids | None:
    if plan.field is None:
        return None
    candidates = tuple(plan.candidates_m.tolist())
    return _kept_grids(plan.field, candidates, plan.settings.prefilter_sigma_px)


@lru_cache(maxsize=4)
def _kept_grids(
    field: LensField, depths_m: tuple[float, ...], prefilter_px: float
) -> kernels.Grids:
    """Corrections at candidate depths, kept for the next frame: they take a third of the time."""
    grids = correction_grids(field, np.array(depths_m), prefilter_px).astype(np.float32)
    grids.setflags(write=False)
    return grids


def _sizes(shape: tuple[int, ...], plan: ConsensusPlan) -> kernels.Sizes:
    # Independent of the number of threads, on which the bytes of the result must not depend.
    return kernels.Sizes(
        window=plan.settings.window_px,
        reach=plan.reach_px,
        tile_rows=max(_MIN_TILE_ROWS, _TILE_ROWS_PER_WINDOW * plan.settings.window_px),
        tile_cols=min(_TILE_COLS, shape[1]),
    )


def _middle_and_scale(left: FloatArray, right: FloatArray) -> tuple[float, float]:
    """Middle of the values of both views, and the scale that maps them to -1 to 1.

    Without offset, single precision is enough. The scale is a power of two, so that dividing by it
    does not round.
    """
    lowest = min(left.min(), right.min())
    highest = max(left.max(), right.max())
    middle = 0.5 * (lowest + highest)
    return float(middle), 2.0 ** math.frexp(highest - middle)[1]


def _spline(right: FloatArray) -> Image:
    """Coefficients of the quintic spline along the rows, mirrored at the borders and padded."""
    from scipy.ndimage import spline_filter1d  # importing scipy takes longer than the rest of d3s

    coefficients = spline_filter1d(right, order=5, axis=1, mode="mirror")
    padding = ((0, 0), (kernels.PAD_PX, kernels.PAD_PX))
    return np.pad(coefficients.astype(np.float32), padding, mode="reflect")


def _trials(plan: ConsensusPlan, noise: float, removed: float) -> kernels.Trials:
    # The shift of a depth outside of every frame may be too large for an integer.
    shifts = np.clip(plan.shifts_px, -1e9, 1e9)
    whole = np.ceil(shifts)
    with np.errstate(over="ignore", divide="ignore"):
        return kernels.Trials(
            order=_far_apart_first(plan.candidates_m.size),
            depths_m=plan.candidates_m.astype(np.float32),
            vergences_dpt=(1.0 / plan.candidates_m).astype(np.float32),
            step_variances_m2=(plan.steps_m**2 / 12).astype(np.float32),
            noise_m2=(plan.candidates_m**2 * noise).astype(np.float32),
            first_cols=plan.first_cols,
            last_cols=plan.last_cols,
            whole_px=whole.astype(np.int64),
            taps=_quintic_taps(whole - shifts).astype(np.float32),
            equations=_equations(plan),
            variance_weights=(plan.shares**2 / plan.shares.size).astype(np.float32),
            noise_square=np.float32(removed),
            least_squares=np.float32(LEAST_SHARE * removed * plan.settings.window_px**2),
            shift_weights=(plan.shares / plan.shares.size).astype(np.float32),
            with_vergence=plan.options.agreement_in == "depth and vergence",
        )


def _far_apart_first(count: int) -> NDArray[np.int64]:
    """Numbers of the candidates: every 64th, then those halfway between, and so on."""
    numbers = np.arange(count)
    halvings = sum(numbers % step == 0 for step in (2, 4, 8, 16, 32, 64))
    return np.argsort(-halvings, kind="stable")


def _equations(plan: ConsensusPlan) -> kernels.Equations:
    """Weights of the depth equation of each virtual baseline."""
    zeros = np.zeros(plan.baselines_m.size)
    if plan.lines is None:
        optics = plan.rig.optics
        alpha, kappa = optics.alpha_px2_m, optics.kappa_dpt
        gradient = -optics.focal_length_px * plan.baselines_m
        weights = (gradient, zeros - alpha, zeros - alpha * kappa, zeros)
    else:
        weights = (plan.lines[0], zeros, zeros, plan.lines[1])
    return kernels.Equations(*(values.astype(np.float32) for values in weights))


def _quintic_taps(t: FloatArray) -> FloatArray:
    """Weights (..., 6) of the coefficients -2 to 3 of a quintic spline at t, 0 <= t < 1."""
    distance = np.abs(t[..., np.newaxis] - np.arange(-2, 4))
    total = np.zeros(distance.shape)
    for weight, edge in ((1, 3), (-6, 2), (15, 1)):  # truncated powers, summed from the far end
        total += weight * np.clip(edge - distance, 0.0, None) ** 5
    return total / 120.0
