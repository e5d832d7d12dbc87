"""Frames that stay in memory while there is room, small pictures of them, and their views."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.captures import Captures
from d3s.rig import Calibration
from d3s.rig.split import split

Image = NDArray[np.float32]
Picture = NDArray[np.uint8]

# Every step reads the frames again, and a PNG takes a quarter of a second. Half of all memory that
# a calibration may have.
ROOM_BYTES = 600_000_000
_LEVELS = 65535.0
_THUMBNAIL_COLS, _OVERVIEW_COLS = 200, 1200


class KeptFrames:
    """Frames of captures; those that were read first are not read again, and seen in small."""

    def __init__(self, captures: Captures, room_bytes: int = ROOM_BYTES) -> None:
        self._captures = captures
        self._room_bytes = room_bytes
        self._frames: dict[int, NDArray[np.uint16]] = {}
        self.thumbnails: dict[int, Picture] = {}
        self.overview: Picture | None = None

    def captures(self) -> Captures:
        """The same captures, with frames from here."""
        return replace(self._captures, source=self._frame)

    def _frame(self, number: int) -> Image:
        kept = self._frames.get(number)
        if kept is not None:
            return np.multiply(kept, np.float32(1 / _LEVELS), dtype=np.float32)
        frame = self._captures.image(number)
        self._show(number, frame)
        self._keep(number, frame)
        return frame

    def _show(self, number: int, frame: Image) -> None:
        if number in self.thumbnails:
            return
        self.thumbnails[number] = _small(frame, _THUMBNAIL_COLS)
        if number == len(self._captures) // 2:
            self.overview = _small(frame, _OVERVIEW_COLS)

    def _keep(self, number: int, frame: Image) -> None:
        size = 2 * frame.size
        # Grey levels of any camera are exact in 16 bits; what is not of full scale 1 is read again.
        if size > self._room_bytes or frame.min() < 0 or frame.max() > 1:
            return
        self._room_bytes -= size
        self._frames[number] = np.rint(frame * np.float32(_LEVELS)).astype(np.uint16)


class SplitViews:
    """Rectified pairs of some frames, each made when it is asked for."""

    def __init__(self, captures: Captures, frames: Sequence[int], calibration: Calibration) -> None:
        self._captures = captures
        self._frames = tuple(frames)
        self._calibration = calibration

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, number: int, /) -> tuple[Image, Image]:
        return split(self._captures.image(self._frames[number]), self._calibration)


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
