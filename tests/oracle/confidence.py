"""Depth, sigma, confidence and flags in NumPy."""

import numpy as np

from d3s.estimate.flags import Flag
from d3s.estimate.joint.types import (
    MIN_SIGMA_PX,
    Array,
    Bits,
    CellFit,
    ConfidenceParameters,
    DepthPlanes,
    SearchResult,
    Trust,
)
from oracle.refine import double


def search_flags(found: SearchResult, shifts: int, min_margin: float) -> Bits:
    """Return the flags that follow from a search over so many shifts."""
    gap = np.where(found.right_step < 0, 0.0, found.right_step - found.step)
    at_end = (found.step <= 0.5) | (found.step >= shifts - 1.5)
    flags = np.zeros(found.step.shape, dtype=np.uint16)
    flags[gap > 1] |= np.uint16(Flag.OCCLUDED)
    flags[gap < -1] |= np.uint16(Flag.INCONSISTENT)
    flags[~(found.margin >= min_margin)] |= np.uint16(Flag.AMBIGUOUS)
    flags[at_end] |= np.uint16(Flag.OUT_OF_RANGE)
    return flags


def depth_planes(
    fit: CellFit,
    trust: Trust,
    flags: Bits,
    parameters: ConfidenceParameters,
) -> DepthPlanes:
    """Return depth, sigma, confidence and flags of each pixel."""
    per_cell = flags | fit.flags
    is_known = (fit.sigma_px >= 0) & (fit.sigma_px < np.inf)
    bad = ~(fit.misfit <= parameters.max_misfit) | ~is_known
    per_cell[bad] |= np.uint16(Flag.INCONSISTENT)
    per_cell[trust.carried_px > parameters.max_carried_px] |= np.uint16(Flag.CARRIED)
    # Interpolation weights cells by their precision, so that a poor cell spoils no good one.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        precision = np.where(is_known, 1 / np.maximum(fit.sigma_px, MIN_SIGMA_PX) ** 2, 0)
        weighted, weight, bend_px, correlation, wrong = (
            _per_pixel(part, parameters)
            for part in (
                fit.disparity_px * precision,
                precision,
                fit.bend_px,
                fit.correlation,
                trust.wrong,
            )
        )
        disparity = weighted / weight
    rows, cols = parameters.frame_shape
    side = parameters.cell_side
    out = per_cell.repeat(side, 0).repeat(side, 1)[:rows, :cols].copy()
    vergence = (disparity - parameters.offset_px) / parameters.per_dpt_px
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        depth = np.where(vergence > 0, 1 / vergence, np.inf)
        variance = 1 / weight + bend_px**2
        doubt = parameters.wrong_variance_px2 * np.maximum(wrong - parameters.harmless_wrong, 0)
        known = parameters.calibration.over(vergence)
        sigma_px = np.sqrt(variance + known + doubt)
        sigma = depth * depth * sigma_px / parameters.per_dpt_px
        half = np.maximum(
            parameters.sigma_at_half_confidence_px,
            parameters.sigma_at_half_confidence_per_px * (disparity - parameters.offset_px) ** 2,
        )
        doubts = wrong / parameters.wrong_at_half_confidence + np.sqrt(variance) / half
        confidence = np.nan_to_num(1 / (1 + doubts), nan=0.0)
    near, far = parameters.nearest_m, parameters.farthest_m
    out[~(correlation >= parameters.min_correlation)] |= np.uint16(Flag.LOW_TEXTURE)
    out[~((depth >= near) & (depth <= far))] |= np.uint16(Flag.OUT_OF_RANGE)
    out[~(confidence >= parameters.min_confidence)] |= np.uint16(Flag.LOW_CONFIDENCE)
    confidence[(out & np.uint16(Flag.ENCLOSED)) != 0] *= parameters.enclosed_confidence
    keep = (out & ~np.uint16(parameters.remarks)) == 0
    depth, sigma = np.where(keep, depth, np.nan), np.where(keep, sigma, np.nan)
    return DepthPlanes(depth, sigma, confidence, out)


def _per_pixel(image: Array, parameters: ConfidenceParameters) -> Array:
    if parameters.cell_side == 1:
        return image
    return double(image, parameters.frame_shape)
