"""Frames from Zarr arrays: views or raw frames, with a first axis of frames."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from d3s.errors import D3SError, InputError
from d3s.files.raw import named, path_text
from d3s.frames.frame import Frame, Refused
from d3s.rig import Rig
from d3s.types import Image

_RULE = (
    "Frames are a group with the arrays left and right, or one array of raw frames or of views "
    "side by side, each (frames, rows, columns)."
)


def is_zarr(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is a Zarr array or group, of version 2 or 3."""
    names = ("zarr.json", ".zgroup", ".zarray")
    return any(Path(os.fsdecode(path), name).is_file() for name in names)


class ZarrSource:
    """Frames of a Zarr group or array: a `Source`, of which each frame can be read by its place.

    A group has the arrays `left` and `right`; one array has raw frames, or views side by side. Each
    is (frames, rows, columns), of 8 or 16 bit with that full scale, or of floats.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, rig: Rig | None = None, side_by_side: bool = False
    ) -> None:
        if importlib.util.find_spec("zarr") is None:
            raise InputError("reading Zarr needs the package zarr: pip install 'd3s[zarr]'.")
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
            left, right = images if len(images) == 2 else _halves(images[0])
            views = (left, right) if self._rig is None else self._rig.rectify(left, right)
            return Frame(number=place, name=name, views=views)

    def close(self) -> None:
        """Do nothing: chunks are closed as soon as they are read."""

    def __enter__(self) -> Self:
        """Return the source itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the source."""
        self.close()


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
                f"has no array {missing[0]}, but {', '.join(found) or 'nothing'}. {_RULE}"
            )
        arrays: list[Any] = [found["left"], found["right"]]
    else:
        arrays = [found]
    for array in arrays:
        if array.ndim != 3 or not array.size or array.dtype.str[1:] not in _SCALES:
            raise InputError(f"has an array of shape {array.shape} and type {array.dtype}. {_RULE}")
    if len({array.shape for array in arrays}) > 1:
        raise InputError(
            f"left has shape {arrays[0].shape} and right {arrays[1].shape}: they must be alike."
        )
    return arrays


_SCALES = {"u1": 255, "u2": 65535, "f4": 1, "f8": 1}
"""Full scale by type."""


def _image(array: Any, place: int) -> Image:
    try:
        values: NDArray[Any] = np.asarray(array[place])
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"frame {place} cannot be read: {error}") from error
    scale = np.float32(_SCALES[array.dtype.str[1:]])
    return np.asarray(np.divide(values, scale, dtype=np.float32, casting="same_kind"))


def _halves(image: Image) -> tuple[Image, Image]:
    half, odd = divmod(image.shape[1], 2)
    if odd:
        raise InputError(
            f"has {image.shape[1]} columns, and two views side by side have an even number."
        )
    return np.ascontiguousarray(image[:, :half]), np.ascontiguousarray(image[:, half:])
