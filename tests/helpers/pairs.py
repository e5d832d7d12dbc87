"""Pair of pictures for tests of files: a plane of smooth noise seen by a pinhole pair."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d3s.files import write_image
from d3s.rig import Rig

RIG = Rig.from_pinhole(focal_length_px=500.0, baseline_m=0.1)
PINHOLE = ("--focal-length", "500px", "--baseline", "100mm")
"""Options of the command line for `RIG`."""
DEPTH_M = 2.5  # 20 px of disparity
SHAPE = (64, 128)


def views(seed: int = 0, shape: tuple[int, int] = SHAPE) -> tuple[NDArray, NDArray]:
    """Left view, and right view with the same content 20 px further left."""
    noise = np.random.default_rng(seed).normal(size=(shape[0] + 4, shape[1] + 24))
    rows = sum(noise[i : i + shape[0]] for i in range(5))
    wide = sum(rows[:, i : i + shape[1] + 20] for i in range(5))
    wide = (0.5 + wide / 60).clip(0, 1).astype(np.float32)
    return wide[:, :-20], wide[:, 20:]


def write_views(left: Path, right: Path, seed: int = 0) -> None:
    """Write both views to files."""
    for path, view in zip((left, right), views(seed), strict=True):
        write_image(path, view)
