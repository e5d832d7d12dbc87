"""`d3s demo`, with a smaller picture."""

import json
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

import d3s.lab.demo
import d3s.lab.view.demo
from d3s import DepthMap, Rig
from d3s.cli import app
from d3s.lab.demo import DEMO_METHODS, run_demo
from d3s.lab.view.demo import FILES

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


def test_demo_prints_the_table_and_the_paths_of_the_results(written):
    out, result = written
    assert result.exit_code == 0, result.stderr
    for word in ("0.809 m", "0.881 m", *DEMO_METHODS, "MAE", "median", "density", "within sigma"):
        assert word in result.stdout
    assert "imulated" in result.stdout
    assert f"Page: {out / 'index.html'}" in result.stdout
    assert {path.name for path in out.iterdir()} == set(FILES)
    assert Rig.load(out / "rig.toml") == Rig.paper_prototype()
    assert DepthMap.load(out / "depth.npz").depth_m.shape == SMALL
    assert (out / "depth.ply").read_bytes().startswith(b"ply")
    with Image.open(out / "demo.png") as picture:
        assert picture.width > 1000


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
    assert (tmp_path / "rig.toml").read_text() == "mine"
