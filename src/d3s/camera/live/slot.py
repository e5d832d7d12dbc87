"""Between threads: places for one item, where the newest wins and every loss is counted; starts."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Slot(Generic[_Item]):
    """Place for one item on its way from one thread to another.

    `put` replaces an item that was not taken yet, and counts it in `replaced`. `put_and_wait`
    replaces nothing.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._item: _Item | None = None
        self._is_closed = False
        self.replaced = 0  # items that nobody took

    def put(self, item: _Item) -> None:
        """Put an item, in place of one that was not taken."""
        with self._changed:
            self.replaced += self._item is not None
            self._item = None if self._is_closed else item
            self._changed.notify_all()

    def put_and_wait(self, item: _Item) -> None:
        """Put an item once the one before is taken; returns at once when the slot is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._item is None or self._is_closed)
            self._item = None if self._is_closed else item
            self._changed.notify_all()

    def take(self) -> _Item | None:
        """Wait for an item and take it out; None when the slot is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._item is not None or self._is_closed)
            item, self._item = self._item, None
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """End all waiting. An item that is there can still be taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class Newest(Generic[_Item]):
    """The newest item, for any number of readers, who may each read it many times.

    An item that is replaced before anybody read it is counted in `unread`. `listeners` are called
    in the thread of `put`, without arguments, after every change.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._item: _Item | None = None
        self._is_read = True
        self.unread = 0
        self.listeners: list[Callable[[], None]] = []

    def put(self, item: _Item) -> None:
        """Replace the item."""
        with self._lock:
            self.unread += not self._is_read
            self._item, self._is_read = item, False
        self.notify()

    def notify(self) -> None:
        """Call the listeners, as after a change."""
        for listener in tuple(self.listeners):
            listener()

    def peek(self) -> _Item | None:
        """Return the item without reading it: it still counts as unread."""
        return self._item

    def read(self) -> _Item | None:
        """Return the item, which counts as read; None if there is none yet."""
        with self._lock:
            self._is_read = True
            return self._item


# Share of an even distance in time: results come evenly, and a thread hardly ever waits.
_APART = 0.8


@dataclass(frozen=True)
class Started(Generic[_Item]):
    """One frame that a thread computes."""

    item: _Item
    number: int  # from 1, in the order of the items
    at_once: int  # frames that are being computed, this one included
    begun_s: float  # by `time.monotonic`


class Stagger(Generic[_Item]):
    """Starts of the threads of one slot, evenly apart.

    Two threads that begin together end together: of 9 results a second, pairs would come 4 or 5
    times. So one begins a while after the one before, unless no other is under way.
    """

    def __init__(self, take: Callable[[], _Item | None], threads: int) -> None:
        self._take = take
        self._threads = threads
        self._taking = threading.Lock()
        self._changed = threading.Condition()
        self._under_way = self._count = 0
        self._begun_s = self._spent_s = 0.0

    def begin(self) -> Started[_Item] | None:
        """Wait for the time of the next start and for its item; None at the end."""
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
                return Started(item, self._count, self._under_way, self._begun_s)

    def end(self, started: Started[_Item]) -> None:
        """Say that an item is done."""
        with self._changed:
            self._under_way -= 1
            self._spent_s = time.monotonic() - started.begun_s
            self._changed.notify_all()
