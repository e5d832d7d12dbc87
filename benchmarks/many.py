"""`make many`: frames a second of depth over many frames, by place and by format.

Run: python benchmarks/many.py --page docs/many.md. It takes about seven minutes on a quiet machine
of two cores; `--frames 60 --simulated 2000` is a quick run. Each place is measured in a process of
its own, with its start: imports, loops that are loaded, workers, and Dask's scheduler. The rate of
running workers is that after the first frames. The default of before is that of an earlier commit,
taken from the history of the repository and run on the same frames.
"""

import argparse
import compileall
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import d3s
from d3s.batch import DepthJob, depth, estimate_files, find_inputs
from d3s.batch.inputs import SourceFrame
from d3s.files import write_image
from d3s.tasks import Cluster, Here, Processes, Task, Where, run
from machine import description
from sheets import Sheet, write_parts

ROOT = Path(__file__).parents[1]
HELPERS = ROOT / "tests" / "helpers"
RATES = Path(__file__).parent / "results" / "many.json"
SHAPE = (300, 640)
SCENES = 30  # distinct ones; further frames have other noise
NOISE = 0.01
RIG = d3s.Rig.paper_prototype()
# The last commit before work on many frames began: one process, NPZ at zlib's default level, and a
# picture that Matplotlib draws.
BEFORE = "581c382"
BEFORE_NAME, ONE_THREAD = "default of before, one process", "one process of one thread, npz"
ONE, TWO = "one process of all threads, npz", "2 processes of one thread, npz"
DASK = "Dask on loopback, 2 workers, npz"
DEFAULT = ("npz", "png", "preview")
FORMATS = (("npz",), ("png",), ("preview",), ("figure",), ("zarr",), DEFAULT)
WORKERS = 64  # of the cluster that is extrapolated to
FRAMES_A_FORMAT = 20
TRIES, DISTURBED = 2, 0.1  # a rate is measured again if others took so much of a processor
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


# Run by the code of before, on the frames of a folder.
BATCH = """
import sys, tempfile, time
import d3s
from d3s.batch import DepthJob, estimate_files
from d3s.frames import find_frames

frames = find_frames([sys.argv[1]]).frames[: int(sys.argv[2])]
job = DepthJob(rig=d3s.Rig.paper_prototype())
for part in (frames[:3], frames):  # loops are compiled before
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        done = len(estimate_files(part, job, folder).done)
        print(done / (time.perf_counter() - started))
        assert done == len(part)
"""


