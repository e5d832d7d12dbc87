"""Random scenes with edges and tilts: the sweep and its summary."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from d3s.evaluate.contender import Contender, as_contenders
from d3s.evaluate.jobs import Job, run_jobs
from d3s.evaluate.json_tables import as_table, from_table
from d3s.evaluate.metrics import (
    Duel,
    Score,
    common_ratio,
    known_mean,
    known_median,
    pooled,
    pooled_density,
    ratio,
    score,
    worst,
)
from d3s.evaluate.ranking import Trust, trust_of
from d3s.evaluate.trial import Shape, Sweep, Trial, contenders_of, jobs_of, make_trial, rig_of
from d3s.rig import Rig
from d3s.scene.random_scene import RandomScene
from d3s.types import Progress

_LEAST_DEPTH = 1.1  # how much a random scene needs from its nearest to its farthest depth


class SceneSweep(Sweep):
    """Which random scenes to try."""

    count: int = Field(default=30, ge=1, le=10_000, description="how many scenes")
    nearest_m: float = Field(
        default=0.4, gt=0, le=100, description="the smallest depth in the scenes"
    )
    farthest_m: float = Field(
        default=1.9,
        gt=0,
        le=100,
        validate_default=True,  # against a nearest depth that is given
        description="the largest depth in the scenes",
    )
    # The size of the synthetic data of the paper.
    shape: Shape = Field(default=(1025, 1025), description="rows and columns of a view")

    @field_validator("farthest_m")
    @classmethod
    def _is_farther(cls, farthest_m: float, info: ValidationInfo) -> float:
        nearest_m = info.data.get("nearest_m")
        if nearest_m is not None and farthest_m < _LEAST_DEPTH * nearest_m:
            raise ValueError(f"must be at least {_LEAST_DEPTH:g} times nearest_m={nearest_m:g}.")
        return farthest_m

    @classmethod
    def quick(cls) -> Self:
        """Return a sweep of half a minute, for a first look."""
        return cls(count=3, shape=(400, 500))

    @property
    def places(self) -> list[tuple[int, ...]]:
        """Numbers of the scenes."""
        return [(number,) for number in range(self.count)]

    def scene(self, number: int) -> RandomScene:
        """One of the scenes; its own seed is that of the sweep plus its number."""
        return RandomScene(
            seed=self.seed + number,
            nearest_m=self.nearest_m,
            farthest_m=self.farthest_m,
            patterns=self.patterns,
        )


@dataclass(frozen=True, kw_only=True)
class SceneRow:
    """One method on a region of one scene."""

    scene: int  # the seed of the scene
    region: str  # of `Truth.regions`
    method: str
    time_s: float  # of the processor, for the whole scene
    score: Score
    trust: Trust


@dataclass(frozen=True, kw_only=True)
class SceneDuel:
    """One method and a rival on one scene, on the pixels that both retained."""

    scene: int
    method: str
    rival: str
    duel: Duel


@dataclass(frozen=True, kw_only=True)
class RegionSummary:
    """One method in one region, all scenes together."""

    method: str
    region: str
    share: float  # of the judged pixels that are in this region
    retained: float  # share of them that have a depth
    mae_m: float
    median_m: float  # the mean over the scenes
    rmse_m: float
    bad_2cm: float
    bias_m: float
    coverage: float
    density: float


@dataclass(frozen=True, kw_only=True)
class SceneRivalSummary:
    """One method against a rival: MAE over MAE, below 1 where it is better."""

    method: str
    rival: str
    ratio_own: float  # each on the pixels it retained
    ratio_common: float  # on the pixels that both retained
    common: int  # how many


@dataclass(frozen=True, kw_only=True)
class SceneSummary:
    """One method over all scenes."""

    method: str
    mae_m: float  # of all retained pixels together
    scenes: int
    scenes_with_depth: int  # in which it gave any
    mean_mae_m: float  # the mean over these
    worst_mae_m: float  # infinite if a scene that holds depth was left without any
    worst_scene: int | None  # its seed; None if no scene says anything
    density: float  # of all textured pixels together
    mae_over_bound: float  # likewise
    time_s: float  # the median over the scenes
    sigma_gain: float  # likewise, as the next
    confidence_gain: float
    regions: tuple[RegionSummary, ...]
    rivals: tuple[SceneRivalSummary, ...]


@dataclass(frozen=True, kw_only=True)
class SceneResults:
    """All rows of a sweep over random scenes, and what made them."""

    sweep: SceneSweep
    rig: Rig
    contenders: tuple[Contender, ...]
    rows: tuple[SceneRow, ...]
    duels: tuple[SceneDuel, ...]

    def summary(self) -> tuple[SceneSummary, ...]:
        """One a method, in the order in which they were given."""
        return tuple(self._summary(contender.name) for contender in self.contenders)

    def _rows(self, method: str, region: str = "all") -> list[SceneRow]:
        return [row for row in self.rows if (row.method, row.region) == (method, region)]

    def _summary(self, method: str) -> SceneSummary:
        rows = self._rows(method)
        scores = [row.score for row in rows]
        errors_m = {row.scene: row.score.answered_mae_m for row in rows}
        worst_mae_m = worst(errors_m.values())
        counts = [one.textured_retained for one in scores]
        regions = dict.fromkeys(row.region for row in self.rows)
        everywhere = sum(one.pixels for one in scores)
        return SceneSummary(
            method=method,
            mae_m=_mae_m(rows),
            scenes=len(rows),
            scenes_with_depth=sum(one.retained > 0 for one in scores),
            mean_mae_m=known_mean([one.mae_m for one in scores]),
            worst_mae_m=worst_mae_m,
            worst_scene=next((s for s, one in errors_m.items() if one == worst_mae_m), None),
            density=pooled_density(scores),
            mae_over_bound=ratio(
                pooled([one.textured_mae_m for one in scores], counts),
                pooled([one.bound_mean_m for one in scores], counts),
            ),
            time_s=float(np.median([row.time_s for row in rows])),
            sigma_gain=known_median([row.trust.sigma_gain for row in rows]),
            confidence_gain=known_median([row.trust.confidence_gain for row in rows]),
            regions=tuple(_region(self._rows(method, name), everywhere) for name in regions),
            rivals=tuple(
                self._against(method, one.name)
                for one in self.contenders
                if one.is_rival and one.name != method
            ),
        )

    def _against(self, method: str, rival: str) -> SceneRivalSummary:
        duels = [one.duel for one in self.duels if (one.method, one.rival) == (method, rival)]
        return SceneRivalSummary(
            method=method,
            rival=rival,
            ratio_own=ratio(_mae_m(self._rows(method)), _mae_m(self._rows(rival))),
            ratio_common=common_ratio(duels),
            common=sum(one.common for one in duels),
        )


def evaluate_scenes(
    methods: str | Contender | Sequence[str | Contender],
    *,
    sweep: SceneSweep | None = None,
    rig: Rig | None = None,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> SceneResults:
    """Every method on every scene of a sweep, all on the same images.

    Parameters
    ----------
    methods
        Names of methods, with options as `Contender.parse` reads them, or each as a `Contender`.
    sweep
        Which scenes; 30 of 1025 x 1025 pixels from 0.4 to 1.9 m with 1 % noise if left.
    rig
        The camera; the paper's prototype if left.
    workers, folder
        As for `evaluate_planes`.
    progress
        Called after each scene.

    Raises
    ------
    InputError, OptionsError, SceneError
        Naming the method or the option that cannot be, before anything is rendered.
    """
    contenders = as_contenders(methods)
    sweep, rig = sweep or SceneSweep(), rig or Rig.paper_prototype()
    sweep.scene(0)  # so that what no scene can be is told before a process is started
    answers = run_jobs(
        jobs_of("scenes", sweep, rig, contenders),
        workers=workers,
        folder=folder,
        progress=progress,
    )
    return SceneResults(
        sweep=sweep,
        rig=rig,
        contenders=contenders,
        rows=tuple(from_table(SceneRow, row) for one in answers for row in one["rows"]),
        duels=tuple(from_table(SceneDuel, row) for one in answers for row in one["duels"]),
    )


def try_scene(job: Job) -> dict[str, Any]:
    """All contenders on one scene: the job's place is its number."""
    sweep, contenders = SceneSweep(**job["sweep"]), contenders_of(job)
    scene, trial = scene_trial(sweep, rig_of(job), job["place"])
    outcomes = trial.run(contenders)
    regions = trial.truth.regions
    rows = [
        SceneRow(
            scene=scene,
            region=name,
            method=method,
            time_s=outcome.time_s,
            score=score(outcome.depth_map, trial.truth, region),
            trust=trust_of(outcome.depth_map, trial.truth, region),
        )
        for method, outcome in outcomes.items()
        for name, region in regions.items()
    ]
    duels = [
        SceneDuel(scene=scene, method=method, rival=rival, duel=fought)
        for method, rival, fought in trial.duels(contenders, outcomes)
    ]
    return {"rows": [as_table(row) for row in rows], "duels": [as_table(one) for one in duels]}


