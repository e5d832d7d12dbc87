"""Speed of recording frames of 3840 x 2160 pixels, of 12 bits, by both libraries that write MCAP.

    .venv/bin/python benchmarks/recording.py [--frames N]

The frame is a smooth picture with the noise of a sensor. Prints the frames a second and the size
of the file relative to its pixels; the first row is what `d3s record` does.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from mcap.writer import CompressionType, Writer

from d3s.camera.recording import Recording, RecordingWriter
from d3s.frames import Frame

SHAPE = (2160, 3840)
FULL_SCALE = 4095


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--frames", type=int, default=10, help="frames to write")
    count = parser.parse_args().frames
    counts = picture()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mcap"
        show("foxglove-sdk, zstd 1", lambda: by_recording(path, counts, count), path, count)
        started = time.perf_counter()
        with Recording(path) as recording:
            for frame in recording:
                np.testing.assert_array_equal(frame.counts, counts)
        print(f"read and compared: {count / (time.perf_counter() - started):.1f} frames a second")
        for name in ("ZSTD", "LZ4", "NONE"):
            kind = CompressionType[name]
            show(f"mcap, {name}", lambda kind=kind: by_mcap(path, counts, count, kind), path, count)


def picture() -> np.ndarray:
    """12 bits in 16: a smooth picture with noise that grows with the light."""
    rng = np.random.default_rng(0)
    smooth = cv2.GaussianBlur(rng.random(SHAPE, dtype=np.float32), (0, 0), 6)
    light = 0.05 + 0.7 * (smooth - smooth.min()) / np.ptp(smooth)
    light += 0.01 * np.sqrt(light) * rng.standard_normal(SHAPE, dtype=np.float32)
    return (np.clip(light, 0, 1) * FULL_SCALE).astype(np.uint16)


def by_recording(path: Path, counts: np.ndarray, count: int) -> None:
    with RecordingWriter(path, overwrite=True) as writer:
        for number in range(count):
            writer.write(Frame(number=number, counts=counts, full_scale=FULL_SCALE))


def by_mcap(path: Path, counts: np.ndarray, count: int, kind: CompressionType) -> None:
    with path.open("wb") as file:
        writer = Writer(file, compression=kind)
        writer.start()
        channel = writer.register_channel("/raw", "", 0)
        for number in range(count):
            writer.add_message(channel, number, counts.tobytes(), number)
        writer.finish()


def show(name: str, work: Callable[[], None], path: Path, count: int) -> None:
    started = time.perf_counter()
    work()
    rate = count / (time.perf_counter() - started)
    pixels = 2 * count * SHAPE[0] * SHAPE[1]
    print(
        f"{name:22} {rate:5.1f} frames a second, {rate * pixels / count / 1e6:4.0f} MB/s, "
        f"size {path.stat().st_size / pixels:.2f} of the pixels"
    )


if __name__ == "__main__":
    main()
