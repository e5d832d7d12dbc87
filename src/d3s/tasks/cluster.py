"""Tasks on an existing Dask cluster, by the address of its scheduler.

Before the first task every worker is asked for its version of d3s, and for the folders that it has
to see. Tasks go there as text: names of functions, and jobs. Large things stay in files that all
workers see. TLS and time limits of connections are those of Dask's own settings. Short tasks go
there several at a time: Dask takes milliseconds for each that it hands out, and a worker waits for
them.
"""

import importlib.util
import json
import os
import pydoc
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from logging import getLogger
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from d3s.errors import D3SError, InputError, MissingPackageError
from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions
from d3s.tasks import worker
from d3s.tasks.task import Outcome, OutcomeKind, Task, call_of, from_json

_log = getLogger(__name__)
_AHEAD = 3  # groups a thread that wait at the scheduler: no thread waits for this process
_GROUP_S = 0.4  # time of the tasks that go to a worker together; longer ones go alone
_MOST_IN_GROUP = 16
_LATEST = 0.2  # weight of the latest task in the mean time of a task
_LOOK_S = 0.5
_MOST_CANCELS = 10
_AGAIN_AFTER_DEATH = 1  # Dask blames tasks too that only waited in a worker that died
_VERSION = "d3s.version.__version__"
_MOST_NAMED = 3


