"""Frames per second of `joint` on this machine, for the views of a camera."""

import time

import numpy as np

from d3s.estimate.methods import estimate_quietly
from d3s.estimate.options import JointOptions
from d3s.lab.design.camera import Camera
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Plane

_ROWS_PX = 256  # of the piece of a view that is timed
_COLS_PX = 512
_TRIES = 3


def frames_per_second(camera: Camera, reach_m: tuple[float, float]) -> float:
    """Frames per second, from the time of a piece of a view with all depths of the reach."""
    rows, cols = camera.view_px
    largest = int(np.ceil(float(camera.optics.disparity_px(reach_m[0]))))
    shape = min(rows, _ROWS_PX), min(cols, max(_COLS_PX, 2 * largest))
    middle_m = 2 / (1 / reach_m[0] + 1 / reach_m[1])
    pair = simulate(Plane(depth_m=middle_m), camera.rig, noise=0.01, shape=shape)
    options = JointOptions(depth_range_m=reach_m)
    times = []
    for _ in range(_TRIES):
        started = time.perf_counter()
        estimate_quietly(pair.left, pair.right, camera.rig, options=options)
        times.append(time.perf_counter() - started)
    return shape[0] * shape[1] / (rows * cols) / min(times)
