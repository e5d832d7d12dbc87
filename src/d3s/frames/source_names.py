"""`open_source`: a source by a word of the command line; frames from Zarr arrays."""

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import D3SError, InputError, MissingPackageError
from d3s.files import IMAGE_SUFFIXES
from d3s.files.images import light_of, samples_of
from d3s.files.raw import named, path_text
from d3s.frames.frame import Frame, Refused, Source, halves
from d3s.frames.loading import FileSource
from d3s.frames.pairing import find_frames, side_of
from d3s.registry import tables
from d3s.rig import Rig
from d3s.types import Image, Progress

VIDEO_SUFFIXES = (".avi", ".mkv", ".mp4", ".mov", ".webm")
RECORDING_SUFFIX = ".mcap"
WORDS = (
    "A source is a file or folder of images, a video, a recording (.mcap), uvc:0 for a camera on "
    "USB, basler or genicam, either with :SERIAL, or twin for a simulated scene."
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
    progress: Progress | None = None  # of rendering the twin; None: while it is shown


Opener = Callable[[str, Rig | None, SourceOptions], Source]
"""Opens the source that the rest of a word, or a path, names."""


def open_source(text: str, rig: Rig | None = None, options: SourceOptions | None = None) -> Source:
    """Source that a word of the command line names.

    `text` is the path of a file or folder of images, of a video, or of a recording; `uvc:0`,
    `basler`, `basler:SERIAL`, `genicam`, `genicam:SERIAL`; `twin`, `twin:ROWSxCOLS`, `twin:raw`,
    `twin:raw:ROWSxCOLS`. The calibration of the rig splits raw frames, and says their size.
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
    if is_zarr(path):
        return ZarrSource(path, rig=rig, side_by_side=options.side_by_side)
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
        side_of(one) is not None for one in path.iterdir() if one.suffix.lower() in IMAGE_SUFFIXES
    )


# Zarr --------------------------------------------------------------------------------------------

_KINDS = ("u1", "u2", "f4", "f8")
_ZARR_RULE = (
    "Frames are a group with the arrays left and right, or one array of raw frames or of views "
    "side by side, each (frames, rows, columns)."
)


def is_zarr(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is a Zarr array or group, of version 2 or 3."""
    names = ("zarr.json", ".zgroup", ".zarray")
    return any(Path(os.fsdecode(path), name).is_file() for name in names)


class ZarrSource(Source):
    """Frames of a Zarr group or array: a `Source`, of which each frame can be read by its place.

    A group has the arrays `left` and `right`; one array has raw frames, or views side by side. Each
    is (frames, rows, columns), of 8 or 16 bit with that full scale, or of floats.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, rig: Rig | None = None, side_by_side: bool = False
    ) -> None:
        if importlib.util.find_spec("zarr") is None:
            raise MissingPackageError("reading Zarr needs the package zarr", "zarr")
        self._path = Path(os.fsdecode(path))
        self._rig = rig
        self._side_by_side = side_by_side
        with named(path):
            self._arrays = _arrays(self._path)

    @property
    def frame_count(self) -> int:
        """Number of frames."""
        return int(self._arrays[0].shape[0])

    def __iter__(self) -> Iterator[Frame | Refused]:
        """Frames in their order; one that cannot be read is refused, and the next one follows."""
        for place in range(self.frame_count):
            outcome: Frame | Refused
            try:
                outcome = self.frame(place)
            except D3SError as error:
                outcome = Refused(f"{path_text(self._path)} frame {place}", str(error))
            yield outcome

    def frame(self, place: int) -> Frame:
        """Frame at a place, from 0."""
        if not 0 <= place < self.frame_count:
            raise InputError(f"place={place} must be 0 to {self.frame_count - 1}.")
        with named(self._path):
            images = [_image(array, place) for array in self._arrays]
            name = f"{place:06d}"
            if len(images) == 1 and not self._side_by_side:
                return Frame(number=place, name=name, raw=images[0])
            left, right = images if len(images) == 2 else halves(images[0], f"frame {place}")
            views = (left, right) if self._rig is None else self._rig.rectify(left, right)
            return Frame(number=place, name=name, views=views)


def _arrays(path: Path) -> list[Any]:
    """Arrays of the views, or the one array."""
    import zarr

    try:
        found = zarr.open(path, mode="r")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"is no Zarr array or group that can be read: {error}") from error
    if isinstance(found, zarr.Group):
        missing = [name for name in ("left", "right") if name not in found]
        if missing:
            raise InputError(
                f"has no array {missing[0]}, but {', '.join(found) or 'nothing'}. {_ZARR_RULE}"
            )
        arrays: list[Any] = [found["left"], found["right"]]
    else:
        arrays = [found]
    for array in arrays:
        if array.ndim != 3 or not array.size or array.dtype.str[1:] not in _KINDS:
            raise InputError(
                f"has an array of shape {array.shape} and type {array.dtype}. {_ZARR_RULE}"
            )
    if len({array.shape for array in arrays}) > 1:
        raise InputError(
            f"left has shape {arrays[0].shape} and right {arrays[1].shape}: they must be alike."
        )
    return arrays


def _image(array: Any, place: int) -> Image:
    try:
        values: NDArray[Any] = np.asarray(array[place])
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"frame {place} cannot be read: {error}") from error
    return light_of(samples_of(values), linear=True).grey
