"""Tasks of a sweep, one for each pair: run here or in other processes, and kept on disk.

The result of a task is a file named by a digest of its job, of the source of this package and of
the versions of the libraries that compute with it. So the same sweep resumes wherever it was
stopped, and results of another sweep or of another version are never taken for its own.
"""

import hashlib
import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.atomic import make_folder, write_text
from d3s.errors import InputError
from d3s.record import short_repr
from d3s.runtime.digest import package_digest
from d3s.runtime.parallel import allowed_cores
from d3s.runtime.processes import WorkerEndedError, call_in_processes
from d3s.types import Progress
from d3s.version import __version__

Job = Mapping[str, Any]
"""Everything that decides the result of a task beside the code, as JSON can hold it."""


class Task(NamedTuple):
    """A job and the function that does it.

    Both go to other processes: the function is a function of a module, or a `functools.partial` of
    one, and its result is something that JSON can hold. `job["work"]` names the function in the
    digest of a kept result.
    """

    work: Callable[[Job], Any]
    job: Job

    def run(self) -> str:
        """Run the task and return its result as JSON."""
        return json.dumps(self.work(self.job))


def run_tasks(
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """Run tasks, or read their kept results.

    Parameters
    ----------
    tasks
        One for each pair.
    workers
        Number of processes, each with one thread; one for each core if left out. With 1, tasks run
        in this process, with as many threads as it has.
    folder
        Where results are kept and found again; nowhere if left out.
    progress
        Called with the number of finished tasks, and of all tasks: once when some were found, and
        after each that is finished.

    Returns
    -------
    Results in the order of the tasks, the same for any number of workers.

    Raises
    ------
    InputError
        When `workers` is not a whole number from 1 to 1024.
    OutputError
        When the folder cannot be written to.
    WorkerEndedError
        When a process ends before its task is finished; results of others are kept.
    """
    count = checked_workers(workers)
    paths = [None if folder is None else _kept_path(folder, task.job) for task in tasks]
    answers = [None if path is None else _kept_text(path) for path in paths]
    pending = [number for number, answer in enumerate(answers) if answer is None]
    finished = len(tasks) - len(pending)
    if progress is not None and finished:
        progress(finished, len(tasks))
    with closing(_finished([tasks[number] for number in pending], count)) as results:
        try:
            for index, answer in results:
                number = pending[index]
                answers[number] = answer
                path = paths[number]
                if path is not None:
                    make_folder(path.parent)
                    write_text(path, answer, overwrite=True)
                finished += 1
                if progress is not None:
                    progress(finished, len(tasks))
        except WorkerEndedError as error:
            if folder is None:
                raise
            raise WorkerEndedError(
                f"{error} {finished} finished trials are kept in {Path(folder)}: the same call "
                "goes on from there."
            ) from error
    return [json.loads(answer) for answer in answers if answer is not None]


def _finished(tasks: Sequence[Task], workers: int) -> Generator[tuple[int, str], None, None]:
    """Index and result of each task as it is finished."""
    if min(workers, len(tasks)) > 1:
        yield from call_in_processes(Task.run, tasks, min(workers, len(tasks)))
        return
    for index, task in enumerate(tasks):
        yield index, task.run()


def checked_workers(workers: int | None) -> int:
    """Number of processes: as given, or one for each core.

    Raises
    ------
    InputError
        When it is not a whole number from 1 to 1024.
    """
    if workers is None:
        return allowed_cores()
    if not isinstance(workers, int) or not 1 <= workers <= 1024:
        raise InputError(
            f"workers={short_repr(workers)} must be a whole number from 1 to 1024, or left for one "
            "process each core."
        )
    return int(workers)


@cache
def code_digest() -> str:
    """Digest of our source and of library versions: the cache key of everything computed."""
    text = "\n".join((package_digest(), *versions().values()))
    return hashlib.sha256(text.encode()).hexdigest()


def versions() -> dict[str, str]:
    """Versions of this package and of the libraries that decide figures."""
    import cv2

    return {
        "d3s": __version__,
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "numba": version("numba"),
        "opencv": cv2.__version__,
    }


def _kept_path(folder: str | os.PathLike[str], job: Job) -> Path:
    text = f"{code_digest()}\n{json.dumps(job, sort_keys=True)}"
    return Path(folder, f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json")


def _kept_text(path: Path) -> str | None:
    """Result of a task from an earlier run; None if there is none, or the file is damaged."""
    try:
        answer = path.read_text()
        json.loads(answer)
    except (OSError, ValueError):
        return None
    return answer
