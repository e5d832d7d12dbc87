"""`densify`: fill the holes of a depth map as far as they can be known."""

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap, check_limits
from d3s.estimate.flags import Flag
from d3s.estimate.methods import checked_options, estimate_quietly
from d3s.estimate.options import JointOptions, Options
from d3s.lab.dense.candidates import CELL_PX, CellEvidence
from d3s.lab.dense.evidence import cells_of, make_ground
from d3s.lab.dense.judge import Filled, judge_cells
from d3s.lab.dense.model import (
    FrameScale,
    depth_span_m,
    load_model,
    sigma_of,
    sigma_of_surroundings,
)
from d3s.lab.dense.propagation import average_surfaces
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image, Mask

_CHANCE_POWER = 4  # by which cells that may be of another surface count less
_FLOOR_PX = np.float32(0.14)  # error that no cell is better than
_BEYOND = 0.1  # share of the range of disparities by which filled ones may leave it

_LOW_CONFIDENCE, _FILLED = np.uint16(Flag.LOW_CONFIDENCE), np.uint16(Flag.FILLED)


def densify(
    depth_map: DepthMap, *, max_sigma_m: float | None = 0.05, min_confidence: float | None = None
) -> DepthMap:
    """Return a depth map with holes filled in as far as they can be known.

    Measured depths and their sigma stay as they are, bit for bit. Filled ones have the flag
    FILLED and a sigma that contains the chance of another surface; `filter(filled=False)`
    removes them again. Holes are filled from evidence on four sides, along planes in inverse
    depth, and with the left view as a guide; docs/dense.md says how good they are.

    There is most to go by if the depth map was made with the option `min_confidence=0`: depths
    below the usual threshold are then weak evidence, which the fill weighs and replaces.

    Parameters
    ----------
    depth_map
        Depth map; one with `min_confidence=0` in its options has most to go by.
    max_sigma_m
        Largest sigma of a filled depth, in metres. Holes that cannot be known better stay open.
        None fills all holes, however uncertain.
    min_confidence
        Least confidence of depths that count as measured, 0 to 1. None is 0.5 for a depth map
        that was made with the option `min_confidence=0`, and all depths for any other.

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> import d3s
    >>> from d3s.lab.dense import densify
    >>> rig = d3s.Rig.paper_prototype()
    >>> scene = d3s.RandomScene(seed=3, surfaces="weak")
    >>> pair = d3s.simulate(scene, rig, noise=0.01, shape=(120, 180))
    >>> all_depths = d3s.estimate(pair.left, pair.right, rig, options={"min_confidence": 0})
    >>> dense = densify(all_depths)
    >>> dense.density >= dense.filter(filled=False).density
    True
    """
    limit_m = _checked_sigma(max_sigma_m)
    started = perf_counter()
    is_measured = measured_pixels(depth_map, min_confidence)
    out = Pixels(depth_map.depth_m.copy(), depth_map.sigma_m.copy(), depth_map.flags.copy())
    cells = _filled(depth_map, is_measured)
    run_over_rows(_write_pixels, len(is_measured), is_measured, *cells, np.float32(limit_m), out)
    return replace(
        depth_map,
        depth_m=out.depth_m,
        sigma_m=out.sigma_m,
        flags=out.flags,
        timings_s=depth_map.timings_s | {"densify": perf_counter() - started},
    )


class Pixels(NamedTuple):
    """Result of the fill: arrays (rows, cols)."""

    depth_m: Image
    sigma_m: Image
    flags: NDArray[np.uint16]


