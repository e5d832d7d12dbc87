"""`make many`: frames a second of depth over many frames, by place and by format.

It takes about six minutes on a quiet machine of two cores; `--frames 60 --simulated 2000` is quick.
Each place is measured in a process of its own, with its start: imports, loops that are loaded,
workers, and Dask's scheduler. The rate of running workers is that after the first frames.
"""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import d3s
from d3s.batch import DepthJob, depth_files, estimate_files, find_inputs
from d3s.batch.running import Workers, run
from d3s.batch.table import Done
from d3s.estimate.drift_watch import DriftSample
from d3s.files import write_image
from d3s.frames import FrameFiles
from sheets import Sheet, show
from timing import processor

HELPERS = Path(__file__).parents[1] / "tests" / "helpers"
SHAPE = (300, 640)
SCENES = 30  # distinct ones; further frames have other noise
NOISE = 0.01
RIG = d3s.Rig.paper_prototype()
DEFAULT = ("npz", "png", "preview")
FORMATS = (("npz",), ("png",), ("preview",), ("figure",), ("zarr",), DEFAULT)
FRAMES_A_FORMAT = 20
STARTED = 30  # frames after which all workers run


def make_pairs(folder: Path, count: int) -> None:
    """Simulate pairs with texture and noise, named as `find_inputs` pairs them."""
    chance = np.random.default_rng(0)
    for scene in range(min(SCENES, count)):
        pair = d3s.simulate(d3s.RandomScene(seed=1000 + scene), RIG, shape=SHAPE)
        for number in range(scene, count, SCENES):
            for side in ("left", "right"):
                view = getattr(pair, side) + chance.normal(0, NOISE, SHAPE)
                path = folder / f"{number:05}_{side}.png"
                write_image(path, np.clip(view, 0, 1).astype(np.float32))


class Times(NamedTuple):
    """Times of a batch in seconds."""

    whole_s: float  # with the start of its workers
    running_s: float  # of the frames after the first `STARTED`
    running: int  # number of these


def times_of(frames: Any, formats: tuple[str, ...], where: Workers) -> Times:
    """Times of a batch, whose results are removed."""
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        batch = estimate_files(
            frames,
            DepthJob(rig=RIG, formats=formats),
            folder,
            workers=where,
            progress=lambda done, total: ends.append(time.perf_counter()),
        )
        whole_s = time.perf_counter() - started
        if len(batch.done) != len(frames):
            raise SystemExit(f"{len(batch.refused)} frames were refused: {batch.refused[0]}")
    first = min(STARTED, len(ends) // 2)
    return Times(whole_s, ends[-1] - ends[first - 1], len(ends) - first)


def _bytes(folder: Path) -> int:
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("frames.csv", "job.json")
    )


class Rate(NamedTuple):
    """Frames a second."""

    whole: float  # with the start
    running: float


PLACES: dict[str, tuple[tuple[str, ...], int | None]] = {  # None for Dask on loopback
    "one process of all threads, default": (DEFAULT, 1),
    "one process of all threads, npz": (("npz",), 1),
    "2 processes of one thread, npz": (("npz",), 2),
    "Dask on loopback, 2 workers, npz": (("npz",), None),
    "2 processes, default": (DEFAULT, 2),
    "2 processes, zarr": (("zarr",), 2),
}


def measured_here(name: str, pairs: Path, count: int) -> Rate:
    """Rate of one of the places, begun by this process, which has done nothing else."""
    frames = find_inputs([pairs]).frames[:count]
    formats, where = PLACES[name]
    started = time.perf_counter()
    if where is not None:
        times = times_of(frames, formats, where)
    else:
        from loopback import loopback

        with tempfile.TemporaryDirectory() as scratch, loopback(Path(scratch), 2) as cluster:
            times = times_of(frames, formats, cluster.address)
            whole_s = time.perf_counter() - started  # with the start of the cluster
            times = times._replace(whole_s=whole_s)
    return Rate(count / times.whole_s, times.running / times.running_s)


def rate_at(name: str, pairs: Path, count: int) -> Rate:
    """Rate of one of the places, in a process of its own."""
    code = (
        "import json, many, sys; from pathlib import Path; "
        f"print(json.dumps(many.measured_here({name!r}, Path(sys.argv[1]), {count})))"
    )
    return Rate(*json.loads(_told(code, os.fspath(pairs))))


def _told(code: str, *arguments: str) -> str:
    """Last line that a program prints which can import this module."""
    paths = os.pathsep.join([str(Path(__file__).parent), str(HELPERS), *sys.path])
    told = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return told.stdout.splitlines()[-1]


def costs(frames: Any) -> dict[str, tuple[float, float]]:
    """Time of writing a frame in seconds, and bytes, by formats; in one process."""
    found = {}
    for formats in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            batch = estimate_files(frames, DepthJob(rig=RIG, formats=formats), folder)
            write_s = float(np.median([one.write_s for one in batch.done]))
            found[", ".join(formats)] = write_s, _bytes(Path(folder)) / len(frames)
    return found


