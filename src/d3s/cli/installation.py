"""An installation: check of packages, processor, memory and cache, self-test, and warming up."""

import importlib.metadata
import importlib.util
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from d3s.camera.capture.twin import scaled_layout
from d3s.estimate import intensity
from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.methods import estimate_quietly
from d3s.lab.twin.lens_errors import typical_lenses
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.patterns import PATTERNS
from d3s.lab.twin.raw import simulate_raw
from d3s.lab.twin.scenes import Plane
from d3s.rig import Calibration, Provenance, Rig, split
from d3s.rig.lens_maps import LensMaps
from d3s.runtime.cache import Folders, Keeping, folders_of
from d3s.runtime.parallel import thread_count
from d3s.types import Progress
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
EXTRAS = {
    "plot": ("matplotlib", "figures and reports"),
    "lab": ("matplotlib", "demo, design, evaluation"),
    "live": ("aiohttp", "d3s live, view, align: pages in the browser"),
    "record": ("foxglove", "d3s record, replay, recover"),
    "basler": ("pypylon", "cameras of Basler"),
    "genicam": ("harvesters", "cameras with GenICam"),
    "exr": ("OpenEXR", "OpenEXR files"),
    "ros": ("rosbags", "MCAP recordings for ROS 2 and Foxglove"),
    "xarray": ("xarray", "DepthMap.to_xarray"),
    "zarr": ("zarr", "many frames as one array"),
    "dask": ("distributed", "a cluster, --scheduler"),
    "render": ("mitsuba", "path-traced rooms"),
    "marigold": ("diffusers", "a diffusion network; heavy"),
    "docs": ("sphinx", "to build the documentation"),
    "dev": ("pytest", "to run the tests"),
}
"""Extras: a module that shows it is installed, and its purpose."""

# Instruction sets that make the compiled loops fast; without them the loops work more slowly.
_SIMD = ("avx512f", "avx2", "fma", "sse4.2", "neon", "sve")
_TEST_DEPTH_M, _TEST_SHAPE, _TEST_NOISE = 1.0, (160, 320), 0.01
_LARGEST_ERROR_PX = 0.15  # of the disparity, for a camera that is given
# The self-test has an error of 0.5 mm and a density of 90 %. The noise is the same on every
# machine, so a result outside these limits is a fault.
LARGEST_ERROR_M, LEAST_DENSITY = 1e-3, 0.85


@dataclass(frozen=True, kw_only=True)
class SelfTest:
    """Error, density and time of the depth of a simulated plane."""

    error_m: float  # mean absolute error of the pixels with a depth; NaN if there are none
    density: float  # share of the pixels visible in both views that have a depth
    time_s: float  # second call, compiled
    compile_time_s: float  # first call minus the second; small if the loops were in the cache
    depth_m: float = _TEST_DEPTH_M  # of the plane
    largest_error_m: float = LARGEST_ERROR_M  # that passes

    @property
    def passed(self) -> bool:
        """Whether error and density are within their limits."""
        return self.error_m <= self.largest_error_m and self.density >= LEAST_DENSITY


@dataclass(frozen=True, kw_only=True)
class Health:
    """Result of `examine`."""

    version: str  # of d3s
    python: str
    system: str
    packages: dict[str, str | None]  # versions; None if not installed
    extras: dict[str, bool]  # whether installed
    cores: int  # of the machine
    threads: int  # used by d3s
    simd: tuple[str, ...]
    memory_bytes: int | None  # None if unknown
    free_memory_bytes: int | None
    cache: str  # folder of the compiled loops
    cache_is_writable: bool
    keeping: str  # how long compiled loops are kept
    self_test: SelfTest

    @property
    def remarks(self) -> tuple[str, ...]:
        """Problems found, each with its remedy."""
        missing = [name for name, version in self.packages.items() if version is None]
        remarks = []
        if missing:
            remarks.append(f"Not installed: {', '.join(missing)}. Install d3s again with pip.")
        if self.keeping == Keeping.NOWHERE:
            remarks.append(
                f"{self.cache} cannot be written, so loops are compiled anew in every run. Set "
                "NUMBA_CACHE_DIR to a folder that can, or run d3s doctor --warm where it is "
                "installed, such as in the build of a container."
            )
        if self.keeping == Keeping.TEMPORARY:
            remarks.append(
                f"Compiled loops are kept in {self.cache} only, among temporary files. To keep "
                "them longer, set NUMBA_CACHE_DIR to a folder that can be written."
            )
        if not self.self_test.passed:
            remarks.append(
                f"The self-test failed: its error must be at most "
                f"{1e3 * self.self_test.largest_error_m:.3g} mm, "
                f"and its density at least {LEAST_DENSITY:.0%}. Please report it with the output "
                "of d3s doctor --json."
            )
        return tuple(remarks)


