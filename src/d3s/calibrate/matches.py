"""Places on the board found again: from frame to frame in each view, and from view to view.

Features (SIFT from frame to frame, ORB from view to view, as in the paper) with a ratio test and
RANSAC give the homography between two pictures to a pixel. The places themselves do not rest on
features: windows on an even grid are aligned by their grey values (`alignment`), which finds each
to some hundredths of a pixel whatever its blur.

Frames are compared with their neighbour, and with an earlier one that is far enough away to see
the board an eighth larger: far from the camera a step of the board changes its picture little.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.alignment import Picture, align_windows, spline_of
from d3s.errors import CalibrationError
from d3s.optics.lens import FloatArray
from d3s.threads import together

if TYPE_CHECKING:
    import cv2

_ROWS_PX = 720  # of the pictures that are compared: blur and smoothing leave no finer detail
_HALF_WINDOW_PX = 15  # of those pictures
_SMOOTH = 1.0  # sigma, of those pixels: a hundredth is left of what they cannot show
_FEATURES = 1500
_RATIO = 0.75  # of the nearest descriptor's distance to the second nearest
_RANSAC_PX = 2.0
_FEWEST_FEATURES = 20  # that agree on a homography; chance brings 4 to 8 together
_FEWEST_WINDOWS = 20
_LARGEST_SIGMA_PX = 0.5
_OUTLIER_SIGMAS = 4.0
_HOP = 1.125  # how much larger an earlier frame sees the board
_FARTHEST_HOP = 16  # frames that are kept in memory
_LARGEST_TURN_RAD = np.radians(0.05)  # of the board, which then moves the anchors by a pixel
_LARGEST_SHARE_OUT = 1 / 3
_RESTARTS = 2  # how many frames back to look for one that fits


class Box(Protocol):
    """Part of the raw frame."""

    @property
    def row(self) -> int: ...  # noqa: D102
    @property
    def col(self) -> int: ...  # noqa: D102
    @property
    def rows(self) -> int: ...  # noqa: D102
    @property
    def cols(self) -> int: ...  # noqa: D102


class Fields(Protocol):
    """Parts that the two lenses light."""

    @property
    def left(self) -> Box: ...  # noqa: D102
    @property
    def right(self) -> Box: ...  # noqa: D102


class Captures(Protocol):
    """Raw frames, nearest first."""

    @property
    def distances_m(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def names(self) -> Sequence[str]: ...  # noqa: D102
    def __len__(self) -> int: ...
    def image(self, number: int, /) -> NDArray[np.float32]: ...  # noqa: D102


class PairMatches(NamedTuple):
    """Places on the board in two pictures, in raw pixels."""

    first: int  # number of the frame
    second: int  # the same number, where the right view is compared with the left one
    first_px: FloatArray  # (windows, 2): x, y
    second_px: FloatArray
    sigma_px: FloatArray  # (windows,): standard deviation of second_px, each of x and y
    features_first_px: FloatArray  # (features, 2): those that agree with each other
    features_second_px: FloatArray
    turn_rad: float  # of the second picture against the first


class Matches(NamedTuple):
    """All that the frames say about where the board is."""

    left: tuple[PairMatches, ...]  # from frame to frame, in the left view
    right: tuple[PairMatches, ...]
    across: tuple[PairMatches, ...]  # from the left view to the right one, a frame each
    frames: int
    left_out: dict[int, str]

    @property
    def kept(self) -> list[int]:
        """Numbers of the frames that were not left out."""
        return [number for number in range(self.frames) if number not in self.left_out]

    def without(self, reasons: dict[int, str]) -> "Matches":
        """Matches that do not touch some frames."""
        out = {**reasons, **self.left_out}
        left, right, across = (
            tuple(pair for pair in pairs if pair.first not in out and pair.second not in out)
            for pairs in (self.left, self.right, self.across)
        )
        return Matches(left, right, across, self.frames, out)


class _Features(NamedTuple):
    places_px: FloatArray
    descriptors: NDArray[Any]


class _View(NamedTuple):
    """One view of one frame, made small and smooth."""

    picture: Picture
    spline: Picture
    origin_px: FloatArray  # of its first pixel, in the raw frame
    step_px: int
    sift: _Features
    orb: _Features

    def raw_px(self, places_px: FloatArray) -> FloatArray:
        """Raw pixels of places in the small picture."""
        return np.asarray(places_px * self.step_px + self.origin_px)


class _Frame(NamedTuple):
    number: int
    views: tuple[_View, _View]


class _Link(NamedTuple):
    """Two pictures that fit, and how."""

    matrix: FloatArray
    features_px: tuple[FloatArray, FloatArray]


def find_matches(
    captures: Captures, fields: Fields, progress: Callable[[int, int], None] | None = None
) -> Matches:
    """Places on the board in all frames; each frame is read once.

    Frames without texture, that fit no neighbour, or in which the board is turned are left out.

    Raises
    ------
    CalibrationError
        When too few frames are left, or the board is turned in too many.
    """
    finder = _Finder(captures.distances_m)
    for number in range(len(captures)):
        finder.add(_frame(number, captures.image(number), fields))
        if progress is not None:
            progress(number + 1, len(captures))
    matches = finder.matches(len(captures))
    matches = matches.without(_turned(matches))
    _check_enough(matches, captures)
    return matches


class _Finder:
    """Frames that were seen so far, and what fits between them."""

    def __init__(self, distances_m: Sequence[float]) -> None:
        self._distances_m = distances_m
        self._recent: list[_Frame] = []
        # Homographies from recent frames to the newest, one for each view.
        self._onward: dict[int, list[FloatArray]] = {}
        self._motion: tuple[list[PairMatches], list[PairMatches]] = ([], [])
        self._across: list[PairMatches] = []
        self._left_out: dict[int, str] = {}

    def add(self, frame: _Frame) -> None:
        """Compare a frame with those before it."""
        for name, view in zip(("left", "right"), frame.views, strict=True):
            if len(view.sift.places_px) < _FEWEST_FEATURES:
                self._left_out[frame.number] = (
                    f"its {name} view has no texture: {len(view.sift.places_px)} features, "
                    f"fewer than {_FEWEST_FEATURES}"
                )
                return
        across = _across(frame)
        if across is None:
            self._left_out[frame.number] = "its two views do not fit each other"
            return
        self._across.append(across)
        self._follow(frame)
        self._recent = [*self._recent[-_FARTHEST_HOP:], frame]
        self._onward = {
            kept.number: self._onward[kept.number]
            for kept in self._recent
            if kept.number in self._onward
        }
        self._onward[frame.number] = [np.eye(3), np.eye(3)]

    def _follow(self, frame: _Frame) -> None:
        """Motion since the frame before, and since one from which the board is larger."""
        for before in self._recent[: -_RESTARTS - 1 : -1]:
            links = together(
                *(
                    lambda v=view: _link_of(before.views[v], frame.views[v])  # noqa: B023
                    for view in (0, 1)
                )
            )
            if None in links:
                continue
            found = [
                _aligned(before, frame, view, links[view].matrix, links[view].features_px)
                for view in (0, 1)
            ]
            pairs = [pair for pair in found if pair is not None]
            if len(pairs) < len(found):
                continue
            steps = [step for _, step in pairs]
            for motion, (pair, _) in zip(self._motion, pairs, strict=True):
                motion.append(pair)
            self._onward = {
                number: [step @ onward for step, onward in zip(steps, onwards, strict=True)]
                for number, onwards in self._onward.items()
                if number in self._reach_of(before.number)
            }
            self._hop(frame, before.number)
            return
        self._onward = {}

    def _reach_of(self, number: int) -> set[int]:
        return {kept.number for kept in self._recent if kept.number <= number}

    def _hop(self, frame: _Frame, neighbour: int) -> None:
        here_m = self._distances_m[frame.number]
        for earlier in reversed(self._recent):
            if earlier.number >= neighbour or earlier.number not in self._onward:
                continue
            if here_m < _HOP * self._distances_m[earlier.number]:
                continue
            for view in (0, 1):
                found = _aligned(earlier, frame, view, self._onward[earlier.number][view])
                if found is not None:
                    self._motion[view].append(found[0])
            return

    def matches(self, frames: int) -> Matches:
        """All that was found, of the largest group of frames that hang together."""
        group = _largest_group(self._motion[0])
        alone = {
            number: "it fits none of the frames before and after it"
            for number in range(frames)
            if number not in group and number not in self._left_out
        }
        left, right = (tuple(pairs) for pairs in self._motion)
        found = Matches(left, right, tuple(self._across), frames, self._left_out)
        return found.without(alone)


def _frame(number: int, image: NDArray[np.float32], fields: Fields) -> _Frame:
    left, right = together(
        lambda: _view(image, fields.left),
        lambda: _view(image, fields.right),
    )
    return _Frame(number, (left, right))


def _view(image: NDArray[np.float32], box: Box) -> _View:
    import cv2

    step = max(1, round(box.rows / _ROWS_PX))
    part = image[box.row : box.row + box.rows, box.col : box.col + box.cols]
    smooth = cv2.GaussianBlur(np.ascontiguousarray(part), (0, 0), _SMOOTH * step)
    first = step // 2
    picture = np.ascontiguousarray(smooth[first::step, first::step], dtype=np.float32)
    origin = np.array([box.col + first, box.row + first], dtype=np.float64)
    grey = _even_contrast(picture)
    factor = 2 if min(grey.shape) >= _ROWS_PX // 2 else 1
    coarse = np.asarray(cv2.pyrDown(grey), dtype=np.uint8) if factor == 2 else grey
    return _View(
        picture,
        spline_of(picture),
        origin,
        step,
        _features(coarse, cv2.SIFT_create(nfeatures=_FEATURES), factor),  # type: ignore[attr-defined]
        _features(grey, cv2.ORB_create(nfeatures=2 * _FEATURES), 1),  # type: ignore[attr-defined]
    )


def _even_contrast(picture: Picture) -> NDArray[np.uint8]:
    """Grey values of 8 bits with the same contrast everywhere, but little where there is none."""
    import cv2

    reach = max(picture.shape) / 30
    bare = picture - cv2.GaussianBlur(picture, (0, 0), reach)
    contrast = np.sqrt(cv2.GaussianBlur(bare * bare, (0, 0), reach))
    floor = 0.1 * float(np.sqrt(np.mean(bare * bare))) + 1e-3
    return np.clip(128 + 50 * bare / (contrast + floor), 0, 255).astype(np.uint8)


def _features(grey: NDArray[np.uint8], detector: "cv2.Feature2D", factor: int) -> _Features:
    keypoints, descriptors = detector.detectAndCompute(grey, None)
    if descriptors is None or not len(keypoints):
        return _Features(np.empty((0, 2)), np.empty((0, 1), np.uint8))
    places = np.array([keypoint.pt for keypoint in keypoints], dtype=np.float64)
    return _Features(places * factor, descriptors)


def _agreeing(first: _Features, second: _Features) -> tuple[FloatArray, FloatArray]:
    """Places of features whose descriptors are much nearer to each other than to any other."""
    import cv2

    if min(len(first.places_px), len(second.places_px)) < 2:
        return np.empty((0, 2)), np.empty((0, 2))
    norm = cv2.NORM_HAMMING if first.descriptors.dtype == np.uint8 else cv2.NORM_L2
    pairs = cv2.BFMatcher(norm).knnMatch(first.descriptors, second.descriptors, k=2)
    good = [best for best, other in pairs if best.distance < _RATIO * other.distance]
    return (
        first.places_px[[match.queryIdx for match in good]].reshape(-1, 2),
        second.places_px[[match.trainIdx for match in good]].reshape(-1, 2),
    )


def _link_of(first: _View, second: _View) -> _Link | None:
    """Homography between two frames of a view, from SIFT features."""
    import cv2

    places = _agreeing(first.sift, second.sift)
    if len(places[0]) < _FEWEST_FEATURES:
        return None
    cv2.setRNGSeed(0)
    matrix, is_in = cv2.findHomography(*places, cv2.RANSAC, _RANSAC_PX)
    return _checked_link(matrix, is_in, places)


def _across_link(left: _View, right: _View) -> _Link | None:
    """Similarity between two views of a frame, from ORB features."""
    import cv2

    places = _agreeing(left.orb, right.orb)
    if len(places[0]) < _FEWEST_FEATURES:
        return None
    cv2.setRNGSeed(0)
    matrix, is_in = cv2.estimateAffinePartial2D(
        *places, method=cv2.RANSAC, ransacReprojThreshold=2 * _RANSAC_PX
    )
    if matrix is not None:
        matrix = np.vstack([matrix, [0.0, 0.0, 1.0]])
    return _checked_link(matrix, is_in, places)


def _checked_link(
    matrix: NDArray[Any] | None,
    is_in: NDArray[Any] | None,
    places: tuple[FloatArray, FloatArray],
) -> _Link | None:
    if matrix is None or is_in is None or not np.all(np.isfinite(matrix)):
        return None
    keep = is_in.ravel() > 0
    size = float(np.linalg.det(np.asarray(matrix, np.float64)[:2, :2]))
    # A board that is mirrored, or thrice as large as a frame before, is none.
    if np.count_nonzero(keep) < _FEWEST_FEATURES or not 1 / 9 < size < 9:
        return None
    return _Link(np.asarray(matrix, np.float64), (places[0][keep], places[1][keep]))


def _across(frame: _Frame) -> PairMatches | None:
    left, right = frame.views
    link = _across_link(left, right)
    if link is None:
        return None
    found = _refined(left, right, link.matrix)
    if found is None:
        return None
    return _pair(frame.number, frame.number, left, right, found, link.features_px)


def _aligned(
    first: _Frame,
    second: _Frame,
    view: int,
    matrix: FloatArray,
    features_px: tuple[FloatArray, FloatArray] = (np.empty((0, 2)), np.empty((0, 2))),
) -> tuple[PairMatches, FloatArray] | None:
    found = _refined(first.views[view], second.views[view], matrix)
    if found is None:
        return None
    pair = _pair(
        first.number, second.number, first.views[view], second.views[view], found, features_px
    )
    return pair, found.matrix


class _Refined(NamedTuple):
    first_px: FloatArray
    second_px: FloatArray
    sigma_px: FloatArray
    matrix: FloatArray


def _refined(first: _View, second: _View, matrix: FloatArray) -> _Refined | None:
    """Windows of two pictures, and the homography on which they agree."""
    centres = _grid(first.picture.shape)
    # The first time the windows are carried over by what features say, which is a little askew.
    for _ in range(2):
        aligned = align_windows(first.picture, second.spline, matrix, centres, _HALF_WINDOW_PX)
        is_found = np.isfinite(aligned.sigma_px) & (aligned.sigma_px < _LARGEST_SIGMA_PX)
        if np.count_nonzero(is_found) < _FEWEST_WINDOWS:
            return None
        fit = _robust_homography(
            centres[is_found], aligned.places_px[is_found], aligned.sigma_px[is_found]
        )
        if fit is None:
            return None
        matrix, keep, sigma = fit
    found = np.flatnonzero(is_found)[keep]
    return _Refined(centres[found], aligned.places_px[found], sigma, matrix)


def _grid(shape: tuple[int, ...]) -> FloatArray:
    """Centres of windows that overlap a little, over the whole picture."""
    margin, step = _HALF_WINDOW_PX + 2, 2 * _HALF_WINDOW_PX
    along, down = (np.arange(margin, size - margin, step, dtype=np.float64) for size in shape[::-1])
    return np.stack(np.meshgrid(along, down), axis=-1).reshape(-1, 2)


def _robust_homography(
    first_px: FloatArray, second_px: FloatArray, sigma_px: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray] | None:
    """Homography, which places it keeps, and their sigma from how they scatter around it.

    Reweighted least squares; what is `_OUTLIER_SIGMAS` away does not count.
    """
    weights = 1 / np.hypot(sigma_px, np.median(sigma_px))
    keep = np.ones(len(weights), dtype=np.bool_)
    for _ in range(6):
        if np.count_nonzero(keep) < _FEWEST_WINDOWS:
            return None
        matrix = _fitted_homography(first_px, second_px, weights * keep)
        away = np.abs(carried(matrix, first_px) - second_px).max(axis=1) * weights
        spread = 1.4826 * float(np.median(away[keep])) / 1.44  # the larger of two normal numbers
        keep = away < _OUTLIER_SIGMAS * max(spread, 1e-6)
    return matrix, keep, np.asarray(spread / weights)[keep]


def _fitted_homography(
    first_px: FloatArray, second_px: FloatArray, weights: FloatArray
) -> FloatArray:
    """Homography that minimises the weighted distances in the second picture."""
    middle = first_px.mean(axis=0)
    size = float(np.abs(first_px - middle).max()) + 1e-9
    x, y = ((first_px - middle) / size).T
    u, v = ((second_px - middle) / size).T
    zero, one = np.zeros_like(x), np.ones_like(x)
    below = one
    for _ in range(3):
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


def _turn_rad(matrix: FloatArray, place_px: FloatArray) -> float:
    """Rotation that a homography does around one place."""
    below = matrix[2, :2] @ place_px + matrix[2, 2]
    image = carried(matrix, place_px[np.newaxis])[0]
    slope = (matrix[:2, :2] - np.outer(image, matrix[2, :2])) / below
    return float(np.arctan2(slope[1, 0] - slope[0, 1], slope[0, 0] + slope[1, 1]))


def _pair(
    first: int,
    second: int,
    view_first: _View,
    view_second: _View,
    found: _Refined,
    features_px: tuple[FloatArray, FloatArray],
) -> PairMatches:
    rows, cols = view_first.picture.shape
    return PairMatches(
        first=first,
        second=second,
        first_px=view_first.raw_px(found.first_px),
        second_px=view_second.raw_px(found.second_px),
        sigma_px=found.sigma_px * view_second.step_px,
        features_first_px=view_first.raw_px(features_px[0]),
        features_second_px=view_second.raw_px(features_px[1]),
        turn_rad=_turn_rad(found.matrix, np.array([(cols - 1) / 2, (rows - 1) / 2])),
    )


def _largest_group(pairs: Sequence[PairMatches]) -> set[int]:
    """Frames that hang together through pairs; the largest such group."""
    groups: list[set[int]] = []
    for pair in pairs:
        touched = [group for group in groups if pair.first in group or pair.second in group]
        joined = {pair.first, pair.second}.union(*touched)
        groups = [group for group in groups if group not in touched] + [joined]
    return max(groups, key=len, default=set())


def _neighbours(pairs: Sequence[PairMatches]) -> Iterator[PairMatches]:
    """Pairs that link each frame to the last one before it."""
    seen: set[int] = set()
    for pair in pairs:
        if pair.second not in seen:
            seen.add(pair.second)
            yield pair


def _turned(matches: Matches) -> dict[int, str]:
    """Frames in which the board is turned against most others."""
    turns = [_orientation_rad(pairs) for pairs in (matches.left, matches.right)]
    frames = sorted(set(turns[0]) & set(turns[1]))
    if not frames:
        return {}
    angle = np.array([(turns[0][frame] + turns[1][frame]) / 2 for frame in frames])
    away = angle - np.median(angle)
    return {
        frame: f"the board is turned by {np.degrees(turn):+.2f}° against the other frames"
        for frame, turn in zip(frames, away, strict=True)
        if abs(turn) > _LARGEST_TURN_RAD
    }


def _orientation_rad(pairs: Sequence[PairMatches]) -> dict[int, float]:
    angle: dict[int, float] = {}
    for pair in _neighbours(pairs):
        before = angle.setdefault(pair.first, 0.0)
        angle[pair.second] = before + pair.turn_rad
    return angle


def _check_enough(matches: Matches, captures: Captures) -> None:
    kept = len(matches.kept)
    if kept >= 5 and kept >= (1 - _LARGEST_SHARE_OUT) * matches.frames:
        return
    listed = "; ".join(
        f"{captures.names[number]}: {reason}"
        for number, reason in sorted(matches.left_out.items())[:5]
    )
    more = len(matches.left_out) - 5
    raise CalibrationError(
        f"only {kept} of {matches.frames} frames can be used, and at least 5 and two in three "
        f"are needed. {listed}{f'; and {more} more' if more > 0 else ''}. "
        "Use a board with texture all over, evenly lit, and move it along the axis without turning."
    )
