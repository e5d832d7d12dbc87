"""TIFF: tifffile reads the directory, which is checked, and pixels not packed or by deflate.

Of LZW and PackBits, which tifffile does not read alone, Pillow or OpenCV decode the pixels.
"""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.raw import ORIENTATION, WORDS, Samples, check_size, cut_short, decoded_as

_KINDS = ("uint8", "uint16", "float32")
_PHOTOMETRICS = {0: "white is zero", 3: "a palette", 5: "CMYK", 6: "YCbCr", 8: "L*a*b*"}
_PLAIN, _LZW, _PACKBITS, _DEFLATES = 1, 5, 32773, (8, 32946)
_MOST_PACKED = 2000  # bytes that deflate, LZW and PackBits pack into one
_REMEDY = "Save it as grey or RGB with 8 or 16 bit, or as 32-bit float."

# What tifffile logs goes where the program says, if it says so: a refusal has our words.
logging.getLogger("tifffile").addHandler(logging.NullHandler())


def read(raw: bytes, max_pixels: int) -> Samples:
    """Samples of a TIFF file that holds one image: grey or RGB, 8, 16 or (float) 32 bit."""
    with _page(raw) as page:
        check_size(page.imagewidth, page.imagelength, max_pixels)
        _check_kind(page)
        _check_blocks(raw, page, max_pixels)
        tag = page.tags.get(ORIENTATION)
        orientation = tag.value if tag is not None and tag.value in WORDS else 1
        if page.compression in (_LZW, _PACKBITS):
            values = _by_others(raw, page, orientation)
        else:
            values = page.asarray(maxworkers=1)
        if values is None or values.shape != page.shape or values.dtype != page.dtype:
            raise cut_short("has a TIFF strip or tile that does not hold what its header says")
    return Samples(
        values=values,
        full_scale={1: 255, 2: 65535}.get(values.itemsize),
        orientation=orientation,
    )


def description(raw: bytes) -> str:
    """Text that a TIFF file has in its description tag; empty if it has none."""
    with _page(raw) as page:
        return str(page.description)


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


@contextmanager
def _page(raw: bytes) -> Iterator[Any]:
    """The first directory of a file, which must be the only one."""
    import tifffile

    with decoded_as("TIFF"), tifffile.TiffFile(io.BytesIO(raw)) as file:
        if len(file.pages) != 1:
            raise InputError("holds several images, and one is read. Save each in its own file.")
        page = file.pages.first
        codes, form = [tag.code for tag in page.tags], file.tiff
        end = page.offset + form.tagnosize + len(codes) * form.tagsize + form.offsetsize
        if end > len(raw):
            raise cut_short("has a TIFF directory that reaches beyond its end")
        if len(set(codes)) != len(codes):
            raise cut_short("has the same TIFF tag twice")
        yield page


def _check_kind(page: Any) -> None:
    """Refuse what is a TIFF, but not one of grey or RGB samples."""
    if str(page.dtype) not in _KINDS or page.fillorder != 1:
        raise InputError(f"is a TIFF of {page.dtype} samples, which is not read. {_REMEDY}")
    if page.photometric not in (1, 2):
        name = _PHOTOMETRICS.get(int(page.photometric), f"photometric {page.photometric}")
        raise InputError(f"is a TIFF of {name}, which is not read. {_REMEDY}")
    channels = page.samplesperpixel
    if channels not in ((1,) if page.photometric == 1 else (3, 4)):
        raise InputError(f"is a TIFF with {channels} channels, which is not read. {_REMEDY}")
    if channels > 1 and page.planarconfig != 1:
        raise InputError(f"is a TIFF whose channels lie apart, which is not read. {_REMEDY}")
    if page.compression not in (_PLAIN, _LZW, _PACKBITS, *_DEFLATES):
        raise InputError(
            f"is a TIFF with compression {int(page.compression)}, and none, LZW, deflate and "
            "PackBits are read. Save it without compression."
        )


def _check_blocks(raw: bytes, page: Any, max_pixels: int) -> None:
    """Refuse strips or tiles that are too few or too many, or that reach beyond the file."""
    if page.is_tiled:
        check_size(page.tilewidth, page.tilelength, max_pixels)
    starts, sizes, blocks = page.dataoffsets, page.databytecounts, int(np.prod(page.chunked))
    if len(starts) != blocks or len(sizes) != blocks:
        raise cut_short(f"has {len(starts)} TIFF strips or tiles, and its header says {blocks}")
    if any(start + size > len(raw) for start, size in zip(starts, sizes, strict=True)):
        raise cut_short("has TIFF strips or tiles that reach beyond its end")
    most_packed = 1 if page.compression == _PLAIN else _MOST_PACKED
    if sum(sizes) * most_packed < page.nbytes:
        raise cut_short("holds fewer TIFF pixels than its header says")


def _by_others(raw: bytes, page: Any, orientation: int) -> NDArray[Any] | None:
    """Samples as they lie in the file: by OpenCV deep colours, which Pillow does not read."""
    from PIL import ImageOps
    from PIL.TiffImagePlugin import TiffImageFile

    if page.samplesperpixel > 1 and page.dtype.itemsize > 1:
        import cv2

        values = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED)
        return None if values is None else values[:, :, (2, 1, 0, 3)[: page.samplesperpixel]]
    with TiffImageFile(io.BytesIO(raw)) as picture:
        picture.load()  # which turns it upright
        if orientation != 1:
            picture.getexif()[ORIENTATION] = {6: 8, 8: 6}.get(orientation, orientation)
            return np.asarray(ImageOps.exif_transpose(picture))
        return np.asarray(picture)
