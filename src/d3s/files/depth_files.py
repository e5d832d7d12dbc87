"""Files of depth, out and back in.

The suffix chooses the format when one is written. What is read is known by its first bytes,
whatever its suffix.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s import atomic
from d3s.errors import InputError
from d3s.files import (
    arrays,
    camera_file,
    csv_points,
    depth_png,
    exr,
    netpbm,
    note,
    npy,
    ply,
    png,
    tiff,
)
from d3s.files.depth_image import LAYERS, DepthImage, Points, check_camera, points_of
from d3s.files.images import MAX_PIXELS
from d3s.files.note import notes_in
from d3s.files.raw import named, open_file, read_rest
from d3s.types import Image

MILLIMETRE_M = 0.001
_MAX_BYTES = 2_000_000_000
_ZIP = b"PK"

# Of OpenEXR: Z is depth and Y is luminance wherever such files are read.
_EXR_NAMES = {"depth_m": "Z", "intensity": "Y", "sigma_m": "sigma", "confidence": "confidence"}


class DepthFormat(NamedTuple):
    """A format that depth is written in."""

    words: str
    keeps: tuple[str, ...]  # of the layers beside the depth
    has_camera: bool  # in the file itself; else it is in one beside it
    encode: Callable[[DepthImage, float], bytes]


def _encode_exr(image: DepthImage, _: float) -> bytes:
    images = {_EXR_NAMES[name]: getattr(image, name) for name in ("depth_m", *image.layers)}
    return exr.encode(exr.Layers(images, {note.KEY: note.note_of(image)}))


def _encode_tiff(image: DepthImage, _: float) -> bytes:
    return tiff.encode(image.depth_m, note.note_of(image))


FORMATS: dict[str, DepthFormat] = {
    ".png": DepthFormat("16-bit depth", (), False, depth_png.encode),
    ".tiff": DepthFormat("depth as floats", (), True, _encode_tiff),
    ".tif": DepthFormat("depth as floats", (), True, _encode_tiff),
    ".pfm": DepthFormat(
        "depth as floats", (), False, lambda image, _: netpbm.encode_pfm(image.depth_m)
    ),
    ".npy": DepthFormat("depth as floats", (), False, lambda image, _: npy.encode(image.depth_m)),
    ".exr": DepthFormat("layers of floats", LAYERS, True, _encode_exr),
    ".ply": DepthFormat("points", LAYERS, True, lambda image, _: ply.encode(points_of(image))),
    ".csv": DepthFormat(
        "points as text", LAYERS, True, lambda image, _: csv_points.encode(points_of(image))
    ),
}
"""By their suffixes."""

POINT_ENCODERS: dict[str, Callable[[Points], bytes]] = {
    ".ply": ply.encode,
    ".csv": csv_points.encode,
}
"""Of what has points already, by their suffixes."""


def write_depth(
    path: str | os.PathLike[str],
    content: DepthImage | Points,
    *,
    unit_m: float = MILLIMETRE_M,
    overwrite: bool = False,
) -> list[Path]:
    """Write depth in the format of the suffix, whole or not at all.

    Parameters
    ----------
    path
        The file to write. Beside `.png`, `.pfm` and `.npy`, which other programs could not find it
        in, the camera goes into a file of its own, if it is known: scene.camera.json.
    content
        Depths of an image, or points.
    unit_m
        What 1 means in a PNG file, in metres.
    overwrite
        Whether files that hold something else may be replaced.

    Returns
    -------
    list of Path
        What was written, the file itself first.

    Raises
    ------
    InputError
        When the suffix is unknown, or cannot hold this.
    OutputError
        When a file cannot be written, or would replace another.
    """
    with named(path):
        if isinstance(content, Points):
            encoded, camera = _point_encoder(path)(content), None
        else:
            chosen = format_of(path)
            encoded = chosen.encode(content, unit_m)
            camera = None if chosen.has_camera else camera_file.encode(content)
    if camera is not None:  # first: where the file is, it is complete
        atomic.write_bytes(camera_file.beside(path), camera, overwrite=overwrite)
    atomic.write_bytes(path, encoded, overwrite=overwrite)
    written = [Path(os.fsdecode(path))]
    return written if camera is None else [*written, camera_file.beside(path)]


def format_of(path: str | os.PathLike[str]) -> DepthFormat:
    """The format that a suffix chooses.

    Raises
    ------
    InputError
        Naming the suffixes that there are.
    """
    suffix = Path(os.fsdecode(path)).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"depth is written as {', '.join(FORMATS)}, and this ends in {suffix or 'nothing'}. "
            "Give the name one of these suffixes."
        )
    return FORMATS[suffix]


def lost(
    content: DepthImage | Points, path: str | os.PathLike[str], unit_m: float = MILLIMETRE_M
) -> tuple[str, ...]:
    """What a file does not hold that was known, in words."""
    if isinstance(content, Points):
        return ()
    chosen = format_of(path)
    words = [*(name for name in content.layers if name not in chosen.keeps), *content.more]
    if chosen.encode is depth_png.encode:
        words.append(f"all that is finer than {1e3 * unit_m:g} mm")
    if chosen.words.startswith("points") and content.density < 1:
        words.append("pixels without depth")
    return tuple(words)


def check_target(content: DepthImage | Points, path: str | os.PathLike[str]) -> None:
    """Refuse a file that could not hold this, as its name and the content show.

    Raises
    ------
    InputError
        With what could be written instead.
    """
    if Path(os.fsdecode(path)).suffix.lower() == ".npz":
        raise InputError(
            "an .npz holds all of a depth map, with its rig and options, and only an estimate has "
            "them. Write .tiff or .exr, or make the .npz with d3s depth."
        )
    if isinstance(content, Points):
        _point_encoder(path)
    elif format_of(path).words.startswith("points"):
        check_camera(content)


def _point_encoder(path: str | os.PathLike[str]) -> Callable[[Points], bytes]:
    suffix = Path(os.fsdecode(path)).suffix.lower()
    if suffix not in POINT_ENCODERS:
        format_of(path)  # an unknown suffix is another error
        raise InputError(
            "points have lost the image that they come from, so they become "
            f"{' or '.join(POINT_ENCODERS)} only. Begin with the .npz, or another file of depth."
        )
    return POINT_ENCODERS[suffix]


def read_depth(
    path: str | os.PathLike[str],
    *,
    unit_m: float | None = None,
    max_pixels: int = MAX_PIXELS,
) -> DepthImage | Points:
    """Depth of a file that `write_depth` has written, or of another of these formats.

    Reads NPZ, PNG, TIFF, PFM, NPY, OpenEXR and PLY. Whatever is no number above zero is no depth:
    it becomes NaN.

    Parameters
    ----------
    path
        The file. It is known by its first bytes, whatever its suffix.
    unit_m
        What 1 means in a PNG file that does not say it itself, in metres.
    max_pixels
        Refuse a file with more.

    Raises
    ------
    InputError
        Naming the file, what is wrong and the likely remedy.
    """
    with named(path):
        with open_file(path) as file:
            start = file.read(8)
            reader = next((_READERS[magic] for magic in _READERS if start.startswith(magic)), None)
            if reader is None and not start.startswith((_ZIP, png.SIGNATURE)):
                raise InputError(
                    "does not begin like a file of depth. Those are NPZ, PNG, TIFF, PFM, NPY, "
                    "OpenEXR and PLY."
                )
            raw = read_rest(file, _MAX_BYTES)
        if reader is not None:
            found = reader(raw, max_pixels)
        elif start.startswith(_ZIP):
            found = _from_npz(arrays.unpacked(raw))
        else:
            found = depth_png.read(raw, max_pixels, unit_m)
    if isinstance(found, Points):
        return found
    return _with_camera(found, path)


def _with_camera(image: DepthImage, path: str | os.PathLike[str]) -> DepthImage:
    """The same, with the camera of the file beside it if it has none itself."""
    if image.focal_length_px is not None:
        return image
    return replace(image, focal_length_px=camera_file.focal_length_px(path, image.depth_m.shape))


def _depths(values: NDArray[Any]) -> Image:
    """Depths as floats, with NaN for all that cannot be one."""
    if values.dtype.kind != "f":
        raise InputError(
            f"has values of type {values.dtype}, and depths are floats. Is it a picture?"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        depth_m = np.array(values, dtype=np.float32)
        depth_m[~((depth_m > 0) & (depth_m < np.inf))] = np.nan
    return depth_m


def _from_samples(values: NDArray[Any], told: dict[str, Any]) -> DepthImage:
    grey = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if grey.ndim != 2:
        raise InputError("has colours, and depths have none. Is it a picture?")
    return DepthImage(
        depth_m=_depths(grey),
        focal_length_px=note.focal_length_px(told),
        notes=notes_in(told),
    )


def _from_tiff(raw: bytes, max_pixels: int) -> DepthImage:
    samples = tiff.read(raw, max_pixels)
    text = tiff.description(raw)
    return _from_samples(samples.values, note.of_depth(text) if text.startswith(note.START) else {})


def _from_exr(raw: bytes, max_pixels: int) -> DepthImage:
    images, texts = exr.read(raw, max_pixels)
    names = [name for name in (_EXR_NAMES["depth_m"], *images) if name in images]
    if len(images) > 1 and names[0] != _EXR_NAMES["depth_m"]:
        raise InputError(f"has the channels {', '.join(images)[:200]}, and depth is in Z.")
    told = note.of_depth(texts[note.KEY]) if note.KEY in texts else {}
    found = _from_samples(images[names[0]], told)
    return _with_layers(found, {name: images.get(channel) for name, channel in _EXR_NAMES.items()})


def _from_npz(found: dict[str, NDArray[Any]]) -> DepthImage:
    if "depth_m" not in found:
        raise InputError(f"has the arrays {', '.join(found)[:200]}, and no depth_m.")
    if "anchor_left_px" in found:
        raise InputError(
            "is the truth of a raw frame, whose depths lie in two views that are not rectified. "
            "Simulate a pair, for depths of one view."
        )
    told = _told(found.get("note"))
    matrix = found.get("K")
    if matrix is not None and matrix.shape == (3, 3) and matrix.dtype.kind == "f":
        told["focal_length_px"] = float(matrix[0, 0])
    image = _with_layers(_from_samples(found["depth_m"], told), found)
    more = set(found) - {"depth_m", "K", "note", *image.layers}
    options = ("rig and options",) if "note" in found else ()
    return replace(image, more=(*sorted(more), *options))


def _with_layers(image: DepthImage, found: Mapping[str, NDArray[Any] | None]) -> DepthImage:
    """The same, with all that was found beside the depth."""
    layers: dict[str, Any] = {}
    for name in LAYERS:
        values = found.get(name)
        if values is not None and values.dtype.kind in "buif":
            with np.errstate(over="ignore"):
                layers[name] = values.astype(np.float32)
    return replace(image, **layers)


def _told(text: NDArray[Any] | None) -> dict[str, Any]:
    """Of the note of a depth map what other files have in theirs."""
    if text is None or text.shape or text.dtype.kind != "U":
        return {}
    told = note.parsed(str(text))
    rig = told.get("rig")
    named_rig = {"camera": rig["name"]} if isinstance(rig, dict) and "name" in rig else {}
    return {**notes_in(told), **named_rig}


_Reader = Callable[[bytes, int], DepthImage | Points]
_READERS: dict[bytes, _Reader] = {
    **dict.fromkeys(tiff.MAGICS, _from_tiff),
    **dict.fromkeys(
        (b"Pf", b"PF"), lambda raw, most: _from_samples(netpbm.read_pfm(raw, most).values, {})
    ),
    npy.MAGIC: lambda raw, most: _from_samples(npy.read(raw, most).values, {}),
    exr.MAGIC: _from_exr,
    ply.MAGIC: lambda raw, _: ply.read(raw),
}
