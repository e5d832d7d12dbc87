"""Comparison of all methods on the same images, at three densities.

A method that gives a depth only where it is sure looks better than it is. So there are three ways
to compare:

- full: all filters of the method off (`unfiltered` of its options);
- own: the filters of the method as they are by default;
- common: the same share of all pixels for every method, those that it trusts most, by one threshold
  for all pairs. Pixels that its own filter keeps come first, then the others.

The common share is the lowest that dense methods keep with their own filter, in steps of 5 %. A
method is dense if it keeps at least half of the pixels. A method that has too few depths even
without its filter has no figures at the common share.

Further sections, such as scenes with weak surfaces, hold pixels without any depth to be found. The
share that a method keeps there, and whether its sigma is true, counts as much as its error; a
method that keeps a tenth of the pixels is dense.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from d3s.batch.running import Workers, results
from d3s.estimate import DepthMap
from d3s.estimate.methods import methods
from d3s.lab.evaluate.cameras import Lens, tuned_rig, typical_rig
from d3s.lab.evaluate.contender import Contender, as_contenders
from d3s.lab.evaluate.evaluation import Job, Methods, Rows, join_rows, measure_pair, pair_jobs
from d3s.lab.evaluate.metrics import (
    BAD_M,
    background_beside,
    count_pixels,
    coverage,
    depth_errors_m,
    fattening_of,
    mean_or_nan,
    median_or_nan,
    trust,
    trust_order,
)
from d3s.lab.evaluate.planes import BEYOND_M
from d3s.lab.evaluate.sweep import PlaneSweep, SceneSweep, Sweep, Trial
from d3s.lab.evaluate.table import (
    SHARES_BESIDE,
    Figure,
    Row,
    SweepTable,
    accurate_range_m,
    mean_of,
    pooled_mean_of,
    retained_share,
    summarise,
)
from d3s.lab.evaluate.truth import Truth, within_frames
from d3s.lab.twin.sequence import even_distances_m
from d3s.rig import Rig
from d3s.types import FloatArray, Progress

STEPS = 100
"""Number of steps in which the pixels of a pair are taken, the most trusted ones first."""
SHARES = tuple(round(0.05 * step, 2) for step in range(1, 21))
"""Shares of all judged pixels at which every method is measured."""
DENSE = 0.5
"""Least share of a dense method with its own filter; dense methods decide the common share."""
DENSE_IN_MORE = 0.1
"""The same in further sections, where most of the pixels may be without texture."""
WEAK = "weak scenes"
"""Section of random scenes with plain and weakly textured surfaces."""
SIDES = "planes at the sides"
"""Section of planes seen by typical lenses, judged at both sides of the field."""
SIDES_FROM_PX = 500
"""Distance from the middle column at which the sides of the field begin."""
BORDER_PX = 33
"""Pixels nearer than this to the ends of the views are not judged: the reach of the methods.

