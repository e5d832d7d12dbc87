"""Tasks in processes of this machine.

A worker is a Python of its own, never a copy of this process; it does not import the caller's
script, so a script needs no `if __name__ == "__main__"`. Jobs and answers are lines of JSON in
pipes. A worker that dies takes only its own task with it: another one is started, and the task is
tried again.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, cast

from d3s.errors import D3SError
from d3s.tasks.task import Outcome, OutcomeKind, Task, WorkerEndedError, call_of, from_json
from d3s.tasks.worker import THREADS

_TRIES = 3  # of a task that ends its worker
_MOST_KILLS = 10  # of the workers of one task, from outside or when memory runs out
_MOST_DEAD_STARTS = 10  # workers in a row that die by themselves before they are ready
_MOST_KILLED_STARTS = 100  # and of workers that are killed from outside meanwhile
_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)
_END_S = 5.0  # for a worker without work to end by itself
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True)
class Processes:
    """Worker processes of this machine, each with one thread."""

    count: int

    def outcomes(self, tasks: Iterable[Task]) -> Generator[Outcome, None, None]:
        """Run tasks, taken as workers become free, and yield their outcomes as they come.

        Loops that are not compiled yet are compiled once: a worker waits for a loop that another
        one is compiling. Closing the generator ends all workers at once.

        Raises
        ------
        WorkerEndedError
            When workers die before they are ready for a task.
        """
        team = _Team(self.count)
        try:
            yield from team.outcomes(iter(tasks))
        finally:
            team.end()


@dataclass
class _Try:
    """A task, and how often it was begun."""

    task: Task
    tries: int = 0
    started: float = 0.0
    kills: int = 0  # of its workers from outside, which may be no fault of the task
    why_died: str = ""  # reason of the last death that was its own


@dataclass(eq=False)
class _Worker:
    """A worker process, and what it is doing."""

    process: "subprocess.Popen[bytes]"
    read: bytearray = field(default_factory=bytearray)
    is_ready: bool = False
    doing: _Try | None = None

    @property
    def input(self) -> IO[bytes]:
        """Pipe of jobs to the process."""
        return cast(IO[bytes], self.process.stdin)

    @property
    def output(self) -> IO[bytes]:
        """Pipe of its answers."""
        return cast(IO[bytes], self.process.stdout)


class _Team:
    """Workers, and the tasks that wait for one."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._waiting: deque[_Try] = deque()
        self._dead_starts = self._killed_starts = 0

    def outcomes(self, tasks: Iterator[Task]) -> Iterator[Outcome]:
        """Outcomes of all tasks, as they come."""
        while self._take(tasks) or any(one.doing for one in self._workers):
            self._start_workers()
            self._hand_out()
            for key, _ in self._selector.select():
                yield from self._heard(key.data)

    def end(self) -> None:
        """End all workers: idle ones by the end of their input, busy ones at once."""
        for worker in self._workers:
            if worker.doing or not worker.is_ready:
                worker.process.kill()
            with suppress(OSError):
                worker.input.close()
        for worker in self._workers:
            try:
                worker.process.wait(_END_S)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            worker.output.close()
        self._workers.clear()
        self._selector.close()

    def _take(self, tasks: Iterator[Task]) -> bool:
        """Let as many tasks wait as there may be workers; whether any waits."""
        while len(self._waiting) < self._count:
            task = next(tasks, None)
            if task is None:
                break
            self._waiting.append(_Try(task))
        return bool(self._waiting)

    def _start_workers(self) -> None:
        busy = sum(one.doing is not None for one in self._workers)
        while len(self._workers) < min(self._count, busy + len(self._waiting)):
            worker = _Worker(_start())
            self._workers.append(worker)
            self._selector.register(worker.output, selectors.EVENT_READ, worker)

    def _hand_out(self) -> None:
        for worker in self._workers:
            if self._waiting and worker.is_ready and worker.doing is None:
                self._give(worker, self._waiting.popleft())

    def _give(self, worker: _Worker, one: _Try) -> None:
        line = json.dumps({"call": call_of(one.task.work), "job": one.task.job})
        one.tries, one.started = one.tries + 1, time.monotonic()
        worker.doing = one
        with suppress(BrokenPipeError):  # it has died, which its output will tell
            worker.input.write(f"{line}\n".encode())
            worker.input.flush()

    def _heard(self, worker: _Worker) -> Iterator[Outcome]:
        """Outcome of what a worker has written, if it has finished a task or has died."""
        piece = os.read(worker.output.fileno(), _PIECE_BYTES)
        if not piece:
            yield from self._buried(worker)
            return
        worker.read += piece
        while (end := worker.read.find(b"\n")) >= 0:
            line = json.loads(worker.read[:end])
            del worker.read[: end + 1]
            if "ready" in line:
                worker.is_ready = True
                self._dead_starts = self._killed_starts = 0
            elif worker.doing is not None:
                one, worker.doing = worker.doing, None
                yield from_json(one.task.key, line, tries=one.tries)

    def _buried(self, worker: _Worker) -> Iterator[Outcome]:
        """Outcome of the task of a dead worker, unless it is to be tried again."""
        code = worker.process.wait()
        self._selector.unregister(worker.output)
        worker.output.close()
        with suppress(OSError):
            worker.input.close()
        self._workers.remove(worker)
        is_killed, reason, one = code in _FROM_OUTSIDE, _ended(code), worker.doing
        if one is None:
            self._count_dead_start(worker, reason, is_killed)
            return
        one.kills += is_killed
        if not is_killed:
            one.why_died = reason
        own = one.tries - one.kills
        if own < _TRIES and one.kills < _MOST_KILLS:
            self._waiting.appendleft(one)
            return
        yield Outcome(
            key=one.task.key,
            kind=OutcomeKind.DIED,
            reason=f"{one.why_died or reason}, {own if one.why_died else one.tries} times.",
            tries=one.tries,
            time_s=time.monotonic() - one.started,
        )

    def _count_dead_start(self, worker: _Worker, reason: str, is_killed: bool) -> None:
        if worker.is_ready:
            return
        self._killed_starts += is_killed
        self._dead_starts += not is_killed
        if self._dead_starts >= _MOST_DEAD_STARTS or self._killed_starts >= _MOST_KILLED_STARTS:
            raise WorkerEndedError(
                f"{max(self._dead_starts, self._killed_starts)} worker processes in a row {reason} "
                "before they began. Their messages are above; try --workers 1, which needs none."
            )


def _start() -> "subprocess.Popen[bytes]":
    """Start a worker: the same Python, the same path of modules, one thread."""
    paths = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - "" is this folder
    environment = {**os.environ, **THREADS, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        return subprocess.Popen(
            # -P: the caller's folder is no place for modules of the worker.
            [sys.executable, "-P", "-c", "from d3s.tasks.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the caller, which ends its workers
        )
    except OSError as error:
        raise D3SError(
            f"a worker process cannot be started: {error.strerror}. Try --workers 1."
        ) from error


def _ended(code: int) -> str:
    """End of a process in words."""
    if code in _FROM_OUTSIDE:
        return "was killed in its worker, as happens when memory runs out"
    if code < 0:
        return f"crashed in its worker, by signal {-code} ({signal.Signals(-code).name})"
    return f"ended its worker with code {code}"
