"""PNG, JPEG, BMP and WebP, decoded by Pillow; by OpenCV 16-bit colour, of which it keeps 8.

Only PNG has checksums, all of which must hold. The others are refused if they are cut; bytes that
are changed inside of them are decoded as they are.
"""

import io
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.raw import ORIENTATION, WORDS, Samples, check_size, cut_short, decoded_as

# The fastest: the noise of a camera does not compress, and the other levels save less than 1 % of
# a noisy 16-bit image for up to a third more time.
COMPRESSION_LEVEL = 1
# Bytes that deflate packs into one at most, and pixels of a JPEG, whose blocks of 8 x 8 take a bit
# at least: a file that declares more does not hold them.
_MOST_PNG, _MOST_JPEG = 1032, 512


def read_png(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a PNG file: 8 or 16 bit, grey or colour."""
    # The classes and not `Image.open`, which warns of images larger than a limit of its own.
    from PIL.PngImagePlugin import PngImageFile

    if b"IEND\xaeB`\x82" not in raw:
        raise cut_short("ends before the end of its PNG")
    with decoded_as("PNG"), PngImageFile(io.BytesIO(raw)) as picture:
        check_size(*picture.size, max_pixels)
        kind = str(picture.tile[0].args)  # such as L;1, I;16B, RGB;16B
        bits = max(int("".join(filter(str.isdigit, kind.partition(";")[2])) or 8), 1)
        if picture.width * picture.height * bits > 8 * _MOST_PNG * len(raw):
            raise cut_short("holds fewer PNG pixels than its header says")
        with PngImageFile(io.BytesIO(raw)) as whole:
            whole.verify()
        if bits == 16 and not kind.startswith("I"):
            values = _opencv(raw)
            values = values[:, :, 0] if kind.startswith("LA") else values
        else:
            values = _as_samples(picture)
        scale = int(np.iinfo(values.dtype).max)
        return Samples(values=values, full_scale=scale, orientation=_orientation(picture))


def encode_png(image: NDArray[np.uint16], texts: dict[str, str] | None = None) -> bytes:
    """PNG file of a 16-bit grey image, with texts by their names."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    notes = PngInfo()
    for name, text in (texts or {}).items():
        notes.add_text(name, text)
    buffer = io.BytesIO()
    picture = Image.fromarray(image)
    picture.save(buffer, "PNG", pnginfo=notes, compress_level=COMPRESSION_LEVEL)
    return buffer.getvalue()


def png_text(raw: bytes, name: str) -> str | None:
    """Text of a PNG file by its name; None if it has none."""
    from PIL.PngImagePlugin import PngImageFile

    with decoded_as("PNG"), PngImageFile(io.BytesIO(raw)) as picture:
        found = picture.info.get(name)
    return found if isinstance(found, str) else None


def read_jpeg(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a JPEG file: 8 bit, grey or colour."""
    from PIL.JpegImagePlugin import JpegImageFile

    # Within packed pixels no such two bytes follow each other: of a cut file the end is missing.
    if raw.rfind(b"\xff\xd9") < raw.rfind(b"\xff\xda"):
        raise cut_short("ends before the pixels of its JPEG do")
    with decoded_as("JPEG"), JpegImageFile(io.BytesIO(raw)) as picture:
        check_size(*picture.size, max_pixels)
        if picture.mode not in ("L", "RGB"):
            raise InputError(
                f"is a JPEG of kind {picture.mode}, which is not read. Save it as an ordinary one, "
                "or as PNG."
            )
        if picture.width * picture.height > _MOST_JPEG * len(raw):
            raise cut_short("holds fewer JPEG pixels than its header says")
        return _of_8_bits(picture, is_lossy=True)


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
        return _of_8_bits(picture)


def read_webp(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a WebP file that is not animated: 8 bit, colour."""
    from PIL.WebPImagePlugin import WebPImageFile

    width, height = _webp_size(raw)
    check_size(width, height, max_pixels)
    with decoded_as("WebP"), WebPImageFile(io.BytesIO(raw)) as picture:
        if picture.n_frames != 1:
            raise InputError("holds several images, and one is read. Save each as a file.")
        # An extended file does not say in its header whether it is lossy.
        found = _of_8_bits(picture, is_lossy=raw[12:16] == b"VP8 ")
    if found.values.shape[:2] != (height, width):
        raise cut_short("cannot be decoded")
    return found


def _webp_size(raw: bytes) -> tuple[int, int]:
    """Width and height in the header of a WebP file, which Pillow believes when it opens it."""
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


def _opencv(raw: bytes) -> NDArray[Any]:
    """Samples of 16-bit colour (RGB), by OpenCV."""
    import cv2

    values = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED)
    if values is None or values.ndim != 3:
        raise cut_short("cannot be decoded")
    found: NDArray[Any] = values[:, :, 2::-1]  # OpenCV has blue first
    return found


def _of_8_bits(picture: Any, is_lossy: bool = False) -> Samples:
    values = _as_samples(picture)
    turn = _orientation(picture)
    return Samples(values=values, full_scale=255, orientation=turn, is_lossy=is_lossy)


def _orientation(picture: Any) -> int:
    """EXIF orientation of a picture that is loaded; 1 (upright) if it states none that can be."""
    found = picture.getexif().get(ORIENTATION)
    return int(found) if found in WORDS else 1


def _as_samples(picture: Any) -> NDArray[Any]:
    """Samples of an open picture: 8 bit grey, grey with alpha, RGB or RGBA, or 16 bit grey."""
    mode = {"1": "L", "P": "RGB", "PA": "RGB", "LA": "L"}.get(picture.mode, picture.mode)
    if mode.startswith("I"):
        return np.asarray(picture).astype(np.uint16, copy=False)
    if mode not in ("L", "RGB", "RGBA"):
        raise InputError(f"has pixels of kind {picture.mode}, which is not read. Save it as PNG.")
    return np.asarray(picture if mode == picture.mode else picture.convert(mode))
