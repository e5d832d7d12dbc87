"""Seconds, fairly: contenders take turns, and each has its best."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Work(NamedTuple):
    """Something to time, and what has to be set before it, which is not timed."""

    run: Callable[[], object]
    prepare: Callable[[], object] | None = None


def best_seconds(*works: Callable[[], object], repeats: int = 5) -> list[float]:
    """Best of several runs of each, taken in turns so that a busy moment hits all of them."""
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
    """Best seconds of each, by name, taken in turns.

    `rounds` of them, or, from `least` on, as many as fit into `budget_s`. The first is not counted
    if `warm`: it compiles, loads and touches memory.
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
