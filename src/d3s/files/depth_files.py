"""Files of depth, out and back in; and of disparity, as Middlebury and KITTI have it.

The suffix chooses the format when one is written. A file that is read is known by its first bytes.
"""

import os
from pathlib import Path

import numpy as np

from d3s import atomic, formats
from d3s.errors import InputError
from d3s.files import netpbm, note, pictures
from d3s.files.codecs import CHECKS, CODECS
from d3s.files.depth_image import DepthImage, Points, check_camera
from d3s.files.raw import named, open_file, read_rest
from d3s.formats import MAX_PIXELS, Format
from d3s.types import Image

MILLIMETRE_M = 0.001
_MAX_BYTES = 2_000_000_000
KITTI_STEPS = 256
"""Steps of a pixel in a PNG file."""

DISPARITY_SUFFIXES = ".pfm", ".png"
"""Suffixes of the files that `write_disparity` writes."""

_LARGEST_STEP = 65535

FORMATS: dict[str, Format] = {
    suffix: one for suffix, one in formats.DEPTH_SUFFIXES.items() if one is not formats.NPZ
}
"""Formats that `write_depth` writes, by suffix."""

_POINT_SUFFIXES = tuple(suffix for suffix, one in FORMATS.items() if one.is_points)


def write_depth(
    path: str | os.PathLike[str],
    content: DepthImage | Points,
    *,
    unit_m: float = MILLIMETRE_M,
    overwrite: bool = False,
) -> list[Path]:
    """Write depth in the format of the suffix, whole or not at all; return the files.

    Other programs do not find a camera inside `.png`, `.pfm` and `.npy`: beside these the camera,
    if it is known, is written to a file of its own, scene.camera.json for scene.png. `unit_m` is
    the unit of the integers in a PNG file, 1e-6 to 1 m. An `InputError`: the suffix is unknown, or
    its format cannot hold the content.
    """
    with named(path):
        encoded, camera = _encoded(path, content, unit_m)
    if camera is not None:  # first: once the depth file is there, it is complete
        atomic.write_bytes(note.camera_beside(path), camera, overwrite=overwrite)
    atomic.write_bytes(path, encoded, overwrite=overwrite)
    written = [Path(os.fsdecode(path))]
    return written if camera is None else [*written, note.camera_beside(path)]


def _encoded(
    path: str | os.PathLike[str], content: DepthImage | Points, unit_m: float
) -> tuple[bytes, bytes | None]:
    """Bytes of the file, and of the camera file if it needs one."""
    chosen = _format_for(content, path)
    encode = CODECS[chosen.name].encode_depth
    if encode is None:
        raise InputError("holds no depth.")
    if isinstance(content, Points) or chosen.has_camera_inside:
        return encode(content, unit_m), None
    return encode(content, unit_m), note.encode_camera(content)


def format_of(path: str | os.PathLike[str]) -> Format:
    """Format that the suffix of a file of depth chooses; its package must be installed."""
    suffix = Path(os.fsdecode(path)).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"depth is written as {', '.join(FORMATS)}, and this ends in {suffix or 'nothing'}. "
            "Give the name one of these suffixes."
        )
    chosen = FORMATS[suffix]
    if chosen.name in CHECKS:
        CHECKS[chosen.name]()
    return chosen


def lost(
    content: DepthImage | Points, path: str | os.PathLike[str], unit_m: float = MILLIMETRE_M
) -> tuple[str, ...]:
    """Name what the content has and a file of this suffix, or PNG of this unit, does not hold."""
    if isinstance(content, Points):
        return ()
    chosen = format_of(path)
    words = [*(name for name in content.layers if name not in chosen.layers), *content.more]
    if content.colour is not None and not (chosen.is_points or chosen is formats.MCAP):
        words.append("colour")
    if chosen is formats.PNG:
        words.append(f"all that is finer than {1e3 * unit_m:g} mm")
    if chosen.is_points and content.density < 1:
        words.append("pixels without depth")
    return tuple(words)


