"""Between threads: places for one item, where the newest wins and every loss is counted; turns."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_APART = 0.8  # of an even distance in time: results come evenly, and a thread hardly ever waits


class Slot(Generic[_Item]):
    """Place for one item on its way from one thread to another."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._item: _Item | None = None
        self._is_closed = False
        self.replaced = 0  # items that nobody took

    def put(self, item: _Item, *, wait: bool = False) -> None:
        """Put an item, in place of one that was not taken, or once that is taken."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: self._item is None or self._is_closed)
            self.replaced += self._item is not None
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


class Turns(Generic[_Item]):
    """Threads that take items of a slot in turn, evenly apart.

    Two threads that begin together end together: of 9 results a second, pairs would come 4 or 5
    times. So one begins a while after the one before, unless no other is under way.
    """

    def __init__(self, slot: Slot[_Item], threads: int) -> None:
        self._slot, self._threads = slot, threads
        self._taking = threading.Lock()
        self._changed = threading.Condition()
        self._under_way = self._count = 0
        self._begun_s = self._spent_s = 0.0

    def run(self, work: Callable[[_Item, int, int], None]) -> None:
        """Call work(item, number from 1, items under way) for each item, until the slot is closed.

        Each of the threads runs this.
        """
        while True:
            with self._taking:
                with self._changed:
                    next_s = self._begun_s + _APART * self._spent_s / self._threads
                    wait_s = max(next_s - time.monotonic(), 0.0)
                    self._changed.wait_for(lambda: not self._under_way, wait_s)
                item = self._slot.take()
                if item is None:
                    return
                with self._changed:
                    self._under_way += 1
                    self._count += 1
                    number, at_once = self._count, self._under_way
                    self._begun_s = begun_s = time.monotonic()
            work(item, number, at_once)
            with self._changed:
                self._under_way -= 1
                self._spent_s = time.monotonic() - begun_s
                self._changed.notify_all()
