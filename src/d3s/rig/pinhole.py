"""Numbers of a rectified stereo pair that is sharp at all depths."""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from d3s.record import OneLine
from d3s.rig.calibration import Extent, Pixel
from d3s.rig.optics import Baseline, DisparityOffset
from d3s.rig.part import RigPart
from d3s.rig.stereo import Stereo

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
