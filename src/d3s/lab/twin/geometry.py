"""Views of the rig, planes in space, and the maps between pixels and planes.

A pixel (x, y) of a view looks along (u, v), in pixels from the optical axis of a perfect camera at
X = 0 (left) or X = baseline (right). At depth Z it sees the point X = X_camera + Z u p / s0,
Y = Z v p / s0. All maps here are affine or projective, without approximation.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from d3s.errors import RecordError, SceneError
from d3s.record import Record
from d3s.rig import Optics
from d3s.types import FloatArray


class ScenePart(Record):
    """Base of the records of a scene; errors are `SceneError`."""

    error: ClassVar[type[RecordError]] = SceneError

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        # NumPy scalars become Python numbers, lists become tuples; arrays stay arrays.
        if isinstance(value, np.generic):
            value = value.item()
        return tuple(value) if isinstance(value, list) else value


class Mount(ScenePart):
    """Mounting error of a lens, which a calibration has to find."""

    scale: float = Field(
        default=1.0, ge=0.5, le=2, description="the magnification relative to the design"
    )
    roll_rad: float = Field(
        default=0.0, gt=-0.5, lt=0.5, description="the rotation of the view, clockwise in the image"
    )
    shift_x_px: float = Field(
        default=0.0, ge=-1e3, le=1e3, description="the shift of the view to the right"
    )
    shift_y_px: float = Field(
        default=0.0, ge=-1e3, le=1e3, description="the shift of the view downwards"
    )

    @property
    def matrix(self) -> FloatArray:
        """2x2 rotation and magnification of (u, v), without the shift."""
        cos, sin = np.cos(self.roll_rad), np.sin(self.roll_rad)
        return self.scale * np.array([[cos, -sin], [sin, cos]])


PERFECT = Mount()

# Largest depth of a scene; beyond it is the horizon.
FARTHEST_M = 1e4


@dataclass(frozen=True, kw_only=True)
class View:
    """One camera of a rig, with its pixel on the optical axis."""

    optics: Optics
    camera: int
    axis_px: tuple[float, float]  # (x, y), for a perfect mount
    mount: Mount = PERFECT

    @property
    def camera_x_m(self) -> float:
        """Position X of the lens, in metres."""
        return self.optics.baseline_m if self.camera else 0.0

    @property
    def centre_px(self) -> tuple[float, float]:
        """Pixel (x, y) on the axis of the lens as mounted."""
        x, y = self.axis_px
        return x + self.mount.shift_x_px, y + self.mount.shift_y_px

    @property
    def disparity_per_dpt(self) -> float:
        """Disparity in px per 1/m of inverse depth."""
        return float(self.optics.disparity_px(1.0)) - self.optics.disparity_offset_px

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
    """Left and right view of a rig without mounting errors, the axes at the frame centre."""
    return mounted_views(optics, shape, (PERFECT, PERFECT))


def mounted_views(
    optics: Optics, shape: tuple[int, int], mounts: tuple[Mount, Mount]
) -> tuple[View, View]:
    """Left and right view of a rig with mounting errors.

    Parameters
    ----------
    optics
        Optics of the rig.
    shape
        Rows and columns of the frame; the designed axes are at its centre.
    mounts
        Mounting errors of the left and the right lens.
    """
    axis_px = ((shape[1] - 1) / 2, (shape[0] - 1) / 2)
    left, right = (
        View(optics=optics, camera=camera, axis_px=axis_px, mount=mount)
        for camera, mount in enumerate(mounts)
    )
    return left, right


class Affine(NamedTuple):
    """Affine function of the pixel position: constant + per_x x + per_y y."""

    constant: float
    per_x: float
    per_y: float

    @property
    def is_constant(self) -> bool:
        """Whether the value is equal at all pixels."""
        return self.per_x == 0 and self.per_y == 0

    def over(self, rows: FloatArray, cols: FloatArray) -> FloatArray:
        """Values at all pixels of the given rows and columns, (rows, cols)."""
        return np.asarray(
            self.constant + self.per_x * cols[np.newaxis, :] + self.per_y * rows[:, np.newaxis]
        )

    def scaled(self, factor: float, offset: float = 0.0) -> "Affine":
        """Function multiplied by a factor, plus an offset."""
        return Affine(factor * self.constant + offset, factor * self.per_x, factor * self.per_y)

    def range_over(self, window: "Window") -> tuple[float, float]:
        """Smallest and largest value within a window."""
        values = self.over(
            np.array([window.row, window.row + window.rows - 1.0]),
            np.array([window.col, window.col + window.cols - 1.0]),
        )
        return float(values.min()), float(values.max())


class Window(NamedTuple):
    """Rectangle of pixels of a view. The frame begins at (0, 0); a window may extend beyond it."""

    row: int
    col: int
    rows: int
    cols: int

    @classmethod
    def frame(cls, shape: tuple[int, int]) -> "Window":
        """Window of the whole frame."""
        return cls(0, 0, *shape)

    @classmethod
    def around(cls, mask: NDArray[Any]) -> "Window":
        """Bounding window of the non-zero pixels of a mask; empty if there are none."""
        rows, cols = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
        if not rows.size:
            return cls(0, 0, 0, 0)
        return cls(int(rows[0]), int(cols[0]), int(np.ptp(rows)) + 1, int(np.ptp(cols)) + 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.cols

    @property
    def is_empty(self) -> bool:
        """Whether the window has no pixels."""
        return not (self.rows and self.cols)

    @property
    def row_numbers(self) -> FloatArray:
        """Coordinate y of each row, in pixels."""
        return np.arange(self.row, self.row + self.rows, dtype=np.float64)

    @property
    def col_numbers(self) -> FloatArray:
        """Coordinate x of each column, in pixels."""
        return np.arange(self.col, self.col + self.cols, dtype=np.float64)

    def grown(self, rows: int, cols: int) -> "Window":
        """Window with a margin of `rows` above and below and `cols` on either side."""
        return Window(self.row - rows, self.col - cols, self.rows + 2 * rows, self.cols + 2 * cols)

    def joined(self, other: "Window") -> "Window":
        """Smallest window that contains both."""
        row, col = min(self.row, other.row), min(self.col, other.col)
        last_row = max(self.row + self.rows, other.row + other.rows)
        last_col = max(self.col + self.cols, other.col + other.cols)
        return Window(row, col, last_row - row, last_col - col)

    def common(self, other: "Window") -> "Window":
        """Intersection of both windows, possibly empty."""
        row, col = max(self.row, other.row), max(self.col, other.col)
        last_row = min(self.row + self.rows, other.row + other.rows)
        last_col = min(self.col + self.cols, other.col + other.cols)
        return Window(row, col, max(0, last_row - row), max(0, last_col - col))

    def within(self, outer: "Window") -> tuple[slice, slice]:
        """Slices that cut this window out of an array on the outer window."""
        row, col = self.row - outer.row, self.col - outer.col
        return slice(row, row + self.rows), slice(col, col + self.cols)


class PlaneInSpace(NamedTuple):
    """Plane Z = depth + slope_x X + slope_y Y, in the coordinates of the left camera."""

    depth_m: float
    slope_x: float = 0.0
    slope_y: float = 0.0

    @property
    def is_frontal(self) -> bool:
        """Whether the plane is parallel to the sensor, at one depth."""
        return self.slope_x == 0 and self.slope_y == 0

    def inverse_depth(self, view: View) -> Affine:
        """1 / Z of the plane over the pixels of a view, in 1/m."""
        at_camera_m = self.depth_m + self.slope_x * view.camera_x_m
        normal = np.array([-self.slope_x, -self.slope_y, 1.0])
        per_x, per_y, constant = normal @ view.ray_matrix / at_camera_m
        return Affine(float(constant), float(per_x), float(per_y))

    def surface_matrix(self, view: View) -> FloatArray:
        """3x3 homography from (x, y, 1) to coordinates on the plane, in metres.

        The origin is the point of the plane on the left camera's axis. The two coordinate axes are
        perpendicular; the first is horizontal.
        """
        inverse = self.inverse_depth(view)
        inverse_row = np.array([inverse.per_x, inverse.per_y, inverse.constant])
        origin = np.array([view.camera_x_m, 0.0, -self.depth_m])
        # (P - P0) / Z along the ray of the pixel is linear in (x, y, 1), like 1 / Z.
        place = view.ray_matrix + origin[:, np.newaxis] * inverse_row
        first = np.array([1.0, 0.0, self.slope_x]) / np.hypot(1.0, self.slope_x)
        normal = np.array([-self.slope_x, -self.slope_y, 1.0])
        second = np.cross(normal / np.linalg.norm(normal), first)
        return np.stack([first @ place, second @ place, inverse_row])


def pixel_matrix(plane: PlaneInSpace, view: View, reference: View) -> FloatArray:
    """3x3 homography between the pixels at which two views see the same point of a plane.

    Parameters
    ----------
    plane
        Plane in space.
    view
        View to map from.
    reference
        View to map to.
    """
    return np.asarray(
        np.linalg.solve(plane.surface_matrix(reference), plane.surface_matrix(view)),
        dtype=np.float64,
    )
