"""Ten thousand small frames in one process: rate, memory, open files and threads by thousand.

`--frames 1000` is a quick run.
"""

import argparse
import os
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import d3s
from d3s.batch import DepthJob, estimate_files
from d3s.files import write_image
from d3s.frames import FrameFiles
from sheets import Sheet, show

SHAPE = (96, 160)
PAIRS = 20  # distinct ones, which take turns
PARTS = 10
RIG = d3s.Rig.paper_prototype()


class State(NamedTuple):
    """State of this process after so many frames."""

    frames: int
    time_s: float
    cpu_s: float
    memory_bytes: int
    handles: int
    threads: int


def state(frames: int) -> State:
    """State of this process now; Linux only."""
    return State(
        frames,
        time.perf_counter(),
        time.process_time(),
        int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        len(list(Path("/proc/self/fd").iterdir())),
        threading.active_count(),
    )


def pairs(folder: Path, count: int) -> list[FrameFiles]:
    """Write a few simulated pairs; frames are these in turn, each with a name of its own."""
    written = []
    for number in range(PAIRS):
        scene = d3s.RandomScene(seed=number)
        pair = d3s.simulate(scene, RIG, noise=0.01, seed=number, shape=SHAPE)
        paths = [folder / f"{number}_{side}.png" for side in ("left", "right")]
        for path, view in zip(paths, (pair.left, pair.right), strict=True):
            write_image(path, np.clip(view, 0, 1).astype(np.float32))
        written.append(paths)
    return [FrameFiles(f"{i:06}", *written[i % PAIRS]) for i in range(count)]


def measured(count: int) -> list[State]:
    """States before the first frame, and after each tenth of the frames."""
    states: list[State] = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as output:
        frames = pairs(Path(folder), count)
        job = DepthJob(rig=RIG, formats=("npz",))
        estimate_files(frames[:PAIRS], job, Path(output, "first"))  # loops are loaded before
        every = max(count // PARTS, 1)

        def note(done: int, total: int) -> None:
            if done % every == 0:
                states.append(state(done))

        states.append(state(0))
        batch = estimate_files(frames, job, Path(output, "all"), progress=note)
        if len(batch.done) != count:
            raise SystemExit(f"{count - len(batch.done)} of {count} frames are not done.")
    return states


def sheet(states: list[State]) -> Sheet:
    """Table of the parts."""
    lines = [
        (
            f"{before.frames + 1:,} to {after.frames:,}",
            f"{(after.frames - before.frames) / (after.time_s - before.time_s):.1f}",
            f"{1e3 * (after.cpu_s - before.cpu_s) / (after.frames - before.frames):.2f}",
            f"{after.memory_bytes / 1e6:.1f}",
            str(after.handles),
            str(after.threads),
        )
        for before, after in pairwise(states)
    ]
    headings = (
        *("frames", "frames/s", "processor (ms a frame)"),
        *("memory (MB)", "open files", "threads"),
    )
    return Sheet(f"Frames of {SHAPE[0]} x {SHAPE[1]} in one process", headings, lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=10_000)
    show([sheet(measured(parser.parse_args().frames))])


if __name__ == "__main__":
    main()
