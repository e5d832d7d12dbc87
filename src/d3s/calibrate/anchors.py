"""Anchors: where each view has the point at infinity towards which the board moves.

A board that moves along the axis is seen to shrink towards that point. Let x be a place in a view
as seen from the anchor a, and the board's depth there ζ (1 - t·x)⁻¹, with t its tilt against the
view. A point of the board that is at x_j in one frame is then in another at

    x_k = r x_j / (1 + (r - 1) t·x_j),    r = ζ_j / ζ_k,

a homography with the anchor as its fixed point. A lens that distorts pushes what is at x outwards
by ``k |x|² x``, and so adds ``k x_k (|x_k|² - |x_j|²)``. `a`, `t` and `k` are common to all frames,
each pair of frames has its own r. The fit is by least squares on all pairs at once. A board that
sways on its rail shifts whole pictures, more when it is near; the size of that is found from how
the pairs scatter, and weighs pairs that shrink little accordingly.

The paper minimises the shift of features in a window instead (Eq. S6). That is here too, and is
off by pixels where the fit is off by hundredths: the few features of a window are not spread
evenly in it, and those outside, which shift most, say nothing.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from d3s.calibrate.kinds import Place
from d3s.calibrate.least_shift import least_shift
from d3s.calibrate.matches import Matches, PairMatches
from d3s.calibrate.table import FEWEST_FRAMES
from d3s.errors import CalibrationError
from d3s.types import FloatArray

_ROUNDS, _LAST_ROUNDS = 8, 4
_SETTLED_PX = 1e-3
_OUTLIER_SIGMAS = 5.0
_FEWEST_PAIRS = FEWEST_FRAMES - 1  # of frames that follow each other
_OFF_CENTRE = 0.03  # of the reach of a view: from the anchor to the centre of distortion
_UNLIKE_CUBIC = 0.1  # share of a lens' distortion that does not grow with the cube


class Expansion(NamedTuple):
    """How much nearer the board was in one frame than in another."""

    first: int
    second: int
    log_ratio: float  # of the distance in the first frame to that in the second
    sigma: float


class ViewAnchor(NamedTuple):
    """The anchor of one view, by both methods."""

    place_px: Place  # by expansion
    covariance_px2: FloatArray  # (2, 2)
    least_shift_px: Place  # by Eq. S6
    least_shift_sigma_px: Place  # by leaving out parts of the frames in turn
    tilt_per_px: Place  # t: share by which the board recedes per pixel
    distortion_per_px2: float  # k
    stretch_sigma: float  # share of all log ratios that distortion may have left in them
    sway_px: float  # standard deviation of what shifts a pair, at the median distance
    residual_px: float  # RMS distance of a window from the fit
    expansions: tuple[Expansion, ...]
    left_out_pairs: tuple[tuple[int, int], ...]
    windows: int

    @property
    def sigma_px(self) -> Place:
        """Standard deviation of x and y, by expansion."""
        sigma_x, sigma_y = np.sqrt(np.diag(self.covariance_px2))
        return float(sigma_x), float(sigma_y)


class Anchors(NamedTuple):
    """The anchors of both views."""

    left: ViewAnchor
    right: ViewAnchor
    method: Literal["expansion", "least shift"]  # whichever is more certain
    left_out: dict[int, str]  # that say nothing of the anchors; rows and disparity are still good

    @property
    def left_px(self) -> Place:
        """(x, y) of the left anchor in the raw frame, by the better method."""
        return _place_of(self.left, self.method)

    @property
    def right_px(self) -> Place:
        """(x, y) of the right anchor in the raw frame, by the better method."""
        return _place_of(self.right, self.method)

    @property
    def covariances_px2(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of the left and of the right anchor."""
        left, right = (
            view.covariance_px2
            if self.method == "expansion"
            else np.diag(np.square(view.least_shift_sigma_px))
            for view in (self.left, self.right)
        )
        return left, right


def find_anchors(matches: Matches) -> Anchors:
    """The anchors of both views, by expansion and by least shift, and which is better.

    Raises
    ------
    CalibrationError
        When the board did not come nearer or go away, or moved aside instead.
    """
    left, right = (
        _view_anchor(pairs, name)
        for pairs, name in ((matches.left, "left"), (matches.right, "right"))
    )
    by_expansion = sum(np.trace(view.covariance_px2) for view in (left, right))
    by_shift = sum(sum(np.square(view.least_shift_sigma_px)) for view in (left, right))
    method: Literal["expansion", "least shift"] = (
        "least shift" if by_shift < by_expansion else "expansion"
    )
    return Anchors(left, right, method, _swayed(matches, left, right))