class ClusterError(D3SError):
    """Cluster that cannot be used; the text says which of its workers, and why."""


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster that somebody has started, by the address of its scheduler."""

    address: str  # such as tcp://10.0.0.1:8786
    read: tuple[str, ...] = ()  # files that every worker must see: asked before the first task
    written: tuple[str, ...] = ()  # folders that every worker must see and may write to
    patience_s: float = 30.0  # to wait for the scheduler, at the start and after it was lost

    def seeing(self, read: Iterable[str], written: Iterable[str]) -> "Cluster":
        """Return the same cluster, whose workers must see these files and folders."""
        return replace(self, read=tuple(read), written=tuple(written))

    def outcomes(self, tasks: Iterable[Task]) -> Generator[Outcome, None, None]:
        """Run tasks, taken as there is room on the cluster, and yield their outcomes as they come.

        One task runs on each machine first, so that loops are compiled once there, and then all.
        """
        with closing(self._client()) as client:
            hosts, threads = greet(client, self.read, self.written, wait_s=self.patience_s)
            submitted = _Submitted(client, self)
            try:
                yield from submitted.outcomes(iter(tasks), hosts, threads)
            finally:
                submitted.end()

    def _client(self) -> Any:
        if importlib.util.find_spec("distributed") is None:
            raise MissingPackageError("a cluster needs the package dask", "dask")
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
class _Group:
    """Tasks on the cluster that run one after the other."""

    tasks: tuple[Task, ...]
    started: float = field(default_factory=time.monotonic)
    deaths: int = 0
    cancels: int = 0


class _Submitted:
    """Tasks that are on the cluster, and those that come back."""

    def __init__(self, client: Any, cluster: Cluster) -> None:
        self._client = client
        self._cluster = cluster
        self._run = os.urandom(8).hex()
        self._groups: dict[str, tuple[_Group, Any]] = {}
        self._back: SimpleQueue[Any] = SimpleQueue()
        self._number = 0
        self._task_s: float | None = None  # mean time of a task so far

    def outcomes(
        self, tasks: Iterator[Task], hosts: Sequence[str], threads: int
    ) -> Iterator[Outcome]:
        """Outcomes of all tasks, as they come; the first on each host before the others."""
        for host in hosts:
            task = next(tasks, None)
            if task is not None:
                self._submit(_Group((task,)), host)
        while self._groups:
            yield from self._next()
        while self._fill(tasks, (1 + _AHEAD) * threads):
            yield from self._next()

    def end(self) -> None:
        """Cancel what has not begun."""
        futures = [future for _, future in self._groups.values()]
        if futures and self._client.status == "running":
            with suppress(Exception):
                self._client.cancel(futures)

    def _fill(self, tasks: Iterator[Task], room: int) -> bool:
        """Send tasks while there is room; whether any is on its way."""
        while len(self._groups) < room:
            group = tuple(islice(tasks, self._group_size()))
            if not group:
                break
            self._submit(_Group(group))
        return bool(self._groups)

    def _group_size(self) -> int:
        """Number of tasks that go to a worker together."""
        if self._task_s is None:
            return 1
        return min(max(int(_GROUP_S / max(self._task_s, 1e-6)), 1), _MOST_IN_GROUP)

    def _submit(self, group: _Group, host: str | None = None) -> None:
        self._number += 1
        lines = [{"call": call_of(one.work), "job": one.job} for one in group.tasks]
        future = self._client.submit(
            worker.call,
            json.dumps({"tasks": lines, "digest": package_digest()}),
            key=f"d3s-{self._run}-{self._number}",
            workers=None if host is None else [host],
            pure=False,
        )
        self._groups[future.key] = group, future
        future.add_done_callback(self._back.put)

    def _next(self) -> Iterator[Outcome]:
        """Outcomes of the tasks that have come back; none after a short time without one."""
        self._check_connection()
        with suppress(Empty):
            back = deque([self._back.get(timeout=_LOOK_S)])
            while back:
                yield from self._came_back(back.popleft())
                with suppress(Empty):
                    back.append(self._back.get_nowait())

    def _check_connection(self) -> None:
        """Wait while the scheduler is away; it may be started again."""
        while self._client.status == "connecting":
            time.sleep(_LOOK_S)
        if self._client.status != "running":
            raise ClusterError(
                f"the scheduler at {self._cluster.address} was lost, and was not back within "
                f"{self._cluster.patience_s:g} s. What is finished is kept: go on when it runs."
            )

    def _came_back(self, future: Any) -> Iterator[Outcome]:
        if future.status not in ("finished", "error", "cancelled"):  # lost: Dask does it again
            future.add_done_callback(self._back.put)
            return
        group, _ = self._groups.pop(future.key, (None, None))
        if group is None:
            return
        if future.status == "finished":
            answers = _answers_of(future)
            if answers is None:  # the worker with the answer died: begin anew
                self._submit(group)
                return
            for task, fields in zip(group.tasks, answers, strict=True):
                yield self._timed(from_json(task.key, fields, tries=1 + group.deaths))
        elif future.status == "cancelled" and group.cancels < _MOST_CANCELS:
            group.cancels += 1
            self._check_connection()
            self._submit(group)
        else:
            yield from self._failed(group, future)

    def _timed(self, outcome: Outcome) -> Outcome:
        """Count the time of a task in the mean."""
        before_s = outcome.time_s if self._task_s is None else self._task_s
        self._task_s = before_s + _LATEST * (outcome.time_s - before_s)
        return outcome

    def _failed(self, group: _Group, future: Any) -> Iterator[Outcome]:
        from distributed import KilledWorker

        error = future.exception() if future.status == "error" else None
        if isinstance(error, KilledWorker):
            tries = error.allowed_failures + 1
            group.deaths += tries
            if group.deaths <= tries * _AGAIN_AFTER_DEATH:
                for task in group.tasks:  # each alone: one of them may be the reason
                    self._submit(replace(group, tasks=(task,)))
                return
            last = getattr(error.last_worker, "address", error.last_worker)
            reason = f"its worker died, {group.deaths} times; the last was {last}."
        elif error is None:
            reason = f"was cancelled on the cluster, {group.cancels + 1} times."
        else:
            reason = f"could not be run on the cluster: {type(error).__name__}: {error}"
        for task in group.tasks:
            yield Outcome(
                key=task.key,
                kind=OutcomeKind.DIED,
                reason=reason,
                tries=max(group.deaths, 1),
                time_s=time.monotonic() - group.started,
            )


def _answers_of(future: Any) -> list[dict[str, Any]] | None:
    """Answers of finished tasks; None if they cannot be fetched any more."""
    try:
        answers: list[dict[str, Any]] = json.loads(future.result())
    except Exception:  # noqa: BLE001 - whatever Dask raises for a worker that is gone
        return None
    return answers


def greet(
    client: Any, read: Sequence[str] = (), written: Sequence[str] = (), *, wait_s: float = 30.0
) -> tuple[list[str], int]:
    """Ask whether tasks can run on a cluster; returns its hosts, and the threads of all workers.

    A `ClusterError` names a worker that does not see what is read, may not write, or differs.
    """
    address = client.scheduler.address
    # pydoc.locate is there without d3s: it gives None for what cannot be imported.
    if client.run_on_scheduler(pydoc.locate, _VERSION) is None:
        raise ClusterError(
            f"the scheduler at {address} has no d3s, which it needs to read the tasks. Install the "
            "same d3s there, or start it in an environment that has it."
        )
    try:
        client.wait_for_workers(1, timeout=wait_s)
    except TimeoutError as error:
        raise ClusterError(
            f"the scheduler at {address} has had no worker for {wait_s:g} s. Start workers first: "
            "dask worker ADDRESS --nthreads 1."
        ) from error
    ours, found = versions()["d3s"], _asked(client, pydoc.locate, _VERSION)
    missing = {one: "has no d3s" for one, version in found.items() if version is None}
    _refuse(missing, "Install the same d3s on all workers.")
    other = {
        one: f"has d3s {version}, and this is {ours}"
        for one, version in found.items()
        if version != ours
    }
    _refuse(other, "Install the same d3s on all workers.")
    with _marks(written) as marks:
        seen = [(path, Path(path).stat().st_size) for path in (*read, *marks)]
        told = _asked(client, worker.describe, seen, list(written))
    _refuse(_differences(told), "Install the same packages on all workers.")
    _refuse(_unseen(told), "Workers need the same folders under the same paths.")
    return _hosts_and_threads(client)


def _asked(client: Any, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Answers of all workers; one that ends meanwhile is asked by its first task."""
    told = client.run(function, *arguments, on_error="return")
    gone = [one for one, answer in told.items() if isinstance(answer, OSError)]
    wrong = {
        one: f"cannot answer: {type(answer).__name__}: {answer}"
        for one, answer in told.items()
        if isinstance(answer, Exception) and one not in gone
    }
    _refuse(wrong, "Start it again, with the same d3s as here.")
    return {one: answer for one, answer in told.items() if one not in gone}


