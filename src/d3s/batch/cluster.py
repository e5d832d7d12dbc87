"""An existing Dask cluster: a connection, and questions to all workers before the first job.

TLS and time limits of connections are those of Dask's own settings.
"""

import importlib.util
import os
import pydoc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from logging import getLogger
from pathlib import Path
from typing import Any

from d3s.errors import D3SError, InputError, MissingPackageError
from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions

_log = getLogger(__name__)
PATIENCE_S = 30.0
"""Time to wait for the scheduler, at the start and after it was lost, and for a first worker."""

_MOST_NAMED = 3


class ClusterError(D3SError):
    """Cluster that cannot be used; the text says which of its workers, and why."""


def connected(address: str) -> Any:
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
    address = client.scheduler.address
    # pydoc.locate is there without d3s: it gives None for what cannot be imported.
    if client.run_on_scheduler(pydoc.locate, "d3s.version.__version__") is None:
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
    with _marks(written) as marks:
        seen = [(path, Path(path).stat().st_size) for path in (*read, *marks)]
        told = client.run(describe, seen, list(written), on_error="return")
    # A worker that ends meanwhile, with an OSError, is asked by its first job.
    found = {one: _trouble(answer) for one, answer in told.items()}
    wrong = [f"worker {one} {words}" for one, words in found.items() if words]
    if wrong:
        more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise ClusterError(
            f"{'; '.join(wrong[:_MOST_NAMED])}{more}. Workers need the same packages, and the same "
            "folders under the same paths."
        )
    workers = client.scheduler_info(n_workers=-1)["workers"]
    threads = {one: int(worker["nthreads"]) for one, worker in workers.items()}
    several = [one for one, count in threads.items() if count > 1]
    if several:
        _log.warning(
            "worker %s has %s threads: a frame that ends it takes those beside it with it, to be "
            "done again. Workers with --nthreads 1 do not.",
            several[0],
            threads[several[0]],
        )
    return sum(threads.values())


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
    if isinstance(answer, OSError):
        return ""
    if isinstance(answer, ModuleNotFoundError):
        return f"has no {answer.name or 'd3s'}"
    if isinstance(answer, Exception):
        return f"cannot answer: {type(answer).__name__}: {answer}"
    for name, ours in versions().items():
        theirs = answer["versions"].get(name)
        if theirs != ours:
            return f"has {name} {theirs}, and this is {ours}"
    if answer["digest"] != package_digest():
        return "has other files of d3s, though of the same version"
    if answer["missing"]:
        path = Path(answer["missing"][0])
        place = path.parent if path.name.startswith(".d3s-") else path
        return f"does not see {place} as this machine does"
    return f"may not write to {answer['closed'][0]}" if answer["closed"] else ""


@contextmanager
def _marks(folders: Sequence[str]) -> Iterator[list[str]]:
    """A small file in each folder: a folder of the same name elsewhere does not have it."""
    marks = [Path(folder, f".d3s-{os.urandom(8).hex()}.tmp") for folder in folders]
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
