"""Rows of an image, or independent tasks, shared among threads.

Compiled kernels have no parallel loops of their own and release Python's global lock, so a thread
pool of the standard library runs them: any number of callers at once, the same bytes whatever the
number of threads. The environment variable `D3S_THREADS` sets the number of threads; the default is
one per core.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from d3s.errors import InputError

_this_thread = threading.local()
# Kernels over fewer bytes finish before another thread has started its share.
_WORTH_SHARING_BYTES = 400_000


def thread_count() -> int:
    """Return the number of threads to use: `D3S_THREADS`, or the cores of this process.

    Within `beside_others`, this thread's share of them.
    """
    return max(_all_threads() // _callers(), 1)


@contextmanager
def beside_others(callers: int) -> Iterator[None]:
    """Context in which this thread is one of several callers, who share the threads evenly.

    Callers with a thread each never wait for each other between two kernels, so they finish more
    images a second than one caller with all threads; each image takes longer.
    """
    before = _callers()
    _this_thread.callers = callers
    try:
        yield
    finally:
        _this_thread.callers = before


def _callers() -> int:
    return int(getattr(_this_thread, "callers", 1))


def _all_threads() -> int:
    text = os.environ.get("D3S_THREADS", "").strip()
    if not text:
        return allowed_cores()
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise InputError(f"D3S_THREADS={text!r} must be a whole number from 1 to 1024.")
    return int(text)


def allowed_cores() -> int:
    """Return the number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_over_rows(kernel: Callable[..., None], rows: int, *arguments: Any) -> None:
    """Run a kernel over all rows, in one band of rows per thread.

    Small arrays are not shared: the caller's thread takes all rows.

    Parameters
    ----------
    kernel
        Called as ``kernel(start, stop, *arguments)``. It writes rows start to stop - 1 of its
        result and may read any row.
    rows
        Number of rows in all.
    arguments
        Passed to every call; the size of the arrays among them, also of those in named tuples,
        decides whether sharing pays.
    """
    is_shared = _size_bytes(arguments) >= _WORTH_SHARING_BYTES
    bands = min(thread_count() if is_shared else 1, rows)
    edges = [rows * band // bands for band in range(bands + 1)] if bands else [0]
    run_together(
        *(
            lambda start=start, stop=stop: kernel(start, stop, *arguments)
            for start, stop in pairwise(edges)
        )
    )


def run_together(*works: Callable[[], Any]) -> list[Any]:
    """Run tasks at the same time, as far as there are threads, and return their results in order.

    All tasks have ended when this returns or raises; the first error in the order of the tasks is
    raised. Only Ctrl-C does not wait for tasks that other threads have begun.
    """
    # A pool thread runs nested tasks itself: waiting for other pool threads could deadlock.
    is_nested = getattr(_this_thread, "is_of_pool", False)
    if len(works) < 2 or is_nested or thread_count() == 1:
        return [work() for work in works]
    tasks = [_Task(work) for work in works]
    futures = _submit(tasks[1:])
    try:
        tasks[0].run()
        # The pool begins with the first tasks in its queue, so the caller begins with the last.
        for task in reversed(tasks):
            task.run()
    finally:
        begun = [future for future in futures if not future.cancel()]
    for future in begun:
        future.result()
    for task in tasks:
        if task.error is not None:
            raise task.error
    return [task.result for task in tasks]


class _Task:
    """One piece of work that runs once, in the first thread that calls `run`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._claim = threading.Lock()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work, unless another thread has begun it."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            self.result = self._work()
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            self.error = error


def _submit(tasks: list[_Task]) -> list[Future[None]]:
    """Queue tasks in the pool; those that cannot be queued are left to the caller."""
    pool = _pool(os.getpid(), max(_all_threads() - _callers(), 1))
    futures: list[Future[None]] = []
    for task in tasks:
        try:
            futures.append(pool.submit(task.run))
        except RuntimeError:  # no further thread can be started, or Python is shutting down
            break
    return futures


@cache
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    # Keyed by process: threads do not survive a fork, so a child process makes its own pool.
    return ThreadPoolExecutor(workers, thread_name_prefix="d3s", initializer=_mark_pool_thread)


def _mark_pool_thread() -> None:
    _this_thread.is_of_pool = True


def _size_bytes(arguments: tuple[Any, ...]) -> int:
    size = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            size += argument.nbytes
        elif isinstance(argument, tuple):
            size += _size_bytes(argument)
    return size
