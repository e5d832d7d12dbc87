"""Command line in processes that are killed, before a file operation or after a delay.

Run as a program: executes its arguments once, which loads all slow imports. Then executes each line
of its input in a forked copy of itself, and prints the exit code.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_STEPS = ("open", "os.mkdir", "os.scandir", "os.chmod", "os.link", "os.rename", "os.remove")
"""File operations, as names of Python's audit events."""


class KillableCli:
    """Runs of the command line that can be killed, without the start-up time of Python."""

    def __init__(self, first: Sequence[object]) -> None:
        """Start the process and run the arguments `first` to the end."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, *map(str, first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "D3S_THREADS": "1"},
            text=True,
        )
        self.first_code = self._code()

    def run(
        self,
        arguments: Sequence[object],
        *,
        folder: Path,
        step: int | None = None,
        delay_s: float | None = None,
    ) -> int:
        """Run the command line and return its exit code, -9 if it was killed.

        Parameters
        ----------
        arguments
            Arguments of the command line.
        folder
            Folder whose file operations are counted.
        step
            Number of the file operation to kill the process before.
        delay_s
            Time in seconds after which to kill the process.
        """
        values = [[str(one) for one in arguments], str(folder), step, delay_s]
        self._process.stdin.write(json.dumps(values) + "\n")
        self._process.stdin.flush()
        return self._code()

    def _code(self) -> int:
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: Any, trace: TracebackType | None) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)


def _execute(arguments: list[str]) -> int:
    """Run the command line in this process and return its exit code."""
    from d3s.cli import app

    try:
        app(arguments)
    except SystemExit as end:
        return end.code
    return 0


def _die_before(step: int, folder: str) -> None:
    """Kill this process before its file operation of this number in a folder.

    If that operation is a sync, half of the file is cut off first.
    """
    left = step

    def count() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "fcntl.flock" or (event in _STEPS and folder in repr(arguments)):
            count()

    def sync(descriptor: int) -> None:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size // (2 if left == 1 else 1))
        count()

    os.fsync = sync
    sys.addaudithook(watch)


def _serve() -> None:
    """Execute each line of the input in a forked process."""
    for line in sys.stdin:
        arguments, folder, step, delay_s = json.loads(line)
        child = os.fork()
        if not child:
            if step is not None:
                _die_before(step, folder)
            os._exit(_execute(arguments))
        if delay_s is not None:
            deadline_s = time.monotonic() + delay_s
            while time.monotonic() < deadline_s and not _has_ended(child):
                time.sleep(0.001)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        _print_code(os.waitstatus_to_exitcode(status))


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _print_code(code: int) -> None:
    sys.stdout.write(f"{code}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    import cv2

    cv2.setNumThreads(0)  # a forked process has no threads of its parent
    _print_code(_execute(sys.argv[1:]))
    _serve()
