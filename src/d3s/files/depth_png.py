"""PNG of depth: 16 bit, whole numbers of a unit, 0 for no depth, and a note with the unit.

Nothing is clamped: a depth that 16 bit cannot hold is an error.
"""

import numpy as np

from d3s.errors import InputError
from d3s.files import note, pictures
from d3s.files.depth_image import DepthImage
from d3s.types import Image

_LARGEST = 65535
_UNIT_LIMITS_M = (1e-6, 1.0)
# Units to choose from, in metres: a millimetre, then coarser ones, then finer ones.
_UNITS_M = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    *(5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6, 2e-6, 1e-6),
)


def encode(image: DepthImage, unit_m: float) -> bytes:
    """PNG file of the depths, rounded to whole units of `unit_m` metres."""
    check_unit(unit_m)
    steps = np.rint(image.depth_m.astype(np.float64) / unit_m)
    known = steps[np.isfinite(steps)]
    if known.size and known.max() > _LARGEST:
        raise InputError(
            f"a depth of {np.nanmax(image.depth_m):.4g} m does not fit into 16 bit of "
            f"{1e3 * unit_m:g} mm each, which end at {_LARGEST * unit_m:g} m. Take a larger unit "
            f"({_unit_words(image.depth_m)}), filter the depths, or write .tiff, which holds any."
        )
    if known.size and known.min() < 1:
        raise InputError(
            f"a depth of {np.nanmin(image.depth_m):.4g} m is less than half of the unit, "
            f"{1e3 * unit_m:g} mm, and 0 means that there is none. Take a smaller unit "
            f"({_unit_words(image.depth_m)}), or write .tiff, which holds any."
        )
    text = note.make_note(image, depth_unit_m=unit_m)
    levels = np.nan_to_num(steps, nan=0.0).astype(np.uint16)
    return pictures.encode_png(levels, {note.KEY: text})


def read(raw: bytes, max_pixels: int, unit_m: float | None = None) -> DepthImage:
    """Depths of a 16-bit grey PNG file; `unit_m` is for a file without a note."""
    samples = pictures.read_png(raw, max_pixels)
    levels = samples.values
    if samples.full_scale != _LARGEST or levels.ndim != 2:
        raise InputError("is a PNG, but not of depths: those are grey and have 16 bit.")
    text = pictures.png_text(raw, note.KEY)
    entries = {} if text is None else note.parse_depth_note(text)
    if "depth_unit_m" in entries:
        unit_m = note.positive_number(entries, "depth_unit_m")
    if unit_m is None:
        raise InputError(
            "does not say what unit its depths have. If it holds depths, name it: --input-unit 1mm "
            "on the command line, unit_m=0.001 in Python."
        )
    check_unit(unit_m)
    depth_m = (levels * np.float64(unit_m)).astype(np.float32)
    depth_m[levels == 0] = np.nan
    return DepthImage(
        depth_m=depth_m,
        focal_length_px=note.focal_length_px(entries),
        principal_point_px=note.principal_point_px(entries, depth_m.shape),
        notes=note.notes_for_people(entries),
    )


def fitting_unit_m(depth_m: Image) -> float | None:
    """Unit in metres that 16 bit need for depths: 1 mm if possible, else 1, 2 or 5 times 10^n.

    None if no unit holds both the nearest and the farthest depth.
    """
    known = depth_m[np.isfinite(depth_m)].astype(np.float64)
    if not known.size:
        return _UNITS_M[0]
    ends = float(known.min()), float(known.max())
    for unit_m in _UNITS_M:
        if np.rint(ends[0] / unit_m) >= 1 and np.rint(ends[1] / unit_m) <= _LARGEST:
            return unit_m
    return None


def _unit_words(depth_m: Image) -> str:
    unit_m = fitting_unit_m(depth_m)
    if unit_m is None:
        return "though none holds both the nearest and the farthest depth"
    return f"--unit {1e3 * unit_m:g}mm on the command line, unit_m={unit_m:g} in Python"


def check_unit(unit_m: float) -> None:
    """Refuse what cannot be the unit of depths in metres, by an `InputError`."""
    low, high = _UNIT_LIMITS_M
    if isinstance(unit_m, bool) or not isinstance(unit_m, int | float) or not low <= unit_m <= high:
        raise InputError(
            f"unit_m={unit_m!r} must be from {low:g} to {high:g}: it is in metres, and 0.001 is a "
            "millimetre."
        )
