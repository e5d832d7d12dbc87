"""Grey images with full scale 1, from and to the common formats."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s import atomic
from d3s.errors import InputError
from d3s.files import jpeg, netpbm, npy, png, tiff
from d3s.files.raw import Samples, named, open_file, read_rest

IMAGE_SUFFIXES = (".png", ".tif", ".tiff", ".pgm", ".ppm", ".pnm", ".jpg", ".jpeg", ".npy", ".pfm")
WRITABLE_SUFFIXES = (".png", ".tif", ".tiff", ".pfm", ".npy")
# Larger than any sensor this is for: a header that declares more is damaged, or a trap.
MAX_PIXELS = 64_000_000

_Reader = Callable[[bytes, int], Samples]
# By the first bytes and not by the suffix, which people change.
_READERS: dict[bytes, _Reader] = {
    png.SIGNATURE: png.read,
    jpeg.MAGIC: jpeg.read,
    **dict.fromkeys(tiff.MAGICS, tiff.read),
    npy.MAGIC: npy.read,
    **dict.fromkeys((b"P5", b"P6"), netpbm.read_pnm),
    **dict.fromkeys((b"P1", b"P2", b"P3", b"P4", b"P7"), netpbm.read_text_pnm),
    **dict.fromkeys((b"Pf", b"PF"), netpbm.read_pfm),
}
# Of the sRGB primaries, for linear values (Rec. ITU-R BT.709-6, item 3.2).
_REC709 = (0.2126, 0.7152, 0.0722)
_BLOCK_PIXELS = 1 << 18
# Four channels of 32 bit each, and room for what else a file may carry.
_MAX_BYTES_PER_PIXEL = 16
_ROOM_BYTES = 16_000_000


def read_image(
    path: str | os.PathLike[str],
    *,
    max_pixels: int = MAX_PIXELS,
    linear: bool = True,
    allow_nan: bool = False,
) -> NDArray[np.float32]:
    """Grey image of a file, (rows, columns), linear in intensity with full scale 1.

    Reads PNG, TIFF, PGM, PPM, JPEG, NPY and PFM. Unsigned integers of 8 or 16 bit are divided by
    their full scale, which is the maxval of a PGM header (4095 for 12 bit) and 255 or 65535
    otherwise. Floats are taken as they are. Colour becomes grey by the weights of Rec. 709.
    Transparency is ignored, and so are notes of a camera on which way is up.

    Parameters
    ----------
    path
        The file. It is known by its first bytes, whatever its suffix.
    max_pixels
        Refuse an image with more, before anything large is allocated.
    linear
        Whether integers are proportional to intensity, as from a sensor. With False the curve of
        sRGB is undone first, which photographs need; floats have no such curve and stay as
        they are.
    allow_nan
        Whether floats may be NaN or infinite, as the holes of a depth map are.

    Raises
    ------
    InputError
        Naming the file, what is wrong and the likely remedy. A file that is cut or damaged is
        refused whole.
    """
    with named(path):
        return as_grey(read_samples(path, max_pixels), linear, allow_nan)


def write_image(path: str | os.PathLike[str], image: ArrayLike, *, overwrite: bool = False) -> None:
    """Write a grey image in the format of the suffix; the same image gives the same bytes.

    `.png` is 16-bit grey, clipped to 0 to 1 and rounded. `.tif`, `.tiff`, `.pfm` and `.npy` hold
    32-bit floats exactly, NaN too.

    Parameters
    ----------
    path
        The file to write, whole or not at all.
    image
        Floats, (rows, columns), with full scale 1.
    overwrite
        Whether a file that holds something else may be replaced.

    Raises
    ------
    InputError
        When the image or the suffix cannot be written.
    OutputError
        When the file cannot be written, or would replace another.
    """
    with named(path):
        encoder = _ENCODERS.get(Path(os.fsdecode(path)).suffix.lower())
        if encoder is None:
            raise InputError(
                f"images are written as {', '.join(WRITABLE_SUFFIXES)}. "
                "Give the name one of these suffixes."
            )
        encoded = encoder(_writable(image))
    atomic.write_bytes(path, encoded, overwrite=overwrite)


def list_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Images in a folder, by their suffixes and sorted by name.

    Not those in folders below it, and none that is hidden: its name begins with a dot.

    Raises
    ------
    InputError
        When there is no such folder, or no image in it.
    """
    with named(folder):
        found = _images(Path(os.fsdecode(folder)))
        if not found:
            raise InputError(f"there is no image in it. Images end in {', '.join(IMAGE_SUFFIXES)}.")
    return sorted(found, key=lambda path: path.name)


