"""Optics of the camera, as designed: two lenses and one sensor; and the base of all its records."""

import math
from typing import Annotated, Any, ClassVar

from numpy.typing import ArrayLike
from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import InputError, RecordError, RigError
from d3s.optics import d3, stereo, thin_lens
from d3s.optics.lens import Lens
from d3s.record import Record, unit_remark
from d3s.types import FloatArray

FARTHEST_M = 1e4
"""Farthest depth of a search that reaches to infinity: the options of the methods end there."""

Baseline = Annotated[
    float, Field(gt=0, le=1e7, description="the distance between the two lens centres")
]
DisparityOffset = Annotated[
    float, Field(ge=-1e5, le=1e5, description="the disparity of a point at infinity, left - right")
]
# The upper end leaves room for the shortest focal length of `Rig.from_pinhole`.
OpticalPower = Annotated[
    float, Field(ge=1, le=2e4, description="1 / focal length of one lens, in 1/m")
]


class RigPart(Record):
    """Record of a camera; wrong values raise `RigError`."""

    error: ClassVar[type[RecordError]] = RigError


def by_default(value: Any, description: str) -> Any:
    """Field of a record with a default, which is validated."""
    return Field(default=value, validate_default=True, description=description)


class Optics(RigPart):
    """Two thin lenses side by side, equal except for their optical power, and one sensor.

    There are no defaults: every number belongs to one camera, and a wrong number gives a wrong
    depth. A value out of its physical range is most often in the wrong unit; the error says so.

    Examples
    --------
    >>> import d3s
    >>> optics = d3s.Optics(
    ...     sensor_distance_m=12.1e-3,
    ...     aperture_radius_m=1e-3,
    ...     baseline_m=3.84e-3,
    ...     optical_power_left_dpt=83.88,
    ...     optical_power_right_dpt=83.78,
    ...     pixel_pitch_m=2e-6,
    ...     aperture_gaussian_width=0.5,
    ...     disparity_offset_px=0.0,
    ... )
    >>> print("{:.2f} m and {:.2f} m".format(*optics.focus_distances_m))
    0.81 m and 0.88 m
    >>> print(f"{optics.disparity_px(1.0):.2f} px")
    23.23 px
    >>> optics.replace(baseline_m=-3.84e-3)
    Traceback (most recent call last):
        ...
    d3s.errors.RigError: baseline_m=-0.00384 must be at least 0: it is in metres.
    """

    # Fields that the validators of later fields compare with come first.
    sensor_distance_m: float = Field(
        gt=5e-5, lt=1, description="the distance s0 from the lenses to the sensor"
    )
    aperture_radius_m: float = Field(
        ge=0, lt=0.1, description="the radius of the aperture of each lens, 0 for a pinhole"
    )
    baseline_m: float = Field(
        ge=0,
        le=1e7,
        description="the distance between the two lens centres, 0 for one view point behind a beam "
        "splitter",
    )
    optical_power_left_dpt: OpticalPower
    optical_power_right_dpt: OpticalPower
    pixel_pitch_m: float = Field(
        gt=1e-7,
        lt=1e-4,
        description="the distance between neighbouring pixel centres on the sensor",
    )
    aperture_gaussian_width: float = Field(
        gt=0,
        le=1,
        description="the Gaussian sigma of an aperture of radius 1, 0.5 for a uniform disk",
    )
    disparity_offset_px: DisparityOffset

    @field_validator("optical_power_left_dpt", "optical_power_right_dpt")
    @classmethod
    def _power_fits_the_distance(cls, power_dpt: float, info: ValidationInfo) -> float:
        # A wrong sensor distance is not in `info.data`; its own rule reports it.
        distance_m = info.data.get("sensor_distance_m")
        if distance_m is not None and not 0.5 / distance_m <= power_dpt <= 2 / distance_m:
            raise ValueError(
                f"must be between {0.5 / distance_m:g} and {2 / distance_m:g}, half and twice "
                f"1 / sensor_distance_m: it is in dioptres, 1/m. Did you pass the focal length, "
                f"or sensor_distance_m={distance_m} in another unit?"
            )
        return power_dpt

    @field_validator("aperture_radius_m")
    @classmethod
    def _aperture_fits_the_distance(cls, radius_m: float, info: ValidationInfo) -> float:
        distance_m = info.data.get("sensor_distance_m")
        if distance_m is not None and radius_m > distance_m:
            remark = unit_remark("aperture_radius_m", radius_m, {"le": distance_m})
            raise ValueError(
                f"must be at most sensor_distance_m={distance_m}, which is f/0.5 already{remark}"
            )
        return radius_m

    @field_validator("baseline_m")
    @classmethod
    def _baseline_fits_the_distance(cls, baseline_m: float, info: ValidationInfo) -> float:
        # A baseline in millimetres is a possible one in metres: only the comparison with the lenses
        # detects it. The sensor distance of a pinhole pair is nominal, so the comparison does not
        # apply: `Rig.from_pinhole` asks.
        distance_m, radius_m = (
            info.data.get(name) for name in ("sensor_distance_m", "aperture_radius_m")
        )
        if distance_m and radius_m and baseline_m > 50 * distance_m:
            remark = unit_remark("baseline_m", baseline_m, {"le": 50 * distance_m})
            raise ValueError(
                f"must be at most 50 times sensor_distance_m={distance_m}: no lens is so small "
                f"beside its neighbour{remark}"
            )
        return baseline_m

    def lens(self, camera: int) -> Lens:
        """Lens of one camera: 0 is left, 1 is right."""
        if isinstance(camera, bool) or not isinstance(camera, int) or camera not in (0, 1):
            raise InputError(f"camera={camera!r} must be 0 (left) or 1 (right).")
        return Lens(
            optical_power_dpt=(self.optical_power_left_dpt, self.optical_power_right_dpt)[camera],
            aperture_radius_m=self.aperture_radius_m,
            sensor_distance_m=self.sensor_distance_m,
            reference_distance_m=self.sensor_distance_m,
            pixel_pitch_m=self.pixel_pitch_m,
            aperture_gaussian_width=self.aperture_gaussian_width,
        )

    @property
    def focal_length_px(self) -> float:
        """Focal length s0 / p in the sense of stereo: the sensor distance in pixels."""
        return self.sensor_distance_m / self.pixel_pitch_m

    @property
    def focus_distances_m(self) -> tuple[float, float]:
        """Depth in focus of each camera, in metres; negative if focused beyond infinity."""
        return (thin_lens.focus_distance_m(self.lens(0)), thin_lens.focus_distance_m(self.lens(1)))

    @property
    def f_number(self) -> float:
        """Working f-number s0 / (2 A); infinite for a pinhole."""
        return thin_lens.f_number(self.lens(0))

    @property
    def alpha_px2_m(self) -> float:
        """Defocus coefficient of the D3 equation, in px² m; 0 for equal lenses."""
        return d3.alpha_px2_m(self.lens(0), self.lens(1))

    @property
    def kappa_dpt(self) -> float:
        """Vergence at which both cameras have equal blur, in 1/m."""
        return d3.kappa_dpt(self.lens(0), self.lens(1))

    def disparity_px(self, depth_m: ArrayLike) -> FloatArray:
        """Disparity x_left - x_right of a point at a depth, in pixels."""
        return stereo.disparity_px(
            depth_m,
            focal_length_px=self.focal_length_px,
            baseline_m=self.baseline_m,
            disparity_offset_px=self.disparity_offset_px,
        )

    def depth_m(self, disparity_px: ArrayLike) -> FloatArray:
        """Depth of a point with a disparity, in metres; NaN behind the camera."""
        return stereo.depth_from_disparity_m(
            disparity_px,
            focal_length_px=self.focal_length_px,
            baseline_m=self.baseline_m,
            disparity_offset_px=self.disparity_offset_px,
        )

    def depth_range_m(self, disparity_range_px: tuple[float, float]) -> tuple[float, float]:
        """Nearest and farthest depth of the disparities between two, in metres.

        The farthest is `FARTHEST_M` if the smallest disparity is at infinity, or beyond; if all
        are, there is an `InputError`.
        """
        smallest, largest = disparity_range_px
        if not smallest < largest:
            raise InputError(
                f"disparity_range_px={disparity_range_px} must be the smallest, then a larger one."
            )
        offset_px = self.disparity_offset_px
        scale_px_m = self.focal_length_px * self.baseline_m
        nearest_m = scale_px_m / (largest - offset_px) if largest > offset_px else math.inf
        if not nearest_m < FARTHEST_M:
            raise InputError(
                f"disparities up to {largest:g} px reach to infinity only: the disparity there is "
                f"{offset_px:g} px. Search more disparities."
            )
        farthest_m = scale_px_m / (smallest - offset_px) if smallest > offset_px else math.inf
        return nearest_m, min(farthest_m, FARTHEST_M)

    def blur_radius_px(self, depth_m: ArrayLike, camera: int) -> FloatArray:
        """Signed radius of the blur disk of one camera, in pixels; positive nearer than focus."""
        return thin_lens.blur_radius_px(depth_m, self.lens(camera))

    def blur_sigma_px(self, depth_m: ArrayLike, camera: int) -> FloatArray:
        """Signed Gaussian blur of one camera per axis, in pixels; positive nearer than focus."""
        return thin_lens.blur_sigma_px(depth_m, self.lens(camera))

    def field_of_view_rad(self, shape: tuple[int, int]) -> tuple[float, float]:
        """Full field of view of an image of (rows, cols), vertical and horizontal, in radians."""
        vertical, horizontal = thin_lens.field_of_view_rad(shape, self.lens(0))
        return float(vertical), float(horizontal)
