"""PNG: chunks and their checksums are checked here; Pillow or OpenCV decode the pixels.

Pillow decodes all but 16-bit colour, which OpenCV decodes: Pillow would keep 8 of the 16 bits.
"""

import io
import struct
import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.raw import Samples, check_size, cut_short, decoded_as, orientation_in

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The fastest: the noise of a camera does not compress, and the other levels save less than 1 % of
# a noisy 16-bit image for up to a third more time.
COMPRESSION_LEVEL = 1

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_CHUNK_START, _CHECKSUM = struct.Struct(">I4s"), struct.Struct(">I")
_GREY, _PALETTE, _GREY_ALPHA = 0, 3, 4
# Adam7: first column, first row, column step, row step of each pass.
_PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
# Deflate packs at most 1032 bytes into one. Noise does not pack, and grows by 5 bytes a block: a
# writer that closes a block after each row stays below twice the size and this many bytes.
_MOST_PACKED = 1032
_ROOM_BYTES = 1024
_STRIP_PIXELS = 1 << 18


class Chunk(NamedTuple):
    """Kind and place of a chunk: `raw[start:end]` is its content."""

    kind: bytes
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class _Header:
    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    @property
    def is_deep_colour(self) -> bool:
        return self.depth == 16 and self.colour != _GREY

    @property
    def row_bytes(self) -> int:
        """Bytes of a row and its filter byte."""
        return 1 + (self.width * self.depth * _CHANNELS[self.colour] + 7) // 8

    @property
    def pixel_bytes(self) -> int:
        """Bytes of all rows and their filter bytes, of all passes."""
        bits = self.depth * _CHANNELS[self.colour]
        if not self.interlaced:
            return self.height * self.row_bytes
        total = 0
        for column, row, column_step, row_step in _PASSES:
            columns = max(0, -((column - self.width) // column_step))
            rows = max(0, -((row - self.height) // row_step))
            total += rows * (1 + (columns * bits + 7) // 8) if columns else 0
        return total


def read(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a PNG file whose every checksum holds."""
    header = _header(raw)
    check_size(header.width, header.height, max_pixels)
    chunks = chunks_of(raw)
    _check_packed_size(raw, header, chunks)
    pixels = _essential(raw, header, chunks)
    values = _opencv(raw, header, chunks, pixels) if header.is_deep_colour else _pillow(pixels)
    if values.shape[:2] != (header.height, header.width):
        raise cut_short("cannot be decoded")
    if _may_lack_rows(header, values):
        _check_pixels(raw, header, chunks)
    if header.colour == _GREY_ALPHA:
        values = values[:, :, 0]
    exif = next((raw[one.start : one.end] for one in chunks if one.kind == b"eXIf"), b"")
    return Samples(
        values=values,
        full_scale=int(np.iinfo(values.dtype).max),
        orientation=orientation_in(exif),
    )


def encode(image: NDArray[np.uint16]) -> bytes:
    """PNG file of a 16-bit grey image."""
    import cv2

    done, encoded = cv2.imencode(".png", image, [cv2.IMWRITE_PNG_COMPRESSION, COMPRESSION_LEVEL])
    if not done:
        raise InputError("cannot be encoded as PNG. Write .npy instead.")
    return bytes(encoded.tobytes())


def chunks_of(raw: bytes) -> list[Chunk]:
    """Chunks of a PNG file up to IEND, whose checksums all hold."""
    chunks = []
    view = memoryview(raw)
    at = len(SIGNATURE)
    while at + 12 <= len(raw):
        size, kind = _CHUNK_START.unpack_from(raw, at)
        end = at + 8 + size
        if end + 4 > len(raw):
            break
        if zlib.crc32(view[at + 4 : end]) != _CHECKSUM.unpack_from(raw, end)[0]:
            raise cut_short(f"has a PNG chunk at byte {at} whose checksum is wrong")
        chunks.append(Chunk(kind, at + 8, end))
        if kind == b"IEND":
            return chunks
        at = end + 4
    raise cut_short(f"ends within the PNG chunk at byte {at}")


def chunk(kind: bytes, body: bytes) -> bytes:
    """PNG chunk with its length and checksum."""
    checksum = zlib.crc32(body, zlib.crc32(kind))
    return len(body).to_bytes(4, "big") + kind + body + checksum.to_bytes(4, "big")


def _header(raw: bytes) -> _Header:
    if len(raw) < 33 or raw[8:16] != b"\0\0\0\x0dIHDR":
        raise cut_short("has no PNG header")
    width, height, depth, colour, method, filtering, interlace = struct.unpack(
        ">IIBBBBB", raw[16:29]
    )
    if zlib.crc32(raw[12:29]) != int.from_bytes(raw[29:33], "big"):
        raise cut_short("has a PNG header whose checksum is wrong")
    if depth not in _DEPTHS.get(colour, ()) or method or filtering or interlace > 1:
        raise cut_short("has a PNG header that no PNG can have")
    return _Header(
        width=width, height=height, depth=depth, colour=colour, interlaced=bool(interlace)
    )


def _check_packed_size(raw: bytes, header: _Header, chunks: list[Chunk]) -> None:
    """Refuse packed pixels that are too few, or too many, for the declared size."""
    packed = sum(one.end - one.start for one in chunks if one.kind == b"IDAT")
    if packed * _MOST_PACKED < header.pixel_bytes:
        raise cut_short("holds fewer PNG pixels than its header says")
    if packed > 2 * header.pixel_bytes + _ROOM_BYTES:
        raise cut_short("holds more PNG pixels than its header says")


def _essential(raw: bytes, header: _Header, chunks: list[Chunk]) -> bytes:
    """PNG file of the chunks that hold the pixels.

    Libraries warn of damaged texts, profiles and animations, and transparency is not used.
    """
    kept = [chunks[0]]
    palette = b""
    if header.colour == _PALETTE:
        palette = next((raw[one.start : one.end] for one in chunks if one.kind == b"PLTE"), b"")
        if not 3 <= len(palette) <= 768 or len(palette) % 3:
            raise cut_short("has no proper PNG palette")
        size = 3 << header.depth  # colours that the palette lacks are black
        palette = chunk(b"PLTE", palette.ljust(size, b"\0")[:size])
    kept += [one for one in chunks if one.kind in (b"IDAT", b"IEND")]
    if len(kept) == len(chunks):
        return raw
    view = memoryview(raw)
    parts = [view[one.start - 8 : one.end + 4] for one in kept]
    return b"".join((SIGNATURE, parts[0], palette, *parts[1:]))


def _pillow(file: bytes) -> NDArray[Any]:
    """Samples of 8 or 16 bit of a PNG file, by Pillow."""
    # The class and not `Image.open`, which warns of images larger than a limit of its own.
    from PIL.PngImagePlugin import PngImageFile

    with decoded_as("PNG"), PngImageFile(io.BytesIO(file)) as picture:
        picture.load()
        if picture.mode in ("1", "P"):
            return np.asarray(picture.convert("L" if picture.mode == "1" else "RGB"))
        if not picture.mode.startswith("I"):
            return np.asarray(picture)
        # 16 bit, of raw frames. In strips: of a whole picture Pillow makes two more copies.
        values = np.empty((picture.height, picture.width), np.uint16)
        step = max(1, _STRIP_PIXELS // picture.width)
        for top in range(0, picture.height, step):
            bottom = min(top + step, picture.height)
            values[top:bottom] = np.asarray(picture.crop((0, top, picture.width, bottom)))
        return values


def _opencv(raw: bytes, header: _Header, chunks: list[Chunk], file: bytes) -> NDArray[Any]:
    """Samples of 16-bit colour (RGB), by OpenCV."""
    import cv2

    _check_pixels(raw, header, chunks)  # before OpenCV, which prints what it finds wrong
    with decoded_as("PNG"):
        values: NDArray[Any] | None = cv2.imdecode(
            np.frombuffer(file, np.uint8), cv2.IMREAD_UNCHANGED
        )
    if values is None or values.ndim != 3:
        raise cut_short("cannot be decoded")
    return values[:, :, 2::-1]  # OpenCV has blue first


def _may_lack_rows(header: _Header, values: NDArray[Any]) -> bool:
    """Whether Pillow may have met too few rows: it leaves them at 0, without an error."""
    if header.is_deep_colour:  # OpenCV refuses them
        return False
    return header.interlaced or header.colour == _PALETTE or not values[-1].any()


def _check_pixels(raw: bytes, header: _Header, chunks: list[Chunk]) -> None:
    """Inflate the pixels: refuse them if they are too few or too many, or a filter is unknown."""
    expected = header.pixel_bytes
    inflater = zlib.decompressobj()
    stream = b"".join(raw[one.start : one.end] for one in chunks if one.kind == b"IDAT")
    try:
        pixels = inflater.decompress(stream, expected + 1)
    except zlib.error as error:
        raise cut_short(f"has PNG pixels that do not inflate ({error})") from error
    if len(pixels) != expected or not inflater.eof or inflater.unused_data:
        kind = "fewer" if len(pixels) < expected else "more"
        raise cut_short(f"holds {kind} PNG pixels than its header says")
    if not header.interlaced and max(pixels[:: header.row_bytes]) > 4:
        raise cut_short("has PNG rows with an unknown filter")
