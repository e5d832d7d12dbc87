"""The camera with typical lenses: its part frames, its rig, its pairs and its sweeps."""

import numpy as np
import pytest

import d3s
from d3s.errors import InputError, SceneError
from d3s.lab.evaluate import PlaneSweep, SceneSweep
from d3s.lab.evaluate.cameras import (
    hidden_from_right,
    part_of_sensor,
    raw_frame,
    rig_of_part,
    typical_pair,
    typical_rig,
)

SHAPE = (93, 220)
PLANE = d3s.Plane(depth_m=0.6, texture="gravel")
TINY = PlaneSweep(depths_m=(0.6,), patterns=("brick",), shape=SHAPE, lens="typical")


@pytest.fixture(scope="module")
def pair():
    return typical_pair(PLANE, typical_rig(), SHAPE, noise=0.01, seed=(3, 1))


def test_a_part_of_the_sensor_shows_what_a_larger_part_shows(pair):
    layout = part_of_sensor((SHAPE[0] + 40, SHAPE[1] + 60))
    frame = raw_frame(PLANE, layout=layout)
    left, right = rig_of_part(typical_rig(), layout, SHAPE).split(frame.image)
    # Glare is the mean light of what is rendered, and blur is interpolated between other places.
    for larger, smaller in ((left, pair.left), (right, pair.right)):
        assert np.abs(larger - smaller).mean() < 2e-3
        assert np.abs(larger - smaller).max() < 0.02


def test_a_plane_has_its_depth_and_noise(pair):
    assert pair.left.shape == pair.depth_m.shape == SHAPE
    assert pair.depth_m == pytest.approx(np.full(SHAPE, 0.6))
    assert not pair.occluded.any()
    # Resampling between pixels leaves less than the 1 % of the raw frame.
    assert 0.007 < np.std(pair.noisy[0] - pair.left) < 0.01
    found = d3s.estimate(*pair.noisy, pair.rig)
    assert found.valid.mean() > 0.4
    assert abs(np.nanmedian(found.depth_m) - 0.6) < 0.005


def test_a_scene_is_that_of_perfect_lenses():
    scene = SceneSweep(patterns=("brick",)).scene(0)
    pair = typical_pair(scene, typical_rig(), (150, 240), noise=0.01, seed=(0,))
    perfect = d3s.simulate(scene, d3s.Rig.paper_prototype(), shape=(150, 240))
    same = np.isclose(pair.depth_m, perfect.depth_m, rtol=0.01)
    assert same.mean() > 0.95
    hidden = np.mean(pair.occluded[:, 100:])
    assert hidden == pytest.approx(np.mean(perfect.occluded[:, 100:]), abs=0.03)


def test_a_nearer_surface_hides_what_is_beside_it():
    disparity = np.full((1, 10), 1.0)
    disparity[0, 6:8] = 4.0  # in the right view at columns 2 and 3
    assert np.flatnonzero(hidden_from_right(disparity)[0]).tolist() == [3, 4]


def test_a_surface_does_not_hide_itself():
    assert not hidden_from_right(np.linspace(20, 2, 50)[np.newaxis]).any()


def test_other_rigs_views_and_scenes_are_refused():
    with pytest.raises(InputError, match="'paper prototype' is not calibrated for frames of"):
        typical_pair(PLANE, d3s.Rig.paper_prototype(), SHAPE, noise=0.01, seed=(0,))
    with pytest.raises(InputError, match=r"shape=\(2000, 300\) must be at most"):
        typical_pair(PLANE, typical_rig(), (2000, 300), noise=0.01, seed=(0,))
    scene = d3s.DepthMapScene(image=np.ones((93, 220)), depth_m=np.ones((93, 220)))
    with pytest.raises(SceneError, match="must have layers"):
        typical_pair(scene, typical_rig(), SHAPE, noise=0.01, seed=(0,))


def test_only_the_sides_are_judged_if_asked():
    judged = TINY.replace(beyond_px=60).trial((0, 0), typical_rig()).truth.judged
    assert judged.any()
    assert not judged[:, 51:169].any()
