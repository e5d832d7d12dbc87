"""Cameras drawn at random, and what is predicted and measured of them, for benchmarks/design.py.

Tuning cameras have the seeds `TUNING` and see the tuning textures; report cameras have the seeds
`REPORT` and see the report textures, four of the eight in turn. A prediction sees the texture with
another seed than the twin.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.options import JointOptions
from d3s.lab.design.camera import Camera
from d3s.lab.design.error_model import MAE_PER_SIGMA, error_model
from d3s.lab.design.light import Light
from d3s.lab.design.predict import LEAST_DENSITY, ErrorWish, working_range_m
from d3s.lab.design.verify import measure_plane
from d3s.lab.design.wall import Wall
from d3s.lab.design.window_fit import FitErrors, window_errors

TUNING, REPORT = 25, 2025
"""First number of the seeds of the cameras."""

_PICTURE_PX = 400
_OTHER_SEED = 1000  # of the texture of the prediction; that of the twin is 0
_DRAWS = 2  # of the noise on each plane
_RANGE_DEPTHS = 9  # at which a working range is looked for before its ends are bisected
_ENDS_APART = 1.04  # ratio of the depths between which an end is interpolated


@dataclass(frozen=True)
class Point:
    """One camera, depth and texture: computed and measured, disparities in pixels."""

    camera: int
    depth_m: float
    disparity_px: float
    texture: str
    noise: float
    scale: int
    per_noise_px: float
    per_noise2_px: float
    misfit_px: float
    residual: float
    per_slope: float
    measured_px: float  # sigma; NaN without any depth
    bias_px: float
    density: float
    per_px_m: float  # depth of a pixel of disparity


def random_camera(first: int, number: int) -> tuple[Camera, Light]:
    """Camera and noise: baseline 2 to 60 mm, f 4 to 25 mm, f/1.8 to f/16, pixels 1.4 to 6 um."""
    rng = np.random.default_rng([first, number])

    def log_uniform(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    while True:
        baseline, focal = log_uniform(2e-3, 60e-3), log_uniform(4e-3, 25e-3)
        f_number, pitch = log_uniform(1.8, 16), log_uniform(1.4e-6, 6e-6)
        difference_px, noise = rng.uniform(0.2, 1.5), log_uniform(0.003, 0.03)
        place = rng.uniform()
        opening = focal / f_number
        near, far = (px * pitch / (focal * baseline) for px in (128, 9.3))
        middle = far + place * (0.6 * near - far)
        apart = difference_px * pitch / (focal * opening / 2)
        focus = (1 / (middle + apart / 2), 1 / max(middle - apart / 2, 0.01 * middle))
        if opening / 0.9 <= baseline and focus[0] > 3 * focal:
            break
    shared = 2 * baseline / pitch
    cols = int(shared) if shared <= 8000 else min(4000, int(baseline / pitch))
    camera = Camera.of_lenses(
        focal_length_m=focal,
        f_number=f_number,
        baseline_m=baseline,
        focus_m=focus,
        pixel_pitch_m=pitch,
        sensor_px=(max(cols // 2, 400), cols),
        name=f"camera {number}",
    )
    return camera, Light(noise=noise)


def depths_of(camera: Camera, count: int) -> list[float]:
    """Depths over the range that joint searches by default, even in 1/depth, without its ends."""
    near, far = default_depth_range_m(camera.optics)
    return [float(one) for one in 1 / np.linspace(1 / near, 1 / far, count + 2)[1:-1]]


def points_of(task: tuple[int, int, tuple[str, ...], int]) -> list[Point]:
    """Points of one camera: task is (first seed, number, textures, depths)."""
    first, number, textures, count = task
    camera, light = random_camera(first, number)
    optics = camera.optics
    plan = make_plan(optics, JointOptions(), (_PICTURE_PX, _PICTURE_PX))
    found = []
    for depth in depths_of(camera, count):
        per_px_m = depth**2 / (optics.focal_length_px * optics.baseline_m)
        for texture in textures:
            wall = Wall(texture=texture)
            picture = wall.picture(optics, depth, _PICTURE_PX, _OTHER_SEED)
            errors = window_errors(picture, depth, plan).means
            measured = measure_plane(camera, depth, light=light, wall=wall, draws=_DRAWS)
            found.append(
                Point(
                    camera=number,
                    depth_m=depth,
                    disparity_px=float(optics.disparity_px(depth)),
                    texture=texture,
                    noise=light.noise,
                    **errors._asdict(),
                    measured_px=measured.mae_m / MAE_PER_SIGMA / per_px_m,
                    bias_px=measured.bias_m / per_px_m,
                    density=measured.density,
                    per_px_m=per_px_m,
                )
            )
    return found


def range_of(task: tuple[int, int, tuple[str, ...]]) -> dict[str, Any]:
    """Working range of one camera, predicted and measured: task is (first seed, number, textures).

    The wish is drawn between the least and the largest predicted error. Both ranges are found over
    the same depths, all textures together; then their ends are bisected.
    """
    first, number, textures = task
    camera, light = random_camera(first, number)
    optics, walls = camera.optics, [Wall(texture=one) for one in textures]
    plan = make_plan(optics, JointOptions(), (_PICTURE_PX, _PICTURE_PX))
    fits: dict[float, list[FitErrors]] = {}

    def predicted(depth: float) -> tuple[float, float]:
        pictures = [wall.picture(optics, depth, _PICTURE_PX, _OTHER_SEED) for wall in walls]
        fits[depth] = [window_errors(one, depth, plan).means for one in pictures]
        return told_error(camera, light, depth, fits[depth])

    def measured(depth: float) -> tuple[float, float]:
        found = [
            measure_plane(camera, depth, light=light, wall=wall, draws=_DRAWS) for wall in walls
        ]
        mae, density = zip(*((one.mae_m, one.density) for one in found), strict=True)
        return float(np.mean(mae)), float(np.mean(density))

    depths = depths_of(camera, _RANGE_DEPTHS)
    told = {depth: predicted(depth) for depth in depths}
    errors = np.log([error for error, _ in told.values()])
    rng = np.random.default_rng([first, number, 1])
    wish = ErrorWish(error_m=float(np.exp(rng.uniform(errors.min(), errors.max()))))
    found = {depth: measured(depth) for depth in depths}
    bisected_range_m(predicted, told, wish)
    return {
        "camera": number,
        "wish_m": wish.error_m,
        "measured_m": bisected_range_m(measured, found, wish),
        "measured": sorted((z, *one) for z, one in found.items()),
        "fits": sorted(fits.items()),
    }


def told_error(
    camera: Camera, light: Light, depth_m: float, fits: list[FitErrors]
) -> tuple[float, float]:
    """Predicted error in metres and density, means over textures.

    Parameters
    ----------
    camera, light
        Camera and noise.
    depth_m
        Depth.
    fits
        Computed errors of each texture.
    """
    optics, noise, model = camera.optics, light.of_camera(camera), error_model()
    per_px_m = depth_m**2 / (optics.focal_length_px * optics.baseline_m)
    sigma_px = float(np.mean([model.sigma_px(one, noise) for one in fits]))
    disparity = optics.disparity_px(depth_m)
    density = float(np.mean([model.density(one, noise, disparity) for one in fits]))
    return MAE_PER_SIGMA * per_px_m * sigma_px, density


def predicted_range_m(first: int, row: dict[str, Any]) -> tuple[float, float] | None:
    """Predicted working range of a row of `range_of`, by the model of today."""
    camera, light = random_camera(first, row["camera"])
    depths, fits = zip(*row["fits"], strict=True)
    told = [
        told_error(camera, light, depth, [FitErrors(*one) for one in some])
        for depth, some in zip(depths, fits, strict=True)
    ]
    mae, density = (np.array(one) for one in zip(*told, strict=True))
    return working_range_m(np.array(depths), mae, density, ErrorWish(error_m=row["wish_m"]))


def bisected_range_m(
    evaluate: Callable[[float], tuple[float, float]],
    known: dict[float, tuple[float, float]],
    wish: ErrorWish,
) -> tuple[float, float] | None:
    """Working range whose ends are bisected until depths around them are 4 % apart.

    Parameters
    ----------
    evaluate
        Error and density at a depth.
    known
        What it gave at some depths; depths are added.
    wish
        Largest error.
    """
    while True:
        depths = np.array(sorted(known))
        mae, density = (np.array([known[z][k] for z in depths]) for k in (0, 1))
        ends = working_range_m(depths, mae, density, wish)
        if ends is None:
            return None
        # Depths between which the ends were interpolated; an end of all depths has none beyond.
        good = (mae <= wish.limit_m(depths)) & (density >= LEAST_DENSITY)
        wide = [
            (low, high)
            for low, high, a, b in zip(depths, depths[1:], good, good[1:], strict=False)
            if a != b and high / low > _ENDS_APART and low <= ends[1] and high >= ends[0]
        ]
        if not wide:
            return ends
        for low, high in wide:
            middle = float(np.sqrt(low * high))
            known[middle] = evaluate(middle)


def all_ranges(
    first: int, cameras: int, textures: tuple[str, ...], workers: int
) -> list[dict[str, Any]]:
    """Working ranges of so many cameras, in processes; prints a line for each camera."""
    tasks = [(first, number, textures[number % 2 :: 2]) for number in range(cameras)]
    found = []
    with get_context("spawn").Pool(workers) as pool:
        for one in pool.imap(range_of, tasks):
            found.append(one)
            print(one["camera"], predicted_range_m(first, one), one["measured_m"], flush=True)
    return found


def all_points(
    first: int, cameras: int, textures: tuple[str, ...], depths: int, workers: int
) -> list[Point]:
    """Points of so many cameras, in processes; prints a line for each camera."""
    shares = 2 if first == REPORT else 1
    tasks = [
        (first, number, textures[number % shares :: shares], depths) for number in range(cameras)
    ]
    points: list[Point] = []
    with get_context("spawn").Pool(workers) as pool:
        for done, some in enumerate(pool.imap(points_of, tasks), start=1):
            points += some
            print(f"camera {done} of {cameras}", flush=True)
    return points


def as_rows(points: list[Point]) -> list[dict[str, object]]:
    """Points as JSON can hold them."""
    return [
        {name: None if value != value else value for name, value in asdict(point).items()}
        for point in points
    ]
