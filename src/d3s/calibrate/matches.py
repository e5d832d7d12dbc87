"""Matches: places on the board found again from frame to frame, and from view to view.

Two pictures are first compared by features, then by windows on an even grid (`registration`): the
places are those of the windows, right to some hundredths of a pixel at any blur.

Each frame is compared with the one before, and with an earlier one in which the board is an eighth
larger: far from the camera, one step of the board changes its picture little.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from d3s.calibrate.distance_table import FEWEST_FRAMES
from d3s.calibrate.fields import Fields
from d3s.calibrate.frames import Captures
from d3s.calibrate.registration import (
    FEWEST_FEATURES,
    Link,
    ReducedView,
    across_link,
    align_windows,
    coarse_picture,
    make_view,
    mean_square_frequency,
    motion_link,
    spline_of,
)
from d3s.calibrate.robust import robust_homography, turn_rad
from d3s.errors import CalibrationError
from d3s.runtime.parallel import run_together
from d3s.types import FloatArray, Mask, Progress

Place = tuple[float, float]
"""x and y."""

HALF_WINDOW_PX = 15
"""Half the side of a window, in pixels of the small pictures."""

_FEWEST_WINDOWS = 20
_ROUGH_WINDOWS = 300  # that the first pass is content with
_COARSE_SHARE = 3  # one window in so many is matched by coarse detail from frame to frame
_LARGEST_SIGMA_PX = 0.5
_EARLIER_RATIO = 1.125  # distance over that of the earlier frame to compare with
_MOST_FRAMES_BACK = 16  # frames in memory to find an earlier one in
_LARGEST_TURN_RAD = np.radians(0.05)  # of the board; more moves the anchors by a pixel
_LARGEST_SHARE_OUT = 1 / 3  # of the frames may be rejected
_MOST_NAMED = 5  # rejected frames in an error
_RESTARTS = 2  # frames back to look for one that fits


def place_of(values: FloatArray) -> Place:
    """Place from an array (2,) of x and y."""
    x, y = values.tolist()
    return x, y


class PairMatches(NamedTuple):
    """The same places on the board in two pictures, in pixels of the raw frame."""

    first: int  # number of the first frame
    second: int  # number of the second frame; that of the first if views are compared
    first_px: FloatArray  # (windows, 2): x, y
    second_px: FloatArray
    sigma_px: FloatArray  # (windows,): standard deviation of second_px, each of x and y
    features_first_px: FloatArray  # (features, 2): features that agree on a homography
    features_second_px: FloatArray
    turn_rad: float  # rotation of the second picture against the first
    detail_per_px2: FloatArray  # (windows,): mean square frequency k² of the texture both show
    # (windows, 2): shift of second_px if only coarse detail is matched; NaN where it was not.
    coarse_shift_px: FloatArray | None = None

    def some(self, is_in: Mask) -> "PairMatches":
        """Matches of some of the windows."""
        shift = self.coarse_shift_px
        return self._replace(
            first_px=self.first_px[is_in],
            second_px=self.second_px[is_in],
            sigma_px=self.sigma_px[is_in],
            detail_per_px2=self.detail_per_px2[is_in],
            coarse_shift_px=None if shift is None else shift[is_in],
        )


class Matches(NamedTuple):
    """Matches of all frames."""

    left: tuple[PairMatches, ...]  # from frame to frame in the left view
    right: tuple[PairMatches, ...]  # from frame to frame in the right view
    across: tuple[PairMatches, ...]  # from the left to the right view, one for each frame
    names: tuple[str, ...]  # of all frames
    left_out: dict[int, str]  # rejected frames, with the reason

    @property
    def frames(self) -> int:
        """Number of all frames, rejected ones included."""
        return len(self.names)

    @property
    def kept(self) -> list[int]:
        """Numbers of the frames that were not rejected."""
        return [number for number in range(self.frames) if number not in self.left_out]

    def with_cameras(self) -> Iterator[tuple[PairMatches, tuple[int, int]]]:
        """All pairs, each with the cameras that it compares."""
        for pairs, cameras in self._groups():
            for pair in pairs:
                yield pair, cameras

    def _groups(self) -> tuple[tuple[tuple[PairMatches, ...], tuple[int, int]], ...]:
        return (self.left, (0, 0)), (self.right, (1, 1)), (self.across, (0, 1))

    def changed(self, change: Callable[[PairMatches, tuple[int, int]], PairMatches]) -> "Matches":
        """Matches after a change of every pair, which is given with the cameras it compares."""
        left, right, across = (
            tuple(change(pair, cameras) for pair in pairs) for pairs, cameras in self._groups()
        )
        return self._replace(left=left, right=right, across=across)

    def without(self, reasons: dict[int, str]) -> "Matches":
        """Matches with more frames rejected, for these reasons."""
        out = {**reasons, **self.left_out}
        left, right, across = (
            tuple(pair for pair in pairs if pair.first not in out and pair.second not in out)
            for pairs in (self.left, self.right, self.across)
        )
        return Matches(left, right, across, self.names, out)


class _Frame(NamedTuple):
    number: int
    views: tuple[ReducedView, ReducedView]


def find_matches(captures: Captures, fields: Fields, progress: Progress | None = None) -> Matches:
    """Find places on the board in all frames; each frame is read once.

    Frames without texture, without a match to another frame, or with a rotated board are rejected.

    The nearest board comes first. Raises a `CalibrationError` if fewer than five frames, or less
    than two thirds, can be used.
    """
    matcher = _Matcher(captures.distances_m)
    masks = (fields.mask(0), fields.mask(1))
    made = partial(_frame, captures, fields, masks)
    frames = [made(0)]
    for number in range(len(captures)):
        # The next frame is prepared while this one is compared with those before it.
        following = [partial(made, number + 1)] if number + 1 < len(captures) else []
        _, *frames = run_together(partial(matcher.add, *frames), *following)
        if progress is not None:
            progress(number + 1, len(captures))
    matches = matcher.matches(captures.names)
    matches = matches.without(_rotated_frames(matches))
    _check_enough(matches)
    return matches


class _Matcher:
    """Matches of the frames added so far."""

    def __init__(self, distances_m: Sequence[float]) -> None:
        self._distances_m = distances_m
        self._recent: list[_Frame] = []
        # Homographies from recent frames to the newest one, by frame: left and right view.
        self._homographies: dict[int, list[FloatArray]] = {}
        self._motion: tuple[list[PairMatches], list[PairMatches]] = ([], [])
        self._across: list[PairMatches] = []
        self._left_out: dict[int, str] = {}

    def add(self, frame: _Frame) -> None:
        """Match the views of a frame with each other, and with frames before it."""
        for name, view in zip(("left", "right"), frame.views, strict=True):
            if len(view.sift.places_px) < FEWEST_FEATURES:
                self._left_out[frame.number] = (
                    f"its {name} view has no texture: {len(view.sift.places_px)} features, "
                    f"fewer than {FEWEST_FEATURES}"
                )
                return
        across = _match((frame.number, frame.number), *frame.views, across_link(*frame.views))
        if across is None:
            self._left_out[frame.number] = "its two views do not fit each other"
            return
        self._across.append(across[0])
        self._match_previous(frame)
        self._recent = [*self._recent[-_MOST_FRAMES_BACK:], frame]
        oldest = self._recent[0].number
        self._homographies = {
            number: matrices for number, matrices in self._homographies.items() if number >= oldest
        }
        self._homographies[frame.number] = [np.eye(3), np.eye(3)]

    def _match_previous(self, frame: _Frame) -> None:
        """Match a frame with the one before, and with an earlier one where the board is larger."""
        for before in self._recent[: -_RESTARTS - 1 : -1]:
            views = list(zip(before.views, frame.views, strict=True))
            links = run_together(*(partial(motion_link, *pair) for pair in views))
            numbers = before.number, frame.number
            found = [_match(numbers, *pair, link) for pair, link in zip(views, links, strict=True)]
            matched = [one for one in found if one is not None]
            if len(matched) < len(found):
                continue
            for motion, (pair, _) in zip(self._motion, matched, strict=True):
                motion.append(pair)
            self._homographies = {
                number: [step @ old for (_, step), old in zip(matched, matrices, strict=True)]
                for number, matrices in self._homographies.items()
                if number <= before.number
            }
            self._match_earlier(frame, before.number)
            return
        self._homographies = {}

    def _match_earlier(self, frame: _Frame, neighbour: int) -> None:
        here_m = self._distances_m[frame.number]
        for earlier in reversed(self._recent):
            if earlier.number >= neighbour or earlier.number not in self._homographies:
                continue
            if here_m < _EARLIER_RATIO * self._distances_m[earlier.number]:
                continue
            for view, matrix in enumerate(self._homographies[earlier.number]):
                link = Link(matrix, (np.empty((0, 2)), np.empty((0, 2))))
                numbers = earlier.number, frame.number
                found = _match(numbers, earlier.views[view], frame.views[view], link)
                if found is not None:
                    self._motion[view].append(found[0])
            return

    def matches(self, names: tuple[str, ...]) -> Matches:
        """All matches of the largest group of frames that are connected by matches."""
        group = _largest_group(self._motion[0])
        alone = {
            number: "it fits none of the frames before and after it"
            for number in range(len(names))
            if number not in group and number not in self._left_out
        }
        left, right = (tuple(pairs) for pairs in self._motion)
        found = Matches(left, right, tuple(self._across), names, self._left_out)
        return found.without(alone)


def _frame(captures: Captures, fields: Fields, masks: tuple[Mask, Mask], number: int) -> _Frame:
    image = captures.image(number)
    left, right = run_together(
        lambda: make_view(image, fields.left, masks[0]),
        lambda: make_view(image, fields.right, masks[1]),
    )
    return _Frame(number, (left, right))


def _match(
    numbers: tuple[int, int], first: ReducedView, second: ReducedView, link: Link | None
) -> tuple[PairMatches, FloatArray] | None:
    """Places that the windows of two views find, and the homography that they agree on."""
    if link is None:
        return None
    centres = _grid(first.picture.shape)
    centres = centres[is_within(first, centres)]
    # In the first pass the windows are carried over by the features' homography, which is rough.
    some = centres[:: max(len(centres) // _ROUGH_WINDOWS, 1)]
    rough = _refined(first, second, link.matrix, some)
    found = None if rough is None else _refined(first, second, rough.matrix, centres)
    if found is None:
        return None
    rows, cols = first.picture.shape
    pair = PairMatches(
        first=numbers[0],
        second=numbers[1],
        first_px=first.raw_px(found.first_px),
        second_px=second.raw_px(found.second_px),
        sigma_px=found.sigma_px * second.step_px,
        features_first_px=first.raw_px(link.features_px[0]),
        features_second_px=second.raw_px(link.features_px[1]),
        turn_rad=turn_rad(found.matrix, np.array([(cols - 1) / 2, (rows - 1) / 2])),
        detail_per_px2=mean_square_frequency(
            first.picture, second.picture, found.matrix, found.first_px, HALF_WINDOW_PX
        )
        / first.step_px**2,
    )
    return _with_coarse_shift(pair, first, second, found.matrix), found.matrix


def _with_coarse_shift(
    pair: PairMatches, first: ReducedView, second: ReducedView, matrix: FloatArray
) -> PairMatches:
    """Matches with the shift that only coarse detail has, of windows that both pictures show.

    There are several times more pairs of frames than of views: some of their windows are enough.
    """
    step = 1 if pair.first == pair.second else _COARSE_SHARE
    places_px = (pair.first_px[::step] - first.origin_px) / first.step_px
    coarse = align_windows(
        coarse_picture(first.picture),
        spline_of(coarse_picture(second.picture)),
        matrix,
        places_px,
        HALF_WINDOW_PX,
    )
    shift_px = np.full(pair.second_px.shape, np.nan)
    shift_px[::step] = second.raw_px(coarse.places_px) - pair.second_px[::step]
    return pair._replace(coarse_shift_px=shift_px)


class _Refined(NamedTuple):
    first_px: FloatArray
    second_px: FloatArray
    sigma_px: FloatArray
    matrix: FloatArray


def _refined(
    first: ReducedView, second: ReducedView, matrix: FloatArray, centres_px: FloatArray
) -> _Refined | None:
    """Windows of two pictures that agree on a homography, and this homography."""
    aligned = align_windows(first.picture, second.spline, matrix, centres_px, HALF_WINDOW_PX)
    is_found = aligned.sigma_px < _LARGEST_SIGMA_PX
    is_found[is_found] = is_within(second, aligned.places_px[is_found])
    first_px, second_px = centres_px[is_found], aligned.places_px[is_found]
    fit = robust_homography(first_px, second_px, aligned.sigma_px[is_found])
    if fit is None or np.count_nonzero(fit.is_kept) < _FEWEST_WINDOWS:
        return None
    return _Refined(first_px[fit.is_kept], second_px[fit.is_kept], fit.sigma_px, fit.matrix)


def is_within(view: ReducedView, places_px: FloatArray) -> Mask:
    """Whether the window around each place is lit everywhere."""
    col, row = np.rint(places_px).astype(np.int64).T
    rows, cols = view.from_rim_px.shape
    row, col = np.clip(row, 0, rows - 1), np.clip(col, 0, cols - 1)
    return np.asarray(view.from_rim_px[row, col] > HALF_WINDOW_PX)


def _grid(shape: tuple[int, ...]) -> FloatArray:
    """Centres (windows, 2) of slightly overlapping windows over the whole picture."""
    margin, step = HALF_WINDOW_PX + 2, 2 * HALF_WINDOW_PX
    along, down = (np.arange(margin, size - margin, step, dtype=np.float64) for size in shape[::-1])
    return np.stack(np.meshgrid(along, down), axis=-1).reshape(-1, 2)


def _largest_group(pairs: Sequence[PairMatches]) -> set[int]:
    """Largest group of frames that are connected by pairs."""
    groups: list[set[int]] = []
    for pair in pairs:
        touched = [group for group in groups if pair.first in group or pair.second in group]
        joined = {pair.first, pair.second}.union(*touched)
        groups = [group for group in groups if group not in touched] + [joined]
    return max(groups, key=len, default=set())


def _rotated_frames(matches: Matches) -> dict[int, str]:
    """Frames in which the board is rotated against most others, with the reason."""
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
    """Rotation of the board in each frame, added up from pairs of neighbours."""
    angle: dict[int, float] = {}
    for pair in pairs:
        # Of all pairs of a frame, the one with the frame before comes first.
        if pair.second not in angle:
            angle[pair.second] = angle.setdefault(pair.first, 0.0) + pair.turn_rad
    return angle


def _check_enough(matches: Matches) -> None:
    kept = len(matches.kept)
    if kept >= FEWEST_FRAMES and kept >= (1 - _LARGEST_SHARE_OUT) * matches.frames:
        return
    listed = "; ".join(
        f"{matches.names[number]}: {reason}"
        for number, reason in sorted(matches.left_out.items())[:_MOST_NAMED]
    )
    more = len(matches.left_out) - _MOST_NAMED
    raise CalibrationError(
        f"only {kept} of {matches.frames} frames can be used, and at least {FEWEST_FRAMES} and two "
        f"in three are needed. {listed}{f'; and {more} more' if more > 0 else ''}. "
        "Use a board with texture all over, evenly lit, and move it along the axis without turning."
    )
