"""Turns of threads that compute frames at the same time: numbered, and evenly apart."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_Item = TypeVar("_Item")

# Share of an even distance in time: results come evenly, and a thread hardly ever waits.
_APART = 0.8


@dataclass(frozen=True)
class Turn(Generic[_Item]):
    """One frame that a thread computes."""

    item: _Item
    number: int  # from 1, in the order of the items
    at_once: int  # frames that are being computed, this one included
    begun_s: float  # by `time.monotonic`


class Turns(Generic[_Item]):
    """Turns of the threads of one place of frames.

    Two threads that begin together end together: of 9 results a second, pairs would come 4 or 5
    times. So a turn begins a while after the one before, unless no other is under way.

    Parameters
    ----------
    take
        Waits for an item, and returns None at the end.
    threads
        Number of threads.
    """

    def __init__(self, take: Callable[[], _Item | None], threads: int) -> None:
        self._take = take
        self._threads = threads
        self._taking = threading.Lock()
        self._changed = threading.Condition()
        self._under_way = self._count = 0
        self._begun_s = self._spent_s = 0.0

    def begin(self) -> Turn[_Item] | None:
        """Wait for the time of the next turn and for its item; None at the end."""
        with self._taking:
            with self._changed:
                next_s = self._begun_s + _APART * self._spent_s / self._threads
                self._changed.wait_for(
                    lambda: not self._under_way, max(next_s - time.monotonic(), 0.0)
                )
            item = self._take()
            if item is None:
                return None
            with self._changed:
                self._under_way += 1
                self._count += 1
                self._begun_s = time.monotonic()
                return Turn(item, self._count, self._under_way, self._begun_s)

    def end(self, turn: Turn[_Item]) -> None:
        """End a turn."""
        with self._changed:
            self._under_way -= 1
            self._spent_s = time.monotonic() - turn.begun_s
            self._changed.notify_all()
