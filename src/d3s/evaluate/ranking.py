"""Does a method know where it is wrong? Errors in the order of its own confidence or sigma."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.evaluate.metrics import answered_mae_m
from d3s.evaluate.truth import Truth
from d3s.record import shown
from d3s.types import FloatArray, Mask

Key = Literal["confidence", "sigma_m"]
"""What pixels are ranked by: the highest confidence first, or the lowest sigma."""

DECILES = 10


@dataclass(frozen=True, kw_only=True)
class AtThreshold:
    """What is left of a depth map at one threshold of confidence or sigma."""

    threshold: float
    retained: int
    density: float  # retained textured pixels over textured ones, as in `Score`
    mae_m: float
    median_m: float

    @property
    def answered_mae_m(self) -> float:
        """The error to find the worst by: see `d3s.evaluate.metrics.answered_mae_m`."""
        holds_depth = np.isfinite(self.density)
        return answered_mae_m(self.mae_m, self.retained, holds_depth=bool(holds_depth))


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """How well an order of the pixels puts the small errors first; NaN if there are no errors.

    After the sparsification of Ilg and others (ECCV 2018): drop the least trusted pixels one after
    the other, and see how the mean error of the others falls. An oracle drops the largest error.
    """

    ause_m: float  # area between the mean error and the oracle's, over the shares that are kept
    gain: float  # what the order wins over a random one, as a share of what the oracle wins
    deciles_m: tuple[float, ...]  # mean error of the tenth that is trusted most, to the least


@dataclass(frozen=True, kw_only=True)
class Trust:
    """How far the sigma and the confidence of a depth map can be trusted, over some pixels."""

    sigma_ause_m: float
    sigma_gain: float
    confidence_ause_m: float
    confidence_gain: float
    coverage_2: float  # share of the errors below two sigma; 0.954 if Gaussian and sigma is true
    coverage_3: float  # below three; 0.997


def trust_of(depth_map: DepthMap, truth: Truth, region: Mask | None = None) -> Trust:
    """The figures over the judged pixels, or over those of them in a region."""
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
    """Error and density where the confidence is at least, or sigma at most, each threshold.

    What the method itself left out stays out: for all of it, switch its own filter off.
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
    whole = np.count_nonzero(textured)
    return AtThreshold(
        threshold=float(threshold),
        retained=int(errors.size),
        density=np.count_nonzero(kept & textured) / whole if whole else float("nan"),
        mae_m=float(errors.mean(dtype=np.float64)) if errors.size else float("nan"),
        median_m=float(np.median(errors)) if errors.size else float("nan"),
    )


def ranked_errors_m(depth_map: DepthMap, truth: Truth, by: Key = "sigma_m") -> FloatArray:
    """Absolute errors of the retained pixels, that of the most trusted one first."""
    kept = depth_map.valid & truth.judged
    errors = np.abs(depth_map.depth_m[kept] - truth.depth_m[kept]).astype(np.float64)
    return errors[trust_order(trust(depth_map, by)[kept])]


def trust(depth_map: DepthMap, by: Key) -> FloatArray:
    """The higher, the sooner a pixel is to be kept.

    Raises
    ------
    InputError
        When pixels cannot be ranked by that.
    """
    if by == "confidence":
        return depth_map.confidence.astype(np.float64)
    if by == "sigma_m":
        return -depth_map.sigma_m.astype(np.float64)
    raise InputError(f"by={shown(by)} must be 'confidence' or 'sigma_m'.")


def trust_order(*keys: FloatArray) -> NDArray[np.intp]:
    """From the most trusted to the least, by the first key and then the next; high ones first.

    Equals are in an order of chance, the same at every call: a method that says the same of all
    pixels gets the figures of a random choice, not those of a corner of the frame.
    """
    chance = np.random.default_rng(0).permutation(keys[0].size)
    order = np.lexsort([-key.ravel()[chance] for key in reversed(keys)])
    return np.asarray(chance[order])


def rank(errors_m: FloatArray) -> Ranking:
    """How good the order of absolute errors is, the most trusted one first."""
    errors = np.asarray(errors_m, dtype=np.float64)
    if errors.size == 0:
        return Ranking(ause_m=float("nan"), gain=float("nan"), deciles_m=(float("nan"),) * DECILES)
    own, oracle = _area(errors), _area(np.sort(errors))
    random = float(errors.mean())
    return Ranking(
        ause_m=own - oracle,
        gain=(random - own) / (random - oracle) if random > oracle else float("nan"),
        deciles_m=tuple(
            float(part.mean()) if part.size else float("nan")
            for part in np.array_split(errors, DECILES)
        ),
    )


def _area(errors: FloatArray) -> float:
    """Area under the mean of the first errors, over the share that they are of all."""
    return float((np.cumsum(errors) / np.arange(1, errors.size + 1)).mean())


def coverage(
    depth_map: DepthMap, truth: Truth, sigmas: Sequence[float] = (1.0, 2.0, 3.0)
) -> tuple[float, ...]:
    """Share of the retained pixels whose error is below so many sigma.

    0.683, 0.954 and 0.997 for one, two and three, if errors are Gaussian and sigma is true.
    """
    kept = depth_map.valid & truth.judged
    if not kept.any():
        return (float("nan"),) * len(sigmas)
    size = np.abs(depth_map.depth_m[kept] - truth.depth_m[kept])
    sigma = depth_map.sigma_m[kept]
    return tuple(float(np.mean(size < factor * sigma)) for factor in sigmas)
