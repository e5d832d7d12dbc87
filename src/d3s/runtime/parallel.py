"""Rows of an image shared out among the cores.

The kernels of D3S are compiled without parallel loops of their own and let go of Python's lock, so
that plain threads can run them: any number of callers at once, the same bytes whatever their
number. `D3S_THREADS` in the environment sets how many there are; one each core otherwise. A caller
that finds them all busy does the work itself.
"""

import os
import threading
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from d3s.errors import InputError

_this_thread = threading.local()
_BEGUN, _DONE = 0, 1  # counters
_TURNS, _MORE_TURNS = 20_000, 400  # one takes 10 to 40 ns
# A loop over fewer bytes than this is done sooner than another thread has taken its part.
_WORTH_SHARING_BYTES = 400_000


def thread_count() -> int:
    """How many threads to use: `D3S_THREADS`, or the cores that this process may run on."""
    text = os.environ.get("D3S_THREADS", "").strip()
    if not text:
        return allowed_cores()
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise InputError(f"D3S_THREADS={text!r} must be a whole number from 1 to 1024.")
    return int(text)


def over_rows(kernel: Callable[..., None], rows: int, *arguments: Any) -> None:
    """Call `kernel(start, stop, *arguments)` for bands that together are all rows.

    The kernel writes rows start to stop - 1 of its result, and reads what it likes. Little work,
    by the size of all arrays, is not shared out.
    """
    size = sum(one.nbytes for one in arguments if isinstance(one, np.ndarray))
    bands = min(thread_count() if size >= _WORTH_SHARING_BYTES else 1, rows)
    edges = [rows * band // bands for band in range(bands + 1)] if bands else [0]
    together(
        *(
            lambda start=start, stop=stop: kernel(start, stop, *arguments)
            for start, stop in pairwise(edges)
        )
    )


def together(*works: Callable[[], Any]) -> list[Any]:
    """Results of several pieces of work, done at the same time where there are cores for it."""
    # A thread of the crew does its parts itself: if all waited for others, none would go on.
    if len(works) < 2 or getattr(_this_thread, "is_of_crew", False):
        return [work() for work in works]
    threads = thread_count()
    if threads == 1:
        return [work() for work in works]
    crew = _crew(os.getpid())
    hands = crew.taken(min(len(works), threads) - 1)
    # With fewer cores than threads whoever waits awake is in the way of those who work.
    turns = _TURNS if threads <= allowed_cores() else 0
    try:
        # Each hand has one piece, and what is left over the caller does after its own.
        for hand, work in zip(hands, works[1:], strict=False):
            hand.start(work, turns)
        own = [_outcome(work) for work in (works[0], *works[1 + len(hands) :])]
        others = [hand.waited_for() for hand in hands]
    except BaseException:  # somebody at the keyboard does not want to wait
        crew.forget(hands)
        raise
    crew.give_back(hands)
    outcomes = [own[0], *others, *own[1:]]
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.result for outcome in outcomes]


class _Outcome(NamedTuple):
    result: Any
    error: BaseException | None


def _outcome(work: Callable[[], Any]) -> _Outcome:
    try:
        return _Outcome(work(), None)
    except BaseException as error:  # noqa: BLE001 - raised again by who waits for it
        return _Outcome(None, error)


class _Hand:
    """A thread that does one piece of work after the other.

    Between two pieces it waits awake for a moment: pieces follow each other closely within a frame,
    and a thread that fell asleep takes long to wake.
    """

    def __init__(self, number: int) -> None:
        self._counters = np.zeros(2, dtype=np.int64)  # pieces begun, pieces done
        self._changed = threading.Condition()
        self._sleepers = 0  # of the two threads that look at the counters
        self._work: Callable[[], Any] = _nothing
        self._outcome = _Outcome(None, None)
        self._turns = 0
        threading.Thread(target=self._run, name=f"d3s-{number}", daemon=True).start()

    def start(self, work: Callable[[], Any], turns: int) -> None:
        """Hand it a piece; both sides wait awake for so many turns."""
        self._work, self._turns = work, turns
        self._count_up(_BEGUN)

    def waited_for(self) -> _Outcome:
        """What has become of it."""
        self._wait(_DONE, int(self._counters[_BEGUN]), 0)
        outcome, self._outcome = self._outcome, _Outcome(None, None)
        return outcome

    def _run(self) -> None:
        _this_thread.is_of_crew = True
        number = 0
        while True:
            number += 1
            # Once the counter says so, the other thread still holds Python's lock for a moment.
            self._wait(_BEGUN, number, _MORE_TURNS)
            work, self._work = self._work, _nothing
            self._outcome = _outcome(work)
            del work  # or it would keep its arrays alive
            self._count_up(_DONE)

    def _count_up(self, counter: int) -> None:
        self._counters[counter] += 1
        # Whoever sleeps has said so before it looked at the counter for the last time.
        if self._sleepers:
            with self._changed:
                self._changed.notify_all()

    def _wait(self, counter: int, number: int, more_turns: int) -> None:
        if _spin()(self._counters, counter, number, self._turns, more_turns):
            return
        with self._changed:
            self._sleepers += 1
            while self._counters[counter] != number:
                self._changed.wait()
            self._sleepers -= 1


class _Crew:
    """Hands, and which of them are free."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[_Hand] = []
        self._count = 0

    def taken(self, count: int) -> list[_Hand]:
        """Up to so many; fewer if others have them."""
        with self._lock:
            while len(self._free) < count and self._count < count:
                try:
                    self._free.append(_Hand(self._count + 1))
                except RuntimeError:  # no more threads to be had
                    break
                self._count += 1
            hands = self._free[:count]
            del self._free[:count]
            return hands

    def give_back(self, hands: list[_Hand]) -> None:
        """They are free again."""
        with self._lock:
            self._free.extend(hands)

    def forget(self, hands: list[_Hand]) -> None:
        """They may be busy for ever; others are to take their place."""
        with self._lock:
            self._count -= len(hands)


@cache
def _crew(process: int) -> _Crew:
    # Named by the process: threads do not survive a fork, so its child gets its own.
    return _Crew()


@cache
def _spin() -> Callable[..., bool]:
    from d3s.runtime.spinning import spin

    return spin


def _nothing() -> None:
    return None


def allowed_cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
