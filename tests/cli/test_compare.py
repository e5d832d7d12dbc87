"""`d3s compare`, as a user runs it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from d3s.batch import running
from d3s.cli import app
from d3s.lab.evaluate import PlaneSweep, Program, SceneSweep

TINY = Program(
    planes=PlaneSweep(depths_m=(0.6, 0.95), patterns=("brick",), shape=(93, 220)),
    scenes=SceneSweep(count=1, shape=(93, 220)),
)
HERE = ("-m", "bm,sift", "--workers", "1")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(Program, "quick", classmethod(lambda cls: TINY))


def run(*arguments):
    return CliRunner().invoke(app, ["compare", "--quick", *arguments])


def test_tables_and_files():
    result = run(*HERE, "-o", "out")
    assert result.exit_code == 0, result.stderr
    for words in ("Planes beyond 0.9 m, 1 pairs", "own filter", "s / Mpx", "Chart: out/league.png"):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert {path.name for path in Path("out").iterdir()} == {
        "league.csv",
        "league.json",
        "league.png",
        "league_pairs.csv",
    }
    again = run(*HERE, "-o", "out")
    assert again.exit_code == 3
    assert "out/league.csv exists. Choose another folder" in again.stderr


def test_json_for_programs():
    near, by_blocks = "bm:depth_range_m=[0.3,2.0]", "bm:block_size_px=15"
    methods = ("-m", f"{near}, sift", "-m", by_blocks)
    result = run(*methods, "--workers", "1", "--json", "--seed", "4")
    assert result.stderr == "Trying 3 pairs.\n"  # nobody needs the tuned camera
    told = json.loads(result.stdout)
    first, sift, last = told["parameters"]["methods"]
    assert [one["name"] for one in (first, sift, last)] == [near, "sift", by_blocks]
    # With its own filter and without it: what was asked for is what plays.
    for options in ("options", "unfiltered"):
        assert first[options]["depth_range_m"] == [0.3, 2.0]
        assert last[options]["block_size_px"] == 15
    assert told["parameters"]["program"]["scenes"]["seed"] == 4
    assert [one["name"] for one in told["sections"]] == ["planes", "planes beyond 0.9 m", "scenes"]


def test_stopped_and_gone_on_with(monkeypatch):
    real, calls = running._attempt, []

    def stopped(*job):
        calls.append(job)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*job)

    monkeypatch.setattr(running, "_attempt", stopped)
    first = run(*HERE, "-o", "out")
    assert first.exit_code == 130
    assert "The same command goes on from here: 1 finished trials are kept in" in first.stderr
    # A sweep of another kind into the same folder finishes, and takes nothing away.
    other = ("--distances", "0.6", "--patterns", "brick", "--shape", "93x220", "--workers", "1")
    done = CliRunner().invoke(app, ["evaluate", "planes", "-m", "bm", *other, "-o", "out"])
    assert done.exit_code == 0, done.stderr
    calls.pop()
    second = run(*HERE, "-o", "out", "--quiet")
    assert second.exit_code == 0, second.stderr
    assert second.output == ""
    assert len(calls) == 4  # one, the one that was stopped, and the two that were left
    assert not Path("out/.trials").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("-m bm,sgm", 2, "method='sgm' must be one of joint"),
        ("-m bm -m bm", 2, "methods has 'bm' twice"),
        ("--workers 0", 2, "workers=0 must be a whole number"),
        ("--rig none.toml", 3, "none.toml"),
        ("--seed -1", 2, "seed=-1 must be at least 0"),
    ],
)
def test_wrong_use_is_told(arguments, code, words):
    result = run("--method", "sift", *arguments.split())
    assert result.exit_code == code
    assert words in result.stderr
    assert not Path("league").exists()


def test_typical_lenses_have_a_rig_of_their_own():
    refused = run("--lens", "typical", "--rig", "mine.toml")
    assert refused.exit_code == 2
    assert "has a rig of its own" in " ".join(refused.output.replace("│", " ").split())


def test_typical_lenses_are_named_in_files(monkeypatch):
    tiny = Program(
        planes=TINY.planes.replace(lens="typical", depths_m=(0.6,)),
        scenes=TINY.scenes.replace(lens="typical"),
    )
    monkeypatch.setattr(Program, "typical", classmethod(lambda cls, quick: tiny))
    done = run("--lens", "typical", "-m", "bm", "--workers", "1")
    assert done.exit_code == 0, done.output
    assert Path("league/league_typical.png").stat().st_size > 1000
