"""Predictions of d3s.lab.design against the twin: the model, and how good its predictions are.

    .venv/bin/python benchmarks/design.py table       # errors on natural texture, 10 minutes
    .venv/bin/python benchmarks/design.py model       # ratios, from tuning cameras and textures
    .venv/bin/python benchmarks/design.py cameras     # 40 random cameras, report textures
    .venv/bin/python benchmarks/design.py ranges      # working ranges of the 40 cameras
    .venv/bin/python benchmarks/design.py wishes      # 20 wishes, verified
    .venv/bin/python benchmarks/design.py tolerances  # mounting errors, simulated

`table` and `model` write data files of the package; the others print their figures as JSON.
`--points FILE` keeps what was simulated, and reads it if it is there.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.joint.plan import make_plan
from d3s.estimate.options import JointOptions
from d3s.lab.design.camera import Camera
from d3s.lab.design.error_model import (
    MAE_PER_SIGMA,
    MODEL_FILE,
    NATURAL_FILE,
    ErrorModel,
    build_table,
    error_model,
)
from d3s.lab.design.predict import LEAST_DENSITY, ErrorLimit, working_range_m
from d3s.lab.design.verify import measure_plane
from d3s.lab.design.wall import Lighting, Wall
from d3s.lab.design.window_fit import FitErrors, window_errors
from d3s.lab.evaluate.sweep import REPORT_PATTERNS, TUNING_PATTERNS
from design_tolerances import tolerance_figures
from design_wishes import run_wishes

TUNING_CAMERAS, REPORT_CAMERAS = 60, 40
DEPTHS = 6

PARTS = ("table", "model", "cameras", "ranges", "wishes", "tolerances")

Rows = list[dict[str, Any]]
Ends = tuple[float, float] | None


TUNING, REPORT = 25, 2025
"""First number of the seeds of the cameras."""

_PICTURE_PX = 400
_OTHER_SEED = 1000  # of the texture of the prediction; that of the twin is 0
_DRAWS = 2  # of the noise on each plane
_RANGE_DEPTHS = 9  # at which a working range is looked for before its ends are bisected
_ENDS_APART = 1.04  # ratio of the depths between which an end is interpolated


def random_camera(first: int, number: int) -> tuple[Camera, Lighting]:
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
    return camera, Lighting(noise=noise)


def depths_of(camera: Camera, count: int) -> list[float]:
    """Depths over the range that joint searches by default, even in 1/depth, without its ends."""
    near, far = default_depth_range_m(camera.optics)
    return [float(one) for one in 1 / np.linspace(1 / near, 1 / far, count + 2)[1:-1]]


def points_of(task: tuple[int, int, tuple[str, ...], int]) -> Rows:
    """Points of one camera, computed and measured: task is (first seed, number, textures, depths).

    Disparities are in pixels; `measured_px` is a sigma, NaN without any depth.
    """
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
            point = {
                **errors._asdict(),
                "camera": number,
                "depth_m": depth,
                "disparity_px": float(optics.disparity_px(depth)),
                "texture": texture,
                "noise": light.noise,
                "measured_px": measured.mae_m / MAE_PER_SIGMA / per_px_m,
                "density": measured.density,
            }
            found.append(point)
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
    wish = ErrorLimit(error_m=float(np.exp(rng.uniform(errors.min(), errors.max()))))
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
    camera: Camera, light: Lighting, depth_m: float, fits: list[FitErrors]
) -> tuple[float, float]:
    """Predicted error in metres and density, means over textures."""
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
    return working_range_m(np.array(depths), mae, density, ErrorLimit(error_m=row["wish_m"]))


def bisected_range_m(
    evaluate: Callable[[float], tuple[float, float]],
    known: dict[float, tuple[float, float]],
    wish: ErrorLimit,
) -> tuple[float, float] | None:
    """Working range whose ends are bisected until depths around them are 4 % apart.

    `evaluate` gives error and density at a depth, `known` what it gave so far; depths are added.
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


