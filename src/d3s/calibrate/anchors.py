"""Anchors: the point of each view towards which the board shrinks as it moves away.

It is the image of the point at infinity in the direction of motion. Let x be a place in a view
relative to the anchor a, and ζ (1 - t·x)⁻¹ the depth of the board there, with t its tilt against
the view. A point of the board at x_j in one frame is then in another frame at

    x_k = r x_j / (1 + (r - 1) t·x_j),    r = ζ_j / ζ_k,

a homography with the anchor as its fixed point. A lens that distorts moves the image at x outwards
by ``k |x|² x``, which adds ``k x_k (|x_k|² - |x_j|²)``. `a`, `t` and `k` are common to all frames,
each pair of frames has its own r. All pairs are fitted at once by least squares. A board that sways
on its rail shifts whole pictures, more when it is near. The size of the sway is found from the
scatter of the pairs; pairs that shrink little then have less weight.

The paper minimises the shift of features in a window instead (Eq. S6, `least_shift`). This is
computed too, and is wrong by pixels where the fit is wrong by hundredths: the few features of a
window are not spread evenly in it, and the features outside, which shift most, are not used.

Distortion is reported and keeps anchors and expansion right; images are not corrected for it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from d3s.calibrate.distance_table import FEWEST_FRAMES
from d3s.calibrate.matches import Matches, PairMatches, Place, place_of
from d3s.errors import CalibrationError
from d3s.types import FloatArray

_ROUNDS, _LAST_ROUNDS = 8, 4  # Gauss-Newton steps with changing, and with fixed weights
_SETTLED_PX = 1e-3  # the fit has converged if the last step of the anchor is smaller
_OUTLIER_SIGMAS = 5.0
_FEWEST_PAIRS = FEWEST_FRAMES - 1  # pairs of consecutive frames
_OFF_CENTRE = 0.03  # distance of anchor and centre of distortion, as a share of the view's reach
_UNLIKE_CUBIC = 0.1  # share of the distortion of a lens that is not cubic


Method = Literal["expansion", "least shift"]


class Expansion(NamedTuple):
    """Ratio of the distances of the board in two frames."""

    first: int
    second: int
    log_ratio: float  # log of the distance in the first frame over that in the second
    sigma: float  # standard deviation of log_ratio


class ViewAnchor(NamedTuple):
    """Anchor of one view in the raw frame, by both methods."""

    place_px: Place  # by expansion
    covariance_px2: FloatArray  # (2, 2)
    least_shift_px: Place  # by Eq. S6
    least_shift_sigma_px: Place  # by the jackknife
    tilt_per_px: Place  # t: relative increase of depth per pixel
    distortion_per_px2: float  # k
    stretch_sigma: float  # error of all log ratios by distortion, as a share of them
    sway_px: float  # standard deviation of the shift of a pair, at the median distance
    residual_px: float  # RMS distance of a window from the fit
    expansions: tuple[Expansion, ...]
    left_out_pairs: tuple[tuple[int, int], ...]
    windows: int

    @property
    def sigma_px(self) -> Place:
        """Standard deviation of x and y, by expansion."""
        return place_of(np.sqrt(np.diag(self.covariance_px2)))

    def by(self, method: Method) -> tuple[Place, Place]:
        """Anchor and its standard deviation by one of the methods."""
        if method == "expansion":
            return self.place_px, self.sigma_px
        return self.least_shift_px, self.least_shift_sigma_px


class Anchors(NamedTuple):
    """Anchors of both views."""

    left: ViewAnchor
    right: ViewAnchor
    method: Method  # the one with the smaller variance
    left_out: dict[int, str]  # rejected for the anchors only; rows and disparity are still used

    @property
    def left_px(self) -> Place:
        """(x, y) of the left anchor in the raw frame, by `method`."""
        return self.left.by(self.method)[0]

    @property
    def right_px(self) -> Place:
        """(x, y) of the right anchor in the raw frame, by `method`."""
        return self.right.by(self.method)[0]

    @property
    def covariances_px2(self) -> tuple[FloatArray, FloatArray]:
        """Covariances (2, 2) of the left and of the right anchor, by `method`."""
        left, right = (
            view.covariance_px2
            if self.method == "expansion"
            else np.diag(np.square(view.least_shift_sigma_px))
            for view in (self.left, self.right)
        )
        return left, right


def find_anchors(matches: Matches) -> Anchors:
    """Find the anchors of both views by expansion and by least shift, and choose a method."""
    left, right = (
        _view_anchor(pairs, name)
        for pairs, name in ((matches.left, "left"), (matches.right, "right"))
    )
    by_expansion = sum(np.trace(view.covariance_px2) for view in (left, right))
    by_shift = sum(sum(np.square(view.least_shift_sigma_px)) for view in (left, right))
    method: Method = "least shift" if by_shift < by_expansion else "expansion"
    return Anchors(left, right, method, _rejected_frames(matches, left, right))


def _view_anchor(pairs: Sequence[PairMatches], name: str) -> ViewAnchor:
    fit = _Fit(pairs, name)
    least, least_sigma = least_shift(pairs)
    return ViewAnchor(
        place_px=place_of(fit.anchor),
        covariance_px2=fit.covariance[:2, :2] + fit.distortion_centre_error_px() ** 2 * np.eye(2),
        least_shift_px=least,
        least_shift_sigma_px=least_sigma,
        tilt_per_px=place_of(fit.tilt),
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


def _rejected_frames(matches: Matches, left: ViewAnchor, right: ViewAnchor) -> dict[int, str]:
    """Frames all of whose pairs were rejected, with the reason."""
    out: dict[int, str] = {}
    bad = {*left.left_out_pairs, *right.left_out_pairs}
    for frame in matches.kept:
        of_frame = {
            (pair.first, pair.second) for pair in matches.left if frame in (pair.first, pair.second)
        }
        if of_frame and of_frame <= bad:
            out[frame] = "the board stood aside of its line, or was tilted, unlike in other frames"
    return out


class _NormalEquations(NamedTuple):
    """Normal equations of one pair."""

    normal: FloatArray  # (8, 8)
    right: FloatArray  # (8,)


# Unknowns that all pairs share: anchor x and y, tilt x and y, distortion. Each pair has three more:
# log ratio, shift x and y.
_COMMON = 5
_UNKNOWNS = 8


class _Fit:
    """Fit of anchor, tilt and distortion of a view, and of the log ratio of each pair."""

    def __init__(self, pairs: Sequence[PairMatches], name: str) -> None:
        self.pairs = pairs
        self.is_in = np.ones(len(pairs), dtype=np.bool_)
        self.anchor, self.log_ratio = _first_guess(pairs, name)
        self.tilt = np.zeros(2)
        self.distortion = 0.0  # at `reach_px` from the anchor
        self.reach_px = float(max(np.abs(pair.first_px - self.anchor).max() for pair in pairs))
        self.nearness = _nearness(pairs, self.log_ratio)
        self.sway_px = 0.0
        # The weights are updated in the first rounds, and fixed in the last.
        for number in range(_ROUNDS + _LAST_ROUNDS):
            terms = [self._equations(pair) for pair in range(len(pairs))]
            if number < _ROUNDS:
                self._update_weights(terms, name)
            step = self._step(terms)
        if not step < _SETTLED_PX:
            raise CalibrationError(
                f"the {name} view has no point towards which the board moves: the fit does not "
                "settle. Move the board along the axis of the camera, in steps of some per cent "
                "of its distance."
            )
        self.residual_px = self._residual_px()

    def kept(self) -> list[PairMatches]:
        """Pairs that were not rejected."""
        return [self.pairs[number] for number in self._numbers()]

    def _numbers(self) -> list[int]:
        return [number for number, is_in in enumerate(self.is_in) if is_in]

    def _step(self, terms: Sequence[_NormalEquations]) -> float:
        """Take one Gauss-Newton step; returns the step of the anchor in pixels."""
        total, right = np.zeros((_COMMON, _COMMON)), np.zeros(_COMMON)
        for number in self._numbers():
            normal, rest = _eliminate_own(terms[number], self._prior(number))
            total += normal
            right += rest
        scale = 1 / np.sqrt(np.diag(total) + 1e-300)
        scaled = total * np.outer(scale, scale)
        if not np.all(np.isfinite(scaled)) or np.linalg.cond(scaled) > 1e10:
            return np.inf
        self.covariance = np.linalg.inv(scaled) * np.outer(scale, scale)
        step = self.covariance @ right
        # The equations do not hold beyond the picture, or if distortion is as large as the picture.
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
        """Prior precision (3, 3) of log ratio, shift x and shift y of a pair."""
        precision = 1 / max(self.sway_px * self.nearness[number], 1e-6) ** 2
        return np.diag([0.0, precision, precision])

    def _moved(self, number: int) -> FloatArray:
        """Predicted places (places, 2) in the second picture, relative to the anchor."""
        ratio = np.exp(self.log_ratio[number])
        away = self.pairs[number].first_px - self.anchor
        ideal = ratio * away / (1 + (ratio - 1) * (away @ self.tilt))[:, np.newaxis]
        return np.asarray(ideal * (1 + self.distortion * self._outward(away, ideal))[:, np.newaxis])

    def _outward(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Increase of |x|² from the first to the second picture, in units of `reach_px` squared."""
        return np.asarray(np.sum(after**2 - before**2, axis=1) / self.reach_px**2)

    def _equations(self, number: int) -> _NormalEquations:
        """Normal equations of one pair at the current values."""
        pair, ratio = self.pairs[number], np.exp(self.log_ratio[number])
        away = pair.first_px - self.anchor
        lean = away @ self.tilt
        below = 1 + (ratio - 1) * lean
        # Distortion is small: its effect on the other derivatives is neglected.
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
        residual = ((pair.second_px - self.anchor - moved) * weights[:, np.newaxis]).reshape(-1)
        return _NormalEquations(rows.T @ rows, rows.T @ residual)

    def _shifts(self, terms: Sequence[_NormalEquations]) -> tuple[FloatArray, FloatArray]:
        """Shift (pairs, 2) that the fit does not explain, and its variance.

        Both are scaled to the median distance of the board.
        """
        shifts, variances = np.empty((len(self.pairs), 2)), np.empty((len(self.pairs), 2))
        for number, (one, nearness) in enumerate(zip(terms, self.nearness, strict=True)):
            inverse = np.linalg.inv(one.normal[_COMMON:, _COMMON:])
            shifts[number] = (inverse @ one.right[_COMMON:])[1:] / nearness
            variances[number] = np.diag(inverse)[1:] / nearness**2
        return shifts, variances

    def _update_weights(self, terms: Sequence[_NormalEquations], name: str) -> None:
        """Estimate the sway of the board, and reject pairs whose shift exceeds it."""
        shifts, variances = self._shifts(terms)
        typical = np.median(shifts[self.is_in] ** 2) / 0.455  # median of a squared normal number
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
        """Log ratios of the pairs that were not rejected, with their standard deviations."""
        found = []
        for number in self._numbers():
            own = self._equations(number).normal[_COMMON:, _COMMON:] + self._prior(number)
            sigma = float(np.sqrt(np.linalg.inv(own)[0, 0]))
            pair = self.pairs[number]
            found.append(Expansion(pair.first, pair.second, float(self.log_ratio[number]), sigma))
        return tuple(found)

    def stretch_sigma(self) -> float:
        """Error of the log ratios by the uncertainty of the distortion, as a share of them.

        Distortion adds 2 k |x|² log r at x, and a real lens does not follow k |x|² exactly.
        """
        sigma = np.hypot(np.sqrt(self.covariance[4, 4]), _UNLIKE_CUBIC * self.distortion)
        return float(2 * self._mean_square() * sigma)

    def distortion_centre_error_px(self) -> float:
        """Error of the anchor in pixels if the lens distorts around another point."""
        return abs(2 * self._mean_square() * self.distortion * _OFF_CENTRE * self.reach_px)

    def _mean_square(self) -> float:
        """Mean square distance of the places from the anchor, in units of `reach_px` squared."""
        squares = [np.mean((pair.first_px - self.anchor) ** 2) for pair in self.kept()]
        return float(2 * np.mean(squares) / self.reach_px**2)


