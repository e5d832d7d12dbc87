"""Program of a worker process: reads jobs from standard input, and answers each with a line.

Started by `d3s.tasks.processes`, with one thread for every library that computes. It ends at once,
in the middle of its work, when its input ends: the process that started it is done, or was killed.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from logging import ERROR, getLogger
from queue import SimpleQueue
from typing import Any

from d3s.runtime.allocator import keep_freed_memory
from d3s.tasks.names import function_of
from d3s.tasks.task import as_json, attempt

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
    quiet()
    answers.write(b'{"ready": true}\n')
    for text in _lines(jobs):
        line = json.loads(text)
        prepare(line)
        answers.write(b'{"begun": true}\n')
        answers.write(f"{json.dumps(answer(line))}\n".encode())


def prepare(line: Mapping[str, Any]) -> None:
    """Import the function of a line: that takes seconds in a new worker, which are not its time."""
    with suppress(Exception):  # `answer` meets the same error, and tells it
        function_of(line["call"])


def answer(line: Mapping[str, Any]) -> dict[str, Any]:
    """Answer of a worker to a line: the outcome of the call that it names, with its job."""
    return as_json(attempt("", lambda: function_of(line["call"])(line["job"])))


def quiet() -> None:
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
