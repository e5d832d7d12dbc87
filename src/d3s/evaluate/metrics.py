"""The figures of a depth map against the truth."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from d3s.estimate import DepthMap
from d3s.evaluate.truth import Truth
from d3s.types import FloatArray, Mask

BAD_M = 0.02


@dataclass(frozen=True, kw_only=True)
class Score:
    """How good a depth map is over some pixels; NaN where there is nothing to take a mean of.

    The errors are over all retained pixels, textured or not, also where the right view does not
    show the point: who gives a depth answers for it. The density, the bound and the ratio to it
    are over textured pixels, which both views show.
    """

    pixels: int  # that are judged
    retained: int  # of them, that have a depth
    mae_m: float
    median_m: float  # of the absolute error
    rmse_m: float
    bad_2cm: float  # share of the retained that are wrong by more than 2 cm
    bias_m: float  # mean of depth less truth
    coverage: float  # share of the retained whose error is below their sigma; 0.68 if that is true
    textured: int
    textured_retained: int
    density: float  # textured_retained / textured
    textured_mae_m: float  # over these retained ones, as the next two
    bound_mean_m: float
    bound_median_m: float
    mae_over_bound: float  # textured_mae_m / bound_mean_m; 0.8 at the bound, if errors are Gaussian

    @property
    def retained_share(self) -> float:
        """Of the judged pixels, textured or not, those that have a depth."""
        return ratio(self.retained, self.pixels)

    @property
    def answered_mae_m(self) -> float:
        """The error to find the worst by: see the function of that name."""
        return answered_mae_m(self.mae_m, self.retained, holds_depth=self.textured > 0)


@dataclass(frozen=True, kw_only=True)
class Duel:
    """Two depth maps on the pixels that both retained."""

    common: int
    mae_m: float
    rival_mae_m: float


def score(depth_map: DepthMap, truth: Truth, region: Mask | None = None) -> Score:
    """The figures over the judged pixels, or over those of them in a region."""
    judged = truth.judged if region is None else truth.judged & region
    retained = judged & depth_map.valid
    error = depth_map.depth_m[retained] - truth.depth_m[retained]
    size = np.abs(error)
    textured = judged & truth.textured
    both = textured & retained
    textured_mae_m = _mean(np.abs(depth_map.depth_m[both] - truth.depth_m[both]))
    bound_mean_m = _mean(truth.bound_m[both])
    return Score(
        pixels=_count(judged),
        retained=_count(retained),
        mae_m=_mean(size),
        median_m=_median(size),
        rmse_m=float(np.sqrt(_mean(size**2))),
        bad_2cm=_mean(size > BAD_M),
        bias_m=_mean(error),
        coverage=_mean(size < depth_map.sigma_m[retained]),
        textured=_count(textured),
        textured_retained=_count(both),
        density=ratio(_count(both), _count(textured)),
        textured_mae_m=textured_mae_m,
        bound_mean_m=bound_mean_m,
        bound_median_m=_median(truth.bound_m[both]),
        mae_over_bound=ratio(textured_mae_m, bound_mean_m),
    )


def duel(depth_map: DepthMap, rival: DepthMap, truth: Truth) -> Duel:
    """Both on the judged pixels that both retained."""
    common = truth.judged & depth_map.valid & rival.valid
    own, other = (
        _mean(np.abs(one.depth_m[common] - truth.depth_m[common])) for one in (depth_map, rival)
    )
    return Duel(common=_count(common), mae_m=own, rival_mae_m=other)


def answered_mae_m(mae_m: float, retained: int, *, holds_depth: bool) -> float:
    """Error of a method on a pair that it had to answer for, to find the worst of several.

    Infinite if the pair holds depth and the method left it without any. NaN if it holds none, and
    none was claimed: that says nothing.
    """
    if retained:
        return mae_m
    return float("inf") if holds_depth else float("nan")


def worst(errors_m: Iterable[float]) -> float:
    """The largest of errors as `answered_mae_m` gives them; NaN if none says anything."""
    return max((one for one in errors_m if not math.isnan(one)), default=float("nan"))


def ratio(part: float, whole: float) -> float:
    """Part over whole, NaN if there is no whole."""
    return part / whole if whole else float("nan")


def pooled(means: Sequence[float], counts: Sequence[int]) -> float:
    """The mean over all, of the means of several groups; empty groups have a mean of NaN."""
    total = sum(mean * count for mean, count in zip(means, counts, strict=True) if count)
    return ratio(total, sum(counts))


def common_ratio(duels: Sequence[Duel]) -> float:
    """MAE over the rival's on the pixels that both retained, of all duels together."""
    counts = [one.common for one in duels]
    return ratio(
        pooled([one.mae_m for one in duels], counts),
        pooled([one.rival_mae_m for one in duels], counts),
    )


def pooled_density(scores: Sequence[Score]) -> float:
    """Share of the textured pixels of all scores together that are retained."""
    return ratio(sum(one.textured_retained for one in scores), sum(one.textured for one in scores))


def known_mean(values: Iterable[float]) -> float:
    """The mean of those that are finite; NaN if none is."""
    return _mean(_known(values))


def known_median(values: Iterable[float]) -> float:
    """The median of those that are finite; NaN if none is."""
    return _median(_known(values))


def _known(values: Iterable[float]) -> FloatArray:
    every = np.array(list(values), dtype=np.float64)
    return np.asarray(every[np.isfinite(every)])


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _mean(values: FloatArray | Mask) -> float:
    return float(np.mean(values, dtype=np.float64)) if values.size else float("nan")


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if values.size else float("nan")
