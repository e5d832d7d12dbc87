"""Commands and code of the README work."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import d3s
from d3s.files import write_image
from page_runner import BOARD, PageRunner, boards, check_commands, is_target
from pages import ROOT, python_blocks

README = ROOT / "README.md"
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=995, baseline_m=0.193)

# Replacements in the commands of the page that shorten the test.
SMALLER = {
    "captures/ -o": "captures/ --design board.toml -o",
    "compare -o": "compare --quick -m joint,bm --workers 1 -o",
}


def test_five_lines_give_the_depth(tmp_path, monkeypatch):
    (code,) = python_blocks(README)
    scope: dict[str, object] = {}
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), scope)
    est = scope["est"]
    assert 0.9 <= est.density < 1
    assert np.nanmedian(est.depth_m) == pytest.approx(1.0, abs=0.002)
    assert Path("scene.ply").read_bytes().startswith(b"ply")


def test_commands_and_options_exist():
    check_commands(README)
    targets = set(re.findall(r"(?:^|`)make ([\w-]+)", README.read_text(), re.MULTILINE))
    assert targets >= {"demo", "test"}
    for name in targets:
        assert is_target(name), name


def test_picture_and_links_are_there():
    for link in re.findall(r"\]\(([\w/.]+)\)", README.read_text()):
        assert (ROOT / link).is_file(), link


@pytest.mark.slow
def test_all_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    scene = d3s.RandomScene(seed=3, nearest_m=2.0, farthest_m=4.5)
    pair = d3s.simulate(scene, PINHOLE, noise=0.005, shape=(120, 240))
    for side in ("left", "right"):
        write_image(f"{side}.png", getattr(pair, side))
    boards.write_captures(Path("captures"))
    boards.designed().save("board.toml")
    write_image("raw.png", boards.frame(BOARD).image)
    shutil.copy(README, "README.md")
    runner = PageRunner(README, SMALLER)

    assert d3s.DepthMap.load("depth/depth.npz").density > 0.2
    assert Path("depth/points.ply").read_bytes().startswith(b"ply")
    frame = d3s.DepthMap.load("depth/raw_depth.npz")
    assert abs(np.nanmedian(frame.depth_m) - boards.DISTANCES_M[BOARD]) < 0.01
    assert "depth map" in runner.output["d3s info depth/depth.npz"]
    assert "| joint " in Path("README.md").read_text()
