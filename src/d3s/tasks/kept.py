"""Results of tasks that are kept on disk, and found again by the same call.

The result of a task is a file named by a digest of its job, of the source of this package and of
the versions of the libraries that compute with it. So the same work resumes wherever it was
stopped, and results of other work or of another version are never taken for its own.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder, write_text
from d3s.errors import D3SError
from d3s.runtime.versions import code_digest
from d3s.tasks.run import Workers, place_of, run
from d3s.tasks.task import Limits, Task, WorkerEndedError
from d3s.types import Progress


def results(
    tasks: Sequence[Task],
    *,
    workers: Workers = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    limits: Limits | None = None,
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
    limits
        Tries, time and memory of each task; three tries if left out.

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
    with closing(run(pending, place, limits=limits or Limits())) as outcomes:
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
