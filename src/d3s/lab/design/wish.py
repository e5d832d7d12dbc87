"""Wish for a camera, and what is given of it and not to be chosen."""

import math
from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import DesignError, RecordError
from d3s.lab.design.catalogue import ImageSensor, StockLens
from d3s.lab.design.predict import ErrorWish
from d3s.record import Converted, Record

_Depth = Annotated[float, Field(gt=1e-3, le=1e4)]


class Wish(Record):
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
    def limit(self) -> ErrorWish:
        """Largest error at each depth."""
        return ErrorWish(self.error_m, self.error_share)


class Given(Record):
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
