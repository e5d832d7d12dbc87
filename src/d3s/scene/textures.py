"""Textures: what is painted on a surface, with a physical size, at any resolution.

A texture comes as rasters whose pitch is a power of two of its base pitch. Which of them a view
needs, and how much of each, follows from the homography between both; so a surface shrinks with
distance as a real one does. A pattern of ours has no end. A photograph has: beyond it, it goes on
mirrored.
"""

import difflib
import os
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, ConfigDict, Field

from d3s.errors import SceneError
from d3s.files.images import list_images, read_image
from d3s.optics.lens import FloatArray
from d3s.record import OneLine
from d3s.scene.geometry import ScenePart, Window
from d3s.scene.grid import Grid
from d3s.scene.sampling import (
    RASTER_MARGIN,
    REACH_PX,
    Image,
    Raster,
    sample_projected,
    sample_scaled,
)

# Rasters of patterns are kept in blocks, so that the next frame finds them.
BLOCK_TEXELS = 1024
_BLOCKS_KEPT = 64  # 4 MB each

# Patterns have detail down to this size, in metres; what is closer is only magnified.
FINEST_PITCH_M = 1e-5

# The finest and coarsest detail that differs from grey by less than this cannot be matched.
_LEAST_CONTRAST = 1e-4

_HALF_BAND_REACH = 11


class Surface(Protocol):
    """What can be painted on a plane."""

    @property
    def contrast(self) -> float:
        """Factor on the difference to mid grey."""

    @property
    def angle_rad(self) -> float:
        """Turn on the surface, clockwise."""

    @property
    def base_pitch_m(self) -> float:
        """Pitch of the finest raster."""

    def raster(self, level: int, grid_rows: range, grid_cols: range) -> Raster:
        """Texels of some rows and columns, at base_pitch_m * 2**level."""


def check_pattern(name: str) -> str:
    """The name of a pattern; a ValueError, if it is none."""
    from d3s.scene.patterns import PATTERNS

    if name not in PATTERNS:
        raise ValueError(f"must be one of {', '.join(PATTERNS)}.")
    return name


class Texture(ScenePart):
    """A pattern that D3S makes itself, endless and without a period, from a seed."""

    pattern: Annotated[OneLine, AfterValidator(check_pattern)] = Field(
        default="leaves", description="the name of the pattern"
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="which of all patterns of that name")
    scale: float = Field(
        default=1.0, gt=1e-3, lt=1e3, description="the size, one as it is in nature"
    )
    angle_rad: float = Field(default=0.0, ge=-4, le=4, description="the turn, clockwise")
    contrast: float = Field(
        default=1.0, gt=0, le=2, description="a factor on the difference to mid grey"
    )

    @property
    def base_pitch_m(self) -> float:
        """Pitch of the finest raster."""
        return FINEST_PITCH_M * self.scale

    def raster(self, level: int, grid_rows: range, grid_cols: range) -> Raster:
        """Texels of some rows and columns, at base_pitch_m * 2**level."""
        values = np.empty((len(grid_rows), len(grid_cols)), dtype=np.float32)
        outer = Window(grid_rows.start, grid_cols.start, *values.shape)
        for block_row in _blocks(grid_rows):
            for block_col in _blocks(grid_cols):
                block = Window(
                    block_row * BLOCK_TEXELS, block_col * BLOCK_TEXELS, BLOCK_TEXELS, BLOCK_TEXELS
                )
                common = block.common(outer)
                texels = _pattern_block(self.pattern, self.seed, level, block_row, block_col)
                values[common.within(outer)] = texels[common.within(block)]
        return Raster(values, outer.row, outer.col, self.base_pitch_m * 2.0**level)