def simulated(function: Callable[..., Any], first: int, options: argparse.Namespace) -> list[Any]:
    """Results of a function for tuning or report cameras, in processes; or read if kept."""
    kept = Path(options.points) if options.points else None
    if kept and kept.is_file():
        return json.loads(kept.read_text())
    is_tuning, is_range = first == TUNING, function is range_of
    count = options.cameras or (TUNING_CAMERAS if is_tuning else REPORT_CAMERAS)
    textures = TUNING_PATTERNS if is_tuning else REPORT_PATTERNS
    shares = 2 if is_range or not is_tuning else 1
    depths = () if is_range else (DEPTHS,)
    tasks = [(first, one, textures[one % shares :: shares], *depths) for one in range(count)]
    found: list[Any] = []
    with get_context("spawn").Pool(options.workers) as pool:
        for done, one in enumerate(pool.imap(function, tasks), start=1):
            found += [one] if is_range else one
            print(f"camera {done} of {count}", flush=True)
    if kept:
        kept.write_text(json.dumps(found))
    return found


def errors_of(rows: Rows) -> FitErrors:
    """Computed errors of points, as arrays."""
    names = ("per_noise_px", "per_noise2_px", "misfit_px", "residual")
    arrays = [np.array([row[name] for row in rows]) for name in names]
    return FitErrors(*arrays, np.zeros(len(rows)), np.array([row["scale"] for row in rows]))


def column(rows: Rows, name: str) -> np.ndarray:
    return np.array([row[name] for row in rows], dtype=float)


def fit_model(rows: Rows) -> ErrorModel:
    """Ratio and scatter by scale, a floor, and the fall of the density."""
    errors, noise = errors_of(rows), column(rows, "noise")
    measured, density = column(rows, "measured_px"), column(rows, "density")
    good = np.isfinite(measured) & (density >= LEAST_DENSITY)

    def scatter(floor_px: float) -> float:
        computed = np.hypot(errors.total_px(noise), floor_px)
        fine = good & (errors.scale == 1)
        return float(np.std(np.log(measured[fine] / computed[fine])))

    floor_px = min(np.arange(0, 0.0021, 0.00025), key=scatter)
    logs = np.log(measured / np.hypot(errors.total_px(noise), floor_px))
    half = np.maximum(0.09, 3e-4 * column(rows, "disparity_px") ** 2)
    stated = errors.stated_px(noise) / half

    def missed(place: tuple[float, float]) -> float:
        told = 1 / (1 + (stated / place[0]) ** place[1])
        return float(np.sum((told - density)[stated > 0.15] ** 2))

    tried = [(limit, power) for limit in np.arange(0.4, 1.5, 0.05) for power in (1, 1.5, 2, 3, 4)]
    limit, power = min(tried, key=missed)
    scales = (1, 2, 4)
    by_scale = [logs[good & (errors.scale == scale)] for scale in scales]
    return ErrorModel(
        ratio={s: float(np.exp(np.median(one))) for s, one in zip(scales, by_scale, strict=True)},
        scatter={s: float(np.std(one)) for s, one in zip(scales, by_scale, strict=True)},
        floor_px=float(floor_px),
        density_limit=float(limit),
        density_power=float(power),
        cameras=len({row["camera"] for row in rows}),
        points=len(rows),
    )


def write_model(model: ErrorModel) -> None:
    """Write the data file of the package."""
    lines = [
        "# Ratio of measured to computed errors of joint; written by benchmarks/design.py model.",
        *(f"{name} = {getattr(model, name):.6g}" for name in ("floor_px", "density_limit")),
        f"density_power = {model.density_power:.6g}",
        f"cameras = {model.cameras}",
        f"points = {model.points}",
    ]
    for name in ("ratio", "scatter"):
        lines += ["", f"[{name}]"]
        lines += [f"{scale} = {one:.4f}" for scale, one in getattr(model, name).items()]
    MODEL_FILE.write_text("\n".join(lines) + "\n")
    print(MODEL_FILE.read_text())


