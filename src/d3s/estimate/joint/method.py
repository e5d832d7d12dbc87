"""Our own method: both cues in one residual, searched, refined, and judged.

1. `search`: the two views, blurred alike for each shift, are compared where they are small, and
   paths from four sides decide.
2. `refine`: least squares for the disparity of a window, where defocus and stereo share one
   derivative; much blurred parts at a quarter or half of the size, the others in full.
3. `judge`: the standard deviation follows from noise, texture and what is left of the residual.
   Confidence is the views' correlation less what chance may have made, and falls with sigma.
"""

from math import isqrt
from time import perf_counter
from typing import NamedTuple

import numpy as np

from d3s.estimate.clipping import clipped
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.joint.backend import Operations, compiled_operations, plain_operations
from d3s.estimate.joint.confidence import judged
from d3s.estimate.joint.confidence_types import Judged
from d3s.estimate.joint.holes import Holes
from d3s.estimate.joint.model import Array
from d3s.estimate.joint.plan import Plan, make_plan
from d3s.estimate.joint.refine import Unseen, Views, refined
from d3s.estimate.joint.search import Found, search
from d3s.estimate.joint.types import Refined, noise_gains
from d3s.estimate.options import JointOptions
from d3s.rig import Calibration, Rig
from d3s.runtime.parallel import together
from d3s.runtime.scratch import borrowed_memory
from d3s.types import Image, Mask

__all__ = ["JointOptions", "estimate_joint", "joint_reference"]

# At 5 % the error at 2 m doubles, to 0.5 cm; at 20 % it passes 1 cm.
_CONTRAST_TOLERANCE = 0.03
_NOISE_HALF = 7  # of cells: a thousand pixels know their noise to 3 %
# Cells that are enough for a median over the frame, and for a ratio of views that show the same.
_MANY, _SOME = 20_000, 4_000


def estimate_joint(left: Image, right: Image, rig: Rig, options: JointOptions) -> DepthMap:
    """Depth of a pair that `checked_pair` has seen."""
    with borrowed_memory() as memory:
        result = joint_result(left, right, rig, options, compiled_operations(memory))
    return _depth_map(result, rig, options)


def joint_reference(left: Image, right: Image, rig: Rig, options: JointOptions) -> DepthMap:
    """The same by plain operations in double precision: slow, and what the other is held to."""
    return _depth_map(joint_result(left, right, rig, options, plain_operations()), rig, options)


def _depth_map(result: "JointResult", rig: Rig, options: JointOptions) -> DepthMap:
    return DepthMap(
        depth_m=result.map.depth_m.astype(np.float32, copy=False),
        sigma_m=result.map.sigma_m.astype(np.float32, copy=False),
        confidence=result.map.confidence.astype(np.float32, copy=False),
        flags=result.map.flags,
        rig=rig,
        method="joint",
        options=options,
        warnings=_warnings(result.contrast),
        timings_s=result.timings_s,
    )


class JointResult(NamedTuple):
    """What came out, and what was on the way; the latter as long as the operations' memory."""

    map: Judged
    fit: Refined
    found: Found
    contrast: float  # of the left view over that of the right one, where there is a depth
    timings_s: dict[str, float]


def joint_result(
    left: Image, right: Image, rig: Rig, options: JointOptions, ops: Operations
) -> JointResult:
    """All of the method, by the given operations."""
    clock = _Clock()
    shape = left.shape[0], left.shape[1]
    plan = make_plan(rig.optics, options, shape)
    unseen = _unseen(left, right)
    views = ops.prefilter.centred(left, right)
    noise = _noise(views, plan, ops)
    levels = _levels(views, plan, ops)
    noise = _with_calibrated(noise, left, views[0], levels[plan.cell_px], rig.calibration)
    clock.stop("prefilter")
    found = search(levels[plan.search_scale], _floor(levels, noise, plan), plan, ops)
    start_px = (found.step + found.step.dtype.type(plan.shifts[0])) * plan.search_scale
    if plan.search_scale > plan.cell_px:
        start_px = ops.refine.doubled(start_px, (noise.shape[0], noise.shape[1]))
    clock.stop("search")
    fit = refined(levels, start_px, noise, unseen, plan, ops)
    clock.stop("refine")
    result = judged(fit, found, shape, plan, ops)
    contrast = _contrast(levels[plan.cell_px], fit, result, plan)
    clock.stop("judge")
    return JointResult(result, fit, found, contrast, clock.times_s)


def _unseen(left: Image, right: Image) -> Unseen:
    """Holes of both views, each of which has a thread of its own."""
    masks = together(*(lambda view=view: (_missing(view), clipped(view)) for view in (left, right)))
    missing, at_limits = zip(*masks, strict=True)
    return Unseen(Holes(*missing), Holes(*at_limits))


def _missing(view: Image) -> Mask:
    """Pixels without a value; if all have one, no pixels at all."""
    # The least of numbers that are not all numbers is none.
    return np.isnan(view) if np.isnan(view.min()) else np.zeros((0, 0), dtype=np.bool_)


