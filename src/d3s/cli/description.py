"""Describe a file: an image, depth, points, a recording, a rig, a recipe, a folder."""

import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.camera.recording.reader import describe
from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.estimate.flags import share_of_each
from d3s.files import DepthImage, Points, note, pictures, read_depth, tiff
from d3s.files import arrays as npz
from d3s.files.images import read_samples
from d3s.files.raw import WORDS, named, open_file, read_file
from d3s.formats import (
    CSV,
    EXR,
    FORMATS,
    IMAGE_SUFFIXES,
    MCAP,
    NPY,
    NPZ,
    PFM,
    PLY,
    PNG,
    TIFF,
    Format,
    format_of_bytes,
)
from d3s.lab.twin.folder import DISTANCES_NAME, RECIPE_NAME
from d3s.lab.twin.recipe import Recipe
from d3s.rig import LensMaps, Optics, Rig
from d3s.rig.bayer import looks_coloured

Facts = dict[str, Any]

PERCENTS = (1, 5, 25, 50, 75, 95, 99)
_BINS = 12
# Percentiles at the ends of a histogram; values beyond are counted in its first and last bin.
_ENDS_PERCENT = (0.5, 99.5)
_WIDEST = 1e30  # a wider range has no histogram
_MAX_BYTES = 2_000_000_000
_ZARR = "zarr.json"  # metadata of a Zarr array or group, version 3


@dataclass(frozen=True)
class Info:
    """Description of a file. All facts are numbers, texts, and lists and tables of these."""

    path: str
    kind: str
    facts: Facts
    histogram: Facts | None = None  # of what, edges, and counts between each edge and the next

    def as_json(self) -> Facts:
        """Description as one table that JSON can hold."""
        return {"path": self.path, "kind": self.kind, **self.facts, "histogram": self.histogram}


def info(path: str | os.PathLike[str]) -> Info:
    """Describe a file or a folder."""
    place = Path(os.fsdecode(path))
    with named(path):
        is_folder = place.is_dir()
    if is_folder:
        return _folder(place)
    with named(path), open_file(path) as file:
        start = file.read(8)
    found = format_of_bytes(start)
    if found is None:
        return _text(place)
    if found is NPZ:
        return _archive(place)
    if found is MCAP:
        return Info(str(place), "recording", describe(place))
    if found is PLY or _is_depth(place, found):
        return _depth(place, found)
    return _image(place, found)


def _is_depth(path: Path, found: Format) -> bool:
    """Whether the file, or a camera beside it, says that it holds depth: floats may be an image."""
    if found is EXR:
        return True
    if found in (PFM, NPY):
        return os.path.lexists(note.camera_beside(path))
    with named(path):
        if found is PNG:
            return pictures.png_text(read_file(path, _MAX_BYTES), note.KEY) is not None
        return found is TIFF and tiff.description(read_file(path, _MAX_BYTES)).startswith(
            note.START
        )


def _image(path: Path, found: Format) -> Info:
    with named(path):
        samples = read_samples(path)
    values = samples.values if samples.values.ndim == 3 else samples.values[:, :, np.newaxis]
    rows, cols, channels = values.shape
    colours = values[:, :, : 1 if channels < 3 else 3]
    facts: Facts = {
        "format": found.name,
        "rows": rows,
        "cols": cols,
        "channels": channels,
        "type": str(values.dtype.newbyteorder("=")),
        "full_scale": samples.full_scale,
        "values": _range(colours),
    }
    if samples.orientation in WORDS:
        facts["exif_orientation"] = f"{samples.orientation}: {WORDS[samples.orientation]}"
    if samples.full_scale is not None:
        facts["share_at_0"] = float(np.mean(colours == 0))
        facts["share_at_full_scale"] = float(np.mean(colours == samples.full_scale))
    if channels < 3 and not samples.is_lossy and looks_coloured(values[:, :, 0]):
        facts["bayer"] = "likely; the data sheet of the sensor has the order"
    return Info(
        str(path),
        "image" if samples.full_scale is not None else "image of floats",
        facts,
        _histogram(colours, "values"),
    )


def _depth(path: Path, found: Format) -> Info:
    content = read_depth(path)
    if isinstance(content, Points):
        return _points(path, content)
    unit = {"unit_m": _unit_m(path)} if found is PNG else {}
    return _depth_image(path, content, {"format": found.name, **unit})


def _unit_m(path: Path) -> float:
    with named(path):
        entries = note.parse_depth_note(
            pictures.png_text(read_file(path, _MAX_BYTES), note.KEY) or ""
        )
        return note.positive_number(entries, "depth_unit_m")


def _depth_image(path: Path, image: DepthImage, facts_of_format: Facts) -> Info:
    rows, cols = image.depth_m.shape
    facts: Facts = {
        **facts_of_format,
        "rows": rows,
        "cols": cols,
        "density": image.density,
        "depth_m": _range(image.depth_m),
        "beside_depth": list(image.layers),
        "focal_length_px": image.focal_length_px,
        **image.notes,
    }
    for name in image.layers:
        facts[name] = _range(getattr(image, name))
    return Info(str(path), "depth", facts, _histogram(image.depth_m, "depth_m"))


