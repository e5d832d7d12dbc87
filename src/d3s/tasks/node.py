"""The side of a Dask worker: one thread, limits that hold inside the task, and answers as JSON.

A limit that the client keeps would begin anew with every death of a worker. So a thread beside the
task looks at time and memory; past a limit it writes the reason into a note, and ends the worker.
Dask starts the worker and the task again, and the task finds the note of its earlier tries.
"""

import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions
from d3s.tasks.memory import in_words, process_bytes
from d3s.tasks.task import Kind, Outcome, as_json
from d3s.tasks.worker import THREADS, answer, prepare, quiet

_LOOK_S = 0.2
_NOTE_S = 1.0  # between two notes of the time of a long task
_SHARE_OF_MEMORY = 0.9  # of a worker's limit: Dask itself ends it at 0.95, without a reason


class Rules(NamedTuple):
    """Limits of a task on a cluster, and facts on its run."""

    run: str  # name of the run, for its notes
    digest: str  # of the package that the client has
    tries: int
    time_s: float | None
    memory_bytes: int | None
    notes: str | None  # folder for notes; that for temporary files if None


def describe(seen: Sequence[tuple[str, int]], written: Sequence[str]) -> dict[str, Any]:
    """Describe this worker, for the questions before the first task.

    Parameters
    ----------
    seen
        Files that the client sees, with their sizes in bytes.
    written
        Folders that results are written to.
    """
    missing = [path for path, size in seen if _size(path) != size]
    closed = [path for path in written if not os.access(path, os.W_OK | os.X_OK)]
    return {
        "versions": versions(),
        "digest": package_digest(),
        "missing": missing,
        "closed": closed,
    }


def call(text: str) -> str:
    """Run some tasks of a client one after the other, and return their outcomes as JSON.

    If a task ends this worker, Dask begins again with the first of them: tasks that were done are
    done again.

    Parameters
    ----------
    text
        Key, call and job of each task, and their common `Rules`, as JSON.
    """
    given = json.loads(text)
    rules = Rules(*given["rules"])
    _prepare()
    return json.dumps([_outcome(line, rules) for line in given["tasks"]])


def _outcome(line: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    """Fields of the outcome of one task, and the number of its tries."""
    if package_digest() != rules.digest:  # it joined the cluster after the questions
        reason = "this worker has another d3s than the client. Install the same one everywhere."
        return _told(Outcome(key="", kind=Kind.REFUSED, reason=reason), 1)
    notes = _Notes(rules, line["key"])
    earlier, spent_s = notes.read()
    final = _final(earlier, rules)
    if final is not None:
        notes.remove()
        return _told(final, len(earlier))
    prepare(line)
    with _watched(rules, notes, spent_s):
        fields = answer(line)
    notes.remove()
    return {**fields, "tries": len(earlier) + 1}


def _told(outcome: Outcome, tries: int) -> dict[str, Any]:
    return {**as_json(outcome), "tries": tries}


def _final(earlier: list[dict[str, Any]], rules: Rules) -> Outcome | None:
    """Outcome that earlier tries decide; None if the task is to be tried again."""
    for one in earlier:
        if one["kind"] == Kind.TIMED_OUT:
            return Outcome(key="", kind=Kind.TIMED_OUT, reason=f"{one['reason']}.")
    if len(earlier) < rules.tries:
        return None
    times = f", {len(earlier)} times" if len(earlier) > 1 else ""
    return Outcome(key="", kind=Kind.DIED, reason=f"{earlier[-1]['reason']}{times}.")


class _Notes:
    """Reasons for which earlier tries of a task were ended, in a file."""

    def __init__(self, rules: Rules, key: str) -> None:
        folder = Path(rules.notes or tempfile.gettempdir())
        name = hashlib.sha256(f"{rules.run}\n{key}".encode()).hexdigest()[:24]
        self._path = folder / f".d3s-note-{name}.jsonl"

    def read(self) -> tuple[list[dict[str, Any]], float]:
        """Reasons, and the time of all tries in seconds."""
        try:
            lines = [json.loads(line) for line in self._path.read_text().splitlines()]
        except (OSError, ValueError):
            return [], 0.0
        spent_s = sum(float(one["time_s"]) for one in lines if "time_s" in one)
        return [one for one in lines if "reason" in one], spent_s

    def add(self, kind: Kind, reason: str) -> None:
        """Note why this try is ended."""
        self._write({"kind": kind.value, "reason": reason})

    def add_time(self, time_s: float) -> None:
        """Note time that this try has taken, since the note before."""
        self._write({"time_s": time_s})

    def _write(self, line: dict[str, Any]) -> None:
        with suppress(OSError), self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def remove(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


@contextmanager
def _watched(rules: Rules, notes: _Notes, spent_s: float) -> Iterator[None]:
    """End this process if the block takes too long, or too much memory.

    Parameters
    ----------
    rules
        Limits.
    notes
        Where the reason goes; and, every second, the time so far: a kill does not set the limit
        back.
    spent_s
        Time of earlier tries.
    """
    memory_bytes = rules.memory_bytes or _share_of_worker()
    ended = threading.Event()
    begun = time.monotonic()
    deadline = None if rules.time_s is None else begun + rules.time_s - spent_s

    def watch() -> None:
        noted = begun
        while not ended.wait(_LOOK_S):
            now = time.monotonic()
            if deadline is not None and now - noted > _NOTE_S:
                notes.add_time(now - noted)
                noted = now
            if deadline is not None and now > deadline:
                notes.add(Kind.TIMED_OUT, f"took longer than the limit of {rules.time_s:g} s")
                os._exit(1)
            if memory_bytes is not None and process_bytes(os.getpid()) > memory_bytes:
                words = f"took more memory than the limit of {in_words(memory_bytes)}"
                notes.add(Kind.DIED, words)
                os._exit(1)

    if deadline is not None or memory_bytes is not None:
        threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _share_of_worker() -> int | None:
    """Part of the memory limit of this Dask worker; None if it has none."""
    from distributed import get_worker

    try:
        limit = get_worker().memory_manager.memory_limit
    except (ValueError, AttributeError):  # no worker, as in a test
        return None
    return int(_SHARE_OF_MEMORY * limit) if limit else None


@cache
def _prepare() -> None:
    """Let every library of this process compute with one thread; once in a process."""
    os.environ.update(THREADS)
    quiet()


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return -1
