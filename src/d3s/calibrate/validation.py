"""Errors on boards at known depths that were not calibrated with, and the working range."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.tuning import tuned_options
from d3s.errors import InputError
from d3s.estimate import DepthMap, Flag, Options
from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.methods import estimate_quietly
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image, Progress

_PARTS = 3  # a ninth of the field is a third of its rows and of its columns
# Least share of the cells of a ninth that have a value: fewer do not stand for it.
_FEWEST = 1 / 4


class FieldResiduals(NamedTuple):
    """Residuals of frames that were not calibrated with, in cells of the field.

    NaN where a cell is unknown: the right view does not show it, or its texture is too weak. Cells
    are in rows and columns, top left first; a ninth is a third of the rows and of the columns.
    """

    depths_m: FloatArray  # (frames,), depths of the board that disparity is predicted from
    x: FloatArray  # (rows, cols), places of the cells from the axis, over the radius of the field
    y: FloatArray  # (rows, cols)
    residual_px: FloatArray  # (frames, rows, cols), measured minus predicted disparity
    sigma_px: FloatArray  # (frames, rows, cols), standard deviation of these means
    rows_px: FloatArray  # (frames, rows, cols), vertical disparity left
    light_ratio: FloatArray  # (rows, cols), light of left over right view, after correction

    @property
    def rms_px(self) -> float:
        """Root mean square of the residual disparity, all cells of all frames."""
        return float(np.sqrt(mean_of_known(self.residual_px**2)))

    @property
    def frame_rms_px(self) -> FloatArray:
        """Root mean square of the residual disparity of each frame, (frames,)."""
        return np.sqrt(mean_of_known(self.residual_px**2, (1, 2)))

    @property
    def frame_mean_px(self) -> FloatArray:
        """Mean residual disparity of each frame, (frames,)."""
        return mean_of_known(self.residual_px, (1, 2))

    @property
    def frame_spread_px(self) -> FloatArray:
        """Standard deviation of the residual disparity over the field of each frame, (frames,)."""
        return np.sqrt(mean_of_known(self._over_field_px**2, (1, 2)))

    @property
    def spread_px(self) -> float:
        """Root mean square of the residual disparity minus the mean of its frame.

        A distance that is wrong moves all cells of a frame alike, and does not change this.
        """
        return float(np.sqrt(mean_of_known(self._over_field_px**2)))

    @property
    def rows_rms_px(self) -> float:
        """Root mean square of the vertical disparity, all cells of all frames."""
        return float(np.sqrt(mean_of_known(self.rows_px**2)))

    @property
    def ninths_px(self) -> FloatArray:
        """Mean residual disparity of each ninth of the field in each frame, (frames, 3, 3)."""
        return _of_ninths(self.residual_px, (1, 2))

    @property
    def ninths_rms_px(self) -> FloatArray:
        """Root mean square of the residual disparity of each ninth in all frames, (3, 3)."""
        return np.sqrt(_of_ninths(self.residual_px**2, None))

    @property
    def largest_ninth_px(self) -> FloatArray:
        """Largest mean residual of a ninth in each frame, without its sign, (frames,)."""
        size = np.abs(self.ninths_px).max(
            axis=(1, 2), initial=-1, where=np.isfinite(self.ninths_px)
        )
        return np.where(size >= 0, size, np.nan)

    @property
    def _over_field_px(self) -> FloatArray:
        """Residual disparity minus the mean of its frame, (frames, rows, cols)."""
        return self.residual_px - self.frame_mean_px[:, np.newaxis, np.newaxis]

    @property
    def light_rms(self) -> float:
        """Root mean square of the ratio of light minus 1."""
        return float(np.sqrt(mean_of_known((self.light_ratio - 1) ** 2)))

    def as_json(self) -> dict[str, object]:
        """Summaries by name: by frame and by ninth, and the ratio of light of each cell."""
        names = (
            "depths_m", "rms_px", "spread_px", "frame_rms_px", "frame_mean_px", "frame_spread_px",
            "ninths_px", "ninths_rms_px", "largest_ninth_px", "rows_rms_px", "light_rms",
            "light_ratio",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


def mean_of_known(
    values: FloatArray, axis: int | tuple[int, ...] | None = None, fewest: float = 0.0
) -> FloatArray:
    """Mean of the values that are not NaN; NaN if there are too few.

    `fewest` is the least share of the values that have to be known; one value at least.
    """
    known = np.isfinite(values)
    total = np.sum(values, axis=axis, where=known)
    count, share = known.sum(axis=axis), known.mean(axis=axis) if known.size else 0.0
    enough = (count > 0) & (np.asarray(share) >= fewest)
    return np.where(enough, total / np.maximum(count, 1), np.nan)


def _of_ninths(values: FloatArray, axis: tuple[int, ...] | None) -> FloatArray:
    """Mean of each ninth of the field, (..., 3, 3), over the axes given of its cells."""
    ninths = [
        [
            mean_of_known(part, axis, _FEWEST if axis else 0.0)
            for part in np.array_split(band, _PARTS, axis=2)
        ]
        for band in np.array_split(values, _PARTS, axis=1)
    ]
    return np.moveaxis(np.array(ninths), (0, 1), (-2, -1))


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
_MEASURED = (
    "mae_m", "median_m", "bias_m", "density", "sigma_m", "within_1_sigma", "within_3_sigma",
)  # fmt: skip
"""Fields of `Validation` that are measured on each board."""


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

    def measure(number: int) -> dict[str, float]:
        left, right = (_middle_rows(view, rows_px) for view in views[number])
        found = estimate_quietly(left, right, rig, method=method, options=options)
        return _errors(found, depths_m[number], truth_sigma_m, rig, board)

    boards = on_each_frame(measure, len(views), progress)
    errors = {name: np.array([one[name] for one in boards], np.float64) for name in _MEASURED}
    left_out = {
        number: f"{method} found no depth in it"
        for number, density in enumerate(errors["density"])
        if not density > 0
    }
    depths = np.array(depths_m, dtype=np.float64)
    working_m = working_range_m(depths.tolist(), (errors["mae_m"] < ACCURATE_M).tolist())
    return Validation(
        method=method, depths_m=depths, working_range_m=working_m, left_out=left_out, **errors
    )


def _middle_rows(view: Image, rows_px: int | None) -> Image:
    if rows_px is None or rows_px >= view.shape[0]:
        return view
    # Cut as many rows at the top as at the bottom: the axis stays in the middle.
    cut = (view.shape[0] - rows_px) // 2
    return view[cut : view.shape[0] - cut]


def _errors(
    found: DepthMap, depth_m: float, truth_sigma_m: float, rig: Rig, board: Board
) -> dict[str, float]:
    """Errors of a depth map of one board, by the names of `_MEASURED`."""
    shape = found.depth_m.shape
    rows, cols = np.arange(shape[0])[:, np.newaxis], np.arange(shape[1])[np.newaxis]
    truth = board.depth_m(cols, rows, depth_m, shape, rig.optics)
    judged = _is_judged(found, truth, rig)
    kept = judged & found.valid
    if not kept.any():
        return dict.fromkeys(_MEASURED, float("nan")) | {"density": 0.0}
    error = found.depth_m[kept] - truth[kept]
    size, sigma = np.abs(error), found.sigma_m[kept].astype(np.float64)
    expected = np.hypot(sigma, truth_sigma_m)
    return {
        "mae_m": float(size.mean()),
        "median_m": float(np.median(size)),
        "bias_m": float(np.median(error)),
        "density": np.count_nonzero(kept) / np.count_nonzero(judged),
        "sigma_m": float(np.median(sigma)),
        "within_1_sigma": float(np.mean(size <= expected)),
        "within_3_sigma": float(np.mean(size <= 3 * expected)),
    }


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
