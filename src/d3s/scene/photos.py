"""Pictures as textures: files, folders of them, and arrays; mirrored beyond their borders."""

import os
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, field_validator

from d3s.errors import SceneError
from d3s.files.images import list_images, read_image
from d3s.scene.geometry import ScenePart
from d3s.scene.sampling import Raster
from d3s.types import Image

# A highlight may be several times as bright as white; 255 is a grey level.
_BRIGHTEST = 16.0

# What differs by less than this cannot be matched.
_LEAST_CONTRAST = 1e-4

_HALF_BAND_REACH = 11

# A picture is halved, all its levels mirrored alike, until it is about this small.
_TEXELS_AT_LAST = 64


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
    if image.max() > _BRIGHTEST:
        raise ValueError(
            f"goes up to {float(image.max()):g}, and full scale is 1. Divide it by its full scale."
        )
    image.flags.writeable = False
    return image


class Level(NamedTuple):
    """A picture at one resolution, and its texel in the middle."""

    image: Image
    row: int
    col: int


class Pyramid:
    """A picture at every half of its resolution, each made when it is first asked for.

    All levels have the middle texel, and are mirrored at the same places: on each side of the
    middle only as many texels are kept as can be halved again and again, which costs up to 3 % of
    the border.
    """

    def __init__(self, image: Image) -> None:
        spans = [_halvable(size) for size in image.shape]
        part = tuple(slice(first, last + 1) for first, _, last in spans)
        row, col = (middle - first for first, middle, _ in spans)
        self.image = image
        self.shape = (image.shape[0], image.shape[1])
        self._levels = [Level(np.ascontiguousarray(image[part]), row, col)]

    def level(self, number: int) -> Level:
        """The picture with texels 2**number times as large."""
        levels = self._levels
        while len(levels) <= number:
            levels = [*levels, _halved(levels[-1])]
        self._levels = levels  # whole: another thread may have made the same, and never a part
        return levels[number]


class Picture:
    """A picture of a given size on the object, mirrored beyond its borders."""

    def __init__(self, pyramid: Pyramid, width_m: float, angle_rad: float, contrast: float) -> None:
        self.angle_rad, self.contrast = angle_rad, contrast
        self.base_pitch_m = width_m / pyramid.shape[1]
        self._pyramid = pyramid

    def raster(self, level: int, grid_rows: range, grid_cols: range) -> Raster:
        """Texels of some rows and columns, at base_pitch_m * 2**level, the middle at (0, 0)."""
        image, row, col = self._pyramid.level(level)
        rows = _mirrored(np.asarray(grid_rows) + row, image.shape[0])
        cols = _mirrored(np.asarray(grid_cols) + col, image.shape[1])
        return Raster(
            image[np.ix_(rows, cols)],
            grid_rows.start,
            grid_cols.start,
            self.base_pitch_m * 2.0**level,
        )


def _halvable(size: int) -> tuple[int, int, int]:
    """First, middle and last texel to keep of so many."""
    multiple = 2 ** max(0, int(np.log2(size / _TEXELS_AT_LAST)))
    middle = size // 2
    return middle % multiple, middle, middle + (size - 1 - middle) // multiple * multiple


def _mirrored(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Numbers folded into 0 to size - 1, back and forth, the ends not repeated."""
    if size == 1:
        return np.zeros_like(numbers)
    folded = np.mod(numbers, 2 * size - 2)
    return np.asarray(np.minimum(folded, 2 * size - 2 - folded))


def _halved(level: Level) -> Level:
    """Every second texel of a smoothed picture, the middle one among them."""
    import cv2

    kernel = _half_band()
    smooth = cv2.sepFilter2D(
        level.image, cv2.CV_32F, kernel, kernel, borderType=cv2.BORDER_REFLECT_101
    )
    image = smooth[level.row % 2 :: 2, level.col % 2 :: 2].astype(np.float32)
    return Level(image, level.row // 2, level.col // 2)


@cache
def _half_band() -> Image:
    """Weights that pass what every second texel can show, and little else.

    So sharp that halving again and again does not soften the picture, whatever its resolution.
    """
    place = np.arange(-_HALF_BAND_REACH, _HALF_BAND_REACH + 1)
    inside = 1 - (place / (_HALF_BAND_REACH + 1)) ** 2
    weights = np.sinc(place / 2) * np.i0(5.0 * np.sqrt(inside))
    return np.asarray(weights / weights.sum(), dtype=np.float32)


def _as_image(given: Any) -> Image | str:
    if isinstance(given, np.ndarray):
        image = checked_image(given, "image")
        check_contrast(image)
        return image
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    raise ValueError("must be an image file, a folder of images, or an array.")


class Photo(ScenePart):
    """A picture as a texture: an image file, one out of a folder of them, or an array.

    Examples
    --------
    >>> import d3s
    >>> import numpy as np
    >>> picture = np.random.default_rng(0).random((64, 64))
    >>> poster = d3s.Photo(image=picture, width_m=0.3)
    >>> d3s.Plane(depth_m=1.0, texture=poster).texture.pixels().shape
    (64, 64)
    """

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
    encoding: Literal["srgb", "linear"] | None = Field(
        default=None,
        description="how a file stores light, srgb if left; an array is linear",
    )
    angle_rad: float = Field(default=0.0, ge=-4, le=4, description="the turn, clockwise")
    contrast: float = Field(
        default=1.0, gt=0, le=2, description="a factor on the difference to mid grey"
    )

    @field_validator("encoding")
    @classmethod
    def _is_of_a_file(cls, encoding: str | None, info: ValidationInfo) -> str | None:
        if encoding == "srgb" and isinstance(info.data.get("image"), np.ndarray):
            raise ValueError("is for files: an array is linear. Undo its curve first.")
        return encoding

    def pixels(self) -> Image:
        """The picture, in linear intensity."""
        return self.pyramid.image

    @cached_property
    def pyramid(self) -> Pyramid:
        """The picture in linear intensity, at all its resolutions."""
        if isinstance(self.image, np.ndarray):
            return Pyramid(self.image)
        path = Path(self.file)
        try:
            written = path.stat().st_mtime_ns  # so that a file that was changed is read again
        except (OSError, ValueError):
            written = 0  # reading it will tell what is wrong
        return _pyramid_of(str(path), written, self.encoding == "linear")

    @property
    def file(self) -> str:
        """The image file itself, where a folder was named."""
        if not Path(self.image).is_dir():
            return str(self.image)
        images = list_images(self.image)
        return str(images[self.number % len(images)])


@lru_cache(maxsize=8)
def _pyramid_of(path: str, written: int, linear: bool) -> Pyramid:
    image = read_image(path, linear=linear)
    try:
        check_contrast(image)
    except ValueError as error:
        raise SceneError(f"texture {path} {error}") from error
    return Pyramid(image)


def check_contrast(image: NDArray[Any]) -> None:
    """Refuse a texture of one colour."""
    if float(np.ptp(image)) < _LEAST_CONTRAST:
        raise ValueError(
            f"has one colour ({float(image.flat[0]):.3g}): without contrast there is "
            "nothing to match. Choose another image."
        )
