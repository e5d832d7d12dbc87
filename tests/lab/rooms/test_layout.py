"""Layouts of rooms, without a renderer."""

import numpy as np
import pytest

from d3s.errors import SceneError
from d3s.lab.rooms.room import FARTHEST_M, NEAREST_M, Cylinder, Quad, Room, layout_of
from d3s.rig import Rig

OPTICS = Rig.paper_prototype().optics
SEEDS = range(12)


def _layout(seed=0, **fields):
    return layout_of(Room(seed=seed, **fields), OPTICS)


def _points(solid):
    """Points on a solid that the view may show."""
    if isinstance(solid, Quad):
        sides = [(a, b) for a in (-1, 1) for b in (-1, 1)]
        return [solid.centre + a * solid.half_a + b * solid.half_b for a, b in sides]
    if isinstance(solid, Cylinder):
        return [solid.base, solid.top]
    return [solid.centre]


def _shell(layout):
    return layout.solids[:3]


@pytest.mark.parametrize("seed", SEEDS)
def test_walls_are_upright_and_at_right_angles(seed):
    normals = [np.cross(quad.half_a, quad.half_b) for quad in _shell(_layout(seed))]
    normals = [normal / np.linalg.norm(normal) for normal in normals]
    np.testing.assert_allclose(
        np.abs(np.array(normals) @ np.array(normals).T), np.eye(3), atol=1e-9
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_camera_is_in_the_room_and_so_is_the_lamp(seed):
    layout = _layout(seed)
    (lamp,) = layout.lamps
    middle = _shell(layout)[1].centre * 0.8
    for quad in _shell(layout):
        normal = np.cross(quad.half_a, quad.half_b)
        inside = normal @ (middle - quad.centre)
        for point in (np.zeros(3), lamp.centre):
            assert normal @ (point - quad.centre) * inside > 0
    shines = np.cross(lamp.half_a, lamp.half_b)
    assert shines @ (middle - lamp.centre) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_things_stand_between_the_nearest_and_the_farthest_depth(seed):
    layout = _layout(seed)
    assert NEAREST_M < _shell(layout)[1].centre[2] < FARTHEST_M
    for solid in layout.solids[3:]:
        for point in _points(solid):
            assert 0.9 * NEAREST_M < point[2] < FARTHEST_M


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"seed": -1}, "seed=-1 must be at least 0"),
        ({"patterns": ("leaf",)}, "must be one of leaves"),
        ({"shape": (400, 7)}, "must be .rows, cols., each from 16 to 4096"),
        ({"samples": 4}, "samples=4 must be at least 16"),
        ({"walls": "glass"}, "walls='glass' must be 'plain', 'textured' or 'mixed'"),
    ],
)
def test_a_wrong_room_is_refused(fields, words):
    with pytest.raises(SceneError, match=words):
        Room(**({"seed": 0} | fields))
