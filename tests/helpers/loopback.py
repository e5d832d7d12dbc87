"""A Dask cluster on this machine, on loopback only: a scheduler and workers as programs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SETTINGS = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "1.0",
    "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "0",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False",
}


class Loopback:
    """A scheduler and its workers."""

    def __init__(self, folder: Path, port: int) -> None:
        self.address = f"tcp://127.0.0.1:{port}"
        self._port = port
        self._folder = folder
        self.scheduler = self._started("scheduler")
        self.nannies: list[subprocess.Popen[bytes]] = []

    def add_worker(self, *options: str) -> None:
        self.nannies.append(self._started("worker", *options))

    def end(self) -> None:
        started = (*self.nannies, self.scheduler)
        below = [child for one in started for child in children(one.pid)]
        for one in started:
            one.kill()
            one.wait()
        for child in below:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def _started(self, kind: str, *options: str) -> "subprocess.Popen[bytes]":
        paths = os.pathsep.join(path for path in sys.path if path)
        words = {
            "scheduler": ["--host", "127.0.0.1", "--port", str(self._port), "--no-dashboard"],
            "worker": [
                self.address,
                *("--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard"),
                *("--local-directory", str(self._folder)),
            ],
        }[kind]
        log = (self._folder / f"{kind}.log").open("ab")
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + kind, *words, *options],
            env={**os.environ, **SETTINGS, "PYTHONPATH": paths},
            cwd=self._folder,
            stdout=log,
            stderr=log,
        )


@contextmanager
def loopback(folder: Path, workers: int = 2, *options: str) -> Iterator[Loopback]:
    """Run a cluster; further options are those of `dask worker`."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = Loopback(folder, port)
    try:
        for _ in range(workers):
            cluster.add_worker(*options)
        yield cluster
    finally:
        cluster.end()


def children(process: int) -> list[int]:
    """Processes that a process has started."""
    told = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in told.stdout.split()]


def kill_a_worker(cluster: Loopback, number: int) -> int:
    """Kill the worker processes of a nanny, which starts another; returns how many there were."""
    own = [
        one
        for one in children(cluster.nannies[number % len(cluster.nannies)].pid)
        if "spawn_main" in Path(f"/proc/{one}/cmdline").read_text()
    ]
    for one in own:
        os.kill(one, signal.SIGKILL)
    return len(own)
