"""`d3s convert`: what is written, what is said to be lost, and what is refused."""

import json

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from d3s.cli import app
from d3s.files import DepthImage, read_depth, write_depth

SHAPE = (10, 16)
DEPTH = np.linspace(0.5, 2, 160, dtype=np.float32).reshape(SHAPE)
DEPTH[3, 4] = np.nan


def run(*args: object):
    return CliRunner().invoke(app, ["convert", *map(str, args)])


@pytest.fixture
def result(tmp_path):
    path = tmp_path / "scene.npz"
    light = np.full(SHAPE, 0.5, np.float32)
    d3s.DepthMap(
        depth_m=DEPTH,
        sigma_m=light,
        confidence=light,
        flags=np.isnan(DEPTH).astype(np.uint16),
        rig=d3s.Rig.paper_prototype(),
        method="joint",
        options=d3s.JointOptions(),
        intensity=light,
    ).save(path)
    return path


def test_one_to_many_says_what_each_lacks(tmp_path, result):
    names = ("a.png", "a.tiff", "a.pfm", "a.npy", "a.exr", "a.ply", "a.csv", "a_preview.png")
    done = run(result, *(tmp_path / name for name in names))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [name in line for name, line in zip(names, lines, strict=True)] == [True] * 8
    assert "a.camera.json" in lines[0]
    assert "without sigma_m, confidence, intensity, flags, rig and options" in lines[0]
    assert "finer than 1 mm" in lines[0]
    assert "without flags, rig and options)" in lines[4]
    assert "pixels without depth" in lines[5]
    for name in names[1:5]:
        np.testing.assert_array_equal(read_depth(tmp_path / name).depth_m, DEPTH)
    assert len(read_depth(tmp_path / "a.ply").z_m) == 159
    picture = cv2.imread(str(tmp_path / "a_preview.png"))
    assert picture.shape[2] == 3
    assert picture.shape[1] > 800


def test_unit_of_the_png(tmp_path, result):
    assert run(result, tmp_path / "a.png", "--unit", "0.1mm").exit_code == 0
    levels = cv2.imread(str(tmp_path / "a.png"), cv2.IMREAD_UNCHANGED)
    assert levels[0, 0] == 5000
    assert levels[3, 4] == 0
    assert run(tmp_path / "a.png", tmp_path / "b.pfm").exit_code == 0
    np.testing.assert_allclose(read_depth(tmp_path / "b.pfm").depth_m, DEPTH, atol=5.1e-5)


def test_png_of_others_with_unit_and_rig(tmp_path):
    path, out = tmp_path / "a.png", tmp_path / "a.ply"
    cv2.imwrite(str(path), np.full((3, 3), 1500, np.uint16))
    done = run(path, out)
    assert done.exit_code == 3
    assert "--input-unit 1mm" in done.stderr
    done = run(path, out, "--input-unit", "1mm")
    assert done.exit_code == 3
    assert "focal length of the camera is not known" in done.stderr
    d3s.Rig.paper_prototype().save(tmp_path / "rig.toml")
    done = run(path, out, "--input-unit", "1mm", "--rig", tmp_path / "rig.toml")
    assert done.exit_code == 0, done.output
    points = read_depth(out)
    np.testing.assert_allclose(points.z_m, 1.5)
    np.testing.assert_allclose(points.x_m[:3], np.array([-1, 0, 1]) * 1.5 / 6050, rtol=1e-6)


def test_rig_of_another_camera_is_refused(tmp_path, result):
    d3s.Rig.from_pinhole(focal_length_px=500, baseline_m=0.1).save(tmp_path / "rig.toml")
    done = run(result, tmp_path / "a.ply", "--rig", tmp_path / "rig.toml")
    assert done.exit_code == 3
    assert "knows its camera, of focal length 6050 px, and the rig has 500 px" in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.npz", "only an estimate has them"),
        ("a.xyz", "depth is written as .png, .tiff"),
        ("a", "ends in nothing"),
    ],
)
def test_nothing_is_written_when_one_of_them_cannot_be(tmp_path, result, name, words):
    done = run(result, tmp_path / "good.ply", tmp_path / name)
    assert done.exit_code == 3
    assert words in done.stderr
    assert not (tmp_path / "good.ply").exists()


def test_files_are_replaced_only_with_force(tmp_path, result):
    (tmp_path / "a.tiff").write_text("of mine")
    done = run(result, tmp_path / "a.tiff")
    assert done.exit_code == 3
    assert "--force" in done.stderr
    assert run(result, tmp_path / "a.tiff", "--force").exit_code == 0
    assert read_depth(tmp_path / "a.tiff").depth_m.shape == SHAPE


def test_a_batch_does_the_good_ones_and_names_the_others(tmp_path, result):
    bad = tmp_path / "bad.npz"
    bad.write_bytes(result.read_bytes()[:500])
    write_depth(tmp_path / "two.tiff", DepthImage(depth_m=DEPTH))
    out = tmp_path / "out"
    files = (result, bad, tmp_path / "two.tiff", tmp_path / "none.png")
    done = run(*files, "--to", "pfm", "--to", "_preview.png", "--output", out)
    assert done.exit_code == 4
    assert sorted(path.name for path in out.iterdir()) == [
        "scene.camera.json",
        "scene.pfm",
        "scene_preview.png",
        "two.pfm",
        "two_preview.png",
    ]
    assert "bad.npz" in done.stderr
    assert "none.png: there is no such file" in done.stderr
    assert run(bad, "--to", ".pfm").exit_code == 3


def test_json_lists_all(tmp_path, result):
    done = run(result, tmp_path / "none.npz", "--to", ".png", "--json")
    told = json.loads(done.stdout)
    (written,) = told["written"]
    assert written["from"] == str(result)
    assert written["files"] == [str(tmp_path / "scene.png"), str(tmp_path / "scene.camera.json")]
    assert "sigma_m" in written["without"]
    assert "none.npz" in told["refused"][0]
    assert done.exit_code == 4
    assert run(result, tmp_path / "a.pfm", "--quiet").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.png", "--unit", "0mm"], "--unit: unit_m=0.0 must be from 1e-06 to 1"),
        (["a.ply", "--unit", "1mm"], "--unit: it is for a PNG, and none is written"),
        (["a.tiff", "--input-unit", "-1mm"], "--input-unit: unit_m=-0.001 must be from"),
        (["--to", "../x.ply", "-o", "new"], "--to: '../x.ply' is a path. Give a suffix"),
    ],
)
def test_wrong_use_is_told_before_anything_is_made(tmp_path, monkeypatch, result, arguments, words):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = run(result, *arguments)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_read_is_not_replaced(tmp_path):
    path = tmp_path / "a.png"
    write_depth(path, DepthImage(depth_m=DEPTH))
    before = path.read_bytes()
    done = run(path, "--to", "png", "--unit", "0.1mm", "--force")
    assert done.exit_code == 3
    assert "a.png is the file that is read. Name another" in done.stderr
    assert path.read_bytes() == before