def examine(rig: Rig | None = None) -> Health:
    """Collect versions, processor features, memory and cache, and run the self-test."""
    # Folder of our compiled loops, of any of our packages, and all that can keep them.
    source = Path(intensity.__file__)
    folders = folders_of(source)
    cache = folders.writable or next(iter(folders.shipped), source.parent / "__pycache__")
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
        memory_bytes=_memory_bytes("SC_PHYS_PAGES"),
        free_memory_bytes=_memory_bytes("SC_AVPHYS_PAGES"),
        cache=str(cache),
        cache_is_writable=folders.writable is not None,
        keeping=folders.keeping,
        self_test=self_test(rig),
    )


def self_test(rig: Rig | None = None) -> SelfTest:
    """Estimate the depth of a simulated plane, twice: the first call may compile.

    By default the plane is at 1 m, seen by the paper's prototype. Another camera, such as a design,
    sees it in the middle of the depths that it searches, and is simulated as its optics say.
    """
    depth_m, largest_m = _TEST_DEPTH_M, LARGEST_ERROR_M
    rows, cols = _TEST_SHAPE
    if rig is not None:
        rig = Rig(name=rig.name, optics=rig.optics)
        depth_m = 2 / sum(1 / end for end in default_depth_range_m(rig.optics))
        per_px_m = depth_m**2 / (rig.optics.focal_length_px * rig.optics.baseline_m)
        largest_m = _LARGEST_ERROR_PX * per_px_m
        rows, cols = 2 * rows, 2 * cols + int(rig.optics.disparity_px(depth_m))
    rig = rig or Rig.paper_prototype()
    plane = Plane(depth_m=depth_m, texture="gravel")
    pair = simulate(plane, rig, shape=(rows, cols), noise=_TEST_NOISE)
    times_s = []
    for _ in range(2):
        started = time.perf_counter()
        depth_map = estimate_quietly(pair.left, pair.right, rig)
        times_s.append(time.perf_counter() - started)
    visible = ~pair.occluded
    kept = depth_map.valid & visible
    error_m = np.abs(depth_map.depth_m - pair.depth_m)[kept]
    return SelfTest(
        error_m=float(error_m.mean()) if error_m.size else float("nan"),
        density=float(kept.sum() / visible.sum()),
        time_s=times_s[1],
        compile_time_s=max(0.0, times_s[0] - times_s[1]),
        depth_m=depth_m,
        largest_error_m=largest_m,
    )


def _version(package: str) -> str | None:
    """Installed version of a package; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _simd() -> tuple[str, ...]:
    """Instruction sets of `_SIMD` that this processor has."""
    from llvmlite.binding import get_host_cpu_features

    try:
        features = get_host_cpu_features()
    except RuntimeError:  # LLVM does not know the processor
        return ()
    return tuple(name for name in _SIMD if features.get(name))


def _memory_bytes(pages: str) -> int | None:
    """Memory in bytes; None if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf(pages)
    except (AttributeError, OSError, ValueError):
        return None


# Warming up --------------------------------------------------------------------------------------


_FRAME, _CROP = (200, 720), (161, 321)  # of raw frames, to warm up
_RAW_LEVELS = 4095


def warm_up(progress: Progress | None = None) -> Folders:
    """Compile the loops that depth maps need, and keep them where a folder can be written.

    Small simulated pairs go through the methods `joint` and `consensus` with each kind of camera, a
    raw frame is split, and each texture is drawn. The loops of calibration are compiled when it is
    first used. Returns the folders of the loops of `d3s.rig`; those of others are beside them.
    """
    steps = list(_steps())
    for number, step in enumerate(steps):
        step()
        if progress is not None:
            progress(number + 1, len(steps))
    return folders_of(Path(split.__file__))


