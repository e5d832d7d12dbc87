"""All methods on the same images, at full density, with their own filter, and at a common density.

Three ways to compare, since a method that answers only where it is sure looks better than it is:

- full: all of its own filters switched off (`unfiltered` of its options);
- own: as it comes;
- common: the same share of all pixels for everybody: those that a method trusts most, by one
  threshold for all pairs. Those that its own filter keeps come first, then the others.

The common share is the lowest of what dense methods keep with their own filter, in steps of 5 %; a
method is dense if that is at least half of the pixels. A method that does not have so many even
without its filter has no figure there.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from d3s.calibrate.validation import ACCURATE_M, working_range_m
from d3s.estimate import DepthMap
from d3s.estimate.methods import METHODS
from d3s.evaluate.contender import Contender, as_contenders
from d3s.evaluate.jobs import Job, run_jobs
from d3s.evaluate.json_tables import as_table, from_table
from d3s.evaluate.metrics import answered_mae_m, pooled, ratio, worst
from d3s.evaluate.planes import BEYOND_M, PlaneSweep, plane_trial
from d3s.evaluate.ranking import trust, trust_order
from d3s.evaluate.scenes import SceneSweep, scene_trial
from d3s.evaluate.trial import Trial, contenders_of, jobs_of, rig_of
from d3s.evaluate.truth import Truth, within_frames
from d3s.evaluate.tuned import tuned_rig
from d3s.rig import Rig
from d3s.scene.sequence import even_distances_m
from d3s.types import FloatArray, Progress

STEPS = 100
"""The pixels of a pair are taken in so many steps, the most trusted ones first."""
SHARES = tuple(round(0.05 * step, 2) for step in range(1, 21))
"""Shares of all judged pixels at which every method is measured."""
DENSE = 0.5
"""A method that keeps at least this share with its own filter decides about the common one."""
BORDER_PX = 33
"""So near to the ends of the views nobody is judged: as far as the methods look around a pixel.

In a full frame it is a strip, and in the small ones that are played with it would decide."""
# What may lack of a share for it to be reached; and what puts one pixel before all others.
_SLACK, _FIRST = 0.005, 1e6


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is played: planes and scenes."""

    planes: PlaneSweep
    scenes: SceneSweep

    @classmethod
    def full(cls) -> Self:
        """Return that of the documentation: ten minutes on two cores."""
        return cls(
            planes=PlaneSweep(depths_m=even_distances_m(0.25, 2.0, 11), shape=(180, 400)),
            scenes=SceneSweep(count=12, shape=(400, 500)),
        )

    @classmethod
    def quick(cls) -> Self:
        """Return one for a first look, of a minute or two on two cores."""
        return cls(
            planes=PlaneSweep(
                depths_m=(0.5, 1.0, 1.5, 2.0), patterns=("brick", "grass"), shape=(160, 320)
            ),
            scenes=SceneSweep(count=2, shape=(300, 400)),
        )

    def with_seed(self, seed: int) -> Self:
        """Return the same with other scenes, textures and noise."""
        return replace(
            self, planes=self.planes.replace(seed=seed), scenes=self.scenes.replace(seed=seed)
        )


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The errors of some pixels of one pair; NaN if there are none."""

    retained: int
    mae_m: float
    median_m: float


@dataclass(frozen=True, kw_only=True)
class Prefixes:
    """The most trusted pixels of one pair, at each of `STEPS` shares of its judged pixels."""

    retained: tuple[int, ...]
    mae_m: tuple[float, ...]
    median_m: tuple[float, ...]
    trust: tuple[float, ...]  # of the last of them; comparable between pairs

    def tally(self, steps: int) -> Tally:
        """Of so many steps."""
        if not steps:
            return Tally(retained=0, mae_m=float("nan"), median_m=float("nan"))
        last = steps - 1
        return Tally(
            retained=self.retained[last], mae_m=self.mae_m[last], median_m=self.median_m[last]
        )


@dataclass(frozen=True, kw_only=True)
class LeagueRow:
    """One method on one pair."""

    group: str  # "planes" or "scenes"
    pair: str  # the texture of a plane, the seed of a scene
    depth_m: float  # of a plane; NaN of a scene
    method: str
    megapixels: float
    time_s: float  # of the processor, with its own filter
    pixels: int  # that are judged
    textured: int  # of them, that hold depth enough
    full: Tally
    own: Tally
    prefixes: Prefixes


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What the league says of one method at one density, over a section."""

    density: float  # share of the judged pixels that have a depth
    mae_m: float  # of all these pixels together
    median_m: float  # the mean over the pairs that have any depth
    pairs_with_depth: int
    range_m: tuple[float, float] | None  # of planes: where the MAE is below 1 cm on every texture


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One method in one section."""

    method: str
    full: Figures
    own: Figures
    common: Figures | None  # None if it does not reach the common density
    time_s_per_mpx: float  # of one core, the median over the pairs
    curve_m: tuple[float, ...]  # MAE at `SHARES`, NaN beyond what it reaches


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the league with a ranking of its own."""

    name: str
    pairs: int
    common_density: float  # NaN if no method is dense
    standings: tuple[Standing, ...]