def rate_before(pairs: Path, count: int) -> float:
    """Frames a second by the code of an earlier commit, on the same pairs."""
    told = subprocess.run(
        [sys.executable, "-c", BATCH, pairs, str(count)],
        env={**os.environ, "PYTHONPATH": str(code_before() / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(told.stdout.split()[-1])


def code_before() -> Path:
    """Code of the earlier commit, which is kept among temporary files with its compiled loops."""
    kept = Path(tempfile.gettempdir(), f"d3s-{BEFORE}")
    if not kept.exists():
        command = ["git", "-C", ROOT, "archive", BEFORE, "src"]
        archive = subprocess.run(command, capture_output=True, check=False)
        if archive.returncode:
            raise SystemExit(f"{BEFORE} is not in the history: {archive.stderr.decode().strip()}")
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(kept, filter="data")
    return kept


class Times(NamedTuple):
    """Times of a batch in seconds."""

    whole_s: float  # with the start of its workers
    running_s: float  # of the frames after the first `STARTED`
    running: int  # number of these


def times_of(frames: Any, formats: tuple[str, ...], where: Where) -> Times:
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
        if path.is_file() and not path.name.startswith("manifest")
    )


class Rate(NamedTuple):
    """Frames a second, and processors that other programs took meanwhile."""

    whole: float  # with the start
    running: float
    others: float


def undisturbed(measure: Callable[[], Rate]) -> Rate:
    """Rate of a place; measured once more if others disturbed it."""
    found: list[Rate] = []
    while len(found) < TRIES and (not found or found[-1].others > DISTURBED):
        found.append(measure())
    return min(found, key=lambda one: one.others)


class Others:
    """Processors that other programs take, from the making of the object on."""

    def __init__(self) -> None:
        self._started, self._own_s, self._busy_s = time.perf_counter(), _own_s(), _busy_s()

    def taken(self) -> float:
        """Mean number of processors so far."""
        taken_s = (_busy_s() - self._busy_s) - (_own_s() - self._own_s)
        return max(taken_s, 0.0) / (time.perf_counter() - self._started)


def _own_s() -> float:
    """Processor time of this process and of all that it has started."""
    import psutil  # comes with Dask

    mine = os.times()
    below = (one.cpu_times() for one in psutil.Process().children(recursive=True))
    return sum(mine[:4]) + sum(one.user + one.system for one in below)


def _busy_s() -> float:
    """Processor time of all programs of the machine."""
    import psutil

    whole = psutil.cpu_times()
    waiting = whole.idle + getattr(whole, "iowait", 0.0)
    return sum(whole) - waiting - getattr(whole, "guest", 0.0) - getattr(whole, "guest_nice", 0.0)


PLACES: dict[str, tuple[tuple[str, ...], Where | None]] = {  # None for Dask on loopback
    "one process of all threads, default": (DEFAULT, Here()),
    ONE: (("npz",), Here()),
    ONE_THREAD: (("npz",), Processes(1)),
    TWO: (("npz",), Processes(2)),
    DASK: (("npz",), None),
    "2 processes, default": (DEFAULT, Processes(2)),
    "2 processes, zarr": (("zarr",), Processes(2)),
}


def measured_here(name: str, pairs: Path, count: int) -> Rate:
    """Rate of one of the places, begun by this process, which has done nothing else."""
    others = Others()
    if name == BEFORE_NAME:
        rate = rate_before(pairs, count)
        return Rate(rate, rate, others.taken())
    frames = find_inputs([pairs]).frames[:count]
    formats, where = PLACES[name]
    started = time.perf_counter()
    if where is not None:
        times = times_of(frames, formats, where)
        taken = others.taken()
    else:
        from loopback import loopback

        with tempfile.TemporaryDirectory() as scratch, loopback(Path(scratch), 2) as cluster:
            times = times_of(frames, formats, Cluster(cluster.address))
            whole_s = time.perf_counter() - started  # with the start of the cluster
            times, taken = times._replace(whole_s=whole_s), others.taken()
    return Rate(count / times.whole_s, times.running / times.running_s, taken)


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


TASKS, FRAMES, FILES = "tasks", "frames of a recording", "pairs of files"


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
    found: dict[str, float] = json.loads(_told(code))
    return found


def coordinate(kind: str, count: int) -> dict[str, float]:
    """Hand out simulated tasks, or simulated frames with their manifest, and measure.

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
        if kind == TASKS:
            tasks = (Task(str(number), many.same, {"number": number}) for number in range(count))
            done = sum(1 for _ in run(tasks, Processes(2)))
        else:
            night = Path("/no/night.mcap")
            frames: Any = (
                find_inputs([folder]).frames
                if kind == FILES
                else [SourceFrame(f"{place:06d}", night, place) for place in range(count)]
            )
            depth.make_frame = many.simulated_frame
            job = DepthJob(rig=RIG, formats=("npz",))
            done = len(estimate_files(frames, job, output, workers=2).done)
        found = {
            "time_s": time.perf_counter() - started,
            "cpu_s": time.process_time() - cpu,
            "memory_mb": peak_megabytes(),
        }
    if done != count:
        raise SystemExit(f"{done} of {count} simulated tasks came back.")
    return found


def places_sheet(best: Mapping[str, Rate]) -> Sheet:
    """Table of rates."""
    before = best[BEFORE_NAME].whole
    lines = [
        (
            name,
            f"{one.whole:.1f}",
            f"{one.running:.1f}",
            f"{one.whole / before:.2f}",
            f"{one.others:.2f}",
        )
        for name, one in best.items()
    ]
    headings = (
        *("place and formats", "frames/s with the start", "frames/s running"),
        *("of the default of before", "other programs (cores)"),
    )
    return Sheet("Frames a second", headings, lines)


def ratios_sheet(best: Mapping[str, Rate]) -> Sheet:
    """Table of comparisons, each of two places that both start or both run."""
    lines = [
        (
            f"{name} / {other}",
            f"{best[name].whole / best[other].whole:.2f}",
            f"{best[name].running / best[other].running:.2f}",
        )
        for name, other in (
            (TWO, ONE_THREAD),
            (TWO, ONE),
            (DASK, TWO),
        )
    ]
    return Sheet("Comparisons", ("frames a second", "with the start", "running"), lines)


def costs_sheet(found: Mapping[str, tuple[float, float]]) -> Sheet:
    """Table of formats."""
    lines = [
        (f"`{name}`", f"{1e3 * write_s:.0f}", f"{size / 1e3:.0f}")
        for name, (write_s, size) in found.items()
    ]
    return Sheet("Writing a frame", ("formats", "time (ms)", "size (kB)"), lines)


def sizes_sheet(best: Mapping[str, Rate], found: Mapping[str, tuple[float, float]]) -> Sheet:
    """Table of times and sizes of many frames, by the measured rates."""
    one, here, cluster = (best[name].running for name in (ONE, TWO, DASK))
    lines = [
        (
            f"{count:,}",
            _duration(count / one),
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


def measured_rates(count: int, pairs: Path) -> dict[str, Rate]:
    """Rates of all places, one after the other, with pairs in a folder, filled if empty."""
    compileall.compile_dir(Path(d3s.__file__).parent, quiet=1)  # as pip does on installing
    if not any(pairs.iterdir()):
        make_pairs(pairs, count)
    warm = find_inputs([pairs]).frames[:2]
    times_of(warm, DEFAULT, Processes(1))  # loops are compiled before
    found = {}
    for name in (BEFORE_NAME, *PLACES):
        found[name] = undisturbed(partial(rate_at, name, pairs, count))
        print(name, found[name], flush=True)
    RATES.write_text(json.dumps({name: one._asdict() for name, one in found.items()}, indent=1))
    return found


def measured_growth(simulated: int) -> Sheet:
    """Table of the coordinator."""
    return growth_sheet(
        {
            f"{size:,} {kind}": coordinator(kind, size)
            for kind in (TASKS, FRAMES, FILES)
            for size in (simulated // 10, simulated)
        }
    )


def main() -> None:
    """Measure, print, and write the tables of the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300, help="0 to leave out places and formats")
    parser.add_argument("--simulated", type=int, default=100_000, help="0 to leave these out")
    parser.add_argument("--pairs", type=Path, help="folder that keeps the simulated pairs")
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    sheets: dict[str, Sheet] = {}
    parts: dict[str, str] = {}
    if arguments.frames:
        with tempfile.TemporaryDirectory() as folder:
            pairs = arguments.pairs or Path(folder)
            pairs.mkdir(exist_ok=True)
            best = measured_rates(arguments.frames, pairs)
            found = costs(find_inputs([pairs]).frames[:FRAMES_A_FORMAT])
        sheets |= {
            "places": places_sheet(best),
            "ratios": ratios_sheet(best),
            "formats": costs_sheet(found),
            "sizes": sizes_sheet(best, found),
        }
        machine = description()
        parts["machine"] = (
            f"{arguments.frames} pairs of {SHAPE[0]} x {SHAPE[1]} pixels on {machine['cpu']}, "
            f"{machine['cores']} cores, by `make many`."
        )
    if arguments.simulated:
        sheets["coordinator"] = measured_growth(arguments.simulated)
    for sheet in sheets.values():
        Console().print(sheet.as_rich())
    if arguments.page is not None:
        parts |= {name: sheet.as_markdown() for name, sheet in sheets.items()}
        write_parts([arguments.page], parts, "many")


if __name__ == "__main__":
    main()
