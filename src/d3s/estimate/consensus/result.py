"""Flags and depth map from the candidate that a search chose for each pixel.

The compiled search and the NumPy reference share it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.checked_pair import CheckedPair
from d3s.estimate.clipping import clipped
from d3s.estimate.consensus.consensus_plan import ConsensusPlan, tried_mask
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.optics.consensus import Pick, keep_confident
from d3s.optics.windows import central_gradient_x, five_point_laplacian, window_sum
from d3s.rig.variance import DisparityVariance
from d3s.types import FloatArray, Mask

# Root mean square of gradient and Laplacian in a window, over the largest value of the views.
# Rounding to float32 leaves up to 2e-7 in a constant view, and every sensor has more noise.
_MAX_ROUNDING_DETAIL = 1e-6


class ChosenCandidates(NamedTuple):
    """Best candidate of each pixel: arrays (rows, cols)."""

    candidate: NDArray[np.int32]  # index; -1 where no candidate has any confidence
    confidence: NDArray[np.floating]  # 0 to 1
    variance_m2: NDArray[np.floating]  # of the depth
    shift_m: NDArray[
        np.floating
    ]  # from the candidate to where the mean of its predictions meets it


def as_depth_map(
    found: ChosenCandidates, pair: CheckedPair, left_smoothed: FloatArray, plan: ConsensusPlan
) -> DepthMap:
    """Flag pixels that cannot be trusted; make a depth map of the others.

    Parameters
    ----------
    found
        Result of the search.
    pair
        Views as they were given, with NaN pixels.
    left_smoothed
        Left view (rows, cols) after the prefilter, without NaN.
    plan
        Plan of the search, with the rig and the options.
    """
    flags = _flags(found, pair, left_smoothed, plan)
    variance_m2 = found.variance_m2 + _calibration_variance_m2(found, plan)
    keep = flags == 0
    nan = np.float32(np.nan)
    depth = plan.candidates_m.astype(np.float32)[found.candidate]
    options = plan.options
    if options.refine or (options.refine is None and not options.as_printed):
        step_m = plan.steps_m[found.candidate]
        depth = (depth + np.clip(found.shift_m, -step_m, step_m)).astype(np.float32)
        variance_m2 = variance_m2 - step_m**2 / 12
    return DepthMap(
        depth_m=np.where(keep, depth, nan),
        sigma_m=np.where(keep, np.sqrt(variance_m2).astype(np.float32), nan),
        confidence=found.confidence.astype(np.float32),
        flags=flags,
        rig=plan.rig,
        method="consensus",
        options=plan.options,
        warnings=_warnings(flags, plan, pair.left.shape),
    )


def _calibration_variance_m2(found: ChosenCandidates, plan: ConsensusPlan) -> FloatArray:
    """Variance of each depth by errors of the calibration, and by its age."""
    rig, optics = plan.rig, plan.rig.optics
    lenses = None if rig.calibration is None else rig.calibration.lenses
    everywhere_px = rig.rectification_sigma_px(plan.options.calibration_age_days)
    known = (
        DisparityVariance.of_sigma(everywhere_px)
        if lenses is None
        else lenses.disparity_variance(optics, everywhere_px)
    )
    depth_m = plan.candidates_m[found.candidate]
    per_px = depth_m**2 / (optics.focal_length_px * optics.baseline_m)
    return np.asarray(per_px**2 * known.over(1 / depth_m))


def _flags(
    found: ChosenCandidates, pair: CheckedPair, left_smoothed: FloatArray, plan: ConsensusPlan
) -> NDArray[np.uint16]:
    border = _border_mask(plan, pair.left.shape)
    best = Pick(plan.candidates_m[found.candidate], np.asarray(found.confidence))
    masks = {
        Flag.BORDER: border,
        Flag.INVALID_INPUT: _touched_mask(np.isnan(pair.left), np.isnan(pair.right), found, plan),
        Flag.SATURATED: _touched_mask(clipped(pair.left), clipped(pair.right), found, plan),
        Flag.LOW_TEXTURE: ~border & _flat_mask(pair, left_smoothed, plan.settings.window_px),
        Flag.OUT_OF_RANGE: _at_end_mask(found, plan),
        Flag.LOW_CONFIDENCE: ~border & np.isnan(keep_confident(best, plan.options.min_confidence)),
    }
    flags = np.zeros(pair.left.shape, dtype=np.uint16)
    for flag, mask in masks.items():
        flags[mask] |= np.uint16(flag)
    return flags


def _border_mask(plan: ConsensusPlan, shape: tuple[int, ...]) -> Mask:
    """True where no candidate was tried."""
    rows, cols = shape
    border = np.ones((rows, cols), dtype=np.bool_)
    border[plan.reach_px : rows - plan.reach_px] = ~tried_mask(plan, cols).any(axis=0)
    return border


def _at_end_mask(found: ChosenCandidates, plan: ConsensusPlan) -> Mask:
    """True where the best candidate is the nearest or the farthest one tried in its column.

    Near the left edge of the frame the nearest candidates are not tried: their match is outside.
    """
    tried = tried_mask(plan, found.candidate.shape[1])
    nearest = tried.argmax(axis=0)
    farthest = tried.shape[0] - 1 - tried[::-1].argmax(axis=0)
    at_end = (found.candidate == nearest) | (found.candidate == farthest)
    return np.asarray(at_end & (found.candidate >= 0))


def _flat_mask(pair: CheckedPair, left_smoothed: FloatArray, window_px: int) -> Mask:
    """True where the window has no more detail than rounding leaves."""
    largest = max(float(np.fmax.reduce(np.abs(view), axis=None)) for view in pair)
    detail = central_gradient_x(left_smoothed) ** 2 + five_point_laplacian(left_smoothed) ** 2
    mean = window_sum(detail, window_px) / window_px**2
    return np.asarray(~(mean > (_MAX_ROUNDING_DETAIL * largest) ** 2))


def _touched_mask(left: Mask, right: Mask, found: ChosenCandidates, plan: ConsensusPlan) -> Mask:
    """True where the window, or the window of the match, holds a marked pixel of its view."""
    touched = np.zeros(left.shape, dtype=np.bool_)
    col = np.arange(left.shape[1])
    if left.any():
        touched |= _any_between(left, plan.reach_px, col - plan.reach_px, col + plan.reach_px)
    if right.any():
        # Clipped first: the shifts of very near depths are too large for an integer.
        shifts = np.clip(plan.shifts_px, -col.size, col.size)
        first = np.ceil(shifts.max(axis=1)).astype(np.int64) + plan.reach_px
        last = np.floor(shifts.min(axis=1)).astype(np.int64) - plan.reach_px
        match = _any_between(
            right, plan.reach_px, col - first[found.candidate], col - last[found.candidate]
        )
        touched |= match & (found.candidate >= 0)
    return touched


def _any_between(
    mask: Mask, reach_rows: int, first: NDArray[np.int64], last: NDArray[np.int64]
) -> Mask:
    """True where a mask is set in columns `first` to `last`, within `reach_rows` rows.

    `first` and `last` are (cols,) or (rows, cols): a range of columns for each pixel.
    """
    from scipy.ndimage import maximum_filter1d  # importing scipy takes longer than the rest of d3s

    near = maximum_filter1d(mask.astype(np.uint8), 2 * reach_rows + 1, axis=0, mode="constant")
    counts = np.zeros((mask.shape[0], mask.shape[1] + 1), dtype=np.int32)
    np.cumsum(near, axis=1, out=counts[:, 1:])
    first, last = (
        np.broadcast_to(np.clip(ends, 0, mask.shape[1]), mask.shape) for ends in (first, last + 1)
    )
    through = np.take_along_axis(counts, last, axis=1)
    return np.asarray(through > np.take_along_axis(counts, first, axis=1))


def _warnings(
    flags: NDArray[np.uint16], plan: ConsensusPlan, shape: tuple[int, ...]
) -> tuple[str, ...]:
    if not (flags & np.uint16(Flag.BORDER)).all():
        return ()
    needed = 2 * plan.reach_px + 1
    return (
        f"no pixel of a view of {shape[0]} x {shape[1]} could be tried: a window with its filters "
        f"is {needed} px, and its match is up to {np.abs(plan.shifts_px).max():.4g} px away.",
    )
