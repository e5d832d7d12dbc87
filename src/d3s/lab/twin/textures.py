"""Textures with a physical size, at any resolution: patterns, and photos mirrored at their borders.

A texture is a set of rasters; the pitch of each is the base pitch times a power of two. The
homography between surface and view decides which rasters, and which part of each, a view needs. So
a texture shrinks with distance. Patterns are endless.
"""

import difflib
import os
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from d3s.errors import SceneError
from d3s.files.images import list_images, read_image, read_light
from d3s.files.raw import named
from d3s.lab.twin.geometry import ScenePart, Window
from d3s.lab.twin.patterns import PATTERNS, render
from d3s.lab.twin.patterns.noise import Grid
from d3s.lab.twin.sampling import Raster, Surface
from d3s.record import OneLine
from d3s.runtime.parallel import run_together
from d3s.types import Image

# Highlights may exceed full scale several times; larger values are taken for grey levels.
_BRIGHTEST = 16.0

# A texture of lower contrast cannot be matched.
_LEAST_CONTRAST = 1e-4

_HALF_BAND_REACH = 11  # taps of the low-pass on either side

# Size of the smallest level of a pyramid that is mirrored at the same place as the photo.
_SMALLEST_TEXELS = 64


def checked_image(given: NDArray[Any], name: str) -> Image:
    """Grey image as a read-only float32 copy; a ValueError unless it has finite floats up to 16."""
    if given.ndim != 2 or min(given.shape, default=0) < 2:
        raise ValueError(
            f"has shape {given.shape}, and a grey {name} of at least 2x2 is needed: one channel, "
            "in linear intensity."
        )
    if not np.issubdtype(given.dtype, np.floating):
        raise ValueError(
            f"has {given.dtype} values, and floats from 0 to 1 are needed. Divide it by its full "
            "scale."
        )
    image = np.array(given, dtype=np.float32)
    if not np.isfinite(image).all():
        raise ValueError("has values that are not finite. Fill them first.")
    if image.max() > _BRIGHTEST:
        raise ValueError(
            f"goes up to {float(image.max()):g}, and full scale is 1. Divide it by its full scale."
        )
    image.flags.writeable = False
    return image


class Level(NamedTuple):
    """Photo at one resolution, with the row and column of its middle texel."""

    image: Image
    row: int
    col: int


class Pyramid:
    """Photo at resolutions 1, 1/2, 1/4, ..., each computed at its first use.

    All levels share the middle texel, and are mirrored at the same places. For this, the number of
    texels on each side of the middle is cut to a multiple of a power of two, which removes up to
    3 % of the photo at its border.
    """

    def __init__(self, image: Image) -> None:
        spans = [_halvable(size) for size in image.shape]
        part = tuple(slice(first, last + 1) for first, _, last in spans)
        row, col = (middle - first for first, middle, _ in spans)
        self.image = image
        self.shape = (image.shape[0], image.shape[1])
        self._levels = [Level(np.ascontiguousarray(image[part]), row, col)]

    def level(self, number: int) -> Level:
        """Photo with texels 2**number times as large."""
        levels = self._levels
        while len(levels) <= number:
            levels = [*levels, _halved(levels[-1])]
        self._levels = levels  # in one assignment: safe with several threads
        return levels[number]


def _halvable(size: int) -> tuple[int, int, int]:
    """First, middle and last texel to keep of `size` texels."""
    multiple = 2 ** max(0, int(np.log2(size / _SMALLEST_TEXELS)))
    middle = size // 2
    return middle % multiple, middle, middle + (size - 1 - middle) // multiple * multiple