def _blocks(numbers: range) -> range:
    return range(numbers.start // BLOCK_TEXELS, (numbers.stop - 1) // BLOCK_TEXELS + 1)


@lru_cache(maxsize=_BLOCKS_KEPT)
def _pattern_block(pattern: str, seed: int, level: int, block_row: int, block_col: int) -> Image:
    from d3s.scene.patterns import PATTERNS

    grid = Grid(
        first_row=block_row * BLOCK_TEXELS,
        first_col=block_col * BLOCK_TEXELS,
        rows=BLOCK_TEXELS,
        cols=BLOCK_TEXELS,
        pitch_m=FINEST_PITCH_M * 2.0**level,
    )
    texels = PATTERNS[pattern].render(grid, seed)
    texels.flags.writeable = False
    return texels


def _as_image(given: Any) -> Image | str:
    if isinstance(given, np.ndarray):
        image = checked_image(given, "image")
        check_contrast(image)
        return image
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    raise ValueError("must be an image file, a folder of images, or an array.")


class Photo(ScenePart):
    """A picture as a texture: an image file, one out of a folder of them, or an array."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    image: Annotated[Any, AfterValidator(_as_image)] = Field(
        description="an image file, a folder of images, or an array"
    )
    number: int = Field(
        default=0, ge=0, lt=2**63, description="which image of a folder, by name, counted around"
    )
    width_m: float | None = Field(
        default=None, gt=1e-4, lt=1e3, description="the width on the object; fills the view if left"
    )
    encoding: Literal["srgb", "linear"] = Field(
        default="srgb", description="how the file stores light; an array is linear"
    )
    angle_rad: float = Field(default=0.0, ge=-4, le=4, description="the turn, clockwise")
    contrast: float = Field(
        default=1.0, gt=0, le=2, description="a factor on the difference to mid grey"
    )

    def pixels(self) -> Image:
        """The picture, in linear intensity."""
        if isinstance(self.image, np.ndarray):
            return self.image
        return _photo(self.file, self.encoding == "linear")

    @property
    def file(self) -> str:
        """The image file itself, where a folder was named."""
        if not Path(self.image).is_dir():
            return str(self.image)
        images = list_images(self.image)
        return str(images[self.number % len(images)])


@lru_cache(maxsize=8)
def _photo(path: str, linear: bool) -> Image:
    image = read_image(path, linear=linear)
    try:
        check_contrast(image)
    except ValueError as error:
        raise SceneError(f"texture {path} {error}") from error
    image.flags.writeable = False
    return image


def check_contrast(image: NDArray[Any]) -> None:
    """Refuse a texture of one colour."""
    if float(np.ptp(image)) < _LEAST_CONTRAST:
        raise ValueError(
            f"has one colour ({float(image.flat[0]):.3g}): without contrast there is "
            "nothing to match. Choose another image."
        )


class Picture:
    """An image of a given size on the object, mirrored beyond its borders."""

    def __init__(self, image: Image, width_m: float, angle_rad: float, contrast: float) -> None:
        self.angle_rad, self.contrast = angle_rad, contrast
        self.base_pitch_m = width_m / image.shape[1]
        self._image = image

    @cached_property
    def _levels(self) -> list[Image]:
        return [self._image]

    def _level(self, level: int) -> Image:
        while len(self._levels) <= level:
            self._levels.append(_halved(self._levels[-1]))
        return self._levels[level]

    def raster(self, level: int, grid_rows: range, grid_cols: range) -> Raster:
        """Texels of some rows and columns, at base_pitch_m * 2**level.

        The origin is in the middle of the picture. Texels lie on multiples of the pitch there; the
        picture of each level is read at the place where that texel is.
        """
        image = self._level(level)
        rows = _mirrored(np.asarray(grid_rows) + image.shape[0] // 2, image.shape[0])
        cols = _mirrored(np.asarray(grid_cols) + image.shape[1] // 2, image.shape[1])
        return Raster(
            image[np.ix_(rows, cols)],
            grid_rows.start,
            grid_cols.start,
            self.base_pitch_m * 2.0**level,
        )


def _mirrored(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Numbers folded into 0 to size - 1, back and forth, the ends not repeated."""
    if size == 1:
        return np.zeros_like(numbers)
    folded = np.mod(numbers, 2 * size - 2)
    return np.asarray(np.minimum(folded, 2 * size - 2 - folded))


def _halved(image: Image) -> Image:
    """Every second texel of a smoothed image, beginning so that the middle one is kept."""
    import cv2

    kernel = _half_band()
    smooth = cv2.sepFilter2D(image, cv2.CV_32F, kernel, kernel, borderType=cv2.BORDER_REFLECT_101)
    rows, cols = image.shape
    return np.ascontiguousarray(smooth[(rows // 2) % 2 :: 2, (cols // 2) % 2 :: 2])


@cache
def _half_band() -> Image:
    """Weights that pass what every second texel can show, and little else.

    So sharp that halving again and again does not soften the picture, whatever its resolution.
    """
    place = np.arange(-_HALF_BAND_REACH, _HALF_BAND_REACH + 1)
    inside = 1 - (place / (_HALF_BAND_REACH + 1)) ** 2
    weights = np.sinc(place / 2) * np.i0(5.0 * np.sqrt(inside))
    return np.asarray(weights / weights.sum(), dtype=np.float32)


def rasters_for(surface: Surface, matrix: FloatArray, window: Window) -> list[Raster]:
    """Rasters that a window needs, each as large as the part of the window that reads it."""
    reach = int(REACH_PX) + 1
    corners = _corners(window.grown(reach, reach))
    area = np.sqrt(abs(np.linalg.det(matrix)))
    w = corners @ matrix[2]
    smallest, largest = area / w.max() ** 1.5, area / w.min() ** 1.5
    first, last = (
        max(0, int(np.floor(np.log2(size / surface.base_pitch_m) + 1e-9)))
        for size in (smallest, largest)
    )
    rasters = []
    for level in range(first, last + 1):
        pitch = surface.base_pitch_m * 2.0**level
        far = (area / pitch) ** (2 / 3) * 1.01 if level > first else np.inf
        near = (area / (2 * pitch)) ** (2 / 3) * 0.99 if level < last else 0.0
        part = _clipped(_clipped(corners, matrix[2], -near), -matrix[2], far)
        if len(part):
            places = part @ matrix[:2].T / (part @ matrix[2])[:, np.newaxis] / pitch
            cols, rows = (_covering(places[:, axis]) for axis in (0, 1))
            rasters.append(surface.raster(level, rows, cols))
    return rasters


def _corners(window: Window) -> FloatArray:
    last_row, last_col = window.row + window.rows - 1, window.col + window.cols - 1
    return np.array(
        [
            (window.col, window.row, 1.0),
            (last_col, window.row, 1.0),
            (last_col, last_row, 1.0),
            (window.col, last_row, 1.0),
        ]
    )


def _clipped(polygon: FloatArray, line: FloatArray, offset: float) -> FloatArray:
    """Part of a convex polygon of points (x, y, 1) in which line . point + offset >= 0."""
    if not np.isfinite(offset) or not len(polygon):
        return polygon
    height = polygon @ line + offset
    kept = []
    for i, (point, here) in enumerate(zip(polygon, height, strict=True)):
        before = height[i - 1]
        if (here >= 0) != (before >= 0):
            kept.append(polygon[i - 1] + (point - polygon[i - 1]) * before / (before - here))
        if here >= 0:
            kept.append(point)
    return np.array(kept)


def _covering(places: FloatArray) -> range:
    first, last = int(np.floor(places.min())), int(np.ceil(places.max()))
    return range(first - RASTER_MARGIN, last + RASTER_MARGIN + 1)


def paint(surface: Surface, matrix: FloatArray, window: Window) -> Image:
    """Pixels of a window that looks at a surface through a perfect lens, in linear intensity."""
    if surface.angle_rad:
        cos, sin = np.cos(surface.angle_rad), np.sin(surface.angle_rad)
        matrix = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]]) @ matrix
    rasters = rasters_for(surface, matrix, window)
    is_scaling = np.count_nonzero(matrix - np.diag(np.diag(matrix))) == np.count_nonzero(
        matrix[:2, 2]
    )
    # A texture that is magnified beyond its texels is read between them.
    is_fine = rasters[0].pitch_m <= np.sqrt(abs(np.linalg.det(matrix / matrix[2, 2])))
    if is_scaling and is_fine and len(rasters) == 1:
        pixels = sample_scaled(rasters[0], matrix, window)
    else:
        pixels = sample_projected(rasters, matrix, window)
    if surface.contrast != 1:
        pixels = np.float32(0.5) + np.float32(surface.contrast) * (pixels - np.float32(0.5))
    return pixels


def as_texture(given: Any) -> Texture | Photo:
    """A texture from what people write: a pattern's name, a file, a folder, an array.

    Raises
    ------
    ValueError
        Telling what is known, when it is none of these.
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
    from d3s.scene.patterns import PATTERNS

    if name in PATTERNS:
        return Texture(pattern=name)
    try:
        exists = Path(name).exists()
    except (OSError, ValueError):  # too long, or with a zero byte
        exists = False
    if exists:
        return Photo(image=name)
    close = difflib.get_close_matches(name, PATTERNS, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"Known patterns are {', '.join(PATTERNS)}."
    raise ValueError(f"is neither a pattern nor a file or folder. {hint}")


def checked_image(given: NDArray[Any], name: str) -> Image:
    """A grey image as a read-only float32 copy.

    Raises
    ------
    ValueError
        When it is not a grey image of finite floats.
    """
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
    image.flags.writeable = False
    return image


def surface_of(texture: Texture | Photo, extent_m: tuple[float, float]) -> Surface:
    """The texture with its physical size; a picture without one fills (height, width) metres."""
    if isinstance(texture, Texture):
        return texture
    image = texture.pixels()
    rows, cols = image.shape
    width_m = texture.width_m
    if width_m is None:
        width_m = max(extent_m[1], extent_m[0] * cols / rows) * 1.02
    return Picture(image, width_m, texture.angle_rad, texture.contrast)
