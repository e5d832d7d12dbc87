"""`d3s record`, `replay`, `recover`, and recordings in `d3s depth` and `d3s convert`."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from d3s.camera.recording import Recording, RecordingWriter
from d3s.cli import app
from d3s.registry import tables
from fake_camera import FakeFault, FakeScript, opener

SCRIPT = FakeScript(rate_hz=100.0, faults=(FakeFault("drop", at=3, count=2),))
RIG = d3s.Rig.paper_prototype()
SHAPE = (100, 140)


def run(*args: object):
    return CliRunner().invoke(app, [*map(str, args)])


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Two pairs of a wall, with the rig."""
    from d3s.frames import Frame

    path = tmp_path_factory.mktemp("recording") / "wall.mcap"
    with RecordingWriter(path, rig=RIG) as writer:
        for number, depth_m in enumerate((0.7, 0.9)):
            wall = d3s.Plane(depth_m=depth_m, texture="stone")
            pair = d3s.simulate(wall, RIG, noise=0.01, seed=number, shape=SHAPE)
            writer.write(Frame(number=number, views=(pair.left, pair.right), time_s=float(number)))
    return path


def test_record_says_what_was_lost(tmp_path, monkeypatch):
    monkeypatch.setitem(tables("sources"), "fake", opener(SCRIPT))
    path = tmp_path / "a.mcap"
    done = run("record", "fake:", "-o", path, "--frames", 6)
    assert done.exit_code == 0, done.output
    assert "6 frames; 2 lost by the camera, 0 dropped by the recorder." in done.stdout
    with Recording(path) as found:
        assert sum(one.lost_before for one in found) == 2
    done = run("record", "fake:", "-o", tmp_path / "b.mcap", "--frames", 2, "--rig", "paper")
    assert "Note: the rig does not fit the frames: the rig 'paper prototype' has no" in done.stderr
    again = run("record", "fake:", "-o", path, "--frames", 2)
    assert again.exit_code == 3
    assert "exists" in again.stderr
    done = run(
        *("record", "fake:", "-o", path, "--seconds", 0.2),
        *("--force", "--json"),
    )
    values = json.loads(done.stdout)
    assert values["frames"] > 3
    assert values["dropped_by_the_recorder"] == 0


def test_record_ends_with_control_c(tmp_path):
    path = tmp_path / "a.mcap"
    # A shell lets programs in its background ignore Ctrl-C, and their children inherit it.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from d3s.cli import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "record", "twin:60x100", "-o", path],
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(600):
        if path.exists() and path.stat().st_size > 100_000:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    words, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    with Recording(path) as found:
        assert not found.is_cut
        assert f"{found.frame_count} frames" in words


def test_replay_gives_the_same_bytes(tmp_path, recording):
    done = run("replay", recording, "-o", tmp_path / "depth.mcap", "--json")
    assert done.exit_code == 0, done.output
    first = json.loads(done.stdout)
    assert (first["frames"], first["same_as_recorded"]) == (2, 0)
    again = json.loads(run("replay", tmp_path / "depth.mcap", "--json").stdout)
    assert (again["same_as_recorded"], again["different"]) == (2, 0)
    # The depth is that of `estimate`, and its bytes are in the file.
    with Recording(recording) as frames, Recording(tmp_path / "depth.mcap") as found:
        expected = d3s.estimate(*frames.frame(1).views, RIG)
        assert found.depth(1).depth_m.tobytes() == expected.depth_m.tobytes()
        assert found.depth(1).sigma_m.tobytes() == expected.sigma_m.tobytes()
        assert abs(np.nanmedian(expected.depth_m) - 0.9) < 0.01
    other = run("replay", tmp_path / "depth.mcap", "--option", "min_confidence=0.9")
    assert other.exit_code == 4
    assert "0 of 2 recorded depth maps have the same bytes" in other.stdout


def test_replay_without_a_rig_asks_for_it(tmp_path, recording):
    with Recording(recording) as frames, RecordingWriter(tmp_path / "a.mcap") as writer:
        writer.write(frames.frame(0))
    done = run("replay", tmp_path / "a.mcap")
    assert done.exit_code == 3
    assert "has no rig attached. Give the camera with --rig" in done.stderr
    quick = ("--rig", "paper", "--quiet", "-m", "bm")
    assert run("replay", tmp_path / "a.mcap", *quick).exit_code == 0


def test_recover(tmp_path, recording):
    content = recording.read_bytes()
    (tmp_path / "cut.mcap").write_bytes(content[: int(0.7 * len(content))])
    done = run("recover", tmp_path / "cut.mcap")
    assert done.exit_code == 0, done.output
    assert "1 frames, 5 messages. The file was cut; 0 damaged" in done.stdout
    with Recording(tmp_path / "cut_recovered.mcap") as found:
        assert not found.is_cut
        assert found.rig() == RIG
    assert run("recover", tmp_path / "cut.mcap").exit_code == 3


def test_depth_of_a_recording(tmp_path, recording):
    by_blocks = ("-o", tmp_path / "out", "--format", "npz", "-m", "bm")
    done = run("depth", recording, *by_blocks)
    assert done.exit_code == 0, done.output
    found = d3s.DepthMap.load(tmp_path / "out" / "000001_depth.npz")
    with Recording(recording) as frames:
        expected = d3s.estimate(*frames.frame(1).views, RIG, method="bm")
    np.testing.assert_array_equal(found.depth_m, expected.depth_m)
    (tmp_path / "out" / "000000_depth.npz").unlink()
    again = run(
        "depth",
        recording,
        *by_blocks,
    )
    assert "Skipped, since results are there: 1 frame." in again.stdout
    assert (tmp_path / "out" / "000000_depth.npz").exists()


def test_convert_to_a_folder_and_a_bag_and_back(tmp_path, recording):
    steps = [
        (recording, tmp_path / "folder"),
        (tmp_path / "folder", tmp_path / "a.mcap"),
        ("--bag", recording, tmp_path / "bag"),
        (tmp_path / "bag", tmp_path / "b.mcap"),
    ]
    for step in steps:
        done = run("convert", *step)
        assert done.exit_code == 0, done.output
    with Recording(recording) as frames:
        expected = [one.views[1].tobytes() for one in frames]
    for name in ("a.mcap", "b.mcap"):
        with Recording(tmp_path / name) as found:
            assert [one.views[1].tobytes() for one in found] == expected
            assert found.rig() == RIG
    assert run("convert", tmp_path / "folder", tmp_path / "a.mcap").exit_code == 3
    wrong = run("convert", "a.npz", "b.png", "--bag")
    assert wrong.exit_code == 2
    assert "are for a recording" in wrong.stderr


def test_info_of_a_recording(tmp_path, recording):
    facts = json.loads(run("info", recording, "--json").stdout)
    found = facts[0] if isinstance(facts, list) else facts
    assert (found["kind"], found["frames"], found["rows"]) == ("recording", 2, SHAPE[0])
    assert found["rig"] == "paper prototype"
    assert found["topics"]["/left/image_rect"] == "2 of sensor_msgs/msg/Image"
    (tmp_path / "cut.mcap").write_bytes(recording.read_bytes()[:-50])
    assert "recording" in run("info", tmp_path / "cut.mcap").stdout
