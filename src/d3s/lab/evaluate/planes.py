"""Planes that face the camera, over depth and texture: what is measured, and its summary.

Also over thresholds of confidence: the error and the density that a stricter filter gives.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Unpack

import numpy as np

from d3s.calibrate.validation import ACCURATE_M
from d3s.lab.evaluate.contender import Contender
from d3s.lab.evaluate.evaluation import Evaluation, Methods, Rows, Run, SweepResults, run_evaluation
from d3s.lab.evaluate.metrics import (
    count_pixels,
    finite_median,
    ratio,
    score,
    threshold_curve,
    trust_of,
)
from d3s.lab.evaluate.quality import plane_quality
from d3s.lab.evaluate.sweep import PlaneSweep, Trial
from d3s.lab.evaluate.table import (
    DUEL,
    Figure,
    SweepTable,
    accurate_range_m,
    cell_of_worst,
    mean_of,
    median_of,
    pooled_density,
    pooled_mean_of,
    retained_share,
    summarise,
    worst_error_m,
)
from d3s.rig import Rig

BEYOND_M = 0.9
"""Depth from which on stereo with this baseline is hard."""


def evaluate_planes(
    methods: Methods, *, sweep: PlaneSweep | None = None, rig: Rig | None = None, **run: Unpack[Run]
) -> SweepResults:
    """Evaluate every method on every plane of a sweep, all on the same images.

    A wrong method or option is refused before anything is rendered.

    Parameters
    ----------
    methods
        Names of methods, with options as `Contender.parse` reads them, or each as a `Contender`.
    sweep
        Which planes; 25 depths from 0.25 to 2 m and 8 textures with 1 % noise if left out.
    rig
        The camera; the paper's prototype if left out.
    run
        `workers`, `folder` and `progress`: see `Run`.

    Returns
    -------
    Results whose rows are named by `texture`, `depth_m` and `method`. A line of the summary is a
    method over all planes, with its `depths` and `rivals`.
    """
    return run_evaluation(PLANES, methods, sweep=sweep, rig=rig, **run)


def measure_plane(trial: Trial, contenders: Sequence[Contender]) -> Rows:
    """Score, trust and plane quality of each contender on one plane, and its duels."""
    outcomes = trial.run(contenders)
    rows = [
        {
            **trial.key,
            "method": method,
            "time_s": outcome.time_s,
            **asdict(score(outcome.depth_map, trial.truth)),
            **trust_of(outcome.depth_map, trial.truth),
            **asdict(plane_quality(outcome.depth_map, trial.key["depth_m"], trial.truth.judged)),
        }
        for method, outcome in outcomes.items()
    ]
    return {"rows": rows, "duels": trial.duel_rows(contenders, outcomes)}


def summarise_planes(results: SweepResults) -> list[dict[str, Any]]:
    """Summarise all planes: one line for each method."""
    return [
        {**line, "rivals": _summarise_rivals(results, line["method"])}
        for line in summarise(results.rows, ("method",), _OF_METHOD)
    ]


def _summarise_rivals(results: SweepResults, method: str) -> list[dict[str, Any]]:
    """Summarise the duels of a method: MAE over that of each rival, at each depth."""

    def ratio_own(duels: SweepTable) -> float:
        first = duels[0]
        own, other = (
            results.rows.where(method=name, depth_m=first["depth_m"]).column("mae_m")
            for name in (first["method"], first["rival"])
        )
        both = [(a, b) for a, b in zip(own, other, strict=True) if np.isfinite(a + b)]
        return ratio(sum(a for a, _ in both), sum(b for _, b in both))

    return summarise(
        results.duels.where(method=method),
        ("method", "rival", "depth_m"),
        # The first on the pixels that each retained, of the means over the textures.
        {"ratio_own": ratio_own, **DUEL},
    )


def _in_range(planes: SweepTable) -> SweepTable:
    near_m, far_m = accurate_range_m(planes) or (np.inf, -np.inf)
    return SweepTable(row for row in planes if near_m <= row["depth_m"] <= far_m)


def _worst_density_of_texture(planes: SweepTable) -> float:
    return min((row["density"] for row in planes if row["textured"]), default=float("nan"))


def _worst_density_of_depth(planes: SweepTable) -> float:
    return min(map(pooled_density, planes.groups("depth_m")), default=float("nan"))


def _median_mae_over_bound(planes: SweepTable) -> float:
    mean = mean_of("mae_over_bound")
    return finite_median(mean(rows) for rows in planes.groups("depth_m"))


_AT_DEPTH: dict[str, Figure] = {
    "mae_m": mean_of("mae_m"),  # over the textures that were given any depth
    "worst_mae_m": worst_error_m,
    "worst_texture": cell_of_worst("texture", otherwise=""),
    "accurate": lambda rows: worst_error_m(rows) < ACCURATE_M,
    "density": pooled_density,
    "worst_density": _worst_density_of_texture,
    "mae_over_bound": mean_of("mae_over_bound"),
    "bias_m": pooled_mean_of("bias_m"),
    "bad_2cm": pooled_mean_of("bad_2cm"),
    "coverage": pooled_mean_of("coverage"),
}
"""One method at one depth, over all textures."""

_OF_METHOD: dict[str, Figure] = {
    "range_m": accurate_range_m,
    "density": lambda rows: pooled_density(_in_range(rows)),
    "worst_density": lambda rows: _worst_density_of_depth(_in_range(rows)),
    "mae_over_bound": _median_mae_over_bound,  # over all depths
    "time_s": median_of("time_s"),  # over all pairs, as the next five
    "sigma_gain": median_of("sigma_gain"),
    "fill_rate": median_of("fill_rate"),
    "z_accuracy": lambda rows: finite_median(map(abs, rows.column("z_accuracy"))),
    "plane_fit_rms": median_of("plane_fit_rms"),
    "subpixel_rms_px": median_of("subpixel_rms_px"),
    "depths": lambda rows: summarise(rows, ("method", "depth_m"), _AT_DEPTH),
}
"""One method over the whole sweep."""

PLANES = Evaluation(
    name="planes", sweep=PlaneSweep, measure=measure_plane, summarise=summarise_planes
)


def evaluate_thresholds(
    methods: Methods,
    thresholds: Sequence[float],
    *,
    sweep: PlaneSweep | None = None,
    rig: Rig | None = None,
    **run: Unpack[Run],
) -> SweepResults:
    """Evaluate every method on every plane of a sweep, at several thresholds of confidence.

    Each method runs once, with its own filters off.

    Parameters
    ----------
    methods, sweep, rig, run
        As for `evaluate_planes`.
    thresholds
        Confidences from 0 to 1 that a depth must reach.

    Returns
    -------
    Results whose rows are named by `texture`, `depth_m`, `method` and `threshold`. A line of the
    summary is a method at a threshold, over all planes.
    """
    return run_evaluation(
        THRESHOLDS,
        methods,
        settings={"thresholds": [float(one) for one in thresholds]},
        sweep=sweep,
        rig=rig,
        **run,
    )


def _measure_thresholds(
    trial: Trial, contenders: Sequence[Contender], thresholds: Sequence[float]
) -> Rows:
    """Error and density of each contender on one plane, at each threshold; its filters are off."""
    rows = [
        {**trial.key, "method": method, "pixels": count_pixels(trial.truth.judged), **at}
        for method, outcome in trial.run([one.unfiltered() for one in contenders]).items()
        for at in threshold_curve(outcome.depth_map, trial.truth, thresholds)
    ]
    return {"rows": rows}


def summarise_thresholds(results: SweepResults) -> list[dict[str, Any]]:
    """Summarise all planes: one line for each method and threshold."""
    return summarise(results.rows, ("method", "threshold"), AT_THRESHOLD)


def _mean_median_m(rows: SweepTable) -> float:
    medians_m = [row["median_m"] for row in rows if row["retained"]]
    return ratio(sum(medians_m), len(medians_m))


AT_THRESHOLD: dict[str, Figure] = {
    "density": retained_share,
    "mae_m": pooled_mean_of("mae_m"),
    "median_m": _mean_median_m,  # over the planes that have any depth
    "range_m": accurate_range_m,
}
"""One method at one threshold, over all planes."""

THRESHOLDS = Evaluation(
    name="thresholds",
    sweep=PlaneSweep,
    measure=_measure_thresholds,
    summarise=summarise_thresholds,
    has_duels=False,
)
