"""The rig: optics, calibration and name of a camera, and its TOML file."""

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from d3s.atomic import write_text
from d3s.document import DocumentKind
from d3s.errors import InputError, RigError
from d3s.record import OneLine
from d3s.rig.calibration import Calibration, aged_px
from d3s.rig.optics import Baseline, DisparityOffset, Optics
from d3s.rig.part import RigPart

RIG_FILE = DocumentKind(
    noun="rig file",
    schema_version=1,
    header="""\
# A D3S camera rig, to be read with d3s.Rig.load. All values are in SI units, and the unit is the
# end of each name: m metres, dpt dioptres (1/m), rad radians, px pixels of the sensor. A cubic has
# the coefficients of 1, x, x^2 and x^3, x being a virtual baseline in metres.

""",
    error=RigError,
)

# Nominal pixel pitch of a pinhole pair: only the ratio s0 / p has an effect. A power of two
# multiplies without rounding, so the focal length is restored exactly.
PINHOLE_PITCH_M = 2.0**-17

RigName = Annotated[OneLine, Field(max_length=100, description="the name of the camera")]


class _Pinhole(RigPart):
    """Arguments of `Rig.from_pinhole`: errors name the arguments that the caller wrote."""

    focal_length_px: float = Field(ge=10, le=1e5, description="the focal length in pixels")
    baseline_m: Baseline
    disparity_offset_px: DisparityOffset
    name: RigName