@compiled
def _write_pixels(
    start: int,
    stop: int,
    is_measured: Mask,
    depth_m: Image,
    sigma_m: Image,
    limit_m: np.float32,
    out: Pixels,
) -> None:
    """Replace what is not measured by the depth of its cell, if that is known well enough.

    Depths of cells and their sigma are NaN for none. `out` has the depth map before, and after.
    """
    for row in range(start, stop):
        for col in range(is_measured.shape[1]):
            if is_measured[row, col]:
                continue
            flags = out.flags[row, col]
            if np.isfinite(out.depth_m[row, col]):
                flags |= _LOW_CONFIDENCE
            depth, sigma = np.float32(np.nan), np.float32(np.nan)
            if sigma_m[row // CELL_PX, col // CELL_PX] <= limit_m:
                depth = depth_m[row // CELL_PX, col // CELL_PX]
                sigma = sigma_m[row // CELL_PX, col // CELL_PX]
                flags |= _FILLED
            out.depth_m[row, col], out.sigma_m[row, col] = depth, sigma
            out.flags[row, col] = flags


def estimate_dense(
    left: Any,
    right: Any,
    rig: Rig,
    *,
    max_sigma_m: float | None = 0.05,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
) -> DepthMap:
    """Estimate the depth of a pair with all weak depths, and densify it.

    Measured depths are those that `estimate` gives with the same options.

    Parameters
    ----------
    left, right, rig, method, options
        As for `estimate`, which also has the exceptions.
    max_sigma_m
        As for `densify`.
    """
    chosen = checked_options(method, options)
    least = getattr(chosen, "min_confidence", None)
    everything = chosen if least is None else chosen.replace(min_confidence=0.0)
    found = estimate_quietly(left, right, rig, method=method, options=everything)
    dense = densify(found, max_sigma_m=max_sigma_m, min_confidence=least)
    return replace(dense, options=chosen)


def measured_pixels(depth_map: DepthMap, min_confidence: float | None = None) -> Mask:
    """Pixels whose depth counts as measured; those that an earlier call has filled do not.

    `min_confidence` is the least confidence of measured depths, 0 to 1. None takes the default of
    the estimator for a depth map that was made with `min_confidence=0`, and all depths of others.
    """
    least = min_confidence
    if least is None:
        asked = getattr(depth_map.options, "min_confidence", None)
        least = JointOptions().min_confidence if asked == 0 else 0.0
    check_limits(min_confidence=least)
    is_kept = depth_map.valid & (depth_map.confidence >= np.float32(least))
    return np.asarray(is_kept & ((depth_map.flags & np.uint16(Flag.FILLED)) == 0))


def _filled(depth_map: DepthMap, is_measured: Mask) -> tuple[Image, Image]:
    """Depth and sigma of the cells that are not measured; NaN where there is no evidence."""
    shape = -(-is_measured.shape[0] // CELL_PX), -(-is_measured.shape[1] // CELL_PX)
    nothing = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
    if not is_measured.any() or is_measured.all():
        return nothing
    was_filled = (depth_map.flags & np.uint16(Flag.FILLED)) != 0
    source = depth_map
    if was_filled.any():  # a guess is no evidence for another
        source = replace(
            depth_map, depth_m=np.where(was_filled, np.float32(np.nan), depth_map.depth_m)
        )
    cells = cells_of(source, is_measured)
    if not cells.is_measured.any():
        return nothing
    model = load_model()
    ground = make_ground(cells, model.evidence)
    found = judge_cells(ground, model.paths, model.fill)
    averaged_px = average_surfaces(ground.guide, *evidence_of_surfaces(ground.evidence, found))
    optics = depth_map.rig.optics
    per_dpt_px = optics.focal_length_px * optics.baseline_m
    low, high = (float(f(ground.evidence.disparity_px)) for f in (np.nanmin, np.nanmax))
    slack = _BEYOND * (high - low)
    averaged_px = np.where(np.isfinite(found.disparity_px), averaged_px, np.float32(np.nan))
    disparity = np.clip(averaged_px, max(low - slack, 0.5 * low), high + slack)
    depth_m = np.asarray(np.float32(per_dpt_px) / disparity, np.float32)
    span = FrameScale(per_dpt_px, depth_span_m(depth_map.depth_m[is_measured]))
    sigma_m = sigma_of(depth_m, found.error_px, found.gross, span, model.sigma)
    return depth_m, sigma_of_surroundings(sigma_m, cells.is_measured, span)


def evidence_of_surfaces(evidence: CellEvidence, found: Filled) -> tuple[Image, Image]:
    """Disparities of measured and filled cells, and what they weigh in a mean over surfaces."""
    is_measured = evidence.is_measured
    error_px = np.where(is_measured, evidence.sigma_px, found.error_px)
    chance = np.where(is_measured, np.float32(1), 1 - found.gross)  # of the right surface
    weight = chance**_CHANCE_POWER / (error_px**2 + _FLOOR_PX**2)
    disparity_px = np.where(is_measured, evidence.disparity_px, found.disparity_px)
    return disparity_px, np.asarray(weight, np.float32)


def _checked_sigma(max_sigma_m: float | None) -> float:
    if max_sigma_m is None:
        return float("inf")
    try:
        number = float(max_sigma_m)
    except (TypeError, ValueError):
        number = float("nan")
    if not number > 0:
        raise InputError(
            f"max_sigma_m={short_repr(max_sigma_m)} must be a number above 0, in metres: the "
            "largest sigma of a filled depth. None fills all holes."
        )
    return number
