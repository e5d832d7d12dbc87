"""Coma of both lenses, from the difference between coarse and fine detail of the two views.

Coma shifts coarse detail otherwise than fine detail (`d3s.calibrate.coma`). The views of a board
are matched twice: with all detail, and with coarse detail only. Distortion, the shape and the depth
of the board, and the mounting of the lenses move both alike, so the difference is the work of coma.
It is linear in the coma of the lenses, which is fitted to the windows of all frames.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from d3s.calibrate.coma import Spectrum, detail_shift, spectrum
from d3s.calibrate.matches import PairMatches
from d3s.calibrate.registration import COARSER, smoothing_px
from d3s.calibrate.robust import huber_weighted, robust_sigma
from d3s.rig import LensMaps, Optics
from d3s.types import FloatArray

Lens = tuple[float, float, float]
"""Coma along x and y on the axis, and its growth per field radius, in pixels."""

_NONE = (0.0, 0.0, 0.0)
_UNKNOWNS = 6
_ROUNDS = 4
_FEWEST_WINDOWS = 20  # of a pair
_MOST_SHIFT_PX = 3.0  # more is a wrong match
# Standard deviations of the prior, over the field radius: coma on the axis, and its growth.
_PRIOR = (0.3e-3, 0.3e-3, 2e-3)
# Share of coma that the model of the spots is wrong by: the spectrum of the board is not a power
# of the frequency, and spots are not even disks. From the tuning camera: 0.3 with and without
# curvature of the field, with opposite signs.
_MODEL_ERROR = 0.35
_LEAST_SIGMA_PX = 1e-3


class Coma(NamedTuple):
    """Coma of both lenses, and what its growth may be wrong by, in pixels."""

    left_px: Lens = _NONE
    right_px: Lens = _NONE
    sigma_px: float = 0.0  # of the growth
    board_slope: float = 1.0  # of the spectrum of the board

    @property
    def growth_px(self) -> float:
        """Coma at the field radius, mean of both lenses."""
        return 0.5 * (self.left_px[2] + self.right_px[2])

    def averaged_with(self, growth_px: float, sigma_px: float) -> float:
        """Mean of this growth and another estimate of it, weighted by their variances.

        Parameters
        ----------
        growth_px, sigma_px
            The other estimate, and its standard deviation.
        """
        own, other = (max(sigma, _LEAST_SIGMA_PX) ** -2 for sigma in (self.sigma_px, sigma_px))
        return (own * self.growth_px + other * growth_px) / (own + other)


class _Pair(NamedTuple):
    rows: FloatArray  # (equations, unknowns), over the spread of the residuals
    residual: FloatArray


def find_coma(
    pairs: Iterable[PairMatches],
    lenses: LensMaps,
    optics: Optics,
    centres_px: tuple[FloatArray, FloatArray],
    depths_m: FloatArray,
    board: Spectrum,
) -> Coma:
    """Coma of both lenses that explains how coarse detail lies beside fine detail.

    Parameters
    ----------
    pairs
        Windows of the left view found in the right one, with and without fine detail.
    lenses, optics
        Focus over the field.
    centres_px
        (x, y) of the axes of both lenses in the raw frame.
    depths_m
        Depth of the board in each frame; NaN where unknown.
    board
        Spectrum of the board.

    Returns
    -------
    Coma
        None of it, with the standard deviation of the prior, if no pair can be used.
    """
    smoothing = smoothing_px(2 * lenses.field_radius_px)
    bands = [spectrum(board.slope, factor * smoothing) for factor in (1.0, COARSER)]
    found = [
        one
        for pair in pairs
        if np.isfinite(depths_m[pair.first])
        and (one := _pair(pair, lenses, optics, centres_px, 1 / depths_m[pair.first], bands))
    ]
    prior = lenses.field_radius_px * np.array([*_PRIOR, *_PRIOR])
    values, covariance = _solve(found, prior)
    mean = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.5])
    growth_sigma = float(np.sqrt(mean @ covariance @ mean))
    sigma = float(np.hypot(growth_sigma, _MODEL_ERROR * abs(float(mean @ values))))
    left, right = values[:3].tolist(), values[3:].tolist()
    return Coma(tuple(left), tuple(right), sigma, board.slope)


def _pair(
    pair: PairMatches,
    lenses: LensMaps,
    optics: Optics,
    centres_px: tuple[FloatArray, FloatArray],
    vergence_dpt: float,
    bands: list[Spectrum],
) -> _Pair | None:
    """Equations of the windows of one pair, of which enough have coarse detail."""
    if pair.coarse_shift_px is None:
        return None
    # NaN, where a window was not found, is not below the limit.
    is_in = np.abs(pair.coarse_shift_px).max(axis=1) < _MOST_SHIFT_PX
    if np.count_nonzero(is_in) < _FEWEST_WINDOWS:
        return None
    places = [
        ((px[is_in] - centre_px) / lenses.field_radius_px).T
        for px, centre_px in zip((pair.first_px, pair.second_px), centres_px, strict=True)
    ]
    blurs = _blurs(places, lenses, optics, vergence_dpt)
    columns = np.zeros((np.count_nonzero(is_in), 2, _UNKNOWNS))
    for kind in range(3):
        comas = _unit_coma(kind, places[0]), _unit_coma(kind, places[1])
        fine, coarse = (detail_shift(blurs, comas, waves) for waves in bands)
        # The views of a frame are alike in size and direction, to some per cent.
        columns[:, :, kind] = fine.first_px - coarse.first_px
        columns[:, :, 3 + kind] = coarse.second_px - fine.second_px
    weights = np.repeat(1 / pair.sigma_px[is_in], 2)
    rows = columns.reshape(-1, _UNKNOWNS) * weights[:, np.newaxis]
    residual = pair.coarse_shift_px[is_in].reshape(-1) * weights
    return _Pair(rows, residual)


def _blurs(
    places: list[FloatArray], lenses: LensMaps, optics: Optics, vergence_dpt: float
) -> tuple[FloatArray, FloatArray]:
    """Tensors of the blur radii (3, windows) of both views."""
    (left_x, left_y), (right_x, right_y) = places
    return (
        lenses.blur_radii_px(0, left_x, left_y, vergence_dpt, optics),
        lenses.blur_radii_px(1, right_x, right_y, vergence_dpt, optics),
    )


def _unit_coma(kind: int, places: FloatArray) -> FloatArray:
    """Coma (2, windows) of one pixel along x, along y, or at the field radius."""
    if kind == 2:
        return places
    coma = np.zeros_like(places)
    coma[kind] = 1.0
    return coma


def _solve(pairs: list[_Pair], prior_px: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients by least squares with Huber weights, and their covariance.

    Errors of the windows of a pair correlate, so the covariance is by the scatter between pairs.
    """
    inverse_prior = np.diag(prior_px**-2)
    values = np.zeros(_UNKNOWNS)
    for _ in range(_ROUNDS):
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
