"""`d3s simulate`, as a user runs it."""

import os
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from d3s.cli import app
from d3s.cli.values import length_m
from d3s.files import read_image, read_npz, write_image
from d3s.lab.twin.recipe import Recipe
from d3s.lab.twin.sequence import PROTOCOLS
from d3s.rig import Rig

SMALL = ("--shape", "64x96")
PLANE = ("--depth", "0.9", *SMALL)
RANDOM = ("--scene", "random", "--depth-range", "80cm:1m", "--things", "0", *SMALL)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")  # so that messages are not wrapped


def run(*arguments, output="out"):
    return CliRunner().invoke(app, ["simulate", *map(str, arguments), "--output", output])


def done(*arguments, output="out"):
    result = run(*arguments, output=output)
    assert result.exit_code == 0, result.stderr
    return result


def recipe(folder="out"):
    return Recipe.load(Path(folder) / "recipe.toml")


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_a_pair_and_the_same_again():
    result = done("--depth", "90cm", *SMALL, "--noise", "0.01", output="a b")
    assert "Wrote 4 files to a b: left.png, recipe.toml, right.png, truth.npz" in result.stdout
    assert "d3s simulate --recipe 'a b/recipe.toml'" in result.stdout
    assert sorted(contents("a b")) == ["left.png", "recipe.toml", "right.png", "truth.npz"]
    assert read_npz("a b/truth.npz")["depth_m"] == pytest.approx(0.9)
    done("--recipe", "a b/recipe.toml")
    assert contents("out") == contents("a b")


def test_every_option_of_a_plane_is_in_the_recipe():
    Rig.paper_prototype().replace(name="mine").save("rig.toml")
    options = (
        "--depth 900mm --texture stone --texture-seed 3 --texture-scale 0.5 --contrast 0.8 "
        "--grey 0.4 --shading 0.05 "
        "--noise 0.01 --full-well 10000 --read-noise 2 --gain-right 0.9 --offset-right 0.02 "
        "--vignetting 0.2 --gain-pattern 0.01 --offset-pattern 0.001 --bits 10 --seed 7 "
        "--column-noise 0.002 --row-noise 0.003 --hot-pixels 0.0001 "
        "--psf diffraction --wavelength 600nm --images tiff --truth pfm --rig rig.toml"
    )
    done(*SMALL, *options.split())
    made = recipe()
    scene, sensor = made.scene, made.sensor
    assert (made.kind, made.shape, made.seed, made.rig.name) == ("pair", (64, 96), 7, "mine")
    assert (made.psf, made.wavelength_m) == ("diffraction", 6e-7)
    assert (made.images, made.truth) == ("tiff", "pfm")
    assert scene.depth_m == 0.9
    texture = scene.texture
    assert (texture.pattern, texture.seed, texture.scale) == ("stone", 3, 0.5)
    assert (texture.contrast, texture.grey, texture.shading) == (0.8, 0.4, 0.05)
    assert (sensor.noise, sensor.full_well_e, sensor.read_noise_e) == (0.01, 1e4, 2.0)
    assert (sensor.gain, sensor.offset) == ((1.0, 0.9), (0.0, 0.02))
    assert (sensor.vignetting, sensor.gain_pattern) == (0.2, 0.01)
    assert (sensor.offset_pattern, sensor.bits) == (0.001, 10)
    assert (sensor.column_noise, sensor.row_noise, sensor.hot_pixels) == (0.002, 0.003, 0.0001)
    assert Path("out/depth_m.pfm").exists()


def test_lenses_are_typical_or_from_a_file():
    from d3s.lab.twin.lens_errors import LensErrors, LensFile, typical_lenses

    done(*PLANE, "--lens", "typical", "--lens-seed", "5")
    assert recipe().lenses == typical_lenses(5)
    lenses = LensFile(left=LensErrors(falloff=0.1))
    lenses.save("lenses.toml")
    done(*PLANE, "--lens", "lenses.toml", "--force")
    assert recipe().lenses == lenses.lenses
    before = Path("out/left.png").read_bytes()
    done("--recipe", "out/recipe.toml", output="again")
    assert Path("again/left.png").read_bytes() == before
    done(*PLANE, "--lens", "perfect", "--force")
    assert "lens" not in Path("out/recipe.toml").read_text()


def test_a_tilted_plane_in_degrees():
    done("--scene", "tilted", *PLANE, "--tilt-x", "30", "--tilt-y", "-10")
    scene = recipe().scene
    assert scene.tilt_x_rad == pytest.approx(np.pi / 6)
    assert scene.tilt_y_rad == pytest.approx(-np.pi / 18)
    depth = read_npz("out/truth.npz")["depth_m"]
    assert depth[32, -1] > depth[32, 0]
    done("--scene", "tilted", *PLANE, "--tilt-x", "0", output="level")  # a tilt of zero is a tilt


