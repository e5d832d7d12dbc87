"""Folders of simulated files: a recipe gives the same bytes, also after interrupted runs."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

import d3s
from d3s.errors import InputError, OutputError, SceneError
from d3s.files import read_image, read_npz, write_image
from d3s.lab.twin.folder import PAIR_TRUTH, render_folder
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.random_scene import RandomScene
from d3s.lab.twin.recipe import Recipe
from d3s.lab.twin.scenes import (
    DepthMapScene,
    Plane,
    TiltedPlane,
)
from d3s.lab.twin.sensor import Sensor
from d3s.lab.twin.textures import Photo
from d3s.rig import Rig

PROTOTYPE = Rig.paper_prototype()
SHAPE = (64, 96)
NOISY = Sensor(noise=0.01)


def recipe_of(scene=None, **values):
    scene = Plane(depth_m=0.9) if scene is None else scene
    return Recipe(**{"scene": scene, "rig": PROTOTYPE, "shape": SHAPE, "sensor": NOISY, **values})


RANDOM = RandomScene(seed=3, nearest_m=0.8, farthest_m=1.0, things=0)
SERIES = recipe_of(distances_m=(0.8, 0.9, 1.0))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    render_folder(SERIES, folder)
    return contents(folder)


def test_two_processes_write_the_same_bytes(tmp_path):
    recipe = recipe_of(distances_m=(0.8, 0.85, 0.9, 1.0))  # two are rendered before the others
    for workers in (1, 2):
        render_folder(recipe, tmp_path / str(workers), workers=workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_pair_is_what_simulate_gives(tmp_path):
    recipe = recipe_of(images="tiff")
    written = render_folder(recipe, tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in written) == [
        "left.tiff",
        "recipe.toml",
        "right.tiff",
        "truth.npz",
    ]
    assert sorted(written) == sorted(folder.iterdir())
    pair = simulate(recipe.scene, PROTOTYPE, noise=NOISY, shape=SHAPE)
    assert np.array_equal(read_image(folder / "left.tiff"), pair.left)
    assert np.array_equal(read_image(folder / "right.tiff"), pair.right)
    truth = read_npz(folder / "truth.npz")
    assert tuple(truth) == PAIR_TRUTH
    for name in PAIR_TRUTH:
        assert np.array_equal(truth[name], getattr(pair, name))
    assert truth["occluded"].dtype == np.bool_
    assert Recipe.load(folder / "recipe.toml") == recipe.replace(d3s_version=d3s.__version__)


def test_a_series_has_numbers_and_distances(series):
    names = [f"{i:03d}_{name}" for i in range(3) for name in ("left.png", "right.png", "truth.npz")]
    assert sorted(series) == [*names, "distances.csv", "recipe.toml"]
    assert series["distances.csv"] == (
        b"file,distance_m\n000_left.png,0.8\n001_left.png,0.9\n002_left.png,1.0\n"
    )


def test_a_dataset_of_random_scenes_goes_on_with_the_next_seed(tmp_path):
    render_folder(recipe_of(RANDOM, count=2), tmp_path / "two")
    render_folder(recipe_of(RANDOM.replace(seed=4), count=1), tmp_path / "next")
    two, after = contents(tmp_path / "two"), contents(tmp_path / "next")
    assert "distances.csv" not in two
    assert two["001_truth.npz"] == after["000_truth.npz"]
    assert two["000_truth.npz"] != two["001_truth.npz"]


def _photo(name, seed):
    write_image(name, np.random.default_rng(seed).random((64, 96)), overwrite=True)


def test_a_changed_input_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _photo("photo.png", 0)
    recipe = recipe_of(Plane(depth_m=0.9, texture="photo.png"))
    render_folder(recipe, "first")
    stored = Recipe.load("first/recipe.toml")
    digest = hashlib.sha256(Path("photo.png").read_bytes()).hexdigest()
    assert stored.input_sha256 == {"photo.png": digest}
    assert stored.replace(input_sha256=None, d3s_version=None) == recipe
    assert render_folder(recipe, "first") == render_folder(stored, "first") == []
    _photo("photo.png", 1)
    with pytest.raises(SceneError, match=r"photo.png is not what the recipe was made with"):
        render_folder(stored, "again")
    assert not Path("again").exists()
    with pytest.raises(OutputError, match="another recipe"):
        render_folder(recipe, "first")


class Stopped(Exception):
    pass


@pytest.mark.parametrize("after", [0, 2])
def test_a_stopped_run_goes_on_to_the_same_bytes(series, tmp_path, after):
    def stop(done, total):
        if done == after:
            raise Stopped

    with pytest.raises(Stopped):
        render_folder(SERIES, tmp_path, progress=stop)
    assert len(contents(tmp_path)) == 1 + 3 * after
    steps = []
    written = render_folder(SERIES, tmp_path, progress=lambda *step: steps.append(step))
    assert contents(tmp_path) == series
    assert steps == [(done, 3) for done in range(after, 4)]
    assert len(written) == 3 * (3 - after) + 1


@pytest.mark.parametrize("lost", ["001_left.png", "distances.csv"])
def test_what_is_lost_is_made_again(series, tmp_path, lost):
    for name, content in series.items():
        if name != lost:
            (tmp_path / name).write_bytes(content)
    written = render_folder(SERIES, tmp_path)
    assert tmp_path / lost in written
    assert contents(tmp_path) == series
    assert render_folder(SERIES, tmp_path) == []


def test_overwrite_leaves_nothing_of_the_recipe_before(tmp_path):
    render_folder(SERIES, tmp_path / "used")
    (tmp_path / "used" / "notes.txt").write_text("mine")
    other = recipe_of(distances_m=(0.85, 0.95), truth="pfm")
    render_folder(other, tmp_path / "used", overwrite=True)
    render_folder(other, tmp_path / "fresh")
    assert contents(tmp_path / "used") == {**contents(tmp_path / "fresh"), "notes.txt": b"mine"}


def test_files_of_others_are_not_taken_for_frames(tmp_path):
    (tmp_path / "right.png").write_text("mine")
    with pytest.raises(OutputError, match=r"holds right.png and no recipe.toml"):
        render_folder(recipe_of(), tmp_path)
    assert contents(tmp_path) == {"right.png": b"mine"}
    (tmp_path / "recipe.toml").write_text("two eggs")
    with pytest.raises(OutputError, match="is not a recipe that can be read"):
        render_folder(recipe_of(), tmp_path)
    render_folder(recipe_of(), tmp_path, overwrite=True)
    assert Recipe.load(tmp_path / "recipe.toml").replace(d3s_version=None) == recipe_of()


@pytest.mark.parametrize(
    ("scene", "values", "said"),
    [
        (TiltedPlane(depth_m=0.9, tilt_x_rad=1.4999), {"shape": (64, 1802)}, "horizon"),
        (Plane(depth_m=0.9, texture=Photo(image="empty")), {}, "there is no image in it"),
        (DepthMapScene(image="none.png", depth_m="none.pfm"), {}, "no such file"),
        (Plane(depth_m=0.9), {"shape": (60_000, 60_000)}, "pixels"),
    ],
)
def test_what_cannot_be_rendered_leaves_nothing_behind(tmp_path, monkeypatch, scene, values, said):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    with pytest.raises((SceneError, InputError), match=said):
        render_folder(recipe_of(scene, **values), "results")
    assert not os.path.lexists("results")


def test_a_full_disk_is_told_in_words_and_the_run_can_go_on(tmp_path, series, monkeypatch):
    calls = iter([None] * 4)

    def full(descriptor):
        if next(calls, "full") == "full":
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="Free some space on the disk"):
            render_folder(SERIES, tmp_path)
    assert len(contents(tmp_path)) == 4
    render_folder(SERIES, tmp_path)
    assert contents(tmp_path) == series
