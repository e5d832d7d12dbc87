"""TIFF: the directory of the file is read and checked here, then its strips or tiles."""

import io
import math
import struct
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files import tiff_codec
from d3s.files.raw import Samples, check_size, cut_short

MAGICS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_FILL_ORDER, _STRIP_OFFSETS, _CHANNELS, _STRIP_ROWS, _STRIP_BYTES = 266, 273, 277, 278, 279
_PLANAR, _PREDICTOR, _TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES, _FORMAT = (
    284,
    317,
    322,
    323,
    324,
    325,
    339,
)
_DESCRIPTION, _TEXT = 270, 2
_DEFAULTS = {_BITS: 1, _COMPRESSION: 1, _FILL_ORDER: 1, _CHANNELS: 1, _PLANAR: 1, _PREDICTOR: 1}
_DEFAULTS[_FORMAT] = 1
_KNOWN = {_WIDTH, _HEIGHT, _PHOTOMETRIC, _STRIP_OFFSETS, _STRIP_ROWS, _STRIP_BYTES, *_DEFAULTS}
_KNOWN |= {_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES}
# Tag types that hold whole numbers, as struct names them.
_TYPES = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q"}
_KINDS = {(8, 1): "u1", (16, 1): "u2", (32, 3): "f4"}
_PHOTOMETRICS = {0: "white is zero", 3: "a palette", 5: "CMYK", 6: "YCbCr", 8: "L*a*b*"}

_Entry = tuple[int, int, int, bytes]  # tag, type, count, and the value or where it is


@dataclass(frozen=True, kw_only=True)
class _Directory:
    """The whole numbers of a TIFF directory, by tag."""

    order: Literal["<", ">"]
    tags: dict[int, tuple[int, ...]]

    def one(self, tag: int) -> int:
        values = self.tags.get(tag, (_DEFAULTS[tag],) if tag in _DEFAULTS else ())
        if not values or len(set(values)) != 1:  # bits and formats have one value a channel
            raise cut_short(f"has no single value for TIFF tag {tag}")
        return values[0]


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """How the samples lie in the file: a grid of equal blocks, which strips are too."""

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

    def shape(self, block: int) -> tuple[int, int, int]:
        """Rows, columns and channels of a block; the last strip has what is left."""
        rows = self.block_height
        if not self.tiled:
            rows = min(rows, self.height - block * rows)
        return rows, self.block_width, self.channels


def read(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a TIFF file that holds one image: grey or RGB, 8, 16 or (float) 32 bit."""
    directory = _directory(raw)
    check_size(directory.one(_WIDTH), directory.one(_HEIGHT), max_pixels)
    _check_kind(directory)
    layout = _layout(directory, max_pixels)
    places = _places(directory, layout, len(raw))
    values = np.empty((layout.height, layout.width, layout.channels), layout.kind.newbyteorder("="))
    codec = tiff_codec.codec(
        directory.one(_COMPRESSION), directory.one(_PREDICTOR), layout.kind, values.nbytes
    )
    for block, (start, size) in enumerate(places):
        row = block // layout.across * layout.block_height
        column = block % layout.across * layout.block_width
        part = values[row : row + layout.block_height, column : column + layout.block_width]
        samples = codec(raw[start : start + size], layout.shape(block), layout.kind)
        part[...] = samples[: part.shape[0], : part.shape[1]]
    return Samples(values=values, full_scale={1: 255, 2: 65535}.get(layout.kind.itemsize))


def description(raw: bytes) -> str:
    """The text that a TIFF file says of itself; nothing if it says nothing."""
    order, entries = _entries(raw)
    for tag, kind, count, value in entries:
        if tag == _DESCRIPTION and kind == _TEXT:
            text = value[:count] if count <= len(value) else _beyond(raw, order, tag, count, value)
            return text.rstrip(b"\0").decode("utf-8", "replace")
    return ""


def encode(image: NDArray[np.float32], text: str | None = None) -> bytes:
    """TIFF file of a grey image: 32-bit floats, not compressed, no date, no software.

    `text`, in ASCII, is what it says of itself.
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
    """The first directory, which must be the only one."""
    order, entries = _entries(raw)
    return _Directory(order=order, tags=dict(_tag(raw, order, *entry) for entry in entries))


def _entries(raw: bytes) -> tuple[Literal["<", ">"], list[_Entry]]:
    """Byte order, and tag, type, count and value of all that the directory lists."""
    order: Literal["<", ">"] = "<" if raw[:2] == b"II" else ">"
    try:
        if struct.unpack_from(order + "H", raw, 2)[0] == 43:  # BigTIFF
            sizes, at = struct.unpack_from(order + "HxxQ", raw, 4)
            if sizes != 8:
                raise cut_short("has no proper BigTIFF header")
            formats = ("Q", "HHQ8s", "Q")
        else:
            at = struct.unpack_from(order + "I", raw, 4)[0]
            formats = ("H", "HHI4s", "I")
        count, entry, following = (struct.Struct(order + text) for text in formats)
        number = count.unpack_from(raw, at)[0]
        at += count.size
        last = following.unpack_from(raw, at + number * entry.size)[0]
        entries = [entry.unpack_from(raw, at + i * entry.size) for i in range(number)]
    except (struct.error, OverflowError) as error:  # OverflowError for a place beyond 2**63
        raise cut_short("has a TIFF directory that reaches beyond its end") from error
    if last:
        raise InputError("holds several images, and one is read. Save each in a file of its own.")
    return order, entries


def _tag(
    raw: bytes, order: str, tag: int, kind: int, count: int, value: bytes
) -> tuple[int, tuple[int, ...]]:
    """One tag and its numbers; none for tags that do not matter here, whatever they hold."""
    if kind not in _TYPES or tag not in _KNOWN:
        return tag, ()
    size = count * struct.calcsize(_TYPES[kind])
    held = value[:size] if size <= len(value) else _beyond(raw, order, tag, size, value)
    return tag, struct.unpack(f"{order}{count}{_TYPES[kind]}", held)


def _beyond(raw: bytes, order: str, tag: int, size: int, value: bytes) -> bytes:
    """What a tag holds that has no room in the directory: there is where it is."""
    start = struct.unpack(order + ("I" if len(value) == 4 else "Q"), value)[0]
    if start + size > len(raw):
        raise cut_short(f"has a TIFF tag {tag} that reaches beyond its end")
    return raw[start : start + size]


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
        kind=kind.newbyteorder(directory.order),
        block_width=block_width,
        block_height=block_height,
        tiled=tiled,
    )


def _places(directory: _Directory, layout: _Layout, file_bytes: int) -> list[tuple[int, int]]:
    """Where each block starts, and how many bytes it has."""
    names = (_TILE_OFFSETS, _TILE_BYTES) if layout.tiled else (_STRIP_OFFSETS, _STRIP_BYTES)
    starts, sizes = (directory.tags.get(name, ()) for name in names)
    if len(starts) != layout.blocks or len(sizes) != layout.blocks:
        raise cut_short(
            f"has {len(starts)} TIFF strips or tiles, and its header says {layout.blocks}"
        )
    places = list(zip(starts, sizes, strict=True))
    if any(start + size > file_bytes for start, size in places):
        raise cut_short("has TIFF strips or tiles that reach beyond its end")
    return places
