"""OpenEXR: named layers of floats in one file, packed by ZIP a few rows at a time.

Files of scan lines are read that are packed so, or not at all, which is what most programs write.
The form is that of "OpenEXR File Layout" (openexr.com).
"""

import math
import struct
import zlib
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.raw import check_size, cut_short

MAGIC = b"\x76\x2f\x31\x01"

_VERSION, _LONG_NAMES = 2, 0x400
_TYPES = {0: "<u4", 1: "<f2", 2: "<f4"}
_FLOAT, _ZIP = 2, 3
_ROWS = {0: 1, 2: 1, _ZIP: 16}  # of a chunk, by compression
_KINDS = {1: "RLE", 4: "PIZ", 5: "PXR24", 6: "B44", 7: "B44A", 8: "DWAA", 9: "DWAB"}
_MAX_CHANNELS = 64
_MAX_ATTRIBUTES = 1000
# Deflate cannot pack better than this, so a chunk that is to hold more is damaged, or a trap.
_MOST_PACKED = 1100
_LEVEL = 4  # where files are as small as at 6, for two thirds of the time


class Layers(NamedTuple):
    """What a file holds: images of one shape by their names, and its attributes that are text."""

    images: dict[str, NDArray[Any]]
    texts: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class _Header:
    width: int
    height: int
    first_row: int
    compression: int
    channels: dict[str, np.dtype[Any]]  # in the order of the file
    texts: dict[str, str]
    start: int  # of the table of chunks

    @property
    def rows(self) -> int:
        """Rows of a chunk."""
        return _ROWS[self.compression]

    @property
    def row_bytes(self) -> int:
        return self.width * sum(kind.itemsize for kind in self.channels.values())


def encode(layers: Layers) -> bytes:
    """OpenEXR file of images of one shape, as 32-bit floats."""
    names = sorted(layers.images)  # as the format wants it
    images = [layers.images[name].astype("<f4", copy=False) for name in names]
    height, width = images[0].shape
    header = MAGIC + struct.pack("<I", _VERSION) + _attributes(names, height, width, layers.texts)
    lines = np.stack(images, axis=1).reshape(height, -1)  # of each row the channels in turn
    chunks = []
    for row in range(0, height, _ROWS[_ZIP]):
        packed = _packed(lines[row : row + _ROWS[_ZIP]].tobytes())
        chunks.append(struct.pack("<iI", row, len(packed)) + packed)
    starts = accumulate((len(chunk) for chunk in chunks), initial=len(header) + 8 * len(chunks))
    table = struct.pack(f"<{len(chunks)}Q", *list(starts)[:-1])
    return header + table + b"".join(chunks)


def read(raw: bytes, max_pixels: int) -> Layers:
    """Images of an OpenEXR file of scan lines, all or an error."""
    header = _header(raw)
    check_size(header.width, header.height, max_pixels)
    chunks = _chunks(raw, header)
    lines = np.empty((header.height, header.row_bytes), dtype=np.uint8)
    for row, (start, size) in chunks.items():
        block = lines[row : row + header.rows]
        content = raw[start : start + size]
        block[...] = np.frombuffer(_unpacked(content, block.nbytes), np.uint8).reshape(block.shape)
    return Layers(_images(lines, header), header.texts)


def _images(lines: NDArray[np.uint8], header: _Header) -> dict[str, NDArray[Any]]:
    images, at = {}, 0
    for name, kind in header.channels.items():
        size = header.width * kind.itemsize
        images[name] = np.ascontiguousarray(lines[:, at : at + size]).view(kind)
        at += size
    return images


def _attributes(names: list[str], height: int, width: int, texts: dict[str, str]) -> bytes:
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    channels = b"".join(
        name.encode("ascii") + b"\0" + struct.pack("<i4xii", _FLOAT, 1, 1) for name in names
    )
    values = {
        "channels": ("chlist", channels + b"\0"),
        "compression": ("compression", bytes([_ZIP])),
        "dataWindow": ("box2i", window),
        "displayWindow": ("box2i", window),
        "lineOrder": ("lineOrder", b"\0"),
        "pixelAspectRatio": ("float", struct.pack("<f", 1)),
        "screenWindowCenter": ("v2f", struct.pack("<2f", 0, 0)),
        "screenWindowWidth": ("float", struct.pack("<f", 1)),
        **{name: ("string", text.encode("ascii")) for name, text in texts.items()},
    }
    lines = [
        f"{name}\0{kind}\0".encode() + struct.pack("<i", len(value)) + value
        for name, (kind, value) in sorted(values.items())
    ]
    return b"".join(lines) + b"\0"


def _header(raw: bytes) -> _Header:
    _check_version(raw)
    found, texts, start = _found(raw)
    try:
        xmin, ymin, xmax, ymax = struct.unpack("<4i", found["dataWindow"])
        (compression,) = found["compression"]
        channels = _channels(found["channels"])
    except InputError:
        raise
    except (struct.error, KeyError, ValueError) as error:
        raise cut_short("has an OpenEXR header that cannot be read") from error
    if compression not in _ROWS:
        kind = _KINDS.get(compression, str(compression))
        raise InputError(
            f"is an OpenEXR file packed by {kind}, and ZIP, ZIPS and none are read. Save it so."
        )
    return _Header(
        width=xmax - xmin + 1,
        height=ymax - ymin + 1,
        first_row=ymin,
        compression=compression,
        channels=channels,
        texts=texts,
        start=start,
    )


