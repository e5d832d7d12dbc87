"""Jobs here and in processes: one outcome each, whatever happens to the workers."""

import math
import os
import shutil
import sys
import time
from functools import partial
from itertools import count

import pytest

import poison
from d3s.batch.running import WorkerEndedError, run
from d3s.errors import D3SError, InputError


def outcomes(jobs, workers=2):
    """Results of jobs, or errors, in their order."""
    found = {one.number: one.error or one.result for one in run(poison.call, jobs, workers)}
    return [found[number] for number in range(len(jobs))]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_has_its_outcome(workers):
    jobs = [(poison.double, number) for number in range(5)]
    jobs += [(partial(poison.first_and_job, "a"), "b"), (math.sqrt, 4)]
    *found, refused, failed = outcomes([*jobs, (poison.refuse, "x"), (poison.fail, 1)], workers)
    assert found == [0, 2, 4, 6, 8, "a b", 2.0]
    assert isinstance(refused, InputError)
    assert str(refused) == "item=x must be there. Look for it."
    assert "ZeroDivisionError: of 1" in str(failed)
    assert "in fail" in failed.__notes__[0]


def test_bad_jobs_are_found_and_stop_no_other(tmp_path):
    jobs = [(poison.double, number) for number in range(20)]
    jobs[5:5] = [
        (poison.leave, 3),
        (poison.be_killed, 0),
        (poison.note_and_die_first, str(tmp_path / "notes")),
    ]
    found = outcomes(jobs)
    left, killed, third = found[5:8]
    assert found[:5] + found[8:] == [2 * number for number in range(20)]
    assert third == 3
    for one in (left, killed):
        assert isinstance(one, WorkerEndedError)
        assert str(one) == "its worker process died, 3 times, as when memory runs out."


def test_worker_has_one_thread_and_prints_nothing(capfd):
    before = os.environ.get("OMP_NUM_THREADS")
    names = ("D3S_THREADS", "OMP_NUM_THREADS")
    found = outcomes([*((poison.variable, name) for name in names), (poison.print_and_answer, 0)])
    assert found == ["1", "1", "answer"]
    assert os.environ.get("OMP_NUM_THREADS") == before
    assert capfd.readouterr().out == ""


def test_jobs_are_taken_as_there_is_room_and_closing_ends_the_work():
    taken = []

    def endless():
        for number in count():
            taken.append(number)
            yield poison.hang, 600 if number else 0

    work = run(poison.call, endless(), 2)
    assert next(work).number == 0
    started = time.monotonic()
    work.close()
    assert time.monotonic() - started < 20
    assert len(taken) < 8


def test_workers_that_cannot_begin_are_told(monkeypatch):
    false = shutil.which("false")
    monkeypatch.setattr("multiprocessing.spawn.get_executable", lambda: os.fsencode(false))
    with pytest.raises(WorkerEndedError, match=r"5 worker processes in a row died.*--workers 1"):
        outcomes([(poison.double, 1)])


def test_a_script_without_a_guard_is_told_to_have_one(tmp_path):
    import subprocess

    script = tmp_path / "script.py"
    lines = "import math", "from d3s.batch.running import run", "list(run(math.sqrt, [4], 2))"
    script.write_text("\n".join(lines))
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert 'needs `if __name__ == "__main__":`' in told.stderr.splitlines()[-1]


def test_functions_of_functions_cannot_go_elsewhere():
    (one,) = run(lambda job: job, [1], 2)
    assert isinstance(one.error, D3SError)
    assert "pickle" in str(one.error)
