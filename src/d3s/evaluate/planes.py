"""Planes that face the camera, over depth and texture: the sweep and its summary."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, Field

from d3s.calibrate.validation import ACCURATE_M, working_range_m
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
from d3s.evaluate.quality import PlaneQuality, plane_quality
from d3s.evaluate.ranking import Trust, trust_of
from d3s.evaluate.trial import Shape, Sweep, Trial, contenders_of, jobs_of, make_trial, rig_of
from d3s.rig import Rig
from d3s.scene.scenes import Plane
from d3s.scene.sequence import even_distances_m
from d3s.scene.textures import Texture
from d3s.types import Progress

BEYOND_M = 0.9
"""From here on stereo of this camera is hard."""


def _rising(depths_m: tuple[float, ...]) -> tuple[float, ...]:
    if not depths_m or any(np.diff(depths_m) <= 0):
        raise ValueError("must be one depth or several, increasing.")
    return depths_m


class PlaneSweep(Sweep):
    """Which planes to try: every texture at every depth."""

    depths_m: Annotated[
        tuple[Annotated[float, Field(gt=0, le=100)], ...],
        Field(max_length=1000),
        AfterValidator(_rising),
    ] = Field(default=even_distances_m(0.25, 2.0, 25), description="the distances, increasing")
    # Wide enough for the largest disparity of the prototype, 93 px, and half of it again.
    shape: Shape = Field(default=(300, 640), description="rows and columns of a view")

    @classmethod
    def quick(cls) -> Self:
        """Return a sweep of half a minute, for a first look."""
        return cls(
            depths_m=even_distances_m(0.25, 2.0, 8), patterns=("brick", "grass"), shape=(200, 400)
        )

    @property
    def places(self) -> list[tuple[int, ...]]:
        """Numbers of texture and depth."""
        return [(i, j) for i in range(len(self.patterns)) for j in range(len(self.depths_m))]


@dataclass(frozen=True, kw_only=True)
class PlaneRow:
    """One method on one plane."""

    texture: str
    depth_m: float
    method: str
    time_s: float
    score: Score
    trust: Trust
    quality: PlaneQuality  # over the judged pixels


@dataclass(frozen=True, kw_only=True)
class PlaneDuel:
    """One method and a rival on one plane, on the pixels that both retained."""

    texture: str
    depth_m: float
    method: str
    rival: str
    duel: Duel


@dataclass(frozen=True, kw_only=True)
class DepthSummary:
    """One method at one depth, over all textures."""

    method: str
    depth_m: float
    mae_m: float  # the mean over the textures that were given any depth
    worst_mae_m: float  # infinite if a texture that holds depth was left without any
    worst_texture: str  # empty if no texture says anything
    accurate: bool  # the worst is below a centimetre
    density: float  # of all textured pixels together
    worst_density: float  # of a texture
    mae_over_bound: float  # the mean over the textures, as of the MAE
    bias_m: float  # of all retained pixels together, as the next two
    bad_2cm: float
    coverage: float


@dataclass(frozen=True, kw_only=True)
class RivalSummary:
    """One method against a rival at one depth: MAE over MAE, below 1 where it is better."""

    method: str
    rival: str
    depth_m: float
    ratio_own: float  # each on the pixels it retained: the mean over textures by the rival's mean
    ratio_common: float  # on the pixels that both retained, of all textures together
    common: int  # how many


@dataclass(frozen=True, kw_only=True)
class PlaneSummary:
    """One method over the whole sweep."""

    method: str
    range_m: tuple[float, float] | None  # of MAE below a centimetre on every texture
    density: float  # in that range, of all textured pixels together
    worst_density: float  # in that range, of a depth
    mae_over_bound: float  # the median over all depths
    time_s: float  # the median over all pairs
    sigma_gain: float  # likewise, as the next four
    fill_rate: float
    z_accuracy: float  # of its size
    plane_fit_rms: float
    subpixel_rms_px: float
    depths: tuple[DepthSummary, ...]
    rivals: tuple[RivalSummary, ...]


@dataclass(frozen=True, kw_only=True)
class PlaneResults:
    """All rows of a sweep over planes, and what made them."""

    sweep: PlaneSweep
    rig: Rig
    contenders: tuple[Contender, ...]
    rows: tuple[PlaneRow, ...]
    duels: tuple[PlaneDuel, ...]

    def summary(self) -> tuple[PlaneSummary, ...]:
        """One a method, in the order in which they were given."""
        return tuple(self._summary(contender.name) for contender in self.contenders)

    def _summary(self, method: str) -> PlaneSummary:
        rows = [row for row in self.rows if row.method == method]
        depths = tuple(
            _at_depth([row for row in rows if row.depth_m == depth_m])
            for depth_m in self.sweep.depths_m
        )
        range_m = working_range_m(self.sweep.depths_m, [one.accurate for one in depths])
        near_m, far_m = range_m or (np.inf, -np.inf)
        within = [row.score for row in rows if near_m <= row.depth_m <= far_m]
        return PlaneSummary(
            method=method,
            range_m=range_m,
            density=pooled_density(within),
            worst_density=min(
                (one.density for one in depths if near_m <= one.depth_m <= far_m),
                default=float("nan"),
            ),
            mae_over_bound=known_median([one.mae_over_bound for one in depths]),
            time_s=known_median([row.time_s for row in rows]),
            sigma_gain=known_median([row.trust.sigma_gain for row in rows]),
            fill_rate=known_median([row.quality.fill_rate for row in rows]),
            z_accuracy=known_median([abs(row.quality.z_accuracy) for row in rows]),
            plane_fit_rms=known_median([row.quality.plane_fit_rms for row in rows]),
            subpixel_rms_px=known_median([row.quality.subpixel_rms_px for row in rows]),
            depths=depths,
            rivals=tuple(self._rivals(method)),
        )

    def _rivals(self, method: str) -> list[RivalSummary]:
        names = [one.name for one in self.contenders if one.is_rival and one.name != method]
        return [
            self._against(method, rival, depth_m)
            for rival in names
            for depth_m in self.sweep.depths_m
        ]

    def _against(self, method: str, rival: str, depth_m: float) -> RivalSummary:
        own, other = (
            [row.score.mae_m for row in self.rows if (row.method, row.depth_m) == (name, depth_m)]
            for name in (method, rival)
        )
        both = [(a, b) for a, b in zip(own, other, strict=True) if np.isfinite(a + b)]
        place = (method, rival, depth_m)
        duels = [one.duel for one in self.duels if (one.method, one.rival, one.depth_m) == place]
        return RivalSummary(
            method=method,
            rival=rival,
            depth_m=depth_m,
            ratio_own=ratio(sum(a for a, _ in both), sum(b for _, b in both)),
            ratio_common=common_ratio(duels),
            common=sum(one.common for one in duels),
        )


def evaluate_planes(
    methods: str | Contender | Sequence[str | Contender],
    *,
    sweep: PlaneSweep | None = None,
    rig: Rig | None = None,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> PlaneResults:
    """Every method on every plane of a sweep, all on the same images.

    Parameters
    ----------
    methods
        Names of methods, with options as `Contender.parse` reads them, or each as a `Contender`.
    sweep
        Which planes; 25 depths from 0.25 to 2 m and 8 textures with 1 % noise if left.
    rig
        The camera; the paper's prototype if left.
    workers
        Processes to share the planes among, each with one thread; one for each core if left. The
        figures are the same for any number.
    folder
        Where finished planes are kept, so that the same call goes on where it was stopped; nowhere
        if left.
    progress
        Called after each pair.

    Raises
    ------
    InputError, OptionsError
        Naming the method or the option that cannot be, before anything is rendered.
    """
    contenders = as_contenders(methods)
    sweep, rig = sweep or PlaneSweep(), rig or Rig.paper_prototype()
    answers = run_jobs(
        jobs_of("planes", sweep, rig, contenders),
        workers=workers,
        folder=folder,
        progress=progress,
    )
    return PlaneResults(
        sweep=sweep,
        rig=rig,
        contenders=contenders,
        rows=tuple(from_table(PlaneRow, row) for one in answers for row in one["rows"]),
        duels=tuple(from_table(PlaneDuel, row) for one in answers for row in one["duels"]),
    )


def try_plane(job: Job) -> dict[str, Any]:
    """All contenders on one plane: the job's place is the number of its texture and its depth."""
    sweep, contenders = PlaneSweep(**job["sweep"]), contenders_of(job)
    texture, depth_m, trial = plane_trial(sweep, rig_of(job), job["place"])
    outcomes = trial.run(contenders)
    rows = [
        PlaneRow(
            texture=texture,
            depth_m=depth_m,
            method=method,
            time_s=outcome.time_s,
            score=score(outcome.depth_map, trial.truth),
            trust=trust_of(outcome.depth_map, trial.truth),
            quality=plane_quality(outcome.depth_map, depth_m, trial.truth.judged),
        )
        for method, outcome in outcomes.items()
    ]
    duels = [
        PlaneDuel(texture=texture, depth_m=depth_m, method=method, rival=rival, duel=fought)
        for method, rival, fought in trial.duels(contenders, outcomes)
    ]
    return {"rows": [as_table(row) for row in rows], "duels": [as_table(one) for one in duels]}