def _check_version(raw: bytes) -> None:
    if len(raw) < 8:
        raise cut_short("has no OpenEXR header")
    if struct.unpack_from("<I", raw, 4)[0] & ~_LONG_NAMES != _VERSION:
        raise InputError(
            "is an OpenEXR file of tiles, of several parts or deep, and one of plain scan lines is "
            "read. Save it so."
        )


def _found(raw: bytes) -> tuple[dict[str, bytes], dict[str, str], int]:
    """Values of all attributes, those of them that are text, and where they end."""
    found: dict[str, bytes] = {}
    texts: dict[str, str] = {}
    at = 8
    try:
        while raw[at : at + 1] != b"\0":
            name, at = _name(raw, at)
            kind, at = _name(raw, at)
            size = struct.unpack_from("<i", raw, at)[0]
            at += 4
            if not 0 <= size <= len(raw) - at or len(found) > _MAX_ATTRIBUTES:
                raise cut_short("has an OpenEXR attribute that reaches beyond its end")
            found[name] = raw[at : at + size]
            if kind == "string":
                texts[name] = found[name].decode("utf-8", "replace")
            at += size
    except InputError:
        raise
    except (struct.error, ValueError) as error:  # ValueError for a name without end
        raise cut_short("has an OpenEXR header that cannot be read") from error
    return found, texts, at + 1


def _name(raw: bytes, at: int) -> tuple[str, int]:
    end = raw.index(b"\0", at, at + 256)
    return raw[at:end].decode("utf-8"), end + 1


def _channels(value: bytes) -> dict[str, np.dtype[Any]]:
    channels: dict[str, np.dtype[Any]] = {}
    at = 0
    while value[at : at + 1] != b"\0":
        name, at = _name(value, at)
        kind, across, down = struct.unpack_from("<i4xii", value, at)
        at += 16
        if name in channels or kind not in _TYPES or len(channels) >= _MAX_CHANNELS:
            raise cut_short("has OpenEXR channels that cannot be read")
        if (across, down) != (1, 1):
            raise InputError(f"has an OpenEXR channel {name} with fewer pixels than the image.")
        channels[name] = np.dtype(_TYPES[kind])
    if not channels:
        raise cut_short("has no OpenEXR channels")
    return channels


def _chunks(raw: bytes, header: _Header) -> dict[int, tuple[int, int]]:
    """Where the content of each chunk starts and how many bytes it has, by its first row."""
    count = math.ceil(header.height / header.rows)
    if header.start + 8 * count > len(raw):
        raise cut_short("ends within its OpenEXR table")
    found = {}
    for start in np.frombuffer(raw, "<u8", count, header.start).tolist():
        if start + 8 > len(raw):
            raise cut_short("has OpenEXR chunks that reach beyond its end")
        row, size = struct.unpack_from("<iI", raw, start)
        row -= header.first_row
        rows = min(header.rows, header.height - row)
        if not 0 <= row < header.height or row % header.rows or start + 8 + size > len(raw):
            raise cut_short("has OpenEXR chunks that reach beyond its end")
        whole = rows * header.row_bytes
        if size > whole or (size != whole and header.compression == 0):
            raise cut_short("has an OpenEXR chunk that does not hold what its header says")
        if size * _MOST_PACKED < whole:
            raise cut_short("has an OpenEXR chunk that does not hold what its header says")
        found[row] = start + 8, size
    if len(found) != count:
        raise cut_short(f"has {len(found)} OpenEXR chunks, and its header says {count}")
    return found


def _packed(content: bytes) -> bytes:
    """Differences of the bytes, first every other one and then the rest, deflated."""
    apart = np.frombuffer(content, np.uint8).reshape(-1, 2).T.reshape(-1)
    steps = apart.copy()
    steps[1:] -= apart[:-1] - np.uint8(128)
    packed = zlib.compress(steps.tobytes(), _LEVEL)
    return packed if len(packed) < len(content) else content


def _unpacked(packed: bytes, size: int) -> bytes:
    if len(packed) == size:  # it could not be made smaller
        return packed
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(packed, size + 1)
    except zlib.error as error:
        raise cut_short(f"has an OpenEXR chunk that does not inflate ({error})") from error
    if len(content) != size or not inflater.eof:
        raise cut_short("has an OpenEXR chunk that does not hold what its header says")
    steps = np.frombuffer(content, np.uint8)
    apart = np.cumsum(steps - np.uint8(128), dtype=np.uint8)
    apart += np.uint8(128)  # the first is no difference
    half = (size + 1) // 2
    together = np.empty(size, np.uint8)
    together[0::2], together[1::2] = apart[:half], apart[half:]
    return together.tobytes()
