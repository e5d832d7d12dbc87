"""PGM, PPM and PFM: a header of text, then the samples."""

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.raw import Samples, check_size, cut_short

_HEADER_BYTES = 4096
_GAP = rb"(?:\s|#[^\n\r]*[\n\r])+"
_PNM = re.compile(rb"P([56])" + _GAP + _GAP.join([rb"(\d{1,12})"] * 3) + rb"\s")
_PFM = re.compile(rb"P([fF])\s+(\d{1,12})\s+(\d{1,12})\s+([-+.\deE]{1,40})\s")


def read_pnm(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a binary PGM or PPM file; full scale is the maxval of its header."""
    if raw[1:2] not in b"56":
        raise InputError(
            f"is a PNM file of type {raw[:2].decode()}, and P5 (grey) and P6 (colour) are read. "
            "Save it as binary PGM, or as PNG."
        )
    header = _PNM.match(raw[:_HEADER_BYTES])
    if header is None:
        raise cut_short("has no proper PGM header")
    width, height, maxval = (int(number) for number in header.groups()[1:])
    check_size(width, height, max_pixels)
    if not 1 <= maxval <= 65535:
        raise cut_short(f"has maxval={maxval} in its header, and 1 to 65535 can be")
    kind = np.dtype(np.uint8 if maxval < 256 else ">u2")
    values = _samples(raw, header.end(), kind, (height, width, 1 if header[1] == b"5" else 3))
    if values.max() > maxval:
        raise cut_short(f"has a sample of {values.max()}, above maxval={maxval} in its header")
    return Samples(values=values, full_scale=maxval)


def read_pfm(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a PFM file, top row first. Of its scale only the sign is used: the byte order."""
    header = _PFM.match(raw[:_HEADER_BYTES])
    if header is None:
        raise cut_short("has no proper PFM header")
    width, height = int(header[2]), int(header[3])
    check_size(width, height, max_pixels)
    kind = np.dtype("<f4" if _scale(header[4]) < 0 else ">f4")
    shape = (height, width, 1 if header[1] == b"f" else 3)
    return Samples(values=_samples(raw, header.end(), kind, shape)[::-1], full_scale=None)


def encode_pfm(image: NDArray[np.float32]) -> bytes:
    """PFM file of a grey image: little-endian, the bottom row first."""
    height, width = image.shape
    return f"Pf\n{width} {height}\n-1.0\n".encode() + image[::-1].astype("<f4").tobytes()


def _scale(text: bytes) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if scale == 0 or not math.isfinite(scale):
        raise cut_short(f"has scale={text.decode()} in its PFM header, which is no such number")
    return scale


def _samples(
    raw: bytes, start: int, kind: np.dtype[Any], shape: tuple[int, int, int]
) -> NDArray[Any]:
    expected = math.prod(shape) * kind.itemsize
    if len(raw) - start != expected:
        raise cut_short(f"has {len(raw) - start} bytes of samples, and its header says {expected}")
    return np.frombuffer(raw, kind, offset=start).reshape(shape)
