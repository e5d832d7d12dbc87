"""Frames of anything: files, folders, globs, recordings, videos and Zarr arrays, in any number."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from d3s.errors import D3SError, InputError
from d3s.files.raw import path_text
from d3s.frames import FoundFiles, FrameFiles, Refused, Source, find_frames
from d3s.frames.source_names import (
    RECORDING_SUFFIX,
    VIDEO_SUFFIXES,
    SourceOptions,
    ZarrSource,
    is_zarr,
    open_source,
)
from d3s.rig import Rig


class SourceFrame(NamedTuple):
    """One frame of a recording, a video or an array, and the name of its results."""

    name: str
    left: Path  # the recording, video or array
    place: int  # of the frame in it, from 0
    right: None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """File that the frame is read from."""
        return (self.left,)


AnyFrame = FrameFiles | SourceFrame
"""A frame of files, or of something that holds many."""


class FoundInputs(NamedTuple):
    """Frames to work on, inputs that cannot be used, and files that are no views."""

    frames: tuple[AnyFrame, ...]
    refused: tuple[Refused, ...] = ()
    ignored: tuple[Path, ...] = ()


def find_inputs(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    one_file_each: bool = False,
    side_by_side: bool = False,
) -> FoundInputs:
    """Find the frames in files, folders, recordings, videos and Zarr arrays, in any number.

    Files, and up to two folders, are paired as by `find_frames`. Of three folders and more, each
    has its own pairs. A name with * that is no file stands for all files that it matches. Frames of
    a recording are named by their places, such as 000012; with several inputs the name of the
    recording, or of the folder, comes first.

    Parameters
    ----------
    inputs
        Paths.
    one_file_each
        Whether every image is a frame of its own: raw, or both views side by side.
    side_by_side
        Whether frames of videos and arrays have both views side by side.

    Raises
    ------
    InputError
        When the names do not say what belongs together, or nothing can be used.
    """
    paths = list(_expanded(inputs))
    sources = [path for path in paths if is_source(path)]
    others = [path for path in paths if not is_source(path)]
    groups = _of_files(others, one_file_each) if others or not sources else []
    is_alone = len(sources) == 1 and not others
    for path in sources:
        groups.append(_of_source(path, "" if is_alone else f"{path.stem}_", side_by_side))
    if not any(group.frames for group in groups) and sources:
        raise InputError(" ".join(one.reason for group in groups for one in group.refused))
    return _joined(groups)


def open_frames(
    path: str, *, rig: Rig | None = None, side_by_side: bool = False, linear: bool | None = None
) -> Source:
    """Open a recording, a video or a Zarr array.

    The rig splits or rectifies frames of videos and arrays, unless they are `side_by_side`;
    `linear` says whether integers of videos are proportional to intensity, None as `load_pair`.
    """
    if is_zarr(path):
        return ZarrSource(path, rig=rig, side_by_side=side_by_side)
    return open_source(path, rig, SourceOptions(side_by_side=side_by_side, linear=linear))


def is_source(path: Path) -> bool:
    """Whether a path is a recording, a video or a Zarr array, by its name or its content."""
    return path.suffix.lower() in (RECORDING_SUFFIX, *VIDEO_SUFFIXES) or is_zarr(path)


def _expanded(inputs: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    for one in inputs:
        text = os.fsdecode(one)
        if not any(mark in text for mark in "*?[") or os.path.lexists(text):
            yield Path(text)
            continue
        found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - of any path
        if not found:
            raise InputError(f"{path_text(text)}: no file has such a name. Check it.")
        yield from map(Path, found)


def _of_files(paths: list[Path], one_file_each: bool) -> list[FoundInputs]:
    if len(paths) < 3 or not all(path.is_dir() for path in paths):
        return [FoundInputs(*find_frames(paths, one_file_each=one_file_each))]
    found = []
    for path in paths:
        try:
            group = find_frames([path], one_file_each=one_file_each)
        except InputError as error:
            found.append(FoundInputs((), (Refused(path_text(path), str(error)),)))
        else:
            found.append(_prefixed(group, path.resolve().name))
    return found


def _prefixed(group: FoundFiles, folder: str) -> FoundInputs:
    frames = tuple(
        frame._replace(name=f"{folder}_{frame.name}" if frame.name else folder)
        for frame in group.frames
    )
    return FoundInputs(frames, group.refused, group.ignored)


def _of_source(path: Path, prefix: str, side_by_side: bool) -> FoundInputs:
    """Frames of a recording, a video or an array; one that cannot be opened is refused."""
    if not os.path.lexists(path):
        reason = f"{path_text(path)}: there is no such file. Check the name."
        return FoundInputs((), (Refused(path_text(path), reason),))
    try:
        with open_frames(os.fspath(path), side_by_side=side_by_side) as source:
            count = source.frame_count
    except D3SError as error:
        return FoundInputs((), (Refused(path_text(path), str(error)),))
    if count is None:
        reason = "does not say how many frames it has. Convert it first: d3s convert."
        return FoundInputs((), (Refused(path_text(path), reason),))
    return FoundInputs(
        tuple(SourceFrame(f"{prefix}{place:06d}", path, place) for place in range(count))
    )


def _joined(groups: Iterable[FoundInputs]) -> FoundInputs:
    """Keep the first of several frames of one name, and refuse the others."""
    groups = list(groups)
    kept: dict[str, AnyFrame] = {}
    refused = [one for group in groups for one in group.refused]
    for frame in (frame for group in groups for frame in group.frames):
        if frame.name in kept:
            first = path_text(kept[frame.name].left)
            reason = f"its results would have the name of those of {first}. Rename one."
            refused.append(Refused(path_text(frame.left), reason))
        else:
            kept[frame.name] = frame
    ignored = tuple(path for group in groups for path in group.ignored)
    return FoundInputs(tuple(kept.values()), tuple(refused), ignored)
