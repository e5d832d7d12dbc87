"""Recipes: files round-trip, and all errors are reported at once."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d3s.errors import OutputError, SceneError
from d3s.lab.twin.geometry import Mount
from d3s.lab.twin.lens_errors import LensErrors
from d3s.lab.twin.random_scene import RandomScene
from d3s.lab.twin.raw import RawLayout
from d3s.lab.twin.recipe import Recipe
from d3s.lab.twin.scenes import BentPlane, DepthMapScene, Layer, Layered, Plane, TiltedPlane
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


def reloaded(recipe, folder):
    path = Path(folder) / "recipe.toml"
    recipe.save(path, overwrite=True)
    return Recipe.load(path)


depths = st.floats(0.01, 1e4)
seeds = st.integers(0, 2**63 - 1)
textures = st.one_of(
    st.builds(
        Texture,
        pattern=st.sampled_from(["leaves", "stone", "text"]),
        seed=seeds,
        scale=st.floats(0.002, 900),
        contrast=st.floats(0, 2),
        grey=st.floats(0, 1),
        shading=st.floats(0, 0.5),
    ),
    st.builds(
        Photo,
        image=st.sampled_from(["a.png", 'with space/ü\'s "b".tif', "C:\\photos"]),
        number=seeds,
        width_m=st.none() | st.floats(0.001, 100),
        encoding=st.sampled_from(["srgb", "linear"]),
    ),
)
tilts = st.floats(-1.49, 1.49)
planes = st.builds(Plane, depth_m=depths, texture=textures)
tilted = st.builds(
    TiltedPlane, depth_m=depths, tilt_x_rad=tilts, tilt_y_rad=tilts, texture=textures
)
layers = st.builds(
    Layer, depth_m=depths, tilt_x_rad=tilts, texture=textures, mask=st.sampled_from([None, "m.png"])
)
bends = st.floats(-5, 5)
scenes = st.one_of(
    planes,
    tilted,
    st.builds(BentPlane, depth_m=depths, tilt_x_rad=tilts, bend_x_per_m=bends, bend_y_per_m=bends),
    st.builds(Layered, layers=st.lists(layers, min_size=1, max_size=3).map(tuple)),
    st.builds(DepthMapScene, image=st.just("image.png"), depth_m=st.just("depth.pfm")),
    st.builds(
        RandomScene,
        seed=st.integers(0, 2**62),
        nearest_m=st.floats(0.1, 0.5),
        things=st.none() | st.integers(0, 20),
        photos=st.sampled_from([(), ("photos",), ("a", "b c")]),
        patterns=st.sampled_from([(), ("leaves", "stone")]),
        surfaces=st.sampled_from(["textured", "weak"]),
    ),
)
sensors = st.builds(
    Sensor,
    noise=st.floats(0, 0.99),
    full_well_e=st.none() | st.floats(10, 1e6),
    gain=st.tuples(st.floats(0, 100), st.floats(0, 100)),
    saturates=st.booleans(),
    bits=st.sampled_from([None, 8, 10, 12]),
)
lenses = st.builds(LensErrors, falloff=st.floats(0, 0.5), coma_x_waves=st.floats(-1, 1))
mounts = st.builds(Mount, scale=st.floats(0.5, 2), roll_rad=st.floats(-0.4, 0.4))


@st.composite
def recipes(draw):
    scene = draw(scenes)
    kind = "pair" if isinstance(scene, DepthMapScene) else draw(st.sampled_from(["pair", "raw"]))
    values = {
        "kind": kind,
        "scene": scene,
        "seed": draw(seeds),
        "psf": draw(st.sampled_from(["disk", "gaussian", "diffraction"])),
        "images": draw(st.sampled_from(["png", "tiff"])),
        "sensor": draw(sensors),
        "mount_right": draw(st.none() | mounts),
        "lens_left": draw(st.none() | lenses),
        "input_sha256": draw(st.sampled_from([None, {"a b/ü.png": "0f" * 32}])),
        "rig": PROTOTYPE.replace(name=draw(st.sampled_from(["mine", "[a] 'rig'"]))),
    }
    if isinstance(scene, Plane | TiltedPlane):
        distances = st.lists(depths, min_size=1, max_size=100).map(tuple)
        values["distances_m"] = draw(st.none() | distances)
    if isinstance(scene, RandomScene):
        values["count"] = draw(st.none() | st.integers(1, 10**6))
    if kind == "pair":
        values["shape"] = draw(st.none() | st.tuples(st.integers(1, 5000), st.integers(1, 5000)))
        values["truth"] = draw(st.sampled_from(["npz", "pfm"]))
    else:
        values["layout"] = draw(st.none() | st.builds(RawLayout, rows_px=st.integers(16, 16384)))
    return Recipe(**values)


@settings(max_examples=40)
@given(recipe=recipes())
def test_a_recipe_comes_back_from_its_file(recipe, tmp_path_factory):
    assert reloaded(recipe, tmp_path_factory.getbasetemp()) == recipe


def test_a_file_with_wrong_fields_is_named_with_them(tmp_path):
    path = tmp_path / "recipe.toml"
    text = Recipe(scene=WALL, rig=PROTOTYPE).text()
    path.write_text(text.replace("depth_m = 1.0", "depth_m = 0.0").replace('"disk"', '"round"'))
    with pytest.raises(SceneError, match=r"recipe.toml: 2 problems") as caught:
        Recipe.load(path)
    assert "scene.depth_m=0.0 must be above 0" in str(caught.value)
    assert "psf='round'" in str(caught.value)


def test_a_file_that_is_no_recipe(tmp_path):
    with pytest.raises(SceneError, match="no such file"):
        Recipe.load(tmp_path / "none.toml")
    PROTOTYPE.save(tmp_path / "rig.toml")
    with pytest.raises(SceneError, match="scene is missing: what is in front of the camera"):
        Recipe.load(tmp_path / "rig.toml")


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


def test_another_recipe_is_not_replaced(tmp_path):
    path = tmp_path / "recipe.toml"
    Recipe(scene=WALL, rig=PROTOTYPE).save(path)
    with pytest.raises(OutputError, match="exists and holds something else"):
        Recipe(scene=WALL, rig=PROTOTYPE, seed=1).save(path)


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
