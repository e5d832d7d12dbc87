"""Thin-lens camera of one view: numbers that a path tracer needs, from the rig.

A ray leaves a random point of the aperture and meets the ray through the centre of the aperture in
the plane of focus. So the image is that of a pinhole at the centre of the lens, and a point at depth
Z is blurred to a disk of the radius s0 A / p |1/Z - 1/Z_focus| pixels, as `Optics.blur_radius_px`
has it.
"""

from typing import NamedTuple

import numpy as np

from d3s.errors import SceneError
from d3s.rig import Optics
from d3s.scene.geometry import View, Window
from d3s.types import FloatArray


class ThinLensCamera(NamedTuple):
    """Camera of one view; a film with a margin around the frame."""

    x_m: float  # position of the lens; y and z are 0
    aperture_radius_m: float  # 0 for a pinhole
    focus_distance_m: float
    fov_x_rad: float  # full angle of the width of the film
    axis_shift_px: float  # of the pixel on the axis, from the centre of the film, to the right
    film: Window  # pixels of the view; it begins before (0, 0)


def thin_lens_camera(view: View, shape: tuple[int, int], margin_px: int) -> ThinLensCamera:
    """Camera of one view of a rig without mounting errors.

    Parameters
    ----------
    view
        View of the rig.
    shape
        Rows and columns of the frame.
    margin_px
        Pixels that the film has beyond each side of the frame.

    Raises
    ------
    SceneError
        If the lens is focused at infinity or beyond.
    """
    optics = view.optics
    focus_m = optics.focus_distances_m[view.camera]
    if optics.aperture_radius_m > 0 and not 0 < focus_m < np.inf:
        name = ("optical_power_left_dpt", "optical_power_right_dpt")[view.camera]
        raise SceneError(
            f"{name} focuses at {focus_m:g} m, and a path tracer needs a lens that is focused "
            f"nearer than infinity. Raise it above 1 / sensor_distance_m."
        )
    film = Window.frame(shape).grown(margin_px, margin_px)
    fov_rad = 2 * np.arctan(film.cols / 2 / optics.focal_length_px)
    shift_px = -optics.disparity_offset_px if view.camera else 0.0
    return ThinLensCamera(
        view.camera_x_m, optics.aperture_radius_m, focus_m, float(fov_rad), shift_px, film
    )


def pinhole_rays(view: View, shape: tuple[int, int]) -> FloatArray:
    """Slopes (X/Z, Y/Z, 1) of the rays through the pixel centres, (rows, cols, 3)."""
    frame = Window.frame(shape)
    x, y = np.meshgrid(frame.col_numbers, frame.row_numbers)
    return np.stack((x, y, np.ones_like(x)), axis=-1) @ view.ray_matrix.T


def field_slopes(optics: Optics, shape: tuple[int, int]) -> tuple[float, float]:
    """Half the height and half the width of the view, per metre of depth."""
    return shape[0] / 2 / optics.focal_length_px, shape[1] / 2 / optics.focal_length_px
