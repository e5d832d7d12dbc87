"""`make many`: frames a second of depth over many frames, by place and by format.

Run: python benchmarks/many.py --page docs/many.md. `--frames 40 --simulated 2000` is a quick run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import d3s
from d3s.batch import DepthJob, depth, estimate_files, find_inputs
from d3s.batch.inputs import SourceFrame
from d3s.files import write_image
from d3s.tasks import Cluster, Here, Processes, Task, Where, run
from machine import description
from sheets import Sheet, write_parts

HELPERS = Path(__file__).parents[1] / "tests" / "helpers"
RESULTS = Path(__file__).parent / "results" / "many.json"
SHAPE = (300, 640)
SCENES = 30  # distinct ones; further frames have other noise
RIG = d3s.Rig.paper_prototype()
TODAY = ("npz", "png", "figure")  # the default before there was a plain preview
FORMATS = (("npz",), ("png",), ("preview",), ("figure",), ("zarr",), ("npz", "png", "preview"))
WORKERS = 64  # of the cluster that is extrapolated to
ROUNDS = 3  # places take turns, and each keeps its best time


def make_pairs(folder: Path, count: int) -> None:
    """Simulate pairs with texture and noise, named as `find_inputs` pairs them."""
    for number in range(count):
        pair = d3s.simulate(
            d3s.RandomScene(seed=1000 + number % SCENES), RIG, noise=0.01, seed=number, shape=SHAPE
        )
        for side in ("left", "right"):
            view = np.clip(getattr(pair, side), 0, 1).astype(np.float32)
            write_image(folder / f"{number:05}_{side}.png", view)


def seconds_of(frames: Any, formats: tuple[str, ...], where: Where) -> tuple[float, float]:
    """Time of a batch in seconds, with the start of its workers; and bytes a frame."""
    job = DepthJob(rig=RIG, formats=formats)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        batch = estimate_files(frames, job, folder, workers=where)
        time_s = time.perf_counter() - started
        if len(batch.done) != len(frames):
            raise SystemExit(f"{len(batch.refused)} frames were refused: {batch.refused[0]}")
        return time_s, _bytes(Path(folder)) / len(frames)


def _bytes(folder: Path) -> int:
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("manifest")
    )


def rates(frames: Any, address: str) -> dict[str, float]:
    """Frames a second by place, the best of some rounds in turn."""
    contenders = {
        "one process, npz, png and figure": (TODAY, Here()),
        "one process, npz": (("npz",), Here()),
        "one process of one thread, npz": (("npz",), Processes(1)),
        "2 processes, npz": (("npz",), Processes(2)),
        "Dask on loopback, 2 workers, npz": (("npz",), Cluster(address)),
        "2 processes, zarr": (("zarr",), Processes(2)),
    }
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, (formats, where) in contenders.items():
            time_s, _ = seconds_of(frames, formats, where)
            best[name] = max(best.get(name, 0.0), len(frames) / time_s)
    return best


def costs(frames: Any) -> dict[str, tuple[float, float]]:
    """Time of writing a frame in seconds, and bytes, by formats; in one process."""
    found = {}
    for formats in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            batch = estimate_files(frames, DepthJob(rig=RIG, formats=formats), folder)
            write_s = float(np.median([one.write_s for one in batch.done]))
            found[", ".join(formats)] = write_s, _bytes(Path(folder)) / len(frames)
    return found


def simulated_frame(plan: str, frame: Mapping[str, Any]) -> dict[str, Any]:
    """Record of a frame that was neither read nor estimated: what the coordinator gets."""
    figures = dict.fromkeys(("density", "nearest_m", "farthest_m", "median_sigma_m"), 0.5)
    times_s = dict.fromkeys(("read_s", "time_s", "write_s"), 0.01)
    return {
        **figures,
        **times_s,
        "name": frame["name"],
        "files": [f"{frame['name']}_depth.npz"],
        "png_unit_m": None,
        "left_out": {},
        "remarks": [],
        "warnings": [],
        "drift": [[0.0] * 4, [0.1] * 4, 0.1],
    }


def same(job: Any) -> Any:
    """Answer of a simulated task."""
    return job


def peak_megabytes() -> float:
    """Most memory that this process has had, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # the usage of a process counts from that of its parent
        words = next(line for line in status.read_text().splitlines() if "VmHWM" in line).split()
        return int(words[1]) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def coordinator(kind: str, count: int) -> dict[str, float]:
    """Time and memory of the coordinator for simulated work, in a process of its own."""
    code = f"import many, json; print(json.dumps(many.coordinate({kind!r}, {count})))"
    paths = os.pathsep.join([str(Path(__file__).parent), str(HELPERS), *sys.path])
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(told.stdout.splitlines()[-1])
    return found


