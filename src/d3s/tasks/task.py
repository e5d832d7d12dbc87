"""One task and its outcome; and functions by their names, for another process to call."""

import importlib
import json
import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial, reduce
from typing import Any, NamedTuple

from d3s.errors import D3SError, InputError

Job = Mapping[str, Any]
"""Everything that decides the result of a task beside the code, as JSON can hold it."""


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


class OutcomeKind(StrEnum):
    """Kinds of outcomes."""

    DONE = "done"
    REFUSED = "refused"  # by a `D3SError`, in words for the user
    FAILED = "failed"  # by any other exception: a fault of the program
    DIED = "died"  # with its worker, at every try


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
    kind: OutcomeKind
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
            When the task died with its worker.
        RuntimeError
            With the traceback of a task that failed in another process.
        """
        if self.kind == OutcomeKind.DONE:
            return
        if self.exception is not None:
            raise self.exception
        if self.kind == OutcomeKind.REFUSED:
            raise D3SError(self.reason)
        if self.kind == OutcomeKind.FAILED:
            raise RuntimeError(f"{self.reason}\n{self.trace}")
        raise WorkerEndedError(f"{self.key}: {self.reason}")


def attempt(key: str, work: Callable[[], Any]) -> Outcome:
    """Run the work of a task in this process, and return its outcome."""
    started = time.perf_counter()
    try:
        result = json.loads(json.dumps(work()))
    except Exception as error:  # noqa: BLE001 - no error may stop other tasks
        is_told = isinstance(error, D3SError)
        return Outcome(
            key=key,
            kind=OutcomeKind.REFUSED if is_told else OutcomeKind.FAILED,
            reason=str(error) if is_told else _unexpected(error),
            error=type(error).__name__,
            trace="" if is_told else traceback.format_exc(),
            time_s=time.perf_counter() - started,
            exception=error,
        )
    return Outcome(
        key=key, kind=OutcomeKind.DONE, result=result, time_s=time.perf_counter() - started
    )


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
    """Outcome of the fields of `as_json`, of a task that was begun `tries` times."""
    return Outcome(key=key, tries=tries, **{**fields, "kind": OutcomeKind(fields["kind"])})


def call_of(work: Callable[[Any], Any]) -> dict[str, Any]:
    """Name of a function of a module and its first arguments, as JSON holds them.

    Raises
    ------
    InputError
        When it is neither a function of a module nor a `functools.partial` of one.
    """
    if isinstance(work, partial):
        if work.keywords:
            raise InputError(f"{work!r} has arguments by name. Give them by place, or in the job.")
        return {"name": _name(work.func), "first": [_argument(one) for one in work.args]}
    return {"name": _name(work), "first": []}


def function_of(call: dict[str, Any]) -> Callable[[Any], Any]:
    """Function of `call_of`, imported."""
    first = [_named(one["name"]) if "name" in one else one["value"] for one in call["first"]]
    function = _named(call["name"])
    return partial(function, *first) if first else function


def _argument(value: Any) -> dict[str, Any]:
    if isinstance(value, os.PathLike):
        return {"value": os.fspath(value)}
    if callable(value):
        return {"name": _name(value)}
    return {"value": value}


def _name(thing: Any) -> str:
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if module in (None, "__main__") or not name or "<" in name:
        raise InputError(
            f"{thing!r} cannot be called in another process: it must be a function of a module, "
            "not of a script or of another function."
        )
    return f"{module}:{name}"


def _named(name: str) -> Any:
    module, _, path = name.partition(":")
    return reduce(getattr, path.split("."), importlib.import_module(module))
