"""Robust estimates, which outliers hardly change: standard deviation, line, homography, pairs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.types import FloatArray, Mask

_SIGMA_OVER_MAD = 1.4826  # of Gaussian errors; MAD is the median absolute deviation
_HUBER_SIGMAS = 2.0
_LEAST_RUN = 0.05  # of the range of x, between two points whose slope counts

_FEWEST_PLACES = 8  # that a homography is fitted to; 4 are enough for any homography
_OUTLIER_SIGMAS = 4.0
_ROUNDS = 8
_PAIR_ROUNDS = 4
_MEDIAN_OF_LARGER = 1.0518  # median of max(|a|, |b|) of two standard normal numbers


def robust_sigma(errors: ArrayLike) -> float:
    """Robust standard deviation about zero: 1.4826 times the median absolute value."""
    return _SIGMA_OVER_MAD * float(np.median(np.abs(errors)))


def robust_sigmas(errors: ArrayLike) -> FloatArray:
    """Robust standard deviation about zero of each column."""
    return np.asarray(_SIGMA_OVER_MAD * np.median(np.abs(errors), axis=0))


def robust_line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Slope and offset of a line: the median of the slopes of pairs of points (Theil-Sen)."""
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    is_apart = np.abs(run) > _LEAST_RUN * float(np.ptp(x))
    slope = float(np.median((y[second] - y[first])[is_apart] / run[is_apart]))
    return slope, float(np.median(y - slope * x))


def huber_weighted(rows: FloatArray, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Linear equations with less weight where the residual exceeds two standard deviations.

    `rows` (equations, unknowns) and `residuals` (equations,) are in standard deviations.
    """
    share = np.sqrt(np.minimum(1.0, _HUBER_SIGMAS / np.maximum(np.abs(residuals), 1e-12)))
    return rows * share[:, np.newaxis], residuals * share


def rms(values: FloatArray) -> float:
    """Root mean square of the values that are known; NaN if there are none."""
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if known.size else float("nan")


class PairEquations(NamedTuple):
    """Linear equations of one pair of pictures for unknowns that all pairs share."""

    rows: FloatArray  # (equations, unknowns), over the spread of the residuals
    residual: FloatArray  # (equations,)


def solve_pairs(pairs: Sequence[PairEquations], prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Unknowns by least squares with Huber weights, and their covariance.

    `prior` is the standard deviation of each around 0. Errors of the windows of a pair correlate,
    so the covariance is by the scatter between pairs.
    """
    inverse_prior = np.diag(prior**-2)
    values = np.zeros(prior.size)
    for _ in range(_PAIR_ROUNDS):
        normal, gradients = inverse_prior.copy(), []
        for pair in pairs:
            rest = pair.residual - pair.rows @ values
            spread = max(robust_sigma(rest), 1e-9)
            rows, rest = huber_weighted(pair.rows / spread, rest / spread)
            normal += rows.T @ rows
            gradients.append(rows.T @ rest)
        right = np.sum(gradients, axis=0) - inverse_prior @ values
        values = values + np.linalg.solve(normal, right)
    inverse = np.linalg.inv(normal)
    scatter = np.einsum("ij,ik->jk", gradients, gradients) if gradients else 0.0
    return values, np.asarray(inverse @ (scatter + inverse_prior) @ inverse)


class RobustHomography(NamedTuple):
    """A homography, the places that fit it, and their scatter about it."""

    matrix: FloatArray  # (3, 3)
    is_kept: Mask  # (places,)
    sigma_px: FloatArray  # (kept places,): standard deviation of each of x and y


def robust_homography(
    first_px: FloatArray, second_px: FloatArray, sigma_px: FloatArray
) -> RobustHomography | None:
    """Homography by reweighted least squares, which rejects outliers; None if too few places fit.

    Places (places, 2) are x, y in two pictures. `sigma_px` (places,) are relative standard
    deviations: their common scale is found from the scatter.
    """
    if len(sigma_px) < _FEWEST_PLACES:
        return None
    weights = 1 / np.hypot(sigma_px, np.median(sigma_px))
    trust = np.ones(len(weights))
    for number in range(_ROUNDS):
        matrix = fit_homography(first_px, second_px, weights * trust)
        away = np.abs(apply_homography(matrix, first_px) - second_px).max(axis=1) * weights
        # In the first rounds the median is over all places: the outliers are not known yet.
        is_rough = number < _ROUNDS // 2
        spread = float(np.median(away if is_rough else away[trust > 0]))
        spread = max(spread / _MEDIAN_OF_LARGER, 1e-6)
        is_kept = away < _OUTLIER_SIGMAS * spread
        if np.count_nonzero(is_kept) < _FEWEST_PLACES:
            return None
        trust = 1 / (1 + (away / spread) ** 2) if is_rough else is_kept.astype(np.float64)
    return RobustHomography(matrix, is_kept, np.asarray(spread / weights)[is_kept])


def fit_homography(first_px: FloatArray, second_px: FloatArray, weights: FloatArray) -> FloatArray:
    """Homography (3, 3) that minimises the weighted distances in the second picture.

    Places (places, 2) are x, y in two pictures; weights of the distances are in 1/px.
    """
    middle = first_px.mean(axis=0)
    size = float(np.abs(first_px - middle).max()) + 1e-9
    x, y = ((first_px - middle) / size).T
    u, v = ((second_px - middle) / size).T
    zero, one = np.zeros_like(x), np.ones_like(x)
    below = one
    for _ in range(2):
        # The equations are linear when multiplied by the denominator. Divided by its last value,
        # their residuals are distances.
        share = weights / below
        rows = np.concatenate(
            [
                np.stack([x, y, one, zero, zero, zero, -u * x, -u * y], axis=1) * share[:, None],
                np.stack([zero, zero, zero, x, y, one, -v * x, -v * y], axis=1) * share[:, None],
            ]
        )
        solution = np.linalg.lstsq(rows, np.concatenate([u * share, v * share]), rcond=None)[0]
        below = solution[6] * x + solution[7] * y + 1
    matrix = np.append(solution, 1.0).reshape(3, 3)
    to_unit = np.array(
        [[1 / size, 0.0, -middle[0] / size], [0.0, 1 / size, -middle[1] / size], [0.0, 0.0, 1.0]]
    )
    whole = np.linalg.solve(to_unit, matrix @ to_unit)
    return np.asarray(whole / whole[2, 2])


def apply_homography(matrix: FloatArray, places_px: FloatArray) -> FloatArray:
    """Places (places, 2) after a homography, in pixels."""
    whole = places_px @ matrix[:, :2].T + matrix[:, 2]
    return np.asarray(whole[:, :2] / whole[:, 2:])


def turn_rad(matrix: FloatArray, place_px: FloatArray) -> float:
    """Rotation of a homography about one place (2,), in radians."""
    below = matrix[2, :2] @ place_px + matrix[2, 2]
    image = apply_homography(matrix, place_px[np.newaxis])[0]
    slope = (matrix[:2, :2] - np.outer(image, matrix[2, :2])) / below
    return float(np.arctan2(slope[1, 0] - slope[0, 1], slope[0, 0] + slope[1, 1]))
