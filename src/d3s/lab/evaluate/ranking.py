"""Trust in confidence and sigma: whether they rank the pixels of a method by their errors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.lab.evaluate.metrics import count_pixels, depth_errors_m, mean_or_nan, median_or_nan, ratio
from d3s.lab.evaluate.truth import Truth
from d3s.record import short_repr
from d3s.types import FloatArray, Mask

Key = Literal["confidence", "sigma_m"]
"""Quantity by which pixels are ranked: the highest confidence first, or the lowest sigma."""

DECILES = 10


@dataclass(frozen=True, kw_only=True)
class AtThreshold:
    """Errors of the pixels that pass one threshold of confidence or sigma."""

    threshold: float
    retained: int  # number of judged pixels that pass
    density: float  # retained textured pixels over textured ones, as in `Score`
    mae_m: float
    median_m: float


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Sparsification of errors in order of trust (Ilg et al., ECCV 2018); NaN without errors.

    The least trusted pixels are dropped one after the other, and the mean error of the others
    falls. An oracle drops the largest errors first.
    """

    ause_m: float  # area between the mean error and that of the oracle, over the share kept
    gain: float  # improvement over a random order, as a share of the improvement of the oracle
    deciles_m: tuple[float, ...]  # mean error of each tenth, the most trusted first


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Trust in the sigma and the confidence of a depth map, over some pixels."""

    sigma_ause_m: float
    sigma_gain: float
    confidence_ause_m: float
    confidence_gain: float
    coverage_2: float  # share of the errors below 2 sigma; 0.954 for Gaussian errors
    coverage_3: float  # share of the errors below 3 sigma; 0.997 for Gaussian errors


def trust_of(depth_map: DepthMap, truth: Truth, region: Mask | None = None) -> Trust:
    """Measure the trust in a depth map.

    Parameters
    ----------
    depth_map, truth
        Of the same pair.
    region
        Mask, (rows, cols), to restrict the judged pixels; all judged pixels if left out.
    """
    part = truth if region is None else replace(truth, judged=truth.judged & region)
    sigma, confidence = (
        rank(ranked_errors_m(depth_map, part, by)) for by in ("sigma_m", "confidence")
    )
    two, three = coverage(depth_map, part, (2.0, 3.0))
    return Trust(
        sigma_ause_m=sigma.ause_m,
        sigma_gain=sigma.gain,
        confidence_ause_m=confidence.ause_m,
        confidence_gain=confidence.gain,
        coverage_2=two,
        coverage_3=three,
    )


def threshold_curve(
    depth_map: DepthMap, truth: Truth, thresholds: Sequence[float], *, by: Key = "confidence"
) -> tuple[AtThreshold, ...]:
    """Error and density of the pixels that pass each threshold.

    Pixels that the filter of the method dropped stay dropped: switch that filter off to see all.

    Parameters
    ----------
    depth_map, truth
        Of the same pair.
    thresholds
        Least confidence, or largest sigma in metres.
    by
        Which of the two: "confidence" or "sigma_m".
    """
    kept = depth_map.valid & truth.judged
    textured = truth.textured
    error_m = np.abs(depth_map.depth_m - truth.depth_m)
    return tuple(
        _at(threshold, kept & _passes(depth_map, threshold, by), textured, error_m)
        for threshold in thresholds
    )


def _passes(depth_map: DepthMap, threshold: float, by: Key) -> Mask:
    if by == "confidence":
        return np.asarray(depth_map.confidence >= threshold)
    with np.errstate(invalid="ignore"):
        return np.asarray(depth_map.sigma_m <= threshold)


def _at(threshold: float, kept: Mask, textured: Mask, error_m: FloatArray) -> AtThreshold:
    errors = error_m[kept]
    return AtThreshold(
        threshold=float(threshold),
        retained=int(errors.size),
        density=ratio(count_pixels(kept & textured), count_pixels(textured)),
        mae_m=mean_or_nan(errors),
        median_m=median_or_nan(errors),
    )


def ranked_errors_m(depth_map: DepthMap, truth: Truth, by: Key = "sigma_m") -> FloatArray:
    """Absolute errors of the retained judged pixels, the most trusted pixel first.

    Parameters
    ----------
    depth_map, truth
        Of the same pair.
    by
        "confidence" or "sigma_m".
    """
    kept = depth_map.valid & truth.judged
    errors = np.abs(depth_errors_m(depth_map, truth, kept))
    return errors[trust_order(trust(depth_map, by)[kept])]


def trust(depth_map: DepthMap, by: Key) -> FloatArray:
    """Trust in each pixel, (rows, cols): its confidence, or its negative sigma.

    Raises
    ------
    InputError
        When `by` is neither "confidence" nor "sigma_m".
    """
    if by == "confidence":
        return depth_map.confidence.astype(np.float64)
    if by == "sigma_m":
        return -depth_map.sigma_m.astype(np.float64)
    raise InputError(f"by={short_repr(by)} must be 'confidence' or 'sigma_m'.")


def trust_order(*keys: FloatArray) -> NDArray[np.intp]:
    """Indices from the highest to the lowest first key, ties by the next key.

    Remaining ties are in a random order, the same at every call: a method that trusts all pixels
    equally gets the figures of a random choice, not those of a corner of the frame.
    """
    chance = np.random.default_rng(0).permutation(keys[0].size)
    order = np.lexsort([-key.ravel()[chance] for key in reversed(keys)])
    return np.asarray(chance[order])


def rank(errors_m: FloatArray) -> Ranking:
    """Sparsification of absolute errors that are in order of trust, the most trusted first."""
    errors = np.asarray(errors_m, dtype=np.float64)
    if errors.size == 0:
        return Ranking(ause_m=float("nan"), gain=float("nan"), deciles_m=(float("nan"),) * DECILES)
    own, oracle = _area(errors), _area(np.sort(errors))
    random = float(errors.mean())
    return Ranking(
        ause_m=own - oracle,
        gain=(random - own) / (random - oracle) if random > oracle else float("nan"),
        deciles_m=tuple(mean_or_nan(part) for part in np.array_split(errors, DECILES)),
    )


def _area(errors: FloatArray) -> float:
    """Area under the mean of the first errors, over their share of all errors."""
    return float((np.cumsum(errors) / np.arange(1, errors.size + 1)).mean())


def coverage(
    depth_map: DepthMap, truth: Truth, sigmas: Sequence[float] = (1.0, 2.0, 3.0)
) -> tuple[float, ...]:
    """Share of the retained judged pixels with an error below each multiple of sigma.

    0.683, 0.954 and 0.997 for 1, 2 and 3 sigma, if errors are Gaussian and sigma is true.

    Parameters
    ----------
    depth_map, truth
        Of the same pair.
    sigmas
        Multiples of sigma.
    """
    kept = depth_map.valid & truth.judged
    size, sigma = np.abs(depth_errors_m(depth_map, truth, kept)), depth_map.sigma_m[kept]
    return tuple(mean_or_nan(size < factor * sigma) for factor in sigmas)
