"""TIFF: tifffile reads the directory, which is checked; Pillow or OpenCV decode the pixels."""

import io
import logging
import math
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.raw import ORIENTATION_TAG as _ORIENTATION
from d3s.files.raw import UPRIGHT, WORDS, Samples, check_size, cut_short, decoded_as

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_FILL_ORDER, _DESCRIPTION, _STRIP_OFFSETS, _CHANNELS, _STRIP_ROWS = 266, 270, 273, 277, 278
_STRIP_BYTES, _PLANAR, _PREDICTOR = 279, 284, 317
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES, _FORMAT = 322, 323, 324, 325, 339
_DEFAULTS = {_BITS: 1, _COMPRESSION: 1, _FILL_ORDER: 1, _CHANNELS: 1, _PLANAR: 1, _PREDICTOR: 1}
_DEFAULTS[_FORMAT] = 1
_KNOWN = {_WIDTH, _HEIGHT, _PHOTOMETRIC, _DESCRIPTION, _ORIENTATION, *_DEFAULTS}
_KNOWN |= {_STRIP_OFFSETS, _STRIP_ROWS, _STRIP_BYTES}
_KNOWN |= {_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES}
_KINDS = {(8, 1): "u1", (16, 1): "u2", (32, 3): "f4"}
_PHOTOMETRICS = {0: "white is zero", 3: "a palette", 5: "CMYK", 6: "YCbCr", 8: "L*a*b*"}
_PLAIN, _LZW, _PACKBITS, _DEFLATES = 1, 5, 32773, (8, 32946)
_MOST_PACKED = 2000  # bytes that deflate, LZW and PackBits pack into one

_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
_log_level = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class _Directory:
    """Tags of the one directory of a TIFF file, and its byte order."""

    order: str
    tags: dict[int, Any]
    orientation_at: int  # byte at which the orientation is, if there is one

    def one(self, tag: int) -> int:
        """The whole number that a tag holds, for every channel."""
        values = self.many(tag) or ((_DEFAULTS[tag],) if tag in _DEFAULTS else ())
        if len(set(values)) != 1 or (len(values) > 1 and tag not in (_BITS, _FORMAT)):
            raise cut_short(f"has no single value for TIFF tag {tag}")
        return values[0]

    def many(self, tag: int) -> tuple[int, ...]:
        """The whole numbers that a tag holds."""
        held = self.tags.get(tag, ())
        values = held if isinstance(held, tuple) else (held,)
        if not all(isinstance(value, int) and value >= 0 for value in values):
            raise cut_short(f"has no whole numbers in TIFF tag {tag}")
        return tuple(int(value) for value in values)


