"""`d3s design`: forward, back, files, and what is refused."""

import json
from importlib import import_module

import pytest
from typer.testing import CliRunner

from d3s.cli import app
from d3s.rig import Rig

CAMERA = (
    *("--baseline", "3.84mm", "--focal-length", "12mm", "--f-number", "6"),
    *("--focus", "0.81:0.88", "--pixel-pitch", "2um", "--shape", "2160x3840"),
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    search = import_module("d3s.lab.design.search")
    monkeypatch.setattr(search, "_DRAWN", 3000)
    monkeypatch.setattr(search, "ROUNDS", 30)

    def call(*arguments):
        return CliRunner().invoke(app, ["design", *arguments])

    return call


def test_numbers_of_a_camera_give_its_errors_and_its_rig_file(run, tmp_path):
    result = run(*CAMERA, "--depth-range", "0.4:2", "--json", "-o", "design.toml", "--name", "mine")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["camera"]["focal_length_m"] == pytest.approx(12e-3)
    assert found["depth_m"][0] == pytest.approx(0.4)
    assert 1e-3 < found["mae_m"][-1] < 4e-3
    assert found["working_range_m"] == pytest.approx([0.4, 2.0])
    assert found["frames_per_s"] > 0
    rig = Rig.load(tmp_path / "design.toml")
    assert rig.name == "mine"
    assert rig.optics.focus_distances_m == pytest.approx((0.81, 0.88))
    again = run("--rig", "design.toml", "--depth-range", "0.4:2", "--json")
    assert json.loads(again.stdout)["mae_m"] == pytest.approx(found["mae_m"])


def test_tables_tolerances_and_verification_are_printed(run):
    result = run("--rig", "paper", "--depth-range", "0.5:1", "--tolerances", "--verify")
    assert result.exit_code == 0, result.output
    for words in ("working range", "aluminium", "meets the wish"):
        assert words in " ".join(result.stdout.split())


def test_wish_gives_three_cameras_and_a_front(run):
    result = run("--depth-range", "0.3:2", "--error", "1%", "--sensor", "OV9282", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["goal"] for one in found["answers"]] == ["smallest", "brightest", "most exact"]
    assert all(one["sensor"] == "OV9282" for one in found["answers"])
    assert found["front"]
    assert found["camera"]["baseline_m"] == found["answers"][0]["camera"]["baseline_m"]


def test_wish_that_cannot_be_met_is_exit_code_1_and_says_what_to_relax(run):
    result = run("--depth-range", "0.3:3", "--error", "0.3mm", "--max-size", "6mm")
    assert result.exit_code == 1
    assert "No camera meets this wish" in result.stderr
    assert "Relax one: an error of" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "which camera? Give --rig"),
        (("--rig", "paper", "--baseline", "5mm"), 2, "--rig says all of the camera"),
        ((*CAMERA[:4], "--depth-range", "0.3:2", "--sensor", "IMX217"), 2, "Did you mean IMX219?"),
        (("--rig", "paper", "--error", "much"), 2, "'much' is not a length"),
        (("--rig", "paper", "--noise", "0.01", "--lux", "100"), 2, "--lux tells the noise"),
        (("--rig", "paper", "-o", "design.txt"), 2, "must end in .toml"),
        (("--rig", "paper", "--depth-range", "0.01:2"), 3, "begins too near"),
        ((*CAMERA[:4], "--f-number", "1", *CAMERA[6:]), 3, "do not fit 3.84 mm apart"),
    ],
)
def test_wrong_use_is_explained(run, arguments, code, words):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    said = " ".join(result.stderr.replace("│", " ").split())
    assert words in said


def test_files_are_not_replaced_without_being_asked(run, tmp_path):
    (tmp_path / "design.toml").write_text("mine")
    result = run("--rig", "paper", "-o", "design.toml")
    assert result.exit_code == 3
    assert (tmp_path / "design.toml").read_text() == "mine"