def _nearness(pairs: Sequence[PairMatches], log_ratio: FloatArray) -> FloatArray:
    """Median distance over the distance in the first frame, for each pair."""
    log_distance: dict[int, float] = {}
    for pair, rho in zip(pairs, log_ratio, strict=True):
        first = log_distance.setdefault(pair.first, 0.0)
        log_distance.setdefault(pair.second, first - float(rho))
    logs = np.array([log_distance[pair.first] for pair in pairs])
    return np.asarray(np.exp(np.median(logs) - logs))


def _eliminate_own(terms: _NormalEquations, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Normal equations of the common unknowns, with the unknowns of the pair eliminated."""
    own, mixed = terms.normal[_COMMON:, _COMMON:] + prior, terms.normal[:_COMMON, _COMMON:]
    through = np.linalg.solve(own, mixed.T).T
    normal = terms.normal[:_COMMON, :_COMMON] - through @ mixed.T
    return normal, terms.right[:_COMMON] - through @ terms.right[_COMMON:]


def _first_guess(pairs: Sequence[PairMatches], name: str) -> tuple[FloatArray, FloatArray]:
    """Start values of anchor and log ratios, from scale and shift of each pair."""
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


_STEP_SHARE = 1 / 128  # step of the window, as a share of the view
_REACH = 8  # half the width of the window, in steps
_FEWEST_IN_WINDOW = 3  # features
_FOLDS = 8  # of the jackknife


def least_shift(pairs: Sequence[PairMatches]) -> tuple[Place, Place]:
    """Point (x, y) around which features shift least (paper Eq. S6), and its sigma, in pixels.

    The mean squared shift of the features within a window, added over all pairs of frames, is
    smallest where the window is centred on the anchor. The window steps over a grid; a paraboloid
    through the smallest values gives the point between. Sigma is by the jackknife. The point is NaN
    if no pair has features.
    """
    neighbours = [pair for pair in pairs if len(pair.features_first_px)]
    if not neighbours:
        return (np.nan, np.nan), (np.inf, np.inf)
    places = np.concatenate([pair.features_first_px for pair in neighbours])
    low, high = places.min(axis=0), places.max(axis=0)
    step = float((high - low).max()) * _STEP_SHARE
    maps = np.stack([_shift_map(pair, low, high, step) for pair in neighbours])
    whole = _lowest(maps, low, step)
    folds = np.array(
        [
            _lowest(np.delete(maps, np.s_[fold::_FOLDS], axis=0), low, step)
            for fold in range(min(_FOLDS, len(maps)))
        ]
    )
    count = len(folds)
    spread = np.sqrt((count - 1) / count * np.sum((folds - folds.mean(axis=0)) ** 2, axis=0))
    # Interpolation on a grid is not better than a tenth of its step.
    sigma = np.hypot(spread, 0.1 * step)
    return place_of(whole), place_of(sigma)


def _shift_map(pair: PairMatches, low: FloatArray, high: FloatArray, step: float) -> FloatArray:
    """Mean squared shift of the features in the window at each position; NaN if too few."""
    from scipy.ndimage import uniform_filter

    cols, rows = (np.ceil((high - low) / step).astype(int) + 1).tolist()
    col, row = ((pair.features_first_px - low) / step + 0.5).astype(int).T
    square = np.sum((pair.features_second_px - pair.features_first_px) ** 2, axis=1)
    sums, counts = np.zeros((rows, cols)), np.zeros((rows, cols))
    np.add.at(sums, (row, col), square)
    np.add.at(counts, (row, col), 1.0)
    size = 2 * _REACH + 1
    sums = uniform_filter(sums, size, mode="constant") * size**2
    counts = uniform_filter(counts, size, mode="constant") * size**2
    is_enough = counts > _FEWEST_IN_WINDOW - 0.5
    return np.asarray(np.where(is_enough, sums / np.where(is_enough, counts, 1.0), np.nan))


def _lowest(maps: FloatArray, low: FloatArray, step: float) -> FloatArray:
    """Point (2,) where the sum of the maps is smallest, by a paraboloid around the minimum."""
    total = maps.sum(axis=0)
    if not np.any(np.isfinite(total)):
        return np.full(2, np.nan)
    row, col = np.unravel_index(np.nanargmin(total), total.shape)
    rows, cols = np.mgrid[-_REACH : _REACH + 1, -_REACH : _REACH + 1]
    down, along = rows.ravel(), cols.ravel()
    is_in = (
        (row + down >= 0)
        & (row + down < total.shape[0])
        & (col + along >= 0)
        & (col + along < total.shape[1])
    )
    down, along = down[is_in], along[is_in]
    values = total[row + down, col + along]
    is_in = np.isfinite(values)
    terms = np.stack([np.ones_like(along), along, down, along**2, along * down, down**2], axis=1)
    fit = np.linalg.lstsq(terms[is_in].astype(np.float64), values[is_in], rcond=None)[0]
    bend = np.array([[2 * fit[3], fit[4]], [fit[4], 2 * fit[5]]])
    if not np.all(np.linalg.eigvalsh(bend) > 0):
        return np.asarray(low + step * np.array([col, row]))
    lowest = np.clip(-np.linalg.solve(bend, fit[1:3]), -_REACH, _REACH)
    return np.asarray(low + step * (np.array([col, row]) + lowest))
