"""Parts of cameras that are sold, and what is asked of a camera.

The catalogue has facts with their source, from TOML files.
"""

import difflib
import math
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import DesignError, InputError, RecordError
from d3s.lab.design.camera import THICKNESS_SHARE
from d3s.lab.design.predict import ErrorLimit
from d3s.record import Converted, OneLine, Record

CATALOGUE_FILE = Path(__file__).with_name("catalogue.toml")
"""Catalogue of the package."""

_LARGEST_BYTES = 1_000_000


class ImageSensor(Record):
    """Image sensor that is sold."""

    error: ClassVar[type[RecordError]] = DesignError

    name: OneLine = Field(description="the name it is sold by")
    pixel_pitch_m: float = Field(
        gt=1e-7, lt=1e-4, description="the distance between neighbouring pixel centres"
    )
    rows_px: int = Field(ge=64, le=20_000, description="the height of the sensor")
    cols_px: int = Field(ge=64, le=20_000, description="the width of the sensor")
    colour: bool = Field(default=False, description="whether it has colour filters")
    source: OneLine = Field(default="", description="where these facts are from")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows_px, self.cols_px


class StockLens(Record):
    """Lens that is sold."""

    error: ClassVar[type[RecordError]] = DesignError

    name: OneLine = Field(description="the name it is sold by")
    focal_length_m: float = Field(gt=0, lt=1, description="the focal length")
    diameter_m: float = Field(gt=0, lt=0.2, description="the outer diameter")
    clear_share: float = Field(
        default=0.9, gt=0, le=1, description="the clear diameter over the outer one"
    )
    length_m: float | None = Field(
        default=None, gt=0, lt=0.2, description="the length along the axis"
    )
    source: OneLine = Field(default="", description="where these facts are from")

    @property
    def least_f_number(self) -> float:
        """Focal length over the clear diameter."""
        return self.focal_length_m / (self.clear_share * self.diameter_m)

    @property
    def sizes_m(self) -> tuple[float, float, float]:
        """Outer diameter, length and clear diameter."""
        length_m = self.length_m or THICKNESS_SHARE * self.diameter_m
        return self.diameter_m, length_m, self.clear_share * self.diameter_m


_Named = TypeVar("_Named", ImageSensor, StockLens)


class Catalogue(Record):
    """Sensors and lenses to choose from."""

    error: ClassVar[type[RecordError]] = DesignError

    sensors: tuple[ImageSensor, ...] = Field(default=(), alias="sensor", description="sensors")
    lenses: tuple[StockLens, ...] = Field(default=(), alias="lens", description="lenses")

    def sensor(self, name: str) -> ImageSensor:
        """Sensor of a name; an InputError with the names that there are if there is none."""
        return _found(name, self.sensors, "sensor")

    def lens(self, name: str) -> StockLens:
        """Lens of a name; an InputError with the names that there are if there is none."""
        return _found(name, self.lenses, "lens")


def load_catalogue(*paths: str | os.PathLike[str]) -> Catalogue:
    """Read the catalogue of the package, and further files whose entries add to it.

    An entry with the name of an earlier one replaces it. A DesignError names the file, and every
    entry and field that is wrong.
    """
    sensors: dict[str, ImageSensor] = {}
    lenses: dict[str, StockLens] = {}
    for path in (CATALOGUE_FILE, *map(Path, paths)):
        read = _read(path)
        sensors |= {one.name: one for one in read.sensors}
        lenses |= {one.name: one for one in read.lenses}
    return Catalogue(sensor=tuple(sensors.values()), lens=tuple(lenses.values()))


def _read(path: Path) -> Catalogue:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise DesignError(f"is larger than {_LARGEST_BYTES} bytes.", path=path)
        return Catalogue(**tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise DesignError(f"cannot be read: {error.strerror or error}.", path=path) from error
    except DesignError as error:
        raise DesignError(*error.problems, path=path) from error
    except ValueError as error:
        raise DesignError(f"is not valid TOML: {error}.", path=path) from error


def _found(name: str, entries: Sequence[_Named], kind: str) -> _Named:
    for one in entries:
        if one.name.lower() == name.lower():
            return one
    names = [one.name for one in entries]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]}?" if close else f"Known are {', '.join(names)}."
    raise InputError(f"{kind}={name!r} is not in the catalogue. {hint}")


_Depth = Annotated[float, Field(gt=1e-3, le=1e4)]


class Requirements(Record):
    """Task of a camera: reach, error, size, field and light.

    The error is the mean absolute error of `joint` on a textured wall at every depth of the reach.
    """

    error: ClassVar[type[RecordError]] = DesignError

    reach_m: Converted[tuple[_Depth, _Depth]] = Field(
        description="the nearest and the farthest depth"
    )
    error_m: float = Field(default=0.0, ge=0, le=100, description="the largest error, as a length")
    error_share: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        validate_default=True,
        description="the largest error, as a share of the depth; the larger of both holds",
    )
    max_size_m: float | None = Field(
        default=None, gt=0, le=10, description="the longest side of lenses and sensor together"
    )
    min_field_rad: float = Field(
        default=math.radians(20),
        gt=0,
        lt=3,
        description="the least horizontal field of view, in radians",
    )
    min_light_um2: float | None = Field(
        default=None,
        gt=0,
        description="the least area of a pixel over the squared f-number, in square micrometres",
    )

    calibration_px: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="the disparity that a calibration leaves, which the error includes",
    )

    @field_validator("reach_m")
    @classmethod
    def _increases(cls, reach_m: tuple[float, float]) -> tuple[float, float]:
        if not reach_m[0] < reach_m[1]:
            raise ValueError("must be the nearest depth, then a larger one.")
        return reach_m

    @field_validator("error_share")
    @classmethod
    def _is_one_of_two(cls, share: float, info: ValidationInfo) -> float:
        if share == 0 and info.data.get("error_m") == 0:
            raise ValueError("or error_m must be above 0: say how large the error may be.")
        return share

    @property
    def limit(self) -> ErrorLimit:
        """Largest error at each depth."""
        return ErrorLimit(self.error_m, self.error_share)


class FixedValues(Record):
    """Values of the camera that are given; None is free to choose."""

    error: ClassVar[type[RecordError]] = DesignError

    focal_length_m: float | None = Field(
        default=None, gt=0, lt=1, description="the focal length of both lenses"
    )
    f_number: float | None = Field(
        default=None, ge=0.5, le=1000, description="the focal length over the opening"
    )
    baseline_m: float | None = Field(
        default=None, gt=0, lt=10, description="the distance of the lens centres"
    )
    focus_m: Converted[tuple[_Depth, _Depth] | None] = Field(
        default=None,
        validate_default=True,
        description="the distances in focus of the left and the right lens",
    )
    sensors: tuple[ImageSensor, ...] = Field(
        default=(), description="the sensors to choose from; those of the catalogue if none"
    )
    lenses: tuple[StockLens, ...] = Field(
        default=(), description="the lenses to choose from; lenses of any focal length if none"
    )
