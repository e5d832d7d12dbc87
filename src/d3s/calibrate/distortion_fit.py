"""Distortion of both lenses and bend of the board, from all pairs of pictures at once.

Two pictures of a flat board, through lenses without distortion, are related by a homography: from
frame to frame as well as from view to view. What the places of the windows have beyond the
homography of their pair comes from the lenses and from the shape of the board. A lens moves a place
x, measured from its axis in units of the field radius, by::

    (k3 |x|² + k5 |x|⁴) x + 2 (p · x) x + p |x|²

(third and fifth order radial, and decentring p). Where the rim of a lens cuts the pupil off, blur
is not even around the chief ray, and the third order changes with the vergence 1/Z. A board that is
bent by δZ moves a place by -x δZ / Z. All are told apart by how they change with the distance. The
homography of each pair is eliminated, and the numbers that all pairs share are fitted by least
squares with Huber weights. This is repeated at the places that lenses without the distortion found
so far would give, since x is such a place. Neither the ruler nor the tilt of the board has an
effect; distances are needed to some per cent only.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.calibrate.anchors import Anchors, find_anchors
from d3s.calibrate.matches import Matches, PairMatches
from d3s.calibrate.robust import PairEquations, apply_homography, fit_homography, solve_pairs
from d3s.rig import Optics
from d3s.types import FloatArray


class Board(NamedTuple):
    """Shape of the board: depth = Z + sx X + sy Y + a X² + b XY + c Y², with Z on the axis."""

    slopes: tuple[float, float] = (0.0, 0.0)  # dZ/dX and dZ/dY
    bend_per_m: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def depth_m(
        self,
        cols: ArrayLike,
        rows: ArrayLike,
        depth_m: float,
        shape: tuple[int, ...],
        optics: Optics,
    ) -> FloatArray:
        """Depth of the board at pixels of the left view, in metres.

        The pixels x and y broadcast; `depth_m` is that of the board in the middle of the view.
        """
        x = (np.asarray(cols) - 0.5 * (shape[1] - 1)) / optics.focal_length_px
        y = (np.asarray(rows) - 0.5 * (shape[0] - 1)) / optics.focal_length_px
        return self.depth_along_m(x, y, depth_m)

    def depth_along_m(self, x: ArrayLike, y: ArrayLike, depth_m: float) -> FloatArray:
        """Depth of the board in a direction, in metres.

        x and y are the tangents X / Z and Y / Z of the direction; `depth_m` is that on the axis.
        """
        across, down = np.asarray(x), np.asarray(y)
        plane = depth_m / (1.0 - self.slopes[0] * across - self.slopes[1] * down)
        a, b, c = self.bend_per_m
        bend = a * across * across + b * across * down + c * down * down
        return np.asarray(plane + bend * plane**2)


LensNumbers = tuple[float, float, float, float]
"""Radial distortion of third and fifth order, decentring along x and y, at the field radius."""

_LENS = 6  # the four numbers, and the third and fifth order per dioptre
_BEND = 3
_UNKNOWNS = 2 * _LENS + _BEND
# Standard deviations of the prior, which says none: distortion of third and fifth order,
# decentring; and the curvature of a board in 1/m: one of 0.5 m is bent by 1 cm.
_PRIOR_LENS = (0.02, 0.01, 0.003, 0.003, 0.003, 0.003)
_PRIOR_BEND_PER_M = 0.3
_PASSES = 3  # axes and places are found again after the distortion is removed
_FURTHER_PASSES = 2  # the same, from a distortion that is nearly right
_NONE = (0.0, 0.0, 0.0, 0.0)
_INVERSE_ROUNDS, _SETTLED = 8, 1e-11  # of the inverse, in field radii


class Distortion(NamedTuple):
    """Distortion of both lenses, and the bend of the board, with standard deviations."""

    field_radius_px: float
    vergence_dpt: float  # at which `left` and `right` hold
    vergences_dpt: tuple[float, ...]  # of each frame
    centre_left_px: tuple[float, float] = (0.0, 0.0)  # axis of the left lens in the raw frame
    centre_right_px: tuple[float, float] = (0.0, 0.0)
    left: LensNumbers = _NONE
    right: LensNumbers = _NONE
    left_per_dpt: tuple[float, float] = (0.0, 0.0)  # change of third and fifth order with 1/Z
    right_per_dpt: tuple[float, float] = (0.0, 0.0)
    left_sigma: LensNumbers = _NONE
    right_sigma: LensNumbers = _NONE
    bend_per_m: tuple[float, float, float] = (0.0, 0.0, 0.0)  # δZ = a X² + b XY + c Y², in 1/m
    bend_sigma_per_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    before_rms_px: float = float("nan")  # residual of the homographies of all pairs
    after_rms_px: float = float("nan")

    def centre_px(self, camera: int) -> FloatArray:
        """(x, y) of the axis of a lens in the raw frame."""
        return np.array((self.centre_left_px, self.centre_right_px)[camera])

    def undistorted_px(
        self, camera: int, places_px: FloatArray, vergence_dpt: float | None = None
    ) -> FloatArray:
        """Places (places, 2) in the raw frame of a lens without distortion.

        Places are (places, 2): x, y in the raw frame; the vergence 1/Z is `self.vergence_dpt` if
        left.
        """
        further = 0.0 if vergence_dpt is None else vergence_dpt - self.vergence_dpt
        numbers = self.numbers(camera)
        centre = self.centre_px(camera)
        seen = (places_px - centre) / self.field_radius_px
        ideal = seen
        for _ in range(_INVERSE_ROUNDS):
            before, ideal = ideal, seen - _lens_terms(ideal, further) @ numbers
            if float(np.abs(ideal - before).max(initial=0.0)) < _SETTLED:
                break
        return np.asarray(centre + self.field_radius_px * ideal)

    def numbers(self, camera: int) -> FloatArray:
        """All numbers of a lens, in the order of `_lens_terms`."""
        per_dpt = (self.left_per_dpt, self.right_per_dpt)[camera]
        return np.array([*(self.left, self.right)[camera], *per_dpt])

    def largest_px(self, camera: int) -> float:
        """Distortion at the field radius to the right of the axis, in pixels."""
        place = np.array([[1.0, 0.0]])
        moved = _lens_terms(place)[..., :4] @ np.array((self.left, self.right)[camera])
        return float(np.hypot(*moved[0]) * self.field_radius_px)

    def removed_from(self, matches: Matches) -> Matches:
        """Matches as lenses without distortion would give them."""

        def changed(pair: PairMatches, cameras: tuple[int, int]) -> PairMatches:
            def first(places_px: FloatArray) -> FloatArray:
                return self.undistorted_px(cameras[0], places_px, self.vergences_dpt[pair.first])

            def second(places_px: FloatArray) -> FloatArray:
                return self.undistorted_px(cameras[1], places_px, self.vergences_dpt[pair.second])

            return pair._replace(
                first_px=first(pair.first_px),
                second_px=second(pair.second_px),
                features_first_px=first(pair.features_first_px),
                features_second_px=second(pair.features_second_px),
            )

        return matches.changed(changed)


def no_distortion(
    anchors: Anchors, distances_m: Sequence[float], field_radius_px: float
) -> Distortion:
    """Make the distortion of lenses that have none, about their anchors."""
    vergences_dpt = tuple(1 / distance_m for distance_m in distances_m)
    middle = float(np.median(vergences_dpt))
    return Distortion(field_radius_px, middle, vergences_dpt, anchors.left_px, anchors.right_px)


def find_distortion(
    matches: Matches,
    anchors: Anchors,
    distances_m: Sequence[float],
    *,
    focal_length_px: float,
    field_radius_px: float,
    start: Distortion | None = None,
) -> tuple[Distortion, Anchors]:
    """Find the distortion of both lenses, and the anchors of the views without it.

    `anchors` are axes to start with: of the views as they are, or without the distortion `start`,
    which is nearly right, such as that of the same places before a small correction. The focal
    length is as designed.
    """
    so_far = start or no_distortion(anchors, distances_m, field_radius_px)
    for _ in range(_PASSES if start is None else _FURTHER_PASSES):
        so_far = so_far._replace(centre_left_px=anchors.left_px, centre_right_px=anchors.right_px)
        so_far = _fitted(matches, so_far, focal_length_px)
        anchors = find_anchors(so_far.removed_from(matches))
    return so_far, anchors


def _lens_terms(places: FloatArray, further_dpt: float = 0.0) -> FloatArray:
    """Displacement (places, 2, 6) by each of the numbers of a lens, in units of the radius.

    `further_dpt` is the vergence beyond that at which the first four numbers hold.
    """
    x, y = places[:, 0], places[:, 1]
    square = x**2 + y**2
    terms = np.empty((len(places), 2, _LENS))
    for axis, here in enumerate((x, y)):
        terms[:, axis, 0] = square * here
        terms[:, axis, 1] = square**2 * here
        terms[:, axis, 2] = 2 * x * here
        terms[:, axis, 3] = 2 * y * here
        terms[:, axis, 2 + axis] += square
        terms[:, axis, 4] = further_dpt * square * here
        terms[:, axis, 5] = further_dpt * square**2 * here
    return terms


def _fitted(matches: Matches, so_far: Distortion, focal_length_px: float) -> Distortion:
    """Distortion by least squares for the numbers that all pairs share."""
    # A curvature of 1/m moves the rim of the field by this much of the radius, per metre.
    bend_scale = (so_far.field_radius_px / focal_length_px) ** 2
    pairs = [
        _equations(pair, cameras, so_far, bend_scale)
        for pair, cameras in so_far.removed_from(matches).with_cameras()
    ]
    prior = np.array([*_PRIOR_LENS, *_PRIOR_LENS, *[_PRIOR_BEND_PER_M] * _BEND])
    values, covariance = solve_pairs(pairs, prior)
    found, sigma = values.tolist(), np.sqrt(np.diag(covariance)).tolist()

    def rms_px(values: FloatArray) -> float:
        squares = [np.mean((pair.residual - pair.rows @ values) ** 2) for pair in pairs]
        return float(np.sqrt(np.mean(squares)))

    return so_far._replace(
        left=tuple(found[:4]),
        right=tuple(found[_LENS : _LENS + 4]),
        left_per_dpt=tuple(found[4:_LENS]),
        right_per_dpt=tuple(found[_LENS + 4 : 2 * _LENS]),
        left_sigma=tuple(sigma[:4]),
        right_sigma=tuple(sigma[_LENS : _LENS + 4]),
        bend_per_m=tuple(found[2 * _LENS :]),
        bend_sigma_per_m=tuple(sigma[2 * _LENS :]),
        before_rms_px=rms_px(np.zeros(_UNKNOWNS)),
        after_rms_px=rms_px(values),
    )


def _equations(
    pair: PairMatches, cameras: tuple[int, int], so_far: Distortion, bend_scale: float
) -> PairEquations:
    """Residuals of one pair and their derivatives, the homography eliminated, over sigma."""
    matrix = fit_homography(pair.first_px, pair.second_px, 1 / pair.sigma_px)
    tangents, jacobian = _tangents(matrix, pair.first_px)
    first, second = (
        _terms(places, camera, frame, so_far, bend_scale)
        for places, camera, frame in (
            (pair.first_px, cameras[0], pair.first),
            (pair.second_px, cameras[1], pair.second),
        )
    )
    terms = second - np.einsum("nij,njk->nik", jacobian, first)
    residual = pair.second_px - apply_homography(matrix, pair.first_px)
    # The distortion so far is added again: what is fitted is all of it.
    removed = np.concatenate([so_far.numbers(0), so_far.numbers(1), np.zeros(_BEND)])
    residual = residual + terms @ removed
    weights = np.repeat(1 / pair.sigma_px, 2)
    basis, _ = np.linalg.qr(tangents.reshape(-1, 8) * weights[:, np.newaxis])
    rows = terms.reshape(-1, _UNKNOWNS) * weights[:, np.newaxis]
    away = residual.reshape(-1) * weights
    return PairEquations(rows - basis @ (basis.T @ rows), away - basis @ (basis.T @ away))


def _terms(
    places_px: FloatArray, camera: int, frame: int, so_far: Distortion, bend_scale: float
) -> FloatArray:
    """Displacement (places, 2, unknowns) of places in pixels."""
    places = (places_px - so_far.centre_px(camera)) / so_far.field_radius_px
    vergence = so_far.vergences_dpt[frame]
    terms = np.zeros((len(places), 2, _UNKNOWNS))
    terms[:, :, camera * _LENS : (camera + 1) * _LENS] = _lens_terms(
        places, vergence - so_far.vergence_dpt
    )
    x, y = places.T
    depth = np.stack([x**2, x * y, y**2], axis=1) * bend_scale
    depth /= vergence
    terms[:, :, 2 * _LENS :] = -places[:, :, np.newaxis] * depth[:, np.newaxis, :]
    return terms * so_far.field_radius_px


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
