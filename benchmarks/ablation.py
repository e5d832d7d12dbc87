"""`make ablation`: the contribution of each part of the joint method.

    .venv/bin/python benchmarks/ablation.py [--quick] [--constants] [--patterns tuning]
                                            [--only WORD ...] [--csv FILE]

Every variant is the joint method with one part changed: an option, or a constant or function of its
modules that is replaced while it runs. All run on the same simulated images, and `d3s.lab.evaluate`
measures them. Further tables show the effect of the defocus cue over depth, and on periodic waves,
where stereo alone is ambiguous. With --constants, the variants are half and twice each tuned
constant; tune on `--patterns tuning` only.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import d3s
from d3s.atomic import write_text
from d3s.estimate import DepthMap, Flag
from d3s.estimate.joint import method, plan, refine, search, smoothing, trust
from d3s.estimate.joint.kernels import confidence, costs, filters, paths, surfaces
from d3s.estimate.joint.types import CENSUS_WEIGHT, MAX_COST, MAX_SLOPE
from d3s.lab.evaluate import (
    REPORT_PATTERNS,
    TUNING_PATTERNS,
    Contender,
    PlaneSweep,
    SceneSweep,
    SweepResults,
    evaluate_planes,
    evaluate_scenes,
    evaluation,
    score,
)
from d3s.lab.evaluate.metrics import BAD_M
from d3s.lab.evaluate.sweep import make_trial
from d3s.lab.evaluate.table import csv_text, pooled_density, pooled_mean_of
from d3s.lab.twin.textures import Texture
from d3s.runtime.scratch import Scratch
from sheets import Sheet, show

SETS = {"report": REPORT_PATTERNS, "tuning": TUNING_PATTERNS}
# Of each set: a sparse or contrasty texture, two with many scales, one with lines.
OF_PLANES = {
    "report": ("text", "brick", "noise", "grass"),
    "tuning": ("calibration", "leaves", "stone", "wood"),
}
PLANES = PlaneSweep(depths_m=(0.25, 0.4, 0.6, 0.85, 1.2, 1.6, 2.0), shape=(200, 460))
NOISY_PLANES = PlaneSweep(depths_m=(0.6, 1.5), noise=0.03, shape=(200, 460))
SCENES = SceneSweep(count=6, shape=(500, 700))
WAVES = (160, 300)
PERIODS_PX = (6, 8, 10, 13, 16, 20, 24)


class Change(NamedTuple):
    """A name of a module or of a class, and its replacement."""

    owner: Any
    name: str
    value: Any


@dataclass(frozen=True, kw_only=True)
class Variant(Contender):
    """The joint method with some changes."""

    method: str = "joint"
    changes: tuple[Change, ...] = ()

    @property
    def is_rival(self) -> bool:
        """Whether all others are compared with it, on the pixels that both retained."""
        return self.name == "default"

    def estimate(self, left: Any, right: Any, rig: d3s.Rig) -> DepthMap:
        """Estimate depth with the changes applied."""
        with ExitStack() as stack:
            for change in self.changes:
                stack.enter_context(patch.object(*change))
            return super().estimate(left, right, rig)


def told(label: str, **options: Any) -> Variant:
    return Variant(label=label, options=options)


def changed(label: str, *changes: tuple[Any, str, Any]) -> Variant:
    return Variant(label=label, changes=tuple(Change(*one) for one in changes))


def without_flags(*unwanted: Flag) -> Callable[..., Any]:
    """The flags of the search, less some."""
    original, bits = confidence.search_flags, sum(int(flag) for flag in unwanted)

    def fewer(*args: Any) -> Any:
        return original(*args) & np.uint16(0xFFFF - bits)

    return fewer


def of_order() -> Callable[..., Any]:
    """Matching costs of the order in brightness alone, as large as those of both."""
    original, share = costs.matching_costs, 24 * CENSUS_WEIGHT / _LARGEST

    def census(*arguments: Any) -> Any:
        found = original(*arguments[:-1], (0.0, 0.0))
        return _enlarged(found, found == MAX_COST, share)

    return census


def of_slopes() -> Callable[..., Any]:
    """Matching costs of the slopes alone, as large as those of both."""
    original, share = costs.matching_costs, 2 * MAX_SLOPE / _LARGEST

    def slopes(*arguments: Any) -> Any:
        both = original(*arguments)
        order = original(*arguments[:-1], (0.0, 0.0))
        return _enlarged(both - np.minimum(order, both), both == MAX_COST, share)

    return slopes


_LARGEST = 24 * CENSUS_WEIGHT + 2 * MAX_SLOPE  # cost of a pixel


def _enlarged(found: Any, is_outside: Any, share: float) -> Any:
    """Costs divided by their share of the largest one, except outside of the overlap."""
    larger = np.minimum(found / np.float32(share), MAX_COST - 1).astype(np.uint8)
    return np.where(is_outside, np.uint8(MAX_COST), larger)


def with_even_penalties() -> Callable[..., Any]:
    """Large penalty between all neighbours alike, whatever the left view shows."""
    original = paths.step_penalties

    def even(memory: Scratch, view: Any, penalty: float, *others: Any) -> Any:
        return original(memory, np.zeros_like(view), penalty, *others)

    return even


def unknown(name: str) -> Variant:
    """The method without one kind of evidence: it is typical everywhere."""
    original = trust.gather_evidence

    def poorer(*arguments: Any) -> Any:
        evidence = original(*arguments)
        part = getattr(evidence, name)
        return evidence._replace(**{name: np.full_like(part, np.median(part))})

    label = f"trust: {name.removesuffix('_px')} ignored"
    return changed(label, (trust, "gather_evidence", poorer))


def without_tilt() -> Callable[..., Any]:
    """A fit whose texture lies at the centre of its windows."""
    original = surfaces.correct_slopes

    def straight(memory: Scratch, fit: Any, *others: Any) -> Any:
        nothing = np.zeros_like(fit.centroid_down)
        still = fit._replace(centroid_down=nothing, centroid_across=nothing)
        return original(memory, still, *others)

    return straight


DEFAULT = told("default")
NO_DEFOCUS = told("no defocus", use_defocus=False)
PARTS = (
    DEFAULT,
    NO_DEFOCUS,
    # The search.
    told("no smoothness", smoothness=0.0),
    told("search at full size", search_scale=1),
    changed("search: census only", (costs, "matching_costs", of_order())),
    changed("search: slopes only", (costs, "matching_costs", of_slopes())),
    changed("search: edges ignored", (paths, "step_penalties", with_even_penalties())),
    changed("search: no median", (filters, "median_3x3", lambda _, a: a)),
    # The windows.
    told("windows: 9 px", windows_px=(9,)),
    told("windows: 31 px", windows_px=(31,)),
    told("windows: 57 px", windows_px=(57,)),
    told("windows: 9 and 57 px", windows_px=(9, 57)),
    changed("windows: steps of the search ignored", (refine, "_STEP_PX", np.inf)),
    changed("windows: disagreement ignored", (refine, "_AGREEMENT_SIGMAS", 1e9)),
    # The fit.
    told("prefilter 0.5 px", prefilter_sigma_px=0.5),
    told("prefilter 2 px", prefilter_sigma_px=2.0),
    changed("fit at full size only", (plan, "_finer_px", lambda *_: (-np.inf, np.inf))),
    told("1 round", rounds=1),
    told("3 rounds", rounds=3),
    changed("no tilt", (surfaces, "correct_slopes", without_tilt())),
    changed("search's disparity not counted", (refine, "_DEFOCUSED_ANCHOR_PX", 1e3)),
    changed("fit moves freely", (plan, "_MAX_MOVE", 1e3)),
    # The probability of a wrong disparity.
    *(unknown(name) for name in ("least", "step_px", "misfit", "move", "gap_px")),
    # Sigma and confidence.
    changed("sigma: noise only", (refine, "UNEXPLAINED", 0.0)),
    changed("sigma: all of the residual", (refine, "UNEXPLAINED", 1.0)),
    changed("sigma: bends ignored", (refine, "_BEND", 0.0)),
    changed("sigma: windows without ends", (refine, "energy_share", lambda *_: 1.0)),
    changed("confidence: chance ignored", (smoothing, "_CHANCE_SIGMAS", 0.0)),
    changed("sigma: probability ignored", (method, "_WRONG_PX2", 0.0)),
    changed("confidence: sigma ignored", (method, "_DEFOCUSED_SIGMA_PX", 1e9)),
    changed("confidence: probability ignored", (method, "_DEFOCUSED_WRONG", 1e9)),
    told("confidence: no threshold", min_confidence=0.0),
    # The flags.
    changed(
        "flags: right view not asked",
        (confidence, "search_flags", without_flags(Flag.OCCLUDED, Flag.INCONSISTENT)),
    ),
    changed("flags: misfit ignored", (method, "_MAX_MISFIT", np.inf)),
)

TUNED = (
    (search, "_SMALL_STEP"),
    (search, "_LARGE_STEP"),
    (search, "_EDGE_SHARE"),
    (search, "_SLOPE_SHARE"),
    (search, "_MARGIN_HALF"),
    (refine, "_STEP_PX"),
    (refine, "_STEP_SHARE"),
    (refine, "_DEFOCUSED_ANCHOR_PX"),
    (plan, "_MAX_MOVE"),
    (refine, "_AGREEMENT_SIGMAS"),
    (refine, "UNEXPLAINED"),
    (refine, "_BEND"),
    (refine, "_BEND_NOISE"),
    (method, "_NOISE_HALF"),
    (smoothing, "_CHANCE_SIGMAS"),
    (method, "_MIN_CORRELATION"),
    (method, "_MAX_MISFIT"),
    (method, "_SIGMA_PX"),
    (method, "_SIGMA_SHARE"),
    (method, "_DEFOCUSED_WRONG"),
    (method, "_DEFOCUSED_HARMLESS"),
    (method, "_WRONG_PX2"),
    (trust, "_RIDGE_FACTOR"),
    (trust, "_SURFACE_PX"),
    (trust, "_STEP_PX"),
    (trust, "_REACH"),
    (trust, "_LEAST_HALF"),
)


def half_and_twice() -> tuple[Variant, ...]:
    """Each tuned constant at half and at twice its value."""
    variants = [DEFAULT]
    for module, name in TUNED:
        value = getattr(module, name)
        half = max(value // 2, 1) if isinstance(value, int) else value / 2
        place = f"{module.__name__.rpartition('.')[2]}.{name}"
        variants += [
            changed(f"{place} = {other:g}", (module, name, other)) for other in (half, 2 * value)
        ]
    return tuple(variants)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Figures of one variant; lengths in metres, shares from 0 to 1."""

    variant: str
    mae_over_bound: float  # planes with 1 % noise: the median over depths
    worst_mae_m: float  # of a plane
    density: float
    bias_m: float  # the mean over depths of its size
    coverage: float
    same_pixels: float  # MAE over that of the default, where both have a depth
    noisy_mae_m: float  # planes with 3 % noise
    noisy_density: float
    scenes_mae_m: float
    scenes_density: float
    scenes_bad_2cm: float
    scenes_coverage: float
    scenes_same_pixels: float


