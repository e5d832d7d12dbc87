"""Fair timing: contenders take turns, and each keeps its best time."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Work(NamedTuple):
    """Function to time, and its preparation, which is not timed."""

    run: Callable[[], object]
    prepare: Callable[[], object] | None = None


def best_seconds(*works: Callable[[], object], repeats: int = 5) -> list[float]:
    """Best time of each function in seconds; they take turns, so a busy moment hits all."""
    named = {str(i): Work(work) for i, work in enumerate(works)}
    return list(race(named, rounds=repeats, budget_s=float("inf"), warm=False).values())


def race(
    works: Mapping[str, Work],
    *,
    rounds: int = 7,
    least: int = 2,
    budget_s: float = 8.0,
    warm: bool = True,
) -> dict[str, float]:
    """Best time of each contender in seconds, by name; they take turns.

    Parameters
    ----------
    works
        Contenders by name.
    rounds
        Largest number of timed rounds.
    least
        Smallest number of timed rounds.
    budget_s
        Time after which no further round begins.
    warm
        Whether an untimed round comes first, which compiles, loads code and touches memory.
    """
    best = dict.fromkeys(works, float("inf"))
    begun = time.perf_counter()
    for number in range(-int(warm), rounds):
        if number >= least and time.perf_counter() - begun > budget_s:
            break
        for name, work in works.items():
            if work.prepare is not None:
                work.prepare()
            start = time.perf_counter()
            work.run()
            if number >= 0:
                best[name] = min(best[name], time.perf_counter() - start)
    return best
