"""What this machine has, and whether d3s computes on it what it should."""

import importlib.metadata
import importlib.util
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from d3s.estimate import estimate
from d3s.rig import Rig
from d3s.runtime.parallel import thread_count
from d3s.scene.pair import simulate
from d3s.scene.scenes import Plane
from d3s.version import __version__

PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "opencv-python-headless",
    "pydantic",
    "matplotlib",
    "tifffile",
    "typer",
    "rich",
)
EXTRAS = {"docs": ("sphinx", "to build the documentation"), "dev": ("pytest", "to run the tests")}
"""What `pip install d3s[NAME]` adds: the module that tells, and what it is for."""

# What the vectors of the compiled loops need to be fast; without them all works, slower.
_SIMD = ("avx512f", "avx2", "fma", "sse4.2", "neon", "sve")
_TEST_DEPTH_M, _TEST_SHAPE, _TEST_NOISE = 1.0, (160, 320), 0.01
# The plane of gravel has 0.5 mm and 92 %; twice that error is no chance, since the noise is the
# same on every machine.
LARGEST_ERROR_M, LEAST_DENSITY = 1e-3, 0.85


@dataclass(frozen=True, kw_only=True)
class SelfTest:
    """A simulated plane, and how well its depth came back."""

    error_m: float  # mean absolute, where there is a depth; NaN if there is none
    density: float  # of the pixels that the right view shows too
    time_s: float  # once compiled
    compile_time_s: float  # of the first call; little if the loops were compiled before

    @property
    def passed(self) -> bool:
        """Whether error and density are within their limits."""
        return self.error_m <= LARGEST_ERROR_M and self.density >= LEAST_DENSITY


@dataclass(frozen=True, kw_only=True)
class Health:
    """What `examine` found."""

    version: str  # of d3s
    python: str
    system: str
    packages: dict[str, str | None]  # versions; None if it is not there
    extras: dict[str, bool]
    cores: int  # of the machine
    threads: int  # that d3s uses
    simd: tuple[str, ...]
    memory_bytes: int | None  # None where the system does not say
    free_memory_bytes: int | None
    cache: str  # where compiled loops are kept
    cache_is_writable: bool
    self_test: SelfTest

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is wrong or slow, and what to do about it."""
        missing = [name for name, version in self.packages.items() if version is None]
        found = []
        if missing:
            found.append(f"Not installed: {', '.join(missing)}. Install d3s again with pip.")
        if not self.cache_is_writable:
            found.append(
                f"{self.cache} cannot be written, so loops are compiled anew in every run. Set "
                "NUMBA_CACHE_DIR to a folder that can."
            )
        if not self.self_test.passed:
            found.append(
                f"The self-test failed: its error must be at most {1e3 * LARGEST_ERROR_M:g} mm, "
                f"and its density at least {LEAST_DENSITY:.0%}. Please report it with the output "
                "of d3s doctor --json."
            )
        return tuple(found)


def examine() -> Health:
    """Look at the machine and its packages, and compute the depth of a small plane."""
    memory, free = _memory_bytes()
    cache = _cache_folder()
    return Health(
        version=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages={name: _version(name) for name in PACKAGES},
        extras={
            name: importlib.util.find_spec(module) is not None
            for name, (module, _) in EXTRAS.items()
        },
        cores=os.cpu_count() or 1,
        threads=thread_count(),
        simd=_simd(),
        memory_bytes=memory,
        free_memory_bytes=free,
        cache=str(cache),
        cache_is_writable=_is_writable(cache),
        self_test=self_test(),
    )


def self_test() -> SelfTest:
    """Depth of a simulated plane of gravel at 1 m, twice: the first call may compile."""
    rig = Rig.paper_prototype()
    plane = Plane(depth_m=_TEST_DEPTH_M, texture="gravel")
    pair = simulate(plane, rig, shape=_TEST_SHAPE, noise=_TEST_NOISE)
    times_s = []
    for _ in range(2):
        started = time.perf_counter()
        found = estimate(pair.left, pair.right, rig)
        times_s.append(time.perf_counter() - started)
    seen = ~pair.occluded
    kept = found.valid & seen
    error_m = np.abs(found.depth_m - pair.depth_m)[kept]
    return SelfTest(
        error_m=float(error_m.mean()) if error_m.size else float("nan"),
        density=float(kept.sum() / seen.sum()),
        time_s=times_s[1],
        compile_time_s=max(0.0, times_s[0] - times_s[1]),
    )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _simd() -> tuple[str, ...]:
    from llvmlite.binding import get_host_cpu_features

    try:
        features = get_host_cpu_features()
    except RuntimeError:  # a processor that LLVM does not know
        return ()
    return tuple(name for name in _SIMD if features.get(name))


def _memory_bytes() -> tuple[int | None, int | None]:
    """All of it, and what is free."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None, None


def _cache_folder() -> Path:
    """Where Numba keeps what it has compiled of ours."""
    from d3s.estimate.intensity import to_single_precision

    kept = cast(Any, to_single_precision).stats.cache_path  # any compiled loop will do
    return Path(kept or Path(__file__).parent / "__pycache__")  # None if nothing can be kept


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