def plane_trial(sweep: PlaneSweep, rig: Rig, place: Sequence[int]) -> tuple[str, float, Trial]:
    """Texture, depth and pair of one place of a sweep."""
    i, j = place
    texture, depth_m = sweep.patterns[i], sweep.depths_m[j]
    scene = Plane(depth_m=depth_m, texture=Texture(pattern=texture, seed=sweep.seed))
    return texture, depth_m, make_trial(scene, rig, sweep, sweep.shape, (sweep.seed, i, j))


def _at_depth(rows: Sequence[PlaneRow]) -> DepthSummary:
    """The rows of one method at one depth."""
    scores = [row.score for row in rows]
    counts = [one.retained for one in scores]
    errors_m = {row.texture: row.score.answered_mae_m for row in rows}
    worst_mae_m = worst(errors_m.values())
    return DepthSummary(
        method=rows[0].method,
        depth_m=rows[0].depth_m,
        mae_m=known_mean([one.mae_m for one in scores]),
        worst_mae_m=worst_mae_m,
        worst_texture=next((t for t, one in errors_m.items() if one == worst_mae_m), ""),
        accurate=worst_mae_m < ACCURATE_M,
        density=pooled_density(scores),
        worst_density=min((s.density for s in scores if s.textured), default=float("nan")),
        mae_over_bound=known_mean([one.mae_over_bound for one in scores]),
        bias_m=pooled([one.bias_m for one in scores], counts),
        bad_2cm=pooled([one.bad_2cm for one in scores], counts),
        coverage=pooled([one.coverage for one in scores], counts),
    )
