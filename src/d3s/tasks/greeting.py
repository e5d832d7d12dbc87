"""Questions to a cluster before the first task: on d3s, on its version, and on folders."""

import os
import pydoc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from d3s.errors import D3SError
from d3s.runtime.digest import package_digest
from d3s.runtime.versions import versions
from d3s.tasks import node

_VERSION = "d3s.version.__version__"
_MOST_NAMED = 3


class ClusterError(D3SError):
    """Cluster that cannot be used; the text says which of its workers, and why."""


class Greeting(NamedTuple):
    """A cluster that can be used."""

    threads: int  # of all workers together
    hosts: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def greet(
    client: Any, read: Sequence[str] = (), written: Sequence[str] = (), *, wait_s: float = 30.0
) -> Greeting:
    """Ask scheduler and workers whether tasks can run there.

    Parameters
    ----------
    client
        Connected `distributed.Client`.
    read
        Files that every worker must see.
    written
        Folders that every worker must see and may write to.
    wait_s
        Time in which a first worker must be there, in seconds.

    Raises
    ------
    ClusterError
        Naming the worker, and its difference from this process.
    """
    address = client.scheduler.address
    # pydoc.locate is there without d3s: it gives None for what cannot be imported.
    if client.run_on_scheduler(pydoc.locate, _VERSION) is None:
        raise ClusterError(
            f"the scheduler at {address} has no d3s, which it needs to read the tasks. Install the "
            "same d3s there, or start it in an environment that has it."
        )
    _wait_for_worker(client, wait_s)
    found = _answers(client, pydoc.locate, _VERSION)
    missing = {worker: "has no d3s" for worker, version in found.items() if version is None}
    _refuse(missing, "Install the same d3s on all workers.")
    ours = versions()["d3s"]
    other = {
        worker: f"has d3s {version}, and this is {ours}"
        for worker, version in found.items()
        if version != ours
    }
    _refuse(other, "Install the same d3s on all workers.")
    with _marks(written) as marks:
        seen = [(path, Path(path).stat().st_size) for path in (*read, *marks)]
        told = _answers(client, node.describe, seen, list(written))
    _refuse(_differences(told), "Install the same packages on all workers.")
    _refuse(_unseen(told), "Workers need the same folders under the same paths.")
    return _greeting(client)


def _answers(client: Any, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Answers of all workers; one that ends meanwhile is asked by its first task."""
    told = client.run(function, *arguments, on_error="return")
    gone = [worker for worker, one in told.items() if isinstance(one, OSError)]
    wrong = {
        worker: f"cannot answer: {type(one).__name__}: {one}"
        for worker, one in told.items()
        if isinstance(one, Exception) and worker not in gone
    }
    _refuse(wrong, "Start it again, with the same d3s as here.")
    return {worker: one for worker, one in told.items() if worker not in gone}


def _wait_for_worker(client: Any, wait_s: float) -> None:
    try:
        client.wait_for_workers(1, timeout=wait_s)
    except TimeoutError as error:
        raise ClusterError(
            f"the scheduler at {client.scheduler.address} has had no worker for {wait_s:g} s. "
            "Start workers first: dask worker ADDRESS --nthreads 1."
        ) from error


def _differences(told: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Worker by worker, the first difference of its packages from ours."""
    ours, found = versions(), {}
    for worker, one in told.items():
        theirs = one["versions"]
        for name, version in ours.items():
            if theirs.get(name) != version:
                found[worker] = f"has {name} {theirs.get(name)}, and this is {version}"
                break
        else:
            if one["digest"] != package_digest():
                found[worker] = "has other files of d3s, though of the same version"
    return found


def _unseen(told: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    found = {}
    for worker, one in told.items():
        if one["missing"]:
            path = Path(one["missing"][0])
            place = path.parent if path.name.startswith(".d3s-") else path
            found[worker] = f"does not see {place} as this machine does"
        elif one["closed"]:
            found[worker] = f"may not write to {one['closed'][0]}"
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


def _greeting(client: Any) -> Greeting:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    threads = {address: int(one["nthreads"]) for address, one in workers.items()}
    several = [address for address, count in threads.items() if count > 1]
    remarks = []
    if several:
        remarks.append(
            f"worker {several[0]} has {threads[several[0]]} threads: a frame that has to be ended "
            "takes those beside it with it, to be done again. Workers with --nthreads 1 do not."
        )
    hosts = sorted({str(one["host"]) for one in workers.values()})
    return Greeting(sum(threads.values()), tuple(hosts), tuple(remarks))
