"""Calibration of one camera, its provenance, and the places of its views in the raw frame."""

import math
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from d3s.record import Converted, FrozenTable, OneLine, Sha256
from d3s.rig.bayer import Bayer
from d3s.rig.lens_maps import Correction, LensMaps
from d3s.rig.optics import RigPart, by_default
from d3s.types import FloatArray

LEAST_SIGMA_PX = 0.002
"""Least standard deviation of the disparity of calibrated lenses: no calibration is better.

Perfect simulated lenses leave 0.001 to 0.004 px on boards that were not calibrated with.
"""

DRIFT_PX_PER_YEAR = 0.1
"""Drift of the disparity that is assumed of a camera whose drift is not known."""

_DAYS_PER_YEAR = 365.25

# Names of maps that rig files had among those of the lenses until 2026-11, and their names now.
_OLD_CORRECTIONS = {
    "half_size_disparity_px": "half_size",
    "quarter_size_disparity_px": "quarter_size",
}


def aged_px(age_days: float, px_per_year: float | None = None) -> float:
    """Standard deviation of the disparity by drift over some days, in pixels.

    `DRIFT_PX_PER_YEAR` is assumed if the drift in a year is not known.
    """
    rate = DRIFT_PX_PER_YEAR if px_per_year is None else px_per_year
    return rate * age_days / _DAYS_PER_YEAR


def _zoned_time(text: str) -> str:
    try:
        has_zone = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        raise ValueError("must be a time with its zone, such as 2025-01-31T12:00:00+00:00.")
    return text


Time = Annotated[str, Field(max_length=64), AfterValidator(_zoned_time)]
Numbers = Annotated[
    dict[OneLine, Annotated[float, Field(ge=-1e12, le=1e12)]], AfterValidator(FrozenTable)
]


def _nonzero(virtual_baseline_m: float) -> float:
    if virtual_baseline_m == 0:
        raise ValueError("must not be 0: without a shift there is nothing to compare.")
    return virtual_baseline_m


def _increasing(values: tuple[float, ...]) -> tuple[float, ...]:
    # pydantic's own min_length would count the valid values only, and call a wrong one missing.
    if not values:
        raise ValueError("must have at least 1 value.")
    if any(after <= before for before, after in pairwise(values)):
        raise ValueError("must be strictly increasing.")
    return values


class Provenance(RigPart):
    """Origin of a calibration: enough to judge it again and to repeat it."""

    # Few enough that a file with the longest names stays below the size limit of a rig file.
    residuals: Numbers = Field(
        max_length=100,
        description="the residuals of the calibration, each with a name that ends with its unit",
    )
    input_sha256: Annotated[
        dict[OneLine, Sha256], Field(max_length=500), AfterValidator(FrozenTable)
    ] = Field(description="the SHA-256 of each input file, by its name")
    created: Time = Field(
        description="when the calibration was made, as ISO 8601 with the time zone"
    )
    d3s_version: OneLine = Field(description="the version of D3S that made it")
    verdict: OneLine | None = Field(
        default=None,
        description="what the calibration was found to be: good, or provisional with what is wrong",
    )


class Change(RigPart):
    """Change of a calibration after it was made: what had drifted, and by how much."""

    made: Time = Field(description="when it was changed, as ISO 8601 with the time zone")
    reason: OneLine = Field(max_length=500, description="why it was changed")
    frames: int = Field(ge=1, le=10**6, description="the number of frames that showed the drift")
    drift: Numbers = Field(
        max_length=20, description="what was taken out, each with a name that ends with its unit"
    )
    drift_sigma: Annotated[
        dict[OneLine, Annotated[float, Field(ge=0, le=1e12)]],
        Field(max_length=20),
        AfterValidator(FrozenTable),
    ] = Field(description="the standard deviation of each")
    d3s_version: OneLine = Field(description="the version of D3S that changed it")


Pixel = Annotated[float, Field(ge=-1e5, le=1e5)]
ChannelGain = Annotated[float, Field(ge=0.01, le=100)]
Extent = Annotated[int, Field(gt=0, le=65536)]
VirtualBaseline = Annotated[float, Field(gt=-0.1, lt=0.1), AfterValidator(_nonzero)]
Coefficient = Annotated[float, Field(ge=-1e18, le=1e18)]
Cubic = tuple[Coefficient, Coefficient, Coefficient, Coefficient]