def test_a_bent_board_with_distances_that_are_a_little_wrong():
    options = "--scene bent --bend-x 0.1 --bend-y -0.2 --tilt-x 1 --distances 0.5:0.6:2"
    done("--shape", "64x96", *options.split(), "--distance-error", "1mm", "--seed", "5")
    made = recipe()
    assert (made.scene.bend_x_per_m, made.scene.bend_xy_per_m) == (0.1, 0.0)
    assert made.scene.bend_y_per_m == -0.2
    assert made.distances_m == (0.5, 0.6)
    rows = Path("out/distances.csv").read_text().splitlines()[1:]
    typed = [float(row.split(",")[1]) for row in rows]
    assert typed == list(made.typed_distances_m)
    assert 0 < abs(typed[0] - 0.5) < 0.005
    depth = read_npz("out/000_truth.npz")["depth_m"]
    assert depth[32, 48] == pytest.approx(0.5, abs=1e-5)


def test_a_picture_as_texture_by_its_full_name(tmp_path):
    Path("photos").mkdir()
    for name in ("a", "b"):
        write_image(f"photos/{name}.png", np.random.default_rng(0).random((32, 48)))
    done(*PLANE, "--texture", "photos/a.png", "--texture-width", "5mm", output="file")
    texture = recipe("file").scene.texture
    assert (texture.image, texture.width_m) == (str(tmp_path / "photos/a.png"), 0.005)
    done(*PLANE, "--texture", "photos", "--texture-seed", "1", output="folder")
    assert recipe("folder").scene.texture.file == str(tmp_path / "photos/b.png")
    done(*RANDOM, "--photos", "photos", output="random")
    assert recipe("random").scene.photos == (str(tmp_path / "photos"),)


def test_a_depth_map():
    write_image("image.tiff", np.random.default_rng(0).random((64, 96)))
    write_image("depth.pfm", np.full((64, 96), 0.9))
    done("--scene", "depth-map", "--image", "image.tiff", "--depth-map", "depth.pfm")
    assert read_npz("out/truth.npz")["depth_m"] == pytest.approx(0.9)


def test_random_scenes():
    result = done(*RANDOM, "--count", "2", "--seed", "5", "--surfaces", "weak")
    made = recipe()
    assert (made.count, made.seed, made.scene.seed) == (2, 5, 5)
    assert made.scene.surfaces == "weak"
    assert (made.scene.nearest_m, made.scene.farthest_m, made.scene.things) == (0.8, 1.0, 0)
    assert "Making 2 frames." in result.stderr
    assert {"000_left.png", "001_truth.npz"} <= set(contents("out"))


def test_a_sequence_and_how_it_goes_on():
    options = (*SMALL, "--distances", "80cm:1.0:3", "--noise", "0.01")
    result = done(*options)
    assert "Wrote 11 files to out: 000_left.png, 000_right.png, ..., distances.csv" in result.stdout
    assert recipe().distances_m == (0.8, 0.888888889, 1.0)  # even in 1/distance, as blur is
    before = contents("out")
    Path("out/001_right.png").unlink()
    Path("out/distances.csv").unlink()
    done(*options)
    assert contents("out") == before
    assert "Nothing to do: all files are in out already." in done(*options).stdout


def test_the_protocols_of_the_paper(monkeypatch):
    kept = []
    monkeypatch.setattr(
        "d3s.lab.twin.folder.render_folder", lambda made, *_, **__: kept.append(made)
    )
    for name in ("calibration", "evaluation"):
        run("--distances", name, "--raw")
        assert kept[-1].kind == "raw"
        assert kept[-1].distances_m == PROTOCOLS[name]


def test_a_raw_frame_of_a_colour_sensor():
    rig = Rig.paper_prototype()
    rig.replace(optics=rig.optics.replace(baseline_m=0.4e-3)).save("small.toml")  # 200 px
    size = (
        "--raw",
        "--depth",
        "1.0",
        "--texture",
        "noise",
        "--contrast",
        "0.2",
        "--rig",
        "small.toml",
    )
    colours = ("--bayer", "grbg", "--channel-shares", "0.5,1,0.25", "--colour", "0.5")
    done(*size, *colours, "--shape", "240x400")
    assert sorted(contents("out")) == ["raw.png", "recipe.toml", "truth.npz"]
    frame = read_image("out/raw.png")
    assert frame.shape == (240, 400)
    frame = frame[90:150, 70:130]
    red, green, blue = frame[::2, 1::2].mean(), frame[::2, ::2].mean(), frame[1::2, ::2].mean()
    assert red / green == pytest.approx(0.5, abs=0.1)
    assert blue / green == pytest.approx(0.25, abs=0.06)
    assert recipe().sensor.bayer == "GRBG"
    assert recipe().layout.field_radius_px == pytest.approx(1060 * 400 / 3840)
    assert "lenses are 1920 px apart" in run("--raw", "--depth", "1", *SMALL, output="b").stderr


