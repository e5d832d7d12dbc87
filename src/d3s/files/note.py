"""The note that a file of depth carries: one line of JSON, wherever the format has room for it."""

import json
import reprlib
from typing import Any

from d3s.errors import InputError
from d3s.files.depth_image import DepthImage, Points
from d3s.files.raw import cut_short

KEY = "d3s"
"""Name of the note, where the format wants one."""

VERSION = 1
START = f'{{"{KEY}": '
"""How it begins, which tells it from the notes of other programs."""

FOR_PEOPLE = ("camera", "method", "d3s_version")
"""What it says that no number depends on."""

MAX_CHARS = 1_000_000
_MAX_WORDS = 200
_LARGEST = 1e12


def note_of(content: DepthImage | Points, **more: Any) -> str:
    """What a format should say beside its numbers."""
    told: dict[str, Any] = {KEY: VERSION, "unit": "m", **content.notes, **more}
    if isinstance(content, DepthImage) and content.focal_length_px is not None:
        rows, cols = content.depth_m.shape
        told["focal_length_px"] = content.focal_length_px
        told["principal_point_px"] = [(cols - 1) / 2, (rows - 1) / 2]
    return json.dumps(told, allow_nan=False)


def of_depth(text: str) -> dict[str, Any]:
    """What the note of a file of depth says."""
    told = parsed(text)
    if told.get(KEY) != VERSION:
        found = reprlib.repr(told.get(KEY))
        raise InputError(f"has a note of version {found}: this D3S reads version {VERSION}.")
    return told


def parsed(text: str) -> dict[str, Any]:
    """A note that was read; everything in it is of a stranger."""
    if len(text) > MAX_CHARS:
        raise cut_short(f"has a note of {len(text)} characters")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise cut_short("has a note of D3S that cannot be read") from error
    if not isinstance(told, dict):
        raise cut_short("has a note of D3S that cannot be read")
    return told


def focal_length_px(told: dict[str, Any]) -> float | None:
    """The focal length in a note; None if it says nothing."""
    return positive(told, "focal_length_px") if "focal_length_px" in told else None


def positive(told: dict[str, Any], name: str) -> float:
    """A number above zero that a note must have."""
    value: Any = told.get(name)
    # Compared before it is converted: Python has integers that no float can hold.
    if type(value) not in (int, float) or not 0 < value < _LARGEST:
        raise cut_short(f"has {name}={reprlib.repr(value)} in its note, which is no such number")
    return float(value)


def notes_in(told: dict[str, Any]) -> dict[str, str]:
    """What a note says for people, of all that a stranger may have written into it."""
    return {
        name: value
        for name, value in told.items()
        if name in FOR_PEOPLE and isinstance(value, str) and len(value) <= _MAX_WORDS
    }
