"""Numbers of the thin-lens cameras against the formulas of the rig."""

import numpy as np
import pytest

from d3s.errors import SceneError
from d3s.lab.rooms.mitsuba import thin_lens_camera
from d3s.lab.twin.geometry import perfect_views
from d3s.rig import Rig

RIG = Rig.paper_prototype()
SHAPE = (40, 60)


def _cameras(rig, margin_px=0):
    views = perfect_views(rig.optics, SHAPE)
    return views, [thin_lens_camera(view, SHAPE, margin_px) for view in views]


def _film_x(camera, slope):
    """Column of `part` that a ray of a slope X/Z meets, by the geometry of a pinhole camera."""
    half = camera.film_px[1] / 2
    return half * slope / np.tan(camera.fov_x_rad / 2) + half - 0.5 - camera.part.col


@pytest.mark.parametrize("offset_px", [0.0, -7.3, 12.5])
@pytest.mark.parametrize("depth_m", [0.35, 1.0, 2.0])
def test_the_disparity_of_the_cameras_is_that_of_the_rig(offset_px, depth_m):
    rig = RIG.replace(optics=RIG.optics.replace(disparity_offset_px=offset_px))
    _, (left, right) = _cameras(rig, margin_px=6)
    x_m = 0.004
    columns = [
        _film_x(camera, (x_m - camera.x_m) / depth_m) - camera.shift_px - 6
        for camera in (left, right)
    ]
    assert columns[0] - columns[1] == pytest.approx(rig.optics.disparity_px(depth_m), abs=1e-9)


@pytest.mark.parametrize("depth_m", [0.35, 0.6, 1.0, 2.0])
def test_the_blur_of_the_cameras_is_that_of_the_rig(depth_m):
    views, cameras = _cameras(RIG)
    for view, camera in zip(views, cameras, strict=True):
        # A ray from the edge of the aperture through a point on the axis, to the plane of focus.
        at_focus_m = camera.aperture_radius_m * (1 - camera.focus_distance_m / depth_m)
        pixels = abs(at_focus_m) / camera.focus_distance_m * RIG.optics.focal_length_px
        assert pixels == pytest.approx(abs(RIG.optics.blur_radius_px(depth_m, view.camera)))


def test_a_lens_focused_beyond_infinity_is_refused():
    rig = RIG.replace(optics=RIG.optics.replace(optical_power_right_dpt=82.0))
    with pytest.raises(SceneError, match=r"optical_power_right_dpt=82 must be above 82\.6446"):
        _cameras(rig)
