"""The note in a file of depth: one line of JSON with the unit, the camera and words for people."""

import json
import reprlib
from typing import Any

from d3s.errors import InputError
from d3s.files.depth_image import DepthImage, Points, middle_px
from d3s.files.raw import cut_short

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
    except (ValueError, RecursionError) as error:
        raise cut_short("has a note of D3S that cannot be read") from error
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
