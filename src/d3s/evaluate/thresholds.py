"""Planes over depth, texture and threshold of confidence: what a stricter filter buys."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from d3s.calibrate.validation import ACCURATE_M, working_range_m
from d3s.evaluate.contender import Contender, as_contenders
from d3s.evaluate.jobs import Job, run_jobs
from d3s.evaluate.json_tables import as_table, from_table
from d3s.evaluate.metrics import pooled, ratio, worst
from d3s.evaluate.planes import PlaneSweep, plane_trial
from d3s.evaluate.ranking import AtThreshold, threshold_curve
from d3s.evaluate.trial import contenders_of, jobs_of, rig_of
from d3s.rig import Rig
from d3s.types import Progress


@dataclass(frozen=True, kw_only=True)
class ThresholdRow:
    """One method on one plane at one threshold."""

    texture: str
    depth_m: float
    method: str
    pixels: int  # that are judged
    at: AtThreshold


@dataclass(frozen=True, kw_only=True)
class ThresholdSummary:
    """One method at one threshold, over all planes."""

    method: str
    threshold: float
    density: float  # share of the judged pixels that are left
    mae_m: float  # of all of them together
    median_m: float  # the mean over the planes that have any depth
    range_m: tuple[float, float] | None  # of MAE below a centimetre on every texture


@dataclass(frozen=True, kw_only=True)
class ThresholdResults:
    """All rows of a sweep over planes and thresholds, and what made them."""

    sweep: PlaneSweep
    rig: Rig
    contenders: tuple[Contender, ...]
    thresholds: tuple[float, ...]
    rows: tuple[ThresholdRow, ...]

    def summary(self) -> tuple[ThresholdSummary, ...]:
        """One for each method and threshold, in the order in which they were given."""
        return threshold_summary(self.rows)


def evaluate_thresholds(
    methods: str | Contender | Sequence[str | Contender],
    thresholds: Sequence[float],
    *,
    sweep: PlaneSweep | None = None,
    rig: Rig | None = None,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> ThresholdResults:
    """Every method on every plane of a sweep, cut at thresholds of its confidence.

    Each is run once, with its own filters off. The other arguments are those of `evaluate_planes`.

    Raises
    ------
    InputError, OptionsError
        Naming the method or the option that cannot be, before anything is rendered.
    """
    contenders = as_contenders(methods)
    sweep, rig = sweep or PlaneSweep(), rig or Rig.paper_prototype()
    limits = tuple(float(one) for one in thresholds)
    jobs = [
        {**job, "thresholds": list(limits)} for job in jobs_of("thresholds", sweep, rig, contenders)
    ]
    answers = run_jobs(jobs, workers=workers, folder=folder, progress=progress)
    return ThresholdResults(
        sweep=sweep,
        rig=rig,
        contenders=contenders,
        thresholds=limits,
        rows=tuple(from_table(ThresholdRow, row) for one in answers for row in one["rows"]),
    )


def threshold_summary(rows: Sequence[ThresholdRow]) -> tuple[ThresholdSummary, ...]:
    """One for each method and threshold, in the order in which they were given."""
    places = dict.fromkeys((row.method, row.at.threshold) for row in rows)
    return tuple(
        _summary([row for row in rows if (row.method, row.at.threshold) == place])
        for place in places
    )


def _summary(rows: Sequence[ThresholdRow]) -> ThresholdSummary:
    counts = [row.at.retained for row in rows]
    medians = [row.at.median_m for row in rows if row.at.retained]
    depths_m = sorted({row.depth_m for row in rows})
    accurate = [
        worst(row.at.answered_mae_m for row in rows if row.depth_m == depth_m) < ACCURATE_M
        for depth_m in depths_m
    ]
    return ThresholdSummary(
        method=rows[0].method,
        threshold=rows[0].at.threshold,
        density=ratio(sum(counts), sum(row.pixels for row in rows)),
        mae_m=pooled([row.at.mae_m for row in rows], counts),
        median_m=ratio(sum(medians), len(medians)),
        range_m=working_range_m(depths_m, accurate),
    )


def try_thresholds(job: Job) -> dict[str, Any]:
    """All contenders on one plane: the job's place is the number of its texture and its depth."""
    sweep, contenders = PlaneSweep(**job["sweep"]), contenders_of(job)
    texture, depth_m, trial = plane_trial(sweep, rig_of(job), job["place"])
    rows = [
        ThresholdRow(
            texture=texture,
            depth_m=depth_m,
            method=method,
            pixels=int(trial.truth.judged.sum()),
            at=at,
        )
        for method, outcome in trial.run([one.unfiltered() for one in contenders]).items()
        for at in threshold_curve(outcome.depth_map, trial.truth, job["thresholds"])
    ]
    return {"rows": [as_table(row) for row in rows]}
