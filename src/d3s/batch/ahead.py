"""Frames read one ahead, in a thread of their own, while the frame before is estimated."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from d3s.capture import Frame, Refused


class Timed(NamedTuple):
    """A frame, or why there is none, and the time of reading it."""

    outcome: Frame | Refused
    read_s: float


def read_ahead(
    source: Iterable[Frame | Refused], *, meanwhile: Callable[[], None]
) -> Iterator[Timed]:
    """Yield the outcomes of a source in order; the next one is read meanwhile.

    Reading begins with the first call of `next`. One frame more than without is in memory.

    Parameters
    ----------
    source
        Frames to read.
    meanwhile
        Called once, while the first frame is read.
    """
    outcomes = iter(source)

    def read() -> Timed | None:
        started = time.perf_counter()
        outcome = next(outcomes, None)
        return None if outcome is None else Timed(outcome, time.perf_counter() - started)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(read)
        meanwhile()
        while (one := waiting.result()) is not None:
            waiting = pool.submit(read)
            yield one
