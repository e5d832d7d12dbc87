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
