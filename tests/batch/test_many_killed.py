"""Depth of many frames while workers, the client and the scheduler are killed; and on a cluster."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import poison_frames
from d3s.batch import DepthJob, depth_files, estimate_files, find_inputs
from d3s.batch.manifest import lines_of
from d3s.lab.evaluate import PlaneSweep, evaluate_planes
from d3s.tasks import Cluster, Processes
from d3s.tasks import cluster as dask
from killable import KillableCli
from killers import Killer, kill_a_process
from loopback import kill_a_worker, loopback, wait_until
from pairs import PINHOLE, RIG, write_views

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # those of Dask's own threads and sockets
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]
JOB = DepthJob(rig=RIG, method="bm", formats=("npz", "png"))
MANIFEST = ("manifest.jsonl", "manifest.csv")


def frames(folder: Path, count: int):
    folder.mkdir(exist_ok=True)
    for i in range(count):
        write_views(folder / f"{i:04}_left.png", folder / f"{i:04}_right.png", seed=i % 7)
    return find_inputs([folder]).frames


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in MANIFEST
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with loopback(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


def test_a_cluster_writes_the_same_bytes(tmp_path, cluster):
    given = frames(tmp_path / "in", 5)
    job = replace(JOB, formats=("npz", "zarr"))
    estimate_files(given, job, tmp_path / "here")
    batch = estimate_files(given, job, tmp_path / "cluster", workers=Cluster(cluster.address))
    assert len(batch.done) == 5
    assert contents(tmp_path / "cluster") == contents(tmp_path / "here")
    told = next(lines_of(tmp_path / "cluster/manifest.jsonl"))
    assert told["place"] == f"Dask cluster at {cluster.address}"


def test_a_cluster_is_asked_for_the_folders(tmp_path, cluster, monkeypatch):
    given = frames(tmp_path / "in", 2)
    monkeypatch.setattr(dask.worker, "describe", poison_frames.describe_blind)
    with pytest.raises(dask.ClusterError, match=r"worker tcp.* does not see .*0000_left.png"):
        estimate_files(given, JOB, tmp_path / "out", workers=Cluster(cluster.address))
    assert not contents(tmp_path / "out")


def test_a_cluster_that_is_not_there_leaves_nothing(tmp_path):
    given = frames(tmp_path / "in", 2)
    nobody = Cluster("tcp://127.0.0.1:9", patience_s=1)
    with pytest.raises(dask.ClusterError, match="there is no Dask scheduler at"):
        estimate_files(given, JOB, tmp_path / "out", workers=nobody)
    assert not (tmp_path / "out").exists()
    estimate_files(given[:1], JOB, tmp_path / "out")
    with pytest.raises(dask.ClusterError):
        estimate_files(given, JOB, tmp_path / "out", skip_done=True, workers=nobody)
    assert (tmp_path / "out" / "0000_depth.npz").exists()


def test_sweeps_have_the_same_figures_everywhere(cluster):
    sweep = PlaneSweep(depths_m=(0.6,), patterns=("brick", "grass"), shape=(93, 220))
    found = [
        evaluate_planes("bm", sweep=sweep, workers=place)
        for place in (1, 2, Cluster(cluster.address))
    ]
    rows = [[{**row, "time_s": 0} for row in one.rows] for one in found]
    assert rows[0] == rows[1] == rows[2]


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
    given = messy(tmp_path / "in", int(os.environ.get("D3S_TEST_FRAMES", "150")))
    good = [one for one in given if one.name[0] == "0"]
    estimate_files(good, JOB, tmp_path / "whole", workers=2)
    monkeypatch.setattr(depth_files, "make_frame", poison_frames.make_frame)
    with ExitStack() as stack:
        where, every_s = Processes(2), 3
        kill = kill_a_process
        if place == "cluster":
            own = stack.enter_context(loopback(tmp_path / "in", 2, "--memory-limit", "4GB"))
            where, kill = Cluster(own.address), lambda number: kill_a_worker(own, number)
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


COMMAND = (sys.executable, "-m", "d3s", "depth")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs copies of a process")
@pytest.mark.parametrize("place", ["here", "processes", "cluster"])
def test_client_killed_again_and_again(tmp_path, cluster, place):
    """Kills so often as D3S_TEST_KILLS says; the results are those of an undisturbed run."""
    given, out = frames(tmp_path / "in", 24), tmp_path / "out"
    estimate_files(given, replace(JOB, formats=("npz", "zarr")), tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    words = {"here": ["--workers", "1"], "processes": ["--workers", "2"]}
    places = words.get(place, ["--scheduler", cluster.address])
    common = ["depth", tmp_path / "in", *PINHOLE, "-m", "bm", "--quiet", "--skip-done"]
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
    told = [one for one in lines_of(out / "manifest.jsonl") if one["type"] == "frame"]
    assert {one["frame"] for one in told} == {one.name for one in given}


def whole_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Files of results, with what tells whether one was written again."""
    found = {path.name: path.stat() for path in folder.glob("*_depth.*")}
    return {name: (one.st_ino, one.st_mtime_ns) for name, one in found.items()}


@pytest.mark.slow
def test_client_killed_and_scheduler_restarted(tmp_path):
    """The work goes on, and no frame that was whole is done again."""
    given, out = frames(tmp_path / "in", 60), tmp_path / "out"
    with loopback(tmp_path, 2) as own:
        places = ["--scheduler", own.address, "-o", out]
        command = [*COMMAND, tmp_path / "in", *PINHOLE, "-m", "bm", "--format", "npz,png", *places]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as one:
            wait_until(lambda: len(whole_files(out)) > 20)
            one.kill()
            one.stderr.read()
        first = list(own.nannies)
        own.restart(workers=2)
        for nanny in first:
            nanny.wait(60)  # until then a worker may still end its frame
        before = whole_files(out)
        whole = {
            one.name
            for one in given
            if {f"{one.name}_depth.npz", f"{one.name}_depth.png"} <= set(before)
        }
        assert 10 <= len(whole) < 60
        subprocess.run([*command, "--skip-done"], check=True, capture_output=True)
    after = whole_files(out)
    for name in whole:
        for suffix in ("npz", "png"):
            assert after[f"{name}_depth.{suffix}"] == before[f"{name}_depth.{suffix}"]
    lines = list(lines_of(out / "manifest.jsonl"))
    last = [one for one in lines if one["type"] == "run"][-1]["run"]
    again = {one["frame"] for one in lines if one["run"] == last and one.get("outcome") == "done"}
    assert again == {one.name for one in given} - whole
    estimate_files(given, JOB, tmp_path / "calm", workers=2)
    assert contents(out) == contents(tmp_path / "calm")


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    frames(tmp_path / "in", 30)
    command = [*COMMAND, tmp_path / "in", *PINHOLE, "-m", "bm", "-o", tmp_path / "out"]
    with subprocess.Popen([*command, "--workers", "2"], stderr=subprocess.PIPE, text=True) as one:
        while not list((tmp_path / "out").glob("*.npz")):
            time.sleep(0.05)
        one.send_signal(signal.SIGINT)
        told = one.stderr.read()
    assert one.returncode == 130
    assert "--skip-done" in told
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
