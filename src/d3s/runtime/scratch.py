"""Memory that is kept from one call to the next.

Fresh memory is slow: the system hands it out page by page, each wiped first, and for the volumes of
a full frame that takes longer than to fill them. So a call borrows a `Memory`, takes its arrays
from it one after the other, and gives it back as a whole.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_ALIGNMENT = 64  # bytes of a cache line
_BLOCK = 16 * 2**20
_MOST_KEPT = 2  # memories that wait for the next call; more were for callers at the same time


class Memory:
    """Arrays out of large blocks, one behind the other, until all are given back at once."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.uint8]] = []
        self._block, self._used = 0, 0
        self._touched: set[int] = set()

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """An array of any content, contiguous; behind it a cache line may be read, not written."""
        size = prod(shape) * np.dtype(dtype).itemsize
        room = (-(-size // _ALIGNMENT) + 1) * _ALIGNMENT
        while self._block < len(self._blocks) and (
            self._used + room > self._blocks[self._block].size
        ):
            self._block, self._used = self._block + 1, 0
        if self._block == len(self._blocks):
            self._blocks.append(_aligned(max(room, _BLOCK)))
        self._touched.add(self._block)
        start = self._used
        self._used += room
        return self._blocks[self._block][start : start + size].view(dtype).reshape(shape)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Arrays taken within are given back at its end."""
        mark = self._block, self._used
        try:
            yield
        finally:
            self._block, self._used = mark

    def drop_idle_blocks(self) -> None:
        """Give those back to the system that were not used since the last time."""
        self._blocks = [block for i, block in enumerate(self._blocks) if i in self._touched]
        self._touched = set()
        self._block, self._used = 0, 0

    @property
    def size_bytes(self) -> int:
        """All that it holds."""
        return sum(block.size for block in self._blocks)


def _aligned(size: int) -> NDArray[np.uint8]:
    raw = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size]


_lock = threading.Lock()
_kept: dict[int, list[Memory]] = {}  # by process: a child's pages are not its parent's


@contextmanager
def borrowed_memory() -> Iterator[Memory]:
    """A memory that nobody else uses meanwhile; its arrays must not outlive the block."""
    with _lock:
        waiting = _kept.setdefault(os.getpid(), [])
        memory = waiting.pop() if waiting else Memory()
    with memory.part():
        yield memory
    # Not after an error: a thread that nobody waited for may still write to it.
    memory.drop_idle_blocks()
    with _lock:
        if len(waiting) < _MOST_KEPT:
            waiting.append(memory)


def _forget() -> None:
    """In the child of a fork: another thread may have held the lock."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def release_memory() -> None:
    """Give all that is kept back to the system."""
    with _lock:
        _kept.clear()
