"""JPEG, BMP and WebP, decoded by Pillow after their headers and their ends are checked.

None of the three has checksums. A file that is cut is refused. Damage inside a file that keeps its
length is not always seen: JPEG data that does not fill the image is decoded as grey.
"""

import io
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.raw import Samples, check_size, cut_short, decoded_as, orientation_in

_EOI, _SOS, _DHT, _APP1 = 0xD9, 0xDA, 0xC4, 0xE1
_FRAMES = {*range(0xC0, 0xD0)} - {_DHT, 0xC8, 0xCC}
_HUFFMAN_FRAMES = {0xC0, 0xC1, 0xC2}
# A block of 8 x 8 pixels takes a bit at least.
_MOST_PIXELS_PER_BYTE = 512


class _Segment(NamedTuple):
    """One marker of a JPEG file, and its content."""

    marker: int
    body: bytes


def read_jpeg(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a JPEG file: 8 bit, grey or colour."""
    from PIL.JpegImagePlugin import JpegImageFile

    segments = _segments(raw)
    frames = [segment for segment in segments if segment.marker in _FRAMES]
    if len(frames) != 1 or len(frames[0].body) < 6:
        raise cut_short(f"has {len(frames)} JPEG frame headers")
    bits, height, width, channels = struct.unpack_from(">BHHB", frames[0].body)
    check_size(width, height, max_pixels)
    if frames[0].marker not in _HUFFMAN_FRAMES or bits != 8 or channels not in (1, 3):
        raise InputError(
            "is a JPEG of an uncommon kind (arithmetic, lossless, 12-bit or CMYK), which is not "
            "read. Save it as an ordinary JPEG, or as PNG."
        )
    if width * height > _MOST_PIXELS_PER_BYTE * len(raw):
        raise cut_short("holds fewer JPEG pixels than its header says")
    with decoded_as("JPEG"), JpegImageFile(io.BytesIO(raw)) as picture:
        values = np.asarray(picture)
    if values.shape[:2] != (height, width):
        raise cut_short("cannot be decoded")
    exif = next((one.body for one in segments if _is_exif(one)), b"")
    return Samples(values=values, full_scale=255, orientation=orientation_in(exif), is_lossy=True)


def _is_exif(segment: _Segment) -> bool:
    return segment.marker == _APP1 and segment.body.startswith(b"Exif\0\0")


def _segments(raw: bytes) -> list[_Segment]:
    """All segments from the beginning to the end-of-image marker, which must be there."""
    segments = []
    at = 2
    while at + 4 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:  # a filling byte
            at += 1
            continue
        end = at + 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
        if end < at + 4 or end > len(raw):
            break
        segments.append(_Segment(marker, raw[at + 4 : end]))
        at = _end_of_scan(raw, end) if marker == _SOS else end
        if raw[at : at + 2] == bytes((0xFF, _EOI)):
            return segments
    raise cut_short(f"ends, or is no longer a JPEG, at byte {at}")


def _end_of_scan(raw: bytes, at: int) -> int:
    """Where the packed pixels of a scan end: at the next marker that is no restart."""
    while True:
        at = raw.find(b"\xff", at)
        if at < 0 or at + 1 >= len(raw):
            return len(raw)
        following = raw[at + 1]
        if following == 0 or 0xD0 <= following <= 0xD7:
            at += 2
        elif following == 0xFF:
            at += 1
        else:
            return at


def read_bmp(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a BMP file that is not compressed: 8 bit, grey or colour."""
    from PIL.BmpImagePlugin import BmpImageFile

    with decoded_as("BMP"), BmpImageFile(io.BytesIO(raw)) as picture:
        check_size(*picture.size, max_pixels)
        pixels: Any = picture.tile[0]
        if pixels.codec_name != "raw":
            raise InputError("is a BMP packed by RLE, which is not read. Save it as PNG.")
        row_bytes = pixels.args[1]
        if pixels.offset + row_bytes * picture.height > len(raw):
            raise cut_short("holds fewer BMP pixels than its header says")
        return Samples(values=_as_samples(picture), full_scale=255)


def read_webp(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a WebP file that is not animated: 8 bit, colour."""
    from PIL.WebPImagePlugin import WebPImageFile

    width, height = _webp_size(raw)
    check_size(width, height, max_pixels)
    with decoded_as("WebP"), WebPImageFile(io.BytesIO(raw)) as picture:
        if picture.n_frames != 1:
            raise InputError("holds several images, and one is read. Save each as a file.")
        values = _as_samples(picture)
        exif = picture.info.get("exif", b"")
    if values.shape[:2] != (height, width):
        raise cut_short("cannot be decoded")
    is_lossy = raw[12:16] == b"VP8 "  # an extended file does not say it in its header
    return Samples(
        values=values, full_scale=255, orientation=orientation_in(exif), is_lossy=is_lossy
    )


def _webp_size(raw: bytes) -> tuple[int, int]:
    """Width and height in the header of a WebP file that has all bytes it declares."""
    if raw[8:12] != b"WEBP":
        raise InputError("is a RIFF file, and no WebP. Is it a sound or a film?")
    if len(raw) < 30 or int.from_bytes(raw[4:8], "little") + 8 > len(raw):
        raise cut_short("ends before the WebP data that its header declares")
    kind = raw[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if kind == b"VP8L" and raw[20] == 0x2F:
        bits = int.from_bytes(raw[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and raw[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", raw, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise cut_short("has no proper WebP header")


def _as_samples(picture: Any) -> NDArray[Any]:
    """Samples of 8 bit of an open picture: grey, RGB or RGBA."""
    mode = {"1": "L", "P": "RGB"}.get(picture.mode, picture.mode)
    if mode not in ("L", "RGB", "RGBA"):
        raise InputError(f"has pixels of kind {picture.mode}, which is not read. Save it as PNG.")
    return np.asarray(picture if mode == picture.mode else picture.convert(mode))
