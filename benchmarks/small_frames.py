"""Ten thousand small frames in one process: rate, memory, open files and threads by thousand.

Run: python benchmarks/small_frames.py --page docs/many.md. `--frames 1000` is a quick run.
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
from rich.console import Console

import d3s
from d3s.batch import DepthJob, estimate_files
from d3s.files import write_image
from d3s.frames import FrameFiles
from d3s.tasks.memory import process_bytes
from sheets import Sheet, write_parts

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
        process_bytes(os.getpid()),
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
            f"{1e3 * _cpu_s(before, after):.2f}",
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


def _cpu_s(before: State, after: State) -> float:
    """Processor time of a frame, which other programs do not change much."""
    return (after.cpu_s - before.cpu_s) / (after.frames - before.frames)


def summary(states: list[State]) -> str:
    """Sentence on the last part and the first."""
    times_s = [_cpu_s(before, after) for before, after in pairwise(states)]
    first, last = states[1], states[-1]
    grown_mb = (last.memory_bytes - first.memory_bytes) / 1e6
    return (
        f"The last {first.frames:,} of {last.frames:,} frames of {SHAPE[0]} x {SHAPE[1]} "
        f"pixels take {times_s[-1] / times_s[0]:.2f} times the processor time of the first ones; "
        f"memory grows by {grown_mb:.1f} MB between them, open files by "
        f"{last.handles - first.handles}, threads by {last.threads - first.threads}."
    )


def main() -> None:
    """Measure, print, and write the part of the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    states = measured(arguments.frames)
    Console().print(sheet(states).as_rich())
    print(summary(states))
    if arguments.page is not None:
        text = f"{summary(states)}\n\n{sheet(states).as_markdown()}"
        write_parts([arguments.page], {"small frames": text}, "many")


if __name__ == "__main__":
    main()
