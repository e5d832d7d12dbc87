"""Stereo camera: rectified views, the cameras before that, and the numbers of a pinhole pair."""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from d3s.record import Converted, OneLine
from d3s.rig.calibration import Extent, Pixel
from d3s.rig.optics import Baseline, DisparityOffset, RigPart, by_default
from d3s.types import FloatArray

_PINHOLE_COUNTS = 0, 4, 5, 8, 12, 14  # coefficients that OpenCV's pinhole model may have
_FISHEYE_COUNTS = 0, 4
_ORTHONORMAL = 1e-4  # files with few digits are rounded


def _rotation(rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    matrix = np.array(rows)
    is_rotation = np.allclose(matrix @ matrix.T, np.eye(3), rtol=0, atol=_ORTHONORMAL)
    if not is_rotation or np.linalg.det(matrix) < 0:
        raise ValueError("must be a rotation matrix: orthonormal rows, determinant 1.")
    return rows


Length = Annotated[float, Field(gt=0, le=1e6)]
Coefficient = Annotated[float, Field(ge=-1e9, le=1e9)]
Cosine = Annotated[float, Field(ge=-1.001, le=1.001)]
Row = tuple[Cosine, Cosine, Cosine]
IDENTITY = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


class RawCamera(RigPart):
    """Camera as it is, before rectification: lens model, size, and rotation to the rectified view.

    The models are those of OpenCV. "pinhole" has 0, 4, 5, 8, 12 or 14 coefficients of distortion:
    k1, k2, p1, p2, k3 (radial and tangential), k4 to k6 (rational), and further ones. "fisheye" has
    k1 to k4 of the equidistant model.
    """

    model: Literal["pinhole", "fisheye"] = Field(description="the lens model, as OpenCV has it")
    rows_px: Extent = Field(description="the height of the pictures")
    cols_px: Extent = Field(description="the width of the pictures")
    focal_lengths_px: Converted[tuple[Length, Length]] = Field(
        description="the focal length along x and along y"
    )
    principal_point_px: Converted[tuple[Pixel, Pixel]] = Field(
        description="(x, y) of the principal point in the pictures"
    )
    distortion: Annotated[Converted[tuple[Coefficient, ...]], Field(max_length=14)] = by_default(
        (), "the coefficients of the lens model"
    )
    rotation: Annotated[Converted[tuple[Row, Row, Row]], AfterValidator(_rotation)] = by_default(
        IDENTITY, "3 rows of the rotation from this camera to its rectified view"
    )

    @field_validator("distortion")
    @classmethod
    def _fits_the_model(cls, values: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        model = info.data.get("model")
        counts = _FISHEYE_COUNTS if model == "fisheye" else _PINHOLE_COUNTS
        if model is not None and len(values) not in counts:
            known = ", ".join(map(str, counts[:-1]))
            raise ValueError(f"must have {known} or {counts[-1]} values for a {model} camera.")
        return values

    @field_validator("rotation", mode="before")
    @classmethod
    def _rows_are_tuples(cls, rows: object) -> object:
        # The base class converts the outer list only.
        if isinstance(rows, list | tuple):
            return tuple(tuple(row) if isinstance(row, list) else row for row in rows)
        return rows

    @property
    def matrix(self) -> FloatArray:
        """Matrix K (3, 3) of the camera, in pixels."""
        matrix = np.diag([*self.focal_lengths_px, 1.0])
        matrix[:2, 2] = self.principal_point_px
        return matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the pictures."""
        return self.rows_px, self.cols_px


class Stereo(RigPart):
    """Two cameras side by side: rectified views, and the cameras before rectification if known.

    The principal point of the right view has the same y, and its x is smaller by
    `optics.disparity_offset_px`.
    """

    principal_point_px: Converted[tuple[Pixel, Pixel]] = Field(
        description="(x, y) of the principal point of the rectified left view"
    )
    rows_px: Extent | None = Field(
        default=None, description="the height of the rectified views, if known"
    )
    cols_px: Extent | None = by_default(None, "the width of the rectified views, if known")
    disparity_range_px: Converted[tuple[Pixel, Pixel] | None] = by_default(
        None, "the smallest and the largest disparity of the scene, if known"
    )
    left: RawCamera | None = Field(
        default=None, description="the left camera before rectification, if its pictures are raw"
    )
    right: RawCamera | None = by_default(
        None, "the right camera before rectification, if its pictures are raw"
    )

    @field_validator("cols_px", "right")
    @classmethod
    def _needs_its_counterpart(cls, value: object, info: ValidationInfo) -> object:
        other = {"cols_px": "rows_px", "right": "left"}[str(info.field_name)]
        if other in info.data and (info.data[other] is None) != (value is None):
            raise ValueError(f"needs {other} beside it. Give both, or neither.")
        return value

    @field_validator("disparity_range_px")
    @classmethod
    def _is_range(cls, ends: tuple[float, float] | None) -> tuple[float, float] | None:
        if ends is not None and not ends[0] < ends[1]:
            raise ValueError("must be the smallest disparity, then a larger one.")
        return ends

    @field_validator("left")
    @classmethod
    def _needs_the_size(cls, camera: RawCamera | None, info: ValidationInfo) -> RawCamera | None:
        if camera is not None and info.data.get("cols_px", 0) is None:
            raise ValueError("needs rows_px and cols_px of the rectified views beside it.")
        return camera

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and columns of the rectified views; None if not known."""
        return (
            None if self.rows_px is None or self.cols_px is None else (self.rows_px, self.cols_px)
        )

    @property
    def raw_cameras(self) -> tuple[RawCamera, RawCamera] | None:
        """Left and right camera before rectification; None if the pictures are rectified."""
        return None if self.left is None or self.right is None else (self.left, self.right)


RigName = Annotated[OneLine, Field(max_length=100, description="the name of the camera")]

LONG_BASELINE_M = 10.0
"""Baselines from here on are questioned: most are in millimetres."""

_SAME_PX = 0.01  # difference of two numbers of a file that stand for the same one


def long_baseline(baseline_m: float) -> str:
    """Question that a long baseline gets."""
    return (
        f"the baseline is {baseline_m:g} m long. If it is in millimetres, it is "
        f"{baseline_m / 1000:g} m, and depths come out 1000 times too large."
    )


class Pinhole(RigPart):
    """Arguments of `Rig.from_pinhole`: errors name the arguments that the caller wrote."""

    focal_length_px: float = Field(ge=10, le=1e5, description="the focal length in pixels")
    baseline_m: Baseline
    disparity_offset_px: DisparityOffset = 0.0
    principal_point_px: tuple[Pixel, Pixel] | None = Field(
        default=None, description="(x, y) of the principal point of the left view"
    )
    principal_point_right_px: tuple[Pixel, Pixel] | None = Field(
        default=None, description="(x, y) of the principal point of the right view"
    )
    shape: tuple[Extent, Extent] | None = Field(
        default=None, description="rows and columns of the views"
    )
    disparity_range_px: tuple[Pixel, Pixel] | None = Field(
        default=None, description="the least and the largest disparity to search"
    )
    name: RigName = "pinhole pair"

    @field_validator("principal_point_right_px")
    @classmethod
    def _fits_the_left_one(
        cls, right: tuple[float, float] | None, info: ValidationInfo
    ) -> tuple[float, float] | None:
        left = info.data.get("principal_point_px")
        if right is None:
            return None
        if left is None:
            raise ValueError("needs principal_point_px beside it.")
        if abs(left[1] - right[1]) > _SAME_PX:
            raise ValueError(
                f"must be on the row {left[1]:g} of principal_point_px: the rows of rectified "
                "views agree. Give the rectified matrices, P1 and P2 of OpenCV."
            )
        offset = info.data.get("disparity_offset_px")
        if offset and abs(left[0] - right[0] - offset) > _SAME_PX:
            raise ValueError(
                f"gives a disparity of {left[0] - right[0]:g} px at infinity, and "
                f"disparity_offset_px={offset:g}. Leave one of them."
            )
        return right

    @field_validator("shape", "disparity_range_px")
    @classmethod
    def _needs_the_principal_point(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None and info.data.get("principal_point_px", value) is None:
            raise ValueError("needs principal_point_px beside it.")
        return value

    @property
    def offset_px(self) -> float:
        """Disparity of a point at infinity, in pixels."""
        left, right = self.principal_point_px, self.principal_point_right_px
        if self.disparity_offset_px or left is None or right is None:
            return self.disparity_offset_px
        return left[0] - right[0]

    @property
    def stereo(self) -> Stereo | None:
        """Principal point and size of the views; None if not given."""
        if self.principal_point_px is None:
            return None
        rows, cols = self.shape or (None, None)
        return Stereo(
            principal_point_px=self.principal_point_px,
            rows_px=rows,
            cols_px=cols,
            disparity_range_px=self.disparity_range_px,
        )