def check_target(content: DepthImage | Points, path: str | os.PathLike[str]) -> None:
    """Raise an `InputError` if a file cannot hold the content, before anything is written."""
    if Path(os.fsdecode(path)).suffix.lower() in formats.NPZ.suffixes:
        raise InputError(
            "an .npz holds all of a depth map, with its rig and options, and only an estimate has "
            "them. Write .tiff or .exr, or make the .npz with d3s depth."
        )
    chosen = _format_for(content, path)
    if isinstance(content, DepthImage) and (chosen.is_points or chosen is formats.MCAP):
        check_camera(content)


def _format_for(content: DepthImage | Points, path: str | os.PathLike[str]) -> Format:
    chosen = format_of(path)
    if isinstance(content, Points) and not chosen.is_points:
        raise InputError(
            "points have lost the image that they come from, so they become "
            f"{' or '.join(_POINT_SUFFIXES)} only. Begin with the .npz, or another file of depth."
        )
    return chosen


def read_depth(
    path: str | os.PathLike[str],
    *,
    unit_m: float | None = None,
    max_pixels: int = MAX_PIXELS,
) -> DepthImage | Points:
    """Read depth from a file of `write_depth`, or from another of these formats.

    Reads NPZ, PNG, TIFF, PFM, NPY, OpenEXR and PLY, known by their first bytes and not by their
    suffix. All that is no number above zero is no depth: it becomes NaN. `unit_m` is for a PNG file
    that does not state it. A file with more than `max_pixels` is refused.
    """
    with named(path):
        with open_file(path) as file:
            found = formats.format_of_bytes(file.read(8))
            reader = None if found is None else CODECS[found.name].read_depth
            if reader is None:
                raise InputError(
                    f"does not begin like a file of depth. Those are {formats.depth_names()}."
                )
            raw = read_rest(file, _MAX_BYTES)
        content = reader(raw, max_pixels, unit_m)
    return content if isinstance(content, Points) else _with_camera(content, path)


def _with_camera(image: DepthImage, path: str | os.PathLike[str]) -> DepthImage:
    """Depth image with the camera of the file beside it, if it has none itself."""
    if image.focal_length_px is not None:
        return image
    camera = note.camera_of(path, image.depth_m.shape)
    if camera is None:
        return image
    return image.with_camera(camera.focal_length_px, camera.principal_point_px)


def write_disparity(
    path: str | os.PathLike[str], disparity_px: Image, *, overwrite: bool = False
) -> Path:
    """Write disparities in the format of the suffix, whole or not at all.

    They are x_left - x_right in pixels, NaN where there is none. `.pfm` has 32-bit floats, infinite
    where there is none, as Middlebury and ETH3D have it. `.png` has 16-bit integers of 1/256 px, 0
    where there is none, as KITTI has it; a disparity nearer to 0 than a step becomes one step.
    """
    where = Path(os.fsdecode(path))
    with named(path):
        values = np.asarray(disparity_px, dtype=np.float32)
        if where.suffix.lower() == ".pfm":
            encoded = netpbm.encode_pfm(np.where(np.isnan(values), np.float32(np.inf), values))
        elif where.suffix.lower() == ".png":
            encoded = _disparity_png(values)
        else:
            raise InputError(
                f"disparity is written as {' or '.join(DISPARITY_SUFFIXES)}. Give the name one of "
                "these suffixes."
            )
    atomic.write_bytes(path, encoded, overwrite=overwrite)
    return where


def _disparity_png(disparity_px: Image) -> bytes:
    steps = np.rint(disparity_px.astype(np.float64) * KITTI_STEPS)
    known = steps[np.isfinite(steps)]
    if known.size and (known.min() < 0 or known.max() > _LARGEST_STEP):
        raise InputError(
            f"disparities from {np.nanmin(disparity_px):.4g} to {np.nanmax(disparity_px):.4g} px "
            f"do not fit into 16 bit of 1/{KITTI_STEPS} px, which go from 0 to "
            f"{_LARGEST_STEP / KITTI_STEPS:.1f} px. Write .pfm, which holds any."
        )
    return pictures.encode_png(np.nan_to_num(np.maximum(steps, 1), nan=0.0).astype(np.uint16))
