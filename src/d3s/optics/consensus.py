"""Agreement of the D3 depths with a candidate depth, and the confidence of the paper.

The confidence adds metres and 1/metres to 1, so its value has a meaning in SI units only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.optics.thin_lens import vergence_dpt
from d3s.types import FloatArray


class Disagreement(NamedTuple):
    """Largest deviation of the D3 depths from the candidate, over the virtual baselines."""

    depth_m: FloatArray
    vergence_dpt: FloatArray


def disagreement(candidate_m: ArrayLike, predictions_m: ArrayLike) -> Disagreement:
    """Deviation of the D3 depths from a candidate, in depth and in inverse depth.

    The maximum norms of the vectors in paper Eq. 14. Infinite where a D3 depth is NaN.

    Parameters
    ----------
    candidate_m
        Candidate depth, in metres; broadcasts with one prediction.
    predictions_m
        D3 depths, in metres, (virtual baselines, ...).
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
    """Mask of the pixels whose D3 depths all agree with the candidate (paper Eq. 13).

    Parameters
    ----------
    candidate_m, predictions_m
        As for `disagreement`.
    depth_tolerance_m
        Largest deviation in depth, in metres, exclusive.
    vergence_tolerance_dpt
        Largest deviation in inverse depth, in 1/m, exclusive.
    """
    gap = disagreement(candidate_m, predictions_m)
    return (gap.depth_m < depth_tolerance_m) & (gap.vergence_dpt < vergence_tolerance_dpt)


def confidence(candidate_m: ArrayLike, predictions_m: ArrayLike) -> FloatArray:
    """Confidence by agreement in depth and in inverse depth, 0 to 1 (paper Eq. 14)."""
    gap = disagreement(candidate_m, predictions_m)
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / ((1.0 + gap.depth_m) * (1.0 + gap.vergence_dpt)))


def depth_only_confidence(candidate_m: ArrayLike, predictions_m: ArrayLike) -> FloatArray:
    """Confidence by agreement in depth alone, 0 to 1 (paper Eq. S5); favours near candidates."""
    return np.asarray(1.0 / (1.0 + disagreement(candidate_m, predictions_m).depth_m))


class Pick(NamedTuple):
    """Depth and confidence of the best candidate of each pixel."""

    depth_m: FloatArray
    confidence: FloatArray


def best_candidate(candidates_m: ArrayLike, confidences: ArrayLike) -> Pick:
    """Candidate of the highest confidence at each pixel (paper Eq. 15).

    The first candidate wins a tie. NaN confidence counts as 0; the depth is NaN where all
    confidences are 0.

    Parameters
    ----------
    candidates_m
        Candidate depths, in metres, (candidates,).
    confidences
        Confidence of each candidate, (candidates, ...).
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