def _images(folder: Path) -> list[Path]:
    try:
        paths = list(folder.iterdir())
    except FileNotFoundError as error:
        raise InputError("there is no such folder. Check the name.") from error
    except NotADirectoryError as error:
        raise InputError("is a file. Name the folder that it is in.") from error
    except ValueError as error:  # a zero byte in the path
        raise InputError(f"cannot be read: {error}. Check the name.") from error
    return [
        path
        for path in paths
        if path.suffix.lower() in IMAGE_SUFFIXES and path.name[0] != "." and not path.is_dir()
    ]


def read_samples(path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> Samples:
    """What an image file holds, as its format has it; errors do not name the file."""
    with open_file(path) as file:
        start = file.read(8)
        reader = next((_READERS[magic] for magic in _READERS if start.startswith(magic)), None)
        if reader is None:
            raise InputError(
                "does not begin like an image. Images are PNG, TIFF, PGM, PPM, JPEG, NPY or PFM."
            )
        raw = read_rest(file, max_pixels * _MAX_BYTES_PER_PIXEL + _ROOM_BYTES)
    return reader(raw, max_pixels)


def as_grey(samples: Samples, linear: bool, allow_nan: bool) -> NDArray[np.float32]:
    """Grey of each pixel, a few rows at a time: in double precision, which is then rounded once."""
    values = samples.values if samples.values.ndim == 3 else samples.values[:, :, np.newaxis]
    levels = None if samples.full_scale is None else _levels(samples.full_scale, linear)
    rows, columns, channels = values.shape
    grey = np.empty((rows, columns), np.float32)
    step = max(1, _BLOCK_PIXELS // columns)
    with np.errstate(invalid="ignore", over="ignore"):
        for row in range(0, rows, step):
            block = values[row : row + step, :, : 1 if channels < 3 else 3]
            grey[row : row + step] = _mixed(block if levels is None else levels[block])
    if levels is None and not allow_nan:
        _check_finite(grey, "Where they are holes, as in a depth map, read with allow_nan=True.")
    return grey


def _mixed(channels: NDArray[Any]) -> NDArray[Any]:
    if channels.shape[2] == 1:
        return channels[:, :, 0]
    red, green, blue = (channels[:, :, i] * np.float64(_REC709[i]) for i in range(3))
    mixed: NDArray[Any] = red + green + blue
    return mixed


def _levels(full_scale: int, linear: bool) -> NDArray[np.float64]:
    """Intensity of each integer."""
    levels = np.arange(full_scale + 1) / full_scale
    if linear:
        return levels
    # IEC 61966-2-1, the curve of nearly all photographs.
    return np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)


def _check_finite(image: NDArray[np.float32], remedy: str) -> None:
    wrong = image.size - int(np.count_nonzero(np.isfinite(image)))
    if wrong:
        raise InputError(f"{wrong} of {image.size} values are NaN or infinite. {remedy}")


def _writable(image: ArrayLike) -> NDArray[np.float32]:
    try:
        values = np.asarray(image)
    except (ValueError, TypeError) as error:  # rows of unequal lengths
        raise InputError(f"is to be an image, and this is no array: {error}.") from error
    if values.ndim != 2 or values.size == 0:
        raise InputError(
            f"an image has (rows, columns), and this array has shape {values.shape}. "
            "Write one grey image a file."
        )
    if values.dtype.kind != "f":
        raise InputError(
            f"an image has floats with full scale 1, and this array has {values.dtype}. "
            "Divide integers by their full scale."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = np.ascontiguousarray(values, np.float32)
    if np.count_nonzero(np.isinf(narrow)) != np.count_nonzero(np.isinf(values)):
        raise InputError("values are too large for 32-bit floats. Scale the image first.")
    return narrow


def _encode_png(image: NDArray[np.float32]) -> bytes:
    _check_finite(image, "PNG cannot hold them: write .tif, .pfm or .npy.")
    levels = np.empty(image.shape, np.uint16)
    step = max(1, _BLOCK_PIXELS // image.shape[1])
    for row in range(0, len(image), step):
        block = np.clip(image[row : row + step].astype(np.float64), 0, 1)
        levels[row : row + step] = np.rint(block * 65535)
    return png.encode(levels)


_ENCODERS: dict[str, Callable[[NDArray[np.float32]], bytes]] = {
    ".png": _encode_png,
    ".tif": tiff.encode,
    ".tiff": tiff.encode,
    ".pfm": netpbm.encode_pfm,
    ".npy": npy.encode,
}