def _points(path: Path, points: Points) -> Info:
    facts: Facts = {"format": PLY.name, "points": len(points.z_m), **points.notes}
    facts |= {name: _range(values) for name, values in points.columns.items()}
    return Info(str(path), "points", facts, _histogram(points.z_m, "z_m"))


def _archive(path: Path) -> Info:
    found = npz.read_npz(path)
    if "note" in found and "depth_m" in found:
        return _depth_map(path, DepthMap.load(path))
    facts = {
        name: {"shape": list(values.shape), "type": str(values.dtype), **_numbers(values)}
        for name, values in found.items()
    }
    depth = found.get("depth_m")
    return Info(
        str(path),
        "arrays",
        {"format": NPZ.name, "arrays": facts},
        None if depth is None else _histogram(depth, "depth_m"),
    )


def _depth_map(path: Path, depth_map: DepthMap) -> Info:
    rows, cols = depth_map.depth_m.shape
    flags = {name: share for name, share in share_of_each(depth_map.flags).items() if share}
    facts: Facts = {
        "format": NPZ.name,
        "rows": rows,
        "cols": cols,
        "method": depth_map.method,
        "options": depth_map.options.model_dump(exclude_none=True),
        "rig": _rig_facts(depth_map.rig),
        "density": depth_map.density,
        "depth_m": _range(depth_map.depth_m),
        "sigma_m": _range(depth_map.sigma_m),
        "confidence": _range(depth_map.confidence),
        "has_intensity": depth_map.intensity is not None,
        "flags": flags,
        "warnings": list(depth_map.warnings),
        "timings_s": dict(depth_map.timings_s),
    }
    return Info(
        str(path),
        "depth map",
        facts,
        _histogram(depth_map.depth_m, "depth_m"),
    )


def _text(path: Path) -> Info:
    """Describe a text file of D3S, known by its suffix."""
    suffix = path.suffix.lower()
    if suffix == ".toml":
        return _document(path)
    if path.name.endswith(note.CAMERA_SUFFIX):
        facts = note.read_camera(path)._asdict()
        known = {name: value for name, value in facts.items() if value is not None}
        return Info(str(path), "camera", known)
    if suffix in CSV.suffixes:
        return _table(path)
    depth = ", ".join(
        suffix for one in FORMATS if one.reads_depth and not one.image for suffix in one.suffixes
    )
    raise InputError(
        f"{path}: is none of the files that D3S knows: images ({', '.join(IMAGE_SUFFIXES)}), files "
        f"of depth ({depth}), tables (.csv), rigs and recipes (.toml), and folders."
    )


def _document(path: Path) -> Info:
    with named(path):
        text = read_file(path, _MAX_BYTES)
    if re.search(rb"^\s*\[scene", text, re.MULTILINE):
        return Info(str(path), "recipe", _recipe_facts(Recipe.load(path)))
    return Info(str(path), "rig", _rig_facts(Rig.load(path)))


def _table(path: Path) -> Info:
    with named(path):
        lines = read_file(path, _MAX_BYTES).splitlines()
    names = lines[0].decode("utf-8", "replace")[:1000].split(",")
    return Info(str(path), "table", {"columns": names, "rows": len(lines) - 1})


def _folder(path: Path) -> Info:
    try:
        names = sorted(one.name for one in path.iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}. Check its rights.") from error
    if _ZARR in names:
        return _zarr(path)
    counts = Counter(Path(name).suffix.lower() or "others" for name in names)
    facts: Facts = {"files": dict(sorted(counts.items()))}
    kind = "folder"
    if DISTANCES_NAME in names:
        kind, facts["distances"] = "folder of captures", _table(path / DISTANCES_NAME).facts["rows"]
    if RECIPE_NAME in names:
        kind = "simulated folder"
        facts["recipe"] = _recipe_facts(Recipe.load(path / RECIPE_NAME))
    return Info(str(path), kind, facts)


def _zarr(path: Path) -> Info:
    """Zarr group or array, by its metadata; depth maps of many frames say more."""
    found = _metadata(path)
    told = found.get("attributes") or {}
    arrays = {path.name: found} if "shape" in found else {}
    for one in sorted(path.iterdir()):
        if (one / _ZARR).is_file():
            arrays[one.name] = _metadata(one)
    facts: Facts = {
        name: f"{one['data_type']} {' x '.join(map(str, one['shape']))}"
        for name, one in arrays.items()
        if "shape" in one
    }
    if told.get("kind") != "d3s depth maps":
        return Info(str(path), "Zarr arrays", facts)
    whole = sum(one.name.startswith("c.") for one in (path / "done").iterdir())
    first: Facts = {"frames": len(told["frames"]), "frames_that_are_whole": whole}
    facts = {**first, "method": told["method"], "rig": told["rig"]["name"], **facts}
    return Info(str(path), "depth maps of many frames", facts)


