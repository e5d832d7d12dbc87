"""Description and measured limits of the machine.

Times mean little without the machine they were measured on. Its limits are the rate of copying, the
rate of arithmetic, and the time to get fresh memory.
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

COPY_BYTES = 256 * 2**20  # size of one array, far larger than any cache
MATRIX = 1536  # rows and columns of the matrix product
# Instruction sets that change the speed of loops over float32.
SIMD = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512bw", "neon", "sve")
PACKAGES = ("numpy", "scipy", "numba", "opencv-python-headless")


def description() -> dict[str, Any]:
    """Processor, memory, system and packages; "unknown" where the system does not say."""
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
    """Measured limits, for one thread and for all.

    `size` is the bytes of the arrays that are copied, `matrix` the side of the matrix product.
    """
    copy = _copy_gb_s(1, size), _copy_gb_s(thread_count(), size)
    product = _alone_gflop_s(matrix), _gflop_s(matrix)
    # All threads are at least as fast as one; a smaller value was a busy moment.
    return {
        "copy_gb_s": {"1": copy[0], "all": max(copy)},
        "float32_gflop_s": {"1": product[0], "all": max(product)},
        "fresh_page_ns": _fresh_page_ns(size // 4),
        "page_bytes": mmap.PAGESIZE,
    }


def sheet(machine: dict[str, Any]) -> Sheet:
    """Description and limits as a table."""
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
        ("load before the run", f"{machine['load']} cores"),
        ("copying, 1 thread / all", f"{copy['1']:.1f} / {copy['all']:.1f} GB/s, read and written"),
        (
            "float32 arithmetic, 1 thread / all",
            f"{flops['1']:.0f} / {flops['all']:.0f} GFLOP/s, matrix product by NumPy's BLAS",
        ),
        (
            "fresh memory",
            f"{measured['fresh_page_ns']:.0f} ns per page, {fresh_gb_s:.1f} GB/s, 1 thread",
        ),
    ]
    return Sheet("the machine", ("property", "value"), lines, words=(0, 1))


def _copy_gb_s(threads: int, size: int) -> float:
    """Copying rate in GB/s, bytes read plus bytes written; NumPy releases Python's lock."""
    source, target = (np.full(size, value, dtype=np.uint8) for value in (1, 0))
    edges = [size * part // threads for part in range(threads + 1)]
    parts = [slice(*pair) for pair in pairwise(edges)]
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))

        seconds = race({"copy": Work(copy)}, rounds=5)["copy"]
    return 2e-9 * size / seconds


def _gflop_s(matrix: int) -> float:
    """Rate of a float32 matrix product in GFLOP/s, close to the peak."""
    one = np.random.default_rng(0).random((matrix, matrix), dtype=np.float32)
    out = np.empty_like(one)
    seconds = race({"product": Work(lambda: np.matmul(one, one, out=out))}, rounds=7)["product"]
    return 2e-9 * matrix**3 / seconds


def _alone_gflop_s(matrix: int) -> float:
    """Rate of the matrix product with one thread, in a new process.

    BLAS reads the number of threads when it is loaded.
    """
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
    """Time in ns until the system has mapped and cleared a page at its first use."""
    best = float("inf")
    for _ in range(3):
        with mmap.mmap(-1, size) as fresh:
            memory = np.frombuffer(fresh, dtype=np.uint8)
            start = time.perf_counter()
            memory[:: mmap.PAGESIZE] = 1
            best = min(best, time.perf_counter() - start)
            del memory  # a mapping cannot be closed while an array views it
    return 1e9 * best / (size // mmap.PAGESIZE)


def _cpu() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _caches() -> str:
    """Sizes of the data caches of the first core."""
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
    """Setting of transparent huge pages, the one in brackets."""
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
