"""`run`: outcomes of tasks at a place, as they come; `results`: kept on disk and found again.

A kept result is a file named by a digest of its job, of the source of this package and of the
versions of the libraries that compute with it. So the same work resumes wherever it was stopped,
and results of other work or of another version are never taken for its own.
"""

import hashlib
import json
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder, write_text
from d3s.errors import D3SError, InputError
from d3s.record import short_repr
from d3s.runtime.parallel import allowed_cores
from d3s.runtime.versions import code_digest
from d3s.tasks.cluster import Cluster
from d3s.tasks.processes import Processes
from d3s.tasks.task import Outcome, Task, WorkerEndedError, attempt
from d3s.types import Progress


@dataclass(frozen=True)
class Here:
    """Place of the calling process, with all its threads."""

    def outcomes(self, tasks: Iterable[Task]) -> Generator[Outcome, None, None]:
        """Run tasks one after the other."""
        for task in tasks:
            yield attempt(task.key, task.run)


Where = Here | Processes | Cluster
"""A place where tasks run."""

Workers = int | Here | Processes | Cluster | None
"""Number of processes, or a place; None for one process for each core."""

_MOST_WORKERS = 1024


def run(tasks: Iterable[Task], where: Where | None = None) -> Generator[Outcome, None, None]:
    """Run tasks at a place, and yield the outcome of each as it comes.

    Every task has one outcome; one that dies with its worker is tried three times. Tasks are taken
    from the iterable as there is room for them, so it may be long. Closing the generator ends the
    work.

    Parameters
    ----------
    tasks
        Tasks with distinct keys.
    where
        `Here()`, `Processes(count)` or `Cluster(address)`; this process if left out.

    Examples
    --------
    >>> import math
    >>> from d3s.tasks import Task, run
    >>> [one.result for one in run([Task("two", math.sqrt, 4), Task("three", math.sqrt, 9)])]
    [2.0, 3.0]
    """
    return (where or Here()).outcomes(tasks)


def place_of(workers: Workers = None, *, tasks: int | None = None) -> Where:
    """Place that a number of workers means: 1 is this process; None is one process for each core.

    Parameters
    ----------
    workers
        Number of processes, each with one thread; or a place, which is returned.
    tasks
        Number of tasks, if it is known: there are no more processes than tasks.

    Raises
    ------
    InputError
        When the number is not a whole number from 1 to 1024.
    """
    if isinstance(workers, Here | Processes | Cluster):
        return workers
    count = allowed_cores() if workers is None else _checked(workers)
    if tasks is not None:
        count = min(count, tasks)
    return Processes(count) if count > 1 else Here()


def _checked(workers: Any) -> int:
    if not isinstance(workers, int) or not 1 <= workers <= _MOST_WORKERS:
        raise InputError(
            f"workers={short_repr(workers)} must be a whole number from 1 to {_MOST_WORKERS}, or "
            "left for one process each core."
        )
    return int(workers)


def results(
    tasks: Sequence[Task],
    *,
    workers: Workers = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """Results of all tasks, in their order: run now, or kept from before.

    Parameters
    ----------
    tasks
        Tasks with distinct keys.
    workers
        Number of processes, each with one thread; one for each core if left out. With 1, tasks run
        in this process, with as many threads as it has. Or a place of `d3s.tasks`, such as
        `Cluster("tcp://10.0.0.1:8786")`.
    folder
        Where results are kept and found again; nowhere if left out.
    progress
        Called with the number of finished tasks, and of all tasks: once when some were found, and
        after each that is finished.

    Returns
    -------
    Results in the order of the tasks, the same at every place.

    Raises
    ------
    InputError
        When `workers` is not a whole number from 1 to 1024.
    OutputError
        When the folder cannot be written to.
    WorkerEndedError
        When a task dies with its worker, at every try; results of others are kept.
    """
    paths = {one.key: None if folder is None else kept_path(folder, one.job) for one in tasks}
    answers = {key: None if path is None else _kept_text(path) for key, path in paths.items()}
    pending = [one for one in tasks if answers[one.key] is None]
    place = place_of(workers, tasks=len(pending))
    finished = len(tasks) - len(pending)
    if progress is not None and finished:
        progress(finished, len(tasks))
    with closing(run(pending, place)) as outcomes:
        for outcome in outcomes:
            try:
                outcome.raise_if_not_done()
            except WorkerEndedError as error:
                raise WorkerEndedError(f"{error}{_kept_words(folder, finished)}") from error
            answer = json.dumps(outcome.result)
            answers[outcome.key] = answer
            path = paths[outcome.key]
            if path is not None:
                make_folder(path.parent)
                write_text(path, answer, overwrite=True)
            finished += 1
            if progress is not None:
                progress(finished, len(tasks))
    missing = [one.key for one in tasks if answers[one.key] is None]
    if missing:
        raise D3SError(f"{missing[0]} has no outcome. Run the same again.")
    return [json.loads(answers[one.key] or "") for one in tasks]


def kept_path(folder: str | os.PathLike[str], job: Any) -> Path:
    """File of the kept result of a job."""
    text = f"{code_digest()}\n{json.dumps(job, sort_keys=True)}"
    return Path(folder, f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json")


def _kept_words(folder: str | os.PathLike[str] | None, finished: int) -> str:
    if folder is None:
        return ""
    return (
        f" {finished} finished results are kept in {Path(folder)}: the same call goes on from "
        "there."
    )


def _kept_text(path: Path) -> str | None:
    """Result of a task from an earlier run; None if there is none, or the file is damaged."""
    try:
        answer = path.read_text()
        json.loads(answer)
    except (OSError, ValueError):
        return None
    return answer
