"""`d3s check`: exit codes, files and words."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from check_frames import raw_of, small_rig
from d3s.check.mend import mended
from d3s.cli import app
from d3s.files import write_image


def run(*words):
    return CliRunner().invoke(app, ["check", *map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with frames of three scenes, and rigs as the camera is and was."""
    place = tmp_path_factory.mktemp("check")
    (place / "frames").mkdir()
    for seed in range(3):
        scene = d3s.RandomScene(seed=seed, patterns=("stone",), nearest_m=0.4, farthest_m=1.2)
        frame = np.clip(raw_of(scene, seed), 0, 1).astype(np.float32)
        write_image(place / "frames" / f"{seed}.png", frame)
    small_rig().save(place / "rig.toml")
    mended(small_rig(), {"rows_px": -1.0}).save(place / "old.toml")
    return place


def test_good_rig_is_left_as_it_is(folder):
    done = run(folder / "frames", "--rig", folder / "rig.toml", "-o", folder / "same.toml")
    assert done.exit_code == 0, done.output
    assert "steady" in done.output
    assert "nothing that a rig file could mend" in done.output
    assert not (folder / "same.toml").exists()
    assert (folder / "rig.checks.jsonl").exists()


def test_drift_has_an_exit_code_and_a_mended_rig(folder):
    done = run(folder / "frames", "--rig", folder / "old.toml", "--no-log")
    assert done.exit_code == 5
    assert "right view lies lower" in done.output
    assert not (folder / "old.checks.jsonl").exists()
    words = (folder / "frames", "--rig", folder / "old.toml", "-o", folder / "new.toml")
    done = run(*words, "--report", folder / "page.html", "--json", "--no-log")
    assert done.exit_code == 0, done.output
    numbers = json.loads(done.stdout[done.stdout.index("{") :])
    assert numbers["drift"]["rows_px"] == pytest.approx(1.0, abs=0.1)
    assert (folder / "page.html").exists()
    new = d3s.Rig.load(folder / "new.toml").calibration
    assert new.anchor_right_px == pytest.approx(small_rig().calibration.anchor_right_px, abs=0.1)
    assert run(*words, "--no-log").exit_code == 3  # not replaced without --force


def test_plain_frames_have_their_own_exit_code(folder):
    plain = folder / "plain.npy"
    rng = np.random.default_rng(0)
    np.save(plain, (0.5 + 0.005 * rng.standard_normal((240, 640))).astype(np.float32))
    done = run(plain, "--rig", folder / "rig.toml", "--no-log", "-o", folder / "none.toml")
    assert done.exit_code == 6
    assert "cannot tell" in done.output
    assert not (folder / "none.toml").exists()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("-o", "rig.toml"), 2, "another name"),
        (("-o", "rig.txt"), 2, ".toml"),
        (("--report", "page.pdf"), 2, ".html"),
        (("--distances", "1.0,2.0"), 2, "one for all"),
        (("--distances", "1000"), 2, "millimetres"),
    ],
)
def test_wrong_use_is_refused(folder, monkeypatch, words, code, text):
    monkeypatch.chdir(folder)
    done = run("frames", "--rig", "rig.toml", "--no-log", *words)
    assert done.exit_code == code
    assert text in " ".join(done.output.replace("│", "").split())


def test_frames_that_cannot_be_read_are_named(folder, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    done = run(broken, "--rig", folder / "rig.toml", "--no-log")
    assert done.exit_code == 3
    assert "broken.png" in done.output
