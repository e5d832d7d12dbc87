"""The rig: optics, calibration and name of a camera, and its TOML file."""

import os
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
)

from d3s.atomic import write_text
from d3s.document import DocumentKind
from d3s.errors import InputError, RigError
from d3s.rig.calibration import Calibration, aged_px
from d3s.rig.optics import Optics, RigPart
from d3s.rig.stereo_camera import LONG_BASELINE_M, Pinhole, RigName, Stereo, long_baseline

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
    stereo: Stereo | None = Field(
        default=None, description="the views of a stereo camera of two cameras, if known"
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

    @field_validator("stereo")
    @classmethod
    def _is_no_two_lens_camera(cls, stereo: Stereo | None, info: ValidationInfo) -> Stereo | None:
        if stereo is not None and info.data.get("calibration") is not None:
            raise ValueError(
                "must not be given beside calibration, which is of two lenses on one sensor and "
                "says where their views are. Leave one of them."
            )
        return stereo

    @model_serializer(mode="wrap")
    def _without_absent_stereo(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Files of rigs without it stay as they were before there was one.
        values: dict[str, Any] = dump(self)
        if values.get("stereo") is None:
            values.pop("stereo", None)
        return values

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
        principal_point_px: tuple[float, float] | None = None,
        principal_point_right_px: tuple[float, float] | None = None,
        shape: tuple[int, int] | None = None,
        disparity_range_px: tuple[float, float] | None = None,
        name: str = "pinhole pair",
    ) -> Self:
        """Return the rig of a rectified stereo pair that is sharp at all depths.

        Parameters
        ----------
        focal_length_px
            Focal length over pixel pitch, 10 to 100000 px.
        baseline_m
            Distance of the two camera centres, above 0 m.
        disparity_offset_px
            Disparity x_left - x_right of a point at infinity, in pixels: `-doffs` of a Middlebury
            calibration file. Leave it if `principal_point_right_px` is given.
        principal_point_px
            (x, y) of the principal point of the left view, pixel centres at whole numbers. The
            middle of the view if None.
        principal_point_right_px
            That of the right view, on the same row; the difference of both is the disparity at
            infinity.
        shape
            Rows and columns of the views. Pictures of another size are then refused.
        disparity_range_px
            Smallest and largest disparity of the scene, which `d3s.estimate` then searches.
        name
            Name of the pair.

        Raises
        ------
        RigError
            Naming every wrong argument.

        Warns
        -----
        UserWarning
            If the baseline is 10 m or longer, as one in millimetres would be.

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
        rig = cls.of_pinhole(
            focal_length_px=focal_length_px,
            baseline_m=baseline_m,
            disparity_offset_px=disparity_offset_px,
            principal_point_px=principal_point_px,
            principal_point_right_px=principal_point_right_px,
            shape=shape,
            disparity_range_px=disparity_range_px,
            name=name,
        )
        if rig.optics.baseline_m >= LONG_BASELINE_M:
            warnings.warn(long_baseline(rig.optics.baseline_m), stacklevel=2)
        return rig

    @classmethod
    def of_pinhole(cls, **values: Any) -> Self:
        """Return the rig of `from_pinhole`, without a question about its baseline."""
        pinhole = Pinhole(**values)
        sensor_distance_m = pinhole.focal_length_px * PINHOLE_PITCH_M
        optics = Optics(
            baseline_m=pinhole.baseline_m,
            sensor_distance_m=sensor_distance_m,
            optical_power_left_dpt=1 / sensor_distance_m,
            optical_power_right_dpt=1 / sensor_distance_m,
            aperture_radius_m=0.0,
            pixel_pitch_m=PINHOLE_PITCH_M,
            aperture_gaussian_width=0.5,
            disparity_offset_px=pinhole.offset_px,
        )
        return cls(optics=optics, stereo=pinhole.stereo, name=pinhole.name)

    @classmethod
    def from_file(
        cls,
        *paths: str | os.PathLike[str],
        rectified: bool = False,
        swap: bool = False,
        unit_m: float | None = None,
        shape: tuple[int, int] | None = None,
        fisheye: bool = False,
    ) -> Self:
        """Read the calibration of a stereo camera from the files of other programs, or a rig file.

        Reads `calib.txt` of Middlebury, ETH3D and KITTI, YAML and XML of OpenCV, camchain YAML of
        Kalibr, CameraInfo YAML of ROS, and JSON of RealSense and OAK cameras. Their content tells
        which they are. docs/first_depth.md has an example of each.

        Parameters
        ----------
        *paths
            One file, or several that belong together: the left camera, the right camera, and their
            rotation and translation if these are in a third file.
        rectified
            Whether the pictures are rectified already, as `image_rect` of ROS: only the projection
            matrices P of the files are used then.
        swap
            Whether the first camera of the files is the right one.
        unit_m
            Unit of lengths in the files, in metres, such as 0.001; None for the unit that the
            format has.
        shape
            Rows and columns of the pictures, for files of OpenCV that do not say it.
        fisheye
            Whether files of OpenCV have distortion of `cv2.fisheye`, which they may not say.

        Returns
        -------
        Rig
            Rig of the rectified views. If the cameras of the files are not rectified, `rectify` and
            `d3s depth` do it.

        Raises
        ------
        InputError
            Naming the file, what is missing or wrong in it, and the likely remedy.
        RigError
            Naming every value that is out of its range.

        Warns
        -----
        UserWarning
            For what a person should look at, such as a baseline that may be in millimetres.
        """
        from d3s.rig.imports import read_rig

        found = read_rig(
            paths, rectified=rectified, swap=swap, unit_m=unit_m, shape=shape, fisheye=fisheye
        )
        for remark in found.remarks:
            warnings.warn(remark, stacklevel=2)
        return cls(**{name: getattr(found.rig, name) for name in cls.model_fields})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a rig file.

        A `RigError` names the file and every field that is missing, unknown or wrong.
        """
        try:
            # The name is optional in Python but required in a file: None is reported as missing.
            return cls(**{"name": None, **RIG_FILE.read(path)})
        except RigError as error:
            raise RigError(*error.problems, path=path) from error.__cause__

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Rig of the text of a rig file, such as one inside of a recording."""
        return cls(**{"name": None, **RIG_FILE.parse(text.encode())})

    def to_text(self) -> str:
        """Text of the rig file; `Rig.from_text` returns an equal rig."""
        return RIG_FILE.format(self.model_dump(exclude_none=True))

    @property
    def principal_point_px(self) -> tuple[float, float] | None:
        """Principal point (x, y) of the rectified left view; None if it is the middle of it."""
        return None if self.stereo is None else self.stereo.principal_point_px

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a rig file, completely or not at all; `Rig.load` returns an equal rig."""
        write_text(path, self.to_text(), overwrite=overwrite)

    @property
    def doubt(self) -> str:
        """Remark on a calibration that is provisional, with what is wrong; empty if it is good."""
        verdict = "" if self.calibration is None else self.calibration.provenance.verdict or ""
        return f"the calibration of {self.name} is {verdict}" if ":" in verdict else ""

    def rectification_sigma_px(self, age_days: float = 0.0) -> float:
        """Standard deviation of the disparity by errors of the calibration, in pixels.

        That of `Calibration.rectification_sigma_px`; without a calibration, the drift that grows
        with the days since the last check.
        """
        if self.calibration is None:
            return aged_px(age_days)
        return self.calibration.rectification_sigma_px(age_days)

    def split(
        self, raw: Any, *, full_scale: float | None = None, bayer: str | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
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
        full_scale
            Largest value of the sensor, such as 4095 for 12 bits in uint16; that of the type if
            None.
        bayer
            Order of the colours of a colour sensor, such as "RGGB", where the calibration does not
            say it; "none" for a mono sensor. If None, a frame that looks like that of a colour
            sensor gets a `DepthWarning`.

        Returns
        -------
        tuple
            Left and right view, (crop_rows_px, crop_cols_px) of the calibration. Of a stereo camera
            whose frames have both pictures side by side: the views that `rectify` returns.

        Raises
        ------
        InputError
            If the rig has no calibration, or the frame is not a grey image of the calibrated size.
        """
        if self.stereo is not None and self.stereo.raw_cameras is not None:
            from d3s.rig.rectify import split_pictures

            return split_pictures(raw, self.stereo, self.optics, full_scale, bayer)
        if self.calibration is None:
            raise InputError(
                f"the rig {self.name!r} has no calibration, so it cannot split raw frames. "
                "Calibrate it first, or load the rig file that a calibration has written."
            )
        from d3s.rig.split import split

        return split(raw, self.calibration, full_scale, bayer)

    def rectify(self, left: Any, right: Any) -> tuple[Any, Any]:
        """Rectify the pictures of a stereo camera, which `Rig.from_file` has read.

        Distortion and rotation of both cameras are removed in one resampling, by an interpolation
        kernel that adds no blur. Pixels of the result that the camera did not see are NaN:
        `numpy.isfinite` of a view is its valid mask. A rig of rectified pictures returns them as
        they are.

        Parameters
        ----------
        left, right
            Pictures (rows, cols) of the left and the right camera: uint8 or uint16 with their full
            scale, or floats with full scale 1.

        Returns
        -------
        tuple
            Left and right view, of the size of the rectified views, for `d3s.estimate`.

        Raises
        ------
        InputError
            If a picture has not the size that the camera was calibrated for.
        """
        if self.stereo is None:
            return left, right
        from d3s.rig.rectify import check_size, rectify

        if self.stereo.raw_cameras is not None:
            return rectify(left, right, self.stereo, self.optics)
        check_size(left, right, self.stereo.shape)
        return left, right