class Rig(RigPart):
    """Camera: its optics, and its calibration if it has one.

    Examples
    --------
    >>> import d3s
    >>> rig = d3s.Rig.paper_prototype()
    >>> rig.optics.baseline_m
    0.00384
    >>> rig.save("rig.toml")
    >>> d3s.Rig.load("rig.toml") == rig
    True
    """

    name: RigName = "unnamed"
    optics: Optics = Field(description="the optics of the camera")
    calibration: Calibration | None = Field(
        default=None, description="the calibration of the camera"
    )

    @field_validator("calibration")
    @classmethod
    def _virtual_baselines_are_below_the_baseline(
        cls, calibration: Calibration | None, info: ValidationInfo
    ) -> Calibration | None:
        optics = info.data.get("optics")
        if calibration is not None and optics is not None:
            largest_m = max(abs(value) for value in calibration.virtual_baselines_m)
            if largest_m >= optics.baseline_m:
                raise RigError(
                    f"virtual_baselines_m={calibration.virtual_baselines_m} must be below "
                    f"optics.baseline_m={optics.baseline_m}: it is in metres. "
                    "Did you pass millimetres?"
                )
        return calibration

    @classmethod
    def paper_prototype(cls) -> Self:
        """Return the paper's camera, as designed: 3.84 mm baseline, 12.1 mm sensor distance."""
        optics = Optics(
            baseline_m=3.84e-3,
            sensor_distance_m=12.1e-3,
            optical_power_left_dpt=83.88,
            optical_power_right_dpt=83.78,
            aperture_radius_m=1e-3,
            pixel_pitch_m=2e-6,
            aperture_gaussian_width=0.5,
            disparity_offset_px=0.0,
        )
        return cls(optics=optics, name="paper prototype")

    @classmethod
    def from_pinhole(
        cls,
        *,
        focal_length_px: float,
        baseline_m: float,
        disparity_offset_px: float = 0.0,
        name: str = "pinhole pair",
    ) -> Self:
        """Return the rig of a rectified stereo pair that is sharp at all depths.

        Parameters
        ----------
        focal_length_px
            Focal length over pixel pitch, 10 to 100000 px.
        baseline_m
            Distance of the two camera centres, above 0 and below 1 m.
        disparity_offset_px
            Disparity x_left - x_right of a point at infinity, in pixels: `-doffs` of a Middlebury
            calibration file.
        name
            Name of the pair.

        Raises
        ------
        RigError
            Naming every wrong argument.

        Notes
        -----
        The pixel pitch is nominal (`PINHOLE_PITCH_M`); the sensor distance and both powers follow
        from it. With an aperture of 0, only the ratio `focal_length_px` has an effect.

        Examples
        --------
        >>> import d3s
        >>> rig = d3s.Rig.from_pinhole(focal_length_px=1000.0, baseline_m=0.1)
        >>> float(rig.optics.depth_m(disparity_px=50.0))
        2.0
        """
        pinhole = _Pinhole(
            focal_length_px=focal_length_px,
            baseline_m=baseline_m,
            disparity_offset_px=disparity_offset_px,
            name=name,
        )
        sensor_distance_m = pinhole.focal_length_px * PINHOLE_PITCH_M
        optics = Optics(
            baseline_m=pinhole.baseline_m,
            sensor_distance_m=sensor_distance_m,
            optical_power_left_dpt=1 / sensor_distance_m,
            optical_power_right_dpt=1 / sensor_distance_m,
            aperture_radius_m=0.0,
            pixel_pitch_m=PINHOLE_PITCH_M,
            aperture_gaussian_width=0.5,
            disparity_offset_px=pinhole.disparity_offset_px,
        )
        return cls(optics=optics, name=pinhole.name)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a rig file.

        Raises
        ------
        RigError
            Naming the file and every field that is missing, unknown or wrong.
        """
        try:
            # The name is optional in Python but required in a file: None is reported as missing.
            return cls(**{"name": None, **RIG_FILE.read(path)})
        except RigError as error:
            raise RigError(*error.problems, path=path) from error.__cause__

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a rig file, completely or not at all; `Rig.load` returns an equal rig.

        Raises
        ------
        OutputError
            If the file cannot be written, or has other content and `overwrite` is not set.
        """
        values = self.model_dump(exclude_none=True)
        write_text(path, RIG_FILE.format(values), overwrite=overwrite)

    def rectification_sigma_px(self, age_days: float = 0.0) -> float:
        """Standard deviation of the disparity by errors of the calibration, in pixels.

        That of `Calibration.rectification_sigma_px`; without a calibration, the drift that grows
        with the age.

        Parameters
        ----------
        age_days
            Days since the calibration or the last check.
        """
        if self.calibration is None:
            return aged_px(age_days)
        return self.calibration.rectification_sigma_px(age_days)

    def check(self, frames: Iterable[Any], *, distances_m: Sequence[float] = ()) -> Any:
        """Find what has drifted since the calibration, from ordinary frames; see `d3s.check`.

        Parameters
        ----------
        frames
            Raw frames of the camera, or pairs (left, right) of rectified views.
        distances_m
            If the frames show a wall square to the axis: its distance, or one for each frame.

        Returns
        -------
        d3s.check.CheckReport
            Each quantity with its standard deviation and state, and the mended rig.
        """
        return import_module("d3s.check.pipeline").check(self, frames, distances_m=distances_m)

    def split(self, raw: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Split a raw frame into the rectified left and right view, full scale 1.

        The rows of both views agree, and a point at infinity has the same column in both. Each
        view is resampled once, by one interpolation kernel that adds no blur (docs/rig.md). If the
        calibration has `lenses`, their distortion is removed and their light made even; values
        above 1 are then possible. Pixels are NaN where the kernel leaves the frame or meets a
        non-finite value.

        Parameters
        ----------
        raw
            Frame (rows, cols), upright as for the calibration: uint8 or uint16 with their full
            scale, or floats with full scale 1.

        Returns
        -------
        tuple
            Left and right view, (crop_rows_px, crop_cols_px) of the calibration.

        Raises
        ------
        InputError
            If the rig has no calibration, or the frame is not a grey image of the calibrated size.
        """
        if self.calibration is None:
            raise InputError(
                f"the rig {self.name!r} has no calibration, so it cannot split raw frames. "
                "Calibrate it first, or load the rig file that a calibration has written."
            )
        from d3s.rig.split import split

        return split(raw, self.calibration)
