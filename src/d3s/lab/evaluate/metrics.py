"""Figures of a depth map against the truth, and means over several pairs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from d3s.estimate import DepthMap
from d3s.lab.evaluate.truth import Truth
from d3s.types import FloatArray, Mask

BAD_M = 0.02


@dataclass(frozen=True, kw_only=True)
class Score:
    """Figures of a depth map over some pixels; NaN for a mean over no pixels.

    Errors are over all retained pixels, textured or not, also where the right view does not show
    the point: a method is judged wherever it gives a depth. Density, bound and the ratio to the
    bound are over textured pixels, which both views show.
    """

    pixels: int  # number of judged pixels
    retained: int  # number of judged pixels that have a depth
    mae_m: float  # mean absolute error
    median_m: float  # median absolute error
    rmse_m: float  # root mean square error
    bad_2cm: float  # share of the retained pixels with an error above 2 cm
    bias_m: float  # mean of depth less truth
    coverage: float  # share of the retained pixels with an error below sigma; 0.68 for a true sigma
    textured: int  # number of judged pixels that are textured
    textured_retained: int  # number of textured pixels that have a depth
    density: float  # textured_retained / textured
    textured_mae_m: float  # mean absolute error over the textured retained pixels
    bound_mean_m: float  # Cramér-Rao bound over the textured retained pixels: mean
    bound_median_m: float  # and median
    mae_over_bound: float  # textured_mae_m / bound_mean_m; 0.8 for Gaussian errors at the bound

    @property
    def retained_share(self) -> float:
        """Share of the judged pixels, textured or not, that have a depth."""
        return ratio(self.retained, self.pixels)


@dataclass(frozen=True, kw_only=True)
class Duel:
    """Errors of two depth maps on the pixels that both retained."""

    common: int  # number of these pixels
    mae_m: float
    rival_mae_m: float


def score(depth_map: DepthMap, truth: Truth, region: Mask | None = None) -> Score:
    """Compare a depth map with the truth.

    Parameters
    ----------
    depth_map, truth
        Of the same pair.
    region
        Mask, (rows, cols), to restrict the judged pixels; all judged pixels if left out.
    """
    judged = truth.judged if region is None else truth.judged & region
    retained = judged & depth_map.valid
    error = depth_errors_m(depth_map, truth, retained)
    size = np.abs(error)
    textured = judged & truth.textured
    both = textured & retained
    textured_mae_m = mean_or_nan(np.abs(depth_errors_m(depth_map, truth, both)))
    bound_mean_m = mean_or_nan(truth.bound_m[both])
    return Score(
        pixels=count_pixels(judged),
        retained=count_pixels(retained),
        mae_m=mean_or_nan(size),
        median_m=median_or_nan(size),
        rmse_m=float(np.sqrt(mean_or_nan(size**2))),
        bad_2cm=mean_or_nan(size > BAD_M),
        bias_m=mean_or_nan(error),
        coverage=mean_or_nan(size < depth_map.sigma_m[retained]),
        textured=count_pixels(textured),
        textured_retained=count_pixels(both),
        density=ratio(count_pixels(both), count_pixels(textured)),
        textured_mae_m=textured_mae_m,
        bound_mean_m=bound_mean_m,
        bound_median_m=median_or_nan(truth.bound_m[both]),
        mae_over_bound=ratio(textured_mae_m, bound_mean_m),
    )


def duel(depth_map: DepthMap, rival: DepthMap, truth: Truth) -> Duel:
    """Compare two depth maps with the truth on the judged pixels that both retained.

    Parameters
    ----------
    depth_map, rival, truth
        Of the same pair.
    """
    common = truth.judged & depth_map.valid & rival.valid
    own, other = (
        mean_or_nan(np.abs(depth_errors_m(one, truth, common))) for one in (depth_map, rival)
    )
    return Duel(common=count_pixels(common), mae_m=own, rival_mae_m=other)


def depth_errors_m(depth_map: DepthMap, truth: Truth, where: Mask) -> FloatArray:
    """Depth less truth in metres on some pixels, (pixels,).

    Parameters
    ----------
    depth_map, truth
        Of the same pair.
    where
        Mask, (rows, cols).
    """
    return np.asarray(depth_map.depth_m[where] - truth.depth_m[where], dtype=np.float64)


def worst(errors_m: Iterable[float]) -> float:
    """Largest error, such as `d3s.lab.evaluate.table.error_m` gives; NaN if all are NaN."""
    return max((one for one in errors_m if not math.isnan(one)), default=float("nan"))


def ratio(part: float, whole: float) -> float:
    """Part over whole; NaN if the whole is 0."""
    return part / whole if whole else float("nan")


def pooled(means: Sequence[float], counts: Sequence[int]) -> float:
    """Mean over several groups together, from their means and sizes; an empty group may be NaN."""
    total = sum(mean * count for mean, count in zip(means, counts, strict=True) if count)
    return ratio(total, sum(counts))


def finite_mean(values: Iterable[float]) -> float:
    """Mean of the finite values; NaN if there are none."""
    return mean_or_nan(_finite(values))


def finite_median(values: Iterable[float]) -> float:
    """Median of the finite values; NaN if there are none."""
    return median_or_nan(_finite(values))


def _finite(values: Iterable[float]) -> FloatArray:
    array = np.array(list(values), dtype=np.float64)
    return np.asarray(array[np.isfinite(array)])


def count_pixels(mask: Mask) -> int:
    """Number of pixels in a mask."""
    return int(np.count_nonzero(mask))


def mean_or_nan(values: FloatArray | Mask) -> float:
    """Mean; NaN if there are no values."""
    return float(np.mean(values, dtype=np.float64)) if values.size else float("nan")


def median_or_nan(values: FloatArray) -> float:
    """Median; NaN if there are no values."""
    return float(np.median(values)) if values.size else float("nan")
