"""Planes over thresholds of confidence: error and density that a stricter filter gives."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from d3s.lab.evaluate.contender import Contender
from d3s.lab.evaluate.evaluation import Evaluation, Methods, Rows, SweepResults, run_evaluation
from d3s.lab.evaluate.metrics import count_pixels, ratio, threshold_curve
from d3s.lab.evaluate.sweep import PlaneSweep, Trial
from d3s.lab.evaluate.table import (
    Figure,
    SweepTable,
    accurate_range_m,
    pooled_mean_of,
    retained_share,
    summarise,
)
from d3s.rig import Rig
from d3s.tasks import Workers
from d3s.types import Progress


def evaluate_thresholds(
    methods: Methods,
    thresholds: Sequence[float],
    *,
    sweep: PlaneSweep | None = None,
    rig: Rig | None = None,
    workers: Workers = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> SweepResults:
    """Evaluate every method on every plane of a sweep, at several thresholds of confidence.

    Each method runs once, with its own filters off.

    Parameters
    ----------
    methods
        Names of methods, with options as `Contender.parse` reads them, or each as a `Contender`.
    thresholds
        Confidences from 0 to 1 that a depth must reach.
    sweep, rig, workers, folder, progress
        As for `evaluate_planes`.

    Returns
    -------
    Results whose rows are named by `texture`, `depth_m`, `method` and `threshold`. A line of the
    summary is a method at a threshold, over all planes.

    Raises
    ------
    InputError, OptionsError
        When a method or an option is unknown or wrong, before anything is rendered.
    """
    return run_evaluation(
        THRESHOLDS,
        methods,
        settings={"thresholds": [float(one) for one in thresholds]},
        sweep=sweep,
        rig=rig,
        workers=workers,
        folder=folder,
        progress=progress,
    )


def _measure_thresholds(
    trial: Trial, contenders: Sequence[Contender], thresholds: Sequence[float]
) -> Rows:
    """Error and density of each contender on one plane, at each threshold; its filters are off."""
    rows = [
        {
            **trial.key,
            "method": method,
            "pixels": count_pixels(trial.truth.judged),
            **asdict(at),
        }
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