def _place_of(view: ViewAnchor, method: str) -> Place:
    return view.place_px if method == "expansion" else view.least_shift_px


def _view_anchor(pairs: Sequence[PairMatches], name: str) -> ViewAnchor:
    fit = _Fit(pairs, name)
    least, least_sigma = least_shift(pairs)
    return ViewAnchor(
        place_px=(float(fit.anchor[0]), float(fit.anchor[1])),
        covariance_px2=fit.covariance[:2, :2] + fit.off_centre_px() ** 2 * np.eye(2),
        least_shift_px=least,
        least_shift_sigma_px=least_sigma,
        tilt_per_px=(float(fit.tilt[0]), float(fit.tilt[1])),
        distortion_per_px2=float(fit.distortion) / fit.reach_px**2,
        stretch_sigma=fit.stretch_sigma(),
        sway_px=fit.sway_px,
        residual_px=fit.residual_px,
        expansions=fit.expansions(),
        left_out_pairs=tuple(
            (pair.first, pair.second) for pair, is_in in zip(pairs, fit.is_in, strict=True)
            if not is_in
        ),
        windows=sum(len(pair.sigma_px) for pair in fit.kept()),
    )  # fmt: skip


def _swayed(matches: Matches, left: ViewAnchor, right: ViewAnchor) -> dict[int, str]:
    """Frames of which no pair fits."""
    out: dict[int, str] = {}
    bad = {*left.left_out_pairs, *right.left_out_pairs}
    for frame in matches.kept:
        of_frame = {
            (pair.first, pair.second) for pair in matches.left if frame in (pair.first, pair.second)
        }
        if of_frame and of_frame <= bad:
            out[frame] = "the board stood aside of its line, or was tilted, unlike in other frames"
    return out


class _Terms(NamedTuple):
    """One pair's normal equations, of what is common to all pairs and of what is its own."""

    normal: FloatArray  # (8, 8)
    right: FloatArray  # (8,)


_COMMON = 5  # anchor x and y, tilt x and y, distortion; then log ratio, shift x and y of the pair
_UNKNOWNS = 8


