"""Anchors: where each view has the point at infinity towards which the board moves.

A board that moves along the axis is seen to shrink towards that point. Let x be a place in a view
as seen from the anchor a, and the board's depth there ζ (1 - t·x)⁻¹, with t its tilt against the
view. A point of the board that is at x_j in one frame is then in another at

    x_k = r x_j / (1 + (r - 1) t·x_j),    r = ζ_j / ζ_k,

a homography with the anchor as its fixed point. `a` and `t` are common to all frames, each pair of
frames has its own r. The fit is by least squares on all pairs at once. A board that sways on its
rail shifts whole pictures; the size of that is found from how the pairs scatter, and weighs pairs
that shrink little accordingly.

The paper minimises the shift of features in a window instead (Eq. S6). That is here too, and is
off by pixels where the fit is off by hundredths: the few features of a window are not spread
evenly in it, and those outside, which shift most, say nothing.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from d3s.calibrate.matches import Matches, PairMatches
from d3s.errors import CalibrationError
from d3s.optics.lens import FloatArray

Place = tuple[float, float]

_ROUNDS = 12
_SETTLED_PX = 1e-4
_OUTLIER_SIGMAS = 5.0
_FEWEST_PAIRS = 4
# The window of Eq. S6 moves in steps of this share of the view, and reaches so many to each side.
_STEP_SHARE, _REACH = 1 / 128, 8
_FEWEST_IN_WINDOW = 3
_FOLDS = 8


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
    sway_px: float  # standard deviation of what shifts whole frames
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
    left_out: dict[int, str]

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
        covariance_px2=fit.covariance[:2, :2],
        least_shift_px=least,
        least_shift_sigma_px=least_sigma,
        tilt_per_px=(float(fit.tilt[0]), float(fit.tilt[1])),
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
    """One pair's normal equations, of (anchor, tilt | log ratio, shift x, shift y)."""

    normal: FloatArray  # (7, 7)
    right: FloatArray  # (7,)


