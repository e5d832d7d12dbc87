"""Save and load depth maps: whole in an NPZ file, or the layers that another format holds.

Behind `DepthMap.save` and `DepthMap.load`; apart from `depth_map`, since `methods` imports that.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError, RecordError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.methods import method_of, methods
from d3s.estimate.options import Options
from d3s.files import note
from d3s.files.arrays import read_npz, write_npz
from d3s.files.depth_files import FORMATS, write_depth
from d3s.files.depth_image import DepthImage, colour_levels
from d3s.files.raw import cut_short, named
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.version import __version__

RESULT_SUFFIX = ".npz"
SCHEMA_VERSION = 1

_ARRAYS = {"depth_m": "f4", "sigma_m": "f4", "confidence": "f4", "flags": "u2", "intensity": "f4"}
_OPTIONAL = {"intensity"}
# Fields of the JSON note beside the arrays.
_NOTE_TYPES = {"rig": dict, "method": str, "options": dict, "warnings": list, "timings_s": dict}


def save(
    depth_map: DepthMap,
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    unit_m: float,
    colour: NDArray[Any] | None = None,
) -> None:
    """Write a depth map in the format of the suffix; see `DepthMap.save`.

    Parameters
    ----------
    depth_map
        Depth map to write.
    path, overwrite, unit_m, colour
        As for `DepthMap.save`, which also has the exceptions.
    """
    suffix = Path(os.fsdecode(path)).suffix.lower()
    if suffix == RESULT_SUFFIX:
        colours = as_image(depth_map, colour=colour).colour
        write_npz(path, overwrite=overwrite, **_as_arrays(replace(depth_map, colour=colours)))
        return
    with named(path):
        if suffix not in FORMATS:
            raise InputError(
                f"a depth map is written as {', '.join((RESULT_SUFFIX, *FORMATS))}, and this ends "
                f"in {short_repr(suffix) if suffix else 'nothing'}. Give the name one of these "
                "suffixes."
            )
    write_depth(path, as_image(depth_map, colour=colour), unit_m=unit_m, overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> DepthMap:
    """Read a depth map from an NPZ file; see `DepthMap.load`."""
    arrays = read_npz(path)
    with named(path):
        try:
            return _from_arrays(arrays)
        except RecordError as error:
            problems = " ".join(error.problems)
            raise InputError(f"has a rig or options that cannot be: {problems}") from error


def as_image(depth_map: DepthMap, *, colour: NDArray[Any] | None = None) -> DepthImage:
    """Convert a depth map to the layers that formats other than NPZ hold.

    Raises
    ------
    InputError
        If the colour image does not have the size of the depth map.
    """
    return DepthImage(
        depth_m=depth_map.depth_m,
        sigma_m=depth_map.sigma_m,
        confidence=depth_map.confidence,
        intensity=depth_map.intensity,
        colour=depth_map.colour if colour is None else colour_levels(colour),
        focal_length_px=depth_map.rig.optics.focal_length_px,
        principal_point_px=depth_map.rig.principal_point_px,
        baseline_m=depth_map.rig.optics.baseline_m,
        notes={
            "camera": depth_map.rig.name,
            "method": depth_map.method,
            "d3s_version": __version__,
        },
    )


def _as_arrays(depth_map: DepthMap) -> dict[str, NDArray[Any]]:
    arrays = {name: getattr(depth_map, name) for name in _ARRAYS}
    facts = {
        "schema_version": SCHEMA_VERSION,
        "d3s_version": __version__,
        "rig": depth_map.rig.model_dump(),
        "method": depth_map.method,
        "options": depth_map.options.model_dump(),
        "warnings": depth_map.warnings,
        "timings_s": depth_map.timings_s,
    }
    if depth_map.colour is not None:
        arrays["colour"] = depth_map.colour
    return {
        **{name: array for name, array in arrays.items() if array is not None},
        "K": np.asarray(as_image(depth_map).intrinsics),
        "note": np.array(json.dumps(facts, allow_nan=False)),
    }


def _from_arrays(arrays: dict[str, NDArray[Any]]) -> DepthMap:
    facts = _checked_note(arrays)
    layers = _checked_layers(arrays)
    return DepthMap(
        **layers,
        colour=_checked_colour(arrays, layers["depth_m"].shape),
        comparison=None,  # not saved
        rig=Rig(**facts["rig"]),
        method=facts["method"],
        options=_options(facts["method"], facts["options"]),
        warnings=tuple(str(words) for words in facts["warnings"]),
        timings_s={name: float(time_s) for name, time_s in facts["timings_s"].items()},
    )


def _checked_note(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Parse the JSON note; its version and the types of its fields are checked."""
    if "note" not in arrays or arrays["note"].shape or arrays["note"].dtype.kind != "U":
        found = ", ".join(arrays)[:200] or "nothing"
        raise InputError(f"is not a depth map that D3S has saved: it holds {found}, and no note.")
    facts = note.parsed(str(arrays["note"]))
    if facts.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"has schema_version={short_repr(facts.get('schema_version'))}: this D3S reads version "
            f"{SCHEMA_VERSION}."
        )
    wrong = [name for name, kind in _NOTE_TYPES.items() if not isinstance(facts.get(name), kind)]
    times = () if wrong else facts["timings_s"].values()
    if wrong or not all(isinstance(time_s, int | float) for time_s in times):
        raise cut_short(f"has a note whose {wrong[0] if wrong else 'timings_s'} cannot be read")
    return facts


def _checked_layers(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Select the arrays of a depth map; types are checked, and that all have one shape."""
    missing = [name for name in _ARRAYS if name not in arrays and name not in _OPTIONAL]
    if missing:
        raise cut_short(f"lacks {missing[0]}")
    found = {name: arrays[name] for name in _ARRAYS if name in arrays}
    shape = found["depth_m"].shape
    for name, array in found.items():
        kind = np.dtype(_ARRAYS[name])
        if array.dtype != kind or array.shape != shape or array.ndim != 2 or not array.size:
            raise cut_short(
                f"has {name} of shape {array.shape} and type {array.dtype}, and {kind} of one "
                f"shape (rows, cols) is needed"
            )
    return found


def _checked_colour(
    arrays: dict[str, NDArray[Any]], shape: tuple[int, ...]
) -> NDArray[np.uint8] | None:
    """Colours of the left view, if the file has them."""
    colour = arrays.get("colour")
    if colour is not None and (colour.dtype != np.uint8 or colour.shape != (*shape, 3)):
        raise cut_short(
            f"has colour of shape {colour.shape} and type {colour.dtype}, and uint8 of "
            f"{(*shape, 3)} is needed"
        )
    return colour


def _options(method: str, values: dict[str, Any]) -> Options:
    """Make the options of a method from its fields."""
    try:
        kind = method_of(method).load_options()
    except InputError as error:
        raise InputError(
            f"was made by method={short_repr(method)}, which is none of {', '.join(methods())}: "
            "its options cannot be read."
        ) from error
    return kind(**values)