In a full frame it is a narrow strip; in the small frames of the league it would decide."""
_TOLERANCE = 0.005  # share of the pixels that may be missing where a share counts as reached
_BEFORE_ALL_OTHERS = 1e6  # added to the trust of pixels that the own filter keeps


@dataclass(frozen=True, kw_only=True)
class Program:
    """Planes and scenes of a league, and the pairs of further sections.

    A further section is any sweep, whose `trial` gives pairs with their truth; its name is the name
    of the section.
    """

    planes: PlaneSweep
    scenes: SceneSweep
    more: Mapping[str, Sweep] = field(default_factory=dict)

    @classmethod
    def full(cls) -> Self:
        """Return the program of the documentation: ten minutes on two cores."""
        scenes = SceneSweep(count=12, shape=(400, 500))
        return cls(
            planes=PlaneSweep(depths_m=even_distances_m(0.25, 2.0, 11), shape=(180, 400)),
            scenes=scenes,
            more={WEAK: scenes.replace(surfaces="weak", count=8)},
        )

    @classmethod
    def quick(cls) -> Self:
        """Return a small program: a minute or two on two cores."""
        scenes = SceneSweep(count=2, shape=(300, 400))
        return cls(
            planes=PlaneSweep(
                depths_m=(0.5, 1.0, 1.5, 2.0), patterns=("brick", "grass"), shape=(160, 320)
            ),
            scenes=scenes,
            more={WEAK: scenes.replace(surfaces="weak")},
        )

    @classmethod
    def typical(cls, *, quick: bool = False) -> Self:
        """Return the program for the camera with typical lenses: every second depth of `full`.

        Planes and scenes are in the middle of the field; further planes are judged at its sides.
        """
        planes = PlaneSweep(
            depths_m=even_distances_m(0.25, 2.0, 6),
            patterns=("text", "brick", "gravel", "bark"),
            shape=(180, 400),
            lens="typical",
        )
        scenes = SceneSweep(count=3, shape=(400, 500), lens="typical")
        sides = planes.replace(patterns=("brick",), shape=(130, 1500), beyond_px=SIDES_FROM_PX)
        if quick:
            planes = planes.replace(depths_m=(0.5, 1.0, 1.5, 2.0), patterns=("brick", "grass"))
            scenes = scenes.replace(count=2, shape=(300, 400))
            sides = sides.replace(depths_m=(0.5, 1.5))
        return cls(planes=planes, scenes=scenes, more={SIDES: sides})

    @property
    def lens(self) -> Lens:
        """Lenses of the camera."""
        return self.planes.lens

    @property
    def sweeps(self) -> dict[str, Sweep]:
        """All sweeps by the group of their rows; scenes come first, since they take longest."""
        return {"scenes": self.scenes, **self.more, "planes": self.planes}

    @property
    def pairs(self) -> int:
        """Number of all pairs."""
        return sum(len(sweep.places) for sweep in self.sweeps.values())

    def with_seed(self, seed: int) -> Self:
        """Return the program with other scenes, textures and noise."""
        return replace(
            self,
            planes=self.planes.replace(seed=seed),
            scenes=self.scenes.replace(seed=seed),
            more={name: sweep.replace(seed=seed) for name, sweep in self.more.items()},
        )


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One method in one section.

    The figures are `density`, `mae_m`, `median_m`, `pairs_with_depth` and `range_m`: see
    `AT_DENSITY`. Those of `trust` are the share of large errors, the errors within 1 and 3 sigma,
    and fattening, with the own filter: see `OF_TRUST`.
    """

    method: str
    full: Row
    own: Row
    common: Row | None  # None if the method does not reach the common density
    trust: Row
    time_s_per_mpx: float  # processor time of one core, the median over the pairs
    curve_m: tuple[float, ...]  # MAE at `SHARES`, NaN where the method has fewer depths


@dataclass(frozen=True, kw_only=True)
class Section:
    """Part of the league with a ranking of its own."""

    name: str
    pairs: int
    common_density: float  # NaN if no method is dense
    standings: tuple[Standing, ...]
    is_further: bool = False  # neither planes nor textured scenes


@dataclass(frozen=True, kw_only=True)
class League:
    """Rows of all pairs and methods, with the program, camera and methods that decide them.

    A row has the columns `group` ("planes", "scenes" or a further section), `pair` (the texture of
    a plane, the seed of a scene), `depth_m` (NaN for a scene), `method`, `megapixels`, `time_s`,
    `pixels` (judged), `textured`, the errors `full_retained`, `full_mae_m`, `full_median_m` and
    likewise `own_...`; with the own filter also `bad_2cm`, `coverage`, `coverage_3` and the columns
    of `fattening_of`; and `steps`, the errors of the most trusted pixels: see `step_errors`.
    """

    program: Program
    rig: Rig
    contenders: tuple[Contender, ...]
    rows: SweepTable

    def sections(self) -> tuple[Section, ...]:
        """Planes, planes beyond `BEYOND_M`, scenes, and further sections."""
        planes = self.rows.where(group="planes")
        parts = {
            "planes": planes,
            f"planes beyond {BEYOND_M:g} m": SweepTable(
                row for row in planes if row["depth_m"] >= BEYOND_M
            ),
            "scenes": self.rows.where(group="scenes"),
            **{name: self.rows.where(group=name) for name in self.program.more},
        }
        names = [one.name for one in self.contenders]
        return tuple(
            _section(name, rows, names, is_further=name in self.program.more)
            for name, rows in parts.items()
            if rows
        )


