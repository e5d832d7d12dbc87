"""Tasks in this process, one after the other."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from d3s.tasks.task import Limits, Outcome, Task, attempt


@dataclass(frozen=True)
class Here:
    """Place of the calling process, with all its threads. Limits do not hold here."""

    def outcomes(self, tasks: Iterable[Task], limits: Limits) -> Generator[Outcome, None, None]:
        """Run tasks one after the other.

        Parameters
        ----------
        tasks
            Tasks, taken one by one.
        limits
            Not held: a process cannot end itself and go on.
        """
        for task in tasks:
            yield attempt(task.key, task.run)
