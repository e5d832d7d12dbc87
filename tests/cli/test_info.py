"""`d3s info`: what is printed, and for whom."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from d3s.cli import app
from d3s.files import DepthImage, write_depth


def run(*args: object):
    return CliRunner().invoke(app, ["info", *map(str, args)])


@pytest.fixture
def depth(tmp_path):
    path = tmp_path / "a.png"
    depth_m = np.linspace(1, 2, 200, dtype=np.float32).reshape(10, 20)
    depth_m[0] = np.nan
    write_depth(path, DepthImage(depth_m=depth_m, focal_length_px=500.0))
    return path


def test_a_person_reads_it(depth):
    done = run(depth)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"{depth}: depth"
    assert lines[1].split() == ["size", "10", "x", "20", "px", "(rows", "x", "columns)"]
    words = " ".join(done.stdout.split())
    assert "density 90.0%" in words
    assert "depth_m 1.101 to 2, known of 90.0% 1%: " in words
    assert "unit_m 0.001" in words
    bars = [line for line in lines if line.endswith("#")]
    assert len(bars) == 12
    assert max(line.count("#") for line in bars) == 40


def test_a_program_reads_it(depth, tmp_path):
    d3s.Rig.paper_prototype().save(tmp_path / "rig.toml")
    done = run(depth, tmp_path / "rig.toml", "--json")
    assert done.exit_code == 0
    first, second = json.loads(done.stdout)
    assert first["kind"] == "depth"
    assert first["density"] == pytest.approx(0.9)
    assert len(first["histogram"]["counts"]) == 12
    assert second["kind"] == "rig"
    assert second["histogram"] is None


def test_good_files_are_told_and_others_named(depth, tmp_path):
    done = run(depth, tmp_path / "none")
    assert done.exit_code == 4
    assert "density" in done.stdout
    assert "none: there is no such file" in done.stderr
    assert run(tmp_path / "none").exit_code == 3
    assert run(tmp_path / "none", tmp_path / "nowhere").exit_code == 3
    assert run().exit_code == 2


def test_a_name_does_not_speak_to_the_terminal(tmp_path, depth):
    odd = depth.rename(tmp_path / "a\x1b[31m\nb.png")
    done = run(odd)
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    assert r"a\x1b[31m\nb.png" in done.stdout.splitlines()[0]
