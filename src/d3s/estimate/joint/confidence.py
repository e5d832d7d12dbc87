"""Confidence: depth, sigma, confidence and flags of each pixel from the fit of the cells."""

import numpy as np

from d3s.estimate.joint.backend import Backend
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.types import (
    CellFit,
    ConfidenceParameters,
    DepthPlanes,
    SearchResult,
    SurfaceLimits,
)

# Sigma at which the confidence is half the correlation, in metres or as a share of the depth.
_SIGMA_M, _SIGMA_SHARE = 0.01, 0.005
# Correlation beyond chance below which a window counts as without texture.
_MIN_CORRELATION = 0.3
# Largest residual of 3 x 3 cells over what noise and lenses explain; 3 pixels in 1000 of a plane
# have more.
_MAX_MISFIT = 6.0
# Misfit by which the best valley must be below the next best; noise makes a misfit of 1.
_MIN_MARGIN = 0.05
# Extent of the disparities within the smallest window that lies on one surface, in pixels.
_MAX_EXTENT_PX = 2.0
# Share by which a depth may exceed the ends of the range.
_RANGE_SHARE = 0.005


def depth_and_confidence(
    fit: CellFit, found: SearchResult, shape: tuple[int, int], plan: Plan, backend: Backend
) -> DepthPlanes:
    """Turn the fit of the cells into depth, sigma, confidence and flags of the pixels.

    Parameters
    ----------
    fit
        Fit of each cell of the frame.
    found
        Result of the search.
    shape
        Rows and columns of the frame.
    plan
        Camera and options.
    backend
        Operations on images.
    """
    half = max(round((plan.windows_px[0] / plan.cell_px - 1) / 2), 1)
    limits = SurfaceLimits(_MAX_EXTENT_PX, 0.0, 0.0)
    is_one_surface = backend.refine.count_one_surface(fit.disparity_px, (half,), limits)
    flags = backend.confidence.search_flags(found, plan.shifts.size, _MIN_MARGIN)
    if plan.search_scale > plan.cell_px:
        rows, cols = fit.flags.shape
        flags = np.ascontiguousarray(flags.repeat(2, 0).repeat(2, 1)[:rows, :cols])
    return backend.confidence.depth_planes(
        fit, is_one_surface, flags, confidence_parameters(shape, plan)
    )


def confidence_parameters(shape: tuple[int, int], plan: Plan) -> ConfidenceParameters:
    """Return the parameters of depth and confidence for a frame of (rows, cols)."""
    return ConfidenceParameters(
        frame_shape=shape,
        cell_side=plan.cell_px,
        per_dpt_px=plan.model.per_dpt_px,
        offset_px=plan.model.offset_px,
        rectification_sigma_px=plan.rectification_sigma_px,
        nearest_m=plan.depth_range_m[0] * (1 - _RANGE_SHARE),
        farthest_m=plan.depth_range_m[1] * (1 + _RANGE_SHARE),
        min_confidence=plan.options.min_confidence,
        sigma_at_half_confidence_m=_SIGMA_M,
        sigma_at_half_confidence_share=_SIGMA_SHARE,
        min_correlation=_MIN_CORRELATION,
        max_misfit=_MAX_MISFIT,
    )