def ratios(measured: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Median of measured over predicted, and the share within 25 %."""
    ratio = measured / predicted
    return {
        "points": int(ratio.size),
        "median": float(np.median(ratio)),
        "within_25": float(np.mean((ratio > 0.8) & (ratio < 1.25))),
        "tenth": float(np.quantile(ratio, 0.05)),
        "ninetieth": float(np.quantile(ratio, 0.95)),
    }


def cameras_figures(rows: Rows) -> dict[str, Any]:
    """Figures of the report cameras: all textures together at each depth, and each alone."""
    errors, noise = errors_of(rows), column(rows, "noise")
    predicted = error_model().sigma_px(errors, noise)
    measured = column(rows, "measured_px")
    density = column(rows, "density")
    told = error_model().density(errors, noise, column(rows, "disparity_px"))
    good = np.isfinite(measured) & (density >= LEAST_DENSITY)
    groups: dict[tuple[int, float], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if good[place]:
            groups[row["camera"], row["depth_m"]].append(place)
    pooled = [(measured[p].mean(), predicted[p].mean()) for p in groups.values()]
    return {
        "cameras": len({row["camera"] for row in rows}),
        "without_half": int(np.count_nonzero(~good)),
        "told_without_half": int(np.count_nonzero(told < LEAST_DENSITY)),
        "pooled": ratios(*(np.array(one) for one in zip(*pooled, strict=True))),
        "single": ratios(measured[good], predicted[good]),
        "by_scale": {
            str(scale): ratios(
                measured[good & (errors.scale == scale)], predicted[good & (errors.scale == scale)]
            )
            for scale in (1, 2, 4)
        },
        "by_texture": {
            name: ratios(measured[good & mask], predicted[good & mask])
            for name in REPORT_PATTERNS
            if (mask := np.array([row["texture"] == name for row in rows])).any()
        },
    }


def ranges_figures(options: argparse.Namespace) -> dict[str, Any]:
    """Working ranges of cameras, for an error drawn between the least and the largest of each."""
    found = simulated(range_of, REPORT, options)
    both = [(predicted_range_m(REPORT, one), one["measured_m"]) for one in found]
    return {
        **range_shares(both),
        "each": [[one["camera"], *ends] for one, ends in zip(found, both, strict=True)],
    }


def range_shares(both: list[tuple[Ends, Ends]]) -> dict[str, Any]:
    """Predicted over measured working ranges, by their length and by their ends."""
    lengths, near, far = np.array(
        [
            ((told[1] - told[0]) / (seen[1] - seen[0]), told[0] / seen[0], told[1] / seen[1])
            if told and seen
            else (np.nan, np.nan, np.nan)
            for told, seen in both
        ]
    ).T
    return {
        "cameras": len(both),
        "one_is_empty": int(np.count_nonzero(np.isnan(lengths))),
        "length": _shares(lengths),
        "near_end": _shares(near),
        "far_end": _shares(far),
    }


def _shares(found: np.ndarray) -> dict[str, float]:
    return {
        "median": float(np.nanmedian(found)),
        "within_10": float(np.mean(np.abs(found - 1) <= 0.1)),
        "within_25": float(np.mean(np.abs(found - 1) <= 0.25)),
    }


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--points", help="file of simulated points")
    parser.add_argument("--cameras", type=int, help="number of cameras")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    part = options.part
    if part == "table":
        table = build_table(Wall(), progress=lambda done, total: print(done, total, end="\r"))
        NATURAL_FILE.write_text(json.dumps(table.as_json()) + "\n")
    elif part == "model":
        write_model(fit_model(simulated(points_of, TUNING, options)))
    else:
        figures = {
            "cameras": lambda: cameras_figures(simulated(points_of, REPORT, options)),
            "ranges": lambda: ranges_figures(options),
            "wishes": run_wishes,
            "tolerances": tolerance_figures,
        }[part]()
        print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
