"""Depth of many frames while workers, the client and the scheduler are killed; and on a cluster."""

import csv
import os
import random
import shutil
import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import poison_frames
from d3s.batch import DepthJob, depth_files, estimate_files, find_inputs
from killable import KillableCli
from killers import Killer, kill_a_process
from loopback import kill_a_worker, loopback
from pairs import PINHOLE, RIG, write_views

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # those of Dask's own threads and sockets
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]
JOB = DepthJob(rig=RIG, method="bm", formats=("npz", "png"))
TABLE = "frames.csv"
TOLD = (TABLE, "job.json")


def frames(folder: Path, count: int):
    folder.mkdir(exist_ok=True)
    for i in range(count):
        write_views(folder / f"{i:04}_left.png", folder / f"{i:04}_right.png", seed=i % 7)
    return find_inputs([folder]).frames


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in TOLD
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with loopback(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


def test_a_cluster_writes_the_same_bytes(tmp_path, cluster):
    given = frames(tmp_path / "in", 5)
    job = replace(JOB, formats=("npz", "zarr"))
    estimate_files(given, job, tmp_path / "here")
    batch = estimate_files(given, job, tmp_path / "cluster", workers=cluster.address)
    assert len(batch.done) == 5
    assert contents(tmp_path / "cluster") == contents(tmp_path / "here")


def messy(folder: Path, count: int):
    frames(folder, count)
    for name in ("leaves", "cut"):
        write_views(folder / f"{name}_left.png", folder / f"{name}_right.png")
    cut = folder / "cut_left.png"
    cut.write_bytes(cut.read_bytes()[:300])
    return find_inputs([folder]).frames


@pytest.mark.slow
@pytest.mark.parametrize("place", ["processes", "cluster"])
def test_workers_killed_again_and_again(tmp_path, monkeypatch, place):
    """All good frames are done, with equal bytes; the bad ones are named with their reasons."""
    given = messy(tmp_path / "in", int(os.environ.get("D3S_TEST_FRAMES", "300")))
    good = [one for one in given if one.name[0] == "0"]
    estimate_files(good, JOB, tmp_path / "whole", workers=2)
    monkeypatch.setattr(depth_files, "make_frame", poison_frames.make_frame)
    with ExitStack() as stack:
        where, every_s = 2, 2
        kill = kill_a_process
        if place == "cluster":
            own = stack.enter_context(loopback(tmp_path / "in", 2, "--memory-limit", "4GB"))
            where, kill = own.address, lambda number: kill_a_worker(own, number)
            every_s = 5  # workers take seconds to start: no frame should die with all its workers
        killer = Killer(kill, float(os.environ.get("D3S_TEST_KILL_S", every_s)))
        stack.callback(killer.end)
        batch = estimate_files(
            given,
            JOB,
            tmp_path / "out",
            workers=where,
            progress=killer.begin,
        )
    assert killer.kills > 1
    reasons = {Path(one.name).name.split("_")[0]: one.reason for one in batch.refused}
    assert set(reasons) == {"leaves", "cut"}, reasons
    assert len(batch.done) == len(good)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs copies of a process")
@pytest.mark.parametrize("place", ["processes", "cluster"])
def test_client_killed_again_and_again(tmp_path, cluster, place):
    """Kills so often as D3S_TEST_KILLS says; the results are those of an undisturbed run."""
    given, out = frames(tmp_path / "in", 24), tmp_path / "out"
    estimate_files(given, replace(JOB, formats=("npz", "zarr")), tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    is_here = place == "processes"
    places = ["--workers", "2"] if is_here else ["--scheduler", cluster.address]
    common = ["depth", tmp_path / "in", *PINHOLE, "-m", "bm", "--quiet"]
    command = [*common, *places, "--format", "npz,zarr", "-o"]
    chance, kills, amid = random.Random(0), 0, 0
    # The process that is copied has no thread of zarr or of Dask.
    with KillableCli([*common, "--workers", "1", "--format", "npz", "-o", tmp_path / "a"]) as cli:
        for number in range(2):  # workers of the cluster are warm in the second run
            started = time.monotonic()
            assert cli.run([*command, tmp_path / f"calm{number}"], folder=tmp_path) == 0
            longest_s = time.monotonic() - started
            assert contents(tmp_path / f"calm{number}") == whole
        while kills < int(os.environ.get("D3S_TEST_KILLS", "6")):
            delay_s = chance.uniform(0, longest_s)
            code = cli.run([*command, out], folder=tmp_path, delay_s=delay_s)
            assert code in (0, -signal.SIGKILL)
            kills += code != 0
            amid += code != 0 and 0 < len(list(out.glob("*.npz"))) < len(given)
            if code == 0:
                assert contents(out) == whole
                shutil.rmtree(out)
        assert cli.run([*command, out], folder=tmp_path) == 0
    assert amid > kills // 4  # not before the first frame, nor after the last
    time.sleep(2)  # a worker of the cluster may still end the task of a client that was killed
    assert contents(out) == whole
    told = csv.DictReader((out / TABLE).read_text().splitlines())
    assert {one["frame"] for one in told} == {one.name for one in given}
