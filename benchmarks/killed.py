"""Depth of many frames while workers are killed: time and results against an undisturbed run.

A worker is killed every three seconds. Among good frames are two bad ones: one file is cut, and one
frame ends its worker. Processes of this machine, and Dask on loopback.

`--frames 60` is a quick run.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import many

sys.path.insert(0, str(many.HELPERS))

import poison_frames
from d3s.batch import Batch, DepthJob, depth, estimate_files, find_inputs
from d3s.tasks import Cluster, Processes, Where
from killers import Killer, kill_a_process
from loopback import kill_a_worker, loopback
from sheets import Sheet, show

EVERY_S = 3.0
JOB = DepthJob(rig=many.RIG, formats=("npz",))
BAD = ("cut", "leaves")  # poison_frames makes the last of its name


class Run(NamedTuple):
    """One run: its time, its kills, and what became of the frames."""

    time_s: float
    kills: int
    batch: Batch
    files: dict[str, bytes]


def make_frames(folder: Path, count: int) -> None:
    """Write good pairs, and two bad ones."""
    many.make_pairs(folder, count)
    for name in BAD:
        for side in ("left", "right"):
            content = (folder / f"00000_{side}.png").read_bytes()
            (folder / f"{name}_{side}.png").write_bytes(content)
    cut = folder / "cut_left.png"
    cut.write_bytes(cut.read_bytes()[:3000])


def measured(frames: Any, where: Where, kill: Callable[[int], int] | None) -> Run:
    """Run frames at a place, with kills or without."""
    killer = Killer(kill or (lambda number: 0), EVERY_S)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        try:
            batch = estimate_files(
                frames,
                JOB,
                folder,
                workers=where,
                progress=killer.begin if kill else None,
            )
        finally:
            killer.end()
        time_s = time.perf_counter() - started
        files = {
            path.name: path.read_bytes()
            for path in Path(folder).iterdir()
            if not path.name.startswith("manifest")
        }
    return Run(time_s, killer.kills, batch, files)


def line_of(name: str, frames: Any, where: Where, kill: Callable[[int], int]) -> tuple[str, ...]:
    """Line of the table: an undisturbed run of the good frames, and one with kills and bad ones."""
    good = [one for one in frames if one.name not in BAD]
    calm = measured(good, where, None)
    wild = measured(frames, where, kill)
    reasons = {Path(one.name).name.split("_")[0]: one.reason for one in wild.batch.refused}
    for bad, reason in sorted(reasons.items()):
        print(f"{name}: {bad}: {reason}")
    if set(reasons) != set(BAD):
        raise SystemExit(f"{name}: refused {sorted(reasons)}, and {BAD} were to be.")
    same = sum(wild.files.get(file) == content for file, content in calm.files.items())
    beside = len(set(wild.files) - set(calm.files))
    return (
        name,
        f"{calm.time_s:.1f}",
        f"{wild.time_s:.1f}",
        str(wild.kills),
        f"{wild.time_s / calm.time_s:.2f}",
        f"{same} of {len(calm.files)}",
        str(beside),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--places", nargs="+", default=["processes", "dask"])
    arguments = parser.parse_args()
    depth.make_frame = poison_frames.make_frame
    lines = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch:
        make_frames(Path(folder), arguments.frames)
        frames = find_inputs([folder]).frames
        if "processes" in arguments.places:
            lines.append(line_of("2 processes", frames, Processes(2), kill_a_process))
        if "dask" in arguments.places:
            with loopback(Path(scratch), 2, "--memory-limit", "4GB") as own:

                def kill(number: int) -> int:
                    return kill_a_worker(own, number)

                lines.append(line_of("Dask, 2 workers", frames, Cluster(own.address), kill))
    headings = (
        *("place", "undisturbed (s)", "with kills (s)", "kills"),
        *("times", "equal files", "other files"),
    )
    show([Sheet(f"{arguments.frames} frames, a kill every {EVERY_S:g} s", headings, lines)])


if __name__ == "__main__":
    main()