class Calibration(RigPart):
    """Measurements of one camera: rectification of its frames, noise, and tuned depth equation."""

    anchor_left_px: Converted[tuple[Pixel, Pixel]] = Field(
        description="(x, y) of the point at infinity of the left view, in the raw frame"
    )
    anchor_right_px: Converted[tuple[Pixel, Pixel]] = Field(
        description="(x, y) of the point at infinity of the right view, in the raw frame"
    )
    crop_rows_px: Extent = Field(description="the height of each view cut from the raw frame")
    crop_cols_px: Extent = Field(description="the width of each view cut from the raw frame")
    rectify_scale: float = Field(
        ge=0.5, le=2, description="the magnification that fits the right view to the left one"
    )
    rectify_angle_rad: float = Field(
        gt=-0.5, lt=0.5, description="the rotation that fits the right view to the left one"
    )
    rectify_shift_y_px: float = Field(
        ge=-1e4, le=1e4, description="the shift down that fits the right view to the left one"
    )
    baseline_angle_rad: float = Field(
        default=0.0,
        gt=-0.5,
        lt=0.5,
        description="the rotation of the left view against the baseline, removed from both views",
    )
    frame_rows_px: int | None = Field(
        default=None, gt=0, le=65536, description="the height of the raw frame, if known"
    )
    frame_cols_px: int | None = Field(
        default=None,
        gt=0,
        le=65536,
        validate_default=True,
        description="the width of the raw frame, if known",
    )
    noise_read: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="the noise sigma of a dark pixel of a raw frame, of full scale, if known",
    )
    noise_gain: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        validate_default=True,
        description="the noise variance that light of full scale adds, of full scale squared",
    )
    noise_column: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="the noise sigma of the offset of a column of a raw frame, of full scale",
    )
    bayer: Bayer | None = Field(
        default=None,
        description="the colours of the first 2 x 2 pixels of a raw frame, along its rows; none "
        "for a mono sensor",
    )
    channel_gains: Converted[tuple[ChannelGain, ChannelGain, ChannelGain] | None] = by_default(
        None,
        "the factors on red, green and blue pixels that make grey even; found from "
        "each frame if a colour sensor has none",
    )
    virtual_baselines_m: Annotated[
        Converted[tuple[VirtualBaseline, ...]], Field(max_length=32), AfterValidator(_increasing)
    ] = Field(description="the virtual baselines that the consensus compares, increasing")
    a_cubic_m_px: Converted[Cubic] = Field(
        description="4 coefficients c0 to c3 of the scale a, in m px, of the virtual baseline in m"
    )
    b_cubic_m: Converted[Cubic] = Field(
        description="4 coefficients c0 to c3 of the offset b, in m, of the virtual baseline in m"
    )
    tuned_candidates: int | None = Field(
        default=None,
        ge=2,
        le=4096,
        description="the number of candidate depths for which a and b were tuned, if known",
    )
    tuned_window_px: int | None = Field(
        default=None,
        ge=3,
        le=255,
        description="the window of the consensus for which a and b were tuned, if known",
    )
    tuned_prefilter_sigma_px: float | None = Field(
        default=None,
        ge=0,
        le=10,
        description="the prefilter of the consensus for which a and b were tuned, if known",
    )
    tuned_without_noise: bool = Field(
        default=False,
        description="whether a and b were tuned with the noise taken from the denominator of the "
        "depth equation",
    )
    lenses: LensMaps | None = Field(
        default=None, description="the errors of the lenses over the field, if known"
    )
    corrections: Annotated[Converted[tuple[Correction, ...] | None], Field(max_length=16)] = (
        by_default(None, "what methods of estimation add to the disparity of this camera, if known")
    )
    drift_sigma_px: float | None = Field(
        default=None,
        ge=0,
        le=10,
        description="the standard deviation of the disparity after a drift was mended, if known",
    )
    drift_px_per_year: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="the disparity by which the camera drifts in a year, if known",
    )
    history: Annotated[Converted[tuple[Change, ...] | None], Field(max_length=200)] = by_default(
        None, "what was changed since the calibration, if anything"
    )
    provenance: Provenance = Field(description="where the calibration comes from")

    @model_validator(mode="before")
    @classmethod
    def _with_corrections_of_older_files(cls, values: Any) -> Any:
        lenses = values.get("lenses") if isinstance(values, dict) else None
        if not isinstance(lenses, dict) or not _OLD_CORRECTIONS.keys() & lenses.keys():
            return values
        maps = {name: lenses[old] for old, name in _OLD_CORRECTIONS.items() if lenses.get(old)}
        one = {"method": "joint", "version": 1, "disparity_px": maps}
        others = {name: value for name, value in lenses.items() if name not in _OLD_CORRECTIONS}
        return {"corrections": [one] if maps else None, **values, "lenses": others}

    @field_validator("frame_cols_px", "noise_gain")
    @classmethod
    def _needs_its_counterpart(cls, value: float | None, info: ValidationInfo) -> float | None:
        other = {"frame_cols_px": "frame_rows_px", "noise_gain": "noise_read"}[str(info.field_name)]
        # A wrong field is not in `info.data`; its own rule reports it.
        if other in info.data and (info.data[other] is None) != (value is None):
            raise ValueError(f"needs {other} beside it. Give both, or neither.")
        return value

    @field_validator("channel_gains")
    @classmethod
    def _is_of_a_colour_sensor(
        cls, gains: tuple[float, float, float] | None, info: ValidationInfo
    ) -> tuple[float, float, float] | None:
        if gains is not None and "bayer" in info.data and info.data["bayer"] is None:
            raise ValueError("needs bayer beside it: a mono sensor has one channel.")
        return gains

    @field_validator("tuned_window_px")
    @classmethod
    def _has_a_middle(cls, window_px: int | None) -> int | None:
        if window_px is not None and window_px % 2 == 0:
            raise ValueError("must be odd: a window has a pixel at its centre.")
        return window_px

    @field_validator("lenses")
    @classmethod
    def _corrects_the_views(cls, lenses: LensMaps | None, info: ValidationInfo) -> LensMaps | None:
        rows_px, cols_px = info.data.get("crop_rows_px"), info.data.get("crop_cols_px")
        if lenses is not None and rows_px is not None and cols_px is not None:
            problem = lenses.problem(rows_px, cols_px)
            if problem:
                raise ValueError(problem)
        return lenses

    def a_m_px(self, virtual_baseline_m: ArrayLike) -> FloatArray:
        """Scale a of the practical depth equation at a virtual baseline, in m px (paper Eq. S9).

        The sign of the virtual baseline has no effect.
        """
        return _cubic_at_magnitude(self.a_cubic_m_px, virtual_baseline_m)

    def b_m(self, virtual_baseline_m: ArrayLike) -> FloatArray:
        """Offset b of the practical depth equation at a virtual baseline, in m (paper Eq. S10).

        The sign of the virtual baseline has no effect.
        """
        return _cubic_at_magnitude(self.b_cubic_m, virtual_baseline_m)

    def rectification_sigma_px(self, age_days: float = 0.0) -> float:
        """Standard deviation of the disparity by errors of the calibration, in pixels.

        What the maps of the lenses leave, what a check has left, and a drift that grows with the
        age. It is at least `LEAST_SIGMA_PX` if lenses were calibrated or checked; only a rig whose
        calibration says nothing of its errors, such as a simulated one, has 0. The age counts from
        the calibration or the last check.
        """
        known = [] if self.lenses is None else [self.lenses.disparity_sigma_px]
        if self.drift_sigma_px is not None:
            known.append(self.drift_sigma_px)
        total = math.hypot(*known, aged_px(age_days, self.drift_px_per_year))
        return max(total, LEAST_SIGMA_PX) if known else total

    @property
    def tuned(self) -> dict[str, Any]:
        """Options of the consensus method for which a and b were tuned, by name, if known."""
        names = ("candidates", "window_px", "prefilter_sigma_px")
        options = {name: getattr(self, f"tuned_{name}") for name in names}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def rectification_matrix(self) -> FloatArray:
        """3x3 homography that aligns the rows of the right view with the left (paper Eq. S7).

        It does not shift along x, the direction of disparity.
        """
        cos = self.rectify_scale * math.cos(self.rectify_angle_rad)
        sin = self.rectify_scale * math.sin(self.rectify_angle_rad)
        return np.array([[cos, -sin, 0.0], [sin, cos, self.rectify_shift_y_px], [0.0, 0.0, 1.0]])


