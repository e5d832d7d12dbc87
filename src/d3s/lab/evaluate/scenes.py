"""Random scenes with edges and slopes: what is measured, and its summary."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Unpack

import numpy as np

from d3s.lab.evaluate.contender import Contender
from d3s.lab.evaluate.evaluation import Evaluation, Methods, Rows, Run, SweepResults, run_evaluation
from d3s.lab.evaluate.metrics import background_beside, fattening_of, pooled, ratio, score, trust_of
from d3s.lab.evaluate.sweep import SceneSweep, Trial
from d3s.lab.evaluate.table import (
    DUEL,
    SHARES_BESIDE,
    Figure,
    SweepTable,
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


def evaluate_scenes(
    methods: Methods, *, sweep: SceneSweep | None = None, rig: Rig | None = None, **run: Unpack[Run]
) -> SweepResults:
    """Evaluate every method on every scene of a sweep, all on the same images.

    Parameters
    ----------
    methods, rig, run
        As for `evaluate_planes`.
    sweep
        Which scenes; 30 of 1025 x 1025 pixels from 0.4 to 1.9 m with 1 % noise if left out.

    Returns
    -------
    Results whose rows are named by `scene` (a seed), `region` (of `Truth.regions`) and `method`.
    A line of the summary is a method over all scenes, with its `regions` and `rivals`.
    """
    return run_evaluation(SCENES, methods, sweep=sweep, rig=rig, **run)


def measure_scene(trial: Trial, contenders: Sequence[Contender]) -> Rows:
    """Score, trust and fattening of each contender in each region of one scene, and its duels."""
    outcomes = trial.run(contenders)
    regions = trial.truth.regions
    beside = background_beside(trial.truth, trial.rig.optics)
    rows = [
        {
            **trial.key,
            "region": name,
            "method": method,
            "time_s": outcome.time_s,  # for the whole scene
            **asdict(score(outcome.depth_map, trial.truth, region)),
            **trust_of(outcome.depth_map, trial.truth, region),
            **fattening_of(outcome.depth_map, trial.truth, beside, region),
        }
        for method, outcome in outcomes.items()
        for name, region in regions.items()
    ]
    return {"rows": rows, "duels": trial.duel_rows(contenders, outcomes)}


def summarise_scenes(results: SweepResults) -> list[dict[str, Any]]:
    """Summarise all scenes: one line for each method."""
    whole = results.rows.where(region="all")
    return [
        {
            **line,
            "regions": summarise_regions(results.rows.where(method=line["method"])),
            "rivals": _summarise_rivals(whole, results.duels.where(method=line["method"])),
        }
        for line in summarise(whole, ("method",), _OF_METHOD)
    ]


def summarise_regions(rows: SweepTable) -> list[dict[str, Any]]:
    """Summarise the regions of one method, all scenes together."""
    judged = sum(rows.where(region="all").column("pixels"))
    share: Figure = lambda part: ratio(sum(part.column("pixels")), judged)  # noqa: E731
    return summarise(rows, ("method", "region"), {"share": share, **_OF_REGION})


def _summarise_rivals(whole: SweepTable, duels: SweepTable) -> list[dict[str, Any]]:
    """Summarise the duels of one method: MAE over that of each rival, all scenes together."""

    def ratio_own(duels: SweepTable) -> float:
        names = duels[0]["method"], duels[0]["rival"]
        own_m, other_m = (_pooled_mae_m(whole.where(method=name)) for name in names)
        return ratio(own_m, other_m)

    # The first on the pixels that each retained.
    return summarise(duels, ("method", "rival"), {"ratio_own": ratio_own, **DUEL})


_pooled_mae_m = pooled_mean_of("mae_m")


def _mae_over_bound(rows: SweepTable) -> float:
    counts = rows.column("textured_retained")
    return ratio(
        pooled(rows.column("textured_mae_m"), counts), pooled(rows.column("bound_mean_m"), counts)
    )


def _pooled_rmse_m(rows: SweepTable) -> float:
    squares = [rmse_m**2 for rmse_m in rows.column("rmse_m")]
    return float(np.sqrt(pooled(squares, rows.column("retained"))))


_OF_METHOD: dict[str, Figure] = {
    "mae_m": _pooled_mae_m,
    "scenes": len,
    "scenes_with_depth": lambda rows: sum(count > 0 for count in rows.column("retained")),
    "mean_mae_m": mean_of("mae_m"),  # over the scenes with any depth
    "worst_mae_m": worst_error_m,
    "worst_scene": cell_of_worst("scene", otherwise=None),
    "density": pooled_density,
    "mae_over_bound": _mae_over_bound,  # of all textured pixels together
    "time_s": median_of("time_s"),  # over the scenes, as the next two
    "sigma_gain": median_of("sigma_gain"),
    "confidence_gain": median_of("confidence_gain"),
    "retained": retained_share,
    "bad_2cm": pooled_mean_of("bad_2cm"),
    "coverage": pooled_mean_of("coverage"),
    "coverage_3": pooled_mean_of("coverage_3"),
    **SHARES_BESIDE,
}
"""One method over all scenes."""

_OF_REGION: dict[str, Figure] = {
    "retained": retained_share,
    "mae_m": _pooled_mae_m,
    "median_m": mean_of("median_m"),  # over the scenes
    "rmse_m": _pooled_rmse_m,
    "bad_2cm": pooled_mean_of("bad_2cm"),
    "bias_m": pooled_mean_of("bias_m"),
    "coverage": pooled_mean_of("coverage"),
    "coverage_3": pooled_mean_of("coverage_3"),  # of the errors below 3 sigma
    "density": pooled_density,
}
"""One method in one region, all scenes together; `share` of the judged pixels comes first."""

SCENES = Evaluation(
    name="scenes", sweep=SceneSweep, measure=measure_scene, summarise=summarise_scenes
)
