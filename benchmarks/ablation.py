"""`make ablation`: the contribution of each part of the joint method.

    .venv/bin/python benchmarks/ablation.py [--quick] [--patterns tuning] [--only WORD ...]

Every variant is the joint method with one part changed: an option, or a constant or function of its
modules that is replaced while it runs. All run on the same simulated images, and `d3s.lab.evaluate`
measures them.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import d3s
from d3s.estimate import DepthMap, Flag
from d3s.estimate.joint import method, plan, refine, smoothing, trust
from d3s.estimate.joint.kernels import confidence, costs, filters, paths, surfaces
from d3s.estimate.joint.types import CENSUS_WEIGHT, MAX_COST, MAX_SLOPE
from d3s.lab.evaluate import (
    REPORT_PATTERNS,
    TUNING_PATTERNS,
    Contender,
    PlaneSweep,
    SceneSweep,
    evaluate_planes,
    evaluate_scenes,
    evaluation,
)
from d3s.lab.evaluate.table import pooled_density, pooled_mean_of
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
PARTS = (
    DEFAULT,
    told("no defocus", use_defocus=False),
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

# Heading of each figure, its factor, and its digits.
COLUMNS = {
    "MAE / bound": (1, 2),
    "worst (cm)": (100, 2),
    "density (%)": (100, 1),
    "1 sigma (%)": (100, 0),
    "3 %: MAE (cm)": (100, 2),
    "3 %: density (%)": (100, 1),
    "scenes: MAE (cm)": (100, 3),
    "scenes: density (%)": (100, 1),
    "scenes: > 2 cm (%)": (100, 2),
    "scenes: 1 sigma (%)": (100, 0),
}


def measured(
    variants: Sequence[Variant], planes: PlaneSweep, noisy: PlaneSweep, scenes: SceneSweep
) -> list[tuple[str, ...]]:
    """Measure all variants on all images: a line of the table for each."""
    # Pairs are measured in this process with the variants, not with the methods of their jobs.
    with patch.object(evaluation, "contenders_of", lambda job: tuple(variants)):
        on_planes = evaluate_planes(variants, sweep=planes, progress=say, workers=1)
        on_noisy = evaluate_planes(variants, sweep=noisy, progress=say, workers=1)
        on_scenes = evaluate_scenes(variants, sweep=scenes, progress=say, workers=1)
    lines = []
    for one in variants:
        (plane,) = (line for line in on_planes.summary() if line["method"] == one.name)
        (scene,) = (line for line in on_scenes.summary() if line["method"] == one.name)
        rows, noisy_rows = (some.rows.where(method=one.name) for some in (on_planes, on_noisy))
        values = (
            plane["mae_over_bound"],
            max(depth["worst_mae_m"] for depth in plane["depths"]),
            pooled_density(rows),
            pooled_mean_of("coverage")(rows),
            pooled_mean_of("mae_m")(noisy_rows),
            pooled_density(noisy_rows),
            scene["mae_m"],
            scene["density"],
            scene["bad_2cm"],
            scene["coverage"],
        )
        shown = zip(values, COLUMNS.values(), strict=True)
        lines.append((one.name, *(f"{factor * value:.{n}f}" for value, (factor, n) in shown)))
    return lines


def say(done: int, count: int) -> None:
    """Print a line for each pair, on which all variants run."""
    print(f"{done} of {count} pairs", file=sys.stderr)


def main(words: Sequence[str]) -> None:
    """Measure the wanted variants, and show them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few images, for a first look")
    parser.add_argument("--patterns", choices=SETS, default="report", help="which textures")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="variants with such a word")
    args = parser.parse_args(words)
    variants = [
        one
        for one in PARTS
        if not args.only or one is DEFAULT or any(word in one.name for word in args.only)
    ]
    own = OF_PLANES[args.patterns]
    planes, noisy = PLANES.replace(patterns=own), NOISY_PLANES.replace(patterns=own[1::2])
    scenes = SCENES.replace(patterns=SETS[args.patterns])
    if args.quick:
        planes = planes.replace(patterns=own[1:2], depths_m=(0.25, 0.85, 2.0))
        noisy = noisy.replace(patterns=own[1:2])
        scenes = scenes.replace(count=1, shape=(300, 450))
    lines = measured(variants, planes, noisy, scenes)
    show([Sheet("Variants of joint", ("variant", *COLUMNS), lines)])


if __name__ == "__main__":
    main(sys.argv[1:])