class Column(NamedTuple):
    """Format of a figure in the table."""

    heading: str
    factor: float
    digits: int


COLUMNS = {
    "mae_over_bound": Column("MAE / bound", 1, 2),
    "worst_mae_m": Column("worst (cm)", 100, 2),
    "density": Column("dens. (%)", 100, 1),
    "bias_m": Column("bias (mm)", 1000, 2),
    "coverage": Column("1 sigma (%)", 100, 0),
    "same_pixels": Column("same px", 1, 2),
    "noisy_mae_m": Column("3 %: MAE (cm)", 100, 2),
    "noisy_density": Column("dens. (%)", 100, 1),
    "scenes_mae_m": Column("scenes: MAE (cm)", 100, 3),
    "scenes_density": Column("dens. (%)", 100, 1),
    "scenes_bad_2cm": Column("> 2 cm (%)", 100, 2),
    "scenes_coverage": Column("1 sigma (%)", 100, 0),
    "scenes_same_pixels": Column("same px", 1, 2),
}


def measured(
    variants: Sequence[Variant], planes: PlaneSweep, noisy: PlaneSweep, scenes: SceneSweep
) -> list[Row]:
    """Measure all variants on all images."""
    told = {"workers": 1}  # in this process, since other processes do not have the changes
    with as_they_are(variants):
        on_planes = evaluate_planes(variants, sweep=planes, progress=saying("planes"), **told)
        on_noisy = evaluate_planes(variants, sweep=noisy, progress=saying("3 % noise"), **told)
        on_scenes = evaluate_scenes(variants, sweep=scenes, progress=saying("scenes"), **told)
    return [row_of(one.name, on_planes, on_noisy, on_scenes) for one in variants]


