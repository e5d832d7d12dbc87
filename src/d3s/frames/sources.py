"""`open_source`: a source by a word of the command line."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from d3s.errors import InputError
from d3s.files import IMAGE_SUFFIXES
from d3s.files.raw import path_text
from d3s.frames.frame import Source
from d3s.frames.loading import FileSource
from d3s.frames.pairing import find_frames
from d3s.registry import tables
from d3s.rig import Rig
from d3s.types import Progress

VIDEO_SUFFIXES = (".avi", ".mkv", ".mp4", ".mov", ".webm")
RECORDING_SUFFIX = ".mcap"
WORDS = (
    "A source is a file or folder of images, a video, a recording (.mcap), uvc:0 for a camera on "
    "USB, basler, genicam, or either with :SERIAL, twin for a simulated scene, or fake:SCRIPT.toml."
)


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Options of a source; what does not concern its kind is not looked at."""

    side_by_side: bool = False  # each image has both views, left and right half
    linear: bool | None = None  # whether integers are proportional to light; None as `load_pair`
    bayer: str | None = None  # order of the colours of raw files
    rate_hz: float | None = None  # of the twin, or asked of a camera
    exposure_s: float | None = None  # of a camera
    gain: float | None = None
    keep_raw: bool = False  # leave raw files as they are, though the rig could split them
    progress: Progress | None = None  # of rendering the twin


Opener = Callable[[str, Rig | None, SourceOptions], Source]
"""Opens the source that the rest of a word, or a path, names."""


def open_source(text: str, rig: Rig | None = None, options: SourceOptions | None = None) -> Source:
    """Source that a word of the command line names.

    Parameters
    ----------
    text
        Path of a file or folder of images, of a video, or of a recording; `uvc:0`, `basler`,
        `basler:SERIAL`, `genicam`, `genicam:SERIAL`; `twin`, `twin:ROWSxCOLS`, `twin:raw`,
        `twin:raw:ROWSxCOLS`; `fake:SCRIPT.toml`.
    rig
        The camera: its calibration splits raw frames, and says their size.
    options
        Options of the source.

    Raises
    ------
    D3SError
        When there is no such file or camera, or the word is not known.
    """
    options = options or SourceOptions()
    kind, _, rest = text.partition(":")
    path = Path(text)
    openers: Mapping[str, Opener] = tables("sources")
    if kind in openers and not path.exists():
        return openers[kind](rest, rig, options)
    if path.suffix.lower() in openers and path.exists():
        return openers[path.suffix.lower()](text, rig, options)
    return _open_path(path, rig, options)


def _open_path(path: Path, rig: Rig | None, options: SourceOptions) -> Source:
    if not path.exists():
        raise InputError(f"{path_text(path)}: there is no such file. {WORDS}")
    suffix = path.suffix.lower()
    if suffix in VIDEO_SUFFIXES:
        from d3s.frames.video import VideoSource

        return VideoSource(path, rig=rig, side_by_side=options.side_by_side, linear=options.linear)
    if path.is_file() and suffix not in IMAGE_SUFFIXES:
        raise InputError(f"{path_text(path)}: no source has files of this kind. {WORDS}")
    can_split = rig is not None and (rig.calibration is not None or rig.stereo is not None)
    found = find_frames([path], one_file_each=options.side_by_side or not _has_sides(path))
    return FileSource(
        found.frames,
        rig=rig if can_split and not options.keep_raw else None,
        side_by_side=options.side_by_side,
        linear=options.linear,
        bayer=options.bayer,
    )


def _has_sides(path: Path) -> bool:
    """Whether a folder has images whose names say left or right."""
    return path.is_dir() and any(
        re.search(r"(^|[-_. ])(left|right)([-_. ]|$)", one.stem, re.IGNORECASE)
        for one in path.iterdir()
        if one.suffix.lower() in IMAGE_SUFFIXES
    )
