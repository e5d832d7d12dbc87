"""The machine: what it is, and what it can do at most, measured.

A time says little without the machine, and how good it is without the machine's limits: how many
bytes a second it copies, how many operations it does, what fresh memory costs.
"""

import mmap
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from d3s.runtime.parallel import thread_count
from sheets import Sheet
from timing import Work, race

COPY_BYTES = 256 * 2**20  # of one array: far more than any cache holds
MATRIX = 1536  # rows of the matrices that are multiplied
# Sets of instructions that change how fast loops over float32 can be.
SIMD = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512bw", "neon", "sve")
PACKAGES = ("numpy", "scipy", "numba", "opencv-python-headless")


def description() -> dict[str, Any]:
    """What the machine is; "unknown" where the system does not say."""
    return {
        "cpu": _cpu(),
        "cores": thread_count(),
        "caches": _caches(),
        "simd": _simd(),
        "memory_gb": _memory_gb(),
        "huge_pages": _huge_pages(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def limits(size: int = COPY_BYTES, matrix: int = MATRIX) -> dict[str, Any]:
    """What it can do at most, of one thread and of all."""
    copy = _copy_gb_s(1, size), _copy_gb_s(thread_count(), size)
    product = _alone_gflop_s(matrix), _gflop_s(matrix)
    # What one thread can do all can: less was a busy moment.
    return {
        "copy_gb_s": {"1": copy[0], "all": max(copy)},
        "float32_gflop_s": {"1": product[0], "all": max(product)},
        "fresh_page_ns": _fresh_page_ns(size // 4),
        "page_bytes": mmap.PAGESIZE,
    }


def sheet(machine: dict[str, Any]) -> Sheet:
    """Both as a table."""
    measured = machine["limits"]
    copy, flops = measured["copy_gb_s"], measured["float32_gflop_s"]
    fresh_gb_s = measured["page_bytes"] / measured["fresh_page_ns"]
    lines = [
        ("processor", f"{machine['cpu']}, {machine['cores']} cores"),
        ("caches", machine["caches"]),
        ("instructions", machine["simd"]),
        ("memory", f"{machine['memory_gb']:.0f} GB; huge pages: {machine['huge_pages']}"),
        ("system", f"{machine['system']}, Python {machine['python']}"),
        ("packages", ", ".join(f"{name} {machine[name]}" for name in PACKAGES)),
        ("busy before the run", f"{machine['load']} cores"),
        ("copying, 1 thread / all", f"{copy['1']:.1f} / {copy['all']:.1f} GB/s, read and written"),
        (
            "float32 arithmetic, 1 thread / all",
            f"{flops['1']:.0f} / {flops['all']:.0f} GFLOP/s, product of matrices by NumPy's BLAS",
        ),
        (
            "memory that is fresh",
            f"{measured['fresh_page_ns']:.0f} ns a page, {fresh_gb_s:.1f} GB/s, 1 thread",
        ),
    ]
    return Sheet("the machine", ("what", "this one"), lines, words=(0, 1))


def _copy_gb_s(threads: int, size: int) -> float:
    """Bytes read plus bytes written; NumPy copies without Python's lock."""
    source, target = (np.full(size, value, dtype=np.uint8) for value in (1, 0))
    edges = [size * part // threads for part in range(threads + 1)]
    parts = [slice(*pair) for pair in pairwise(edges)]
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))

        seconds = race({"copy": Work(copy)}, rounds=5)["copy"]
    return 2e-9 * size / seconds


def _gflop_s(matrix: int) -> float:
    """Of a product of matrices in float32, which comes near the peak."""
    one = np.random.default_rng(0).random((matrix, matrix), dtype=np.float32)
    out = np.empty_like(one)
    seconds = race({"product": Work(lambda: np.matmul(one, one, out=out))}, rounds=7)["product"]
    return 2e-9 * matrix**3 / seconds


def _alone_gflop_s(matrix: int) -> float:
    """The same by one thread: BLAS wants to be told before it is loaded."""
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    done = subprocess.run(
        [sys.executable, __file__, str(matrix)],
        env={**os.environ, **dict.fromkeys(names, "1")},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def _fresh_page_ns(size: int) -> float:
    """What the system takes to hand out a page, wiped, when it is first touched."""
    best = float("inf")
    for _ in range(3):
        with mmap.mmap(-1, size) as fresh:
            memory = np.frombuffer(fresh, dtype=np.uint8)
            start = time.perf_counter()
            memory[:: mmap.PAGESIZE] = 1
            best = min(best, time.perf_counter() - start)
            del memory  # a mapping that somebody looks at cannot be closed
    return 1e9 * best / (size // mmap.PAGESIZE)


def _cpu() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _caches() -> str:
    """Sizes as the first core sees them."""
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_line(folder / name) for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level} {_kilobytes(size)}")
    return ", ".join(found) or "unknown"


def _kilobytes(size: str) -> str:
    number = int(size.removesuffix("K")) if size.endswith("K") else 0
    if not number:
        return size
    return f"{number} kB" if number < 1024 else f"{number / 1024:g} MB"


def _simd() -> str:
    from llvmlite import binding  # type: ignore[import-untyped]

    has = binding.get_host_cpu_features()
    return ", ".join(name for name in SIMD if has.get(name)) or "unknown"


def _huge_pages() -> str:
    """The choice that is in brackets among all that there are."""
    text = _text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
    return text.partition("[")[2].partition("]")[0] or "unknown"


def _memory_gb() -> float:
    if not hasattr(os, "sysconf"):
        return float("nan")
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _line(path: Path) -> str:
    return _text(path).strip() or "unknown"


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


if __name__ == "__main__":
    print(_gflop_s(int(sys.argv[1])))
