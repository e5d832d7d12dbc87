"""Disparity, rows and light that a calibration leaves over the field, on frames of a test."""

from typing import NamedTuple

import numpy as np

from d3s.types import FloatArray

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
