"""Homographies between pictures: fitted robustly, and what they do to a place."""

from typing import NamedTuple

import numpy as np

from d3s.types import FloatArray, Mask

_FEWEST = 8  # places; 4 are enough for any homography
_OUTLIER_SIGMAS = 4.0
_ROUNDS = 8
_MEDIAN_OF_LARGER = 1.0518  # median of the larger of two normal numbers, without their signs


class RobustHomography(NamedTuple):
    """A homography, which places it keeps, and their sigma from how they scatter around it."""

    matrix: FloatArray
    is_kept: Mask
    sigma_px: FloatArray  # of those that are kept


def robust_homography(
    first_px: FloatArray, second_px: FloatArray, sigma_px: FloatArray
) -> RobustHomography | None:
    """Homography by reweighted least squares, to which far-off places do not count.

    None where too few are left. `sigma_px` tells how places compare; how much they scatter is
    found from them.
    """
    if len(sigma_px) < _FEWEST:
        return None
    weights = 1 / np.hypot(sigma_px, np.median(sigma_px))
    trust = np.ones(len(weights))
    for number in range(_ROUNDS):
        matrix = fitted_homography(first_px, second_px, weights * trust)
        away = np.abs(carried(matrix, first_px) - second_px).max(axis=1) * weights
        # At first the median over all: what counts is not settled yet.
        is_rough = number < _ROUNDS // 2
        spread = float(np.median(away if is_rough else away[trust > 0]))
        spread = max(spread / _MEDIAN_OF_LARGER, 1e-6)
        is_kept = away < _OUTLIER_SIGMAS * spread
        if np.count_nonzero(is_kept) < _FEWEST:
            return None
        trust = 1 / (1 + (away / spread) ** 2) if is_rough else is_kept.astype(np.float64)
    return RobustHomography(matrix, is_kept, np.asarray(spread / weights)[is_kept])


def fitted_homography(
    first_px: FloatArray, second_px: FloatArray, weights: FloatArray
) -> FloatArray:
    """Homography that minimises the weighted distances in the second picture."""
    middle = first_px.mean(axis=0)
    size = float(np.abs(first_px - middle).max()) + 1e-9
    x, y = ((first_px - middle) / size).T
    u, v = ((second_px - middle) / size).T
    zero, one = np.zeros_like(x), np.ones_like(x)
    below = one
    for _ in range(2):
        # Times the denominator the equations are linear, and divided by its last value they
        # weigh as distances do.
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


def carried(matrix: FloatArray, places_px: FloatArray) -> FloatArray:
    """Places after a homography."""
    whole = places_px @ matrix[:, :2].T + matrix[:, 2]
    return np.asarray(whole[:, :2] / whole[:, 2:])


def turn_rad(matrix: FloatArray, place_px: FloatArray) -> float:
    """Rotation that a homography does around one place."""
    below = matrix[2, :2] @ place_px + matrix[2, 2]
    image = carried(matrix, place_px[np.newaxis])[0]
    slope = (matrix[:2, :2] - np.outer(image, matrix[2, :2])) / below
    return float(np.arctan2(slope[1, 0] - slope[0, 1], slope[0, 0] + slope[1, 1]))
