"""Trials as jobs: all that decides one as JSON, done here or in other processes, and kept on disk.

A job that was done stays in the folder under a name that is the digest of the job and of the code
that does it. So the same sweep goes on where it was stopped, by whatever, and no trial of another
sweep, or of another version, is taken for one of its own.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from d3s.atomic import make_folder, write_text
from d3s.errors import D3SError, InputError
from d3s.record import shown
from d3s.runtime.parallel import allowed_cores
from d3s.types import Progress
from d3s.version import __version__

"""Called with how many pairs are done, and how many there are."""
Job = Mapping[str, Any]
"""What JSON can hold; `work` says which of `WORKS` it is for."""

WORKS = {
    "planes": ("d3s.evaluate.planes", "try_plane"),
    "scenes": ("d3s.evaluate.scenes", "try_scene"),
    "thresholds": ("d3s.evaluate.thresholds", "try_thresholds"),
    "league planes": ("d3s.evaluate.league", "try_plane"),
    "league scenes": ("d3s.evaluate.league", "try_scene"),
}
# What decides the figures of a trial.
_DECISIVE = ("evaluate", "scene", "estimate", "peers", "optics", "rig", "lanes.py")
# One thread in each process, of whatever library: there is a process for each core.
_ONE_THREAD = (
    "D3S_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def run_jobs(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """What became of each job, in the order of the jobs; the same for any number of workers.

    Parameters
    ----------
    jobs
        Each is one trial.
    workers
        Processes to share them among, each with one thread; one for each core if left. With 1 they
        are done in this very process, with as many threads as it has.
    folder
        Where finished ones are kept, and found again; nowhere if left.
    progress
        Called when it is known how many were found, and after each that is done.

    Raises
    ------
    InputError
        When there cannot be so many workers.
    OutputError
        When the folder cannot be written to.
    D3SError
        When a process ended before its job did.
    """
    count = checked_workers(workers)
    texts = [json.dumps(job, sort_keys=True) for job in jobs]
    answers = [None if folder is None else _kept(folder, text) for text in texts]
    pending = [number for number, answer in enumerate(answers) if answer is None]
    if progress is not None and len(pending) < len(texts):
        progress(len(texts) - len(pending), len(texts))
    count = min(count, len(pending))
    done = _elsewhere(texts, pending, count) if count > 1 else _here(texts, pending)
    with closing(done):
        for left, (number, answer) in zip(range(len(pending))[::-1], done, strict=True):
            answers[number] = answer
            if folder is not None:
                make_folder(folder)
                write_text(_place(folder, texts[number]), answer, overwrite=True)
            if progress is not None:
                progress(len(texts) - left, len(texts))
    return [json.loads(answer) for answer in answers if answer is not None]


def do(text: str) -> str:
    """Do one job: JSON in, JSON out."""
    job = json.loads(text)
    module, function = WORKS[job["work"]]
    return json.dumps(getattr(import_module(module), function)(job))


def checked_workers(workers: int | None) -> int:
    """How many processes there are to be.

    Raises
    ------
    InputError
        When it is no whole number from 1 to 1024.
    """
    if workers is None:
        return allowed_cores()
    if not isinstance(workers, int) or not 1 <= workers <= 1024:
        raise InputError(
            f"workers={shown(workers)} must be a whole number from 1 to 1024, or left for one "
            "process each core."
        )
    return int(workers)


@cache
def code_digest(*more: str) -> str:
    """Digest of all that decides the figures of a trial beside the trial: our code, and others'.

    `more` are further packages of ours, of what is made from trials.
    """
    digest = hashlib.sha256(" ".join(versions().values()).encode())
    root = Path(__file__).parents[1]
    for name in (*_DECISIVE, *more):
        place = root / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Of this package, and of those that decide figures with it."""
    import cv2

    return {
        "d3s": __version__,
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "numba": version("numba"),
        "opencv": cv2.__version__,
    }


def _place(folder: str | os.PathLike[str], text: str) -> Path:
    name = hashlib.sha256(f"{code_digest()}\n{text}".encode()).hexdigest()[:32]
    return Path(folder, f"{name}.json")


def _kept(folder: str | os.PathLike[str], text: str) -> str | None:
    """What became of a job before; None if it was not done, or the file is damaged."""
    try:
        answer = _place(folder, text).read_text()
        json.loads(answer)
    except (OSError, ValueError):
        return None
    return answer


def _here(texts: Sequence[str], pending: Sequence[int]) -> Generator[tuple[int, str], None, None]:
    for number in pending:
        yield number, do(texts[number])


def _elsewhere(
    texts: Sequence[str], pending: Sequence[int], count: int
) -> Generator[tuple[int, str], None, None]:
    """In other processes, in the order in which they are done."""
    waiting = deque(pending)
    answers: SimpleQueue[tuple[int, str | D3SError]] = SimpleQueue()
    workers = [_Worker() for _ in range(count)]
    threads = [
        Thread(target=_keep_busy, args=(worker, texts, waiting, answers), daemon=True)
        for worker in workers
    ]
    try:
        for thread in threads:
            thread.start()
        for _ in pending:
            number, answer = answers.get()
            if isinstance(answer, D3SError):
                raise answer
            yield number, answer
    finally:
        for worker in workers:
            worker.end()
        for thread in threads:
            thread.join()


def _keep_busy(
    worker: "_Worker",
    texts: Sequence[str],
    waiting: deque[int],
    answers: "SimpleQueue[tuple[int, str | D3SError]]",
) -> None:
    """Give a process one job after the other, until none is left."""
    while True:
        try:
            number = waiting.popleft()
        except IndexError:
            return
        try:
            answers.put((number, worker.ask(texts[number])))
        except D3SError as error:
            answers.put((number, error))
            return


class _Worker:
    """A process that does one job after the other, and ends when this one does.

    It is `d3s.evaluate.worker` and nothing of the program that called us: so a script needs no
    guard against being run again, as it would with `multiprocessing`.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "d3s.evaluate.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for us; we end them
        )

    def ask(self, text: str) -> str:
        """What becomes of a job."""
        questions, answers = self._process.stdin, self._process.stdout
        line = ""
        if questions is not None and answers is not None:
            try:
                questions.write(text + "\n")
                questions.flush()
                line = answers.readline()
            except (OSError, ValueError):  # the pipe is broken
                pass
        if not line.endswith("\n"):
            code = self._process.wait()
            raise D3SError(
                f"a process of the sweep ended with code {code} before its trial was done. If that "
                "is -9, memory ran out: try fewer workers. Otherwise its last words are above."
            )
        kind, answer = line[0], line[1:-1]
        if kind == "!":
            raise D3SError(json.loads(answer))
        return answer

    def end(self) -> None:
        """At once: it holds nothing that could be lost."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was still to be sent can be sent no more
                if pipe is not None:
                    pipe.close()
        self._process.wait()


def _environment() -> dict[str, str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": paths, **dict.fromkeys(_ONE_THREAD, "1")}