class _Fit:
    """Anchor and tilt of a view, common to all pairs, and the log ratio of each."""

    def __init__(self, pairs: Sequence[PairMatches], name: str) -> None:
        self.pairs = pairs
        self.is_in = np.ones(len(pairs), dtype=np.bool_)
        self.anchor, self.log_ratio = _first_guess(pairs, name)
        self.tilt = np.zeros(2)
        self.sway_px = 0.0
        for _ in range(_ROUNDS):
            step = self._step()
            self._weigh(name)
            if step < _SETTLED_PX:
                break
        else:
            raise CalibrationError(
                f"the {name} view has no point towards which the board moves: the fit does not "
                "settle. Move the board along the axis of the camera, in steps of some per cent "
                "of its distance."
            )
        self.residual_px = self._residual_px()

    def kept(self) -> list[PairMatches]:
        """Pairs that fit."""
        return [pair for pair, is_in in zip(self.pairs, self.is_in, strict=True) if is_in]

    def _step(self) -> float:
        """One Gauss-Newton step; its size in pixels."""
        terms = [
            self._terms(pair, rho) for pair, rho in zip(self.pairs, self.log_ratio, strict=True)
        ]
        total, right = np.zeros((4, 4)), np.zeros(4)
        for one, is_in in zip(terms, self.is_in, strict=True):
            if is_in:
                normal, rest = _without_own(one, self._prior())
                total += normal
                right += rest
        scale = 1 / np.sqrt(np.diag(total) + 1e-300)
        scaled = total * np.outer(scale, scale)
        if not np.all(np.isfinite(scaled)) or np.linalg.cond(scaled) > 1e10:
            return np.inf
        self.covariance = np.linalg.inv(scaled) * np.outer(scale, scale)
        step = self.covariance @ right
        self.anchor = self.anchor + step[:2]
        self.tilt = self.tilt + step[2:]
        for number, one in enumerate(terms):
            own = one.right[4:] - one.normal[4:, :4] @ step
            self.log_ratio[number] += np.linalg.solve(one.normal[4:, 4:] + self._prior(), own)[0]
        return float(np.abs(step[:2]).max())

    def _prior(self) -> FloatArray:
        """Precision of (log ratio, shift x, shift y) of a pair before anything is seen."""
        precision = 1 / max(self.sway_px, 1e-6) ** 2
        return np.diag([0.0, precision, precision])

    def _terms(self, pair: PairMatches, log_ratio: float) -> _Terms:
        ratio = np.exp(log_ratio)
        away = pair.first_px - self.anchor
        lean = away @ self.tilt
        below = 1 + (ratio - 1) * lean
        expected = self.anchor + ratio * away / below[:, np.newaxis]
        slopes = np.zeros((len(away), 2, 7))
        per_square = ratio * (ratio - 1) / below**2
        outer = away[:, :, np.newaxis] * self.tilt * per_square[:, np.newaxis, np.newaxis]
        slopes[:, :, :2] = (1 - ratio / below)[:, np.newaxis, np.newaxis] * np.eye(2) + outer
        slopes[:, :, 2:4] = -(
            away[:, :, np.newaxis] * away[:, np.newaxis, :] * per_square[:, np.newaxis, np.newaxis]
        )
        slopes[:, :, 4] = ratio * away * ((1 - lean) / below**2)[:, np.newaxis]
        slopes[:, 0, 5] = slopes[:, 1, 6] = 1.0
        weights = 1 / pair.sigma_px
        rows = (slopes * weights[:, np.newaxis, np.newaxis]).reshape(-1, 7)
        left = ((pair.second_px - expected) * weights[:, np.newaxis]).reshape(-1)
        return _Terms(rows.T @ rows, rows.T @ left)

    def _shifts(self) -> tuple[FloatArray, FloatArray]:
        """Shift of each pair that the fit does not explain, and its variance."""
        shifts, variances = np.empty((len(self.pairs), 2)), np.empty((len(self.pairs), 2))
        for number, (pair, rho) in enumerate(zip(self.pairs, self.log_ratio, strict=True)):
            terms = self._terms(pair, rho)
            inverse = np.linalg.inv(terms.normal[4:, 4:])
            shifts[number] = (inverse @ terms.right[4:])[1:]
            variances[number] = np.diag(inverse)[1:]
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
        squares, count = 0.0, 0
        for pair, rho, is_in in zip(self.pairs, self.log_ratio, self.is_in, strict=True):
            if is_in:
                ratio = np.exp(rho)
                away = pair.first_px - self.anchor
                below = 1 + (ratio - 1) * (away @ self.tilt)
                left = self.anchor + ratio * away / below[:, np.newaxis] - pair.second_px
                squares += float(np.sum(left**2))
                count += len(left)
        return float(np.sqrt(squares / count))

    def expansions(self) -> tuple[Expansion, ...]:
        """Log ratios of all pairs that fit, with their standard deviations."""
        found = []
        for pair, rho, is_in in zip(self.pairs, self.log_ratio, self.is_in, strict=True):
            if is_in:
                inverse = np.linalg.inv(self._terms(pair, rho).normal[4:, 4:] + self._prior())
                sigma = float(np.sqrt(inverse[0, 0]))
                found.append(Expansion(pair.first, pair.second, float(rho), sigma))
        return tuple(found)


def _without_own(terms: _Terms, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Normal equations of what is common, with the pair's own unknowns solved for."""
    mixed = terms.normal[:4, 4:]
    through = np.linalg.solve(terms.normal[4:, 4:] + prior, mixed.T).T
    return terms.normal[:4, :4] - through @ mixed.T, terms.right[:4] - through @ terms.right[4:]


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


def least_shift(pairs: Sequence[PairMatches]) -> tuple[Place, Place]:
    """The point around which features shift least from frame to frame (paper Eq. S6), and sigma.

    The mean squared shift of the features within a window, added over all pairs of neighbours, is
    smallest where the window is centred on the anchor. The window steps over a grid, and a parabola
    through the smallest values gives the place between. Sigma is the jackknife's.
    """
    neighbours = [pair for pair in pairs if len(pair.features_first_px)]
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
    # A grid cannot be more certain than a good part of its step.
    sigma = np.hypot(spread, 0.1 * step)
    return (float(whole[0]), float(whole[1])), (float(sigma[0]), float(sigma[1]))


def _shift_map(pair: PairMatches, low: FloatArray, high: FloatArray, step: float) -> FloatArray:
    """Mean squared shift of the features within a window, for all its positions; NaN if few."""
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
    """The place at which the maps' sum is smallest, by a paraboloid around the smallest value."""
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
