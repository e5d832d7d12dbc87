"""`d3s evaluate stereo`, as a user runs it."""

import pytest
from typer.testing import CliRunner

from d3s.cli import app
from stereo_sets import write_middlebury


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # so that no sentence is wrapped
    write_middlebury(tmp_path / "scenes" / "Bench")
    write_middlebury(tmp_path / "scenes" / "Stairs", truth="")


def run(*arguments):
    return CliRunner().invoke(app, ["evaluate", "stereo", *arguments, "--workers", "1"])


def test_tables_files_and_a_chart(tmp_path):
    result = run("scenes", "-m", "bm", "--light", "gain=0.6", "-o", "out")
    assert result.exit_code == 0, result.stderr
    for words in ("Bench", "gain=0.6", "bad-1 at 70 %", "within 1 sigma", "near jumps", "CPU"):
        assert words in result.stdout
    assert result.stderr == "Trying 2 pairs.\nLeft out: Stairs has no truth.\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "stereo.csv",
        "stereo.json",
        "stereo.png",
        "stereo_curves.csv",
    ]
    again = run("scenes", "-m", "bm", "-o", "out")
    assert again.exit_code == 3
    assert "stereo.csv exists" in again.stderr


def test_wrong_use_is_named():
    result = run("scenes", "--light", "dim")
    assert result.exit_code == 2
    assert "gain=NUMBER" in result.stderr
    result = run("nowhere")
    assert result.exit_code == 3
    assert "nowhere is no folder" in result.stderr
