"""What is made of frames: small pictures for people, and rectified pairs for the steps."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.captures import Captures
from d3s.calibrate.kept import Levels, as_image, as_levels
from d3s.rig import Calibration
from d3s.rig.split import split
from d3s.types import Image

Picture = NDArray[np.uint8]

_THUMBNAIL_COLS, _OVERVIEW_COLS = 200, 1200

# Beside the frames that are kept (`kept.ROOM_BYTES`): 46 pairs of the paper's prototype.
ROOM_BYTES = 300_000_000


class SmallPictures:
    """Small pictures of the frames of captures, made as these are asked for."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures
        self.thumbnails: dict[int, Picture] = {}
        self.overview: Picture | None = None

    def captures(self) -> Captures:
        """The same captures, which are looked at as they are used."""
        return replace(self._captures, source=self._frame)

    def _frame(self, number: int) -> Image:
        frame = self._captures.image(number)
        if number not in self.thumbnails:
            self.thumbnails[number] = _small(frame, _THUMBNAIL_COLS)
        if self.overview is None and number == len(self._captures) // 2:
            self.overview = _small(frame, _OVERVIEW_COLS)
        return frame


class SplitViews:
    """Rectified pairs of some frames, each made when it is asked for.

    Those of frames that would have to be read again are kept, in 16 bits, while there is room.
    """

    def __init__(
        self,
        captures: Captures,
        frames: Sequence[int],
        calibration: Calibration,
        room_bytes: int = ROOM_BYTES,
    ) -> None:
        self._captures = captures
        self._frames = tuple(frames)
        self._calibration = calibration
        self._kept: dict[int, tuple[Levels, Levels]] = {}
        size = 4 * calibration.crop_rows_px * calibration.crop_cols_px
        dear = [n for n, frame in enumerate(self._frames) if not captures.is_kept(frame)]
        self._to_keep = frozenset(dear[: room_bytes // size])

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, number: int, /) -> tuple[Image, Image]:
        kept = self._kept.get(number)
        if kept is None:
            pair = split(self._captures.image(self._frames[number]), self._calibration)
            if number not in self._to_keep:
                return pair
            left, right = (as_levels(view) for view in pair)
            if left is None or right is None:
                return pair
            kept = self._kept[number] = left, right
        return as_image(kept[0]), as_image(kept[1])


def _small(frame: Image, cols: int) -> Picture:
    """Grey levels of 8 bits, from black to the brightest but for a few pixels."""
    import cv2

    size = (
        min(cols, frame.shape[1]),
        max(round(min(cols / frame.shape[1], 1) * frame.shape[0]), 1),
    )
    small = cv2.resize(frame, size, interpolation=cv2.INTER_AREA)
    white = max(float(np.percentile(small, 99.5)), 1e-6)
    return np.asarray(np.clip(small * (255 / white), 0, 255), dtype=np.uint8)
