"""Frames that stay in memory once they were read, while there is room."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from d3s.types import Image

Levels = NDArray[np.uint16]

# Every step reads the frames again, and a PNG takes a third of a second. A quarter of all memory
# that a calibration may have: 21 frames of 3840 x 2160 px.
ROOM_BYTES = 350_000_000
_FULL_SCALE = 65535.0


class KeptFrames:
    """Frames by their number; as many of the first ones as there is room for are not read again."""

    def __init__(self, read: Callable[[int], Image], room_bytes: int = ROOM_BYTES) -> None:
        self._read = read
        self._room_bytes = room_bytes
        self._frames: dict[int, Levels] = {}

    def __call__(self, number: int) -> Image:
        """One frame, float32 with full scale 1."""
        kept = self._frames.get(number)
        if kept is not None:
            return as_image(kept)
        frame = self._read(number)
        # By its number, whichever thread comes first: the same frames are kept in every run.
        if 2 * frame.size * (number + 1) <= self._room_bytes:
            levels = as_levels(frame)
            if levels is not None:
                self._frames[number] = levels
        return frame

    def holds(self, number: int) -> bool:
        """Whether a frame is there without reading."""
        return number in self._frames


def as_levels(frame: Image) -> Levels | None:
    """A frame in 16 bits, in which grey levels of any camera are exact; None if they do not do."""
    if not (frame.min() >= 0 and frame.max() <= 1):  # NaN is neither
        return None
    return np.asarray(np.rint(frame * np.float32(_FULL_SCALE)), dtype=np.uint16)


def as_image(levels: Levels) -> Image:
    """The frame again."""
    return np.divide(levels, np.float32(_FULL_SCALE), dtype=np.float32)