def _cubic_at_magnitude(coefficients: Cubic, virtual_baseline_m: ArrayLike) -> FloatArray:
    magnitude_m = np.abs(np.asarray(virtual_baseline_m, dtype=np.float64))
    return np.asarray(np.polynomial.polynomial.polyval(magnitude_m, coefficients))


def view_to_raw_matrices(calibration: Calibration) -> tuple[FloatArray, FloatArray]:
    """2x3 matrices, left and right, from (x, y, 1) in a view to (x, y) in the raw frame.

    Distortion is left out: see `view_to_raw_places`.
    """
    cos, sin = np.cos(calibration.baseline_angle_rad), np.sin(calibration.baseline_angle_rad)
    turn = np.array([[cos, -sin], [sin, cos]])
    middle = np.array([calibration.crop_cols_px - 1, calibration.crop_rows_px - 1]) / 2
    from_left = np.linalg.inv(calibration.rectification_matrix)
    places = []
    for anchor, inverse in (
        (calibration.anchor_left_px, np.eye(3)),
        (calibration.anchor_right_px, from_left),
    ):
        linear = inverse[:2, :2] @ turn
        start = np.array(anchor) + inverse[:2, 2] - linear @ middle
        places.append(np.column_stack([linear, start]))
    return places[0], places[1]


def view_to_raw_places(
    calibration: Calibration, camera: int, x: ArrayLike, y: ArrayLike
) -> FloatArray:
    """Places (2, ...), x and y, in the raw frame of places in a rectified view, with distortion.

    Camera 0 is left, 1 is right; x and y are columns and rows of the view, also fractions of them.
    """
    (a, b, c), (d, e, f) = view_to_raw_matrices(calibration)[camera]
    across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    raw_x, raw_y = a * across + b * down + c, d * across + e * down + f
    lenses = calibration.lenses
    if lenses is None:
        return np.stack([raw_x, raw_y])
    axis_x, axis_y = (calibration.anchor_left_px, calibration.anchor_right_px)[camera]
    radius_px = lenses.field_radius_px
    from_axis = lenses.distorted(camera, (raw_x - axis_x) / radius_px, (raw_y - axis_y) / radius_px)
    return np.stack([axis_x + radius_px * from_axis[0], axis_y + radius_px * from_axis[1]])
