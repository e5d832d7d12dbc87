"""Rendered pairs as files: each is rendered once, and found again by a digest.

The digest is of the room, the optics, the version of Mitsuba, and that of the pictures. A pair of
another camera or another version is never taken for this one.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from d3s.atomic import make_folder
from d3s.errors import InputError
from d3s.files.arrays import read_npz, write_npz
from d3s.lab.rooms.mitsuba import STEPS, mitsuba_version, render_room
from d3s.lab.rooms.room import Room
from d3s.lab.twin.pair import Pair
from d3s.rig import Rig
from d3s.types import Progress

_IMAGES = ("left", "right", "depth_m", "all_in_focus", "occluded")
# Version of the pictures: another one whenever rooms, textures or light change what is drawn. This
# is the digest of the source that drew them first.
_PICTURES = "36f0fb56d248bc3c0446a2b91120cc1e32159878bf3e16ee049a3abcac3a7c2f"


def stored_path(room: Room, rig: Rig, folder: str | os.PathLike[str]) -> Path:
    """File of a rendered room in a folder, there or not; an InputError without Mitsuba."""
    key = {
        "room": room.model_dump(mode="json"),
        "optics": rig.optics.model_dump(mode="json"),
        "mitsuba": mitsuba_version(),
        "source": _PICTURES,
    }
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return Path(folder, f"room_{room.seed}_{digest[:16]}.npz")


def load_or_render(
    room: Room, rig: Rig, folder: str | os.PathLike[str], progress: Progress | None = None
) -> Pair:
    """Load a rendered room from its file, or render it and write the file.

    The folder is made if it does not exist. Progress and errors are those of `render_room`.
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
