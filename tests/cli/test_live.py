"""`d3s live` and `d3s view` as a person runs them."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from d3s.camera import live as needs
from d3s.camera.live.channel import unpacked
from d3s.cli import app
from d3s.registry import tables
from fake_camera import FakeScript, opener
from live_pages import RIG, views

SOURCE = Path(d3s.__file__).parents[1]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_live_serves_records_and_ends_by_a_signal(tmp_path):
    """In a process of its own: the page answers, SIGTERM ends it, and the recording is whole."""
    words = "live", "twin:100x200", "--rate", "20", "--record", "--no-browser"
    process = subprocess.Popen(
        [sys.executable, "-m", "d3s", *words, "-o", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"},
    )
    try:
        address = re.fullmatch(r"Open (http://127\.0\.0\.1:\d+/\S+/)\n", process.stdout.readline())
        assert asyncio.run(_messages(address[1])) == ["hello", "frame"]
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert re.search(r"Frames: \d+ grabbed.* recorded", rest)
    (recording,) = (tmp_path / "out").glob("recording_*.mcap")
    from d3s.camera.recording import Recording

    with Recording(recording) as found:
        assert found.rig() == RIG
        assert not found.is_cut


async def _messages(address):
    """First message of a page, and that with its first frame."""
    origin = "/".join(address.split("/")[:3])
    panels = [{"kind": "depth", "width": 64}]
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{address}live/socket", origin=origin) as socket,
    ):
        found = [(await socket.receive_json(timeout=30))["is"]]
        await socket.send_json({"ask": "frame", "panels": panels})
        while (message := await socket.receive(timeout=120)).type is aiohttp.WSMsgType.TEXT:
            assert json.loads(message.data)["is"] == "state"
        return [*found, unpacked(message.data)[0]["is"]]


def test_a_rig_that_cannot_split_the_frames_ends_live_before_the_page(monkeypatch):
    script = FakeScript(rate_hz=100.0)
    monkeypatch.setitem(tables("sources"), "fake", opener(script))
    result = run("live", "fake:", "--rig", "paper", "--no-browser")
    assert result.exit_code == 1, result.output
    assert "has no calibration, so it cannot split raw frames" in result.stderr
    assert "Open" not in result.stdout


def test_live_that_computed_nothing_fails(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((20, 40), np.float32))
    result = run("live", tmp_path, "--rig", "paper", "--no-browser", "--seconds", "0.5")
    assert result.exit_code == 1, result.output
    assert "no depth was computed: the rig" in result.stderr


def test_view_of_a_saved_depth_map(tmp_path):
    path = tmp_path / "wall.npz"
    d3s.estimate(*views(0), RIG).save(path)
    result = run("view", path, "--no-browser", "--seconds", "0.2")
    assert result.exit_code == 0, result.output
    assert "Open http://127.0.0.1:" in result.output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("live", "uvc:0"), 2, "which camera"),
        (("live", "nowhere.avi", "--rig", "paper"), 3, "no such file"),
        (("live", "--method", "nope"), 2, "method"),
        (("live", "--method", "sgbm", "--quick"), 2, "--quick"),
        (("live", "--min-confidence", "3"), 2, "min_confidence"),
        (("view", "nowhere.npz"), 3, "no such file"),
        (("view", "."), 3, "no depth maps"),
    ],
)
def test_wrong_words_are_refused(tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    result = run(*words, "--no-browser")
    assert result.exit_code == code, result.output
    assert said in result.output + result.stderr


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(needs.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(d3s.errors.InputError, match=re.escape("[live]")):
        needs.check_server()
