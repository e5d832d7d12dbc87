"""Camera on paper: optics, sensor and the room that lenses and sensor take."""

import math
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from d3s.errors import DesignError, RecordError
from d3s.record import Converted, OneLine, Record
from d3s.rig import Optics, Rig

# Clear diameter of a stock lens over its outer diameter, and its thickness over that: what a lens
# takes that is not in the catalogue. Stock achromats have 0.9 and 0.3 to 0.5.
CLEAR_SHARE, THICKNESS_SHARE = 0.9, 0.4
# A lens forms an image of nearer points, but larger than the points themselves.
_NEAREST_FOCAL_LENGTHS = 2.0
_PIXELS_PER_M = 1e6

_Pixels = Annotated[int, Field(ge=64, le=20_000)]


class Camera(Record):
    """Two-lens camera on paper: its optics, its sensor, and the size of its lenses.

    Both lenses image onto one sensor, side by side, if their axes are about half its width apart;
    if the axes are farther apart than the sensor is wide, each lens has a sensor of its own.

    Examples
    --------
    >>> from d3s.lab.design.camera import Camera
    >>> camera = Camera.of_lenses(
    ...     focal_length_m=12e-3, f_number=6.0, baseline_m=3.84e-3, focus_m=(0.81, 0.88),
    ...     pixel_pitch_m=2e-6, sensor_px=(2160, 3840),
    ... )
    >>> print("{:.1f} x {:.1f} x {:.1f} mm".format(*(1e3 * side for side in camera.box_m)))
    7.7 x 4.3 x 13.1 mm
    """

    error: ClassVar[type[RecordError]] = DesignError

    name: OneLine = Field(default="design", description="the name of the camera")
    optics: Optics = Field(description="the optics of the camera")
    sensor_px: Converted[tuple[_Pixels, _Pixels]] = Field(
        default=(2160, 3840),
        validate_default=True,
        description="rows and columns of the sensor, or of each of two sensors",
    )
    lens_diameter_m: float | None = Field(
        default=None,
        gt=0,
        lt=0.2,
        validate_default=True,
        description="the outer diameter of a lens; 1.11 times its opening if left",
    )
    lens_length_m: float | None = Field(
        default=None,
        gt=0,
        lt=0.2,
        description="the length of a lens along its axis; 0.4 times its diameter if left",
    )

    @field_validator("optics")
    @classmethod
    def _has_two_lenses(cls, optics: Optics) -> Optics:
        if optics.aperture_radius_m == 0:
            raise ValueError(
                "must have an aperture_radius_m above 0: a pinhole passes no light. Give the "
                "f-number of the lenses."
            )
        for side, focus_m in zip(("left", "right"), optics.focus_distances_m, strict=True):
            if focus_m < 0:
                raise ValueError(
                    f"must focus in front of the camera: the {side} lens is focused beyond "
                    "infinity. Move the sensor away from the lenses, or lower the power."
                )
        return optics

    @field_validator("sensor_px")
    @classmethod
    def _lies_behind_the_lenses(
        cls, sensor_px: tuple[int, int], info: ValidationInfo
    ) -> tuple[int, int]:
        optics = info.data.get("optics")
        if optics is not None:
            _check_sensors(optics, sensor_px[1])
        return sensor_px

    @field_validator("lens_diameter_m")
    @classmethod
    def _is_wider_than_its_opening(
        cls, diameter_m: float | None, info: ValidationInfo
    ) -> float | None:
        optics = info.data.get("optics")
        if optics is None:
            return diameter_m
        opening_m = 2 * optics.aperture_radius_m
        if diameter_m is not None and diameter_m < opening_m:
            raise ValueError(
                f"must be at least {opening_m:.4g}, the opening that f/{optics.f_number:.3g} "
                "needs: it is in metres. Choose a larger lens, or a larger f-number."
            )
        return diameter_m

    @model_validator(mode="after")
    def _lenses_fit_beside_each_other(self) -> Self:
        across_mm, baseline_mm = 1e3 * self.outer_lens_m[0], 1e3 * self.optics.baseline_m
        if across_mm > baseline_mm * (1 + 1e-9):
            raise DesignError(
                f"lenses of {across_mm:.2f} mm do not fit {baseline_mm:.2f} mm apart: a lens is at "
                "most as wide as baseline_m. Lengthen the baseline, or choose a larger f-number or "
                "a shorter focal length."
            )
        return self

    @classmethod
    def of_lenses(
        cls,
        *,
        focal_length_m: float,
        f_number: float,
        baseline_m: float,
        focus_m: tuple[float, float],
        pixel_pitch_m: float,
        sensor_px: tuple[int, int] = (2160, 3840),
        lens_diameter_m: float | None = None,
        lens_length_m: float | None = None,
        name: str = "design",
    ) -> Self:
        """Return the camera of two lenses of one focal length that focus at two distances.

        Parameters
        ----------
        focal_length_m
            Focal length of both lenses.
        f_number
            Focal length over the diameter of the opening.
        baseline_m
            Distance of the lens centres.
        focus_m
            Distances in focus of the left and the right lens; infinity is allowed.
        pixel_pitch_m
            Distance of neighbouring pixel centres.
        sensor_px
            Rows and columns of the sensor.
        lens_diameter_m, lens_length_m
            Outer size of a lens; from its opening if left.
        name
            Name of the camera.

        Raises
        ------
        DesignError
            Naming the value that no camera can have, and the rule.
        RigError
            Naming every value of the optics that is out of its range.

        Notes
        -----
        The sensor is where a lens of this focal length images the mean of both vergences. In the
        model the lenses differ in power; a builder moves one of them by `focus_difference_m`.
        """
        _check_lenses(focal_length_m, f_number, focus_m)
        vergences = [1 / one for one in focus_m]
        sensor_distance_m = 1 / (1 / focal_length_m - sum(vergences) / 2)
        optics = Optics(
            sensor_distance_m=sensor_distance_m,
            aperture_radius_m=focal_length_m / f_number / 2,
            baseline_m=baseline_m,
            optical_power_left_dpt=vergences[0] + 1 / sensor_distance_m,
            optical_power_right_dpt=vergences[1] + 1 / sensor_distance_m,
            pixel_pitch_m=pixel_pitch_m,
            aperture_gaussian_width=0.5,
            disparity_offset_px=0.0,
        )
        return cls(
            name=name,
            optics=optics,
            sensor_px=sensor_px,
            lens_diameter_m=lens_diameter_m,
            lens_length_m=lens_length_m,
        )

    @classmethod
    def paper_prototype(cls) -> Self:
        """Return the paper's camera: achromats of 2 mm on a sensor of 3840 x 2160 px."""
        rig = Rig.paper_prototype()
        return cls(
            name=rig.name, optics=rig.optics, sensor_px=(2160, 3840), lens_diameter_m=2 / 0.9 * 1e-3
        )

    @property
    def rig(self) -> Rig:
        """The camera as a rig without calibration."""
        return Rig(name=self.name, optics=self.optics)

    @property
    def focal_length_m(self) -> float:
        """Focal length of the mean of both powers."""
        optics = self.optics
        return 2 / (optics.optical_power_left_dpt + optics.optical_power_right_dpt)

    @property
    def f_number(self) -> float:
        """Focal length over the diameter of the opening, as lenses are sold."""
        return self.focal_length_m / (2 * self.optics.aperture_radius_m)

    @property
    def focus_difference_m(self) -> float:
        """Distance by which one of two equal lenses is moved to focus elsewhere."""
        optics = self.optics
        powers = optics.optical_power_left_dpt - optics.optical_power_right_dpt
        return abs(powers) * optics.sensor_distance_m**2

    @property
    def sensors(self) -> int:
        """Number of sensors: 1 behind both lenses, or 2."""
        optics = self.optics
        return 2 if optics.baseline_m >= self.sensor_px[1] * optics.pixel_pitch_m else 1

    @property
    def view_px(self) -> tuple[int, int]:
        """Rows and columns of each rectified view, centred on the axis of its lens."""
        return self.sensor_px[0], max(round(float(self._view_and_box[0])), 0)

    @property
    def field_of_view_rad(self) -> tuple[float, float]:
        """Full field of a view, vertical and horizontal."""
        return self.optics.field_of_view_rad(self.view_px)

    @property
    def light_um2(self) -> float:
        """Light that a pixel collects of a given scene: its area over the squared f-number."""
        return (_PIXELS_PER_M * self.optics.pixel_pitch_m / self.f_number) ** 2

    @property
    def outer_lens_m(self) -> tuple[float, float]:
        """Diameter and length of a lens."""
        opening_m = 2 * self.optics.aperture_radius_m
        diameter_m = self.lens_diameter_m or opening_m / CLEAR_SHARE
        return diameter_m, self.lens_length_m or THICKNESS_SHARE * diameter_m

    @property
    def box_m(self) -> tuple[float, float, float]:
        """Width, height and length of the box around lenses and sensors, without a housing."""
        width, height, length = self._view_and_box[1]
        return float(width), float(height), float(length)

    @property
    def size_m(self) -> float:
        """Longest side of the box around lenses and sensors."""
        return max(self.box_m)

    @property
    def _view_and_box(self) -> tuple[Any, tuple[Any, Any, Any]]:
        optics = self.optics
        return view_and_box(
            optics.baseline_m,
            optics.sensor_distance_m,
            optics.pixel_pitch_m,
            self.sensor_px,
            self.outer_lens_m,
        )


