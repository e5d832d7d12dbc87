"""Renders by Mitsuba, small ones; skipped where it is not installed."""

import numpy as np
import pytest

pytest.importorskip("mitsuba")

from d3s.lab.rooms.mitsuba import RenderScene, render_layout, render_room, thin_lens_camera
from d3s.lab.rooms.room import Layout, Paint, Quad, Room
from d3s.lab.twin.geometry import perfect_views
from d3s.rig import Rig

pytestmark = pytest.mark.slow

RIG = Rig.paper_prototype()
SHAPE = (32, 48)


def _wall(depth_m, first_x_m=-1.0):
    """Wall that glows evenly, from some X to the right."""
    centre, half = np.array([first_x_m + 2.0, 0.0, depth_m]), np.array([2.0, 0.0, 0.0])
    return Quad(centre, half, np.array([0.0, 1.0, 0.0]), Paint(0.5, finish="glowing"))


def _with_dark_wall(wall):
    """Layout of a wall before a black one that fills the view."""
    far = np.array([0.0, 0.0, 5.0]), np.array([9.0, 0.0, 0.0]), np.array([0.0, 9.0, 0.0])
    return Layout([wall, Quad(*far, Paint(0.0))], [])


def _edge_column(image):
    """Column at which an image rises from 0 to 0.5, from the light in each row."""
    return image.shape[1] - 0.5 - image.sum(axis=1).mean() / 0.5


def test_an_even_wall_is_even():
    pair = render_layout(Layout([_wall(0.7)], []), RIG, SHAPE, 16)
    np.testing.assert_allclose(pair.left, 0.5, rtol=1e-5)
    np.testing.assert_allclose(pair.right, 0.5, rtol=1e-5)
    np.testing.assert_allclose(pair.depth_m, 0.7, rtol=1e-6)
    assert not pair.occluded[:, 40:].any()


@pytest.mark.parametrize("offset_px", [0.0, 20.0, 20.37])
def test_an_edge_lies_where_the_rig_puts_it(offset_px):
    rig = RIG.replace(optics=RIG.optics.replace(disparity_offset_px=-offset_px))
    pair = render_layout(_with_dark_wall(_wall(1.0, first_x_m=5 / 6050)), rig, SHAPE, 64)
    assert _edge_column(pair.left) == pytest.approx(23.5 + 5, abs=0.02)
    expected = 23.5 + 5 - rig.optics.disparity_px(1.0)
    assert _edge_column(pair.right) == pytest.approx(expected, abs=0.02)


def test_light_is_blurred_as_the_rig_has_it():
    depth_m = 0.5
    radius_px = float(RIG.optics.blur_radius_px(depth_m, 0))
    view = perfect_views(RIG.optics, SHAPE)[0]
    scene = RenderScene(_with_dark_wall(_wall(depth_m, first_x_m=0.0)))
    light = scene.light(thin_lens_camera(view, SHAPE, 0), 256, seed=0).mean(axis=0) / 0.5
    slope = np.diff(light, prepend=0.0)
    x = np.arange(slope.size) / 4
    variance = np.sum(slope * (x - np.sum(slope * x)) ** 2)
    assert np.sqrt(variance) == pytest.approx(radius_px / 2, rel=0.03)  # a disk has half its radius


def test_a_small_room():
    seen = []
    room = Room(seed=1, shape=SHAPE, samples=16)
    pair = render_room(room, RIG, lambda done, total: seen.append((done, total)))
    assert pair.left.shape == pair.right.shape == pair.depth_m.shape == SHAPE
    assert 0.3 < pair.depth_m.min() < pair.depth_m.max() < 2.0
    assert np.percentile(pair.left, 99) == pytest.approx(0.9, abs=0.01)
    assert np.isfinite(pair.right).all()
    assert seen[-1] == (100, 100)
    assert seen == sorted(seen)
