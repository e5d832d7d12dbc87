"""Readers and writers of every format, bound to the rows of the table `d3s.formats`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s import formats
from d3s.errors import InputError
from d3s.files import arrays, depth_png, exr, netpbm, note, pictures, points, ros, tiff
from d3s.files.depth_image import DepthImage, Points
from d3s.files.raw import Samples
from d3s.formats import LAYERS
from d3s.types import Image

# Channels of OpenEXR: Z is depth and Y is luminance wherever such files are read.
_EXR_NAMES = {"depth_m": "Z", "intensity": "Y", "sigma_m": "sigma", "confidence": "confidence"}
_BLOCK_PIXELS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Codec:
    """Functions from and to the bytes of a file; None where a format has none."""

    # Arguments: the bytes and the most pixels.
    read_image: Callable[[bytes, int], Samples] | None = None
    # The bytes, the most pixels, and the unit in metres for a PNG that does not state it.
    read_depth: Callable[[bytes, int, float | None], DepthImage | Points] | None = None
    encode_image: Callable[[Image], bytes] | None = None
    # The image, or points if the format is one of points; and the unit in metres for a PNG.
    encode_depth: Callable[[Any, float], bytes] | None = None


def check_finite(image: Image, remedy: str) -> None:
    """Refuse an image with NaN or infinite values; the error ends with the remedy."""
    wrong = image.size - int(np.count_nonzero(np.isfinite(image)))
    if wrong:
        raise InputError(f"{wrong} of {image.size} values are NaN or infinite. {remedy}")


def _encode_image_png(image: Image) -> bytes:
    check_finite(image, "PNG cannot hold them: write .tif, .pfm or .npy.")
    levels = np.empty(image.shape, np.uint16)
    step = max(1, _BLOCK_PIXELS // image.shape[1])
    for row in range(0, len(image), step):
        block = np.clip(image[row : row + step].astype(np.float64), 0, 1)
        levels[row : row + step] = np.rint(block * 65535)
    return pictures.encode_png(levels)


def _encode_depth_exr(image: DepthImage, _: float) -> bytes:
    images = {_EXR_NAMES[name]: getattr(image, name) for name in ("depth_m", *image.layers)}
    return exr.encode(images, {note.KEY: note.make_note(image)})


def _depths(values: NDArray[Any]) -> Image:
    """Depths as floats, NaN for all that is no number above zero."""
    if values.dtype.kind != "f":
        raise InputError(
            f"has values of type {values.dtype}, and depths are floats. Is it a picture?"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        depth_m = np.array(values, dtype=np.float32)
        depth_m[~((depth_m > 0) & (depth_m < np.inf))] = np.nan
    return depth_m


def _depth_image(values: NDArray[Any], entries: dict[str, Any]) -> DepthImage:
    """Depth image of samples and of the entries of a note."""
    grey = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if grey.ndim != 2:
        raise InputError("has colours, and depths have none. Is it a picture?")
    return DepthImage(
        depth_m=_depths(grey),
        focal_length_px=note.focal_length_px(entries),
        principal_point_px=note.principal_point_px(entries, grey.shape),
        notes=note.notes_for_people(entries),
    )


def _read_depth_tiff(raw: bytes, max_pixels: int, _: float | None) -> DepthImage:
    samples = tiff.read(raw, max_pixels)
    text = tiff.description(raw)
    has_note = text.startswith(note.START)
    return _depth_image(samples.values, note.parse_depth_note(text) if has_note else {})


def _read_depth_exr(raw: bytes, max_pixels: int, _: float | None) -> DepthImage:
    images, texts = exr.read(raw, max_pixels)
    names = [name for name in (_EXR_NAMES["depth_m"], *images) if name in images]
    if len(images) > 1 and names[0] != _EXR_NAMES["depth_m"]:
        raise InputError(f"has the channels {', '.join(images)[:200]}, and depth is in Z.")
    entries = note.parse_depth_note(texts[note.KEY]) if note.KEY in texts else {}
    found = _depth_image(images[names[0]], entries)
    return _with_layers(found, {name: images.get(channel) for name, channel in _EXR_NAMES.items()})


def _read_depth_npz(raw: bytes, max_pixels: int, _: float | None) -> DepthImage:
    found = arrays.unpacked(raw, max_pixels)
    if "depth_m" not in found:
        raise InputError(f"has the arrays {', '.join(found)[:200]}, and no depth_m.")
    if "anchor_left_px" in found:
        raise InputError(
            "is the truth of a raw frame, whose depths lie in two views that are not rectified. "
            "Simulate a pair, for depths of one view."
        )
    entries = _entries_of_depth_map(found.get("note"))
    matrix = found.get("K")
    if matrix is not None and matrix.shape == (3, 3) and matrix.dtype.kind == "f":
        entries["focal_length_px"] = float(matrix[0, 0])
        entries["principal_point_px"] = matrix[:2, 2].tolist()
    image = _with_layers(_depth_image(found["depth_m"], entries), found)
    colour = found.get("colour")
    if colour is not None and colour.dtype == np.uint8:
        image = replace(image, colour=colour)
    more = set(found) - {"depth_m", "K", "note", "colour", *image.layers}
    options = ("rig and options",) if "note" in found else ()
    return replace(image, more=(*sorted(more), *options))


def _with_layers(image: DepthImage, found: Mapping[str, NDArray[Any] | None]) -> DepthImage:
    """Depth image with the layers that were found beside the depth."""
    layers: dict[str, Any] = {}
    for name in LAYERS:
        values = found.get(name)
        if values is not None and values.dtype.kind in "buif":
            with np.errstate(over="ignore"):
                layers[name] = values.astype(np.float32)
    return replace(image, **layers)


def _entries_of_depth_map(text: NDArray[Any] | None) -> dict[str, Any]:
    """Entries in the note of a saved depth map that other files have in their notes too."""
    if text is None or text.shape or text.dtype.kind != "U":
        return {}
    entries = note.parsed(str(text))
    rig = entries.get("rig")
    camera = {"camera": rig["name"]} if isinstance(rig, dict) and "name" in rig else {}
    return {**note.notes_for_people(entries), **camera}


CODECS: dict[str, Codec] = {
    formats.NPZ.name: Codec(read_depth=_read_depth_npz),
    formats.PNG.name: Codec(
        read_image=pictures.read_png,
        read_depth=depth_png.read,
        encode_image=_encode_image_png,
        encode_depth=depth_png.encode,
    ),
    formats.TIFF.name: Codec(
        read_image=tiff.read,
        read_depth=_read_depth_tiff,
        encode_image=tiff.encode,
        encode_depth=lambda image, _: tiff.encode(image.depth_m, note.make_note(image)),
    ),
    formats.PNM.name: Codec(read_image=netpbm.read_pnm),
    formats.JPEG.name: Codec(read_image=pictures.read_jpeg),
    formats.BMP.name: Codec(read_image=pictures.read_bmp),
    formats.WEBP.name: Codec(read_image=pictures.read_webp),
    formats.PFM.name: Codec(
        read_image=netpbm.read_pfm,
        read_depth=lambda raw, most, _: _depth_image(netpbm.read_pfm(raw, most).values, {}),
        encode_image=netpbm.encode_pfm,
        encode_depth=lambda image, _: netpbm.encode_pfm(image.depth_m),
    ),
    formats.NPY.name: Codec(
        read_image=arrays.read_npy,
        read_depth=lambda raw, most, _: _depth_image(arrays.read_npy(raw, most).values, {}),
        encode_image=arrays.encode_npy,
        encode_depth=lambda image, _: arrays.encode_npy(image.depth_m),
    ),
    formats.EXR.name: Codec(read_depth=_read_depth_exr, encode_depth=_encode_depth_exr),
    formats.PLY.name: Codec(
        read_depth=lambda raw, _, __: points.read_ply(raw),
        encode_depth=lambda content, _: points.encode_ply(content),
    ),
    formats.CSV.name: Codec(encode_depth=lambda content, _: points.encode_csv(content)),
    formats.MCAP.name: Codec(encode_depth=lambda image, _: ros.encode(image)),
}
"""By the names of the formats."""

CHECKS = {formats.EXR.name: exr.check_installed, formats.MCAP.name: ros.check_installed}
"""Checks that the package of a format is installed, by the names of the formats."""