def scene_trial(sweep: SceneSweep, rig: Rig, place: Sequence[int]) -> tuple[int, Trial]:
    """Seed and pair of one scene of a sweep."""
    (number,) = place
    scene = sweep.scene(number)
    return scene.seed, make_trial(scene, rig, sweep, sweep.shape, (sweep.seed, number))


def _region(rows: Sequence[SceneRow], everywhere: int) -> RegionSummary:
    """The rows of one method in one region."""
    scores = [row.score for row in rows]
    counts = [one.retained for one in scores]
    pixels = sum(one.pixels for one in scores)
    return RegionSummary(
        method=rows[0].method,
        region=rows[0].region,
        share=ratio(pixels, everywhere),
        retained=ratio(sum(counts), pixels),
        mae_m=_mae_m(rows),
        median_m=known_mean([one.median_m for one in scores]),
        rmse_m=float(np.sqrt(pooled([one.rmse_m**2 for one in scores], counts))),
        bad_2cm=pooled([one.bad_2cm for one in scores], counts),
        bias_m=pooled([one.bias_m for one in scores], counts),
        coverage=pooled([one.coverage for one in scores], counts),
        density=pooled_density(scores),
    )


def _mae_m(rows: Sequence[SceneRow]) -> float:
    return pooled([row.score.mae_m for row in rows], [row.score.retained for row in rows])
