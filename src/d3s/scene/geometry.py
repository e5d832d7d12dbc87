"""Where things are: views of the rig, planes in front of them, and the maps between both.

A pixel (x, y) of a view looks along (u, v), in pixels from the optical axis of a perfect camera
that stands at X = 0 (left) or X = baseline (right). The point that it sees at a depth Z is then
X = X_camera + Z u p / s0, Y = Z v p / s0. All maps here are affine or projective, and exact.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from d3s.errors import RecordError, SceneError
from d3s.record import Record
from d3s.rig import Optics
from d3s.types import FloatArray


class ScenePart(Record):
    """A frozen set of named values of a scene."""

    error: ClassVar[type[RecordError]] = SceneError

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        # Images stay what they are: nobody wants a million numbers in a tuple.
        if isinstance(value, np.generic):
            value = value.item()
        return tuple(value) if isinstance(value, list) else value


class Mount(ScenePart):
    """How far a lens sits from where it should: what a calibration has to find."""

    scale: float = Field(
        default=1.0, ge=0.5, le=2, description="the magnification, one as designed"
    )
    roll_rad: float = Field(
        default=0.0, gt=-0.5, lt=0.5, description="the turn of the view, clockwise on the picture"
    )
    shift_x_px: float = Field(
        default=0.0, ge=-1e3, le=1e3, description="the shift of the view to the right"
    )
    shift_y_px: float = Field(
        default=0.0, ge=-1e3, le=1e3, description="the shift of the view downwards"
    )

    @property
    def matrix(self) -> FloatArray:
        """Turn and magnification of (u, v), without the shift."""
        cos, sin = np.cos(self.roll_rad), np.sin(self.roll_rad)
        return self.scale * np.array([[cos, -sin], [sin, cos]])


PERFECT = Mount()

# Farther away than this, in metres, is the horizon.
FARTHEST_M = 1e4


@dataclass(frozen=True, kw_only=True)
class View:
    """One camera, and the pixel that its optical axis meets."""

    optics: Optics
    camera: int
    axis_px: tuple[float, float]  # (x, y), for a perfect mount
    mount: Mount = PERFECT

    @property
    def camera_x_m(self) -> float:
        """Where the lens stands."""
        return self.optics.baseline_m if self.camera else 0.0

    @property
    def centre_px(self) -> tuple[float, float]:
        """(x, y) at which the axis of the lens, where it is mounted, meets the view."""
        x, y = self.axis_px
        return x + self.mount.shift_x_px, y + self.mount.shift_y_px

    @property
    def ray_matrix(self) -> FloatArray:
        """3x3 matrix from (x, y, 1) to the slopes (X/Z, Y/Z, 1) of a ray from the lens."""
        offset_px = self.optics.disparity_offset_px if self.camera else 0.0
        inverse = np.linalg.inv(self.mount.matrix)
        to_ideal = np.eye(3)
        to_ideal[:2, :2] = inverse
        to_ideal[:2, 2] = (offset_px, 0.0) - inverse @ np.array(self.centre_px)
        to_ideal[:2] /= self.optics.focal_length_px
        return to_ideal


def perfect_views(optics: Optics, shape: tuple[int, int]) -> tuple[View, View]:
    """Both views of a rig as designed: the axes in the middle of the frame."""
    return mounted_views(optics, shape, (PERFECT, PERFECT))


def mounted_views(
    optics: Optics, shape: tuple[int, int], mounts: tuple[Mount, Mount]
) -> tuple[View, View]:
    """Both views of a rig whose lenses are mounted so."""
    axis_px = ((shape[1] - 1) / 2, (shape[0] - 1) / 2)
    left, right = (
        View(optics=optics, camera=camera, axis_px=axis_px, mount=mount)
        for camera, mount in enumerate(mounts)
    )
    return left, right


class Affine(NamedTuple):
    """A number that changes evenly over the pixels of a view: c + cx x + cy y."""

    constant: float
    per_x: float
    per_y: float

    @property
    def is_constant(self) -> bool:
        """Whether it is the same at every pixel."""
        return self.per_x == 0 and self.per_y == 0

    def over(self, rows: FloatArray, cols: FloatArray) -> FloatArray:
        """Values at all pixels of some rows and columns."""
        return np.asarray(
            self.constant + self.per_x * cols[np.newaxis, :] + self.per_y * rows[:, np.newaxis]
        )

    def scaled(self, factor: float, offset: float = 0.0) -> "Affine":
        """Values times a factor, plus an offset."""
        return Affine(factor * self.constant + offset, factor * self.per_x, factor * self.per_y)

    def range_over(self, window: "Window") -> tuple[float, float]:
        """Smallest and largest value within a window."""
        values = self.over(
            np.array([window.row, window.row + window.rows - 1.0]),
            np.array([window.col, window.col + window.cols - 1.0]),
        )
        return float(values.min()), float(values.max())


class Window(NamedTuple):
    """A rectangle of pixels of a view; the frame begins at (0, 0), and a window may stick out."""

    row: int
    col: int
    rows: int
    cols: int

    @classmethod
    def frame(cls, shape: tuple[int, int]) -> "Window":
        """The whole picture."""
        return cls(0, 0, *shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.cols

    @property
    def row_numbers(self) -> FloatArray:
        """The y of each row."""
        return np.arange(self.row, self.row + self.rows, dtype=np.float64)

    @property
    def col_numbers(self) -> FloatArray:
        """The x of each column."""
        return np.arange(self.col, self.col + self.cols, dtype=np.float64)

    def grown(self, rows: int, cols: int) -> "Window":
        """Window with a margin on all sides."""
        return Window(self.row - rows, self.col - cols, self.rows + 2 * rows, self.cols + 2 * cols)

    def joined(self, other: "Window") -> "Window":
        """Smallest window that holds both."""
        row, col = min(self.row, other.row), min(self.col, other.col)
        last_row = max(self.row + self.rows, other.row + other.rows)
        last_col = max(self.col + self.cols, other.col + other.cols)
        return Window(row, col, last_row - row, last_col - col)

    def common(self, other: "Window") -> "Window":
        """Pixels that are in both; without any, zero rows or columns."""
        row, col = max(self.row, other.row), max(self.col, other.col)
        last_row = min(self.row + self.rows, other.row + other.rows)
        last_col = min(self.col + self.cols, other.col + other.cols)
        return Window(row, col, max(0, last_row - row), max(0, last_col - col))

    def within(self, outer: "Window") -> tuple[slice, slice]:
        """Slices that cut this window out of an array of the outer one."""
        row, col = self.row - outer.row, self.col - outer.col
        return slice(row, row + self.rows), slice(col, col + self.cols)


class PlaneInSpace(NamedTuple):
    """Z = depth + slope_x X + slope_y Y, seen from the left camera; a surface with a texture."""

    depth_m: float
    slope_x: float = 0.0
    slope_y: float = 0.0

    @property
    def faces_us(self) -> bool:
        """Whether all of it is at one depth."""
        return self.slope_x == 0 and self.slope_y == 0

    def inverse_depth(self, view: View) -> Affine:
        """1 / Z of the plane over the pixels of a view, in 1/m."""
        at_camera_m = self.depth_m + self.slope_x * view.camera_x_m
        normal = np.array([-self.slope_x, -self.slope_y, 1.0])
        per_x, per_y, constant = normal @ view.ray_matrix / at_camera_m
        return Affine(float(constant), float(per_x), float(per_y))

    def surface_matrix(self, view: View) -> FloatArray:
        """3x3 homography from (x, y, 1) to the place on the plane, in metres.

        The place is measured from the point on the left camera's axis, along two lines at right
        angles in the plane, of which the first is level.
        """
        inverse = self.inverse_depth(view)
        inverse_row = np.array([inverse.per_x, inverse.per_y, inverse.constant])
        origin = np.array([view.camera_x_m, 0.0, -self.depth_m])
        # (P - P0) / Z for the pixel's ray: linear in (x, y, 1), as 1 / Z is.
        place = view.ray_matrix + origin[:, np.newaxis] * inverse_row
        first = np.array([1.0, 0.0, self.slope_x]) / np.hypot(1.0, self.slope_x)
        normal = np.array([-self.slope_x, -self.slope_y, 1.0])
        second = np.cross(normal / np.linalg.norm(normal), first)
        return np.stack([first @ place, second @ place, inverse_row])


def pixel_matrix(plane: PlaneInSpace, view: View, reference: View) -> FloatArray:
    """3x3 homography from pixels of a view to those at which another view sees the same point."""
    return np.asarray(
        np.linalg.solve(plane.surface_matrix(reference), plane.surface_matrix(view)),
        dtype=np.float64,
    )