@contextmanager
def as_they_are(variants: Sequence[Variant]) -> Iterator[None]:
    """Context in which pairs are measured with the variants, not with the methods of their jobs."""
    with patch.object(evaluation, "contenders_of", lambda job: tuple(variants)):
        yield


def saying(what: str) -> Callable[[int, int], None]:
    """Return a callback that prints a line for each pair, on which all variants run."""

    def say(done: int, count: int) -> None:
        print(f"{what}: {done} of {count}", file=sys.stderr)

    return say


def row_of(name: str, planes: SweepResults, noisy: SweepResults, scenes: SweepResults) -> Row:
    (on_planes,) = (one for one in planes.summary() if one["method"] == name)
    (on_scenes,) = (one for one in scenes.summary() if one["method"] == name)
    everywhere = on_scenes["regions"][0]
    rows, noisy_rows = (results.rows.where(method=name) for results in (planes, noisy))
    plane_ratios = [one["ratio_common"] for one in on_planes["rivals"]]
    scene_ratios = [one["ratio_common"] for one in on_scenes["rivals"]]
    return Row(
        variant=name,
        mae_over_bound=on_planes["mae_over_bound"],
        worst_mae_m=max(depth["worst_mae_m"] for depth in on_planes["depths"]),
        density=pooled_density(rows),
        bias_m=float(np.mean([abs(depth["bias_m"]) for depth in on_planes["depths"]])),
        coverage=pooled_mean_of("coverage")(rows),
        same_pixels=float(np.mean(plane_ratios or [1.0])),
        noisy_mae_m=pooled_mean_of("mae_m")(noisy_rows),
        noisy_density=pooled_density(noisy_rows),
        scenes_mae_m=on_scenes["mae_m"],
        scenes_density=on_scenes["density"],
        scenes_bad_2cm=everywhere["bad_2cm"],
        scenes_coverage=everywhere["coverage"],
        scenes_same_pixels=scene_ratios[0] if scene_ratios else 1.0,
    )


