"""A camera and its file."""

import os
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from d3s.atomic import write_text
from d3s.errors import InputError, RigError
from d3s.record import OneLine
from d3s.rig.calibration import Calibration
from d3s.rig.file import format_document, read_document
from d3s.rig.optics import Baseline, DisparityOffset, Optics
from d3s.rig.part import RigPart

# Only the ratio s0 / p of a pinhole pair enters anything, so its pitch is a convention. A power of
# two multiplies without rounding, and the focal length comes back to the last bit.
PINHOLE_PITCH_M = 2.0**-17

RigName = Annotated[OneLine, Field(max_length=100, description="what you call this camera")]


class _Pinhole(RigPart):
    """The arguments of `Rig.from_pinhole`, so that an error names what the caller wrote."""

    focal_length_px: float = Field(ge=10, le=1e5, description="the focal length in pixels")
    baseline_m: Baseline
    disparity_offset_px: DisparityOffset
    name: RigName


class Rig(RigPart):
    """A camera: its optics, and its calibration if it has one.

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
        default=None, description="what was measured on the camera"
    )

    @field_validator("calibration")
    @classmethod
    def _virtual_is_below_real(
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
        """Any rectified stereo pair, sharp at all depths, from what its calibration file says.

        Parameters
        ----------
        focal_length_px
            Focal length over pixel pitch, 10 to 100000.
        baseline_m
            Distance of the two camera centres, below 1 m: more is taken for millimetres.
        disparity_offset_px
            x_left - x_right of a point at infinity: `doffs` of a Middlebury calibration file
            with its sign turned.
        name
            What to call the pair.

        Notes
        -----
        The pixel pitch is nominal (`PINHOLE_PITCH_M`), and the sensor distance and both powers
        follow from it; with an aperture of zero only their ratio `focal_length_px` has a meaning.

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
            return cls(**read_document(path))
        except RigError as error:
            raise RigError(*error.problems, path=path) from error.__cause__

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a rig file, whole or not at all; `Rig.load` gives back the very same rig.

        Raises
        ------
        OutputError
            When the file cannot be written, or holds something else and `overwrite` is not set.
        """
        values = self.model_dump(exclude_none=True)
        write_text(path, format_document(values), overwrite=overwrite)

    def split(self, raw: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Left and right view of a raw frame, rectified and cut as calibrated, full scale 1.

        Rows of both agree, and a point at infinity has the same column. Each view is read once,
        by a kernel that adds no blur and treats both alike; docs/rig.md says how it does. NaN
        where the kernel leaves the frame, or touches a value that is not finite.

        Parameters
        ----------
        raw
            (rows, cols), upright as it was for the calibration: uint8 or uint16 of their full
            scale, or floats with full scale 1.

        Raises
        ------
        InputError
            When the rig has no calibration, or the frame is no grey image of the size that it was
            calibrated for.
        """
        if self.calibration is None:
            raise InputError(
                f"the rig {self.name!r} has no calibration, so it cannot split raw frames. "
                "Calibrate it first, or load the rig file that a calibration has written."
            )
        from d3s.rig.split import split

        return split(raw, self.calibration)