def test_another_recipe_is_replaced_only_by_force():
    done(*PLANE)
    before = contents("out")
    result = run(*PLANE, "--seed", "1", "--noise", "0.1")
    assert result.exit_code == 3
    assert "out holds the files of another recipe" in result.stderr
    assert "--force" in result.stderr
    assert contents("out") == before
    done(*PLANE, "--seed", "1", "--noise", "0.1", "--force")
    assert recipe().seed == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "--scene plane needs --depth, or --distances"),
        ("--scene tilted --depth 1 --tilt-x 90", "--tilt-x: it must be from -85 to 85 degrees"),
        ("--depth 1 --count 3", "--count is for --scene random, and not for --scene plane"),
        ("--scene depth-map --image a.png", "needs --image and --depth-map"),
        ("--depth 1 --texture-width 1", "--texture-width is for an image"),
        ("--recipe r.toml --depth 1", "--depth cannot be given with it"),
        ("--depth 3ft", "'3ft' is not a length. Write metres, or a number with its unit"),
        ("--depth 1e999", "'1e999' is too large for a length"),
        ("--depth 1 --shape 64", "'64' is not a shape. Write ROWSxCOLS"),
        ("--distances 1:2", "'1:2' is no series. Write START:STOP:COUNT"),
        ("--depth 1 --channel-shares 1,1,1", "--channel-shares is for --bayer"),
    ],
)
def test_wrong_use(options, said):
    write_image("a.png", np.eye(8))
    result = run(*options.split())
    assert result.exit_code == 2
    assert said in result.stderr
    assert not os.path.lexists("out")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--depth 0", "scene.depth_m=0.0 must be above 0: it is in metres"),
        ("--depth 0.9 --noise 5", "Did you pass grey levels?"),
        ("--depth 0.9 --read-noise 5", "needs full_well_e"),
        ("--depth 0.9 --texture leavs", "Did you mean leaves?"),
        ("--depth 0.9 --texture grey.png", "has one colour"),
        ("--depth 0.9 --texture rig.toml", "does not begin like an image"),
        ("--depth 1 --channel-shares 1,1 --raw --bayer RGGB", "channel_shares[2] is missing"),
        ("--depth 0.05", "is too small for the blur"),
        ("--distances 0.9:1.0:0", "count=0 must be a whole number from 1"),
        ("--scene random --depth-range 2:1", "scene.farthest_m=1.0 must be at least 1.1 times"),
        ("--depth 0.9 --rig none.toml", "none.toml: there is no such file"),
    ],
)
def test_bad_input_is_told_in_words_and_leaves_nothing(options, said):
    write_image("grey.png", np.full((8, 8), 0.5))
    Path("cut.png").write_bytes(b"\x89PNG\r\n\x1a\n cut")
    Path("rig.toml").write_text("no picture")
    result = run(*SMALL, *options.split())
    assert result.exit_code == 3, result.output
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert not os.path.lexists("out")


def test_recipes_that_cannot_be_read():
    assert "there is no such file" in run("--recipe", "none.toml").stderr
    done(*PLANE)
    text = Path("out/recipe.toml").read_text().replace("depth_m = 0.9", "depth_m = -0.9")
    Path("bad.toml").write_text(text)
    result = run("--recipe", "bad.toml", output="other")
    assert result.exit_code == 3
    assert "bad.toml: scene.depth_m=-0.9 must be above 0" in result.stderr
    assert not Path("other").exists()


def test_a_recipe_runs_from_anywhere(tmp_path, monkeypatch):
    write_image("a.png", np.random.default_rng(0).random((32, 48)))
    done(*PLANE, "--texture", "a.png")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    done("--recipe", "../out/recipe.toml", output="again")
    assert contents("again") == contents("../out")


@pytest.mark.parametrize("text", ["", "m", "1ft", "1 m m", "0x10", "nan", "inf", "1,5", "1_0", "١"])
def test_what_is_no_length(text):
    with pytest.raises(typer.BadParameter, match="300mm") as caught:
        length_m(text)
    assert repr(text) in str(caught.value)
