"""The same work on every frame, on all cores."""

from collections.abc import Callable
from typing import TypeVar

from d3s.runtime.parallel import thread_count, together
from d3s.types import Progress

Found = TypeVar("Found")


def on_each_frame(
    work: Callable[[int], Found], count: int, progress: Progress | None = None
) -> list[Found]:
    """What is found on frames 0 to count - 1, in their order; as many at once as threads.

    Frames are better shared out than their rows: much of what is done with one is not done by rows.
    """
    found: list[Found] = []
    while len(found) < count:
        numbers = range(len(found), min(len(found) + thread_count(), count))
        found += together(*(lambda number=number: work(number) for number in numbers))
        if progress is not None:
            progress(len(found), count)
    return found
