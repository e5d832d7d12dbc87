"""Errors of a method on boards at known depths, and the working range; used to cross-validate."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.board import Board
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.ratios import Windows
from d3s.calibrate.tuning import board_depth_m, tuned_options
from d3s.errors import InputError
from d3s.estimate import DepthMap, Flag, Options
from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.methods import estimate_quietly
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image, Progress

ACCURATE_M = 0.01
"""The working range is the depths at which the mean absolute error is below this."""

RULER_SIGMA_M = 5e-4
"""Least standard deviation of the depth of a board: a ruler is read to a millimetre."""

# Part of the width of a view in which errors count: farther out a lens is worse, and a board may
# end.
_MIDDLE_SHARE = 0.9
# The ends of a depth range are found to half a per cent, and the truth is not known better.
_RANGE_TOLERANCE = 0.005
# Margin of a depth range, as a share of 1/Z: a depth at the end of the range has no neighbour to be
# compared with, and a tilted board is nearer on one side.
_MARGIN = 0.1


class Validation(NamedTuple):
    """Errors of one method on each board; NaN where no pixel has a depth.

    Errors are over the pixels in the middle of the frame that have a depth. Density is the share of
    pixels with a depth among those whose point the right view shows too, textured or not.
    """

    method: str
    depths_m: FloatArray
    mae_m: FloatArray
    median_m: FloatArray  # median absolute error
    bias_m: FloatArray  # median of depth minus truth
    density: FloatArray
    working_range_m: tuple[float, float] | None  # longest run of boards with MAE below 1 cm
    left_out: dict[int, str]
    sigma_m: FloatArray | None = None  # median of the predicted sigma
    within_1_sigma: FloatArray | None = None  # share of the errors
    within_3_sigma: FloatArray | None = None

    @property
    def overall_mae_m(self) -> float:
        """Mean of the MAE over all frames that have a depth."""
        known = self.mae_m[np.isfinite(self.mae_m)]
        return float(known.mean()) if known.size else float("nan")


def errors_over_depth(
    views: Views,
    depths_m: Sequence[float],
    rig: Rig,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
    *,
    board: Board = Board(),  # noqa: B008 - immutable
    truth_sigma_m: float = 0.0,
    rows_px: int | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Measure the errors of a method on every frame, and its working range.

    The depths increase. If left, the options are a depth range that has all boards, and for
    consensus those that the rig is tuned for. Errors of the size of `truth_sigma_m`, the standard
    deviation of the depths, are within sigma. `rows_px` in the middle of the views are used, to
    save time; all if left.
    """
    if len(views) != len(depths_m):
        raise InputError(f"{len(views)} views must have as many depths, not {len(depths_m)}.")
    if options is None:
        range_m = widened_depth_range_m(rig.optics, depths_m) if len(depths_m) else None
        options = {"depth_range_m": range_m}
        if method == "consensus":
            options = tuned_options(rig).replace(**options)

    def measure(number: int) -> _Errors:
        left, right = (_middle_rows(view, rows_px) for view in views[number])
        found = estimate_quietly(left, right, rig, method=method, options=options)
        return _errors(found, depths_m[number], truth_sigma_m, rig, board)

    figures = np.array(on_each_frame(measure, len(views), progress))
    errors = _Errors(*figures.reshape(-1, len(_Errors._fields)).T)
    left_out = {
        number: f"{method} found no depth in it"
        for number, density in enumerate(errors.density)
        if not density > 0
    }
    depths = np.array(depths_m, dtype=np.float64)
    working_m = working_range_m(depths.tolist(), (errors.mae_m < ACCURATE_M).tolist())
    return Validation(
        method=method,
        depths_m=depths,
        working_range_m=working_m,
        left_out=left_out,
        **errors._asdict(),
    )


def _middle_rows(view: Image, rows_px: int | None) -> Image:
    if rows_px is None or rows_px >= view.shape[0]:
        return view
    # Cut as many rows at the top as at the bottom: the axis stays in the middle.
    cut = (view.shape[0] - rows_px) // 2
    return view[cut : view.shape[0] - cut]


class _Errors(NamedTuple):
    """Fields of `Validation` that are measured on each board: numbers, or arrays (boards,)."""

    mae_m: Any
    median_m: Any
    bias_m: Any
    density: Any
    sigma_m: Any
    within_1_sigma: Any
    within_3_sigma: Any


def _errors(
    found: DepthMap, depth_m: float, truth_sigma_m: float, rig: Rig, board: Board
) -> _Errors:
    """Errors of a depth map of one board."""
    rows, cols = (np.arange(size) for size in found.depth_m.shape)
    windows = Windows(rows[:, np.newaxis], cols[np.newaxis])
    truth = board_depth_m(windows, depth_m, found.depth_m.shape, rig.optics, board)
    judged = _is_judged(found, truth, rig)
    kept = judged & found.valid
    if not kept.any():
        unknown = float("nan")
        return _Errors(unknown, unknown, unknown, 0.0, unknown, unknown, unknown)
    error = found.depth_m[kept] - truth[kept]
    size, sigma = np.abs(error), found.sigma_m[kept].astype(np.float64)
    expected = np.hypot(sigma, truth_sigma_m)
    return _Errors(
        mae_m=float(size.mean()),
        median_m=float(np.median(size)),
        bias_m=float(np.median(error)),
        density=np.count_nonzero(kept) / np.count_nonzero(judged),
        sigma_m=float(np.median(sigma)),
        within_1_sigma=float(np.mean(size <= expected)),
        within_3_sigma=float(np.mean(size <= 3 * expected)),
    )


def _is_judged(found: DepthMap, truth_m: FloatArray, rig: Rig) -> NDArray[np.bool_]:
    """Pixels in the middle of the frame that both views show with their whole windows."""
    cols = found.depth_m.shape[1]
    margin = round(0.5 * (1.0 - _MIDDLE_SHARE) * cols)
    col = np.arange(cols)
    match = col - rig.optics.disparity_px(truth_m)
    inside = (match >= margin) & (match < cols) & (col >= margin) & (col < cols - margin)
    return np.asarray(inside & ((found.flags & np.uint16(Flag.BORDER)) == 0))


def widened_depth_range_m(optics: Optics, depths_m: Sequence[float]) -> tuple[float, float] | None:
    """Depth range that has all boards, in metres; None if they are in the camera's default range.

    The default ends where a hundredth of the depth is a tenth of a pixel. With large pixels, boards
    may well be farther away.
    """
    nearest_m, farthest_m = default_depth_range_m(optics)
    is_nearer = min(depths_m) < nearest_m * (1 - _RANGE_TOLERANCE)
    is_farther = max(depths_m) > farthest_m * (1 + _RANGE_TOLERANCE)
    if not is_nearer and not is_farther:
        return None
    return (
        min(depths_m) / (1 + _MARGIN) if is_nearer else nearest_m,
        max(depths_m) / (1 - _MARGIN) if is_farther else farthest_m,
    )


def working_range_m(
    depths_m: Sequence[float], accurate: Sequence[bool]
) -> tuple[float, float] | None:
    """First and last depth of the longest run of accurate depths; None if none is accurate.

    The length of a run is in metres; of equally long runs the nearest counts.
    """
    best: tuple[float, float] | None = None
    start: float | None = None
    for depth_m, is_accurate in zip(depths_m, accurate, strict=True):
        if not is_accurate:
            start = None
            continue
        start = depth_m if start is None else start
        if best is None or depth_m - start > best[1] - best[0]:
            best = (start, depth_m)
    return best
