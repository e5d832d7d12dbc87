"""Thin-lens camera of one view: numbers that a path tracer needs, from the rig.

A ray leaves a random point of the aperture and meets the ray through the centre of the aperture in
the plane of focus. So the image is that of a pinhole at the centre of the lens, and a point at
depth Z is blurred to a disk. Its radius in pixels is s0 A / p times the distance of 1/Z from
1/Z_focus, as `Optics.blur_radius_px` has it.
"""

from typing import NamedTuple

import numpy as np

from d3s.errors import SceneError
from d3s.lab.twin.geometry import View, Window
from d3s.rig import Optics
from d3s.types import FloatArray


class ThinLensCamera(NamedTuple):
    """Camera of one view, on a film that is centred on the axis of the lens.

    The right view of a rig with a disparity at infinity looks past the axis. Its frame is then a
    part of the film at one side, and the rest of a pixel is left to the resampling.
    """

    x_m: float  # position of the lens; y and z are 0
    aperture_radius_m: float  # 0 for a pinhole
    focus_distance_m: float
    fov_x_rad: float  # full angle of the width of the film
    film_px: tuple[int, int]  # rows and columns of the film
    part: Window  # pixels of the film that are rendered: the frame and a margin
    shift_px: float  # from the pixels of `part` to those of the frame, to the right


def thin_lens_camera(view: View, shape: tuple[int, int], margin_px: int) -> ThinLensCamera:
    """Camera of one view of a rig without mounting errors, with a margin on each side of the frame.

    Raises a SceneError if the lens is focused at infinity or beyond.
    """
    optics = view.optics
    focus_m = optics.focus_distances_m[view.camera]
    if optics.aperture_radius_m > 0 and not 0 < focus_m < np.inf:
        name = ("optical_power_left_dpt", "optical_power_right_dpt")[view.camera]
        raise SceneError(
            f"{name}={1 / optics.sensor_distance_m + 1 / focus_m:g} must be above "
            f"{1 / optics.sensor_distance_m:g}, 1 / sensor_distance_m, to be rendered: the path "
            "tracer has no lens that is focused at infinity or beyond."
        )
    offset_px = optics.disparity_offset_px if view.camera else 0.0
    whole_px = round(offset_px)
    part = Window(0, abs(whole_px) + whole_px, shape[0] + 2 * margin_px, shape[1] + 2 * margin_px)
    film_px = part.rows, part.cols + 2 * abs(whole_px)
    return ThinLensCamera(
        x_m=view.camera_x_m,
        aperture_radius_m=optics.aperture_radius_m,
        focus_distance_m=focus_m,
        fov_x_rad=float(2 * np.arctan(film_px[1] / 2 / optics.focal_length_px)),
        film_px=film_px,
        part=part,
        shift_px=offset_px - whole_px,
    )


def pinhole_rays(view: View, shape: tuple[int, int]) -> FloatArray:
    """Slopes (X/Z, Y/Z, 1) of the rays through the pixel centres, (rows, cols, 3)."""
    frame = Window.frame(shape)
    x, y = np.meshgrid(frame.col_numbers, frame.row_numbers)
    return np.asarray(np.stack((x, y, np.ones_like(x)), axis=-1) @ view.ray_matrix.T)


def field_slopes(optics: Optics, shape: tuple[int, int]) -> tuple[float, float]:
    """Half the height and half the width of the view, per metre of depth."""
    return shape[0] / 2 / optics.focal_length_px, shape[1] / 2 / optics.focal_length_px