class _Fit:
    """Anchor, tilt and distortion of a view, common to all pairs, and the log ratio of each."""

    def __init__(self, pairs: Sequence[PairMatches], name: str) -> None:
        self.pairs = pairs
        self.is_in = np.ones(len(pairs), dtype=np.bool_)
        self.anchor, self.log_ratio = _first_guess(pairs, name)
        self.tilt = np.zeros(2)
        self.distortion = 0.0  # at `reach_px` from the anchor
        self.reach_px = float(max(np.abs(pair.first_px - self.anchor).max() for pair in pairs))
        self.nearness = _nearness(pairs, self.log_ratio)
        self.sway_px = 0.0
        # Weights and values follow each other for a while, and then the weights stay.
        for number in range(_ROUNDS + _LAST_ROUNDS):
            if number < _ROUNDS:
                self._weigh(name)
            step = self._step()
        if not step < _SETTLED_PX:
            raise CalibrationError(
                f"the {name} view has no point towards which the board moves: the fit does not "
                "settle. Move the board along the axis of the camera, in steps of some per cent "
                "of its distance."
            )
        self.residual_px = self._residual_px()

    def kept(self) -> list[PairMatches]:
        """Pairs that fit."""
        return [self.pairs[number] for number in self._numbers()]

    def _numbers(self) -> list[int]:
        return [number for number, is_in in enumerate(self.is_in) if is_in]

    def _step(self) -> float:
        """One Gauss-Newton step; its size in pixels."""
        terms = [self._terms(number) for number in range(len(self.pairs))]
        total, right = np.zeros((_COMMON, _COMMON)), np.zeros(_COMMON)
        for number in self._numbers():
            normal, rest = _without_own(terms[number], self._prior(number))
            total += normal
            right += rest
        scale = 1 / np.sqrt(np.diag(total) + 1e-300)
        scaled = total * np.outer(scale, scale)
        if not np.all(np.isfinite(scaled)) or np.linalg.cond(scaled) > 1e10:
            return np.inf
        self.covariance = np.linalg.inv(scaled) * np.outer(scale, scale)
        step = self.covariance @ right
        # Beyond the picture, or with distortion as large as it, the equations mean nothing.
        if np.abs(step[:2]).max() > self.reach_px or abs(self.distortion + step[4]) > 1:
            return np.inf
        self.anchor = self.anchor + step[:2]
        self.tilt = self.tilt + step[2:4]
        self.distortion += float(step[4])
        for number, one in enumerate(terms):
            own = one.right[_COMMON:] - one.normal[_COMMON:, :_COMMON] @ step
            precision = one.normal[_COMMON:, _COMMON:] + self._prior(number)
            self.log_ratio[number] += np.clip(np.linalg.solve(precision, own)[0], -0.5, 0.5)
        return float(np.abs(step[:2]).max())

    def _prior(self, number: int) -> FloatArray:
        """Precision of (log ratio, shift x, shift y) of a pair before anything is seen."""
        precision = 1 / max(self.sway_px * self.nearness[number], 1e-6) ** 2
        return np.diag([0.0, precision, precision])

    def _moved(self, number: int) -> FloatArray:
        """Where the places of the first picture should be in the second, from the anchor."""
        ratio = np.exp(self.log_ratio[number])
        away = self.pairs[number].first_px - self.anchor
        ideal = ratio * away / (1 + (ratio - 1) * (away @ self.tilt))[:, np.newaxis]
        return np.asarray(ideal * (1 + self.distortion * self._outward(away, ideal))[:, np.newaxis])

    def _outward(self, before: FloatArray, after: FloatArray) -> FloatArray:
        return np.asarray(np.sum(after**2 - before**2, axis=1) / self.reach_px**2)

    def _terms(self, number: int) -> _Terms:
        pair, ratio = self.pairs[number], np.exp(self.log_ratio[number])
        away = pair.first_px - self.anchor
        lean = away @ self.tilt
        below = 1 + (ratio - 1) * lean
        # Distortion is small, so that it hardly changes how the rest moves the places.
        moved = self._moved(number)
        slopes = np.zeros((len(away), 2, _UNKNOWNS))
        per_square = ratio * (ratio - 1) / below**2
        outer = away[:, :, np.newaxis] * self.tilt * per_square[:, np.newaxis, np.newaxis]
        slopes[:, :, :2] = (1 - ratio / below)[:, np.newaxis, np.newaxis] * np.eye(2) + outer
        slopes[:, :, 2:4] = -(
            away[:, :, np.newaxis] * away[:, np.newaxis, :] * per_square[:, np.newaxis, np.newaxis]
        )
        slopes[:, :, 4] = moved * self._outward(away, moved)[:, np.newaxis]
        slopes[:, :, 5] = ratio * away * ((1 - lean) / below**2)[:, np.newaxis]
        slopes[:, 0, 6] = slopes[:, 1, 7] = 1.0
        weights = 1 / pair.sigma_px
        rows = (slopes * weights[:, np.newaxis, np.newaxis]).reshape(-1, _UNKNOWNS)
        left = ((pair.second_px - self.anchor - moved) * weights[:, np.newaxis]).reshape(-1)
        return _Terms(rows.T @ rows, rows.T @ left)

    def _shifts(self) -> tuple[FloatArray, FloatArray]:
        """Shift of each pair that the fit does not explain, and its variance.

        Both as they would be at the median distance.
        """
        shifts, variances = np.empty((len(self.pairs), 2)), np.empty((len(self.pairs), 2))
        for number, nearness in enumerate(self.nearness):
            terms = self._terms(number)
            inverse = np.linalg.inv(terms.normal[_COMMON:, _COMMON:])
            shifts[number] = (inverse @ terms.right[_COMMON:])[1:] / nearness
            variances[number] = np.diag(inverse)[1:] / nearness**2
        return shifts, variances

    def _weigh(self, name: str) -> None:
        """How much the board sways, and which pairs are beyond that."""
        shifts, variances = self._shifts()
        typical = np.median(shifts[self.is_in] ** 2) / 0.455  # of a normal number squared
        self.sway_px = float(np.sqrt(max(typical - np.median(variances[self.is_in]), 0.0)))
        sizes = np.abs(shifts) / np.sqrt(variances + self.sway_px**2)
        self.is_in = np.all(sizes < _OUTLIER_SIGMAS, axis=1)
        if np.count_nonzero(self.is_in) < max(_FEWEST_PAIRS, len(self.pairs) / 2):
            raise CalibrationError(
                f"the {name} view has no one point towards which the board moves: only "
                f"{np.count_nonzero(self.is_in)} of {len(self.pairs)} pairs of frames agree on it. "
                "The board must move along a straight line, without stepping aside or turning."
            )

    def _residual_px(self) -> float:
        squares = [
            (self.pairs[number].second_px - self.anchor - self._moved(number)) ** 2
            for number in self._numbers()
        ]
        return float(np.sqrt(np.mean(np.sum(np.concatenate(squares), axis=1))))

    def expansions(self) -> tuple[Expansion, ...]:
        """Log ratios of all pairs that fit, with their standard deviations."""
        found = []
        for number in self._numbers():
            own = self._terms(number).normal[_COMMON:, _COMMON:] + self._prior(number)
            sigma = float(np.sqrt(np.linalg.inv(own)[0, 0]))
            pair = self.pairs[number]
            found.append(Expansion(pair.first, pair.second, float(self.log_ratio[number]), sigma))
        return tuple(found)

    def stretch_sigma(self) -> float:
        """What is uncertain of the distortion, as a share of each log ratio.

        A place at x has 2 k |x|² log r from it, and nobody promised that a lens follows k |x|².
        """
        sigma = np.hypot(np.sqrt(self.covariance[4, 4]), _UNLIKE_CUBIC * self.distortion)
        return float(2 * self._mean_square() * sigma)

    def off_centre_px(self) -> float:
        """How far the anchor may be off because the lens distorts around another point."""
        return abs(2 * self._mean_square() * self.distortion * _OFF_CENTRE * self.reach_px)

    def _mean_square(self) -> float:
        """Mean square distance of the places from the anchor, of `reach_px` squared."""
        squares = [np.mean((pair.first_px - self.anchor) ** 2) for pair in self.kept()]
        return float(2 * np.mean(squares) / self.reach_px**2)


