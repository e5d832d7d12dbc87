"""The side of a worker: a process of this machine, or one of a Dask cluster.

A process is started by `d3s.tasks.processes`, with one thread for every library that computes. It
reads jobs from standard input, and answers each with a line. It ends at once, in the middle of its
work, when its input ends: the process that started it is done, or was killed.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from logging import ERROR, getLogger
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from d3s.runtime.allocator import keep_freed_memory
from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions
from d3s.tasks.task import Outcome, OutcomeKind, as_json, attempt, function_of

THREADS = dict.fromkeys(
    (
        "D3S_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)
"""Environment in which every library computes with one thread."""


def main() -> None:
    """Answer jobs until the input ends."""
    # Answers go to the standard output that the process was given; text that a library prints goes
    # to standard error.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    jobs: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(jobs,), daemon=True).start()
    _quiet()
    answers.write(b'{"ready": true}\n')
    for text in _lines(jobs):
        answers.write(f"{json.dumps(_answer(json.loads(text)))}\n".encode())


def describe(seen: Sequence[tuple[str, int]], written: Sequence[str]) -> dict[str, Any]:
    """Describe this worker of a cluster, for the questions before the first task.

    `seen` has files that the client sees, with their sizes in bytes; `written` has folders that
    results are written to.
    """
    return {
        "versions": versions(),
        "digest": package_digest(),
        "missing": [path for path, size in seen if _size(path) != size],
        "closed": [path for path in written if not os.access(path, os.W_OK | os.X_OK)],
    }


def call(text: str) -> str:
    """Run tasks of the client of a cluster one after the other; returns their outcomes as JSON.

    If a task ends this worker, Dask begins again with the first of them: tasks that were done are
    done again.
    """
    given = json.loads(text)
    _one_thread()
    if package_digest() != given["digest"]:  # it joined the cluster after the questions
        reason = "this worker has another d3s than the client. Install the same one everywhere."
        refused = as_json(Outcome(key="", kind=OutcomeKind.REFUSED, reason=reason))
        return json.dumps([refused] * len(given["tasks"]))
    return json.dumps([_answer(line) for line in given["tasks"]])


def _answer(line: Mapping[str, Any]) -> dict[str, Any]:
    """Outcome of the call that a line names, with its job."""
    return as_json(attempt("", lambda: function_of(line["call"])(line["job"])))


@cache
def _one_thread() -> None:
    """Let every library of this process compute with one thread; once in a process."""
    os.environ.update(THREADS)
    _quiet()


def _quiet() -> None:
    """Let OpenCV compute with one thread, keep freed memory, and say only what is wrong.

    The process that hands out the tasks has already said that loops are compiled.
    """
    keep_freed_memory()
    getLogger("d3s").setLevel(ERROR)
    import cv2

    cv2.setNumThreads(1)


def _read(jobs: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)


def _lines(jobs: "SimpleQueue[str]") -> Iterator[str]:
    while True:
        yield jobs.get()


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return -1
