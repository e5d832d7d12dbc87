"""Measurements that need a new process: first call, imports, peak memory.

Child processes share a cache folder for compiled code, empty at first: the first call compiles, all
others load the cache.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Script of a user; its last line prints the time of the result.
CALL = """
import sys, time, numpy as np, d3s
left, right = np.load(sys.argv[1])
est = d3s.estimate(left, right, d3s.Rig.paper_prototype())
print(repr(time.time()))
"""
IMPORT = """
import time
begun = time.perf_counter()
import d3s
print(repr(time.perf_counter() - begun))
"""
SMALL = (64, 200)  # frame of a call that loads all code and needs little memory


class FirstCalls(NamedTuple):
    """Times from the start of Python to the result, in seconds."""

    ever_s: float  # with nothing compiled
    said: tuple[str, ...]  # messages about the compilation
    warm_s: float  # with everything compiled, best of several
    import_s: float  # `import d3s` alone


class Memory(NamedTuple):
    """Memory of one call, in bytes above that of the process with both images loaded."""

    peak: int | None  # by the system's high-water mark, reset before the call
    peak_by_rusage: int  # by the largest memory of the process so far, for comparison
    kept: int | None  # after the call, with the result


@contextmanager
def saved(left: "NDArray[Any]", right: "NDArray[Any]") -> Iterator[Path]:
    """Temporary file with both views; the cache for compiled code lies beside it."""
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="d3s-bench-") as folder:
        path = Path(folder) / "pair.npy"
        np.save(path, np.stack([left, right]))
        yield path


def first_calls(pair: Path, times: int) -> FirstCalls:
    """Times of the first call ever, then of `times` new processes with compiled code."""
    ever_s, lines = _call(pair)
    said = tuple(line for line in lines if re.search("compil", line, re.IGNORECASE))
    warm_s = min(_call(pair)[0] for _ in range(times))
    import_s = min(float(_python(pair, "-c", IMPORT).stdout) for _ in range(times))
    return FirstCalls(ever_s, said, warm_s, import_s)


def memory(pair: Path) -> Memory:
    """Peak memory of a call in a process whose code is loaded already.

    A shell starts the process: on Linux a child inherits `ru_maxrss` of a large parent.
    """
    done = _run(pair, "sh", "-c", '"$@"; exit', "sh", sys.executable, __file__, str(pair))
    return Memory(**json.loads(done.stdout.splitlines()[-1]))


def _call(pair: Path) -> tuple[float, list[str]]:
    begun = time.time()
    done = _python(pair, "-c", CALL, str(pair))
    *lines, ended = done.stdout.splitlines()
    return float(ended) - begun, [*lines, *done.stderr.splitlines()]


def _python(pair: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return _run(pair, sys.executable, *words)


def _run(pair: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    compiled = {"NUMBA_CACHE_DIR": str(pair.parent / "compiled")}
    done = subprocess.run(words, env={**os.environ, **compiled}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"A child process failed:\n{done.stderr}")
    return done


# In the child process -----------------------------------------------------------------------------


def measured_here(path: str) -> Memory:
    """Memory of a call in this process, for the views in the file `path`."""
    import gc
    import resource

    import numpy as np

    import d3s

    left, right = np.load(path)
    rig = d3s.Rig.paper_prototype()
    small = tuple(slice(size) for size in SMALL)
    d3s.estimate(left[small], right[small], rig)
    _give_back()
    gc.collect()
    before, can_reset = _status_bytes("VmRSS"), _set_mark_back()
    est = d3s.estimate(left, right, rig)
    peak, after = _status_bytes("VmHWM"), _status_bytes("VmRSS")
    unit = 1 if sys.platform == "darwin" else 1024
    largest = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    del est
    known = before is not None and peak is not None and after is not None and can_reset
    start = before or 0
    return Memory(
        peak=(peak or 0) - start if known else None,
        peak_by_rusage=largest - start,
        kept=(after or 0) - start if known else None,
    )


def _give_back() -> None:
    """Return the scratch memory of d3s to the system."""
    try:
        from d3s.runtime.scratch import release_scratch
    except ImportError:
        return
    release_scratch()


def _status_bytes(name: str) -> int | None:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return 1024 * int(found[1]) if found else None


def _set_mark_back() -> bool:
    """Reset the high-water mark of memory; Linux only. Return whether that worked."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(measured_here(sys.argv[1])._asdict()))