def _metadata(path: Path) -> Facts:
    try:
        found = json.loads((path / _ZARR).read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: its {_ZARR} cannot be read. Is it a Zarr array?") from error
    return found if isinstance(found, dict) else {}


def _recipe_facts(recipe: Recipe) -> Facts:
    return {
        "of": recipe.kind,
        "scene": recipe.model_dump(exclude_none=True)["scene"],
        "frames": recipe.frame_count,
        "shape": None if recipe.shape is None else list(recipe.shape),
        "seed": recipe.seed,
        "psf": recipe.psf,
        "rig": recipe.rig.name,
        "d3s_version": recipe.d3s_version,
    }


def _rig_facts(rig: Rig) -> Facts:
    optics = rig.optics
    facts: Facts = {
        "name": rig.name,
        "baseline_m": optics.baseline_m,
        "focal_length_px": optics.focal_length_px,
        "focus_distances_m": [_finite(one) for one in optics.focus_distances_m],
        "f_number": _finite(optics.f_number),
        "pixel_pitch_m": optics.pixel_pitch_m,
        "calibrated": rig.calibration is not None,
    }
    if rig.stereo is not None:
        facts |= {
            "principal_point_px": list(rig.stereo.principal_point_px),
            "disparity_offset_px": optics.disparity_offset_px,
            "pictures": "rectified" if rig.stereo.raw_cameras is None else "raw, to be rectified",
        }
        if rig.stereo.shape is not None:
            facts["views_px"] = list(rig.stereo.shape)
    if rig.calibration is not None:
        facts |= {
            "views_px": [rig.calibration.crop_rows_px, rig.calibration.crop_cols_px],
            "frame_px": [rig.calibration.frame_rows_px, rig.calibration.frame_cols_px],
            "calibrated_on": rig.calibration.provenance.created,
            "verdict": rig.calibration.provenance.verdict,
            "rectification_sigma_px": rig.rectification_sigma_px(),
            "rectification_sigma_after_a_year_px": rig.rectification_sigma_px(365.25),
        }
        if rig.calibration.bayer is not None:
            gains = rig.calibration.channel_gains
            facts["bayer"] = rig.calibration.bayer
            facts["channel_gains"] = None if gains is None else list(gains)
        if rig.calibration.history:
            facts["changes"] = [
                {"made": one.made, "reason": one.reason, **one.drift}
                for one in rig.calibration.history
            ]
        if rig.calibration.lenses is not None:
            facts["lenses"] = _lens_facts(rig.calibration.lenses, optics)
    return facts


def _lens_facts(lenses: LensMaps, optics: Optics) -> Facts:
    """Disparity that a calibration of lenses leaves, on the axis and at the edge of the field."""
    variance = lenses.disparity_variance(optics)
    return {
        "field_radius_px": lenses.field_radius_px,
        "disparity_sigma_px": lenses.disparity_sigma_px,
        "edge_sigma_px": lenses.edge_sigma_px,
        "scale_sigma": lenses.scale_sigma,
        "sigma_on_the_axis_px": {
            f"at_{depth_m:g}_m": float(np.sqrt(variance.at(0.0, 0.0, 1 / depth_m)))
            for depth_m in (0.3, 1.0, 2.0)
        },
    }


def _numbers(values: NDArray[Any]) -> Facts:
    """Range of an array of numbers; of a single number, its value."""
    if values.dtype.kind not in "buif":
        return {"value": str(values)[:80]} if not values.shape else {}
    if not values.shape:
        return {"value": _finite(float(values))}
    return _range(values)


def _range(values: NDArray[Any]) -> Facts:
    """Smallest, largest, mean and percentiles of the finite values, and their share."""
    known = _known(values)
    if not known.size:
        return {"known": 0.0}
    with np.errstate(over="ignore", invalid="ignore"):
        percentiles = [_finite(one) for one in np.percentile(known, PERCENTS).tolist()]
    return {
        "known": known.size / values.size,
        "least": float(known.min()),
        "largest": float(known.max()),
        "mean": _finite(float(known.mean(dtype=np.float64))),
        "percentiles": dict(zip(map(str, PERCENTS), percentiles, strict=True)),
    }


def _histogram(values: NDArray[Any], of: str) -> Facts | None:
    known = _known(values)
    if not known.size:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (float(end) for end in np.percentile(known, _ENDS_PERCENT))
    if not high > low:
        low, high = float(known.min()), float(known.max())
    if not low < high < low + _WIDEST:
        return None
    edges = np.linspace(low, high, _BINS + 1)
    counts, _ = np.histogram(np.clip(known.astype(np.float64), low, high), edges)
    return {"of": of, "edges": edges.tolist(), "counts": counts.tolist()}


def _known(values: NDArray[Any]) -> NDArray[Any]:
    numbers = values.astype(np.uint8) if values.dtype.kind == "b" else values
    known: NDArray[Any] = numbers[np.isfinite(numbers)]
    return known


def _finite(value: float) -> float | None:
    """Number, or None where JSON has no such number."""
    return value if np.isfinite(value) else None