def sheet_of(rows: Sequence[Row]) -> Sheet:
    headings = ["variant", *(column.heading for column in COLUMNS.values())]
    lines = [
        [
            row.variant,
            *(
                f"{column.factor * getattr(row, name):.{column.digits}f}"
                for name, column in COLUMNS.items()
            ),
        ]
        for row in rows
    ]
    return Sheet("Variants of joint", headings, lines)


def defocus_over_depth(sweep: PlaneSweep) -> Sheet:
    """Table over depth: each figure without and with the defocus cue."""
    digits = {"MAE (cm)": 3, "bias (cm)": 3, "sigma (cm)": 3, "density (%)": 1, "confidence": 2}
    lines = [
        [
            f"{depth_m:g}",
            *(
                f"{without:.{n}f} / {with_it:.{n}f}"
                for n, without, with_it in zip(
                    digits.values(), *_at_depth(sweep, place), strict=True
                )
            ),
        ]
        for place, depth_m in enumerate(sweep.depths_m)
    ]
    title = "Planes without defocus / with it, means over the textures"
    return Sheet(title, ["depth (m)", *digits], lines)


def _at_depth(sweep: PlaneSweep, place: int) -> tuple[list[float], list[float]]:
    """Figures without and with defocus at one depth: means over the textures of a sweep."""
    rig = d3s.Rig.paper_prototype()
    figures: dict[str, list[tuple[float, ...]]] = {NO_DEFOCUS.name: [], DEFAULT.name: []}
    for i, pattern in enumerate(sweep.patterns):
        texture = Texture(pattern=pattern, seed=sweep.seed)
        scene = d3s.Plane(depth_m=sweep.depths_m[place], texture=texture)
        trial = make_trial(scene, rig, sweep, sweep.shape, (sweep.seed, i, place))
        for variant in (NO_DEFOCUS, DEFAULT):
            found = variant.estimate(trial.left, trial.right, rig)
            one = score(found, trial.truth)
            sigma_m = np.median(found.sigma_m[trial.truth.judged & found.valid])
            confidence = np.mean(found.confidence[trial.truth.textured])
            figures[variant.name].append(
                (100 * one.mae_m, 100 * one.bias_m, 100 * sigma_m, 100 * one.density, confidence)
            )
    without, with_it = (np.nanmean(some, axis=0).tolist() for some in figures.values())
    return without, with_it


