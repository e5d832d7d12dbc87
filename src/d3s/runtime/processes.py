"""Calls of a function in several processes: `concurrent.futures` with the spawn context.

Three things are added to the pool of the standard library:

- Workers do not import the caller's script, so a script needs no `if __name__ == "__main__"`.
- Each worker computes with one thread: there is a worker for each core.
- Workers end at once when the caller is done, interrupted or killed. They hold one end of a pipe
  whose other end is the caller's alone; the end of that pipe is their signal.

This module imports no numerical library: it is the first of the package that a worker imports, and
the number of threads must be set before those libraries are loaded.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from logging import ERROR, getLogger
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any, TypeVar

from d3s.errors import D3SError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_THREAD_LIMITS = (
    "D3S_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class WorkerEndedError(D3SError):
    """A worker process that ended before its work was done; its exit code is in the text."""


def call_in_processes(
    function: Callable[[_Item], _Result], items: Sequence[_Item], count: int
) -> Generator[tuple[int, _Result], None, None]:
    """Call a function of one argument for all items, in several processes.

    Closing the generator, or an exception in it, ends all processes at once.

    Parameters
    ----------
    function
        Importable by its name: a function of a module, not of the caller's script.
    items
        Arguments; picklable.
    count
        Number of processes, each with one thread.

    Yields
    ------
    Index of an item and the result for it, in the order in which they are finished.

    Raises
    ------
    D3SError
        When the function raises one, with the same text.
    WorkerEndedError
        When a process ends before its call does.
    """
    context = _Context()
    ends_when_closed, keep_open = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        count, mp_context=context, initializer=_begin_worker, initargs=(ends_when_closed,)
    )
    try:
        futures: dict[Future[_Result | _Refusal], int] = {
            pool.submit(_call, function, item): index for index, item in enumerate(items)
        }
        for future in as_completed(futures):
            result = future.result()
            if isinstance(result, _Refusal):
                raise D3SError(result.text)
            yield futures[future], result
    except BrokenProcessPool as error:
        pool.shutdown()  # so that exit codes are known
        raise WorkerEndedError(
            f"a worker process ended{context.exit_code()} before its work was done. If that is "
            "-9, memory ran out: try fewer workers. Otherwise its error message is above."
        ) from error
    finally:
        keep_open.close()
        pool.shutdown(cancel_futures=True)
        ends_when_closed.close()


class _Refusal:
    """Text of a `D3SError` raised in a worker; not all such errors can be pickled."""

    def __init__(self, text: str) -> None:
        self.text = text


def _call(function: Callable[[_Item], _Result], item: _Item) -> "_Result | _Refusal":
    try:
        return function(item)
    except D3SError as error:
        return _Refusal(str(error))


def _begin_worker(ends_when_closed: Connection) -> None:
    """Prepare a worker: its end, one thread, and no output among the caller's."""
    threading.Thread(target=_end_with_caller, args=(ends_when_closed,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, which ends its workers
    os.environ.update(dict.fromkeys(_THREAD_LIMITS, "1"))
    os.dup2(2, 1)  # standard output is the caller's: text that a library prints goes to stderr
    getLogger("d3s").setLevel(ERROR)  # the caller has already said that loops are compiled
    import cv2

    cv2.setNumThreads(1)


def _end_with_caller(ends_when_closed: Connection) -> None:
    """Wait until the caller closes its end of the pipe, or ends, and end in the middle of work."""
    try:
        ends_when_closed.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)


class _Process(SpawnProcess):
    """A process that does not import the caller's script.

    `multiprocessing` reads the path of that script from `sys.modules["__main__"]` while it starts a
    process; for so long, an empty module stands there.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = script


class _Context(SpawnContext):
    """Spawn context that remembers its processes, whose exit codes the pool does not tell."""

    def __init__(self) -> None:
        super().__init__()
        self._processes: list[_Process] = []

    def Process(self, *args: Any, **kwargs: Any) -> _Process:  # type: ignore[override]
        process = _Process(*args, **kwargs)
        self._processes.append(process)
        return process

    def exit_code(self) -> str:
        """Exit code of the process that ended first; the pool terminates all others."""
        codes = [process.exitcode for process in self._processes]
        failed = [code for code in codes if code not in (None, 0, -signal.SIGTERM)]
        return f" with code {failed[0]}" if failed else ""