@dataclass(frozen=True, kw_only=True)
class League:
    """All rows, and what made them."""

    program: Program
    rig: Rig
    contenders: tuple[Contender, ...]
    rows: tuple[LeagueRow, ...]

    def sections(self) -> tuple[Section, ...]:
        """Planes, those of them beyond `BEYOND_M`, and scenes."""
        planes = [row for row in self.rows if row.group == "planes"]
        parts = {
            "planes": planes,
            f"planes beyond {BEYOND_M:g} m": [row for row in planes if row.depth_m >= BEYOND_M],
            "scenes": [row for row in self.rows if row.group == "scenes"],
        }
        names = [one.name for one in self.contenders]
        return tuple(_section(name, rows, names) for name, rows in parts.items() if rows)


def compare(
    methods: str | Contender | Sequence[str | Contender] = tuple(METHODS),
    *,
    program: Program | None = None,
    rig: Rig | None = None,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> League:
    """Every method on every plane and scene, all on the same images.

    Parameters
    ----------
    methods
        As for `evaluate_planes`; all that are registered if left.
    program
        Which planes and scenes; `Program.full` if left.
    rig
        The camera; `default_rig` if left.
    workers, folder, progress
        As for `evaluate_planes`.

    Raises
    ------
    InputError, OptionsError
        Naming the method or the option that cannot be, before anything is rendered.
    """
    contenders = as_contenders(methods)
    program, rig = program or Program.full(), rig or default_rig(contenders)
    answers = run_jobs(
        league_jobs(program, rig, contenders), workers=workers, folder=folder, progress=progress
    )
    rows = tuple(from_table(LeagueRow, row) for answer in answers for row in answer["rows"])
    return League(program=program, rig=rig, contenders=contenders, rows=rows)


def default_rig(contenders: Sequence[Contender]) -> Rig:
    """The paper's prototype; tuned on simulated boards, if a method takes part that needs it."""
    return tuned_rig() if needs_tuning(contenders) else Rig.paper_prototype()


def needs_tuning(contenders: Sequence[Contender]) -> bool:
    """Whether a method takes part that uses what is tuned: the consensus alone."""
    return any(one.method == "consensus" for one in contenders)


def league_jobs(
    program: Program, rig: Rig, contenders: Sequence[Contender]
) -> list[dict[str, Any]]:
    """A job for each pair; scenes come first, since they take longest."""
    return [
        *jobs_of("league scenes", program.scenes, rig, contenders),
        *jobs_of("league planes", program.planes, rig, contenders),
    ]


def try_plane(job: Job) -> dict[str, Any]:
    """All methods on one plane, with and without their filters."""
    texture, depth_m, trial = plane_trial(PlaneSweep(**job["sweep"]), rig_of(job), job["place"])
    return _played(job, trial, {"group": "planes", "pair": texture, "depth_m": depth_m})


def try_scene(job: Job) -> dict[str, Any]:
    """All methods on one scene, with and without their filters."""
    seed, trial = scene_trial(SceneSweep(**job["sweep"]), rig_of(job), job["place"])
    return _played(job, trial, {"group": "scenes", "pair": str(seed), "depth_m": float("nan")})


def _played(job: Job, trial: Trial, place: Mapping[str, Any]) -> dict[str, Any]:
    disparity_px = trial.rig.optics.disparity_px(trial.truth.depth_m)
    inner = trial.truth.judged & within_frames(disparity_px, BORDER_PX)
    trial = replace(trial, truth=replace(trial.truth, judged=inner))
    rows = []
    for contender in contenders_of(job):
        (own,) = trial.run((contender,)).values()
        (full,) = trial.run((contender.unfiltered(),)).values()
        row = LeagueRow(
            **place,
            method=contender.name,
            megapixels=trial.left.size / 1e6,
            time_s=own.time_s,
            pixels=int(np.count_nonzero(trial.truth.judged)),
            textured=int(np.count_nonzero(trial.truth.textured)),
            full=_tally(_errors_m(full.depth_map, trial.truth)),
            own=_tally(_errors_m(own.depth_map, trial.truth)),
            prefixes=prefixes_of(contender, own.depth_map, full.depth_map, trial.truth),
        )
        rows.append(as_table(row))
    return {"rows": rows}


def _errors_m(depth_map: DepthMap, truth: Truth) -> FloatArray:
    kept = depth_map.valid & truth.judged
    return np.abs(depth_map.depth_m[kept] - truth.depth_m[kept]).astype(np.float64)


def _tally(errors_m: FloatArray) -> Tally:
    if not errors_m.size:
        return Tally(retained=0, mae_m=float("nan"), median_m=float("nan"))
    return Tally(
        retained=errors_m.size,
        mae_m=float(errors_m.mean()),
        median_m=float(np.median(errors_m)),
    )


def prefixes_of(contender: Contender, own: DepthMap, full: DepthMap, truth: Truth) -> Prefixes:
    """Errors of the most trusted pixels; those that the method's own filter keeps come first."""
    kept = truth.judged & (own.valid | full.valid)
    passes = own.valid[kept]
    depth_m = np.where(passes, own.depth_m[kept], full.depth_m[kept])
    by = contender.ranked_by
    key = np.where(passes, _FIRST + trust(own, by)[kept], trust(full, by)[kept])
    order = trust_order(key)
    errors = np.abs(depth_m - truth.depth_m[kept]).astype(np.float64)[order]
    pixels = np.count_nonzero(truth.judged)
    counts = [min(round(step * pixels / STEPS), errors.size) for step in range(1, STEPS + 1)]
    tallies = [_tally(errors[:count]) for count in counts]
    return Prefixes(
        retained=tuple(counts),
        mae_m=tuple(one.mae_m for one in tallies),
        median_m=tuple(one.median_m for one in tallies),
        trust=tuple(float(key[order[count - 1]]) if count else -np.inf for count in counts),
    )


def steps_at(rows: Sequence[LeagueRow], share: float) -> list[int]:
    """How many steps of each pair are kept, if this share of all pixels is: the most trusted."""
    retained = np.array([row.prefixes.retained for row in rows])
    gained = np.diff(retained, axis=1, prepend=0)
    falling = -np.array([row.prefixes.trust for row in rows])
    number, step = np.indices(gained.shape)
    # Equals go around the pairs: none is favoured.
    order = np.lexsort([number.ravel(), step.ravel(), falling.ravel()])
    total = np.cumsum(gained.ravel()[order])
    taken = order[total <= share * sum(row.pixels for row in rows) + 0.5]
    return [int(count) for count in np.bincount(number.ravel()[taken], minlength=len(rows))]


def _section(name: str, rows: Sequence[LeagueRow], methods: Sequence[str]) -> Section:
    of = {method: [row for row in rows if row.method == method] for method in methods}
    dense = [
        density
        for density in (_figures(own, [row.own for row in own]).density for own in of.values())
        if density >= DENSE
    ]
    # The largest of the shares that all of them reach.
    common = max((share for share in SHARES if dense and share <= min(dense)), default=float("nan"))
    return Section(
        name=name,
        pairs=len(rows) // len(methods),
        common_density=common,
        standings=tuple(_standing(method, own, common) for method, own in of.items()),
    )


def _standing(method: str, rows: Sequence[LeagueRow], common: float) -> Standing:
    full = _figures(rows, [row.full for row in rows])
    reaches = full.density >= common - _SLACK  # never if there is no common density
    return Standing(
        method=method,
        full=full,
        own=_figures(rows, [row.own for row in rows]),
        common=_figures(rows, _tallies_at(rows, common)) if reaches else None,
        time_s_per_mpx=float(np.median([row.time_s / row.megapixels for row in rows])),
        curve_m=tuple(
            _figures(rows, _tallies_at(rows, share)).mae_m
            if full.density >= share - _SLACK
            else float("nan")
            for share in SHARES
        ),
    )


def _tallies_at(rows: Sequence[LeagueRow], share: float) -> list[Tally]:
    steps = steps_at(rows, share)
    return [row.prefixes.tally(count) for row, count in zip(rows, steps, strict=True)]


def _figures(rows: Sequence[LeagueRow], tallies: Sequence[Tally]) -> Figures:
    counts = [one.retained for one in tallies]
    medians = [one.median_m for one in tallies if one.retained]
    return Figures(
        density=ratio(sum(counts), sum(row.pixels for row in rows)),
        mae_m=pooled([one.mae_m for one in tallies], counts),
        median_m=float(np.mean(medians)) if medians else float("nan"),
        pairs_with_depth=len(medians),
        range_m=_range_m(rows, tallies),
    )


def _range_m(rows: Sequence[LeagueRow], tallies: Sequence[Tally]) -> tuple[float, float] | None:
    """Of planes, as `evaluate_planes` has it: a texture that was given up ends the range."""
    if rows[0].group != "planes":
        return None
    depths_m = sorted({row.depth_m for row in rows})
    accurate = [
        worst(
            answered_mae_m(one.mae_m, one.retained, holds_depth=row.textured > 0)
            for row, one in zip(rows, tallies, strict=True)
            if row.depth_m == depth_m
        )
        < ACCURATE_M
        for depth_m in depths_m
    ]
    return working_range_m(depths_m, accurate)
