"""Do the defocus equation and triangulation agree? The paper's test, and its confidence.

Confidence adds metres and 1/metres to one, so its value has a meaning in SI units only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.optics.thin_lens import vergence_dpt
from d3s.types import FloatArray


class Disagreement(NamedTuple):
    """Largest deviation of the predictions from the candidate, over the virtual baselines."""

    depth_m: FloatArray
    vergence_dpt: FloatArray


def disagreement(candidate_m: ArrayLike, predictions_m: ArrayLike) -> Disagreement:
    """How far the D3 depths, baselines along the first axis, are from a candidate depth.

    In depth and in inverse depth (the vectors of paper Eq. 14, in the maximum norm). Infinite
    where a prediction is not a number: a baseline that says nothing cannot agree.
    """
    candidate = np.asarray(candidate_m, dtype=np.float64)
    predictions = np.asarray(predictions_m, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        depth = np.abs(candidate - predictions).max(axis=0)
        vergence = np.abs(vergence_dpt(candidate) - vergence_dpt(predictions)).max(axis=0)
    return Disagreement(_infinite_for_nan(depth), _infinite_for_nan(vergence))


def is_consensus(
    candidate_m: ArrayLike,
    predictions_m: ArrayLike,
    *,
    depth_tolerance_m: float,
    vergence_tolerance_dpt: float,
) -> np.ndarray:
    """Whether all D3 depths agree with the candidate within both tolerances (paper Eq. 13)."""
    gap = disagreement(candidate_m, predictions_m)
    return (gap.depth_m < depth_tolerance_m) & (gap.vergence_dpt < vergence_tolerance_dpt)


def confidence(candidate_m: ArrayLike, predictions_m: ArrayLike) -> FloatArray:
    """Agreement in depth and in inverse depth, from 0 (none) to 1 (perfect); paper Eq. 14."""
    gap = disagreement(candidate_m, predictions_m)
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / ((1.0 + gap.depth_m) * (1.0 + gap.vergence_dpt)))


def depth_only_confidence(candidate_m: ArrayLike, predictions_m: ArrayLike) -> FloatArray:
    """Agreement in depth alone (paper Eq. S5), which near candidates reach too easily."""
    return np.asarray(1.0 / (1.0 + disagreement(candidate_m, predictions_m).depth_m))


class Pick(NamedTuple):
    """Depth and confidence of the best candidate of each pixel."""

    depth_m: FloatArray
    confidence: FloatArray


def best_candidate(candidates_m: ArrayLike, confidences: ArrayLike) -> Pick:
    """The candidate with the highest confidence (paper Eq. 15), candidates along the first axis.

    The first of equals. A confidence that is NaN counts as none; the depth is NaN where no
    candidate has any.
    """
    candidates = np.asarray(candidates_m, dtype=np.float64)
    values = np.nan_to_num(np.asarray(confidences, dtype=np.float64))
    best = values.argmax(axis=0)
    highest = np.take_along_axis(values, best[None], axis=0)[0]
    return Pick(np.where(highest > 0, candidates[best], np.nan), highest)


def keep_confident(pick: Pick, min_confidence: float) -> FloatArray:
    """Depth where the confidence is above the threshold, NaN elsewhere (paper Eq. 16)."""
    return np.where(pick.confidence > min_confidence, pick.depth_m, np.nan)


def _infinite_for_nan(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), np.inf, values)
