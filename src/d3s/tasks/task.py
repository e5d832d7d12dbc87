"""One task, its outcome, and the limits that it is held to."""

import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from d3s.errors import D3SError, InputError

Job = Mapping[str, Any]
"""Everything that decides the result of a task beside the code, as JSON can hold it."""


FIRST_S = 300.0
"""Shortest limit of time for the first tasks of a run, in seconds."""


class WorkerEndedError(D3SError):
    """A worker that ended before its work was done; the reason is in the text."""


class Task(NamedTuple):
    """A job, the function that does it, and the name of both.

    The function goes to other processes by its name: it is a function of a module, or a
    `functools.partial` of one. Its result is something that JSON can hold.
    """

    key: str  # in outcomes and messages; unique in a run
    work: Callable[[Any], Any]
    job: Any

    def run(self) -> Any:
        """Do the job in this process."""
        return self.work(self.job)


class Kind(StrEnum):
    """Kinds of outcomes."""

    DONE = "done"
    REFUSED = "refused"  # by a `D3SError`, in words for the user
    FAILED = "failed"  # by any other exception: a fault of the program
    DIED = "died"  # with its worker, at every try
    TIMED_OUT = "timed out"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Outcome of one task.

    Parameters
    ----------
    key
        Key of the task.
    kind
        Whether it is done, and if not, in which way.
    result
        Result as JSON holds it: tuples are lists; None if it is not done.
    reason
        Why it is not done, as a sentence; empty if it is.
    error
        Name of the class of the exception, if there was one.
    trace
        Traceback of an exception that is no `D3SError`.
    tries
        Number of times that the task was begun.
    time_s
        Time of the last try in seconds.
    exception
        The exception itself, if it was raised in this process.
    """

    key: str
    kind: Kind
    result: Any = None
    reason: str = ""
    error: str = ""
    trace: str = ""
    tries: int = 1
    time_s: float = 0.0
    exception: Exception | None = None

    def raise_if_not_done(self) -> None:
        """Raise the exception of a task that is not done.

        Raises
        ------
        D3SError
            With the words of a task that was refused.
        WorkerEndedError
            When the task died, or timed out.
        RuntimeError
            With the traceback of a task that failed in another process.
        """
        if self.kind == Kind.DONE:
            return
        if self.exception is not None:
            raise self.exception
        if self.kind == Kind.REFUSED:
            raise D3SError(self.reason)
        if self.kind == Kind.FAILED:
            raise RuntimeError(f"{self.reason}\n{self.trace}")
        raise WorkerEndedError(f"{self.key}: {self.reason}")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of each task; they hold in other processes, and not for tasks in this one.

    Parameters
    ----------
    tries
        Number of times that a task is begun whose worker dies.
    time_s
        Longest time of a task in seconds; None for no limit. Kills from outside do not set it back.
        The first tasks of a run have at least `FIRST_S`: loops may have to be compiled.
    memory_bytes
        Most memory of a worker process; None for its share of nine tenths of the machine. On a
        cluster, None leaves memory to the settings of the cluster.

    Raises
    ------
    InputError
        When a value is not above 0.
    """

    tries: int = 3
    time_s: float | None = None
    memory_bytes: int | None = None

    def first(self) -> "Limits":
        """Limits of the first tasks of a run."""
        return self if self.time_s is None else replace(self, time_s=max(self.time_s, FIRST_S))

    def __post_init__(self) -> None:
        for name in ("tries", "time_s", "memory_bytes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name}={value!r} must be above 0.")


def attempt(key: str, work: Callable[[], Any]) -> Outcome:
    """Run the work of a task in this process, and return its outcome."""
    started = time.perf_counter()
    try:
        result = json.loads(json.dumps(work()))
    except D3SError as error:
        return Outcome(
            key=key,
            kind=Kind.REFUSED,
            reason=str(error),
            error=type(error).__name__,
            time_s=time.perf_counter() - started,
            exception=error,
        )
    except Exception as error:  # noqa: BLE001 - no error may stop other tasks
        return Outcome(
            key=key,
            kind=Kind.FAILED,
            reason=_unexpected(error),
            error=type(error).__name__,
            trace=traceback.format_exc(),
            time_s=time.perf_counter() - started,
            exception=error,
        )
    return Outcome(key=key, kind=Kind.DONE, result=result, time_s=time.perf_counter() - started)


def _unexpected(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"memory ran out ({error}). Try fewer workers." if str(error) else "memory ran out."
    return f"an error that d3s did not expect: {type(error).__name__}: {error}"


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Fields of an outcome that go from one process to another."""
    return {
        "kind": outcome.kind.value,
        "result": outcome.result,
        "reason": outcome.reason,
        "error": outcome.error,
        "trace": outcome.trace,
        "time_s": outcome.time_s,
    }


def from_json(key: str, fields: Mapping[str, Any], *, tries: int) -> Outcome:
    """Outcome of the fields of `as_json`.

    Parameters
    ----------
    key
        Key of the task.
    fields
        Fields of the outcome.
    tries
        Number of times that the task was begun.
    """
    return Outcome(key=key, tries=tries, **{**fields, "kind": Kind(fields["kind"])})
