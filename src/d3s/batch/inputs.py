"""Frames of anything: files, folders, globs, recordings, videos and Zarr arrays, in any number."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from d3s.errors import D3SError, InputError
from d3s.files.raw import path_text
from d3s.frames import FoundFiles, FrameFiles, Refused, SourceOptions, find_frames, open_source
from d3s.frames.pairing import unique_names
from d3s.frames.source_names import RECORDING_SUFFIX, VIDEO_SUFFIXES, is_zarr


def find_inputs(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    one_file_each: bool = False,
    side_by_side: bool = False,
) -> FoundFiles:
    """Find the frames in files, folders, recordings, videos and Zarr arrays, in any number.

    Files, and up to two folders, are paired as by `find_frames`. Of three folders and more, each
    has its own pairs. A name with * that is no file stands for all files that it matches. Frames of
    a recording are named by their places, such as 000012; with several inputs the name of the
    recording, or of the folder, comes first. `side_by_side` says it of videos and arrays. If
    nothing can be used, there is an `InputError`.
    """
    paths = list(_expanded(inputs))
    sources = [path for path in paths if is_source(path)]
    others = [path for path in paths if not is_source(path)]
    groups = _of_files(others, one_file_each) if others or not sources else []
    is_alone = len(sources) == 1 and not others
    for path in sources:
        groups.append(_of_source(path, "" if is_alone else f"{path.stem}_", side_by_side))
    refused = [one for group in groups for one in group.refused]
    frames = [frame for group in groups for frame in group.frames]
    if not frames and sources:
        raise InputError(" ".join(one.reason for one in refused))
    return unique_names(frames, refused, [path for group in groups for path in group.ignored])


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


def _of_files(paths: list[Path], one_file_each: bool) -> list[FoundFiles]:
    if len(paths) < 3 or not all(path.is_dir() for path in paths):
        return [find_frames(paths, one_file_each=one_file_each)]
    found = []
    for path in paths:
        try:
            group = find_frames([path], one_file_each=one_file_each)
        except InputError as error:
            group = FoundFiles((), (Refused(path_text(path), str(error)),))
        folder = path.resolve().name
        names = (f"{folder}_{one.name}" if one.name else folder for one in group.frames)
        named = (one._replace(name=name) for one, name in zip(group.frames, names, strict=True))
        found.append(group._replace(frames=tuple(named)))
    return found


def _of_source(path: Path, prefix: str, side_by_side: bool) -> FoundFiles:
    """Frames of a recording, a video or an array; one that cannot be opened is refused."""
    try:
        if not os.path.lexists(path):
            raise InputError(f"{path_text(path)}: there is no such file. Check the name.")
        options = SourceOptions(side_by_side=side_by_side)
        with open_source(os.fspath(path), options=options) as source:
            count = source.frame_count
        if count is None:
            raise InputError("does not say how many frames it has. Convert it first: d3s convert.")
    except D3SError as error:
        return FoundFiles((), (Refused(path_text(path), str(error)),))
    return FoundFiles(
        tuple(FrameFiles(f"{prefix}{place:06d}", path, None, place) for place in range(count))
    )
