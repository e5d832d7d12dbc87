"""Fair timing, where contenders take turns and each keeps its best time; and the machine."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from d3s.runtime.parallel import thread_count
from sheets import Sheet

PACKAGES = ("numpy", "scipy", "numba", "opencv-python-headless")


def race(
    works: Mapping[str, Callable[[], object]], *, rounds: int = 7, budget_s: float = 8.0
) -> dict[str, float]:
    """Best time of each contender in seconds, by name; they take turns, so a busy moment hits all.

    An untimed round comes first, which compiles, loads code and touches memory.

    Parameters
    ----------
    works
        Contenders by name.
    rounds
        Largest number of timed rounds.
    budget_s
        Time after which no further round begins, once there are two.
    """
    best = dict.fromkeys(works, float("inf"))
    begun = time.perf_counter()
    for number in range(-1, rounds):
        if number >= 2 and time.perf_counter() - begun > budget_s:
            break
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if number >= 0:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def processor() -> str:
    """Name of the processor, and the number of cores that are used."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {thread_count()} cores"


def machine_sheet() -> Sheet:
    """Description of the machine as a table."""
    lines = [
        ("processor", processor()),
        ("system", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"),
        ("packages", ", ".join(f"{name} {version(name)}" for name in PACKAGES)),
        ("load before the run", f"{os.getloadavg()[0]:.2f} cores"),
    ]
    return Sheet("the machine", ("property", "value"), lines, words=(0, 1))
