"""Every command and Python block of the guides, in order in a clean folder, as a newcomer does.

What a reader brings (a camera, captures, pictures) is made by `BROUGHT`; what takes minutes or
needs hardware has a stand-in. Everything else has to be written by an earlier line of the page.
"""

import glob
import importlib
import json
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner, Result

import d3s
import stereo_cameras
from calibrations import calibration
from d3s.cli import app
from d3s.files import write_image
from pages import DOCS, ROOT, blocks, shell_lines
from stereo_sets import write_middlebury

sys.path.insert(0, str(Path(__file__).parent / "cli"))

import boards

pytestmark = pytest.mark.slow

# Words of the pages, and what the test says instead.
STAND_INS = {
    "basler": "frames/board_4.png",  # a camera
    "uvc:0": "frames/board_4.png",
}
# Where captures are calibrated: those of a small camera, as far as it sees.
SMALL = {"0.25:1.2:25": "0.25:0.55:10", "design.toml": "board.toml"}
# Lines that need a network, another program, a person, or an hour.
LEFT_OUT = ("make test", "source ", "pip ", "dask ", "--scheduler", "--captures", "--side-by-side")
# Exit codes that answer; no page is served.
DONE = {"align": (0, 1, 6), "check": (0, 5, 6), "live": (0, 1)}


def bring_readme() -> None:
    """Captures of a small camera, and a raw frame of it."""
    boards.write_captures(Path("captures"))
    boards.designed().save("board.toml")
    Path("frames").mkdir()
    for number in (2, 4, 6):
        write_image(f"frames/board_{number}.png", boards.frame(number).image)
    write_image("raw.png", boards.frame(5).image)


def bring_build() -> None:
    bring_readme()
    shutil.copy("raw.png", "frame.png")
    for name, number in (("wall.png", 8), ("near.png", 1), ("far.png", 9)):
        write_image(name, boards.frame(number).image)


def bring_first_depth() -> None:
    """A pair in two folders, calibrations of other programs, a scene of Middlebury."""
    cameras, here = stereo_cameras.RADTAN, Path()
    stereo_cameras.write_pictures(cameras, "left.png", "right.png")
    stereo_cameras.write_opencv_stereo(cameras, here)
    stereo_cameras.write_kalibr(cameras, here)
    stereo_cameras.write_ros(cameras, here)
    stereo_cameras.write_opencv_mono(cameras, here)
    stereo_cameras.write_oak(cameras, here)
    write_middlebury(Path("Motorcycle"))
    for side in ("left", "right"):
        Path(side).mkdir()
        shutil.copy(f"{side}.png", f"{side}/000.png")
    layout = calibration(frame_rows_px=120, frame_cols_px=260)
    d3s.Rig.paper_prototype().replace(calibration=layout).save("calibrated.toml")
    noise = np.random.default_rng(0).integers(0, 65536, (122, 376), dtype=np.uint16)
    wall = cv2.GaussianBlur(noise, (0, 0), 2)  # at a disparity of 23 px, which is 1 m
    cv2.imwrite("frame.png", np.hstack([wall[2:, 248:], wall[:120, 228:360]]))


