"""Recipes: files round-trip, and all errors are reported at once."""

import numpy as np
import pytest

from d3s.errors import SceneError
from d3s.lab.twin.geometry import Mount
from d3s.lab.twin.lens_errors import LensErrors
from d3s.lab.twin.random_scene import RandomScene
from d3s.lab.twin.raw import RawLayout
from d3s.lab.twin.recipe import Recipe
from d3s.lab.twin.scenes import (
    BentPlane,
    DepthMapScene,
    Layer,
    Layered,
    Plane,
    TiltedPlane,
)
from d3s.lab.twin.sensor import Sensor
from d3s.lab.twin.sequence import even_distances_m, typed_distances_m
from d3s.lab.twin.textures import Photo, Texture
from d3s.rig import Rig

PROTOTYPE = Rig.paper_prototype()
WALL = Plane(depth_m=1.0)


def problems(**values):
    with pytest.raises(SceneError) as caught:
        Recipe(**values)
    return caught.value.problems


PHOTO = Photo(image='with space/ü\'s "b".tif', number=2**63 - 1, encoding="linear")
RECIPES = {
    "plane": {"scene": Plane(depth_m=0.1, texture=PHOTO), "distances_m": (0.29, 1e4), "seed": 7},
    "tilted": {
        "scene": TiltedPlane(depth_m=1.0, tilt_x_rad=-1.49, texture=Texture(seed=2**63 - 1)),
        "kind": "raw",
        "layout": RawLayout(rows_px=16),
        "mount_right": Mount(scale=0.97, roll_rad=-0.05),
        "lens_left": LensErrors(falloff=0.3),
        "rig": PROTOTYPE.replace(name="[a] 'rig'"),
    },
    "bent": {"scene": BentPlane(depth_m=1.0, bend_y_per_m=-5), "psf": "diffraction"},
    "layered": {
        "scene": Layered(layers=[Layer(depth_m=0.5, mask="m.png"), Layer(depth_m=1 / 3)]),
        "sensor": Sensor(full_well_e=1e4, gain=(0.1, 1.1), saturates=True, bits=10),
        "truth": "pfm",
        "images": "tiff",
    },
    "depth map": {
        "scene": DepthMapScene(image="image.png", depth_m="C:\\depth.pfm"),
        "input_sha256": {"a b/ü.png": "0f" * 32},
    },
    "random": {
        "scene": RandomScene(seed=2**62, things=0, photos=("a", "b c"), surfaces="weak"),
        "count": 10**6,
        "shape": (5, 7),
    },
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_comes_back_from_its_file(name, tmp_path):
    recipe = Recipe(**{"rig": PROTOTYPE, **RECIPES[name]})
    recipe.save(tmp_path / "recipe.toml")
    assert Recipe.load(tmp_path / "recipe.toml") == recipe


def test_a_file_with_wrong_fields_is_named_with_them(tmp_path):
    path = tmp_path / "recipe.toml"
    text = Recipe(scene=WALL, rig=PROTOTYPE).text()
    path.write_text(text.replace("depth_m = 1.0", "depth_m = 0.0").replace('"disk"', '"round"'))
    with pytest.raises(SceneError, match=r"recipe.toml: 2 problems") as caught:
        Recipe.load(path)
    assert "scene.depth_m=0.0 must be above 0" in str(caught.value)
    assert "psf='round'" in str(caught.value)


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        ({"depth_m": 1.0}, "scene.kind is missing: one of plane, tilted"),
        ({"kind": "wall"}, "scene.kind='wall' must be one of plane"),
        ({"kind": "layered", "layers": [{"depth_m": -1}]}, "scene.layers[0].depth_m=-1"),
        (Layer(depth_m=1.0), "must be a scene: Plane"),
    ],
)
def test_scenes_that_are_none(scene, said):
    (line,) = problems(scene=scene, rig=PROTOTYPE)
    assert said in line


@pytest.mark.parametrize(
    ("scene", "field"),
    [
        (Plane(depth_m=1.0, texture=np.eye(8)), "scene.texture.image"),
        (
            Layered(layers=(Layer(depth_m=1.0, mask=np.eye(8)), Layer(depth_m=2.0))),
            "scene.layers[0].mask",
        ),
        (DepthMapScene(image=np.eye(8), depth_m="depth.pfm"), "scene.image"),
    ],
)
def test_arrays_cannot_be_stored(scene, field):
    (line,) = problems(scene=scene, rig=PROTOTYPE)
    assert line.startswith(f"{field} is an array of shape (8, 8), and a recipe names files")


