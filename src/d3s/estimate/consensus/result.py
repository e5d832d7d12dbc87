"""From the depth that a search chose for each pixel to a depth map: why not, and how sure."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.clipping import clipped
from d3s.estimate.consensus.plan import Plan, tried
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.images import CheckedPair
from d3s.estimate.options import ConsensusOptions
from d3s.optics.windows import central_gradient_x, five_point_laplacian, window_sum
from d3s.rig import Rig
from d3s.types import FloatArray, Mask

# Root mean square of the detail in a window, over the largest value of the views. Rounding to
# float32 leaves up to 2e-7 in the Laplacian of a constant view, and no sensor has so little noise.
_DETAIL_OF_ROUNDING = 1e-6


class Chosen(NamedTuple):
    """What the search found, per pixel."""

    candidate: NDArray[
        np.int32
    ]  # number of the best depth to try; -1 where none has any confidence
    confidence: NDArray[np.floating]
    variance_m2: NDArray[np.floating]


def as_depth_map(
    chosen: Chosen,
    pair: CheckedPair,
    left_smoothed: FloatArray,
    plan: Plan,
    rig: Rig,
    options: ConsensusOptions,
) -> DepthMap:
    """Flags for all that cannot be trusted, and depth for the rest."""
    flags = _flags(chosen, pair, left_smoothed, plan, options)
    keep = flags == 0
    nan = np.float32(np.nan)
    depth = plan.candidates_m.astype(np.float32)[chosen.candidate]
    return DepthMap(
        depth_m=np.where(keep, depth, nan),
        sigma_m=np.where(keep, np.sqrt(chosen.variance_m2).astype(np.float32), nan),
        confidence=chosen.confidence.astype(np.float32),
        flags=flags,
        rig=rig,
        method="consensus",
        options=options,
        warnings=_warnings(flags, plan, pair.left.shape),
    )


def _flags(
    chosen: Chosen,
    pair: CheckedPair,
    left_smoothed: FloatArray,
    plan: Plan,
    options: ConsensusOptions,
) -> NDArray[np.uint16]:
    border = _is_border(plan, pair.left.shape)
    low_confidence = ~border & ~(chosen.confidence > options.min_confidence)
    masks = {
        Flag.BORDER: border,
        Flag.INVALID_INPUT: _touched(np.isnan(pair.left), np.isnan(pair.right), chosen, plan),
        Flag.SATURATED: _touched(clipped(pair.left), clipped(pair.right), chosen, plan),
        Flag.LOW_TEXTURE: ~border & _is_flat(pair, left_smoothed, plan.settings.window_px),
        Flag.OUT_OF_RANGE: _is_at_end(chosen, plan),
        Flag.LOW_CONFIDENCE: low_confidence,
    }
    flags = np.zeros(pair.left.shape, dtype=np.uint16)
    for flag, mask in masks.items():
        flags[mask] |= np.uint16(flag)
    return flags


def _is_border(plan: Plan, shape: tuple[int, ...]) -> Mask:
    """Where no depth could be tried."""
    rows, cols = shape
    border = np.ones((rows, cols), dtype=np.bool_)
    border[plan.reach_px : rows - plan.reach_px] = ~tried(plan, cols).any(axis=0)
    return border


def _is_at_end(chosen: Chosen, plan: Plan) -> Mask:
    """Where the best is the nearest or the farthest of those that the column could be tried with.

    Near the left edge of the frame that excludes the nearest depths, whose match is not in it.
    """
    could = tried(plan, chosen.candidate.shape[1])
    nearest = could.argmax(axis=0)
    farthest = could.shape[0] - 1 - could[::-1].argmax(axis=0)
    at_end = (chosen.candidate == nearest) | (chosen.candidate == farthest)
    return np.asarray(at_end & (chosen.candidate >= 0))


def _is_flat(pair: CheckedPair, left_smoothed: FloatArray, window_px: int) -> Mask:
    """Where the window has no more detail than rounding leaves."""
    largest = max(float(np.fmax.reduce(np.abs(view), axis=None)) for view in pair)
    detail = central_gradient_x(left_smoothed) ** 2 + five_point_laplacian(left_smoothed) ** 2
    mean = window_sum(detail, window_px) / window_px**2
    return np.asarray(~(mean > (_DETAIL_OF_ROUNDING * largest) ** 2))


def _touched(left: Mask, right: Mask, chosen: Chosen, plan: Plan) -> Mask:
    """Where a pixel of a mask is in the window, or in the window of the match that was chosen."""
    touched = np.zeros(left.shape, dtype=np.bool_)
    col = np.arange(left.shape[1])
    if left.any():
        touched |= _any_between(left, plan.reach_px, col - plan.reach_px, col + plan.reach_px)
    if right.any():
        # Clipped, so that they are whole numbers even for depths of nearly zero.
        shifts = np.clip(plan.shifts_px, -col.size, col.size)
        first = np.ceil(shifts.max(axis=1)).astype(np.int64) + plan.reach_px
        last = np.floor(shifts.min(axis=1)).astype(np.int64) - plan.reach_px
        match = _any_between(
            right, plan.reach_px, col - first[chosen.candidate], col - last[chosen.candidate]
        )
        touched |= match & (chosen.candidate >= 0)
    return touched


def _any_between(
    mask: Mask, reach_rows: int, first: NDArray[np.int64], last: NDArray[np.int64]
) -> Mask:
    """Whether a mask has a pixel in columns `first` to `last`, of each pixel, in rows near it."""
    from scipy.ndimage import maximum_filter1d  # importing scipy takes longer than the rest of d3s

    near = maximum_filter1d(mask.astype(np.uint8), 2 * reach_rows + 1, axis=0, mode="constant")
    counts = np.zeros((mask.shape[0], mask.shape[1] + 1), dtype=np.int32)
    np.cumsum(near, axis=1, out=counts[:, 1:])
    first, last = (
        np.broadcast_to(np.clip(ends, 0, mask.shape[1]), mask.shape) for ends in (first, last + 1)
    )
    through = np.take_along_axis(counts, last, axis=1)
    return np.asarray(through > np.take_along_axis(counts, first, axis=1))


def _warnings(flags: NDArray[np.uint16], plan: Plan, shape: tuple[int, ...]) -> tuple[str, ...]:
    if not (flags & np.uint16(Flag.BORDER)).all():
        return ()
    needed = 2 * plan.reach_px + 1
    return (
        f"no pixel of a view of {shape[0]} x {shape[1]} could be tried: a window with its filters "
        f"is {needed} px, and its match is up to {np.abs(plan.shifts_px).max():.4g} px away.",
    )
