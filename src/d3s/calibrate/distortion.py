"""Distortion of both lenses and bend of the board, from all pairs of pictures at once.

Two pictures of a flat board, through lenses without distortion, are related by a homography: from
frame to frame as well as from view to view. What the places of the windows have beyond the
homography of their pair comes from the lenses and from the shape of the board. A lens moves a place
x, measured from its axis in units of the field radius, by

    (k3 |x|² + k5 |x|⁴) x + 2 (p · x) x + p |x|²

(third and fifth order radial, and decentring p). A board that is bent by δZ moves it by -x δZ / Z.
Distortion stays at its place in the view, while the board shrinks with the distance, which tells
the two apart. The homography of each pair is eliminated, and the eleven numbers that all pairs
share are fitted by least squares with Huber weights. This is repeated at the places that lenses
without the distortion found so far would give, since x is such a place. Neither the ruler nor the
tilt of the board has an effect; distances are used for the bend only, where some per cent do not
matter.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from d3s.calibrate.anchors import Anchors, find_anchors
from d3s.calibrate.matches import Matches, PairMatches
from d3s.calibrate.robust import apply_homography, fit_homography, huber_weighted, robust_sigma
from d3s.types import FloatArray

LensNumbers = tuple[float, float, float, float]
"""Radial distortion of third and fifth order, decentring along x and y, at the field radius."""

_LENS = 4
_BEND = 3
_UNKNOWNS = 2 * _LENS + _BEND
# Standard deviations of the prior, which says none: distortion of third and fifth order,
# decentring; and the curvature of a board in 1/m: one of 0.5 m is bent by 1 cm.
_PRIOR_LENS = (0.02, 0.01, 0.003, 0.003)
_PRIOR_BEND_PER_M = 0.3
_ROUNDS = 4
_PASSES = 3  # axes and places are found again after the distortion is removed
_NONE = (0.0, 0.0, 0.0, 0.0)
_INVERSE_ROUNDS = 8


class Distortion(NamedTuple):
    """Distortion of both lenses, and the bend of the board, with standard deviations."""

    field_radius_px: float
    left: LensNumbers = _NONE
    right: LensNumbers = _NONE
    left_sigma: LensNumbers = _NONE
    right_sigma: LensNumbers = _NONE
    centre_left_px: tuple[float, float] = (0.0, 0.0)  # axis of the left lens in the raw frame
    centre_right_px: tuple[float, float] = (0.0, 0.0)
    bend_per_m: tuple[float, float, float] = (0.0, 0.0, 0.0)  # δZ = a X² + b XY + c Y², in 1/m
    bend_sigma_per_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    before_rms_px: float = float("nan")  # residual of the homographies of all pairs
    after_rms_px: float = float("nan")

    def centre_px(self, camera: int) -> FloatArray:
        """(x, y) of the axis of a lens in the raw frame."""
        return np.array((self.centre_left_px, self.centre_right_px)[camera])

    def undistorted_px(self, camera: int, places_px: FloatArray) -> FloatArray:
        """Places (places, 2) in the raw frame of a lens without distortion.

        Parameters
        ----------
        camera
            0 is left, 1 is right.
        places_px
            (places, 2): x, y in the raw frame.
        """
        centre, numbers = self.centre_px(camera), (self.left, self.right)[camera]
        seen = (places_px - centre) / self.field_radius_px
        ideal = seen
        for _ in range(_INVERSE_ROUNDS):
            ideal = seen - _lens_terms(ideal) @ np.array(numbers)
        return np.asarray(centre + self.field_radius_px * ideal)

    def largest_px(self, camera: int) -> float:
        """Distortion at the field radius to the right of the axis, in pixels."""
        place = np.array([[1.0, 0.0]])
        moved = _lens_terms(place) @ np.array((self.left, self.right)[camera])
        return float(np.hypot(*moved[0]) * self.field_radius_px)

    def removed_from(self, matches: Matches) -> Matches:
        """Matches as lenses without distortion would give them."""

        def changed(pair: PairMatches, cameras: tuple[int, int]) -> PairMatches:
            first, second = cameras
            return pair._replace(
                first_px=self.undistorted_px(first, pair.first_px),
                second_px=self.undistorted_px(second, pair.second_px),
                features_first_px=self.undistorted_px(first, pair.features_first_px),
                features_second_px=self.undistorted_px(second, pair.features_second_px),
            )

        return matches.changed(changed)


def find_distortion(
    matches: Matches,
    anchors: Anchors,
    distances_m: Sequence[float],
    *,
    focal_length_px: float,
    field_radius_px: float,
) -> tuple[Distortion, Anchors]:
    """Find the distortion of both lenses, and the anchors of the views without it.

    Parameters
    ----------
    matches
        Places on the board from frame to frame and from view to view.
    anchors
        Anchors of the views as they are: the axes to start with.
    distances_m
        Distances of the board in metres, one for each frame.
    focal_length_px
        Sensor distance in pixels, as designed.
    field_radius_px
        Unit of places in a view.
    """
    so_far = Distortion(field_radius_px)
    for _ in range(_PASSES):
        so_far = so_far._replace(centre_left_px=anchors.left_px, centre_right_px=anchors.right_px)
        so_far = _Fit(matches, so_far, distances_m, focal_length_px).distortion()
        anchors = find_anchors(so_far.removed_from(matches))
    return so_far, anchors


def _lens_terms(places: FloatArray) -> FloatArray:
    """Displacement (places, 2, 4) by each of the four numbers of a lens, in units of the radius."""
    x, y = places[:, 0], places[:, 1]
    square = x**2 + y**2
    terms = np.empty((len(places), 2, _LENS))
    for axis, here in enumerate((x, y)):
        terms[:, axis, 0] = square * here
        terms[:, axis, 1] = square**2 * here
        terms[:, axis, 2] = 2 * x * here
        terms[:, axis, 3] = 2 * y * here
        terms[:, axis, 2 + axis] += square
    return terms


class _Pair(NamedTuple):
    """Residuals of one pair and their derivatives, the homography eliminated, over sigma."""

    rows: FloatArray  # (equations, unknowns)
    residual: FloatArray  # (equations,)


class _Fit:
    """Least squares for the numbers that all pairs share."""

    def __init__(
        self,
        matches: Matches,
        so_far: Distortion,
        distances_m: Sequence[float],
        focal_length_px: float,
    ) -> None:
        self._so_far = so_far
        self._distances_m = distances_m
        self._radius = so_far.field_radius_px
        # A curvature of 1/m moves the rim of the field by this much of the radius, per metre.
        self._bend_scale = (self._radius / focal_length_px) ** 2
        straight = so_far.removed_from(matches)
        self._pairs = [
            self._pair(pair, cameras)
            for pairs, cameras in (
                (straight.left, (0, 0)),
                (straight.right, (1, 1)),
                (straight.across, (0, 1)),
            )
            for pair in pairs
        ]
        prior = np.array([*_PRIOR_LENS, *_PRIOR_LENS, *([_PRIOR_BEND_PER_M] * _BEND)])
        self._solve(prior)

    def _pair(self, pair: PairMatches, cameras: tuple[int, int]) -> _Pair:
        matrix = fit_homography(pair.first_px, pair.second_px, 1 / pair.sigma_px)
        tangents, jacobian = _tangents(matrix, pair.first_px)
        first, second = (
            self._terms(places, camera, frame)
            for places, camera, frame in (
                (pair.first_px, cameras[0], pair.first),
                (pair.second_px, cameras[1], pair.second),
            )
        )
        terms = second - np.einsum("nij,njk->nik", jacobian, first)
        residual = pair.second_px - apply_homography(matrix, pair.first_px)
        # The distortion so far is added again: what is fitted is all of it.
        removed = np.array([*self._so_far.left, *self._so_far.right])
        residual = residual + terms[:, :, : 2 * _LENS] @ removed
        weights = np.repeat(1 / pair.sigma_px, 2)
        basis, _ = np.linalg.qr(tangents.reshape(-1, 8) * weights[:, np.newaxis])
        rows = terms.reshape(-1, _UNKNOWNS) * weights[:, np.newaxis]
        away = residual.reshape(-1) * weights
        return _Pair(rows - basis @ (basis.T @ rows), away - basis @ (basis.T @ away))

    def _terms(self, places_px: FloatArray, camera: int, frame: int) -> FloatArray:
        """Displacement (places, 2, unknowns) of places in pixels."""
        places = (places_px - self._so_far.centre_px(camera)) / self._radius
        terms = np.zeros((len(places), 2, _UNKNOWNS))
        terms[:, :, camera * _LENS : (camera + 1) * _LENS] = _lens_terms(places)
        x, y = places.T
        depth = np.stack([x**2, x * y, y**2], axis=1) * self._bend_scale
        depth *= self._distances_m[frame]
        terms[:, :, 2 * _LENS :] = -places[:, :, np.newaxis] * depth[:, np.newaxis, :]
        return terms * self._radius

    def _solve(self, prior: FloatArray) -> None:
        self._values = np.zeros(_UNKNOWNS)
        inverse_prior = np.diag(prior**-2)
        for _ in range(_ROUNDS):
            normal, right = inverse_prior.copy(), np.zeros(_UNKNOWNS)
            gradients = []
            for pair in self._pairs:
                rest = pair.residual - pair.rows @ self._values
                spread = max(robust_sigma(rest), 1e-9)
                rows, rest = huber_weighted(pair.rows / spread, rest / spread)
                normal += rows.T @ rows
                right += rows.T @ rest
                gradients.append(rows.T @ rest)
            right -= inverse_prior @ self._values
            self._values = self._values + np.linalg.solve(normal, right)
        # Errors of the windows of a pair correlate: the scatter between pairs counts.
        inverse = np.linalg.inv(normal)
        scatter = np.einsum("ij,ik->jk", gradients, gradients) + inverse_prior
        self._sigma = np.sqrt(np.diag(inverse @ scatter @ inverse))

    def _rms(self, values: FloatArray) -> float:
        squares = [np.mean((pair.residual - pair.rows @ values) ** 2) for pair in self._pairs]
        return float(np.sqrt(np.mean(squares)))

    def distortion(self) -> Distortion:
        """Return the result."""

        def four(values: FloatArray, first: int) -> LensNumbers:
            a, b, c, d = values[first : first + _LENS].tolist()
            return a, b, c, d

        def three(values: FloatArray) -> tuple[float, float, float]:
            a, b, c = values[2 * _LENS :].tolist()
            return a, b, c

        return self._so_far._replace(
            left=four(self._values, 0),
            right=four(self._values, _LENS),
            left_sigma=four(self._sigma, 0),
            right_sigma=four(self._sigma, _LENS),
            bend_per_m=three(self._values),
            bend_sigma_per_m=three(self._sigma),
            before_rms_px=self._rms(np.zeros(_UNKNOWNS)),
            after_rms_px=self._rms(self._values),
        )


def _tangents(matrix: FloatArray, places_px: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Derivatives of a homography: by its eight numbers (places, 2, 8), by the place (…, 2, 2)."""
    moved = apply_homography(matrix, places_px)
    below = places_px @ matrix[2, :2] + 1
    whole = np.column_stack([places_px, np.ones(len(places_px))]) / below[:, np.newaxis]
    size = np.abs(places_px).max()
    tangents = np.zeros((len(places_px), 2, 8))
    for axis in (0, 1):
        tangents[:, axis, 3 * axis : 3 * axis + 3] = whole
        tangents[:, axis, 6:] = -moved[:, axis, np.newaxis] * whole[:, :2] / size
    tangents[:, :, [0, 1, 3, 4]] /= size
    jacobian = (matrix[:2, :2] - moved[:, :, np.newaxis] * matrix[2, :2]) / below[
        :, np.newaxis, np.newaxis
    ]
    return tangents, jacobian
