"""Rendered pairs as files: each is rendered once, and found again by a digest.

The digest is of the room, the optics, the version of Mitsuba, and the source of all modules that
decide the picture. A pair of another camera or another version is never taken for this one.
"""

import hashlib
import importlib
import inspect
import json
import os
from functools import cache
from pathlib import Path

import numpy as np

from d3s.atomic import make_folder
from d3s.errors import InputError
from d3s.files.arrays import read_npz, write_npz
from d3s.lab.rooms.mitsuba import mitsuba_version
from d3s.lab.rooms.pair import STEPS, render_room
from d3s.lab.rooms.room import Room
from d3s.lab.twin.pair import Pair
from d3s.rig import Rig
from d3s.types import Progress

_IMAGES = ("left", "right", "depth_m", "all_in_focus", "occluded")
_MODULES = (
    "d3s.lab.rooms.solids",
    "d3s.lab.rooms.room",
    "d3s.lab.rooms.mitsuba",
    "d3s.lab.rooms.pair",
    "d3s.lab.twin.sampling",
    "d3s.lab.twin.textures",
    "d3s.lab.twin.patterns.manufactured",
    "d3s.lab.twin.patterns.noise",
    "d3s.lab.twin.patterns.shapes",
)


def stored_path(room: Room, rig: Rig, folder: str | os.PathLike[str]) -> Path:
    """File of a rendered room in a folder, there or not; an InputError without Mitsuba."""
    key = {
        "room": room.model_dump(mode="json"),
        "optics": rig.optics.model_dump(mode="json"),
        "mitsuba": mitsuba_version(),
        "source": _source_digest(),
    }
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return Path(folder, f"room_{room.seed}_{digest[:16]}.npz")


def load_or_render(
    room: Room, rig: Rig, folder: str | os.PathLike[str], progress: Progress | None = None
) -> Pair:
    """Load a rendered room from its file, or render it and write the file.

    Parameters
    ----------
    room, rig
        Room and camera.
    folder
        Folder of rendered pairs; made if it does not exist.
    progress
        As for `render_room`.

    Raises
    ------
    InputError, SceneError
        As for `render_room`.
    OutputError
        When the file cannot be written.
    """
    path = stored_path(room, rig, folder)
    pair = _load(path, room, rig)
    if pair is None:
        make_folder(folder)
        pair = render_room(room, rig, progress)
        write_npz(path, overwrite=True, **{name: getattr(pair, name) for name in _IMAGES})
    if progress is not None:
        progress(STEPS, STEPS)
    return pair


def _load(path: Path, room: Room, rig: Rig) -> Pair | None:
    """Pair of a file; None if there is none, or it is damaged."""
    if not path.exists():
        return None
    try:
        arrays = read_npz(path)
    except InputError:
        return None
    if any(name not in arrays or arrays[name].shape != room.shape for name in _IMAGES):
        return None
    *images, occluded = (arrays[name] for name in _IMAGES)
    left, right, depth_m, sharp = (image.astype(np.float32) for image in images)
    return Pair(
        left=left,
        right=right,
        depth_m=depth_m,
        all_in_focus=sharp,
        occluded=occluded.astype(np.bool_),
        rig=rig,
    )


@cache
def _source_digest() -> str:
    """Digest of the source of all modules that decide a rendered picture."""
    digest = hashlib.sha256()
    for name in _MODULES:
        source = inspect.getsource(importlib.import_module(name))
        digest.update(f"{name}\0{len(source)}\0{source}".encode())
    return digest.hexdigest()