@pytest.mark.parametrize("name", ["two\nlines.png", "\udcff.png", ""])
def test_names_that_a_file_cannot_hold(name):
    (line,) = problems(scene=Plane(depth_m=1.0, texture=Photo(image=name)), rig=PROTOTYPE)
    assert "must be one line of text" in line


def test_a_recipe_that_could_not_be_read_again_is_not_written(tmp_path):
    scene = Plane(depth_m=1.0, texture=Photo(image="x" * 2000))
    with pytest.raises(SceneError, match="too long for a recipe"):
        Recipe(scene=scene, rig=PROTOTYPE).save(tmp_path / "recipe.toml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"count": 2}, "count=2 needs a random scene"),
        ({"scene": RandomScene(seed=0), "distances_m": (1.0,)}, "distances_m=(1.0,) needs a plane"),
        ({"distances_m": ()}, "distances_m=() must have at least 1 value"),
        ({"input_sha256": {"a.png": "0F" * 32}}, "must be 64 lower-case hexadecimal digits"),
        ({"kind": "raw", "shape": (64, 96)}, "shape=(64, 96) belongs to a pair"),
        ({"kind": "raw", "truth": "pfm"}, "truth='pfm' cannot hold the truth of a raw frame"),
        ({"layout": RawLayout()}, "belong to a raw frame"),
        (
            {"kind": "raw", "scene": DepthMapScene(image="a.png", depth_m="b.pfm")},
            "scene.kind='depth_map' belongs to a pair",
        ),
        ({"scene": RandomScene(seed=2**63 - 1), "count": 2}, "is too many from scene.seed="),
    ],
)
def test_fields_that_do_not_go_together(values, said):
    (line,) = problems(**{"scene": WALL, "rig": PROTOTYPE, **values})
    assert said in line


def test_even_distances():
    assert even_distances_m(1.0, 0.5, 3) == (1.0, 0.75, 0.5)
    assert even_distances_m(1.0, 1.0, 1) == (1.0,)
    with pytest.raises(SceneError, match=r"count=1 leaves out one of 0.5 m and 1 m"):
        even_distances_m(0.5, 1.0, 1)
    for count in (0, -1, 10_001, 2.0, True):
        with pytest.raises(SceneError, match="must be a whole number from 1 to 10000"):
            even_distances_m(0.5, 1.0, count)


def test_typed_distances_have_errors_of_their_own():
    true = np.linspace(0.3, 1.9, 4000)
    typed = typed_distances_m(true.tolist(), 0.001, seed=3)
    errors = np.subtract(typed, true)
    assert errors.std() == pytest.approx(0.001, rel=0.05)
    assert errors.mean() == pytest.approx(0, abs=8e-5)  # five sigma
    assert typed == typed_distances_m(true.tolist(), 0.001, seed=3)
    assert typed != typed_distances_m(true.tolist(), 0.001, seed=4)
    assert typed_distances_m((0.29, 1.21), 0.0) == (0.29, 1.21)
    with pytest.raises(SceneError, match=r"sigma_m=1 must be .* nearest distance, 0\.5 m"):
        typed_distances_m((0.5, 2.0), 1.0)


def test_errors_of_typed_distances_need_distances():
    said = problems(scene=WALL, rig=PROTOTYPE, distance_sigma_m=0.001)
    assert said == (
        "distance_sigma_m=0.001 needs distances_m: only a series of planes has distances.csv.",
    )
    (said,) = problems(scene=WALL, rig=PROTOTYPE, distances_m=(0.5,), distance_sigma_m=0.1)
    assert "must be from 0 to below a tenth of the nearest distance, 0.5 m" in said
    series = Recipe(scene=WALL, rig=PROTOTYPE, distances_m=(0.5, 1.0), distance_sigma_m=0.001)
    assert series.distances_m == (0.5, 1.0)
    assert series.typed_distances_m == typed_distances_m((0.5, 1.0), 0.001, 0)
    assert series.scene_of(1).depth_m == 1.0
