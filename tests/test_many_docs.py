"""The page on many frames: its commands exist, its blocks run, and its tables have their marks."""

import re
import sys
from pathlib import Path

import pytest

from d3s.batch import DepthJob, estimate_files, find_inputs
from d3s.cli import app
from d3s.tasks import Kind
from page_runner import check_commands
from pages import DOCS, ROOT, python_blocks
from pairs import RIG, write_views

sys.path.insert(0, str(ROOT / "benchmarks"))

import many
import small_frames
from sheets import BEGIN, END

PAGE = DOCS / "many.md"


def test_commands_of_the_page_exist():
    assert app
    check_commands(PAGE)


def test_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("zarr")
    pytest.importorskip("xarray")
    monkeypatch.chdir(tmp_path)
    for i in range(2):
        write_views(tmp_path / f"{i}_left.png", tmp_path / f"{i}_right.png", seed=i)
    job = DepthJob(rig=RIG, method="bm", formats=("zarr",))
    estimate_files(find_inputs([tmp_path]).frames, job, "out")
    names: dict = {}
    for block in python_blocks(PAGE):
        exec(block, names)
    assert names["bad"] == []
    assert names["mean_m"].shape == names["data"].depth_m.shape[1:]
    assert "done" in capsys.readouterr().out


def test_every_outcome_has_its_row():
    rows = re.findall(r"^\| `([a-z ]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert {kind.value for kind in Kind} <= set(rows)


def test_every_table_has_its_place():
    page = PAGE.read_text()
    for name in ("machine", "places", "formats", "sizes", "coordinator", "small frames", "kills"):
        assert BEGIN.format("many", name) in page
        assert END.format(name) in page


def test_tables_hold_what_was_measured():
    rates = {many.BEFORE_NAME: 5.0, many.ONE: 10.0, many.ONE_THREAD: 8.0, many.TWO: 16.0}
    rates[many.DASK] = 12.0
    # Running, each is a quarter faster than with its start, and Dask a half.
    best = {name: many.Rate(rate, 1.25 * rate, 0.01) for name, rate in rates.items()}
    best[many.DASK] = many.Rate(12.0, 18.0, 0.01)
    lines = many.places_sheet(best).lines
    assert lines[3] == (many.TWO, "16.0", "20.0", "3.20", "0.01")
    ratios = many.ratios_sheet(best).lines
    assert [line[1:] for line in ratios] == [("2.00", "2.00"), ("1.60", "1.60"), ("0.75", "0.90")]
    costs = {"npz": (0.1, 2e6), "zarr": (0.05, 1e6)}
    sizes = many.sizes_sheet(best, costs).lines
    assert sizes[-1][0] == "1,000,000"
    assert sizes[-1][2] == "13.9 h"
    assert sizes[-1][4] == "2 TB"
    assert many.costs_sheet(costs).lines[0] == ("`npz`", "100", "2000")


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
    assert len(small_frames.sheet(states).lines) == small_frames.PARTS
