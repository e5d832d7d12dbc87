"""`d3s demo`, with a smaller picture."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import d3s.lab.demo
import d3s.lab.view.demo
from d3s import DepthMap, Rig
from d3s.cli import app
from d3s.lab.demo import DEMO_METHODS, demo_scene, run_demo
from d3s.lab.view.demo import FILES

D3S = Path(sys.executable).with_name("d3s")
SMALL = (240, 480)


@pytest.fixture(scope="module")
def small():
    return run_demo(SMALL)


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def written(small, tmp_path_factory):
    """Folder and output of the command, with the result of the fixture `small`."""
    folder = tmp_path_factory.mktemp("written") / "demo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(d3s.lab.demo, "run_demo", lambda on_step: small)
        return folder, invoke("demo", "--output", folder)


@pytest.fixture
def run(monkeypatch, small):
    """Command line without the work: nothing is computed or drawn."""

    def write(_, folder, overwrite):
        (folder / "rig.toml").write_text(f"{overwrite=}")
        return {name: folder / name for name in FILES}

    monkeypatch.setattr(d3s.lab.demo, "run_demo", lambda on_step: small)
    monkeypatch.setattr(d3s.lab.view.demo, "write_demo", write)
    return invoke


def test_our_method_is_the_best_of_the_three(small):
    scores = {name: one.score for name, one in small.results.items()}
    assert tuple(scores) == DEMO_METHODS
    assert scores["joint"].mae_m < 0.5 * scores["consensus"].mae_m
    assert scores["joint"].median_m < scores["sgbm"].median_m < scores["consensus"].median_m
    assert scores["joint"].density > 0.5
    assert 0.4 < scores["joint"].coverage < 0.9


def test_depths_of_the_scene_at_full_size():
    rig = Rig.paper_prototype()
    layers = demo_scene(rig, d3s.lab.demo.SHAPE).layers
    depths_m = [layer.depth_m for layer in layers]
    assert depths_m[0] == pytest.approx(0.31)
    assert max(depths_m) == pytest.approx(1.88)
    floor = layers[-2]
    rows = np.flatnonzero(floor.mask.any(axis=1)) - (d3s.lab.demo.SHAPE[0] - 1) / 2
    slope = np.tan(floor.tilt_y_rad) / rig.optics.focal_length_px
    ends_m = floor.depth_m / (1 - slope * rows[[0, -1]])
    np.testing.assert_allclose(ends_m, (1.276, 0.61), atol=0.005)


def test_scene_has_no_tuning_textures():
    from d3s.lab.evaluate.sweep import TUNING_PATTERNS

    layers = demo_scene(Rig.paper_prototype(), SMALL).layers
    assert not {layer.texture.pattern for layer in layers} & set(TUNING_PATTERNS)


def test_demo_prints_the_table_and_the_paths_of_the_results(written):
    out, result = written
    assert result.exit_code == 0, result.stderr
    for word in ("0.809 m", "0.881 m", *DEMO_METHODS, "MAE", "median", "density", "within sigma"):
        assert word in result.stdout
    assert "imulated" in result.stdout
    assert f"Page:    {out / 'index.html'}" in result.stdout
    assert {path.name for path in out.iterdir()} == set(FILES)
    assert Rig.load(out / "rig.toml") == Rig.paper_prototype()
    assert DepthMap.load(out / "depth.npz").depth_m.shape == SMALL
    assert (out / "depth.ply").read_bytes().startswith(b"ply")
    with Image.open(out / "demo.png") as picture:
        assert picture.width > 1000


def test_page_has_its_pictures_beside_it(written):
    folder, _ = written
    page = (folder / "index.html").read_text()
    assert "Everything on this page is simulated" in page
    for address in re.findall(r'src="([^"]+)"', page):
        assert (folder / address).is_file()
    for method in DEMO_METHODS:
        assert f"<td>{method}</td>" in page


def test_commands_of_the_page_exist(written, monkeypatch, tmp_path):
    folder, _ = written
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"<pre>d3s (.*)</pre>", (folder / "index.html").read_text())
    assert len(commands) == 2
    for command in commands:
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 3  # the pictures are missing, and nothing else is wrong
        assert "there is no such file" in result.stderr


def test_json_quiet_and_force(run, tmp_path):
    values = json.loads(run("demo", "--output", tmp_path, "--json").stdout)
    assert values["simulated"] is True
    assert values["methods"]["joint"]["mae_m"] < values["methods"]["consensus"]["mae_m"]
    result = run("demo", "--output", tmp_path, "--quiet", "--force")
    assert (result.stdout, result.stderr) == ("", "")
    assert (tmp_path / "rig.toml").read_text() == "overwrite=True"


def test_existing_files_are_refused_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr(d3s.lab.demo, "run_demo", lambda **_: pytest.fail("too early"))
    (tmp_path / "rig.toml").write_text("mine")
    result = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert result.exit_code == 3
    assert "rig.toml exists" in result.stderr
    assert "--force" in result.stderr
    assert (tmp_path / "rig.toml").read_text() == "mine"


def test_steps_are_announced(monkeypatch):
    steps = []
    monkeypatch.setattr(d3s.lab.demo, "DEMO_METHODS", ("sgbm",))
    run_demo((120, 240), on_step=steps.append)
    assert steps == ["Simulating a snapshot of the prototype ...", "Depth by sgbm ..."]


@pytest.mark.slow
def test_the_whole_demo_as_installed(tmp_path):
    command = [str(D3S), "demo", "--output", "demo", "--force"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "demo/index.html").is_file()
