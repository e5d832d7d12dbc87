"""TIFF: tifffile reads the directory, which is checked before strips or tiles are unpacked.

Strips and tiles are unpacked by zlib (deflate) and by OpenCV's libtiff (LZW and PackBits): tifffile
needs another package for these. Both give up at the declared size.
"""

import io
import logging
import math
import struct
import threading
import zlib
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
# Codes of 12 bit for 8 bit each are the worst that LZW makes.
_ROOM_BYTES = 1024
_LONG = 4  # the TIFF type of 32-bit integers

_Packed = bytes | memoryview

_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
_log_level = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class _Directory:
    """Tags of the one directory of a TIFF file, and its byte order."""

    order: str
    tags: dict[int, Any]

    def one(self, tag: int) -> int:
        """The whole number that a tag holds, for every channel."""
        values = self.many(tag) or ((_DEFAULTS[tag],) if tag in _DEFAULTS else ())
        if len(set(values)) != 1:
            raise cut_short(f"has no single value for TIFF tag {tag}")
        return values[0]

    def many(self, tag: int) -> tuple[int, ...]:
        """The whole numbers that a tag holds."""
        held = self.tags.get(tag, ())
        values = held if isinstance(held, tuple) else (held,)
        if not all(isinstance(value, int) and value >= 0 for value in values):
            raise cut_short(f"has no whole numbers in TIFF tag {tag}")
        return tuple(int(value) for value in values)


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """Layout of the samples in the file: a grid of equal blocks, strips or tiles."""

    width: int
    height: int
    channels: int
    kind: np.dtype[Any]
    block_width: int
    block_height: int
    tiled: bool

    @property
    def across(self) -> int:
        return math.ceil(self.width / self.block_width)

    @property
    def blocks(self) -> int:
        return self.across * math.ceil(self.height / self.block_height)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of a block."""
        return self.block_width * self.channels * self.kind.itemsize

    def rows(self, block: int) -> int:
        """Rows of a block; the last strip has the rows that are left."""
        if self.tiled:
            return self.block_height
        return min(self.block_height, self.height - block * self.block_height)


def read(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a TIFF file that holds one image: grey or RGB, 8, 16 or (float) 32 bit."""
    directory = _directory(raw)
    check_size(directory.one(_WIDTH), directory.one(_HEIGHT), max_pixels)
    _check_kind(directory)
    layout = _layout(directory, max_pixels)
    predictor = _predictor(directory, layout.kind)
    packed = _blocks(raw, directory, layout)
    values = np.empty((layout.height, layout.width, layout.channels), layout.kind.newbyteorder("="))
    for block, content in enumerate(_unpacked(packed, directory.one(_COMPRESSION), layout)):
        row = block // layout.across * layout.block_height
        column = block % layout.across * layout.block_width
        part = values[row : row + layout.block_height, column : column + layout.block_width]
        shape = (layout.rows(block), layout.block_width, layout.channels)
        samples = _predicted(content, shape, layout.kind, predictor)
        part[...] = samples[: part.shape[0], : part.shape[1]]
    orientation = (*directory.many(_ORIENTATION), UPRIGHT)[0]
    return Samples(
        values=values,
        full_scale={1: 255, 2: 65535}.get(layout.kind.itemsize),
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
            order=file.byteorder, tags={tag.code: tag.value for tag in tags if tag.code in _KNOWN}
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
    if channels not in ((1, 2) if photometric == 1 else (3, 4)):
        raise InputError(f"is a TIFF with {channels} channels, which is not read. {remedy}")
    if channels > 1 and directory.one(_PLANAR) != 1:
        raise InputError(f"is a TIFF whose channels lie apart, which is not read. {remedy}")
    compression = directory.one(_COMPRESSION)
    if compression not in (_PLAIN, _LZW, _PACKBITS, *_DEFLATES):
        raise InputError(
            f"is a TIFF with compression {compression}, and none, LZW, deflate and PackBits are "
            "read. Save it without compression."
        )


def _layout(directory: _Directory, max_pixels: int) -> _Layout:
    width, height = directory.one(_WIDTH), directory.one(_HEIGHT)
    tiled = _TILE_OFFSETS in directory.tags
    if tiled:
        block_width, block_height = directory.one(_TILE_WIDTH), directory.one(_TILE_HEIGHT)
        check_size(block_width, block_height, max_pixels)
    else:
        rows = directory.one(_STRIP_ROWS) if _STRIP_ROWS in directory.tags else height
        block_width, block_height = width, min(max(rows, 1), height)
    kind = np.dtype(_KINDS[directory.one(_BITS), directory.one(_FORMAT)])
    return _Layout(
        width=width,
        height=height,
        channels=directory.one(_CHANNELS),
        kind=kind.newbyteorder("<" if directory.order == "<" else ">"),
        block_width=block_width,
        block_height=block_height,
        tiled=tiled,
    )


def _predictor(directory: _Directory, kind: np.dtype[Any]) -> int:
    if directory.one(_COMPRESSION) in (_PLAIN, _PACKBITS):
        return 1  # these have no predictor, even if the header names one
    predictor = directory.one(_PREDICTOR)
    if predictor not in (1, 2, 3) or (predictor == 3) > (kind.kind == "f"):
        raise cut_short(f"has TIFF predictor {predictor}, which is none for its samples")
    return predictor


def _blocks(raw: bytes, directory: _Directory, layout: _Layout) -> list[_Packed]:
    """_Packed bytes of each strip or tile, all within the file."""
    names = (_TILE_OFFSETS, _TILE_BYTES) if layout.tiled else (_STRIP_OFFSETS, _STRIP_BYTES)
    starts, sizes = (directory.many(name) for name in names)
    if len(starts) != layout.blocks or len(sizes) != layout.blocks:
        raise cut_short(
            f"has {len(starts)} TIFF strips or tiles, and its header says {layout.blocks}"
        )
    places = list(zip(starts, sizes, strict=True))
    if any(start + size > len(raw) for start, size in places):
        raise cut_short("has TIFF strips or tiles that reach beyond its end")
    view = memoryview(raw)
    return [view[start : start + size] for start, size in places]


def _unpacked(packed: list[_Packed], compression: int, layout: _Layout) -> Iterator[_Packed]:
    """Unpacked bytes of each strip or tile, as many as its rows have."""
    if compression in (_LZW, _PACKBITS):
        packed = _unpacked_by_libtiff(packed, compression, layout)
    for block, content in enumerate(packed):
        expected = layout.rows(block) * layout.row_bytes
        unpacked = _inflated(content, expected) if compression in _DEFLATES else content
        if len(unpacked) != expected:
            raise cut_short("has a TIFF strip or tile that does not hold what its header says")
        yield unpacked


def _inflated(packed: _Packed, expected: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        unpacked = inflater.decompress(packed, expected + 1)
    except zlib.error as error:
        raise cut_short(f"has a TIFF strip or tile that does not inflate ({error})") from error
    return unpacked if inflater.eof else b""


def _unpacked_by_libtiff(packed: list[_Packed], compression: int, layout: _Layout) -> list[_Packed]:
    """Unpacked bytes of all blocks, which libtiff reads as strips of one grey 8-bit image.

    The image is as wide as a row of a block has bytes, so that libtiff gives the bytes as they are:
    in their byte order, before the predictor is undone, and with every channel.
    """
    import cv2

    rows = [layout.rows(block) for block in range(len(packed))]
    sizes = [len(content) for content in packed]
    if sum(sizes) > 2 * sum(rows) * layout.row_bytes + _ROOM_BYTES:  # strips on top of each other
        raise cut_short("has TIFF strips or tiles that are larger than what they hold")
    starts = np.cumsum([8, *sizes])
    tables = int(starts[-1]) + (-int(starts[-1]) % 4)
    entries = (
        (_WIDTH, 1, layout.row_bytes),
        (_HEIGHT, 1, sum(rows)),
        (_BITS, 1, 8),
        (_COMPRESSION, 1, compression),
        (_PHOTOMETRIC, 1, 1),
        (_STRIP_OFFSETS, len(packed), 8 if len(packed) == 1 else tables),
        (_CHANNELS, 1, 1),
        (_STRIP_ROWS, 1, layout.block_height),
        (_STRIP_BYTES, len(packed), sizes[0] if len(packed) == 1 else tables + 4 * len(packed)),
    )
    file = b"".join(
        (
            struct.pack("<2sHI", b"II", 42, tables + 8 * len(packed)),
            *packed,
            bytes(tables - int(starts[-1])),
            starts[:-1].astype("<u4").tobytes(),
            np.array(sizes, "<u4").tobytes(),
            struct.pack("<H", len(entries)),
            *(struct.pack("<HHII", tag, _LONG, count, value) for tag, count, value in entries),
            bytes(4),
        )
    )
    with decoded_as("TIFF"), _quiet_opencv():
        values = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_UNCHANGED)
    if values is None or values.shape != (sum(rows), layout.row_bytes):
        raise cut_short("has a TIFF strip or tile that does not hold what its header says")
    ends = np.cumsum(rows)
    return [values[end - count : end].tobytes() for end, count in zip(ends, rows, strict=True)]


def _predicted(
    unpacked: _Packed, shape: tuple[int, int, int], kind: np.dtype[Any], predictor: int
) -> NDArray[Any]:
    """Samples from their differences along a row."""
    if predictor == 3:  # of the bytes, first all the highest of a row, then all the next
        rows, columns, channels = shape
        steps = np.frombuffer(unpacked, np.uint8).reshape(rows, -1, channels)
        planes = np.cumsum(steps, axis=1, dtype=np.uint8).reshape(rows, kind.itemsize, -1)
        together = np.ascontiguousarray(planes.transpose(0, 2, 1))
        return together.view(kind.newbyteorder(">")).reshape(rows, columns, channels)
    samples = np.frombuffer(unpacked, kind).reshape(shape)
    if predictor == 1:
        return samples
    whole = samples.view(samples.dtype.str.replace("f", "u"))
    summed = np.cumsum(whole, axis=1, dtype=whole.dtype.newbyteorder("="))
    return summed.view(kind.newbyteorder("="))


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