def simulated_frame(job: Any, folder: Path, overwrite: bool, given: Any) -> Done:
    """Summary of a frame that was neither read nor estimated: what the coordinator gets."""
    figures = dict.fromkeys(("density", "nearest_m", "farthest_m", "median_sigma_m"), 0.5)
    times_s = dict.fromkeys(("read_s", "time_s", "write_s"), 0.01)
    return Done(
        **figures,
        **times_s,
        name=given.frame.name,
        folder=folder,
        file_names=(f"{given.frame.name}_depth.npz",),
        png_unit_m=None,
        left_out={},
        remarks=(),
        warnings=(),
        drift=DriftSample([0.0] * 4, [0.1] * 4, 0.1),
    )


JOBS, FRAMES, FILES = "jobs", "frames of a recording", "pairs of files"


def same(job: Any) -> Any:
    """Answer of a simulated job."""
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
    found: dict[str, float] = json.loads(_told(code))
    return found


def coordinate(kind: str, count: int) -> dict[str, float]:
    """Hand out simulated jobs, or simulated frames with their table, and measure.

    Pairs of files are found first, in a folder of empty ones.
    """
    # By the name of the module, not of the program, so that workers can import it.
    import many

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as output:
        if kind == FILES:
            for number in range(count):
                for side in ("left", "right"):
                    Path(folder, f"{number:06}_{side}.png").touch()
        started, cpu = time.perf_counter(), time.process_time()
        if kind == JOBS:
            done = sum(1 for _ in run(many.same, range(count), 2))
        else:
            night = Path("/no/night.mcap")
            frames: Any = (
                find_inputs([folder]).frames
                if kind == FILES
                else [FrameFiles(f"{place:06d}", night, None, place) for place in range(count)]
            )
            depth_files.make_frame = many.simulated_frame
            job = DepthJob(rig=RIG, formats=("npz",))
            done = len(estimate_files(frames, job, output, workers=2).done)
        found = {
            "time_s": time.perf_counter() - started,
            "cpu_s": time.process_time() - cpu,
            "memory_mb": peak_megabytes(),
        }
    if done != count:
        raise SystemExit(f"{done} of {count} simulated jobs came back.")
    return found


def places_sheet(found: Mapping[str, Rate]) -> Sheet:
    """Table of rates."""
    lines = [(name, f"{one.whole:.1f}", f"{one.running:.1f}") for name, one in found.items()]
    headings = "place and formats", "frames/s with the start", "frames/s running"
    return Sheet("Frames a second", headings, lines)


def costs_sheet(found: Mapping[str, tuple[float, float]]) -> Sheet:
    """Table of formats."""
    lines = [
        (f"`{name}`", f"{1e3 * write_s:.0f}", f"{size / 1e3:.0f}")
        for name, (write_s, size) in found.items()
    ]
    return Sheet("Writing a frame", ("formats", "time (ms)", "size (kB)"), lines)


def growth_sheet(found: Mapping[str, Mapping[str, float]]) -> Sheet:
    """Table of the coordinator."""
    lines = [
        (name, f"{one['time_s']:.1f}", f"{one['cpu_s']:.1f}", f"{one['memory_mb']:.0f}")
        for name, one in found.items()
    ]
    headings = ("simulated work", "time (s)", "processor (s)", "peak memory (MB)")
    return Sheet("Coordinator", headings, lines)


def measured_rates(count: int, pairs: Path) -> dict[str, Rate]:
    """Rates of all places, one after the other, with pairs in a folder, filled if empty."""
    compileall.compile_dir(Path(d3s.__file__).parent, quiet=1)  # as pip does on installing
    if not any(pairs.iterdir()):
        make_pairs(pairs, count)
    warm = find_inputs([pairs]).frames[:2]
    times_of(warm, DEFAULT, 1)  # loops are compiled before
    return {name: rate_at(name, pairs, count) for name in PLACES}


def measured_growth(simulated: int) -> Sheet:
    """Table of the coordinator."""
    return growth_sheet(
        {
            f"{size:,} {kind}": coordinator(kind, size)
            for kind in (JOBS, FRAMES, FILES)
            for size in (simulated // 10, simulated)
        }
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300, help="0 to leave out places and formats")
    parser.add_argument("--simulated", type=int, default=100_000, help="0 to leave these out")
    parser.add_argument("--pairs", type=Path, help="folder that keeps the simulated pairs")
    given = parser.parse_args()
    if given.frames:
        print(f"{given.frames} pairs of {SHAPE[0]} x {SHAPE[1]} pixels on {processor()}")
        with tempfile.TemporaryDirectory() as folder:
            pairs = given.pairs or Path(folder)
            pairs.mkdir(exist_ok=True)
            show([places_sheet(measured_rates(given.frames, pairs))])
            show([costs_sheet(costs(find_inputs([pairs]).frames[:FRAMES_A_FORMAT]))])
    if given.simulated:
        show([measured_growth(given.simulated)])


if __name__ == "__main__":
    main()
