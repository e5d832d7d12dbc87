"""Minutes of live depth with recording: memory each minute, and every frame of the file compared.

    .venv/bin/python benchmarks/live_recording.py [--minutes 10] [--shape 226x450] [--rate 8]

The twin is the camera, one client watches all panels, and all frames are recorded. Each minute, the
memory of the process is printed. At the end the file is read: it must have an index, as many frames
as the recorder says that it wrote, in order, and the same bytes as the camera gave. Memory is
level if it grows by less than 5 % after the second minute. Pairs in float32 take 0.8 MB at the
default size: ten minutes are 3.9 GB, which are removed afterwards (--output keeps the file).
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from d3s.camera.capture import LiveCamera
from d3s.camera.capture.twin import TwinDevice, twin_pairs
from d3s.camera.live.feed import Feed, live_page
from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.server import Server
from d3s.camera.live.shows import LiveShow
from d3s.camera.recording import Recorder, Recording
from d3s.frames import Frame, Refused
from d3s.rig import Rig

WATCHER = Path(__file__).with_name("live.py")
MOST_GROWTH = 0.05
_STEP_S = 60.0


class NotingCamera(LiveCamera):
    """Camera that notes the views of each number: arrays of the twin, which shows few of them."""

    def __init__(self, device: TwinDevice) -> None:
        super().__init__(device)
        self.given: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def __iter__(self) -> Iterator[Frame | Refused]:
        """Frames of the device."""
        for outcome in super().__iter__():
            if isinstance(outcome, Frame):
                self.given[outcome.number] = outcome.views
            yield outcome


def memory_mb() -> float:
    """Resident memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(one.split()[1]) for one in lines if one.startswith("VmRSS")) / 1024


def run(camera: NotingCamera, rig: Rig, path: Path, minutes: float) -> tuple[Pipeline, list[float]]:
    """Watch and record; return the pipeline, closed, and the memory after each minute."""
    pipeline = Pipeline(camera, rig, new_recorder=lambda: Recorder(path, rig=rig, overwrite=True))
    pipeline.start_recording()
    memory = []
    with pipeline:
        feed = Feed(LiveShow(pipeline, title="benchmark"))
        with Server([live_page(feed)]).running() as address:
            seconds = str(60 * minutes + 30)
            words = [sys.executable, str(WATCHER), "--watch", address, "--seconds", seconds]
            watcher = subprocess.Popen(words)
            begun = time.monotonic()
            while time.monotonic() - begun < 60 * minutes:
                time.sleep(min(_STEP_S, 60 * minutes - (time.monotonic() - begun)))
                memory.append(memory_mb())
                counts = pipeline.counts
                print(
                    f"{(time.monotonic() - begun) / 60:5.1f} min  {memory[-1]:6.0f} MB  "
                    f"{counts.grabbed} frames, {counts.computed} depth maps, "
                    f"{counts.computed - counts.not_shown} drawn, {counts.recorded} recorded, "
                    f"{counts.not_recorded} dropped by the recording",
                    flush=True,
                )
            watcher.terminate()
            watcher.wait()
        feed.close()
    return pipeline, memory


def check(path: Path, camera: NotingCamera, pipeline: Pipeline) -> list[str]:
    """Problems of the file; none if it has every frame, in order, with the bytes of the camera."""
    counts = pipeline.counts
    problems = []
    with Recording(path) as recording:
        numbers = []
        for frame in recording:
            numbers.append(frame.number)
            pairs = zip(frame.views, camera.given[frame.number], strict=True)
            if not all(np.array_equal(one, other) for one, other in pairs):
                problems.append(f"frame {frame.number} differs")
    if numbers != sorted(set(numbers)):
        problems.append("frames are not in order")
    if not len(numbers) == counts.recorded == counts.grabbed - counts.not_recorded:
        problems.append(f"{len(numbers)} frames in the file, of {counts.recorded} recorded")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--shape", default="226x450")
    parser.add_argument("--rate", type=float, default=8.0)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows, cols = (int(one) for one in arguments.shape.split("x"))
    rig = Rig.paper_prototype()
    frames = twin_pairs(rig, shape=(rows, cols))
    camera = NotingCamera(TwinDevice(frames, rate_hz=arguments.rate))
    print(f"{rows} x {cols} px at {arguments.rate:g} Hz, recorded, one client with all panels")
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.output or Path(folder) / "live.mcap"
        pipeline, memory = run(camera, rig, path, arguments.minutes)
        problems = check(path, camera, pipeline)
        size_gb = path.stat().st_size / 1e9
    settled = memory[min(1, len(memory) - 1) :]
    growth = max(settled) / settled[0] - 1
    print(f"memory after the second minute: {growth:+.1%} at most (level: below 5 %)")
    print(f"file of {size_gb:.2f} GB: {'; '.join(problems[:5]) or 'complete, every byte the same'}")
    if problems or growth >= MOST_GROWTH:
        sys.exit(1)


if __name__ == "__main__":
    main()
