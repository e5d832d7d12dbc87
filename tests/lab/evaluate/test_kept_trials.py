"""Trials in several processes, and trials that are found again."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import poison
from d3s.batch import running
from d3s.batch.running import results
from d3s.errors import D3SError
from d3s.lab.evaluate import PlaneSweep, SceneSweep, evaluate_planes

TINY = PlaneSweep(depths_m=(0.6, 0.9), patterns=("brick", "grass"), shape=(93, 220))
FEW = SceneSweep(count=2, shape=(93, 220))


def timeless(found):
    return [{**row, "time_s": 0.0} for row in found.rows], found.duels


def count_runs(monkeypatch, done):
    """Note each job that is done in this process."""
    real = running._attempt
    monkeypatch.setattr(running, "_attempt", lambda *job: done.append(job) or real(*job))


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def alone():
    return evaluate_planes(("sgbm", "bm"), sweep=TINY, workers=1)


def test_any_number_of_workers_gives_the_same(alone, tmp_path):
    shared = evaluate_planes(("sgbm", "bm"), sweep=TINY, workers=2, folder=tmp_path)
    assert timeless(shared) == timeless(alone)
    assert len(names(tmp_path)) == 4


def test_what_was_done_is_not_done_again(alone, tmp_path, monkeypatch):
    def first(methods, **more):
        return evaluate_planes(methods, workers=1, folder=tmp_path, **more)

    full = first(("sgbm", "bm"), sweep=TINY)
    assert timeless(full) == timeless(alone)
    before = names(tmp_path)
    lost = sorted(tmp_path.iterdir())[:2]
    lost[0].unlink()
    lost[1].write_text(lost[1].read_text()[:-5])  # as if the disk had lost its end
    done, seen = [], []
    count_runs(monkeypatch, done)
    again = first(
        ("sgbm", "bm"), sweep=TINY, progress=lambda finished, total: seen.append((finished, total))
    )
    assert len(done) == 2
    assert seen == [(2, 4), (3, 4), (4, 4)]
    assert timeless(again) == timeless(alone)
    assert names(tmp_path) == before
    # Each other question is another trial, in the same folder.
    for methods, sweep in (
        (("sgbm", "bm"), TINY.replace(noise=0.02)),
        (("sgbm", "bm"), TINY.replace(seed=1)),
        (("sgbm", "bm:block_size_px=11"), TINY),
    ):
        done.clear()
        first(methods, sweep=sweep.replace(patterns=("brick",)))
        assert len(done) == 2
    monkeypatch.setattr(running, "code_digest", lambda: "another version")
    done.clear()
    first(("sgbm", "bm"), sweep=TINY)
    assert len(done) == 4


SCRIPT = """
import signal, sys
from d3s.lab.evaluate import PlaneSweep, evaluate_planes
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the shell thinks of it
sweep = PlaneSweep(depths_m=(0.5, 0.6, 0.7), patterns=("brick", "grass"), shape=(93, 220))
evaluate_planes("bm", sweep=sweep, workers=2, folder=sys.argv[1],
                progress=lambda done, total: print(done, flush=True))
"""


def started(folder):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_children_end_with_their_parent(tmp_path, how):
    with started(tmp_path) as child:
        child.stdout.readline()
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(child.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        children = [int(word) for word in listed.stdout.split()]
        assert len(children) == 3  # workers, and Python's own tracker of resources
        child.send_signal(how)
        if how == signal.SIGINT:
            assert "KeyboardInterrupt" in child.stderr.read()
    deadline_s = time.monotonic() + 20
    while any(is_running(one) for one in children):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def is_running(process):
    """Whether it is there, and not only its name in the table of those that nobody waited for."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_task_that_dies_is_told_and_loses_no_finished_result(tmp_path):
    jobs = [["leave", 3], ["double", 1], ["leave", 4]]
    with pytest.raises(D3SError, match=r"job [02]: its worker process died, 3 times") as caught:
        results(poison.by_name, jobs, workers=2, folder=tmp_path)
    found = [json.loads(path.read_text()) for path in tmp_path.iterdir()]
    assert set(found) <= {2.0}
    assert f"{len(found)} finished results are kept in {tmp_path}" in str(caught.value)
