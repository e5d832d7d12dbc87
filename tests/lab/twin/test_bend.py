"""Bent planes: depth by the formula, positions by ray and surface, in pairs and raw frames."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates
from scipy.optimize import brentq

import d3s
from d3s.errors import SceneError

BENT = {"tilt_x_rad": 0.02, "tilt_y_rad": -0.03, "bend_x_per_m": -0.5, "bend_xy_per_m": 0.4}
BENT["bend_y_per_m"] = 0.3
PROTOTYPE = d3s.Rig.paper_prototype()
PINHOLE = PROTOTYPE.replace(optics=PROTOTYPE.optics.replace(aperture_radius_m=0.0))


def depth_at(scene, x_m, y_m):
    """Depth of the surface over the plane of the lenses, worked from its definition."""
    flat = scene.depth_m + np.tan(scene.tilt_x_rad) * x_m + np.tan(scene.tilt_y_rad) * y_m
    bend = scene.bend_x_per_m * x_m**2 + 2 * scene.bend_xy_per_m * x_m * y_m
    return flat + (bend + scene.bend_y_per_m * y_m**2) / 2


@pytest.mark.parametrize("depth_m", [0.3, 1.9])
def test_depth_is_where_the_ray_meets_the_surface(depth_m):
    scene = d3s.BentPlane(depth_m=depth_m, **BENT)
    pair = d3s.simulate(scene, PROTOTYPE, shape=(120, 900))
    for row, col in ((0, 0), (60, 450), (119, 899), (10, 700)):
        u, v = (col - 449.5) / 6050, (row - 59.5) / 6050
        met = brentq(lambda z, u=u, v=v: depth_at(scene, u * z, v * z) - z, 0.1, 4, xtol=1e-12)
        assert pair.depth_m[row, col] == pytest.approx(met, rel=1e-6)


def test_dots_of_a_raw_frame_lie_where_rays_put_them():
    """The texture of the flat plane moves along Z: a dot at (X, Y) stays there."""
    scene = d3s.BentPlane(depth_m=0.8, **BENT)
    layout = d3s.RawLayout(rows_px=260, cols_px=3840)
    for x_m, y_m in ((-0.08, -0.005), (0.05, 0.006)):
        # The texture's coordinates lie on the plane: along its slopes.
        slopes = np.tan([scene.tilt_x_rad, scene.tilt_y_rad])
        first = np.array([1, 0, slopes[0]]) / np.hypot(1, slopes[0])
        normal = np.array([-slopes[0], -slopes[1], 1])
        second = np.cross(normal / np.linalg.norm(normal), first)
        point = np.array([x_m, y_m, slopes @ (x_m, y_m)])
        dot = _dot(point @ first, point @ second)
        frame = d3s.simulate_raw(scene.replace(texture=dot), PINHOLE, layout=layout)
        for camera, (anchor, mount) in enumerate(
            zip((frame.anchor_left_px, frame.anchor_right_px), frame.mounts, strict=True)
        ):
            across_m = x_m - camera * PROTOTYPE.optics.baseline_m
            slope = 6050 * np.array([across_m, y_m]) / depth_at(scene, x_m, y_m)
            expected = anchor + mount.matrix @ slope
            np.testing.assert_allclose(_centroid(frame.image, expected), expected, atol=0.005)


def _dot(x_m, y_m, sigma_m=0.0003, width_m=0.3):
    """Photo of a bright dot on black, at a place from its middle."""
    cols = 1501  # 0.2 mm a texel, an odd number on either axis: one is on the middle
    across = (np.arange(cols) - cols // 2) * width_m / cols
    down = across[cols // 2 - 150 : cols // 2 + 151]
    light = np.exp(-0.5 * ((down[:, None] - y_m) ** 2 + (across[None] - x_m) ** 2) / sigma_m**2)
    return d3s.Photo(image=light, width_m=width_m)


def _centroid(image, near):
    col, row = np.rint(near).astype(int)
    part = np.s_[row - 15 : row + 16, col - 15 : col + 16]
    y, x = np.mgrid[part]
    light = image[part].astype(float)
    return np.array([np.sum(light * x), np.sum(light * y)]) / light.sum()


def test_views_match_at_the_true_disparity():
    scene = d3s.BentPlane(depth_m=0.6, texture="leaves", **BENT)
    pair = d3s.simulate(scene, PINHOLE, shape=(160, 1000))
    for col in (120, 500, 900):
        part = np.s_[40:120, col - 40 : col + 40]
        y, x = np.mgrid[part]
        there = [y, x - pair.disparity_px[part]]
        moved = map_coordinates(pair.right.astype(float), there, order=5)
        slope = np.gradient((pair.left[part] + moved) / 2, axis=1)
        residual = np.sum(slope * (moved - pair.left[part])) / np.sum(slope**2)
        assert residual == pytest.approx(0, abs=0.005)


def test_plane_without_bend_is_a_tilted_plane():
    tilted = d3s.TiltedPlane(depth_m=0.7, tilt_x_rad=0.1)
    flat = d3s.BentPlane(depth_m=0.7, tilt_x_rad=0.1)
    hardly = flat.replace(bend_x_per_m=1e-9)
    views = [d3s.simulate(one, PROTOTYPE, shape=(100, 140)) for one in (tilted, flat, hardly)]
    np.testing.assert_array_equal(views[0].left, views[1].left)
    np.testing.assert_allclose(views[2].left, views[0].left, atol=0.002)
    np.testing.assert_allclose(views[2].right, views[0].right, atol=0.002)


def test_plane_that_curls_out_of_the_view():
    with pytest.raises(SceneError, match=r"curls out of the view: bend_x_per_m=5,.*Bend it less"):
        d3s.simulate(d3s.BentPlane(depth_m=8.0, bend_x_per_m=5.0), PROTOTYPE)
