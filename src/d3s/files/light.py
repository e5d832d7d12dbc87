"""Light in an image file: the one rule by which its numbers become intensity, and its colours.

Grey integers are proportional to the light, as a sensor gives them. Integers of a colour image are
those of a photograph: the sRGB curve is undone. Floats have no curve. Whoever knows better says so
with `linear`.
"""

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.files.images import as_grey, is_colour, levels_of, read_samples, takes_linear
from d3s.files.raw import Samples
from d3s.formats import MAX_PIXELS
from d3s.types import Image

_DONE = {
    "srgb": ", and the curve of sRGB was undone before. If its numbers are proportional to the "
    "light, say so: --encoding linear, linear=True in Python.",
    "linear": ", and its numbers were taken as linear.",
    "floats": ".",
}


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
        return f"in colour: it became grey by the weights of Rec. 709{_DONE[self.curve]}"


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
    if not is_colour(samples):
        return LightImage(grey, None, "", samples.orientation, samples.is_lossy)
    curve = "floats"
    if samples.full_scale is not None:
        curve = "linear" if takes_linear(samples, linear) else "srgb"
    colour = as_colour(samples, linear=linear) if keep_colour else None
    return LightImage(grey, colour, curve, samples.orientation, samples.is_lossy)


def as_colour(samples: Samples, *, linear: bool | None = None) -> Image:
    """Red, green and blue of a colour image, (rows, cols, 3), linear with full scale 1."""
    channels: NDArray[Any] = samples.values[:, :, :3]
    if samples.full_scale is None:
        return np.ascontiguousarray(channels, dtype=np.float32)
    levels = levels_of(samples.full_scale, takes_linear(samples, linear)).astype(np.float32)
    return np.asarray(levels[channels])


def samples_of(values: NDArray[Any]) -> Samples:
    """Samples of an array in colour: integers of 8 and 16 bits have the full scale of their type.

    Other numbers are taken as they are.
    """
    scales = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
    return Samples(values=values, full_scale=scales.get(values.dtype.newbyteorder("=")))
