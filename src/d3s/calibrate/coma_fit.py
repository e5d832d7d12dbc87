"""Coma of both lenses, from the difference between coarse and fine detail.

Coma shifts coarse detail otherwise than fine detail (`d3s.calibrate.coma`). Pictures of a board are
matched twice, from frame to frame and from view to view: with all detail, and with coarse detail
only. Distortion, the shape and the depth of the board, and the mounting of the lenses move both
alike, so the difference is the work of coma. It is linear in the coma of the lenses, which is
fitted to the windows of all pairs.
"""

from typing import NamedTuple

import numpy as np

from d3s.calibrate.coma import (
    BoardBlur,
    ComaNumbers,
    Spectrum,
    detail_shift,
    magnification,
    spectrum,
)
from d3s.calibrate.matches import Matches, PairMatches
from d3s.calibrate.registration import COARSER, smoothing_px
from d3s.calibrate.robust import huber_weighted, robust_sigma
from d3s.types import FloatArray

_NONE = (0.0, 0.0, 0.0)
_UNKNOWNS = 6
_ROUNDS = 4
_FEWEST_WINDOWS = 20  # of a pair
_MOST_SHIFT_PX = 3.0  # more is a wrong match
# Standard deviations of the prior, over the field radius: coma on the axis, and its growth.
_PRIOR = (0.3e-3, 0.3e-3, 2e-3)
# Share of coma that the model of the spots is wrong by: the spectrum of the board is not a power
# of the frequency, and spots are not even disks. From the tuning camera: 0.2 with and without
# curvature of the field.
_MODEL_ERROR = 0.25


class Coma(NamedTuple):
    """Coma of both lenses, and what its growth may be wrong by, in pixels."""

    left_px: ComaNumbers = _NONE
    right_px: ComaNumbers = _NONE
    sigma_px: float = 0.0  # of the growth
    board_slope: float = 1.0  # of the spectrum of the board

    @property
    def growth_px(self) -> float:
        """Coma at the field radius, mean of both lenses."""
        return 0.5 * (self.left_px[2] + self.right_px[2])


class _Pair(NamedTuple):
    rows: FloatArray  # (equations, unknowns), over the spread of the residuals
    residual: FloatArray


def find_coma(matches: Matches, blur: BoardBlur, waves: Spectrum) -> Coma:
    """Coma of both lenses that explains how coarse detail lies beside fine detail.

    There is none of it, with the standard deviation of the prior, if no pair can be used.
    """
    radius_px = blur.lenses.field_radius_px
    smoothing = smoothing_px(2 * radius_px)
    bands = [spectrum(waves.slope, factor * smoothing) for factor in (1.0, COARSER)]
    found = [
        one
        for pair, cameras in matches.with_cameras()
        if blur.knows(pair) and (one := _pair(pair, cameras, blur, bands))
    ]
    values, covariance = _solve(found, radius_px * np.array([*_PRIOR, *_PRIOR]))
    mean = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.5])
    growth_sigma = float(np.sqrt(mean @ covariance @ mean))
    sigma = float(np.hypot(growth_sigma, _MODEL_ERROR * abs(float(mean @ values))))
    left, right = values[:3].tolist(), values[3:].tolist()
    return Coma(tuple(left), tuple(right), sigma, waves.slope)


def _pair(
    pair: PairMatches, cameras: tuple[int, int], blur: BoardBlur, bands: list[Spectrum]
) -> _Pair | None:
    """Equations of the windows of one pair, of which enough have coarse detail."""
    shift_px = pair.coarse_shift_px
    if shift_px is None:
        return None
    # NaN, where a window was not found, is not below the limit.
    is_in = np.abs(shift_px).max(axis=1) < _MOST_SHIFT_PX
    if np.count_nonzero(is_in) < _FEWEST_WINDOWS:
        return None
    pair = pair.some(is_in)
    blurs = blur.blurs_px(pair, cameras)
    first, second = (
        blur.places(places_px, camera)
        for places_px, camera in zip((pair.first_px, pair.second_px), cameras, strict=True)
    )
    size = magnification(pair)
    columns = np.zeros((len(pair.first_px), 2, _UNKNOWNS))
    for kind in range(3):
        comas = _unit_coma(kind, first), _unit_coma(kind, second)
        fine, coarse = (detail_shift(blurs, comas, waves, size) for waves in bands)
        columns[:, :, 3 * cameras[0] + kind] += size * (fine.first_px - coarse.first_px)
        columns[:, :, 3 * cameras[1] + kind] += coarse.second_px - fine.second_px
    weights = np.repeat(1 / pair.sigma_px, 2)
    rows = columns.reshape(-1, _UNKNOWNS) * weights[:, np.newaxis]
    return _Pair(rows, shift_px[is_in].reshape(-1) * weights)


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
