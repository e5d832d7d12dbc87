"""Random scenes: one per seed, within the given depths, and all can be rendered."""

import numpy as np
import pytest

import d3s
from d3s.errors import SceneError
from d3s.files.images import write_image
from twin_tools import PROTOTYPE

SHAPE = (120, 160)
WIDE = d3s.Rig.from_pinhole(focal_length_px=300.0, baseline_m=0.05)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of three photos, which are faster to paint than patterns."""
    folder = tmp_path_factory.mktemp("photos")
    for number in range(3):
        image = np.random.default_rng(number).random((90, 120), dtype=np.float32)
        write_image(folder / f"{number}.png", image)
    return str(folder)


def layers(seed, shape=SHAPE, rig=PROTOTYPE, **options):
    return d3s.RandomScene(seed=seed, **options).layers_for(rig.optics, shape)


@pytest.mark.parametrize(
    "rig", [pytest.param(PROTOTYPE, id="prototype"), pytest.param(WIDE, id="wide")]
)
@pytest.mark.parametrize("things", [None, 1])
def test_no_scene_is_refused(photos, rig, things):
    for seed in range(12):
        scene = d3s.RandomScene(seed=seed, things=things, photos=(photos,))
        pair = d3s.simulate(scene, rig, shape=(90, 110))
        assert np.isfinite(pair.left).all()
        assert np.isfinite(pair.right).all()
        assert 0.3 * (1 - 1e-5) <= pair.depth_m.min() < pair.depth_m.max() <= 1.9 * (1 + 1e-5)


def test_patterns_are_those_asked_for():
    names = [one.texture.pattern for seed in range(20) for one in layers(seed)]
    assert len(set(names)) > 10  # of 14, in about 90 layers
    some = [
        one.texture.pattern for seed in range(20) for one in layers(seed, patterns=["wood", "text"])
    ]
    assert set(some) == {"wood", "text"}


def test_scenes_of_earlier_versions_are_unchanged():
    # Numbers of the version before weak surfaces: reports name scenes by their seeds.
    *others, background = layers(4)
    assert len(others) == 4
    assert background.depth_m == pytest.approx(1.060267447512808, rel=1e-12)
    assert (background.texture.seed, background.texture.contrast) == (
        1697271606,
        pytest.approx(1.0675798923544144, rel=1e-12),
    )


def test_weak_scenes_have_plain_weak_and_textured_surfaces():
    scenes = [layers(seed, surfaces="weak") for seed in range(40)]
    backgrounds = [scene[-1].texture for scene in scenes]
    things = [one.texture for scene in scenes for one in scene[:-1]]
    plain = [one for one in backgrounds if one.contrast == 0]
    assert 5 < len(plain) < 25  # a third of 40
    for one in backgrounds:
        assert one.contrast == 0 or 0.02 <= one.contrast <= 0.2
        assert 0.3 <= one.grey <= 0.7
    assert 0.15 < np.mean([one.contrast <= 0.2 for one in things]) < 0.5  # a third
    assert 0.3 < np.mean([one.shading > 0 for one in backgrounds]) < 0.7
    textured = [one for one in things if one.contrast > 0.2]
    assert all(one.contrast >= 0.6 and one.shading == 0 for one in textured)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "seed is missing: the seed of the whole scene."),
        ({"seed": 1, "nearest_m": 0.0}, "nearest_m=0.0 must be above 0: it is in metres."),
        (
            {"seed": 1, "nearest_m": 1.0, "farthest_m": 1.05},
            "farthest_m=1.05 must be at least 1.1 times nearest_m=1.",
        ),
        ({"seed": 1, "patterns": "leaves"}, "patterns='leaves' must be a list."),
        ({"seed": 1, "thing": 3}, "thing is unknown. Did you mean things?"),
        ({"seed": 1, "surfaces": "flat"}, "surfaces='flat' must be 'textured', 'weak' or 'fine'."),
    ],
)
def test_wrong_scene_says_what_is_wrong(values, words):
    with pytest.raises(SceneError) as caught:
        d3s.RandomScene(**values)
    assert str(caught.value) == words


def test_frame_too_small_for_a_scene_is_refused():
    with pytest.raises(SceneError, match=r"^shape=\(2, 2\) is too small for a random scene"):
        d3s.simulate(d3s.RandomScene(seed=1), PROTOTYPE, shape=(2, 2))


def test_fine_scenes_have_fine_objects_before_a_plain_wall():
    outlines = []
    for seed in range(6):
        *things, wall = layers(seed, surfaces="fine", things=3)
        assert wall.texture.contrast <= 0.1
        for mask in (thing.mask for thing in things if thing.mask.sum() > 1000):
            steps = sum(np.abs(np.diff(mask, axis=axis)).sum() for axis in (0, 1))
            outlines.append(steps / np.sqrt(mask.sum()))
    assert np.median(outlines) > 5.5  # a disk has 4.5
