"""Tasks here and in processes: one outcome each, whatever happens to the workers."""

import math
import os
import shutil
import sys
import time
from functools import partial
from itertools import count

import pytest

import poison
from d3s.errors import D3SError, InputError
from d3s.tasks import (
    Here,
    Outcome,
    OutcomeKind,
    Processes,
    Task,
    WorkerEndedError,
    run,
)


def outcomes(tasks, where) -> dict[str, Outcome]:
    found = list(run(tasks, where))
    assert len({one.key for one in found}) == len(found)
    return {one.key: one for one in found}


@pytest.mark.parametrize("where", [Here(), Processes(2)])
def test_every_task_has_its_outcome(where):
    tasks = [Task(str(number), poison.double, number) for number in range(5)]
    tasks += [Task("refused", poison.refuse, "x"), Task("failed", poison.fail, 1)]
    tasks += [Task("two", partial(poison.first_and_job, "a"), "b"), Task("math", math.sqrt, 4)]
    found = outcomes(tasks, where)
    assert [found[str(number)].result for number in range(5)] == [0, 2, 4, 6, 8]
    assert found["two"].result == "a b"
    assert found["math"].result == 2.0
    assert found["refused"].kind == OutcomeKind.REFUSED
    assert found["refused"].reason == "item=x must be there. Look for it."
    assert found["refused"].error == "InputError"
    assert found["failed"].kind == OutcomeKind.FAILED
    assert "ZeroDivisionError: of 1" in found["failed"].reason
    assert "in fail" in found["failed"].trace


def test_bad_tasks_are_named_with_their_reasons_and_stop_no_other(tmp_path):
    bad = {
        "leaves": Task("leaves", poison.leave, 3),
        "killed": Task("killed", poison.be_killed, 0),
        "third": Task("third", poison.note_and_die_first, str(tmp_path / "notes")),
    }
    good = [Task(str(number), poison.double, number) for number in range(20)]
    tasks = [*good[:5], *bad.values(), *good[5:]]
    found = outcomes(tasks, Processes(2))
    assert all(found[one.key].result == 2 * one.job for one in good)
    assert found["third"].result == found["third"].tries == 3
    reasons = {key: (found[key].kind, found[key].reason, found[key].tries) for key in bad}
    del reasons["third"]
    assert reasons == {
        "leaves": (OutcomeKind.DIED, "ended its worker with code 3, 3 times.", 3),
        "killed": (
            OutcomeKind.DIED,
            "was killed in its worker, as happens when memory runs out, 10 times.",
            10,
        ),
    }


def test_worker_has_one_thread_and_answers_for_nothing_that_is_printed():
    tasks = [Task(name, poison.variable, name) for name in ("D3S_THREADS", "OMP_NUM_THREADS")]
    found = outcomes([*tasks, Task("prints", poison.print_and_answer, 0)], Processes(1))
    assert found["D3S_THREADS"].result == found["OMP_NUM_THREADS"].result == "1"
    assert found["prints"].result == "answer"
    assert os.environ.get("OMP_NUM_THREADS") != "1" or "D3S_THREADS" not in os.environ


def test_tasks_are_taken_as_there_is_room_and_closing_ends_the_work():
    taken = []

    def endless():
        for number in count():
            taken.append(number)
            yield Task(str(number), poison.hang, 600 if number else 0)

    work = run(endless(), Processes(2))
    assert next(work).key == "0"
    started = time.monotonic()
    work.close()
    assert time.monotonic() - started < 20
    assert len(taken) < 8


def test_workers_that_cannot_begin_are_told(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(D3SError, match="a worker process cannot be started: No such file"):
        list(run([Task("a", poison.double, 1)], Processes(2)))
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    words = r"10 worker processes in a row ended .* with code 1 before they began.*--workers 1"
    with pytest.raises(WorkerEndedError, match=words):
        list(run([Task("a", poison.double, 1)], Processes(2)))


def test_functions_of_scripts_cannot_go_elsewhere():
    with pytest.raises(InputError, match="must be a function of a module"):
        list(run([Task("a", lambda job: job, 1)], Processes(2)))
    with pytest.raises(InputError, match="has arguments by name"):
        list(run([Task("a", partial(poison.double, number=1), 1)], Processes(2)))
