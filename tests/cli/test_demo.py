"""`d3s demo`, as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from d3s.rig import Rig

D3S = Path(sys.executable).with_name("d3s")


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(D3S), *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, run("demo", cwd=folder)


def test_demo_prints_the_optics_and_says_where_the_results_are(demo):
    folder, result = demo
    assert result.returncode == 0, result.stderr
    for word in ("0.809 m", "0.881 m", "92.93", "Diffraction", "demo/optics.png", "demo/rig.toml"):
        assert word in result.stdout
    assert (folder / "demo/optics.png").read_bytes().startswith(b"\x89PNG")
    assert Rig.load(folder / "demo/rig.toml") == Rig.paper_prototype()


def test_second_demo_finds_the_same_and_needs_no_force(demo):
    folder, _ = demo
    assert run("demo", cwd=folder).returncode == 0


def test_demo_does_not_replace_what_is_not_its_own(tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/rig.toml").write_text("mine")
    result = run("demo", cwd=tmp_path)
    assert result.returncode == 3
    assert "exists and holds something else" in result.stderr
    assert "--force" in result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "demo/rig.toml").read_text() == "mine"
    assert run("demo", "--force", cwd=tmp_path).returncode == 0


def test_output_that_is_a_file(tmp_path):
    (tmp_path / "results").write_text("mine")
    result = run("demo", "--output", "results", cwd=tmp_path)
    assert result.returncode == 3
    assert "results" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["[red]x", "[/x]", "a folder " + "with a long name " * 8])
def test_places_are_told_as_they_are(tmp_path, name):
    result = run("demo", "--output", name, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("Plot:")]
    assert (tmp_path / line.removeprefix("Plot:").strip()).is_file()


def test_debug_shows_the_traceback(tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/rig.toml").write_text("mine")
    result = run("--debug", "demo", cwd=tmp_path)
    assert result.returncode != 0
    assert "Traceback" in result.stderr


def test_version_and_help(tmp_path):
    import d3s

    assert run("--version", cwd=tmp_path).stdout == f"d3s {d3s.__version__}\n"
    shown = run("--help", cwd=tmp_path).stdout
    assert "demo" in shown
    assert "Exit codes" in shown


def test_wrong_use(tmp_path):
    result = run("dmeo", cwd=tmp_path)
    assert result.returncode == 2
    assert "dmeo" in result.stderr
