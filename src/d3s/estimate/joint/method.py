"""The joint method: both cues in one residual, searched, refined, and given a confidence.

1. `search`: order and slope of the brightness are compared at each shift; semi-global paths from
   four sides decide.
2. `refine`: least squares for the disparity of a window, where defocus and stereo share one
   derivative; strongly blurred parts at a quarter or half of the size, the others in full.
3. `trust`: the probability that a disparity is wrong, from the search, steps in depth, and whether
   texture surrounds the pixel.
4. `confidence`: sigma follows from noise, texture, the rest of the residual, and that probability;
   so does the confidence.
"""

from math import isqrt
from time import perf_counter
from typing import NamedTuple

import numpy as np

from d3s.estimate.clipping import clipped
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.joint.balance import balance_contrast
from d3s.estimate.joint.gaps import find_gaps
from d3s.estimate.joint.kernels import confidence, filters, prefilter
from d3s.estimate.joint.pattern import find_pattern, take_out, with_pattern
from d3s.estimate.joint.plan import Plan, make_plan
from d3s.estimate.joint.refine import Holes, Views, refine
from d3s.estimate.joint.rows import measure_rows
from d3s.estimate.joint.search import search
from d3s.estimate.joint.trust import judge_cells
from d3s.estimate.joint.types import (
    Array,
    CellFit,
    ConfidenceParameters,
    DepthPlanes,
    SearchResult,
    Trust,
)
from d3s.estimate.lens_field import LensField
from d3s.estimate.options import JointOptions
from d3s.rig import Calibration, Rig
from d3s.runtime.parallel import run_together
from d3s.runtime.scratch import Scratch, borrow_scratch
from d3s.types import Image, Mask

__all__ = ["JointOptions", "estimate_joint"]

_NOISE_HALF = 7  # half side of the noise window in cells: a thousand pixels give noise to 3 %
# Rows over which blurred texture is alike: over these an offset of a column does not average out.
# From the tuning textures at 1 and 2 m.
_COLUMN_ROWS = 8.0
_MANY = 20_000  # cells that suffice for a median over the frame

# Sigma at which the confidence is a half, in pixels: for a camera with lenses, whose fits rest on
# large windows, and for a sharp pair. With lenses also this factor times the squared disparity, if
# that is larger: near points are blurred, and an error of a pixel is a small error of their depth.
# The factor times f B is a length, 7 mm for the prototype, that grows with the camera.

_DEFOCUSED_SIGMA_PX, _SHARP_SIGMA_PX, _SIGMA_PER_PX = 0.09, 1.0, 3e-4
# Probability of being wrong at which the confidence is a half, for a camera with lenses and for a
# sharp pair.
_DEFOCUSED_WRONG, _SHARP_WRONG = 0.06, 0.115
# Variance of a wrong disparity, in square pixels, and the probability that every good cell has.
_WRONG_PX2 = 1.5
_DEFOCUSED_HARMLESS, _SHARP_HARMLESS = 0.01, 0.0
# Correlation beyond chance below which a window counts as without texture.
_MIN_CORRELATION = 0.05
# Largest residual of 3 x 3 cells over what noise and lenses explain. Smaller ones count in the
# probability of being wrong.
_MAX_MISFIT = 30.0
# Share of right depths in plain gaps: half of them on fences of the tuning cases, all on letters.
_ENCLOSED_RIGHT = 0.75
# Margin of the search, mean over a neighbourhood, below which another depth fits about as well.
_MIN_MARGIN = 0.02
# Share by which a depth may exceed the ends of the range.
_RANGE_SHARE = 0.005


class JointResult(NamedTuple):
    """Result and intermediates; intermediates live in scratch memory and end with it."""

    planes: DepthPlanes
    fit: CellFit
    found: SearchResult
    trust: Trust
    timings_s: dict[str, float]
    warnings: tuple[str, ...] = ()


def estimate_joint(left: Image, right: Image, rig: Rig, options: JointOptions) -> DepthMap:
    """Estimate the depth of a pair that `checked_pair` has prepared.

    Parameters
    ----------
    left, right
        Views (rows, cols) of linear intensity; NaN where there is none.
    rig
        The camera.
    options
        Options of the method.
    """
    with borrow_scratch() as memory:
        result = run_joint(left, right, rig, options, memory)
    return as_depth_map(result, rig, options)


def as_depth_map(result: JointResult, rig: Rig, options: JointOptions) -> DepthMap:
    """Return the result as a depth map in single precision, with timings.

    Parameters
    ----------
    result
        Result of `run_joint`.
    rig
        The camera.
    options
        Options of the method.
    """
    planes = result.planes
    return DepthMap(
        depth_m=planes.depth_m.astype(np.float32, copy=False),
        sigma_m=planes.sigma_m.astype(np.float32, copy=False),
        confidence=planes.confidence.astype(np.float32, copy=False),
        flags=planes.flags,
        rig=rig,
        method="joint",
        options=options,
        timings_s=result.timings_s,
        warnings=result.warnings,
    )


