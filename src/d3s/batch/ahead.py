"""Frames read one ahead, in a thread of their own, while the frame before is estimated."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from d3s.frames import Frame, Refused


class Timed(NamedTuple):
    """A frame, or why there is none, and the time of reading it."""

    outcome: Frame | Refused
    read_s: float


def read_ahead(
    frames: Iterable[Timed], *, meanwhile: Callable[[], None]
) -> Generator[Timed, None, None]:
    """Yield frames in order; the next one is read meanwhile.

    Reading begins with the first call of `next`. One frame more than without is in memory. Close
    the generator: otherwise it waits for its thread when it is collected as garbage, and the code
    that is interrupted then may hold a lock which that thread needs to end.

    Parameters
    ----------
    frames
        Frames, each read as it is taken.
    meanwhile
        Called once, while the first frame is read.
    """
    reading = iter(frames)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, reading, None)
        meanwhile()
        while (one := waiting.result()) is not None:
            waiting = pool.submit(next, reading, None)
            yield one
