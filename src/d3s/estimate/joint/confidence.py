"""Confidence: depth, sigma, confidence and flags of each pixel from the fit of the cells."""

import numpy as np

from d3s.estimate.joint.backend import Backend
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.types import (
    CellFit,
    ConfidenceParameters,
    DepthPlanes,
    SearchResult,
    Trust,
)

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
# Margin of the search, mean over a neighbourhood, below which another depth fits about as well.
_MIN_MARGIN = 0.02
# Share by which a depth may exceed the ends of the range.
_RANGE_SHARE = 0.005


def depth_and_confidence(
    fit: CellFit,
    found: SearchResult,
    trust: Trust,
    shape: tuple[int, int],
    plan: Plan,
    backend: Backend,
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
    shape
        Rows and columns of the frame.
    plan
        Camera and options.
    backend
        Operations on images.
    """
    flags = backend.confidence.search_flags(found, plan.shifts.size, _MIN_MARGIN)
    if plan.search_scale > plan.cell_px:
        rows, cols = fit.flags.shape
        flags = np.ascontiguousarray(flags.repeat(2, 0).repeat(2, 1)[:rows, :cols])
    return backend.confidence.depth_planes(fit, trust, flags, confidence_parameters(shape, plan))


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
    )