def run_joint(
    left: Image, right: Image, rig: Rig, options: JointOptions, memory: Scratch
) -> JointResult:
    """Run all stages of the method.

    Parameters
    ----------
    left, right
        Views (rows, cols) of linear intensity; NaN where there is none.
    rig
        The camera.
    options
        Options of the method.
    memory
        Where intermediate images live.
    """
    clock = _Clock()
    shape = left.shape[0], left.shape[1]
    known_sigma_px = rig.rectification_sigma_px(options.calibration_age_days)
    field = LensField.of(rig, shape)
    plan = make_plan(rig.optics, options, shape, field, known_sigma_px)
    holes = _holes(left, right)
    views = prefilter.centre(memory, left, right)
    pattern = find_pattern(views, int(plan.shifts[0]))
    cleaned = None if pattern is None else take_out(pattern, views)
    if cleaned is not None:
        views = cleaned.views
    noise = _noise(views, plan, memory)
    if cleaned is not None:
        noise = noise + np.float32(cleaned.stripes)
        if cleaned.edges is not None:
            noise += cleaned.edges[:: plan.cell_px, :: plan.cell_px]
    levels = _levels(views, plan, memory)
    noise = _with_calibrated(noise, left, views[0], levels[plan.cell_px], rig.calibration)
    clock.stop("prefilter")
    # Sharp views are searched as they are: smoothing would blur fine structure across edges.
    # Defocused views have none, and order and slope of single pixels would be those of noise.
    searched = views if plan.is_sharp and plan.search_scale == 1 else levels[plan.search_scale]
    found = search(searched, noise, plan, memory)
    start_px = (found.step + found.step.dtype.type(plan.shifts[0])) * plan.search_scale
    if plan.search_scale > plan.cell_px:
        start_px = filters.double(memory, start_px, (noise.shape[0], noise.shape[1]))
    clock.stop("search")
    rows_px = measure_rows(levels, start_px, plan)
    balanced = balance_contrast(levels, start_px, plan)
    fit = refine(balanced, start_px, noise, holes, plan, memory, rows_px)
    if cleaned is not None:
        fit = with_pattern(fit, cleaned, noise, plan.cell_px)
    clock.stop("refine")
    trust = judge_cells(levels[plan.cell_px][0], noise, fit, found, plan, memory)
    in_gap = find_gaps(balanced[plan.cell_px], noise, fit.disparity_px, plan, memory)
    clock.stop("trust")
    planes = depth_and_confidence(fit, found, trust, in_gap, shape, plan, memory)
    clock.stop("confidence")
    words = () if pattern is None else pattern.words
    return JointResult(planes, fit, found, trust, clock.times_s, words)


def _holes(left: Image, right: Image) -> list[tuple[Flag, Holes]]:
    """Find missing and clipped pixels of both views, by flag, in one thread per view."""
    masks = run_together(
        *(lambda view=view: (_missing(view), clipped(view)) for view in (left, right))
    )
    flags = (Flag.INVALID_INPUT, Flag.SATURATED)
    found = [
        (flag, Holes(*pair)) for flag, pair in zip(flags, zip(*masks, strict=True), strict=True)
    ]
    return [(flag, holes) for flag, holes in found if holes.exist]


def _missing(view: Image) -> Mask:
    """Return which pixels are NaN; an empty mask if none is."""
    # min() is NaN if any pixel is NaN.
    return np.isnan(view) if np.isnan(view.min()) else np.zeros((0, 0), dtype=np.bool_)


def _noise(views: Views, plan: Plan, memory: Scratch) -> Array:
    """Return the variance of white noise around each cell, an upper bound in fine texture."""
    left, right = (prefilter.noise_variance(memory, view, _NOISE_HALF) for view in views)
    left += right
    left *= left.dtype.type(0.5)
    shape = views[0].shape[0], views[0].shape[1]
    return filters.double(memory, left, shape) if plan.cell_px == 1 else left


