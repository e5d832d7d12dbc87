"""The judgement in plain NumPy."""

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.flags import Flag
from d3s.estimate.joint.confidence_types import LEAST_SIGMA_PX, Judged, Judging
from d3s.estimate.joint.model import Array
from d3s.estimate.joint.numpy_backend.refine import PlainRefine
from d3s.estimate.joint.search import Found
from d3s.estimate.joint.types import Refined


class PlainJudge:
    """Double precision."""

    def of_search(self, found: Found, depth: int, least_margin: float) -> NDArray[np.uint16]:
        """Flags that come from the search, which looked at so many shifts."""
        gap = np.where(found.seen < 0, 0.0, found.seen - found.step)
        at_end = (found.step <= 0.5) | (found.step >= depth - 1.5)
        flags = np.zeros(found.step.shape, dtype=np.uint16)
        flags[gap > 1] |= np.uint16(Flag.OCCLUDED)
        flags[gap < -1] |= np.uint16(Flag.INCONSISTENT)
        flags[~(found.margin >= least_margin)] |= np.uint16(Flag.AMBIGUOUS)
        flags[at_end] |= np.uint16(Flag.OUT_OF_RANGE)
        return flags

    def judged(
        self,
        fit: Refined,
        is_one: NDArray[np.uint8],
        flags: NDArray[np.uint16],
        judging: Judging,
    ) -> Judged:
        """All of a frame; `is_one` says where there is one surface, `flags` are of the search."""
        per_cell = flags | fit.flags
        is_known = (fit.sigma_px >= 0) & (fit.sigma_px < np.inf)
        bad = (is_one == 0) | ~(fit.misfit <= judging.largest_misfit) | ~is_known
        per_cell[bad] |= np.uint16(Flag.INCONSISTENT)
        # Between cells each counts by its precision: a poor one must not spoil a good one.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            precision = np.where(is_known, 1 / np.maximum(fit.sigma_px, LEAST_SIGMA_PX) ** 2, 0)
            weighted, weight, bend_px, correlation = (
                self._full(part, judging)
                for part in (fit.disparity_px * precision, precision, fit.bend_px, fit.correlation)
            )
            disparity = weighted / weight
        rows, cols = judging.shape
        out = per_cell.repeat(judging.cell, 0).repeat(judging.cell, 1)[:rows, :cols].copy()
        vergence = (disparity - judging.offset_px) / judging.per_dpt_px
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            depth = np.where(vergence > 0, 1 / vergence, np.inf)
            all_px = np.sqrt(1 / weight + bend_px**2 + judging.rectification_sigma_px**2)
            sigma = depth * depth * all_px / judging.per_dpt_px
            scale = np.maximum(judging.sigma_m, judging.sigma_share * depth)
            confidence = np.nan_to_num(correlation / (1 + sigma / scale), nan=0.0)
        near, far = judging.nearest_m, judging.farthest_m
        out[~(correlation >= judging.least_correlation)] |= np.uint16(Flag.LOW_TEXTURE)
        out[~((depth >= near) & (depth <= far))] |= np.uint16(Flag.OUT_OF_RANGE)
        out[~(confidence >= judging.min_confidence)] |= np.uint16(Flag.LOW_CONFIDENCE)
        keep = out == 0
        return Judged(np.where(keep, depth, np.nan), np.where(keep, sigma, np.nan), confidence, out)

    def _full(self, image: Array, judging: Judging) -> Array:
        return image if judging.cell == 1 else PlainRefine().doubled(image, judging.shape)
