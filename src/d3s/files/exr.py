"""OpenEXR: named layers of floats in one file, by the OpenEXR package, the extra `d3s[exr]`."""

import importlib.util
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError, MissingPackageError
from d3s.files.raw import check_size, cut_short, decoded_as

_MAX_CHANNELS = 64
# Deflate packs at most 1032 bytes into one. A file that is to hold more is damaged, or a trap.
_MOST_PACKED = 1100


def check_installed() -> None:
    """Raise an `InputError` with the command to install OpenEXR if it is missing."""
    if importlib.util.find_spec("OpenEXR") is None:
        raise MissingPackageError(
            ".exr needs the package OpenEXR, and .tiff and .npz do not", "exr"
        )


def encode(layers: Mapping[str, NDArray[Any]], texts: Mapping[str, str]) -> bytes:
    """OpenEXR file of images of one shape, as 32-bit floats, packed by ZIP, and of texts."""
    check_installed()
    import OpenEXR

    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **texts}
    images = {name: np.ascontiguousarray(layers[name], np.float32) for name in sorted(layers)}
    buffer = io.BytesIO()
    with OpenEXR.File(header, images) as file:
        file.write(buffer)
    return buffer.getvalue()


def read(raw: bytes, max_pixels: int) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Images of an OpenEXR file of one part by their names, all or an error; and its texts."""
    check_installed()
    import OpenEXR

    with decoded_as("OpenEXR"):
        with OpenEXR.File(io.BytesIO(raw), separate_channels=True, header_only=True) as file:
            shape = _shape(file, len(raw), max_pixels)
        with OpenEXR.File(io.BytesIO(raw), separate_channels=True) as file:
            images = {name: channel.pixels for name, channel in file.channels().items()}
            texts = {name: text for name, text in file.header().items() if isinstance(text, str)}
    for name, image in images.items():
        if image.shape != shape or image.dtype.kind not in "fu":
            raise InputError(f"has an OpenEXR channel {name} that is no image of the file's size.")
    return images, texts


def _shape(file: Any, file_bytes: int, max_pixels: int) -> tuple[int, int]:
    """Rows and columns in the header of a file, if it can hold them."""
    if len(file.parts) != 1 or "deep" in str(file.header().get("type", "")):
        raise InputError(
            "is an OpenEXR file of several parts, or deep. Save its depth as one part."
        )
    header = file.header()
    (left, top), (right, bottom) = header["dataWindow"]
    width, height = int(right) - int(left) + 1, int(bottom) - int(top) + 1
    check_size(width, height, max_pixels)
    channels = header["channels"]
    if not 1 <= len(channels) <= _MAX_CHANNELS:
        raise cut_short(f"has {len(channels)} OpenEXR channels")
    for channel in channels:
        if (channel.xSampling, channel.ySampling) != (1, 1):
            raise InputError(
                f"has an OpenEXR channel {channel.name} with fewer pixels than the image."
            )
    least_bytes = 2 * width * height * len(channels)  # of 16-bit floats
    if least_bytes > _MOST_PACKED * file_bytes:
        raise cut_short("does not hold as many OpenEXR pixels as its header says")
    return height, width
