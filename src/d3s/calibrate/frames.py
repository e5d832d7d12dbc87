"""Frames of a capture series in memory: caches, work in parallel, rectified pairs, thumbnails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.rig import Calibration
from d3s.rig.bayer import Bayer, LuminanceNoise, luminance_noise, on_sites
from d3s.rig.split import split
from d3s.runtime.allocator import give_back_freed_memory
from d3s.runtime.parallel import run_together, thread_count
from d3s.types import Image, Progress

Levels = NDArray[np.uint16]
"""Grey levels of 16 bits, (rows, cols)."""

Picture = NDArray[np.uint8]
"""Picture for people, (rows, cols): grey levels of 8 bits."""

# Every step reads the frames again, and a PNG takes a third of a second. A quarter of the memory
# that a calibration may use: 21 frames of 3840 x 2160 px.
FRAME_CACHE_BYTES = 350_000_000
# In addition to the frames: 46 pairs of the paper's prototype.
PAIR_CACHE_BYTES = 300_000_000
_FULL_SCALE = 65535.0
_THUMBNAIL_COLS, _OVERVIEW_COLS = 200, 1200

Result = TypeVar("Result")


class ColourSensor(NamedTuple):
    """Order of the colours of a sensor, and the gains that make grey even."""

    order: Bayer
    gains: tuple[float, float, float]

    @property
    def noise(self) -> LuminanceNoise:
        """Noise of the luminance, over that of a green pixel."""
        return luminance_noise(self.gains)

    def green_frame(self, raw: Image) -> Image:
        """Green pixels of a raw frame with their gain, and 0 at the others."""
        shape = raw.shape[0], raw.shape[1]
        return raw * on_sites((0.0, self.gains[1], 0.0), self.order, shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class Captures:
    """Raw frames of a board, the nearest board first, with their names and distances."""

    names: tuple[str, ...]
    distances_m: tuple[float, ...]
    shape: tuple[int, int]
    source: Callable[[int], Image] = field(repr=False)  # reads a frame by its number
    digests: dict[str, str] = field(default_factory=dict)  # SHA-256 by file name
    left_out: dict[str, str] = field(default_factory=dict)  # rejected: the reason by file name
    remarks: tuple[str, ...] = ()
    is_cached: Callable[[int], bool] = field(repr=False, default=lambda _: True)
    sensor: ColourSensor | None = None  # None: a mono sensor
    raw_source: Callable[[int], Image] | None = field(repr=False, default=None)  # of colours

    def __len__(self) -> int:
        return len(self.names)

    def image(self, number: int) -> Image:
        """One frame with full scale 1, (rows, cols). Do not write to it.

        Of a colour sensor it is the luminance.
        """
        self._check(number)
        return self.source(number)

    def raw(self, number: int) -> Image:
        """One frame as the sensor gives it, with full scale 1, (rows, cols)."""
        self._check(number)
        return self.source(number) if self.raw_source is None else self.raw_source(number)

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self):
            raise InputError(f"frame {number} is not one of {len(self)}, counted from 0.")

    def some(self, numbers: Sequence[int]) -> "Captures":
        """Captures of these frames only, in this order."""
        order = [range(len(self))[number] for number in numbers]
        return replace(
            self,
            names=tuple(self.names[number] for number in order),
            distances_m=tuple(self.distances_m[number] for number in order),
            source=lambda number: self.image(order[number]),
            is_cached=lambda number: self.is_cached(order[number]),
            raw_source=None if self.raw_source is None else lambda number: self.raw(order[number]),
        )


def on_each_frame(
    work: Callable[[int], Result], count: int, progress: Progress | None = None
) -> list[Result]:
    """Results of `work` on frames 0 to count - 1, in their order; as many at once as threads.

    Threads share out frames rather than rows: much of the work on a frame is not done by rows.
    Memory that the step before has freed is given back to the system first.
    """
    give_back_freed_memory()
    results: list[Result] = []
    while len(results) < count:
        numbers = range(len(results), min(len(results) + thread_count(), count))
        results += run_together(*(lambda number=number: work(number) for number in numbers))
        if progress is not None:
            progress(len(results), count)
    return results


# Caches -------------------------------------------------------------------------------------------


class FrameCache:
    """Cache of the first frames by number, as many as fit, in 16 bits."""

    def __init__(self, read: Callable[[int], Image], room_bytes: int = FRAME_CACHE_BYTES) -> None:
        self._read = read
        self._room_bytes = room_bytes
        self._frames: dict[int, Levels] = {}

    def __call__(self, number: int) -> Image:
        """One frame, float32 with full scale 1."""
        cached = self._frames.get(number)
        if cached is not None:
            return as_image(cached)
        frame = self._read(number)
        # The number decides, not which thread comes first: every run caches the same frames.
        if 2 * frame.size * (number + 1) <= self._room_bytes:
            levels = as_levels(frame)
            if levels is not None:
                self._frames[number] = levels
        return frame

    def __contains__(self, number: int) -> bool:
        return number in self._frames


def as_levels(frame: Image) -> Levels | None:
    """Frame in 16 bits, exact for the levels of an 8- or 16-bit file; None if not within 0 to 1."""
    if not (frame.min() >= 0 and frame.max() <= 1):  # NaN is neither
        return None
    return np.asarray(np.rint(frame * np.float32(_FULL_SCALE)), dtype=np.uint16)


def as_image(levels: Levels) -> Image:
    """Frame of 16-bit levels as float32 with full scale 1."""
    return np.divide(levels, np.float32(_FULL_SCALE), dtype=np.float32)


# Rectified pairs ----------------------------------------------------------------------------------


class Views(Protocol):
    """Rectified pairs (left, right), each read when it is used."""

    def __len__(self) -> int:
        """Number of pairs."""
        ...

    def __getitem__(self, number: int, /) -> tuple[Image, Image]:
        """One pair: float32 with full scale 1."""
        ...


class SplitViews:
    """Rectified pairs of some frames, each made when it is used.

    Pairs of frames that are not cached themselves are cached in 16 bits, as many as fit.
    """

    def __init__(
        self,
        captures: Captures,
        frames: Sequence[int],
        calibration: Calibration,
        room_bytes: int = PAIR_CACHE_BYTES,
    ) -> None:
        self._captures = captures
        self._frames = tuple(frames)
        # The frames of a colour sensor are luminance already.
        self._calibration = calibration.replace(bayer=None, channel_gains=None)
        self._cache: dict[int, tuple[Levels, Levels]] = {}
        size = 4 * calibration.crop_rows_px * calibration.crop_cols_px
        uncached = [n for n, frame in enumerate(self._frames) if not captures.is_cached(frame)]
        self._to_cache = frozenset(uncached[: room_bytes // size])

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, number: int, /) -> tuple[Image, Image]:
        cached = self._cache.get(number)
        if cached is None:
            pair = split(self._captures.image(self._frames[number]), self._calibration)
            if number not in self._to_cache:
                return pair
            left, right = (as_levels(view) for view in pair)
            if left is None or right is None:
                return pair
            cached = self._cache[number] = left, right
        return as_image(cached[0]), as_image(cached[1])


class MiddleViews:
    """The middle of rectified pairs, at most so many pixels wide and high."""

    def __init__(self, views: Views, size_px: int) -> None:
        self._views = views
        self._size_px = size_px

    def __len__(self) -> int:
        return len(self._views)

    def __getitem__(self, number: int, /) -> tuple[Image, Image]:
        left, right = (self._middle(view) for view in self._views[number])
        return left, right

    def _middle(self, view: Image) -> Image:
        # As many pixels are cut at the beginning as at the end: the axis stays in the middle.
        rows, cols = (max((size - self._size_px) // 2, 0) for size in view.shape)
        return view[rows : view.shape[0] - rows, cols : view.shape[1] - cols]


# Pictures for the report --------------------------------------------------------------------------


class Thumbnails:
    """Small pictures of frames, made when the steps read the frames."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures
        self.thumbnails: dict[int, Picture] = {}
        self.overview: Picture | None = None

    def captures(self) -> Captures:
        """Captures whose frames leave a thumbnail here when they are read."""
        return replace(self._captures, source=self._frame)

    def _frame(self, number: int) -> Image:
        frame = self._captures.image(number)
        if number not in self.thumbnails:
            self.thumbnails[number] = _small(frame, _THUMBNAIL_COLS)
        if self.overview is None and number == len(self._captures) // 2:
            self.overview = _small(frame, _OVERVIEW_COLS)
        return frame


def _small(frame: Image, cols: int) -> Picture:
    """Frame scaled to at most `cols` columns; white is the 99.5th percentile of its levels."""
    import cv2

    size = (
        min(cols, frame.shape[1]),
        max(round(min(cols / frame.shape[1], 1) * frame.shape[0]), 1),
    )
    small = cv2.resize(frame, size, interpolation=cv2.INTER_AREA)
    white = max(float(np.percentile(small, 99.5)), 1e-6)
    return np.asarray(np.clip(small * (255 / white), 0, 255), dtype=np.uint8)