def _differences(told: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Worker by worker, the first difference of its packages from ours."""
    ours, found = versions(), {}
    for one, answer in told.items():
        theirs = answer["versions"]
        differing = next((name for name in ours if theirs.get(name) != ours[name]), None)
        if differing is not None:
            found[one] = f"has {differing} {theirs.get(differing)}, and this is {ours[differing]}"
        elif answer["digest"] != package_digest():
            found[one] = "has other files of d3s, though of the same version"
    return found


def _unseen(told: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    found = {}
    for one, answer in told.items():
        if answer["missing"]:
            path = Path(answer["missing"][0])
            place = path.parent if path.name.startswith(".d3s-") else path
            found[one] = f"does not see {place} as this machine does"
        elif answer["closed"]:
            found[one] = f"may not write to {answer['closed'][0]}"
    return found


def _refuse(found: Mapping[str, str], remedy: str) -> None:
    if not found:
        return
    named = "; ".join(f"worker {one} {words}" for one, words in [*found.items()][:_MOST_NAMED])
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    raise ClusterError(f"{named}{more}. {remedy}")


@contextmanager
def _marks(folders: Sequence[str]) -> Iterator[list[str]]:
    """A small file in each folder: a folder of the same name elsewhere does not have it."""
    marks = [Path(folder, f".d3s-seen-{os.urandom(8).hex()}") for folder in folders]
    try:
        for mark in marks:
            mark.write_text("seen")
        yield [os.fspath(mark) for mark in marks]
    except OSError as error:
        raise ClusterError(f"{error.filename} cannot be written: {error.strerror}.") from error
    finally:
        for mark in marks:
            with suppress(OSError):
                mark.unlink()


def _hosts_and_threads(client: Any) -> tuple[list[str], int]:
    """Hosts of a cluster, and the threads of all workers; several threads of one are remarked."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    threads = {address: int(one["nthreads"]) for address, one in workers.items()}
    several = [address for address, count in threads.items() if count > 1]
    if several:
        _log.warning(
            "worker %s has %s threads: a frame that ends it takes those beside it with it, to be "
            "done again. Workers with --nthreads 1 do not.",
            several[0],
            threads[several[0]],
        )
    return sorted({str(one["host"]) for one in workers.values()}), sum(threads.values())
