"""Scratch memory that is kept from one call to the next.

Fresh memory is slow: the system provides it page by page and clears each page, which takes longer
than filling the cost volumes of a full frame. So a call borrows a `Scratch`, takes its arrays from
it one after the other, and gives all of it back at once.
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
_MOST_KEPT = 2  # idle scratch memories; further ones served simultaneous callers


class Scratch:
    """Allocator of arrays from large blocks; all arrays are freed at once."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.uint8]] = []
        self._block, self._used = 0, 0
        self._touched: set[int] = set()

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Return a contiguous array of undefined content.

        64 bytes behind its end may be read, not written: SIMD loads rely on it.
        """
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
        """Context whose arrays are freed at its end."""
        mark = self._block, self._used
        try:
            yield
        finally:
            self._block, self._used = mark

    def drop_idle_blocks(self) -> None:
        """Return blocks to the system that were not used since the last call of this method."""
        self._blocks = [block for i, block in enumerate(self._blocks) if i in self._touched]
        self._touched = set()
        self._block, self._used = 0, 0

    @property
    def size_bytes(self) -> int:
        """Size of all blocks."""
        return sum(block.size for block in self._blocks)


def _aligned(size: int) -> NDArray[np.uint8]:
    raw = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size]


_lock = threading.Lock()
_kept: dict[int, list[Scratch]] = {}  # by process: a child's pages are not its parent's


@contextmanager
def borrow_scratch() -> Iterator[Scratch]:
    """Lend a scratch memory for the context; its arrays must not outlive the context."""
    with _lock:
        waiting = _kept.setdefault(os.getpid(), [])
        memory = waiting.pop() if waiting else Scratch()
    with memory.part():
        yield memory
    # Not after an error: a thread that was not waited for may still write to it.
    memory.drop_idle_blocks()
    with _lock:
        if len(waiting) < _MOST_KEPT:
            waiting.append(memory)


def _forget() -> None:
    """Reset in the child of a fork, where another thread may have held the lock."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def release_scratch() -> None:
    """Return all idle scratch memory to the system."""
    with _lock:
        _kept.clear()