def compare(
    names: Methods = (),
    *,
    program: Program | None = None,
    rig: Rig | None = None,
    workers: Workers = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> League:
    """Compare methods on planes and scenes, all on the same images.

    Parameters
    ----------
    names
        Methods as for `evaluate_planes`; all registered methods if left out.
    program
        Which planes and scenes; `Program.full` if left out.
    rig
        The camera; `default_rig` if left out. With typical lenses, a rig that was calibrated for
        frames of `d3s.lab.evaluate.cameras`.
    workers, folder, progress
        As for `evaluate_planes`.
    """
    contenders = as_contenders(names or tuple(methods()))
    program = program or Program.full()
    rig = rig or default_rig(contenders, program.lens)
    jobs = [
        job
        for group, sweep in program.sweeps.items()
        for job in pair_jobs(f"league {group}", sweep, rig, contenders, {"group": group})
    ]
    answers = results(_measure_job, jobs, workers=workers, folder=folder, progress=progress)
    rows = join_rows(answers, "rows")
    return League(program=program, rig=rig, contenders=contenders, rows=rows)


def default_rig(contenders: Sequence[Contender], lens: Lens = "perfect") -> Rig:
    """Return the paper's prototype, tuned on simulated boards if a contender needs that.

    Only the consensus uses the tuned depth equation. With typical lenses it is the rig that was
    calibrated on simulated boards.
    """
    if lens == "typical":
        return typical_rig()
    is_tuned = any(one.method == "consensus" for one in contenders)
    return tuned_rig() if is_tuned else Rig.paper_prototype()


def _measure_job(job: Job) -> Rows:
    """Measure the pair of a job, of planes or of scenes."""
    sweep = PlaneSweep if "depths_m" in job["sweep"] else SceneSweep
    return measure_pair(_measure_pair, sweep, job)


def _measure_pair(trial: Trial, contenders: Sequence[Contender], group: str) -> Rows:
    """Errors of each contender on one pair, with and without its filters."""
    disparity_px = trial.rig.optics.disparity_px(trial.truth.depth_m)
    inner = trial.truth.judged & within_frames(disparity_px, BORDER_PX)
    trial = replace(trial, truth=replace(trial.truth, judged=inner))
    pair = str(next(iter(trial.key.values())))
    beside = background_beside(trial.truth, trial.rig.optics)
    rows = []
    for contender in contenders:
        (own,) = trial.run((contender,)).values()
        (full,) = trial.run((contender.unfiltered(),)).values()
        rows.append(
            {
                "group": group,
                "pair": pair,
                "depth_m": trial.key.get("depth_m", float("nan")),
                "method": contender.name,
                "megapixels": trial.left.size / 1e6,
                "time_s": own.time_s,
                "pixels": count_pixels(trial.truth.judged),
                "textured": count_pixels(trial.truth.textured),
                **_error_columns("full_", _retained_errors_m(full.depth_map, trial.truth)),
                **_error_columns("own_", _retained_errors_m(own.depth_map, trial.truth)),
                **_trust_columns(own.depth_map, trial.truth),
                **fattening_of(own.depth_map, trial.truth, beside),
                "steps": step_errors(contender, own.depth_map, full.depth_map, trial.truth),
            }
        )
    return {"rows": rows}


def _retained_errors_m(depth_map: DepthMap, truth: Truth) -> FloatArray:
    return np.abs(depth_errors_m(depth_map, truth, depth_map.valid & truth.judged))


def _trust_columns(depth_map: DepthMap, truth: Truth) -> dict[str, float]:
    """Share of large errors, and of errors within 1 and 3 sigma."""
    one, three = coverage(depth_map, truth, (1.0, 3.0))
    is_bad = _retained_errors_m(depth_map, truth) > BAD_M
    return {"bad_2cm": mean_or_nan(is_bad), "coverage": one, "coverage_3": three}


def _error_columns(prefix: str, absolute_m: FloatArray) -> dict[str, Any]:
    """Number, mean and median of absolute errors; NaN if there are none."""
    return {
        f"{prefix}retained": absolute_m.size,
        f"{prefix}mae_m": mean_or_nan(absolute_m),
        f"{prefix}median_m": median_or_nan(absolute_m),
    }


def step_errors(
    contender: Contender, own: DepthMap, full: DepthMap, truth: Truth
) -> dict[str, list[Any]]:
    """Errors of the most trusted pixels of a pair, at each of `STEPS` shares of its judged pixels.

    Pixels that the method's own filter keeps come before all others.

    Returns `retained`, `mae_m` and `median_m` of the pixels up to each step, and `trust` of the
    last of them, which is comparable between pairs.
    """
    kept = truth.judged & (own.valid | full.valid)
    passes = own.valid[kept]
    depth_m = np.where(passes, own.depth_m[kept], full.depth_m[kept])
    by = contender.ranked_by
    key = np.where(passes, _BEFORE_ALL_OTHERS + trust(own, by)[kept], trust(full, by)[kept])
    order = trust_order(key)
    absolute_m = np.abs(depth_m - truth.depth_m[kept]).astype(np.float64)[order]
    pixels = count_pixels(truth.judged)
    counts = [min(round(step * pixels / STEPS), absolute_m.size) for step in range(1, STEPS + 1)]
    columns = [_error_columns("", absolute_m[:count]) for count in counts]
    return {
        "retained": counts,
        "mae_m": [one["mae_m"] for one in columns],
        "median_m": [one["median_m"] for one in columns],
        "trust": [float(key[order[count - 1]]) if count else -np.inf for count in counts],
    }


def steps_at(rows: SweepTable, share: float) -> list[int]:
    """Number of steps of each pair that together are the most trusted share of all pixels."""
    retained = np.array([row["steps"]["retained"] for row in rows])
    gained = np.diff(retained, axis=1, prepend=0)
    falling = -np.array([row["steps"]["trust"] for row in rows])
    number, step = np.indices(gained.shape)
    # Steps of equal trust are taken from all pairs in turn, so that no pair is favoured.
    order = np.lexsort([number.ravel(), step.ravel(), falling.ravel()])
    total = np.cumsum(gained.ravel()[order])
    taken = order[total <= share * sum(rows.column("pixels")) + 0.5]
    return [int(count) for count in np.bincount(number.ravel()[taken], minlength=len(rows))]


def _with_filter(rows: SweepTable, prefix: str) -> SweepTable:
    """Rows with the errors `full_` or `own_` in the columns that summaries read."""
    names = ("retained", "mae_m", "median_m")
    return SweepTable({**row, **{name: row[prefix + name] for name in names}} for row in rows)


def _at_share(rows: SweepTable, share: float) -> SweepTable:
    """Rows with the errors of the most trusted share of all pixels."""
    return SweepTable(
        {**row, **_errors_after(row["steps"], count)}
        for row, count in zip(rows, steps_at(rows, share), strict=True)
    )


def _errors_after(steps: Mapping[str, Sequence[Any]], count: int) -> dict[str, Any]:
    if not count:
        return _error_columns("", np.empty(0))
    return {name: steps[name][count - 1] for name in ("retained", "mae_m", "median_m")}


AT_DENSITY: dict[str, Figure] = {
    "density": retained_share,
    "mae_m": pooled_mean_of("mae_m"),
    "median_m": mean_of("median_m"),  # over the pairs that have any depth
    "pairs_with_depth": lambda rows: sum(count > 0 for count in rows.column("retained")),
    "range_m": lambda rows: accurate_range_m(rows) if rows[0]["group"] == "planes" else None,
}
"""One method at one density, over a section."""


OF_TRUST: dict[str, Figure] = {
    **{name: pooled_mean_of(name) for name in ("bad_2cm", "coverage", "coverage_3")},
    **SHARES_BESIDE,
}
"""One method with its own filter, over a section: large errors, sigma, fattening."""


def _figures(rows: SweepTable, figures: Mapping[str, Figure] = AT_DENSITY) -> dict[str, Any]:
    (line,) = summarise(rows, (), figures)
    return line


def _section(name: str, rows: SweepTable, methods: Sequence[str], *, is_further: bool) -> Section:
    of_method = {method: rows.where(method=method) for method in methods}
    own = [_figures(_with_filter(some, "own_"))["density"] for some in of_method.values()]
    dense = DENSE_IN_MORE if is_further else DENSE
    least = min((density for density in own if density >= dense), default=0.0)
    common = max((share for share in SHARES if share <= least), default=float("nan"))
    return Section(
        name=name,
        pairs=len(rows) // len(methods),
        common_density=common,
        standings=tuple(_standing(method, some, common) for method, some in of_method.items()),
        is_further=is_further,
    )


def _standing(method: str, rows: SweepTable, common: float) -> Standing:
    full, own = _figures(_with_filter(rows, "full_")), _with_filter(rows, "own_")

    def reaches(share: float) -> bool:
        return bool(full["density"] >= share - _TOLERANCE)  # False for NaN

    return Standing(
        method=method,
        full=full,
        own=_figures(own),
        trust=_figures(own, OF_TRUST),
        common=_figures(_at_share(rows, common)) if reaches(common) else None,
        time_s_per_mpx=float(np.median([row["time_s"] / row["megapixels"] for row in rows])),
        curve_m=tuple(
            _figures(_at_share(rows, share))["mae_m"] if reaches(share) else float("nan")
            for share in SHARES
        ),
    )