def _with_calibrated(
    noise: Array, left: Image, centred: Array, cells: Views, calibration: Calibration | None
) -> Array:
    """Raise the noise variance to what the calibration found for the sensor at this intensity.

    Resampled views have lost the finest part of their noise, by which it is measured, and little of
    the part that disturbs a fit. `cells` are the smoothed views, one pixel per cell.
    """
    if calibration is None or calibration.noise_read is None or calibration.noise_gain is None:
        return noise
    some = (slice(None, None, _stride(left.shape, _MANY)),) * 2
    original, scaled = (np.asarray(view[some], dtype=np.float64) for view in (left, centred))
    is_known = np.isfinite(original)
    spread = float(original[is_known].std()) if is_known.any() else 0.0
    if spread == 0:
        return noise
    # The centred view is the original one less a constant, times a scale.
    scale = float(scaled[is_known].std()) / spread
    dark = float(scaled[is_known].mean()) - scale * float(original[is_known].mean())
    light = 0.5 * (cells[0] + cells[1]) - noise.dtype.type(dark)
    calibrated = (
        calibration.noise_gain * scale * np.maximum(light, 0)
        + (calibration.noise_read * scale) ** 2
    )
    # Second differences, by which noise is measured, remove the offsets of columns.
    columns = noise.dtype.type(_COLUMN_ROWS * (calibration.noise_column * scale) ** 2)
    return np.asarray(np.maximum(noise, calibrated.astype(noise.dtype)) + columns)


def _levels(views: Views, plan: Plan, memory: Scratch) -> dict[int, Views]:
    """Smooth and shrink both views to each scale; the coarsest from the one before."""
    levels: dict[int, Views] = {}
    for scale, sigma in plan.smoothing_px.items():
        source, before = (levels[2], plan.smoothing_px[2]) if scale == 4 else (views, 0.0)
        further = float(np.sqrt(sigma**2 - before**2)) / (2 if scale == 4 else 1)
        step = 1 if scale == 1 else 2
        left, right = (prefilter.smooth(memory, view, further, step) for view in source)
        levels[scale] = left, right
    return levels


def depth_and_confidence(
    fit: CellFit,
    found: SearchResult,
    trust: Trust,
    in_gap: Mask,
    shape: tuple[int, int],
    plan: Plan,
    memory: Scratch,
) -> DepthPlanes:
    """Turn the fit of the cells into depth, sigma, confidence and flags of the pixels.

    Parameters
    ----------
    fit
        Fit of each cell of the frame.
    found
        Result of the search.
    trust
        Probability of each cell that its disparity is wrong, and its distance to texture.
    in_gap
        Whether a cell lies in a plain gap between texture.
    shape
        Rows and columns of the frame.
    plan
        Camera and options.
    memory
        Where intermediate images live.
    """
    flags = confidence.search_flags(memory, found, plan.shifts.size, _MIN_MARGIN)
    if plan.search_scale > plan.cell_px:
        rows, cols = fit.flags.shape
        flags = np.ascontiguousarray(flags.repeat(2, 0).repeat(2, 1)[:rows, :cols])
    flags[in_gap] |= np.uint16(Flag.ENCLOSED)
    return confidence.depth_planes(memory, fit, trust, flags, confidence_parameters(shape, plan))


def confidence_parameters(shape: tuple[int, int], plan: Plan) -> ConfidenceParameters:
    """Return the parameters of depth and confidence for a frame of (rows, cols)."""
    is_sharp = plan.is_sharp
    return ConfidenceParameters(
        frame_shape=shape,
        cell_side=plan.cell_px,
        per_dpt_px=plan.model.per_dpt_px,
        offset_px=plan.model.offset_px,
        calibration=plan.calibration,
        nearest_m=plan.depth_range_m[0] * (1 - _RANGE_SHARE),
        farthest_m=plan.depth_range_m[1] * (1 + _RANGE_SHARE),
        min_confidence=plan.options.min_confidence,
        wrong_at_half_confidence=_SHARP_WRONG if is_sharp else _DEFOCUSED_WRONG,
        sigma_at_half_confidence_px=_SHARP_SIGMA_PX if is_sharp else _DEFOCUSED_SIGMA_PX,
        sigma_at_half_confidence_per_px=0.0 if is_sharp else _SIGMA_PER_PX,
        wrong_variance_px2=_WRONG_PX2,
        harmless_wrong=_SHARP_HARMLESS if is_sharp else _DEFOCUSED_HARMLESS,
        max_carried_px=float(plan.windows_px[0]),
        min_correlation=_MIN_CORRELATION,
        max_misfit=_MAX_MISFIT,
        remarks=int(Flag.CARRIED | (Flag.ENCLOSED if plan.options.enclosed else 0)),
        enclosed_confidence=_ENCLOSED_RIGHT,
    )


def _stride(shape: tuple[int, ...], count: int) -> int:
    return max(isqrt(shape[0] * shape[1] // count), 1)


class _Clock:
    """Seconds of each stage."""

    def __init__(self) -> None:
        self.times_s: dict[str, float] = {}
        self._last = perf_counter()

    def stop(self, stage: str) -> None:
        """Name the stage that has ended."""
        now = perf_counter()
        self.times_s[stage], self._last = now - self._last, now
