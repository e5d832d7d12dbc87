"""Tasks on an existing Dask cluster, by the address of its scheduler.

Tasks go there as text: names of functions, and jobs. Large things stay in files that all workers
see. TLS and time limits of connections are those of Dask's own settings. Short tasks go there
several at a time: Dask takes milliseconds for each that it hands out, and a worker waits for them.
"""

import importlib.util
import json
import os
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from logging import getLogger
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from d3s.errors import InputError
from d3s.runtime.digest import package_digest
from d3s.tasks import node
from d3s.tasks.names import call_of
from d3s.tasks.task import Kind, Limits, Outcome, Task, from_json

if TYPE_CHECKING:
    from d3s.tasks.greeting import Greeting

_log = getLogger(__name__)
_AHEAD = 3  # groups a thread that wait at the scheduler: no thread waits for this process
_GROUP_S = 0.4  # time of the tasks that go to a worker together; longer ones go alone
_MOST_IN_GROUP = 16
_LATEST = 0.2  # weight of the latest task in the mean time of a task
_LOOK_S = 0.5
_MOST_CANCELS = 10
_AGAIN_AFTER_DEATH = 1  # Dask blames tasks too that only waited in a worker that died


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster that somebody has started.

    Parameters
    ----------
    address
        Address of its scheduler, such as tcp://10.0.0.1:8786.
    read
        Files that every worker must see: asked before the first task.
    written
        Folders that every worker must see and may write to.
    notes
        Folder for the reasons of tasks that were ended; the one for temporary files if None.
    patience_s
        Longest time to wait for the scheduler, at the start and after it was lost.
    """

    address: str
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    notes: str | None = None
    patience_s: float = 30.0

    def seeing(self, read: Iterable[str], written: Iterable[str]) -> "Cluster":
        """Return the same cluster, whose workers must see these files and folders."""
        folders = tuple(written)
        return replace(
            self, read=tuple(read), written=folders, notes=folders[0] if folders else self.notes
        )

    def outcomes(self, tasks: Iterable[Task], limits: Limits) -> Generator[Outcome, None, None]:
        """Run tasks, and yield their outcomes as they come.

        Every worker is asked first whether it has the same packages and sees the same folders.
        Then one task runs on each machine, so that loops are compiled once there, and then all.

        Parameters
        ----------
        tasks
            Tasks, taken as there is room on the cluster.
        limits
            Tries, time and memory of each task.

        Raises
        ------
        InputError
            When Dask is not installed, or the address cannot be one.
        ClusterError
            When there is no scheduler, or a worker differs from this process.
        """
        from d3s.tasks.greeting import greet

        with closing(self._client()) as client:
            greeting = greet(client, self.read, self.written, wait_s=self.patience_s)
            for remark in greeting.remarks:
                _log.warning("%s", remark)
            flood = _Flood(client, limits, self)
            try:
                yield from flood.outcomes(iter(tasks), greeting)
            finally:
                flood.end()

    def _client(self) -> Any:
        from d3s.tasks.greeting import ClusterError

        if importlib.util.find_spec("distributed") is None:
            raise InputError("a cluster needs the package dask: pip install 'd3s[dask]'.")
        from distributed import Client

        try:
            return Client(  # type: ignore[no-untyped-call]
                self.address, timeout=self.patience_s, set_as_default=False
            )
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{self.address!r} is no address of a scheduler: {error}. One is "
                "tcp://10.0.0.1:8786, as dask scheduler prints it."
            ) from error
        except OSError as error:
            raise ClusterError(
                f"there is no Dask scheduler at {self.address}: nobody answered within "
                f"{self.patience_s:g} s. Check the address, and that the scheduler runs."
            ) from error


@dataclass
class _Flight:
    """Tasks on the cluster that run one after the other, and their limits."""

    tasks: tuple[Task, ...]
    limits: Limits
    started: float = field(default_factory=time.monotonic)
    deaths: int = 0
    cancels: int = 0


class _Flood:
    """Tasks that are on the cluster, and those that come back."""

    def __init__(self, client: Any, limits: Limits, cluster: Cluster) -> None:
        self._client = client
        self._limits = limits
        self._cluster = cluster
        self._run = os.urandom(8).hex()
        self._flights: dict[str, tuple[_Flight, Any]] = {}
        self._back: SimpleQueue[Any] = SimpleQueue()
        self._number = 0
        self._task_s: float | None = None  # mean time of a task so far

    def outcomes(self, tasks: Iterator[Task], greeting: "Greeting") -> Iterator[Outcome]:
        """Outcomes of all tasks, as they come; the first on each host before the others."""
        for host in greeting.hosts:
            task = next(tasks, None)
            if task is not None:
                self._submit(_Flight((task,), self._limits.first()), host)
        while self._flights:
            yield from self._next()
        room = (1 + _AHEAD) * greeting.threads
        while self._fill(tasks, room):
            yield from self._next()

    def end(self) -> None:
        """Cancel what has not begun."""
        futures = [future for _, future in self._flights.values()]
        if futures and self._client.status == "running":
            with suppress(Exception):
                self._client.cancel(futures)

    def _fill(self, tasks: Iterator[Task], room: int) -> bool:
        """Send tasks while there is room; whether any is on its way."""
        while len(self._flights) < room:
            group = tuple(islice(tasks, self._group_size()))
            if not group:
                break
            self._submit(_Flight(group, self._limits))
        return bool(self._flights)

    def _group_size(self) -> int:
        """Number of tasks that go to a worker together."""
        if self._task_s is None:
            return 1
        return min(max(int(_GROUP_S / max(self._task_s, 1e-6)), 1), _MOST_IN_GROUP)

    def _text(self, flight: _Flight) -> str:
        """Tasks and their rules, as JSON."""
        rules = node.Rules(
            run=self._run,
            digest=package_digest(),
            tries=flight.limits.tries,
            time_s=flight.limits.time_s,
            memory_bytes=flight.limits.memory_bytes,
            notes=self._cluster.notes,
        )
        lines = [
            {"key": one.key, "call": call_of(one.work), "job": one.job} for one in flight.tasks
        ]
        return json.dumps({"tasks": lines, "rules": rules})

    def _submit(self, flight: _Flight, host: str | None = None) -> None:
        self._number += 1
        future = self._client.submit(
            node.call,
            self._text(flight),
            key=f"d3s-{self._run}-{self._number}",
            workers=None if host is None else [host],
            pure=False,
        )
        self._flights[future.key] = flight, future
        future.add_done_callback(self._back.put)

    def _next(self) -> Iterator[Outcome]:
        """Outcomes of the tasks that have come back; none after a short time without one."""
        self._check_connection()
        with suppress(Empty):
            back = deque([self._back.get(timeout=_LOOK_S)])
            while back:
                yield from self._landed(back.popleft())
                with suppress(Empty):
                    back.append(self._back.get_nowait())

    def _check_connection(self) -> None:
        """Wait while the scheduler is away; it may be started again."""
        from d3s.tasks.greeting import ClusterError

        while self._client.status == "connecting":
            time.sleep(_LOOK_S)
        if self._client.status != "running":
            raise ClusterError(
                f"the scheduler at {self._cluster.address} was lost, and was not back within "
                f"{self._cluster.patience_s:g} s. What is finished is kept: go on when it runs."
            )

    def _landed(self, future: Any) -> Iterator[Outcome]:
        if future.status not in ("finished", "error", "cancelled"):  # lost: Dask does it again
            future.add_done_callback(self._back.put)
            return
        flight, _ = self._flights.pop(future.key, (None, None))
        if flight is None:
            return
        if future.status == "finished":
            answers = _result(future)
            if answers is None:  # the worker with the answer died: begin anew
                self._submit(flight)
                return
            for task, fields in zip(flight.tasks, answers, strict=True):
                tries = fields.pop("tries") + flight.deaths
                yield self._timed(from_json(task.key, fields, tries=tries))
        elif future.status == "cancelled" and flight.cancels < _MOST_CANCELS:
            flight.cancels += 1
            self._check_connection()
            self._submit(flight)
        else:
            yield from self._failed(flight, future)

    def _timed(self, outcome: Outcome) -> Outcome:
        """Count the time of a task in the mean."""
        before_s = outcome.time_s if self._task_s is None else self._task_s
        self._task_s = before_s + _LATEST * (outcome.time_s - before_s)
        return outcome

    def _failed(self, flight: _Flight, future: Any) -> Iterator[Outcome]:
        from distributed import KilledWorker

        error = future.exception() if future.status == "error" else None
        if isinstance(error, KilledWorker):
            tries = error.allowed_failures + 1
            flight.deaths += tries
            if flight.deaths <= tries * _AGAIN_AFTER_DEATH:
                for task in flight.tasks:  # each alone: one of them may be the reason
                    self._submit(replace(flight, tasks=(task,)))
                return
            reason = f"its worker died, {flight.deaths} times; the last was {_address(error)}."
        elif error is None:
            reason = f"was cancelled on the cluster, {flight.cancels + 1} times."
        else:
            reason = f"could not be run on the cluster: {type(error).__name__}: {error}"
        for task in flight.tasks:
            yield Outcome(
                key=task.key,
                kind=Kind.DIED,
                reason=reason,
                tries=max(flight.deaths, 1),
                time_s=time.monotonic() - flight.started,
            )


def _result(future: Any) -> list[dict[str, Any]] | None:
    """Answers of finished tasks; None if they cannot be fetched any more."""
    try:
        answers: list[dict[str, Any]] = json.loads(future.result())
    except Exception:  # noqa: BLE001 - whatever Dask raises for a worker that is gone
        return None
    return answers


def _address(error: Any) -> str:
    return str(getattr(error.last_worker, "address", error.last_worker))
