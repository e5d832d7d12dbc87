"""Raw frames of small misassembled cameras, as benchmarks/align.py renders them."""

import sys
import threading
import time
from functools import cache

import numpy as np

import d3s
from d3s.frames import Frame
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import align as benchmark

SCALE = 4
SHAPE = (540, 960)
RIG = benchmark.design(SCALE)
WALL_M = benchmark.WALL_M
TRUTH = benchmark.TRUTH
LAYOUT = d3s.RawLayout(rows_px=540, cols_px=960, field_radius_px=265)


@cache
def misassembled(texture: str, sign: int):
    """Frame of a camera that is off in all ways at once."""
    return benchmark.noisy(benchmark.render(benchmark.CASES[-1], texture, sign, SCALE), 3)


@cache
def wall(depth_m: float = WALL_M, texture: str = "leaves", seed: int = 0):
    """Frame of a camera as designed before a wall."""
    scene = d3s.Plane(depth_m=depth_m, texture=texture)
    mounts = (d3s.Mount(), d3s.Mount())
    frame = d3s.simulate_raw(scene, RIG, layout=LAYOUT, mounts=mounts)
    return benchmark.noisy(frame.image, seed)


@cache
def plain():
    """Frame of a wall without texture."""
    scene = d3s.Plane(depth_m=0.5, texture=d3s.Texture(pattern="noise_smooth", contrast=0.0))
    mounts = (d3s.Mount(), d3s.Mount())
    frame = d3s.simulate_raw(scene, RIG, layout=LAYOUT, mounts=mounts)
    return benchmark.noisy(frame.image, 1)


class Camera:
    """Frames of a list, again and again, as counts of 12 bits; `frames` may be replaced."""

    frame_count = None
    state = "grabbing"

    def __init__(self, *frames) -> None:
        self.frames = frames
        self._closed = threading.Event()

    def __iter__(self):
        number = 0
        while not self._closed.wait(0.02):
            image = self.frames[number % len(self.frames)]
            counts = np.rint(image * 4095).astype(np.uint16)
            yield Frame(number=number, counts=counts, full_scale=4095, time_s=time.monotonic())
            number += 1

    def close(self) -> None:
        self._closed.set()

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.close()
