"""Images with full scale 1, from and to the common formats: intensity by one rule, and colours.

Grey integers are proportional to the light, as a sensor gives them. Integers of a colour image are
those of a photograph: the sRGB curve is undone. Floats have no curve. Whoever knows better says so
with `linear`.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s import atomic, formats
from d3s.errors import InputError
from d3s.files.codecs import CODECS, check_finite
from d3s.files.raw import Samples, named, open_file, read_rest, upright
from d3s.formats import IMAGE_OUT_SUFFIXES, IMAGE_SUFFIXES, MAX_PIXELS
from d3s.types import Image

# Of the sRGB primaries, for linear values (Rec. ITU-R BT.709-6, item 3.2).
_REC709 = (0.2126, 0.7152, 0.0722)
_BLOCK_PIXELS = 1 << 18
_CURVES = {
    "srgb": ", and the curve of sRGB was undone before. If its numbers are proportional to the "
    "light, say so: --encoding linear, linear=True in Python.",
    "linear": ", and its numbers were taken as linear.",
    "floats": ".",
}
# Four channels of 32 bit each, and room for what else a file may carry.
_MAX_BYTES_PER_PIXEL = 16
_ROOM_BYTES = 16_000_000


def read_image(
    path: str | os.PathLike[str],
    *,
    max_pixels: int = MAX_PIXELS,
    linear: bool | None = True,
    allow_nan: bool = False,
) -> Image:
    """Read a grey image, (rows, columns), linear in intensity with full scale 1.

    Unsigned integers of 8 or 16 bit are divided by their full scale, which is the maxval of a PGM
    header (4095 for 12 bit) and 255 or 65535 otherwise. Floats are taken as they are. Colour
    becomes grey by the weights of Rec. 709. Transparency is ignored. The image is turned upright
    where the file has an EXIF orientation. A file that is cut is refused, and a damaged one where
    its format shows the damage, as docs/files.md has it.

    Parameters
    ----------
    path
        The file. It is known by its first bytes, and not by its suffix.
    max_pixels
        Refuse an image with more pixels, before anything large is allocated.
    linear
        Whether integers are proportional to intensity, as from a sensor. With False the sRGB curve
        is undone first, as photographs need it; floats have no such curve and stay as they are.
        None: as `load_pair` has it, grey integers are and colour images are photographs.
    allow_nan
        Whether floats may be NaN or infinite, as the holes of a depth map are.
    """
    with named(path):
        samples = read_samples(path, max_pixels)
        return as_grey(samples, linear=linear, allow_nan=allow_nan)


def write_image(path: str | os.PathLike[str], image: ArrayLike, *, overwrite: bool = False) -> None:
    """Write a grey image of floats with full scale 1; the same image gives the same bytes.

    `.png` is 16-bit grey, clipped to 0 to 1 and rounded. `.tif`, `.tiff`, `.pfm` and `.npy` hold
    32-bit floats exactly, NaN too.
    """
    suffix = Path(os.fsdecode(path)).suffix.lower()
    with named(path):
        codec = next((CODECS[one.name] for one in formats.FORMATS if suffix in one.suffixes), None)
        if codec is None or codec.encode_image is None:
            raise InputError(
                f"images are written as {', '.join(IMAGE_OUT_SUFFIXES)}. "
                "Give the name one of these suffixes."
            )
        encoded = codec.encode_image(_writable(image))
    atomic.write_bytes(path, encoded, overwrite=overwrite)


def list_images(folder: str | os.PathLike[str]) -> list[Path]:
    """List the images in a folder that are not hidden, known by their suffixes, sorted by name."""
    with named(folder):
        try:
            paths = sorted(Path(os.fsdecode(folder)).iterdir(), key=lambda path: path.name)
        except FileNotFoundError as error:
            raise InputError("there is no such folder. Check the name.") from error
        except NotADirectoryError as error:
            raise InputError("is a file. Name the folder that it is in.") from error
        except ValueError as error:  # a zero byte in the path
            raise InputError(f"cannot be read: {error}. Check the name.") from error
        names = (path for path in paths if path.suffix.lower() in IMAGE_SUFFIXES)
        found = [path for path in names if path.name[0] != "." and not path.is_dir()]
        if not found:
            raise InputError(f"there is no image in it. Images end in {', '.join(IMAGE_SUFFIXES)}.")
    return found


def read_samples(path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> Samples:
    """Samples of an image file as its format has them, upright; errors do not name the file."""
    with open_file(path) as file:
        found = formats.format_of_bytes(file.read(8))
        reader = None if found is None else CODECS[found.name].read_image
        if reader is None:
            raise InputError(f"does not begin like an image. Images are {formats.image_names()}.")
        raw = read_rest(file, max_pixels * _MAX_BYTES_PER_PIXEL + _ROOM_BYTES)
    return upright(reader(raw, max_pixels))


def _is_colour(samples: Samples) -> bool:
    return samples.values.ndim == 3 and samples.values.shape[2] >= 3


def as_grey(samples: Samples, *, linear: bool | None, allow_nan: bool) -> Image:
    """Grey image, (rows, columns), of samples, by the rules of `read_image`."""
    linear = not _is_colour(samples) if linear is None else linear
    values = samples.values if samples.values.ndim == 3 else samples.values[:, :, np.newaxis]
    if samples.full_scale is not None and linear and values.shape[2] < 3:
        # Exactly the quotient in double precision, rounded once: both numbers have 16 bits.
        grey: Image = np.divide(
            values[:, :, 0], np.float32(samples.full_scale), dtype=np.float32, order="C"
        )
        return grey
    levels = None if samples.full_scale is None else _levels(samples.full_scale, linear)
    grey = _grey_in_blocks(values, levels)
    if levels is None and not allow_nan:
        check_finite(grey, "Where they are holes, as in a depth map, read with allow_nan=True.")
    return grey


def _grey_in_blocks(values: NDArray[Any], levels: NDArray[np.float64] | None) -> Image:
    """Grey image, a few rows at a time: in double precision, rounded once."""
    rows, columns, channels = values.shape
    grey = np.empty((rows, columns), np.float32)
    step = max(1, _BLOCK_PIXELS // columns)
    with np.errstate(invalid="ignore", over="ignore"):
        for row in range(0, rows, step):
            block = values[row : row + step, :, : 1 if channels < 3 else 3]
            grey[row : row + step] = _luminance(block if levels is None else levels[block])
    return grey


def _luminance(channels: NDArray[Any]) -> NDArray[Any]:
    """Luminance of grey or of RGB, by the weights of Rec. 709."""
    if channels.shape[2] == 1:
        return channels[:, :, 0]
    red, green, blue = (channels[:, :, i] * np.float64(_REC709[i]) for i in range(3))
    luminance: NDArray[Any] = red + green + blue
    return luminance


def _levels(full_scale: int, linear: bool) -> NDArray[np.float64]:
    """Intensity of each integer from 0 to full scale."""
    levels = np.arange(full_scale + 1) / full_scale
    if linear:
        return levels
    # IEC 61966-2-1, the curve of nearly all photographs.
    return np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)


class LightImage(NamedTuple):
    """Intensity of an image, its colours if it has some, and what was done to it."""

    grey: Image
    colour: Image | None  # (rows, cols, 3), linear with full scale 1, if asked for
    curve: str  # "srgb" or "linear" for a colour image of integers, "floats", or "" for grey
    orientation: int = 1  # EXIF orientation of the file, which was turned upright
    is_lossy: bool = False  # whether the file was compressed with loss

    @property
    def words(self) -> str:
        """Remark on the colours, after a subject such as "left.png is"; empty for a grey image."""
        if not self.curve:
            return ""
        return f"in colour: it became grey by the weights of Rec. 709{_CURVES[self.curve]}"


def read_light(
    path: str | os.PathLike[str],
    *,
    linear: bool | None = None,
    keep_colour: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> LightImage:
    """Read the intensity of an image, upright; errors do not name the file.

    `linear` says whether integers are proportional to the light. None: those of a grey image are,
    and of a colour image the sRGB curve is undone.
    """
    return light_of(read_samples(path, max_pixels), linear=linear, keep_colour=keep_colour)


def light_of(
    samples: Samples, *, linear: bool | None = None, keep_colour: bool = False
) -> LightImage:
    """Intensity of samples, by the rule of `read_light`; NaN is allowed."""
    grey = as_grey(samples, linear=linear, allow_nan=True)
    if not _is_colour(samples):
        return LightImage(grey, None, "", samples.orientation, samples.is_lossy)
    curve = "floats"
    if samples.full_scale is not None:
        curve = "linear" if linear else "srgb"
    colour = as_colour(samples, linear=linear) if keep_colour else None
    return LightImage(grey, colour, curve, samples.orientation, samples.is_lossy)


def as_colour(samples: Samples, *, linear: bool | None = None) -> Image:
    """Red, green and blue of a colour image, (rows, cols, 3), linear with full scale 1."""
    channels: NDArray[Any] = samples.values[:, :, :3]
    if samples.full_scale is None:
        return np.ascontiguousarray(channels, dtype=np.float32)
    levels = _levels(samples.full_scale, bool(linear)).astype(np.float32)
    return np.asarray(levels[channels])


def samples_of(values: NDArray[Any]) -> Samples:
    """Samples of an array in colour: integers of 8 and 16 bits have the full scale of their type.

    Other numbers are taken as they are.
    """
    scales = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
    return Samples(values=values, full_scale=scales.get(values.dtype.newbyteorder("=")))


def _writable(image: ArrayLike) -> Image:
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
