"""Views of the rig, surfaces in space, and the maps between pixels and surfaces.

A pixel (x, y) of a view looks along (u, v), in pixels from the optical axis of a perfect camera at
X = 0 (left) or X = baseline (right). At depth Z it sees the point X = X_camera + Z u p / s0,
Y = Z v p / s0. All maps here are affine, projective or roots of a quadratic equation, without
approximation.

A bent plane is Z = Z0 + a X + b Y + (c X² + 2 d X Y + e Y²) / 2 in the coordinates of the left
camera, and has the texture of the plane without the bend, moved along Z.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from d3s.errors import RecordError, SceneError
from d3s.record import Record
from d3s.rig import Optics
from d3s.types import FloatArray, Image


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
    """Left and right view of a rig with mounting errors; designed axes are at the frame centre."""
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
        return self.at(cols[np.newaxis, :], rows[:, np.newaxis])

    def at(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Values at pixels (x, y)."""
        return np.asarray(self.constant + self.per_x * x + self.per_y * y)

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
    """Plane Z = depth + slope_x X + slope_y Y in the coordinates of the left camera, and its bend.

    The bend is the second derivatives of the depth, in 1/m.
    """

    depth_m: float
    slope_x: float = 0.0
    slope_y: float = 0.0
    bend_xx: float = 0.0
    bend_xy: float = 0.0
    bend_yy: float = 0.0

    @property
    def is_bent(self) -> bool:
        """Whether the surface is not a plane."""
        return any(self[3:])

    def inverse_depth(self, view: View) -> Affine:
        """1 / Z of the plane without bend over the pixels of a view, in 1/m."""
        at_camera_m = self.depth_m + self.slope_x * view.camera_x_m
        normal = np.array([-self.slope_x, -self.slope_y, 1.0])
        per_x, per_y, constant = normal @ view.ray_matrix / at_camera_m
        return Affine(float(constant), float(per_x), float(per_y))

    def surface_matrix(self, view: View) -> FloatArray:
        """3x3 homography from (x, y, 1) to coordinates on the plane without bend, in metres.

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


def bent_surface(
    plane: PlaneInSpace, view: View, window: Window
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """1/Z of a bent plane over the pixels of a window, in 1/m, and pixels (x, y) of the flat plane.

    The view sees at each pixel the texture that it would see at (x, y) on the plane without bend,
    which touches the surface on the axis of the left camera. Raises a SceneError if the ray of a
    pixel misses the surface, or meets it at the horizon.
    """
    _, slope_x, slope_y, xx, xy, yy = plane
    ones = np.ones(window.shape)
    pixels = np.stack([window.col_numbers * ones, window.row_numbers[:, np.newaxis] * ones, ones])
    right, down, _ = np.tensordot(view.ray_matrix, pixels, axes=1)
    start = view.camera_x_m
    # Z = Z0 + ... with X = start + right Z and Y = down Z; as a quadratic equation for 1 / Z.
    constant = plane.depth_m + slope_x * start + 0.5 * xx * start**2
    linear = 1 - (slope_x + xx * start) * right - (slope_y + xy * start) * down
    square = 0.5 * (xx * right**2 + 2 * xy * right * down + yy * down**2)
    under_root = linear**2 - 4 * constant * square
    if under_root.min() <= 0 or linear.min() <= 0 or constant <= 0:
        raise _curls_away(plane)
    inverse = (linear + np.sqrt(under_root)) / (2 * constant)
    across_m, down_m = right / inverse, down / inverse  # from the camera
    flat_m = plane.depth_m + slope_x * (start + across_m) + slope_y * down_m
    if inverse.min() < 1 / FARTHEST_M or flat_m.min() <= 0:
        raise _curls_away(plane)
    x, y, _ = np.tensordot(
        np.linalg.inv(view.ray_matrix), np.stack([across_m / flat_m, down_m / flat_m, ones]), axes=1
    )
    return inverse, x, y


def flat_window(plane: PlaneInSpace, view: View, window: Window) -> Window:
    """Window of the plane without bend that a window of the bent one sees.

    Pixels on the border of the window see the outermost points.
    """
    last_row, last_col = window.row + window.rows - 1, window.col + window.cols - 1
    lines = (
        window._replace(rows=1),
        window._replace(cols=1),
        window._replace(row=last_row, rows=1),
        window._replace(col=last_col, cols=1),
    )
    _, xs, ys = zip(*(bent_surface(plane, view, line) for line in lines), strict=True)
    left, top = (int(min(map(np.min, places))) - 1 for places in (xs, ys))
    right, bottom = (int(max(map(np.max, places))) + 1 for places in (xs, ys))
    return Window(top, left, bottom - top + 1, right - left + 1)


def _curls_away(plane: PlaneInSpace) -> SceneError:
    return SceneError(
        f"the plane curls out of the view: bend_x_per_m={plane.bend_xx:g}, "
        f"bend_xy_per_m={plane.bend_xy:g}, bend_y_per_m={plane.bend_yy:g}. Bend it less."
    )


def nearest_plane(inverse: FloatArray | Image, window: Window) -> Affine:
    """Inverse depth of the plane nearest to a surface, by least squares over a window."""
    rows = window.row_numbers - window.row_numbers.mean()
    cols = window.col_numbers - window.col_numbers.mean()
    per_x = float(inverse.mean(axis=0, dtype=np.float64) @ cols / max(cols @ cols, 1.0))
    per_y = float(inverse.mean(axis=1, dtype=np.float64) @ rows / max(rows @ rows, 1.0))
    middle = per_x * window.col_numbers.mean() + per_y * window.row_numbers.mean()
    return Affine(float(inverse.mean(dtype=np.float64) - middle), per_x, per_y)