def on_waves(depth_m: float, period_px: float) -> tuple[float, ...]:
    """Shares of right and wrong pixels on a plane of periodic waves, without and with defocus.

    Pixels are right within 2 cm; those near the border, by half the largest window, do not count.
    """
    rig = d3s.Rig.paper_prototype()
    period_m = period_px * depth_m / rig.optics.focal_length_px
    wave = np.sin(2 * np.pi * np.arange(64 * 32) / 32)
    image = (0.5 + 0.25 * wave + 0.15 * wave[:, np.newaxis]).astype(np.float32)
    photo = d3s.Photo(image=image, width_m=64 * period_m, encoding="linear")
    pair = d3s.simulate(d3s.Plane(depth_m=depth_m, texture=photo), rig, noise=0.01, shape=WAVES)
    inner = (slice(28, -28), slice(28 + int(pair.disparity_px.max()), -28))
    shares: list[float] = []
    for variant in (NO_DEFOCUS, DEFAULT):
        error = np.abs(variant.estimate(pair.left, pair.right, rig).depth_m - depth_m)[inner]
        shares += [float(np.mean(error <= BAD_M)), float(np.mean(error > BAD_M))]
    return tuple(shares)


def defocus_on_waves(depths_m: Sequence[float], periods_px: Sequence[float]) -> Sheet:
    """Table of right and wrong pixels on waves, where every period fits stereo alone."""
    lines = []
    for depth_m in depths_m:
        shares = np.mean([on_waves(depth_m, period) for period in periods_px], axis=0)
        lines.append([f"{depth_m:g}", *(f"{100 * share:.1f}" for share in shares)])
    headings = ("right without (%)", "wrong without (%)", "right with it (%)", "wrong with it (%)")
    title = "Even waves of a period of 6 to 24 px, without defocus and with it"
    return Sheet(title, ["depth (m)", *headings], lines)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Contribution of each part of the joint method.")
    parser.add_argument("--quick", action="store_true", help="few images, for a first look")
    parser.add_argument("--constants", action="store_true", help="half and twice of each constant")
    parser.add_argument("--patterns", choices=SETS, default="report", help="which textures")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="variants with such a word")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the rows there too")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    args = arguments(words)
    variants = half_and_twice() if args.constants else PARTS
    if args.only:
        wanted = [v for v in variants if v is DEFAULT or any(w in v.name for w in args.only)]
        variants = tuple(wanted)
    own, all_of_set = OF_PLANES[args.patterns], SETS[args.patterns]
    planes = PLANES.replace(patterns=own)
    noisy = NOISY_PLANES.replace(patterns=own[1::2])
    scenes = SCENES.replace(patterns=all_of_set)
    if args.quick:
        planes = planes.replace(patterns=own[1:2], depths_m=(0.25, 0.85, 2.0))
        noisy = noisy.replace(patterns=own[1:2])
        scenes = scenes.replace(count=1, shape=(300, 450))
    rows = measured(variants, planes, noisy, scenes)
    show([sheet_of(rows)])
    if NO_DEFOCUS in variants:
        periods = PERIODS_PX[::3] if args.quick else PERIODS_PX
        show([defocus_over_depth(planes), defocus_on_waves(planes.depths_m, periods)])
    if args.csv:
        write_text(args.csv, csv_text([asdict(row) for row in rows]), overwrite=True)


if __name__ == "__main__":
    main(sys.argv[1:])