def _mirrored(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Indices reflected into 0 to size - 1, the border texels not repeated."""
    if size == 1:
        return np.zeros_like(numbers)
    folded = np.mod(numbers, 2 * size - 2)
    return np.asarray(np.minimum(folded, 2 * size - 2 - folded))


def _halved(level: Level) -> Level:
    """Photo at half the resolution: low-passed, every second texel, the middle one included."""
    import cv2

    kernel = _half_band()
    smooth = cv2.sepFilter2D(
        level.image, cv2.CV_32F, kernel, kernel, borderType=cv2.BORDER_REFLECT_101
    )
    image = smooth[level.row % 2 :: 2, level.col % 2 :: 2].astype(np.float32)
    return Level(image, level.row // 2, level.col // 2)


@cache
def _half_band() -> Image:
    """Half-band low-pass filter (windowed sinc).

    Sharp enough that repeated halving does not soften the photo.
    """
    place = np.arange(-_HALF_BAND_REACH, _HALF_BAND_REACH + 1)
    inside = 1 - (place / (_HALF_BAND_REACH + 1)) ** 2
    weights = np.sinc(place / 2) * np.i0(5.0 * np.sqrt(inside))
    return np.asarray(weights / weights.sum(), dtype=np.float32)


def _as_image(given: Any) -> Image | str:
    if isinstance(given, np.ndarray):
        image = checked_image(given, "image")
        _check_contrast(image)
        return image
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    raise ValueError("must be an image file, a folder of images, or an array.")


class Photo(ScenePart):
    """Photo as a texture: an image file, one image of a folder, or an array.

    Examples
    --------
    >>> import d3s
    >>> import numpy as np
    >>> picture = np.random.default_rng(0).random((64, 64))
    >>> poster = d3s.Photo(image=picture, width_m=0.3)
    >>> d3s.Plane(depth_m=1.0, texture=poster).texture.pixels().shape
    (64, 64)
    """

    image: Annotated[Any, AfterValidator(_as_image)] = Field(
        description="an image file, a folder of images, or an array"
    )
    number: int = Field(
        default=0, ge=0, lt=2**63, description="the image of a folder, by name, modulo their number"
    )
    width_m: float | None = Field(
        default=None,
        gt=1e-4,
        lt=1e3,
        description="the width on the object; fills the view by default",
    )
    encoding: Literal["srgb", "linear"] | None = Field(
        default=None, description="how a file stores light, srgb by default; an array is linear"
    )
    angle_rad: float = Field(default=0.0, ge=-4, le=4, description="the rotation, clockwise")
    contrast: float = Field(
        default=1.0, gt=0, le=2, description="a factor on the difference from mid grey"
    )
    grey: float = Field(default=0.5, ge=0, le=1, description="the grey that mid grey becomes")
    shading: float = Field(
        default=0.0, ge=0, le=0.5, description="the amplitude of slow shading, 0.1 to 0.4 m long"
    )

    @field_validator("encoding")
    @classmethod
    def _is_of_a_file(cls, encoding: str | None, info: ValidationInfo) -> str | None:
        if encoding == "srgb" and isinstance(info.data.get("image"), np.ndarray):
            raise ValueError("is for files: an array is linear. Undo its curve first.")
        return encoding

    def pixels(self) -> Image:
        """Image (rows, cols), linear, full scale 1."""
        return self.pyramid.image

    def channel_pyramid(self, channel: int | None) -> Pyramid:
        """Image of one channel of a colour file, at all resolutions; of a grey one, the image.

        Channels are 0 red, 1 green, 2 blue; None for grey.
        """
        if channel is None or isinstance(self.image, np.ndarray):
            return self.pyramid
        linear = self.encoding == "linear"
        found = _channels_of(str(Path(self.file)), self._written, linear)
        return self.pyramid if found is None else found[channel]

    @property
    def _written(self) -> int:
        """Time of the last change of the file: part of the cache key."""
        try:
            return Path(self.file).stat().st_mtime_ns
        except (OSError, ValueError):
            return 0  # reading the file raises the error

    @cached_property
    def pyramid(self) -> Pyramid:
        """Image at all resolutions, linear, full scale 1."""
        if isinstance(self.image, np.ndarray):
            return Pyramid(self.image)
        return _pyramid_of(str(Path(self.file)), self._written, self.encoding == "linear")

    @property
    def file(self) -> str:
        """Path of the image file; of a folder, the image chosen by `number`."""
        if not Path(self.image).is_dir():
            return str(self.image)
        images = list_images(self.image)
        return str(images[self.number % len(images)])


@lru_cache(maxsize=4)
def _channels_of(path: str, written: int, linear: bool) -> tuple[Pyramid, ...] | None:
    """Red, green and blue of a file; None if it is grey."""
    with named(path):
        colour = read_light(path, linear=linear, keep_colour=True).colour
    if colour is None:
        return None
    return tuple(Pyramid(np.ascontiguousarray(colour[:, :, one])) for one in range(3))


@lru_cache(maxsize=8)
def _pyramid_of(path: str, written: int, linear: bool) -> Pyramid:
    image = read_image(path, linear=linear)
    try:
        _check_contrast(image)
    except ValueError as error:
        raise SceneError(f"texture {path} {error}") from error
    return Pyramid(image)


def _check_contrast(image: NDArray[Any]) -> None:
    if float(np.ptp(image)) < _LEAST_CONTRAST:
        raise ValueError(
            f"has one colour ({float(image.flat[0]):.3g}): without contrast there is "
            "nothing to match. Choose another image."
        )


# Rasters of patterns are cached in blocks, for use in the next frame.
_BLOCK_TEXELS = 512
_BLOCKS_KEPT = 160  # 1 MB each; a frame of the prototype has 15 to 60

# Width of a photo that fills the view, over the width of the view: its border is trimmed.
_FILL = 1.04

# Finest detail of patterns, in metres; nearer surfaces are only magnified.
_FINEST_PITCH_M = 1e-5

# Distance of the seeds of the colours of a pattern from its own.
_SEED_STEP = 1_000_003
_LARGEST_SEED = 2**63


def check_pattern(name: str) -> str:
    """Name of a pattern; ValueError if there is no such pattern."""
    if name not in PATTERNS:
        raise ValueError(f"must be one of {', '.join(PATTERNS)}.")
    return name


PatternName = Annotated[OneLine, AfterValidator(check_pattern)]


class Texture(ScenePart):
    """Procedural pattern, endless and without a period, from a seed.

    Examples
    --------
    >>> import d3s
    >>> texture = d3s.Texture(pattern="leaves", seed=7, contrast=0.5)
    >>> d3s.Plane(depth_m=1.0, texture=texture).texture.seed
    7
    """

    pattern: PatternName = Field(default="leaves", description="the name of the pattern")
    seed: int = Field(default=0, ge=0, lt=2**63, description="the seed of the pattern")
    scale: float = Field(default=1.0, gt=1e-3, lt=1e3, description="the size relative to nature")
    angle_rad: float = Field(default=0.0, ge=-4, le=4, description="the rotation, clockwise")
    contrast: float = Field(
        default=1.0,
        ge=0,
        le=2,
        description="a factor on the difference from mid grey; 0 is a plain surface",
    )
    grey: float = Field(default=0.5, ge=0, le=1, description="the grey that mid grey becomes")
    shading: float = Field(
        default=0.0, ge=0, le=0.5, description="the amplitude of slow shading, 0.1 to 0.4 m long"
    )

    colour: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="the share of the pattern that red, green and blue have each for themselves; "
        "none is grey",
    )

    @property
    def base_pitch_m(self) -> float:
        """Pitch of the finest raster, in metres."""
        return _FINEST_PITCH_M * self.scale

    def raster(self, level: int, texels: Window, channel: int | None = None) -> Raster:
        """Texels at the pitch base_pitch_m * 2**level, numbered from the origin of the surface.

        Parameters
        ----------
        level
            Level of the pyramid; 0 is the finest.
        texels
            Window of texels to draw.
        channel
            Channel of a coloured pattern: 0 red, 1 green, 2 blue; None is their mean.
        """
        grey = self._drawn(level, texels, self.seed)
        if not self.colour:
            return grey
        seeds = [(self.seed + number * _SEED_STEP) % _LARGEST_SEED for number in (1, 2, 3)]
        own = seeds if channel is None else [seeds[channel]]
        mean = np.mean(
            [self._drawn(level, texels, seed).values for seed in own], axis=0, dtype=np.float32
        )
        values = np.float32(1 - self.colour) * grey.values + np.float32(self.colour) * mean
        return grey._replace(values=np.asarray(values, dtype=np.float32))

    def _drawn(self, level: int, texels: Window, seed: int) -> Raster:
        values = np.empty(texels.shape, dtype=np.float32)
        size, (row, col, rows, cols) = _BLOCK_TEXELS, texels
        blocks = [
            Window(first_row, first_col, size, size)
            for first_row in range(row - row % size, row + rows, size)
            for first_col in range(col - col % size, col + cols, size)
        ]
        contents = [_pattern_block(self.pattern, seed, level, block) for block in blocks]

        def copy(first: int) -> None:
            for block, content in list(zip(blocks, contents, strict=True))[first::2]:
                common = block.common(texels)
                values[common.within(texels)] = content[common.within(block)]

        run_together(lambda: copy(0), lambda: copy(1))
        return Raster(values, texels.row, texels.col, self.base_pitch_m * 2.0**level)


@lru_cache(maxsize=_BLOCKS_KEPT)
def _pattern_block(pattern: str, seed: int, level: int, block: Window) -> Image:
    texels = render(pattern, Grid(*block, _FINEST_PITCH_M * 2.0**level), seed)
    texels.flags.writeable = False
    return texels


def as_texture(given: Any) -> Texture | Photo:
    """Texture or Photo from a pattern's name, a file, a folder, an array or a table of fields.

    Raises a ValueError for anything else; the message lists the patterns.
    """
    if isinstance(given, Texture | Photo):
        return given
    if isinstance(given, np.ndarray):
        return Photo(image=given)
    if isinstance(given, dict):
        return Photo(**given) if "image" in given else Texture(**given)
    if isinstance(given, str | os.PathLike):
        return _named(os.fspath(given))
    raise ValueError(
        "must be the name of a pattern, an image file or folder, a Texture, a Photo or an array."
    )


def _named(name: str) -> Texture | Photo:
    if name in PATTERNS:
        return Texture(pattern=name)
    if not name:
        raise ValueError("is empty: name a pattern, an image file or a folder.")
    try:
        exists = Path(name).exists()
    except (OSError, ValueError):  # too long, or with a zero byte
        exists = False
    if exists:
        return Photo(image=name)
    close = difflib.get_close_matches(name, PATTERNS, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"Known patterns are {', '.join(PATTERNS)}."
    raise ValueError(f"is neither a pattern nor a file or folder. {hint}")


def surface_of(
    texture: Texture | Photo, extent_m: tuple[float, float], channel: int | None = None
) -> Surface:
    """Surface of a texture; a photo without a width fills `extent_m`, (height, width) in m.

    Channels are 0 red, 1 green, 2 blue; None for grey. A grey texture has it in all channels.
    """
    if isinstance(texture, Texture):
        seed, pitch_m = texture.seed, texture.base_pitch_m
        draw = partial(texture.raster, channel=channel)
    else:
        rows, cols = texture.pyramid.shape
        width_m = texture.width_m
        if width_m is None:
            width_m = max(extent_m[1], extent_m[0] * cols / rows) * _FILL
        seed, pitch_m = texture.number, width_m / cols
        draw = partial(_photo_raster, texture.channel_pyramid(channel), pitch_m)
    look = (texture.angle_rad, texture.contrast, texture.grey, texture.shading)
    return Surface(draw, pitch_m, *look, seed)


def _photo_raster(pyramid: Pyramid, base_pitch_m: float, level: int, texels: Window) -> Raster:
    """Texels of a photo, mirrored beyond its borders, numbered from its middle."""
    image, row, col = pyramid.level(level)
    rows = _mirrored(np.arange(texels.rows) + texels.row + row, image.shape[0])
    cols = _mirrored(np.arange(texels.cols) + texels.col + col, image.shape[1])
    return Raster(image[np.ix_(rows, cols)], texels.row, texels.col, base_pitch_m * 2.0**level)
