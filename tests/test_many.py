"""Many frames: the blocks of the page run; the coordinator and one process take little memory."""

import sys
from pathlib import Path

import pytest

from d3s.batch import DepthJob, estimate_files, find_inputs
from pages import DOCS, ROOT, python_blocks
from pairs import RIG, write_views

sys.path.insert(0, str(ROOT / "benchmarks"))

import many
import small_frames

PAGE = DOCS / "live.md"


def test_python_of_the_page_runs(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    pytest.importorskip("xarray")
    monkeypatch.chdir(tmp_path)
    for i in range(2):
        write_views(tmp_path / f"{i}_left.png", tmp_path / f"{i}_right.png", seed=i)
    job = DepthJob(rig=RIG, method="bm", formats=("zarr",))
    estimate_files(find_inputs([tmp_path]).frames, job, "out")
    names: dict = {}
    for block in python_blocks(PAGE, after="## Many frames"):
        exec(block, names)
    assert names["bad"] == []
    assert names["mean_m"].shape == names["data"].depth_m.shape[1:]


def test_simulated_coordinator_gets_all_tasks_back():
    found = many.coordinator(many.FILES, 40)
    assert found["time_s"] > 0
    assert 0 < found["memory_mb"] < 400


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_small_frames_take_no_more_memory_files_or_threads():
    states = small_frames.measured(600)
    first, last = states[3], states[-1]
    assert last.frames == 600
    assert last.memory_bytes - first.memory_bytes < 5_000_000
    assert last.handles == first.handles
    assert last.threads == first.threads
