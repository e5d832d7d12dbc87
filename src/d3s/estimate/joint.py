"""Our own method: both cues in one residual, searched, refined, and judged.

1. `search`: the two views, blurred alike for each shift, are compared where they are small, and
   paths from four sides decide.
2. `levels` and `refine`: least squares for the disparity of a window, where defocus and stereo
   share one derivative; much blurred parts at a quarter or half of the size, the others in full.
3. `judge`: the standard deviation follows from noise, texture and what is left of the residual.
   Confidence is the views' correlation less what chance may have made, and falls with sigma.
"""

from time import perf_counter
from typing import NamedTuple

import numpy as np

from d3s.estimate.clipping import clipped
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.holes import Holes
from d3s.estimate.images import Image
from d3s.estimate.judge import Judged, Unseen, judged
from d3s.estimate.levels import refined
from d3s.estimate.operations import Array, CompiledOperations, Operations
from d3s.estimate.options import JointOptions
from d3s.estimate.plan import Plan, make_plan
from d3s.estimate.refine import noise_gains, smoothed
from d3s.estimate.search import Found, search, window_counts, without_mean
from d3s.rig import Rig

__all__ = ["JointOptions", "estimate_joint"]

# At 5 % the error at 2 m doubles, to 0.5 cm; at 20 % it passes 1 cm.
_CONTRAST_TOLERANCE = 0.03
_NOISE_HALF = 15  # a thousand pixels know their noise to 3 %


def estimate_joint(left: Image, right: Image, rig: Rig, options: JointOptions) -> DepthMap:
    """Depth of a pair that `checked_pair` has seen."""
    result = joint_result(left, right, rig, options, CompiledOperations())
    return DepthMap(
        depth_m=result.map.depth_m.astype(np.float32),
        sigma_m=result.map.sigma_m.astype(np.float32),
        confidence=result.map.confidence.astype(np.float32),
        flags=result.map.flags,
        rig=rig,
        method="joint",
        options=options,
        warnings=_warnings(result.contrast),
        timings_s=result.timings_s,
    )


class JointResult(NamedTuple):
    """What came out, and what the search had found."""

    map: Judged
    found: Found
    contrast: float  # of the left view over that of the right one, where there is a depth
    timings_s: dict[str, float]


def joint_result(
    left: Image, right: Image, rig: Rig, options: JointOptions, ops: Operations
) -> JointResult:
    """All of the method, by the given operations."""
    clock = _Clock()
    plan = make_plan(rig.optics, options, (left.shape[0], left.shape[1]))
    unseen = Unseen(Holes(np.isnan(left), np.isnan(right)), Holes(clipped(left), clipped(right)))
    views = _filled(left, right, ops)
    noise = 0.5 * (_noise(views[0], ops) + _noise(views[1], ops))
    levels = {
        scale: (smoothed(views[0], sigma, scale, ops), smoothed(views[1], sigma, scale, ops))
        for scale, sigma in plan.smoothing_px.items()
    }
    clock.stop("prefilter")
    found = _searched(levels[plan.search_scale], noise, plan, ops)
    clock.stop("search")
    fit = refined(levels, found, noise, unseen.missing | unseen.clipped, plan, ops)
    clock.stop("refine")
    result = judged(fit, found, unseen, plan, ops)
    clock.stop("judge")
    contrast = _contrast(levels[plan.search_scale], result, plan, ops)
    return JointResult(result, found, contrast, clock.times_s)


def _warnings(contrast: float) -> tuple[str, ...]:
    if abs(contrast - 1) <= _CONTRAST_TOLERANCE:
        return ()
    return (
        f"the left view has {contrast:.3f} times the contrast of the right one, and sigma does not "
        "know what that does to depth. Multiply the right view by it, or mend the exposure.",
    )


def _contrast(views: tuple[Array, Array], result: Judged, plan: Plan, ops: Operations) -> float:
    """Standard deviation of the left view over that of the right one, both blurred alike."""
    scale = plan.search_scale
    rows, cols = np.nonzero(result.flags[::scale, ::scale] == 0)
    shift = result.disparity_px[::scale, ::scale][rows, cols] / scale
    there = np.clip(np.rint(cols - shift).astype(np.int64), 0, views[0].shape[1] - 1)
    constant, slope = plan.model.defocus_line(scale)
    half = 0.5 * (constant + slope * shift)
    left, right = (without_mean(view, ops) for view in views)
    a = left[rows, cols] + half * ops.laplacian(left)[rows, cols]
    b = right[rows, there] - half * ops.laplacian(right)[rows, there]
    energy = float(np.square(b, dtype=np.float64).sum())
    return float(np.sqrt(np.square(a, dtype=np.float64).sum() / energy)) if energy > 0 else 1.0


class _Clock:
    """Seconds of each stage."""

    def __init__(self) -> None:
        self.times_s: dict[str, float] = {}
        self._last = perf_counter()

    def stop(self, stage: str) -> None:
        """Name the stage that has ended."""
        now = perf_counter()
        self.times_s[stage], self._last = now - self._last, now


def _filled(left: Image, right: Image, ops: Operations) -> tuple[Array, Array]:
    """Views about their common mean, which also stands for what is missing.

    They are scaled by a power of two, so that no picture overflows and none is lost in rounding.
    """
    values = np.concatenate([view[np.isfinite(view)].astype(np.float64) for view in (left, right)])
    mean = float(values.mean()) if values.size else 0.0
    largest = float(np.abs(values - mean).max()) if values.size else 0.0
    unit = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0

    def about_mean(view: Image) -> Array:
        known = np.isfinite(view)
        return np.where(
            known, (np.where(known, view, 0).astype(np.float64) - mean) / unit, 0
        ).astype(ops.dtype)

    return about_mean(left), about_mean(right)


def _noise(view: Array, ops: Operations) -> Array:
    """Variance of white noise around each pixel, or more where there is fine texture.

    By second differences both ways, which leave nothing of a smooth image and 36 times the variance
    of noise (Immerkær, "Fast noise variance estimation", CVIU 1996).
    """
    padded = np.pad(view, 1, mode="edge")
    across = padded[:, :-2] - 2 * padded[:, 1:-1] + padded[:, 2:]
    both = np.ascontiguousarray(across[:-2] - 2 * across[1:-1] + across[2:]) / 6
    half = _NOISE_HALF
    return np.maximum(ops.window_sums(both * both, half), 0) / window_counts(view, half)


def _searched(views: tuple[Array, Array], noise: Array, plan: Plan, ops: Operations) -> Found:
    gain = noise_gains(plan.smoothing_px[plan.search_scale]).smoothed
    # Of views without noise the rounding is the floor; of views without anything, any number.
    spread = max(float(np.var(view, dtype=np.float64)) for view in views)
    floor = 2 * gain * float(np.median(noise)) + 1e-9 * spread + 1e-30
    return search(
        views,
        plan.model,
        plan.shifts,
        plan.allowed,
        scale=plan.search_scale,
        noise_floor=floor,
        smoothness=plan.options.smoothness,
        ops=ops,
    )
