"""Fair timing, where contenders take turns and each keeps its best time; and the machine."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from d3s.runtime.parallel import thread_count
from sheets import Sheet

# Instruction sets that change the speed of loops over float32.
SIMD = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512bw", "neon", "sve")
PACKAGES = ("numpy", "scipy", "numba", "opencv-python-headless")


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


# The machine --------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """Processor, memory, system and packages; "unknown" where the system does not say."""
    load = f"{os.getloadavg()[0]:.2f} cores" if hasattr(os, "getloadavg") else "unknown"
    return {
        "processor": f"{_cpu()}, {thread_count()} cores",
        "caches": _caches(),
        "instructions": _simd(),
        "memory": f"{_memory_gb():.0f} GB; huge pages: {_huge_pages()}",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}, "
        f"Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "load before the run": load,
    }


def machine_sheet() -> Sheet:
    """Description of the machine as a table."""
    return Sheet("the machine", ("property", "value"), list(machine().items()), words=(0, 1))


def _cpu() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _caches() -> str:
    """Sizes of the data caches of the first core."""
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_text(folder / name).strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found) or "unknown"


def _simd() -> str:
    from llvmlite import binding  # type: ignore[import-untyped]

    has = binding.get_host_cpu_features()
    return ", ".join(name for name in SIMD if has.get(name)) or "unknown"


def _huge_pages() -> str:
    """Setting of transparent huge pages, the one in brackets."""
    text = _text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
    return text.partition("[")[2].partition("]")[0] or "unknown"


def _memory_gb() -> float:
    if not hasattr(os, "sysconf"):
        return float("nan")
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
