"""The live page: its blocks run. Many frames: coordinator and process take little memory."""

import sys
from pathlib import Path

import pytest

from d3s.batch import DepthJob, estimate_files, find_inputs
from d3s.camera.recording import Recorder
from d3s.frames import open_source
from pages import DOCS, ROOT, python_blocks
from pairs import RIG, write_views

sys.path.insert(0, str(ROOT / "benchmarks"))

import small_frames

PAGE = DOCS / "live.md"


def test_camera_and_recording_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_source("twin:40x60") as camera, Recorder("walk.mcap", rig=RIG) as recorder:
        for frame, _ in zip(camera, range(3), strict=False):
            recorder.put(frame, wait=True)
    names: dict = {}
    exec(python_blocks(PAGE)[0], names)
    assert names["camera"].state == "grabbing"
    exec(python_blocks(PAGE, after="## Record and replay")[0], names)
    assert names["recorder"].written == 3


def test_many_frames_of_the_page(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    pytest.importorskip("xarray")
    monkeypatch.chdir(tmp_path)
    for i in range(2):
        write_views(tmp_path / f"{i}_left.png", tmp_path / f"{i}_right.png", seed=i)
    job = DepthJob(rig=RIG, method="bm", formats=("zarr",))
    frames = find_inputs([tmp_path]).frames
    estimate_files(frames, job, "out")
    estimate_files(frames, job, "stack")
    names: dict = {}
    for block in python_blocks(PAGE, after="## Many frames"):
        exec(block, names)
    assert names["bad"] == []
    assert names["mean_m"].shape == names["data"].depth_m.shape[1:]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_small_frames_take_no_more_memory_files_or_threads():
    states = small_frames.measured(600)
    first, last = states[3], states[-1]
    assert last.frames == 600
    assert last.memory_bytes - first.memory_bytes < 5_000_000
    assert last.handles == first.handles
    assert last.threads == first.threads