def bring_live() -> None:
    """A rig with its frames, a saved depth map, recordings, a video and an array."""
    bring_first_depth()
    Path("frames").mkdir()
    Path("night").mkdir()
    for number in (2, 4):
        shutil.copy("frame.png", f"frames/board_{number}.png")
        shutil.copy("frame.png", f"night/{number:03}.png")
    shutil.copy("calibrated.toml", "rig.toml")
    run("depth", "frame.png", "--rig", "rig.toml", "-o", "depth", "-m", "bm")
    for name in ("a", "b", "recording"):
        run("record", "frames", "--rig", "rig.toml", "-o", f"{name}.mcap")
    raw = cv2.imread("frame.png", cv2.IMREAD_UNCHANGED)
    video = cv2.VideoWriter("walk.avi", cv2.VideoWriter.fourcc(*"FFV1"), 5, raw.shape[::-1], False)
    video.write((raw // 256).astype(np.uint8))
    video.release()
    zarr = pytest.importorskip("zarr")
    zarr.save("raw.zarr", raw[None])


BROUGHT: dict[str, Callable[[], None]] = {
    "README": bring_readme,
    "first_depth": bring_first_depth,
    "build": bring_build,
    "live": bring_live,
    "design": bring_readme,
}


def promised_readme() -> None:
    """The pair of the demo has its true depths, and the captures those of the board."""
    truth_m = np.load("demo_truth.npy")
    error_m = np.abs(d3s.DepthMap.load("depth/depth.npz").depth_m - truth_m)
    assert np.nanmedian(error_m) < 0.02
    assert np.isfinite(error_m).mean() > 0.2
    raw = d3s.DepthMap.load("depth/raw_depth.npz")
    assert abs(np.nanmedian(raw.depth_m) - boards.DISTANCES_M[5]) < 0.01
    assert d3s.Rig.load("design.toml").optics.aperture_radius_m > 0


def promised_first_depth() -> None:
    """Depths of Motorcycle are 2.1 to 4.4 m."""
    found = d3s.DepthMap.load("moto/im0_depth.npz").depth_m
    near_m, far_m = np.nanpercentile(found, [1, 99])
    assert 2.0 < near_m < 2.3
    assert 4.0 < far_m < 5.0


def promised_build() -> None:
    verdict = json.loads(Path("rehearsal.json").read_text())["verdict"]["grade"]
    assert verdict in ("good", "provisional")
    assert d3s.Rig.load("rehearsal.toml").calibration.provenance.verdict.startswith(verdict)
    distances = np.loadtxt("rehearsal/distances.csv", delimiter=",", skiprows=1, usecols=1)
    np.testing.assert_allclose(np.diff(1 / distances), np.diff(1 / distances)[0], rtol=1e-5)


def promised_design() -> None:
    assert d3s.Rig.load("design.toml").optics.aperture_radius_m > 0


PROMISED: dict[str, Callable[[], None]] = {
    "README": promised_readme,
    "first_depth": promised_first_depth,
    "build": promised_build,
    "design": promised_design,
}


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def run_line(words: list[str]) -> None:
    """Run one line of a page, smaller or with a stand-in where it has to be."""
    line = " ".join(words)
    if any(one in f"{line} " for one in LEFT_OUT):
        return
    if words == ["make", "demo"]:
        write_small_demo()
        return
    assert words[0] == "d3s", line
    name = words[1]
    words = [STAND_INS.get(word, word) for word in words]
    if name == "calibrate" or "--distances" in words:
        words = [SMALL.get(word, word) for word in words]
    words = [path for word in words for path in (sorted(glob.glob(word)) or [word])]  # noqa: PTH207
    words += more_of(name, line)
    done = run(*words[1:])
    assert done.exit_code in DONE.get(name, (0,)), f"{' '.join(words)}\n{done.output}"


def more_of(name: str, line: str) -> list[str]:
    if name == "simulate" and "--distances" in line:
        return ["--shape", "460x860"]
    if name == "align":
        return [] if "--text" in line else ["--text"]
    if name == "calibrate" and "--rig" not in line:
        return ["--rig", "board.toml"]
    return []


def write_small_demo() -> None:
    from d3s.lab.demo import run_demo
    from d3s.lab.view.demo import write_demo

    made = run_demo((240, 480))
    write_demo(made, Path("demo"))
    np.save("demo_truth.npy", made.pair.depth_m)


@pytest.mark.parametrize(
    "script", sorted((ROOT / "examples").glob("*.py")), ids=lambda one: one.stem
)
def test_an_example_draws_its_picture(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    runpy.run_path(str(script))
    matplotlib.pyplot.close("all")
    assert cv2.imread(f"{script.stem}.png") is not None
    kept = DOCS / "_static" / "examples" / f"{script.stem}.png"
    assert kept.stat().st_size < 40_000
    assert f"({script.name})" in (ROOT / "examples" / "README.md").read_text()


@pytest.mark.parametrize("name", BROUGHT)
def test_every_line_of_a_page_runs_in_order(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    live = importlib.import_module("d3s.cli.live")
    monkeypatch.setattr(live, "serve", lambda *_, **__: None)  # a page ends with Ctrl-C
    BROUGHT[name]()
    scope: dict[str, object] = {}
    page = ROOT / "README.md" if name == "README" else DOCS / f"{name}.md"
    for language, text in blocks(page):
        if language == "shell":
            for words in shell_lines(text):
                run_line(words)
        elif language == "python":
            exec(compile(text, page.name, "exec"), scope)
    PROMISED.get(name, lambda: None)()
