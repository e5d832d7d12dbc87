"""PNG: every chunk is checked before OpenCV, which fills what is missing with grey, sees it."""

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files import png_rows
from d3s.files.raw import Samples, check_size, cut_short

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The fastest: the noise of a camera does not compress, and the other levels save less than 1 % of
# a noisy 16-bit image for up to a third more time.
COMPRESSION_LEVEL = 1

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE, _GREY_ALPHA = 3, 4
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


@dataclass(frozen=True, kw_only=True)
class _Header:
    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    @property
    def is_plain(self) -> bool:
        """Whether its rows follow each other, of whole bytes of grey or of red, green, blue."""
        return self.colour in (0, 2) and self.depth >= 8 and not self.interlaced

    def rows(self) -> list[tuple[int, int]]:
        """Number of rows, and bytes of one with its filter byte, of each pass."""
        passes = _PASSES if self.interlaced else ((0, 0, 1, 1),)
        bits = self.depth * _CHANNELS[self.colour]
        found = []
        for column, row, column_step, row_step in passes:
            columns = -((column - self.width) // column_step)
            rows = -((row - self.height) // row_step)
            if columns > 0 and rows > 0:
                found.append((rows, 1 + (columns * bits + 7) // 8))
        return found


def read(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a PNG file whose every checksum holds."""
    header = _header(raw)
    check_size(header.width, header.height, max_pixels)
    chunks = chunks_of(raw)
    pixels = _inflated(header, b"".join(body for kind, body in chunks if kind == b"IDAT"))
    if header.is_plain and png_rows.worth_it(pixels):
        plain = png_rows.samples(pixels, header.height, _CHANNELS[header.colour], header.depth // 8)
        return Samples(values=plain, full_scale=int(np.iinfo(plain.dtype).max))
    values = _decode(_essential(header, chunks))
    if values is None or values.shape[:2] != (header.height, header.width):
        raise cut_short("cannot be decoded")
    if values.ndim == 3:
        # OpenCV has blue first, and makes colours of grey that has transparency.
        values = values[:, :, 0] if header.colour == _GREY_ALPHA else values[:, :, 2::-1]
    return Samples(values=values, full_scale=int(np.iinfo(values.dtype).max))


def encode(image: NDArray[np.uint16]) -> bytes:
    """PNG file of a 16-bit grey image."""
    import cv2

    done, encoded = cv2.imencode(".png", image, [cv2.IMWRITE_PNG_COMPRESSION, COMPRESSION_LEVEL])
    if not done:
        raise InputError("cannot be encoded as PNG. Write .npy instead.")
    return bytes(encoded.tobytes())


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


def chunks_of(raw: bytes) -> list[tuple[bytes, bytes]]:
    """Kind and content of each chunk, up to IEND."""
    chunks = []
    at = len(SIGNATURE)
    while at + 12 <= len(raw):
        length = int.from_bytes(raw[at : at + 4], "big")
        end = at + 12 + length
        if end > len(raw):
            break
        if zlib.crc32(raw[at + 4 : end - 4]) != int.from_bytes(raw[end - 4 : end], "big"):
            raise cut_short(f"has a PNG chunk at byte {at} whose checksum is wrong")
        chunks.append((raw[at + 4 : at + 8], raw[at + 8 : end - 4]))
        if chunks[-1][0] == b"IEND":
            return chunks
        at = end
    raise cut_short(f"ends within the PNG chunk at byte {at}")


def _inflated(header: _Header, stream: bytes) -> bytes:
    """Rows with their filter bytes, which must be exactly as many as the header says."""
    expected = sum(rows * size for rows, size in header.rows())
    inflater = zlib.decompressobj()
    try:
        pixels = inflater.decompress(stream, expected + 1)
    except zlib.error as error:
        raise cut_short(f"has PNG pixels that do not inflate ({error})") from error
    if len(pixels) != expected or not inflater.eof or inflater.unused_data:
        kind = "fewer" if len(pixels) < expected else "more"
        raise cut_short(f"holds {kind} PNG pixels than its header says")
    at = 0
    for rows, size in header.rows():
        filters = np.frombuffer(pixels, np.uint8, rows * size, at)[::size]
        if filters.max() > 4:
            raise cut_short("has PNG rows with an unknown filter")
        at += rows * size
    return pixels


def _essential(header: _Header, chunks: list[tuple[bytes, bytes]]) -> bytes:
    """The same file without what does not concern the samples: colour profiles, texts, dates.

    libpng prints warnings about those, and transparency is not wanted.
    """
    kept = [chunks[0]]
    if header.colour == _PALETTE:
        palette = next((body for kind, body in chunks if kind == b"PLTE"), b"")
        if not 3 <= len(palette) <= 768 or len(palette) % 3:
            raise cut_short("has no proper PNG palette")
        kept.append((b"PLTE", palette.ljust(3 << header.depth, b"\0")[: 3 << header.depth]))
    kept += [chunk for chunk in chunks if chunk[0] == b"IDAT"]
    kept.append((b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, body) for kind, body in kept)


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(body, zlib.crc32(kind))
    return len(body).to_bytes(4, "big") + kind + body + checksum.to_bytes(4, "big")


def _decode(file: bytes) -> NDArray[Any] | None:
    import cv2

    try:
        return cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        return None
