"""Disparity in files: PFM as Middlebury has it, and 16-bit PNG as KITTI has it."""

import os
from pathlib import Path

import numpy as np

from d3s import atomic
from d3s.errors import InputError
from d3s.files import netpbm, png
from d3s.files.raw import named
from d3s.types import Image

KITTI_STEPS = 256
"""Steps of a pixel in a PNG file."""

DISPARITY_SUFFIXES = ".pfm", ".png"
"""Suffixes of the files that `write_disparity` writes."""

_LARGEST = 65535


def write_disparity(
    path: str | os.PathLike[str], disparity_px: Image, *, overwrite: bool = False
) -> Path:
    """Write disparities in the format of the suffix, whole or not at all.

    `.pfm` has 32-bit floats, infinite where there is none, as Middlebury and ETH3D have it. `.png`
    has 16-bit integers of 1/256 px, 0 where there is none, as KITTI has it; a disparity nearer to 0
    than a step becomes one step.

    Parameters
    ----------
    path
        The file to write.
    disparity_px
        Disparities (rows, cols) x_left - x_right in pixels, NaN where there is none.
    overwrite
        Whether a file that holds something else may be replaced.

    Raises
    ------
    InputError
        If the suffix is unknown, or a PNG file cannot hold a disparity.
    OutputError
        If the file cannot be written, or would replace another.
    """
    where = Path(os.fsdecode(path))
    with named(path):
        encode = {".pfm": _pfm, ".png": _png}.get(where.suffix.lower())
        if encode is None:
            raise InputError(
                f"disparity is written as {' or '.join(DISPARITY_SUFFIXES)}. Give the name one of "
                "these suffixes."
            )
        encoded = encode(np.asarray(disparity_px, dtype=np.float32))
    atomic.write_bytes(path, encoded, overwrite=overwrite)
    return where


def _pfm(disparity_px: Image) -> bytes:
    return netpbm.encode_pfm(np.where(np.isnan(disparity_px), np.float32(np.inf), disparity_px))


def _png(disparity_px: Image) -> bytes:
    steps = np.rint(disparity_px.astype(np.float64) * KITTI_STEPS)
    known = steps[np.isfinite(steps)]
    if known.size and (known.min() < 0 or known.max() > _LARGEST):
        raise InputError(
            f"disparities from {np.nanmin(disparity_px):.4g} to {np.nanmax(disparity_px):.4g} px "
            f"do not fit into 16 bit of 1/{KITTI_STEPS} px, which go from 0 to "
            f"{_LARGEST / KITTI_STEPS:.1f} px. Write .pfm, which holds any."
        )
    return png.encode(np.nan_to_num(np.maximum(steps, 1), nan=0.0).astype(np.uint16))