def coordinate(kind: str, count: int) -> dict[str, float]:
    """Hand out simulated tasks, or simulated frames with their manifest, and measure."""
    # By the name of the module, not of the program, so that workers can import it.
    import many

    started, cpu = time.perf_counter(), time.process_time()
    if kind == "tasks":
        tasks = (Task(str(number), many.same, {"number": number}) for number in range(count))
        done = sum(1 for _ in run(tasks, Processes(2)))
    else:
        frames = [SourceFrame(f"{i:06d}", Path("/no/night.mcap"), i) for i in range(count)]
        depth.make_frame = many.simulated_frame
        with tempfile.TemporaryDirectory() as folder:
            job = DepthJob(rig=RIG, formats=("npz",))
            done = len(estimate_files(frames, job, folder, workers=2).done)
    if done != count:
        raise SystemExit(f"{done} of {count} simulated tasks came back.")
    return {
        "time_s": time.perf_counter() - started,
        "cpu_s": time.process_time() - cpu,
        "memory_mb": peak_megabytes(),
    }


def places_sheet(best: Mapping[str, float]) -> Sheet:
    """Table of rates."""
    today = best["one process, npz, png and figure"]
    one = best["one process of one thread, npz"]
    lines = [
        (name, f"{rate:.1f}", f"{rate / one:.2f}", f"{rate / today:.2f}")
        for name, rate in best.items()
    ]
    return Sheet(
        "Frames a second",
        ("place and formats", "frames/s", "of one thread", "of the old default"),
        lines,
    )


def costs_sheet(found: Mapping[str, tuple[float, float]]) -> Sheet:
    """Table of formats."""
    lines = [
        (f"`{name}`", f"{1e3 * write_s:.0f}", f"{size / 1e3:.0f}")
        for name, (write_s, size) in found.items()
    ]
    return Sheet("Writing a frame", ("formats", "time (ms)", "size (kB)"), lines)


def sizes_sheet(best: Mapping[str, float], found: Mapping[str, tuple[float, float]]) -> Sheet:
    """Table of times and sizes of many frames, by the measured rates."""
    here, cluster = best["2 processes, npz"], best["Dask on loopback, 2 workers, npz"]
    lines = [
        (
            f"{count:,}",
            _duration(count / best["one process, npz"]),
            _duration(count / here),
            _duration(count / (cluster / 2 * WORKERS)),
            _size(count * found["npz"][1]),
            _size(count * found["zarr"][1]),
        )
        for count in (10, 300, 30_000, 1_000_000)
    ]
    cores = f"{WORKERS} workers of a cluster (extrapolated)"
    headings = ("frames", "one process", "2 processes", cores, "npz", "zarr")
    return Sheet("Many frames", headings, lines, words=())


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def _size(size: float) -> str:
    for factor, unit in ((1e12, "TB"), (1e9, "GB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e6:.3g} MB"


def growth_sheet(found: Mapping[str, Mapping[str, float]]) -> Sheet:
    """Table of the coordinator."""
    lines = [
        (name, f"{one['time_s']:.1f}", f"{one['cpu_s']:.1f}", f"{one['memory_mb']:.0f}")
        for name, one in found.items()
    ]
    headings = ("simulated work", "time (s)", "processor (s)", "peak memory (MB)")
    return Sheet("Coordinator", headings, lines)


def measured(count: int, simulated: int) -> dict[str, Any]:
    """All figures of the page."""
    sys.path.insert(0, str(HELPERS))
    from loopback import loopback

    with tempfile.TemporaryDirectory() as folder:
        make_pairs(Path(folder), count)
        frames = find_inputs([folder]).frames
        seconds_of(frames[:4], TODAY, Here())  # loops are compiled before
        with tempfile.TemporaryDirectory() as scratch, loopback(Path(scratch), 2) as cluster:
            best = rates(frames, cluster.address)
        by_format = costs(frames[: min(count, 40)])
    sizes = [simulated // 100, simulated // 10, simulated]
    growth = {
        f"{size:,} {kind}": coordinator(kind, size)
        for kind in ("tasks", "frames")
        for size in sizes
    }
    return {
        "machine": description(),
        "frames": count,
        "shape": SHAPE,
        "rates": best,
        "costs": by_format,
        "growth": growth,
    }


def main() -> None:
    """Measure, print, and write the tables of the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--simulated", type=int, default=100_000)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    found = measured(arguments.frames, arguments.simulated)
    sheets: dict[str, Callable[[], Sheet]] = {
        "places": partial(places_sheet, found["rates"]),
        "formats": partial(costs_sheet, found["costs"]),
        "sizes": partial(sizes_sheet, found["rates"], found["costs"]),
        "coordinator": partial(growth_sheet, found["growth"]),
    }
    for make in sheets.values():
        Console().print(make().as_rich())
    if arguments.page is not None:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        parts = {name: make().as_markdown() for name, make in sheets.items()}
        cpu = found["machine"]["cpu"]
        parts["machine"] = (
            f"{found['frames']} pairs of {SHAPE[0]} x {SHAPE[1]} pixels on {cpu}, "
            f"{found['machine']['cores']} cores, by `make many`."
        )
        write_parts([arguments.page], parts, "many")


if __name__ == "__main__":
    main()
