"""Frames of a recording as a batch of files knows them: by a name each."""

import os
from collections.abc import Sequence
from pathlib import Path

from d3s.capture.opening import RECORDING_SUFFIX
from d3s.capture.pairing import FoundFiles, FrameFiles
from d3s.errors import InputError
from d3s.files.raw import path_text
from d3s.recording.reader import Recording


def is_recording(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a recording, by its name."""
    return Path(os.fsdecode(path)).suffix.lower() == RECORDING_SUFFIX


def find_recorded(path: str | os.PathLike[str]) -> FoundFiles:
    """Frames of a recording, named by their places, such as 000012.

    Raises
    ------
    InputError
        When it cannot be read, or has no frames.
    """
    with Recording(path) as recording:
        names = [f"{place:06d}" for place in range(recording.frame_count)]
    return FoundFiles(tuple(FrameFiles(name, Path(os.fsdecode(path)), None) for name in names))


def places_of(frames: Sequence[FrameFiles]) -> tuple[int, ...]:
    """Places in their recording of frames that `find_recorded` has named.

    Raises
    ------
    InputError
        When they are not of one recording.
    """
    paths = {frame.left for frame in frames}
    if len(paths) > 1:
        raise InputError(
            f"{' and '.join(sorted(map(path_text, paths)))}: give one recording at a time."
        )
    return tuple(int(frame.name) for frame in frames)