def _steps() -> Iterator[Callable[[], object]]:
    prototype = Rig.paper_prototype()
    pinhole = Rig.from_pinhole(focal_length_px=500.0, baseline_m=0.05)
    calibrated = prototype.replace(calibration=_calibration(None))
    with_lenses = prototype.replace(calibration=_calibration(_LENSES))
    for rig in (prototype, pinhole, calibrated, with_lenses):
        yield lambda rig=rig: _estimate(rig, "joint")  # type: ignore[misc]
        yield lambda rig=rig: _estimate(rig, "consensus")  # type: ignore[misc]
    for rig in (calibrated, with_lenses):
        yield lambda rig=rig: _split(rig)  # type: ignore[misc]
    yield _draw_textures


def _estimate(rig: Rig, method: str) -> None:
    """Estimate the pairs of all types that take ways of their own, and a pair that is swapped."""
    pair = simulate(Plane(depth_m=1.0), rig, noise=0.01, shape=_TEST_SHAPE)
    views = pair.left.astype(np.float32), pair.right.astype(np.float32)
    clipped = tuple(np.clip(view, 0.3, 0.6) for view in views)
    levels = tuple((255 * view).astype(np.uint8) for view in views)
    doubles = tuple(view.astype(np.float64) / 3 for view in views)
    missing = tuple(np.where(view < 0.3, np.float32(np.nan), view) for view in views)
    for left, right in (views, views[::-1], clipped, levels, doubles, missing):
        estimate_quietly(left, right, rig, method=method)
    for view in views:
        view.flags.writeable = False
    estimate_quietly(*views, rig, method=method)


def _draw_textures() -> None:
    """Draw every texture, and a raw frame through lenses with errors."""
    rig = Rig.paper_prototype()
    for pattern in PATTERNS:
        simulate(Plane(depth_m=1.0, texture=pattern), rig, shape=(16, 24))
    coarse = rig.replace(optics=rig.optics.replace(pixel_pitch_m=4e-5))
    layout = scaled_layout((108, 192))
    simulate_raw(Plane(depth_m=0.7), coarse, layout=layout, lenses=typical_lenses(0))


def _split(rig: Rig) -> None:
    """Split raw frames as files have them, of integers and of floats."""
    levels = np.random.default_rng(0).integers(0, _RAW_LEVELS, _FRAME, dtype=np.uint16)
    rig.split(levels)
    left, right = rig.split((levels / np.float32(_RAW_LEVELS)).astype(np.float32))
    estimate_quietly(left, right, rig)


_LENSES = LensMaps(
    field_radius_px=160.0,
    distortion_left=(0.01, 0.0, 0.0, 0.0),
    distortion_right=(0.01, 0.0, 0.0, 0.0),
    illumination_left=(1.0, 0.0, 0.0, -0.1, 0.0, -0.1),
    illumination_right=(1.0, 0.0, 0.0, -0.1, 0.0, -0.1),
    focus_left_dpt=(0.0, 0.0, 0.1, 0.2),
    focus_right_dpt=(0.0, 0.0, 0.1, 0.2),
)


def _calibration(lenses: LensMaps | None) -> Calibration:
    rows, cols = _FRAME
    return Calibration(
        anchor_left_px=(0.75 * cols, 0.5 * rows),
        anchor_right_px=(0.25 * cols, 0.5 * rows),
        crop_rows_px=_CROP[0],
        crop_cols_px=_CROP[1],
        rectify_scale=1.0,
        rectify_angle_rad=1e-3,
        rectify_shift_y_px=0.1,
        virtual_baselines_m=(5e-4,),
        a_cubic_m_px=(1.0, 0.0, 0.0, 0.0),
        b_cubic_m=(0.0, 0.0, 0.0, 0.0),
        lenses=lenses,
        provenance=Provenance(
            residuals={},
            input_sha256={},
            created="2026-01-31T12:00:00+00:00",
            d3s_version=__version__,
        ),
    )
