"""Predictions of d3s.lab.design against the twin: the model, and the figures of docs/design.md.

    .venv/bin/python benchmarks/design.py table       # errors on natural texture, 10 minutes
    .venv/bin/python benchmarks/design.py model       # ratios, from tuning cameras and textures
    .venv/bin/python benchmarks/design.py cameras     # 40 random cameras, report textures
    .venv/bin/python benchmarks/design.py tuning-ranges   # working ranges of 24 tuning cameras
    .venv/bin/python benchmarks/design.py ranges      # working ranges of the 40 cameras
    .venv/bin/python benchmarks/design.py prototype   # working range beside d3s evaluate planes
    .venv/bin/python benchmarks/design.py wishes      # 20 wishes, verified
    .venv/bin/python benchmarks/design.py tolerances  # mounting errors, simulated
    .venv/bin/python benchmarks/design.py examples    # the wish and the prototype of the page
    .venv/bin/python benchmarks/design.py times
    .venv/bin/python benchmarks/design.py page        # writes the tables of docs/design.md

`table` and `model` write data files of the package. The others add their figures to
benchmarks/results/design.json, from which `page` writes the tables. `--points FILE` keeps what was
simulated, and reads it if it is there.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from d3s.lab.design.error_model import MAE_PER_SIGMA, MODEL_FILE, ErrorModel, error_model
from d3s.lab.design.predict import ErrorWish, working_range_m
from d3s.lab.design.table import NATURAL_FILE, build_table
from d3s.lab.design.wall import Wall
from d3s.lab.design.window_fit import FitErrors
from d3s.lab.evaluate.sweep import REPORT_PATTERNS, TUNING_PATTERNS
from design_cameras import REPORT, TUNING, all_points, all_ranges, as_rows, predicted_range_m
from design_examples import example_figures, explained_figures
from design_page import write_page
from design_tolerances import tolerance_figures
from design_wishes import run_wishes

RESULTS = Path(__file__).parent / "results" / "design.json"
TUNING_CAMERAS, REPORT_CAMERAS = 60, 40
TUNING_DEPTHS, REPORT_DEPTHS = 6, 6
TUNED_RANGES = 24
LEAST_DENSITY = 0.5
PROTOTYPE_M = (0.2, 0.24, 0.27, 0.5, 1.2, 2.2, 2.5, 2.8, 3.1, 3.4, 3.7, 4.0)

PARTS = (
    *(
        "table",
        "model",
        "tuning-ranges",
        "cameras",
        "ranges",
        "prototype",
        "wishes",
        "tolerances",
        "examples",
        "times",
    ),
    "page",
)

Rows = list[dict[str, Any]]
Ends = tuple[float, float] | None


def simulated(first: int, options: argparse.Namespace) -> Rows:
    """Points of the tuning or of the report cameras, simulated or read."""
    if options.points and Path(options.points).is_file():
        return json.loads(Path(options.points).read_text())
    is_tuning = first == TUNING
    points = all_points(
        first,
        TUNING_CAMERAS if is_tuning else REPORT_CAMERAS,
        TUNING_PATTERNS if is_tuning else REPORT_PATTERNS,
        TUNING_DEPTHS if is_tuning else REPORT_DEPTHS,
        options.workers,
    )
    rows = as_rows(points)
    if options.points:
        Path(options.points).write_text(json.dumps(rows))
    return rows


def errors_of(rows: Rows) -> FitErrors:
    """Computed errors of points, as arrays."""
    names = ("per_noise_px", "per_noise2_px", "misfit_px", "residual")
    arrays = [np.array([row[name] for row in rows]) for name in names]
    return FitErrors(*arrays, np.zeros(len(rows)), np.array([row["scale"] for row in rows]))


def column(rows: Rows, name: str) -> np.ndarray:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=float)


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
    curves: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for (camera, depth), places in groups.items():
        per_px = rows[places[0]]["per_px_m"] * MAE_PER_SIGMA
        both = (per_px * one[places].mean() for one in (predicted, measured))
        curves[camera].append((depth, *both))
    return {
        "cameras": len({row["camera"] for row in rows}),
        "without_half": int(np.count_nonzero(~good)),
        "told_without_half": int(np.count_nonzero(told < LEAST_DENSITY)),
        "ranges": range_shares([_coarse_ranges(n, points) for n, points in curves.items()]),
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


def ranges_figures(first: int, options: argparse.Namespace) -> dict[str, Any]:
    """Working ranges of cameras, for an error drawn between the least and the largest of each."""
    if options.points and Path(options.points).is_file():
        found = json.loads(Path(options.points).read_text())
    else:
        is_tuning = first == TUNING
        count = options.cameras or (TUNED_RANGES if is_tuning else REPORT_CAMERAS)
        patterns = TUNING_PATTERNS if is_tuning else REPORT_PATTERNS
        found = all_ranges(first, count, patterns, options.workers)
        if options.points:
            Path(options.points).write_text(json.dumps(found))
    both = [(predicted_range_m(first, one), one["measured_m"]) for one in found]
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


def _coarse_ranges(camera: int, points: list[tuple[float, float, float]]) -> tuple[Ends, Ends]:
    """Ranges from six depths, for an error drawn between the least and the largest predicted."""
    depth, told, seen = (np.array(one) for one in zip(*sorted(points), strict=True))
    rng = np.random.default_rng([REPORT, camera, 1])
    wish = ErrorWish(error_m=float(np.exp(rng.uniform(*np.log([told.min(), told.max()])))))
    ones = np.ones_like(depth)
    return working_range_m(depth, told, ones, wish), working_range_m(depth, seen, ones, wish)


def _shares(found: np.ndarray) -> dict[str, float]:
    return {
        "median": float(np.nanmedian(found)),
        "within_10": float(np.mean(np.abs(found - 1) <= 0.1)),
        "within_25": float(np.mean(np.abs(found - 1) <= 0.25)),
    }


def prototype_figures(workers: int) -> dict[str, Any]:
    """Working range of the prototype: predicted, and by the planes of `d3s evaluate planes`.

    The planes reach from 0.2 to 4.5 m. Once with the depths that joint searches by default, once
    with all of them.
    """
    from d3s.estimate.candidates import default_depth_range_m
    from d3s.lab.design.camera import Camera
    from d3s.lab.design.predict import predict
    from d3s.lab.evaluate import PlaneSweep, evaluate_planes

    camera = Camera.paper_prototype()
    depths = PROTOTYPE_M
    patterns = REPORT_PATTERNS
    sweep = PlaneSweep(
        depths_m=depths, patterns=patterns, psf="diffraction", shape=(200, 420), noise=0.01
    )
    wide = "joint:depth_range_m=[0.19,5.0]"
    found = evaluate_planes(["joint", wide], sweep=sweep, rig=camera.rig, workers=workers)
    lines = found.summary()
    searched = default_depth_range_m(camera.optics)
    figures: dict[str, Any] = {"searched_m": list(searched)}
    walls = [Wall(texture=name) for name in patterns]
    at = np.array(depths)
    curves = [predict(camera, depths_m=at, wall=wall) for wall in walls]
    worst = np.max([one.mae_m for one in curves], axis=0)
    least = np.min([one.density for one in curves], axis=0)
    predicted = working_range_m(at, worst, least, ErrorWish(error_m=0.01))
    for line, ends in zip(lines, (searched, (0.0, np.inf)), strict=True):
        told = (max(predicted[0], ends[0]), min(predicted[1], ends[1]))
        name = "default search" if ends == searched else "wide search"
        figures[name] = {"measured_m": list(line["range_m"]), "predicted_m": list(told)}
    return figures


def times_figures() -> dict[str, Any]:
    """Time of a prediction and of a search, warm."""
    from d3s.lab.design.camera import Camera
    from d3s.lab.design.predict import predict
    from d3s.lab.design.search import search
    from d3s.lab.design.wish import Wish

    camera = Camera.paper_prototype()
    wish = Wish(reach_m=(0.3, 2.0), error_m=0.01, max_size_m=0.015)
    found = {}
    for name, call in (
        ("forward", lambda: predict(camera)),
        ("forward, bark", lambda: predict(camera, wall=Wall(texture="bark"))),
        ("back", lambda: search(wish)),
        ("back, infeasible", lambda: search(wish.replace(error_m=1e-4, max_size_m=0.005))),
    ):
        call()
        wall, started = time.perf_counter(), time.process_time()
        call()
        found[name] = {
            "wall_s": time.perf_counter() - wall,
            "processor_s": time.process_time() - started,
        }
    return found


def keep(name: str, figures: dict[str, Any]) -> None:
    """Add figures to the results."""
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    results[name] = figures
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--points", help="file of simulated points")
    parser.add_argument("--cameras", type=int, help="number of cameras whose range is measured")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.part == "table":
        table = build_table(Wall(), progress=lambda done, total: print(done, total, end="\r"))
        NATURAL_FILE.write_text(json.dumps(table.as_json()) + "\n")
    elif options.part == "model":
        write_model(fit_model(simulated(TUNING, options)))
    elif options.part == "cameras":
        keep("cameras", cameras_figures(simulated(REPORT, options)))
    elif options.part in ("ranges", "tuning-ranges"):
        first = REPORT if options.part == "ranges" else TUNING
        keep(options.part, ranges_figures(first, options))
    elif options.part == "prototype":
        keep("prototype", prototype_figures(options.workers))
    elif options.part == "wishes":
        keep("wishes", run_wishes())
    elif options.part == "tolerances":
        keep("mounted", tolerance_figures())
    elif options.part == "examples":
        keep("example", example_figures())
        keep("explained", explained_figures())
    elif options.part == "times":
        keep("times", times_figures())
    else:
        write_page(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
