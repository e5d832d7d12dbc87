"""`d3s rig import`, and `d3s depth` with the calibration of a stereo camera."""

import json

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

import stereo_cameras as made
from d3s import DepthMap, Rig
from d3s.cli import app
from stereo_cameras import RADTAN, RECTIFIED


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def words(result):
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture
def scene(tmp_path):
    """Folder as Middlebury has it."""
    folder = tmp_path / "Wall"
    folder.mkdir()
    made.write_middlebury(RECTIFIED, folder)
    made.write_pictures(RECTIFIED, folder / "im0.png", folder / "im1.png")
    return folder


@pytest.fixture
def pictures(tmp_path):
    paths = tmp_path / "left.png", tmp_path / "right.png"
    made.write_pictures(RADTAN, *paths)
    return paths


def test_import_writes_a_rig_file_and_says_what_it_found(tmp_path):
    paths = made.write_opencv_mono(RADTAN, tmp_path)
    result = run("rig", "import", *paths, "-o", tmp_path / "rig.toml", "--name", "my camera")
    assert result.exit_code == 0, result.output
    rig = Rig.load(tmp_path / "rig.toml")
    assert rig.replace(name="left") == Rig.from_file(*paths)
    for word in ("my camera", "baseline", "119.026 mm", "240 x 320", "to be rectified"):
        assert word in result.stdout
    again = run("rig", "import", *made.write_kalibr(RADTAN, tmp_path), "-o", tmp_path / "rig.toml")
    assert again.exit_code == 3
    assert "rig.toml" in words(again)


def test_import_asks_about_millimetres(tmp_path):
    paths = made.write_opencv_stereo(RADTAN, tmp_path, unit=0.001)
    result = run("rig", "import", *paths, "-o", tmp_path / "a.toml")
    assert result.exit_code == 0
    assert "the baseline is 119.026 m long. If it is in millimetres" in words(result)
    result = run("rig", "import", *paths, "-o", tmp_path / "b.toml", "--unit", "mm")
    assert result.exit_code == 0
    assert words(result) == ""
    assert Rig.load(tmp_path / "b.toml").optics.baseline_m == pytest.approx(0.119026, rel=1e-4)


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda folder: made.write_kalibr(RADTAN.swapped(), folder), "say that they are swapped"),
        (lambda folder: made.write_ros(RADTAN, folder)[::-1], "the left camera goes first"),
        (lambda folder: made.write_ros(RADTAN, folder)[:1], "a stereo camera has two"),
        (lambda folder: [folder / "none.yaml"], "cannot be read: No such file"),
    ],
)
def test_mistakes_are_told_in_a_sentence(tmp_path, write, told):
    result = run("rig", "import", *write(tmp_path), "-o", tmp_path / "rig.toml")
    assert result.exit_code == 3
    assert told in words(result)
    assert not (tmp_path / "rig.toml").exists()


def test_folder_of_middlebury_in_one_command(scene, tmp_path):
    out = tmp_path / "out"
    result = run("depth", scene, "-o", out, "--format", "npz,png,ply,disparity.pfm,disparity.png")
    assert result.exit_code == 0, result.output
    assert f"the camera is that of {scene / 'calib.txt'}" in words(result)
    found = DepthMap.load(out / "Wall_depth.npz")
    with np.load(out / "Wall_depth.npz") as arrays:
        assert arrays["K"] == pytest.approx(RECTIFIED.left.matrix)
    # ndisp=64, doffs=12.625: the search range of the file
    fb = 300.25 * 0.12
    assert found.options.depth_range_m == pytest.approx((fb / (63 + 12.625), fb / 12.625))
    assert np.nanmedian(found.depth_m) == pytest.approx(made.WALL_M, rel=0.01)
    camera = json.loads((out / "Wall_depth.camera.json").read_text())
    assert camera["intrinsic_matrix"][6:8] == [161.5, 117.25]
    _check_disparities(out, found)


def _check_disparities(out, found):
    disparity = found.disparity_px
    assert np.nanmedian(disparity) == pytest.approx(300.25 * 0.12 / made.WALL_M - 12.625, abs=0.1)
    assert np.nanmedian(found.sigma_px) < 0.3
    raw = (out / "Wall_disparity.pfm").read_bytes().split(b"-1.0\n", 1)[1]
    pfm = np.frombuffer(raw, "<f4").reshape(disparity.shape)[::-1]
    np.testing.assert_array_equal(pfm, np.where(found.valid, disparity, np.inf))
    steps = cv2.imread(str(out / "Wall_disparity.png"), cv2.IMREAD_UNCHANGED)
    assert steps.dtype == np.uint16
    np.testing.assert_array_equal(steps > 0, found.valid)
    assert np.abs(steps / 256 - disparity)[found.valid].max() <= 1 / 512


def test_raw_pictures_are_rectified(pictures, tmp_path):
    rig = tmp_path / "rig.toml"
    assert run("rig", "import", *made.write_oak(RADTAN, tmp_path), "-o", rig).exit_code == 0
    result = run("depth", *pictures, "--rig", rig, "-o", tmp_path / "out", "--format", "npz")
    assert result.exit_code == 0, result.output
    found = DepthMap.load(tmp_path / "out" / "depth.npz")
    assert found.density > 0.5
    assert np.nanmedian(found.depth_m) == pytest.approx(made.WALL_M, rel=0.02)


def test_pictures_of_another_size_are_refused(pictures, tmp_path):
    small = tmp_path / "small_left.png", tmp_path / "small_right.png"
    for path, picture in zip(small, pictures, strict=True):
        image = cv2.imread(str(picture), cv2.IMREAD_UNCHANGED)
        cv2.imwrite(str(path), image[::2, ::2])
    (rig,) = made.write_kalibr(RADTAN, tmp_path)
    result = run("depth", *small, "--rig", rig, "-o", tmp_path / "out")
    assert result.exit_code == 3
    assert "has 120 x 160 px (rows x columns), and the rig is of pictures of 240" in words(result)


def test_ranges_of_depth_and_disparity(scene, tmp_path):
    def range_of(out, *more):
        result = run("depth", scene, "-m", "bm", "-o", tmp_path / out, "--format", "npz", *more)
        assert result.exit_code == 0, result.output
        return DepthMap.load(tmp_path / out / "Wall_depth.npz").options.depth_range_m

    assert range_of("a", "--depth-range", "0.8:inf") == (0.8, 1e4)
    assert range_of("b", "--disparity-range", "-20:40") == pytest.approx(
        (300.25 * 0.12 / (40 + 12.625), 1e4)
    )


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--disparity-range", "0"), "is not a range of disparities"),
        (("--disparity-range", "5:2"), "the smallest, then a larger one"),
        (("--disparity-range=-90:-40",), "reach to infinity only"),
        (("--disparity-range", "0:9", "--depth-range", "1:2"), "leave one of them"),
        (("--depth-range", "inf:2"), "is not a length"),
    ],
)
def test_wrong_ranges(scene, tmp_path, more, told):
    result = run("depth", scene, "-o", tmp_path / "out", *more)
    assert result.exit_code == 2
    assert told in words(result)


def test_long_baseline_is_asked_about(scene, tmp_path):
    views = scene / "im0.png", scene / "im1.png"
    more = ("--focal-length", "300.25px", "--format", "npz", "--method", "bm")
    result = run("depth", *views, "-o", tmp_path / "a", *more, "--baseline", "120")
    assert "--baseline 120 is taken for 120 m. Is it in millimetres? Then say 120mm." in words(
        result
    )
    result = run("depth", *views, "-o", tmp_path / "b", *more, "--baseline", "120m")
    assert "millimetres" not in words(result)
