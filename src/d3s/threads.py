"""Rows of an image shared out among the cores.

The kernels of D3S are compiled without parallel loops of their own and let go of Python's lock, so
that plain threads can run them: any number of callers at once, the same bytes whatever their
number. `D3S_THREADS` in the environment sets how many there are; one each core otherwise.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from d3s.errors import InputError

_this_thread = threading.local()


def thread_count() -> int:
    """How many threads to use: `D3S_THREADS`, or the cores that this process may run on."""
    text = os.environ.get("D3S_THREADS", "").strip()
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores()
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise InputError(f"D3S_THREADS={text!r} must be a whole number from 1 to 1024.")
    return int(text)


def over_rows(kernel: Callable[..., None], rows: int, *arguments: Any) -> None:
    """Call `kernel(start, stop, *arguments)` for bands that together are all rows.

    The kernel writes rows start to stop - 1 of its result, and reads what it likes.
    """
    bands = min(thread_count(), rows)
    edges = [rows * band // bands for band in range(bands + 1)] if bands else [0]
    together(
        *(
            lambda start=start, stop=stop: kernel(start, stop, *arguments)
            for start, stop in pairwise(edges)
        )
    )


def together(*works: Callable[[], Any]) -> list[Any]:
    """Results of several pieces of work, done at the same time where there are cores for it."""
    # A thread of the pool does its parts itself: if all waited for others, none would go on.
    if len(works) < 2 or getattr(_this_thread, "is_of_pool", False) or thread_count() == 1:
        return [work() for work in works]
    others = [_pool(os.getpid()).submit(work) for work in works[1:]]
    try:
        first = works[0]()
    finally:
        rest = [other.exception() for other in others]
    for error in rest:
        if error is not None:
            raise error
    return [first, *(other.result() for other in others)]


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    # Named by the process: threads do not survive a fork, so its child gets its own.
    return ThreadPoolExecutor(64, thread_name_prefix="d3s", initializer=_mark_thread)


def _mark_thread() -> None:
    _this_thread.is_of_pool = True


def _cores() -> int:
    return os.cpu_count() or 1
