"""Bent planes: where a view sees each point of a plane that is bent along the axis of the camera.

The surface is Z = Z0 + a X + b Y + (c X² + 2 d X Y + e Y²) / 2 in the coordinates of the left
camera, and has the texture of the plane without the bend, moved along Z. The ray of a pixel meets
it at the root of a quadratic equation, without approximation.
"""

from typing import NamedTuple

import numpy as np

from d3s.errors import SceneError
from d3s.lab.twin.geometry import FARTHEST_M, Affine, PlaneInSpace, View, Window
from d3s.types import FloatArray, Image


class Bend(NamedTuple):
    """Second derivatives of the depth of a surface, in 1/m."""

    xx: float
    xy: float
    yy: float

    @property
    def is_flat(self) -> bool:
        """Whether the surface is a plane."""
        return not any(self)


class BentSurface(NamedTuple):
    """Bent plane over the pixels of a window: 1/Z in 1/m, and the pixels of the flat plane.

    The view sees at each pixel the texture that it would see at (x, y) on the plane without bend.
    """

    inverse_depth: FloatArray
    x: FloatArray
    y: FloatArray


def bent_surface(plane: PlaneInSpace, bend: Bend, view: View, window: Window) -> BentSurface:
    """Bent plane over the pixels of a window.

    Parameters
    ----------
    plane
        Plane that touches the surface on the axis of the left camera.
    bend
        Bend of the surface.
    view
        View that sees it.
    window
        Pixels of the view.

    Raises
    ------
    SceneError
        If the ray of a pixel misses the surface, or meets it at the horizon.
    """
    ones = np.ones(window.shape)
    pixels = np.stack([window.col_numbers * ones, window.row_numbers[:, np.newaxis] * ones, ones])
    right, down, _ = np.tensordot(view.ray_matrix, pixels, axes=1)
    start = view.camera_x_m
    # Z = Z0 + ... with X = start + right Z and Y = down Z; as a quadratic equation for 1 / Z.
    constant = plane.depth_m + plane.slope_x * start + 0.5 * bend.xx * start**2
    linear = (
        1 - (plane.slope_x + bend.xx * start) * right - (plane.slope_y + bend.xy * start) * down
    )
    square = 0.5 * (bend.xx * right**2 + 2 * bend.xy * right * down + bend.yy * down**2)
    under_root = linear**2 - 4 * constant * square
    if under_root.min() <= 0 or linear.min() <= 0 or constant <= 0:
        raise _curls_away(bend)
    inverse = (linear + np.sqrt(under_root)) / (2 * constant)
    if inverse.min() < 1 / FARTHEST_M:
        raise _curls_away(bend)
    across_m, down_m = right / inverse, down / inverse  # from the camera
    flat_m = plane.depth_m + plane.slope_x * (start + across_m) + plane.slope_y * down_m
    if flat_m.min() <= 0:
        raise _curls_away(bend)
    x, y, _ = np.tensordot(
        np.linalg.inv(view.ray_matrix), np.stack([across_m / flat_m, down_m / flat_m, ones]), axes=1
    )
    return BentSurface(inverse, x, y)


def flat_window(plane: PlaneInSpace, bend: Bend, view: View, window: Window) -> Window:
    """Window of the plane without bend that a window of the bent one sees.

    Parameters
    ----------
    plane, bend, view
        As for `bent_surface`, which also has the exception.
    window
        Pixels of the view. Those on its border see the outermost points.
    """
    last_row, last_col = window.row + window.rows - 1, window.col + window.cols - 1
    lines = [
        bent_surface(plane, bend, view, line)
        for line in (
            window._replace(rows=1),
            window._replace(cols=1),
            window._replace(row=last_row, rows=1),
            window._replace(col=last_col, cols=1),
        )
    ]
    (left, right), (top, bottom) = (
        (int(min(map(np.min, places))) - 1, int(max(map(np.max, places))) + 1)
        for places in ([line.x for line in lines], [line.y for line in lines])
    )
    return Window(top, left, bottom - top + 1, right - left + 1)


def _curls_away(bend: Bend) -> SceneError:
    return SceneError(
        f"the plane curls out of the view: bend_x_per_m={bend.xx:g}, bend_xy_per_m={bend.xy:g}, "
        f"bend_y_per_m={bend.yy:g}. Bend it less."
    )


def nearest_plane(inverse: FloatArray | Image, window: Window) -> Affine:
    """Inverse depth of the plane nearest to a surface, by least squares over a window."""
    rows = window.row_numbers - window.row_numbers.mean()
    cols = window.col_numbers - window.col_numbers.mean()
    per_x = float(inverse.mean(axis=0, dtype=np.float64) @ cols / max(cols @ cols, 1.0))
    per_y = float(inverse.mean(axis=1, dtype=np.float64) @ rows / max(rows @ rows, 1.0))
    middle = per_x * window.col_numbers.mean() + per_y * window.row_numbers.mean()
    return Affine(float(inverse.mean(dtype=np.float64) - middle), per_x, per_y)
