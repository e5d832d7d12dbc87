"""Unit and camera of a file of depth: the note inside it, and the camera file beside it.

The note is one line of JSON with the unit, the camera and words for people. A depth file that has
no room for the camera has a small JSON file beside it, in the form of Open3D's pinhole camera,
which other programs can read easily.
"""

import json
import os
import reprlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.errors import InputError
from d3s.files.depth_image import DepthImage, Points, middle_px
from d3s.files.raw import cut_short, named, path_text, read_file

KEY = "d3s"
"""Name of the note, in formats whose texts have names."""

VERSION = 1
START = f'{{"{KEY}": '
"""First characters of the note, which tell it from the notes of other programs."""

FOR_PEOPLE = ("camera", "method", "d3s_version")
"""Entries that no number depends on."""

MAX_CHARS = 1_000_000
_MAX_WORDS = 200
_LARGEST = 1e12


def make_note(content: DepthImage | Points, **more: Any) -> str:
    """Note of a depth image or of points, with `more` entries."""
    entries: dict[str, Any] = {KEY: VERSION, "unit": "m", **content.notes, **more}
    if isinstance(content, DepthImage) and content.focal_length_px is not None:
        entries["focal_length_px"] = content.focal_length_px
        entries["principal_point_px"] = list(content.centre_px)
    return json.dumps(entries, allow_nan=False)


def parse_depth_note(text: str) -> dict[str, Any]:
    """Entries of the note in a file of depth; of this version, or an error."""
    entries = parsed(text)
    if entries.get(KEY) != VERSION:
        found = reprlib.repr(entries.get(KEY))
        raise InputError(f"has a note of version {found}: this D3S reads version {VERSION}.")
    return entries


def parsed(text: str) -> dict[str, Any]:
    """Entries of a note. Their values are not checked: the file may come from anywhere."""
    if len(text) > MAX_CHARS:
        raise cut_short(f"has a note of {len(text)} characters")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise cut_short("has a note of D3S that cannot be read")
    return entries


def focal_length_px(entries: dict[str, Any]) -> float | None:
    """Focal length in a note, in pixels; None if the note has none."""
    return positive_number(entries, "focal_length_px") if "focal_length_px" in entries else None


def principal_point_px(
    entries: dict[str, Any], shape: tuple[int, ...]
) -> tuple[float, float] | None:
    """Principal point (x, y) in a note; None if it has none, or the middle of the view."""
    point: Any = entries.get("principal_point_px")
    if point is None:
        return None
    is_pair = isinstance(point, list) and len(point) == 2
    if not is_pair or not all(
        type(one) in (int, float) and -_LARGEST < one < _LARGEST for one in point
    ):
        raise cut_short(f"has principal_point_px={reprlib.repr(point)} in its note")
    found = float(point[0]), float(point[1])
    return None if found == middle_px(shape) else found


def positive_number(entries: dict[str, Any], name: str) -> float:
    """Number above zero that a note must have."""
    value: Any = entries.get(name)
    # Compared before it is converted: Python has integers that no float can hold.
    if type(value) not in (int, float) or not 0 < value < _LARGEST:
        raise cut_short(f"has {name}={reprlib.repr(value)} in its note, which is no such number")
    return float(value)


def notes_for_people(entries: dict[str, Any]) -> dict[str, str]:
    """Short texts of a note that people may want to read: camera, method, version."""
    return {
        name: value
        for name, value in entries.items()
        if name in FOR_PEOPLE and isinstance(value, str) and len(value) <= _MAX_WORDS
    }


CAMERA_SUFFIX = ".camera.json"
_MAX_CAMERA_BYTES = 100_000
_CLOSE_PX = 1e-6


class PinholeCamera(NamedTuple):
    """Pinhole camera."""

    rows: int
    cols: int
    focal_length_px: float
    principal_point_px: tuple[float, float] | None = None  # the middle of the view if None


def camera_beside(path: str | os.PathLike[str]) -> Path:
    """Path of the camera file of a depth file: scene.camera.json for scene.png."""
    return Path(os.fsdecode(path)).with_suffix(CAMERA_SUFFIX)


def encode_camera(image: DepthImage) -> bytes | None:
    """Camera file of a depth image; None if its camera is not known."""
    matrix = image.intrinsics
    if matrix is None:
        return None
    rows, cols = image.depth_m.shape
    camera = {
        "width": cols,
        "height": rows,
        "intrinsic_matrix": matrix.T.ravel().tolist(),  # column by column, as Open3D has it
    }
    return (json.dumps(camera, indent=2) + "\n").encode("ascii")


def camera_of(path: str | os.PathLike[str], shape: tuple[int, ...]) -> PinholeCamera | None:
    """Camera in the camera file beside a depth file; None if there is none."""
    beside_it = camera_beside(path)
    if not os.path.lexists(beside_it):
        return None
    camera = read_camera(beside_it)
    if (camera.rows, camera.cols) != tuple(shape):
        raise InputError(
            f"{path_text(beside_it)}: is of views of {camera.rows} x {camera.cols} px, and the "
            f"depths have {shape[0]} x {shape[1]}."
        )
    return camera


def read_camera(path: str | os.PathLike[str]) -> PinholeCamera:
    """Read a camera file; an `InputError` names the file and what is wrong."""
    with named(path):
        return _camera(read_file(path, _MAX_CAMERA_BYTES))


def _camera(raw: bytes) -> PinholeCamera:
    try:
        entries: dict[str, Any] = json.loads(raw)
        rows, cols = entries["height"], entries["width"]
        matrix = np.array(entries["intrinsic_matrix"], dtype=np.float64).reshape(3, 3).T
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as error:
        raise cut_short("is not a camera file") from error
    if not all(type(size) is int and 0 < size < _LARGEST for size in (rows, cols)):
        raise cut_short("is not a camera file")
    focal = float(matrix[0, 0])
    expected = np.diag([focal, focal, 1.0])
    expected[:2, 2] = matrix[:2, 2]
    is_pinhole = 0 < focal < _LARGEST and np.all(np.abs(matrix) < _LARGEST)
    if not is_pinhole or not np.allclose(matrix, expected, rtol=0, atol=_CLOSE_PX):
        raise InputError(
            "has a camera that is none of ours: one focal length above 0, the principal point, and "
            "nothing else."
        )
    point = float(matrix[0, 2]), float(matrix[1, 2])
    is_middle = np.allclose(point, middle_px((rows, cols)), rtol=0, atol=_CLOSE_PX)
    return PinholeCamera(rows, cols, focal, None if is_middle else point)
