"""An existing Dask cluster: its workers are asked before the first job whether they can do it.

TLS and time limits of connections are those of Dask's own settings.
"""

import importlib.util
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from d3s.errors import D3SError, InputError, MissingPackageError
from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions

PATIENCE_S = 30.0
"""Time to wait for the scheduler, at the start and after it was lost, and for a first worker."""

_AHEAD = 3  # jobs for each thread that wait on a cluster: none waits for this process
_LOOK_S = 0.5
_MOST_NAMED = 3


class WorkerEndedError(D3SError):
    """A worker that ended before its work was done; the reason is in the text."""


class ClusterError(D3SError):
    """Cluster that cannot be used; the text says which of its workers, and why."""


class Cluster:
    """Dask cluster that somebody has started; Dask tries a job again whose worker has died.

    `read` are files that all workers must see, and `written` folders that they may write to.
    """

    tries = 1  # of what Dask has tried `allowed-failures` times

    def __init__(self, address: str, read: Sequence[str], written: Sequence[str]) -> None:
        self._client, self._address = _connected(address), address
        try:
            self.room = (1 + _AHEAD) * greet(self._client, read, written)
        except BaseException:
            self._client.close()
            raise
        self._pool: Executor = self._client.get_executor(pure=False)

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Hand out a job."""
        return self._pool.submit(attempt_with_digest, package_digest(), work, *arguments)

    def has_died(self, error: Exception) -> bool:
        """Whether workers have died, of which Dask blames all jobs that they had."""
        from distributed import KilledWorker

        return isinstance(error, KilledWorker)

    def words_of(self, error: Any) -> str:
        """Why a job is given up."""
        last = getattr(error.last_worker, "address", error.last_worker)
        return f"its worker died, {error.allowed_failures + 1} times; the last was {last}."

    def wait_until_ready(self) -> None:
        """Wait while the scheduler is away; it may be started again."""
        while self._client.status == "connecting":
            time.sleep(_LOOK_S)
        if self._client.status != "running":
            raise WorkerEndedError(
                f"the scheduler at {self._address} was lost, and did not come back. What is "
                "finished is kept: go on when it runs."
            )

    def end(self, *, at_once: bool = False) -> None:
        """Cancel what has not begun, and leave the cluster."""
        if self._client.status == "running":
            self._pool.shutdown(wait=False)
        self._client.close()


def attempt_with_digest(digest: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """Outcome of a job on a worker, which may have joined the cluster after the questions."""
    if package_digest() != digest:
        words = "this worker has another d3s than the client. Install the same one everywhere."
        return None, D3SError(words)
    return work(*arguments)


def _connected(address: str) -> Any:
    """Client of the scheduler at an address, such as tcp://10.0.0.1:8786."""
    if importlib.util.find_spec("distributed") is None:
        raise MissingPackageError("a cluster needs the package dask", "dask")
    from distributed import Client

    try:
        return Client(  # type: ignore[no-untyped-call]
            address, timeout=PATIENCE_S, set_as_default=False
        )
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{address!r} is no address of a scheduler: {error}. One is "
            "tcp://10.0.0.1:8786, as dask scheduler prints it."
        ) from error
    except OSError as error:
        raise ClusterError(
            f"there is no Dask scheduler at {address}: nobody answered within {PATIENCE_S:g} s. "
            "Check the address, and that the scheduler runs."
        ) from error


def greet(client: Any, read: Sequence[str] = (), written: Sequence[str] = ()) -> int:
    """Ask whether jobs can run on a cluster, and return the threads of all its workers.

    A `ClusterError` names a worker that does not see the files `read`, may not write to the folders
    `written`, or has other packages.
    """
    from pydoc import locate  # which is there without d3s: None for what cannot be imported

    address = client.scheduler.address
    if client.run_on_scheduler(locate, "d3s.version.__version__") is None:
        raise ClusterError(
            f"the scheduler at {address} has no d3s, which it needs to read the jobs. Install the "
            "same d3s there, or start it in an environment that has it."
        )
    try:
        client.wait_for_workers(1, timeout=PATIENCE_S)
    except TimeoutError as error:
        raise ClusterError(
            f"the scheduler at {address} has had no worker for {PATIENCE_S:g} s. Start workers "
            "first: dask worker ADDRESS --nthreads 1."
        ) from error
    with ExitStack() as stack:
        # A small file in each folder: a folder of the same name elsewhere does not have it.
        marks = [Path(folder, f".d3s-{os.urandom(8).hex()}.tmp") for folder in written]
        for mark in marks:
            stack.callback(mark.unlink, missing_ok=True)
            mark.write_text("seen")
        paths = [*map(Path, read), *marks]
        seen = [(str(path), path.stat().st_size) for path in paths]
        told = client.run(describe, seen, list(written), on_error="return")
    found = {one: _trouble(answer) for one, answer in told.items()}
    wrong = [f"worker {one} {words}" for one, words in found.items() if words]
    if wrong:
        more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise ClusterError(
            f"{'; '.join(wrong[:_MOST_NAMED])}{more}. Workers need the same packages, and the same "
            "folders under the same paths."
        )
    return sum(client.nthreads().values())


def describe(seen: Sequence[tuple[str, int]], written: Sequence[str]) -> dict[str, Any]:
    """Describe this worker: `seen` are files of the client with their sizes in bytes."""
    return {
        "versions": versions(),
        "digest": package_digest(),
        "missing": [path for path, size in seen if _size(path) != size],
        "closed": [path for path in written if not os.access(path, os.W_OK | os.X_OK)],
    }


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return -1


def _trouble(answer: Mapping[str, Any] | Exception) -> str:
    """Why a worker cannot be used, by its answer; empty if it can."""
    if isinstance(answer, OSError):  # it has ended meanwhile, and others get its jobs
        return ""
    if isinstance(answer, ModuleNotFoundError):
        return f"has no {answer.name or 'd3s'}"
    if isinstance(answer, Exception):
        return f"cannot answer: {type(answer).__name__}: {answer}"
    for name, ours in versions().items():
        if answer["versions"].get(name) != ours:
            return f"has {name} {answer['versions'].get(name)}, and this is {ours}"
    if answer["digest"] != package_digest():
        return "has other files of d3s, though of the same version"
    if answer["missing"]:
        path = Path(answer["missing"][0])
        place = path.parent if path.name.startswith(".d3s-") else path
        return f"does not see {place} as this machine does"
    return f"may not write to {answer['closed'][0]}" if answer["closed"] else ""