def _nearness(pairs: Sequence[PairMatches], log_ratio: FloatArray) -> FloatArray:
    """How much nearer than at the median the board was in the first frame of each pair."""
    log_distance: dict[int, float] = {}
    for pair, rho in zip(pairs, log_ratio, strict=True):
        first = log_distance.setdefault(pair.first, 0.0)
        log_distance.setdefault(pair.second, first - float(rho))
    logs = np.array([log_distance[pair.first] for pair in pairs])
    return np.asarray(np.exp(np.median(logs) - logs))


def _without_own(terms: _Terms, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Normal equations of what is common, with the pair's own unknowns solved for."""
    own, mixed = terms.normal[_COMMON:, _COMMON:] + prior, terms.normal[:_COMMON, _COMMON:]
    through = np.linalg.solve(own, mixed.T).T
    normal = terms.normal[:_COMMON, :_COMMON] - through @ mixed.T
    return normal, terms.right[:_COMMON] - through @ terms.right[_COMMON:]


def _first_guess(pairs: Sequence[PairMatches], name: str) -> tuple[FloatArray, FloatArray]:
    """Anchor and log ratios, from the similarity without turn that fits each pair."""
    if len(pairs) < _FEWEST_PAIRS:
        raise CalibrationError(
            f"the {name} view has {len(pairs)} pairs of frames that fit each other, and at least "
            f"{_FEWEST_PAIRS} are needed. Take more frames, in smaller steps."
        )
    ratios, shifts = np.empty(len(pairs)), np.empty((len(pairs), 2))
    for number, pair in enumerate(pairs):
        middle = pair.first_px.mean(axis=0)
        away = pair.first_px - middle
        ratios[number] = np.sum(away * pair.second_px) / np.sum(away**2)
        shifts[number] = pair.second_px.mean(axis=0) - ratios[number] * middle
    # x' = r x + (1 - r) a: a line through the origin for each coordinate.
    lever = 1 - ratios
    if not np.all(ratios > 0) or float(np.abs(lever).max()) < 0.01:
        raise CalibrationError(
            f"the board does not change its size in the {name} view: at most "
            f"{100 * float(np.abs(lever).max()):.1f} % from frame to frame. Move it along the "
            "axis, from near to far."
        )
    strong = np.abs(lever) >= 0.5 * np.median(np.abs(lever))
    places = shifts[strong] / lever[strong, np.newaxis]
    return np.median(places, axis=0), np.log(ratios)
