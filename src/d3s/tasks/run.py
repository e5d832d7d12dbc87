"""`run`: outcomes of tasks, as they come; and the places where tasks run."""

from collections.abc import Generator, Iterable
from typing import Any

from d3s.errors import InputError
from d3s.record import short_repr
from d3s.runtime.parallel import allowed_cores
from d3s.tasks.cluster import Cluster
from d3s.tasks.here import Here
from d3s.tasks.processes import Processes
from d3s.tasks.task import Limits, Outcome, Task

Where = Here | Processes | Cluster
"""A place where tasks run."""

Workers = int | Here | Processes | Cluster | None
"""Number of processes, or a place; None for one process for each core."""

_MOST_WORKERS = 1024
_NO_LIMITS = Limits()


def run(
    tasks: Iterable[Task], where: Where | None = None, *, limits: Limits = _NO_LIMITS
) -> Generator[Outcome, None, None]:
    """Run tasks at a place, and yield the outcome of each as it comes.

    Every task has one outcome. Tasks are taken from the iterable as there is room for them, so it
    may be long. Closing the generator ends the work.

    Parameters
    ----------
    tasks
        Tasks with distinct keys.
    where
        `Here()`, `Processes(count)` or `Cluster(address)`; this process if left out.
    limits
        Tries, time and memory of each task.

    Examples
    --------
    >>> import math
    >>> from d3s.tasks import Task, run
    >>> [one.result for one in run([Task("two", math.sqrt, 4), Task("three", math.sqrt, 9)])]
    [2.0, 3.0]
    """
    return (where or Here()).outcomes(tasks, limits)


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
