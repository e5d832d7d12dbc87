"""How well a method does on boards at known depths: for a calibration, on frames it did not see."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.frames import on_each_frame
from d3s.calibrate.ratios import Views, Windows
from d3s.calibrate.reach import ACCURATE_M, reach_m, working_range_m
from d3s.calibrate.tuning import CONSENSUS, board_depth_m
from d3s.errors import InputError
from d3s.estimate import DepthMap, Flag, Options, estimate
from d3s.rig import Rig
from d3s.types import FloatArray, Image, Progress

# Farther out a lens is worse, and a board may end.
_MIDDLE_SHARE = 0.9


class Validation(NamedTuple):
    """Errors of one method over the depths of the boards; NaN where no pixel has a depth.

    Errors are over the pixels that have a depth, in the middle of the frame; density is their share
    of those whose point the right view shows as well, textured or not.
    """

    method: str
    depths_m: FloatArray
    mae_m: FloatArray
    median_m: FloatArray  # of the absolute error
    bias_m: FloatArray  # median of depth less truth
    density: FloatArray
    working_range_m: tuple[float, float] | None  # the longest run of MAE below a centimetre
    left_out: dict[int, str]

    @property
    def overall_mae_m(self) -> float:
        """The mean over all frames that have any depth."""
        known = self.mae_m[np.isfinite(self.mae_m)]
        return float(known.mean()) if known.size else float("nan")


def errors_over_depth(
    views: Views,
    depths_m: Sequence[float],
    rig: Rig,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
    *,
    tilt: tuple[float, float] = (0.0, 0.0),
    rows_px: int | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Errors of a method on every frame, and the depths at which it can be relied on.

    Parameters
    ----------
    views, depths_m, tilt
        As for `find_tuning`, depths increasing.
    rig, method, options
        As for `d3s.estimate`; options of the consensus are those that rigs are tuned for, if left,
        and the boards are within the depths that are looked for.
    rows_px
        How many rows in the middle of the views to look at, to save time; all of them if left.
    progress
        Called after each frame.
    """
    if len(views) != len(depths_m):
        raise InputError(f"{len(views)} views must have as many depths, not {len(depths_m)}.")
    if options is None:
        options = _options(method, reach_m(rig.optics, depths_m) if len(depths_m) else None)

    def figures_of(number: int) -> tuple[float, float, float, float]:
        left, right = (_middle_rows(view, rows_px) for view in views[number])
        found = estimate(left, right, rig, method=method, options=options)
        return _figures(found, depths_m[number], rig, tilt)

    figures = np.array(on_each_frame(figures_of, len(views), progress)).reshape(-1, 4)
    left_out = {
        number: f"{method} found no depth in it"
        for number, density in enumerate(figures[:, 3])
        if not density > 0
    }
    mae, median, bias, density = figures.T
    depths = np.array(depths_m, dtype=np.float64)
    range_m = working_range_m(depths.tolist(), (mae < ACCURATE_M).tolist())
    return Validation(method, depths, mae, median, bias, density, range_m, left_out)


def _options(method: str, reach: tuple[float, float] | None) -> Options | dict[str, Any]:
    if method == "consensus":
        return CONSENSUS.replace(depth_range_m=reach)
    return {"depth_range_m": reach}


def _middle_rows(view: Image, rows_px: int | None) -> Image:
    if rows_px is None or rows_px >= view.shape[0]:
        return view
    # As many off at the top as at the bottom: the axis stays in the middle.
    cut = (view.shape[0] - rows_px) // 2
    return view[cut : view.shape[0] - cut]


def _figures(
    found: DepthMap, depth_m: float, rig: Rig, tilt: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Mean and median of the absolute error, median of the error, and density."""
    rows, cols = (np.arange(size) for size in found.depth_m.shape)
    windows = Windows(rows[:, np.newaxis], cols[np.newaxis])
    truth = board_depth_m(windows, depth_m, found.depth_m.shape, rig.optics, tilt)
    judged = _is_judged(found, truth, rig)
    kept = judged & found.valid
    if not kept.any():
        return float("nan"), float("nan"), float("nan"), 0.0
    error = found.depth_m[kept] - truth[kept]
    size = np.abs(error)
    density = np.count_nonzero(kept) / np.count_nonzero(judged)
    return float(size.mean()), float(np.median(size)), float(np.median(error)), density


def _is_judged(found: DepthMap, truth_m: FloatArray, rig: Rig) -> NDArray[np.bool_]:
    """Pixels in the middle of the frame that both views show, windows and all."""
    cols = found.depth_m.shape[1]
    margin = round(0.5 * (1.0 - _MIDDLE_SHARE) * cols)
    col = np.arange(cols)
    match = col - rig.optics.disparity_px(truth_m)
    inside = (match >= margin) & (match < cols) & (col >= margin) & (col < cols - margin)
    return np.asarray(inside & ((found.flags & np.uint16(Flag.BORDER)) == 0))