def view_and_box(
    baseline_m: Any, sensor_distance_m: Any, pitch_m: Any, sensor_px: Any, lens_m: Any
) -> tuple[Any, tuple[Any, Any, Any]]:
    """Columns of a view, and width, height and length of the box around lenses and sensors.

    Numbers, or arrays of many cameras. `sensor_px` is rows and columns of one sensor, `lens_m` the
    diameter and length of a lens. On half of a sensor, a view is about an axis that may be off its
    middle.
    """
    (rows, cols), (diameter_m, length_m) = sensor_px, lens_m
    width_m, half = cols * pitch_m, 0.5 * cols
    is_shared = baseline_m < width_m
    view = np.where(is_shared, half - np.abs(baseline_m / pitch_m - half), cols)
    span_m = np.where(is_shared, width_m, baseline_m + width_m)
    return view, (
        np.maximum(baseline_m + diameter_m, span_m),
        np.maximum(diameter_m, rows * pitch_m),
        sensor_distance_m + length_m,
    )


def _check_sensors(optics: Optics, cols: int) -> None:
    width_mm = 1e3 * cols * optics.pixel_pitch_m
    baseline_mm = 1e3 * optics.baseline_m
    if baseline_mm < width_mm and not 0.25 <= baseline_mm / width_mm <= 0.75:
        raise ValueError(
            f"must suit baseline_m={optics.baseline_m:.4g}: a sensor {width_mm:.2f} mm wide takes "
            f"both views for a baseline of {0.25 * width_mm:.2f} to {0.75 * width_mm:.2f} mm, and "
            f"two sensors fit beside each other from {width_mm:.2f} mm on; it is "
            f"{baseline_mm:.2f} mm. Choose another sensor or baseline."
        )


def _check_lenses(focal_length_m: float, f_number: float, focus_m: tuple[float, float]) -> None:
    problems = []
    if not 0 < focal_length_m < 1:
        problems.append(
            f"focal_length_m={focal_length_m!r} must be above 0 and below 1: it is in metres. Did "
            "you pass millimetres?"
        )
    if not 0.5 <= f_number <= 1000:
        problems.append(f"f_number={f_number!r} must be between 0.5 and 1000.")
    for side, one in zip(("left", "right"), focus_m, strict=True):
        if math.isnan(one) or one <= _NEAREST_FOCAL_LENGTHS * focal_length_m:
            problems.append(
                f"focus_m={one!r} of the {side} lens must be above "
                f"{_NEAREST_FOCAL_LENGTHS:g} focal lengths, "
                f"{_NEAREST_FOCAL_LENGTHS * focal_length_m:.4g} m: nearer points are imaged larger "
                "than they are. Focus farther away, or choose a shorter focal length."
            )
    if problems:
        raise DesignError(*problems)
