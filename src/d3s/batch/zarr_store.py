"""Depth maps of many frames as one Zarr group, version 3: a chunk a frame.

Two writers never share a chunk, so any number of processes may write at the same time. A chunk that
is missing reads as NaN without a word: the array `done`, written last, says which frames are whole.
"""

import json
import os
import re
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from d3s.errors import InputError, OutputError
from d3s.estimate import DepthMap
from d3s.estimate.dataset import NAMES
from d3s.estimate.flags import Flag

_DONE = "done"
_LAYERS = {"depth_m": "f4", "sigma_m": "f4", "confidence": "f4", "flags": "u2", "intensity": "f4"}
_ARRAYS = {**_LAYERS, _DONE: "u1"}
_KIND = "d3s depth maps"


class DepthStore:
    """Zarr group in a folder with the depth maps of many frames, each at its place."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(
        self, names: Sequence[str], shape: tuple[int, int], attributes: dict[str, Any]
    ) -> None:
        """Create the group for frames of these names, or make room for further frames in it.

        `attributes` are rig, method and options, as JSON holds them. A group with frames of another
        size is an `OutputError`.
        """
        import zarr

        if self._names is not None:
            self._grow(names, shape)
            return
        # Made under another name: a group without all its arrays would be of no use.
        draft = self.path.with_name(f".{self.path.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        group = zarr.open_group(draft, mode="w", zarr_format=3)
        for name in _ARRAYS:
            _add_array(group, name, (len(names),) if name == _DONE else (len(names), *shape))
        group.attrs.update({"kind": _KIND, **attributes, "frames": list(names)})
        try:
            draft.rename(self.path)
        except OSError as error:
            raise self._unwritable(error) from error

    def remove(self) -> None:
        """Remove the group; anything else of its name is an `OutputError`."""
        if os.path.lexists(self.path):
            if self._names is None:
                raise OutputError(f"{self.path} is no array of d3s. Choose another folder.")
            shutil.rmtree(self.path)

    def places(self) -> dict[str, int]:
        """Places of the frames by name; none if there is no group."""
        return {name: place for place, name in enumerate(self._names or ())}

    def finished(self) -> set[int]:
        """Places of the frames that are whole, by the chunks that are there."""
        found = (re.fullmatch(r"c\.(\d+)", path.name) for path in self.path.glob(f"{_DONE}/*"))
        return {int(one[1]) for one in found if one is not None}

    def clear_leftovers(self) -> None:
        """Remove unfinished chunks of writers that were killed; no other may be writing."""
        for path in self.path.glob("*/*.partial"):  # the names under which zarr writes
            path.unlink(missing_ok=True)

    def write(self, place: int, depth_map: DepthMap) -> None:
        """Write the depth map of a frame to its place; its mark in `done` comes last.

        A frame of another size than the others is an `InputError`.
        """
        _, *shape = self._group["depth_m"].shape
        if depth_map.depth_m.shape != tuple(shape):
            rows, cols = depth_map.depth_m.shape
            raise InputError(
                f"the frame has {cols} x {rows} pixels, and the array of all frames has "
                f"{shape[1]} x {shape[0]}. Put frames of another size into another "
                "folder of results."
            )
        try:
            for name in _LAYERS:
                layer = getattr(depth_map, name)
                if layer is not None:
                    self._group[name][place] = layer
            self._group[_DONE][place] = 1
        except OSError as error:
            raise self._unwritable(error) from error

    @property
    def _names(self) -> list[str] | None:
        """Names of the frames by place; None if there is no group of ours."""
        try:
            found = json.loads((self.path / "zarr.json").read_text()).get("attributes", {})
        except (OSError, ValueError):
            return None
        return list(found["frames"]) if found.get("kind") == _KIND else None

    @cached_property
    def _group(self) -> Any:
        import zarr

        return zarr.open_group(self.path, mode="r+", zarr_format=3)

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(f"{self.path} cannot be written: {error.strerror}.")

    def _grow(self, names: Sequence[str], shape: tuple[int, int]) -> None:
        """Make room for frames that came later; those that are there keep their places."""
        group = self._group
        count, *found = group["depth_m"].shape
        if tuple(found) != shape:
            raise OutputError(
                f"{self.path} has frames of {found[1]} x {found[0]} pixels, and these have "
                f"{shape[1]} x {shape[0]}. Choose another folder for results."
            )
        if len(names) > count:
            for name in _ARRAYS:
                group[name].resize((len(names), *group[name].shape[1:]))
            group.attrs.update({"frames": list(names)})


def _add_array(group: Any, name: str, shape: tuple[int, ...]) -> None:
    from zarr.codecs import BloscCodec

    kind = np.dtype(_ARRAYS[name])
    words, unit = NAMES.get(name, ("whether the frame is whole: 1, or 0", "1"))
    attributes: dict[str, Any] = {"long_name": words, "units": unit}
    if name == "flags":
        attributes["flag_masks"] = [flag.value for flag in Flag]
        attributes["flag_meanings"] = " ".join(str(flag.name).lower() for flag in Flag)
    group.create_array(
        name,
        shape=shape,
        chunks=(1, *shape[1:]),
        dtype=kind,
        fill_value=np.nan if kind.kind == "f" else 0,
        compressors=BloscCodec(cname="zstd", clevel=1, shuffle="shuffle", typesize=kind.itemsize),
        # Names of chunks without folders: c.12.0.0. A folder for each frame would be slow.
        chunk_key_encoding={"name": "default", "separator": "."},
        dimension_names=("frame", "row", "col")[: len(shape)],
        attributes=attributes,
    )