def read(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a TIFF file that holds one image: grey or RGB, 8, 16 or (float) 32 bit."""
    directory = _directory(raw)
    width, height = directory.one(_WIDTH), directory.one(_HEIGHT)
    check_size(width, height, max_pixels)
    _check_kind(directory)
    _check_blocks(raw, directory, max_pixels)
    channels, kind = directory.one(_CHANNELS), _KINDS[directory.one(_BITS), directory.one(_FORMAT)]
    orientation = (*directory.many(_ORIENTATION), UPRIGHT)[0]
    if orientation != UPRIGHT:  # the libraries, but not all of their versions, would turn it
        at = directory.orientation_at
        raw = raw[:at] + struct.pack(f"{directory.order}H", UPRIGHT) + raw[at + 2 :]
    is_alpha_or_tiled = channels == 4 or _TILE_OFFSETS in directory.tags
    values = _pillow(raw) if kind == "u1" and is_alpha_or_tiled else _opencv(raw)
    shape = (height, width) if channels == 1 else (height, width, channels)
    if values is None or values.shape != shape or values.dtype != kind:
        raise cut_short("has a TIFF strip or tile that does not hold what its header says")
    return Samples(
        values=values,
        full_scale={1: 255, 2: 65535}.get(values.itemsize),
        orientation=orientation if orientation in WORDS else UPRIGHT,
    )


def description(raw: bytes) -> str:
    """Text that a TIFF file has in its description tag; empty if it has none."""
    text = _directory(raw).tags.get(_DESCRIPTION, "")
    return text if isinstance(text, str) else ""


def encode(image: NDArray[np.float32], text: str | None = None) -> bytes:
    """TIFF file of a grey image: 32-bit floats, not compressed, no date, no software.

    `text`, in ASCII, becomes its description tag.
    """
    import tifffile

    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        image,
        byteorder="<",
        photometric="minisblack",
        description=text,
        metadata=None,
        software=False,
        datetime=None,
    )
    return buffer.getvalue()


def _directory(raw: bytes) -> _Directory:
    """The first directory, which must be whole and the only one."""
    import tifffile

    with decoded_as("TIFF"), _quiet_tifffile(), tifffile.TiffFile(io.BytesIO(raw)) as file:
        page = file.pages.first
        _check_directory(raw, page.offset, file.tiff)
        tags = list(page.tags)
        if len({tag.code for tag in tags}) != len(tags):
            raise cut_short("has the same TIFF tag twice")
        return _Directory(
            order=file.byteorder,
            tags={tag.code: tag.value for tag in tags if tag.code in _KNOWN},
            orientation_at=sum(tag.valueoffset for tag in tags if tag.code == _ORIENTATION),
        )


def _check_directory(raw: bytes, start: int, form: Any) -> None:
    """Refuse a directory that is cut, or that others follow."""
    first = start + form.tagnosize
    if first > len(raw):
        raise cut_short("has a TIFF directory that reaches beyond its end")
    count = struct.unpack_from(form.tagnoformat, raw, start)[0]
    last = first + count * form.tagsize
    if last + form.offsetsize > len(raw):
        raise cut_short("has a TIFF directory that reaches beyond its end")
    if any(raw[last : last + form.offsetsize]):
        raise InputError("holds several images, and one is read. Save each in a file of its own.")


def _check_kind(directory: _Directory) -> None:
    """Refuse what is a TIFF, but not one of grey or RGB samples."""
    remedy = "Save it as grey or RGB with 8 or 16 bit, or as 32-bit float."
    bits, form = directory.one(_BITS), directory.one(_FORMAT)
    if (bits, form) not in _KINDS or directory.one(_FILL_ORDER) != 1:
        kind = {1: "unsigned", 2: "signed", 3: "float"}.get(form, "unknown")
        raise InputError(f"is a TIFF of {bits}-bit {kind} samples, which is not read. {remedy}")
    photometric, channels = directory.one(_PHOTOMETRIC), directory.one(_CHANNELS)
    if photometric not in (1, 2):
        name = _PHOTOMETRICS.get(photometric, f"photometric {photometric}")
        raise InputError(f"is a TIFF of {name}, which is not read. {remedy}")
    if channels not in ((1,) if photometric == 1 else (3, 4)):
        raise InputError(f"is a TIFF with {channels} channels, which is not read. {remedy}")
    if channels > 1 and directory.one(_PLANAR) != 1:
        raise InputError(f"is a TIFF whose channels lie apart, which is not read. {remedy}")
    compression = directory.one(_COMPRESSION)
    if compression not in (_PLAIN, _LZW, _PACKBITS, *_DEFLATES):
        raise InputError(
            f"is a TIFF with compression {compression}, and none, LZW, deflate and PackBits are "
            "read. Save it without compression."
        )


def _check_blocks(raw: bytes, directory: _Directory, max_pixels: int) -> None:
    """Refuse strips or tiles that are too few or too many, or that reach beyond the file."""
    width, height = directory.one(_WIDTH), directory.one(_HEIGHT)
    if _TILE_OFFSETS in directory.tags:
        columns, rows = directory.one(_TILE_WIDTH), directory.one(_TILE_HEIGHT)
        check_size(columns, rows, max_pixels)
        names = _TILE_OFFSETS, _TILE_BYTES
    else:
        rows = directory.one(_STRIP_ROWS) if _STRIP_ROWS in directory.tags else height
        columns, rows = width, min(max(rows, 1), height)
        names = _STRIP_OFFSETS, _STRIP_BYTES
    blocks = math.ceil(width / columns) * math.ceil(height / rows)
    starts, sizes = (directory.many(name) for name in names)
    if len(starts) != blocks or len(sizes) != blocks:
        raise cut_short(f"has {len(starts)} TIFF strips or tiles, and its header says {blocks}")
    if any(start + size > len(raw) for start, size in zip(starts, sizes, strict=True)):
        raise cut_short("has TIFF strips or tiles that reach beyond its end")
    pixel_bytes = directory.one(_CHANNELS) * directory.one(_BITS) // 8
    most_packed = 1 if directory.one(_COMPRESSION) == _PLAIN else _MOST_PACKED
    if sum(sizes) * most_packed < width * height * pixel_bytes:
        raise cut_short("holds fewer TIFF pixels than its header says")


def _pillow(raw: bytes) -> NDArray[Any]:
    """Samples by Pillow: OpenCV darkens 8-bit colours by their alpha, and reads no small tiles."""
    from PIL.TiffImagePlugin import TiffImageFile

    with decoded_as("TIFF"), TiffImageFile(io.BytesIO(raw)) as picture:
        return np.asarray(picture)


def _opencv(raw: bytes) -> NDArray[Any] | None:
    """Samples by OpenCV, which has all kinds of colour; None if they are damaged."""
    import cv2

    with decoded_as("TIFF"), _quiet_opencv():
        values: NDArray[Any] | None = cv2.imdecode(
            np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED
        )
    if values is None or values.ndim == 2:
        return values
    return values[:, :, (2, 1, 0, 3)[: values.shape[2]]]  # OpenCV has blue first


@contextmanager
def _quiet_tifffile() -> Iterator[None]:
    """Drop what tifffile logs in this thread: a refusal says it in our words."""
    logging.getLogger("tifffile").addFilter(_is_loud)
    token = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def _is_loud(_: logging.LogRecord) -> bool:
    return not _is_quiet.get()


@contextmanager
def _quiet_opencv() -> Iterator[None]:
    """Keep OpenCV from printing what libtiff finds wrong. Its level is one for all threads."""
    from cv2.utils import logging as opencv

    with _log_level:
        before = opencv.setLogLevel(opencv.LOG_LEVEL_SILENT)
        try:
            yield
        finally:
            opencv.setLogLevel(before)