def _noise(views: Views, plan: Plan, ops: Operations) -> Array:
    """Variance of white noise around each cell, or more where there is fine texture.

    By second differences both ways, which leave nothing of a smooth image and 36 times the variance
    of noise (Immerkær, "Fast noise variance estimation", CVIU 1996).
    """
    left, right = (ops.prefilter.noise_variance(view, _NOISE_HALF) for view in views)
    left += right
    left *= left.dtype.type(0.5)
    shape = views[0].shape[0], views[0].shape[1]
    return ops.refine.doubled(left, shape) if plan.cell_px == 1 else left


def _with_calibrated(
    noise: Array, left: Image, centred: Array, cells: Views, calibration: Calibration | None
) -> Array:
    """Variance of noise, but at least what the sensor was found to have at that intensity.

    Views that were resampled have lost the finest of their noise, by which it is measured, and
    little of what disturbs a fit. `cells` are the smoothed views, a pixel for each cell.
    """
    if calibration is None or calibration.noise_read is None or calibration.noise_gain is None:
        return noise
    some = (slice(None, None, _stride(left.shape, _MANY)),) * 2
    told, ours = (np.asarray(view[some], dtype=np.float64) for view in (left, centred))
    is_known = np.isfinite(told)
    spread = float(told[is_known].std()) if is_known.any() else 0.0
    if spread == 0:
        return noise
    # The views are these numbers less a constant, times another.
    scale = float(ours[is_known].std()) / spread
    dark = float(ours[is_known].mean()) - scale * float(told[is_known].mean())
    light = 0.5 * (cells[0] + cells[1]) - noise.dtype.type(dark)
    own = (
        calibration.noise_gain * scale * np.maximum(light, 0)
        + (calibration.noise_read * scale) ** 2
    )
    return np.asarray(np.maximum(noise, own.astype(noise.dtype)))


def _levels(views: Views, plan: Plan, ops: Operations) -> dict[int, Views]:
    """Both views by scale, smoothed for it; the coarsest out of the one before."""
    levels: dict[int, Views] = {}
    for scale, sigma in plan.smoothing_px.items():
        source, before = (levels[2], plan.smoothing_px[2]) if scale == 4 else (views, 0.0)
        own = float(np.sqrt(sigma**2 - before**2)) / (2 if scale == 4 else 1)
        step = 1 if scale == 1 else 2
        left, right = (ops.prefilter.smooth(view, own, step) for view in source)
        levels[scale] = left, right
    return levels


def _floor(levels: dict[int, Views], noise: Array, plan: Plan) -> float:
    """Misfit that noise makes in the search."""
    gain = noise_gains(plan.smoothing_px[plan.search_scale]).smoothed
    some = (slice(None, None, _stride(noise.shape, _MANY)),) * 2
    spread = max(float(np.var(view[some], dtype=np.float64)) for view in levels[plan.search_scale])
    # Of views without noise the rounding is the floor; of views without anything, any number.
    return 2 * gain * float(np.median(noise[some])) + 1e-9 * spread + 1e-30


def _warnings(contrast: float) -> tuple[str, ...]:
    if abs(contrast - 1) <= _CONTRAST_TOLERANCE:
        return ()
    return (
        f"the left view has {contrast:.3f} times the contrast of the right one, and sigma does not "
        "know what that does to depth. Multiply the right view by it, or mend the exposure.",
    )


def _contrast(views: Views, fit: Refined, result: Judged, plan: Plan) -> float:
    """Standard deviation of the left view over that of the right one, both blurred alike."""
    scale = plan.cell_px
    few = _stride(fit.flags.shape, _SOME)
    stride = few * plan.cell_px
    rows, cols = (index * few for index in np.nonzero(result.flags[::stride, ::stride] == 0))
    if not rows.size:
        return 1.0
    shift = fit.disparity_px[rows, cols] / scale
    there = np.clip(np.rint(cols - shift).astype(np.int64), 0, views[0].shape[1] - 1)
    constant, slope = plan.model.defocus_line(scale)
    half = 0.5 * (constant + slope * shift)
    a, b = (
        _sharp(view, rows, columns, sign * half)
        for view, columns, sign in ((views[0], cols, 1), (views[1], there, -1))
    )
    spread = float(np.std(b, dtype=np.float64))
    return float(np.std(a, dtype=np.float64)) / spread if spread > 0 else 1.0


def _stride(shape: tuple[int, ...], count: int) -> int:
    return max(isqrt(shape[0] * shape[1] // count), 1)


def _sharp(view: Array, rows: Array, cols: Array, weight: Array) -> Array:
    """Some pixels of a view less their close surroundings, with so much of its Laplacian."""

    def at(down: int, right: int) -> Array:
        places = (
            np.clip(place + by, 0, size - 1)
            for place, by, size in zip((rows, cols), (down, right), view.shape, strict=True)
        )
        return np.asarray(view[tuple(places)])

    near = at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)
    far = at(-8, 0) + at(8, 0) + at(0, -8) + at(0, 8)
    here = at(0, 0)
    return np.asarray(here - 0.25 * far + weight * (near - 4 * here))


class _Clock:
    """Seconds of each stage."""

    def __init__(self) -> None:
        self.times_s: dict[str, float] = {}
        self._last = perf_counter()

    def stop(self, stage: str) -> None:
        """Name the stage that has ended."""
        now = perf_counter()
        self.times_s[stage], self._last = now - self._last, now
