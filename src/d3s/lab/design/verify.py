"""Measurements of a camera on paper: planes of its twin by `joint`, and frames per second."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from d3s.estimate.methods import estimate_quietly
from d3s.estimate.options import JointOptions
from d3s.lab.design.camera import Camera
from d3s.lab.design.error_model import MAE_PER_SIGMA
from d3s.lab.design.predict import LEAST_DENSITY, ErrorLimit, Prediction, check_reach
from d3s.lab.design.wall import Lighting, Wall
from d3s.lab.evaluate.metrics import mean_or_nan, ratio
from d3s.lab.evaluate.truth import within_frames
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Plane
from d3s.lab.twin.sensor import expose_pair
from d3s.types import FloatArray, Progress

VERIFIED_DEPTHS = 8
"""Depths of a verification."""

_BORDER_PX = 31  # half of the largest window, and some: beyond, windows are cut by the frame
_COMMON_PX = 280  # rows, and columns that both views share
_DRAWS = 3  # of the noise


@dataclass(frozen=True, kw_only=True)
class MeasuredErrors:
    """Errors of `joint` on one simulated plane, or on several at one depth."""

    depth_m: float
    mae_m: float  # NaN if no pixel has a depth
    bias_m: float
    density: float  # share of the judged pixels with a depth

    @property
    def sigma_m(self) -> float:
        """Standard deviation of Gaussian errors with this mean absolute error."""
        return self.mae_m / MAE_PER_SIGMA

    def meets(self, wish: ErrorLimit) -> bool:
        """Whether the error is within a wish, at half of the pixels at least."""
        return self.mae_m <= float(wish.limit_m(self.depth_m)) and self.density >= LEAST_DENSITY


def measure_plane(
    camera: Camera,
    depth_m: float,
    *,
    search_m: tuple[float, float] | None = None,
    light: Lighting = Lighting(),  # noqa: B008 - immutable
    wall: Wall = Wall(),  # noqa: B008 - immutable
    calibration_px: float = 0.0,
    common_px: int = _COMMON_PX,
    draws: int = _DRAWS,
    seed: int = 0,
) -> MeasuredErrors:
    """Simulate a plane with diffraction and noise, and measure it with `joint`.

    The depths `search_m` are searched, those of the camera if left. The disparities of the rig are
    off by `calibration_px`, as a calibration leaves it. Each of the `draws` is another noise on the
    same plane, with `common_px` rows, and columns that both views share.
    """
    optics = camera.optics
    known = optics.replace(disparity_offset_px=optics.disparity_offset_px + calibration_px)
    options = JointOptions(depth_range_m=search_m)
    disparity = float(optics.disparity_px(depth_m))
    shape = common_px, common_px + int(np.ceil(disparity))
    plane = Plane(depth_m=depth_m, texture=wall.surface(optics, depth_m, seed))
    clean = simulate(plane, camera.rig, shape=shape, psf="diffraction")
    judged = within_frames(clean.disparity_px, _BORDER_PX)
    sensor = light.sensor(camera)
    errors: list[FloatArray] = []
    for draw in range(draws):
        left, right = expose_pair(clean.left, clean.right, sensor, (seed, draw))
        found = estimate_quietly(left, right, camera.rig.replace(optics=known), options=options)
        kept = judged & found.valid
        errors.append(np.asarray(found.depth_m[kept] - depth_m, dtype=np.float64))
    error = np.concatenate(errors)
    return MeasuredErrors(
        depth_m=depth_m,
        mae_m=mean_or_nan(np.abs(error)),
        bias_m=mean_or_nan(error),
        density=ratio(error.size, draws * int(np.count_nonzero(judged))),
    )


def verify(
    prediction: Prediction,
    depths_m: Sequence[float] | None = None,
    *,
    calibration_px: float = 0.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[MeasuredErrors]:
    """Measure planes over the depths of a prediction, on the twin of its camera.

    Parameters
    ----------
    prediction
        Result of `predict`.
    depths_m
        Depths to measure; 8 over those predicted, even in 1/depth, if left.
    calibration_px
        As for `measure_plane`.
    seed
        Seed of texture and noise.
    progress
        Called with the number of measured depths, and of all.

    Raises
    ------
    DesignError
        If the camera cannot see the depths, or gets no light.
    """
    near, far = float(prediction.depth_m[0]), float(prediction.depth_m[-1])
    depths = depths_m or [float(one) for one in 1 / np.linspace(1 / near, 1 / far, VERIFIED_DEPTHS)]
    check_reach(prediction.camera, (min(depths), max(depths)))
    found = []
    for number, depth in enumerate(depths):
        plane = measure_plane(
            prediction.camera,
            depth,
            search_m=(0.9 * near, min(1.2 * far, 1e4)),
            light=prediction.light,
            wall=prediction.wall,
            calibration_px=calibration_px,
            seed=seed + number,
        )
        found.append(plane)
        if progress is not None:
            progress(number + 1, len(depths))
    return found


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
