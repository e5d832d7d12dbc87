"""Warnings of `d3s.estimate`: false alarms on good pairs, and faults that are named.

    python benchmarks/causes.py [--quick] [--patterns tuning] [--only WORD]

200 good pairs must have no warning; each fault is put into 20 good pairs. The third table has the
bias of planes by a gain of the right view, and the pairs that are warned of it. --quick takes a few
pairs of each; --patterns tuning takes the textures on which the limits were set.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.progress import track

import d3s
from d3s.estimate.diagnosis import Cause
from d3s.lab.evaluate import REPORT_PATTERNS, TUNING_PATTERNS
from d3s.lab.twin.textures import Texture
from faults import PROTOTYPE, SHAPE, Case, Fault, cases_to_spoil, faults, good_cases
from sheets import Sheet, show

SETS = {"report": (REPORT_PATTERNS, 9000), "tuning": (TUNING_PATTERNS, 100)}
GAIN_PERCENTS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
GAIN_DEPTHS_M = (0.5, 1.0, 1.5, 2.0)
QUICK = 5  # every so many pairs with --quick


def causes_of(found: d3s.DepthMap) -> tuple[Cause, ...]:
    """Causes that the warnings of a depth map name."""
    return tuple(
        cause for cause in Cause if any(words.startswith(cause) for words in found.warnings)
    )


class Alarm(NamedTuple):
    """Warnings of a good pair."""

    name: str
    density: float
    causes: tuple[Cause, ...]


def alarms(cases: Sequence[Case]) -> list[Alarm]:
    """Causes named for each good pair."""
    found = []
    for i, case in enumerate(track(cases, "Good pairs", transient=True)):
        pair = case.pair(i)
        one = d3s.estimate(pair.left, pair.right, case.rig)
        found.append(Alarm(case.name, one.density, causes_of(one)))
    return found


def alarm_sheet(found: Sequence[Alarm]) -> Sheet:
    """Table of the good pairs by kind: how many have a warning."""
    lines = []
    for word, title in (("at ", "planes"), ("scene", "random scenes"), ("plain", "plain walls")):
        for rig in ("prototype", "pinhole"):
            own = [one for one in found if one.name.startswith(rig) and word in one.name]
            if own:
                density = float(np.median([one.density for one in own]))
                warned = [one for one in own if one.causes]
                named = ", ".join(sorted({str(cause) for one in warned for cause in one.causes}))
                cells = (f"{title}, {rig}", f"{len(own)}", f"{100 * density:.0f}")
                lines.append((*cells, f"{len(warned)}", named))
    total = sum(bool(one.causes) for one in found)
    lines.append(("all", f"{len(found)}", "", f"{total}", ""))
    headings = ("good pairs", "pairs", "density (%)", "warned", "causes named")
    return Sheet("False alarms", headings, lines, words=(0, 4))


class Naming(NamedTuple):
    """Outcome of one fault over all pairs."""

    fault: Fault
    densities: list[float]
    named: list[bool]
    others: list[tuple[Cause, ...]]  # causes that do not describe the fault


def namings(cases: Sequence[Case], some: Sequence[Fault]) -> list[Naming]:
    """Spoil every pair by every fault, and look for its cause among the warnings."""
    pairs = [case.pair(1000 + i) for i, case in enumerate(cases)]
    result = []
    for fault in track(some, "Faults", transient=True):
        naming = Naming(fault, [], [], [])
        for case, pair in zip(cases, pairs, strict=True):
            views = fault.spoil(pair)
            found = d3s.estimate(*views, case.rig, options=fault.options(pair))
            causes = causes_of(found)
            naming.densities.append(found.density)
            naming.named.append(any(cause in fault.causes for cause in causes))
            naming.others.append(tuple(one for one in causes if one not in fault.causes))
        result.append(naming)
    return result


def naming_sheet(result: Sequence[Naming]) -> Sheet:
    """Table of the faults: how often they are named."""
    lines = [
        (
            one.fault.what,
            one.fault.size,
            f"{100 * np.median(one.densities):.0f}",
            f"{100 * np.mean(one.named):.0f}",
            f"{100 * np.mean([bool(causes) for causes in one.others]):.0f}",
        )
        for one in result
    ]
    headings = ("fault", "size", "density (%)", "named (%)", "another cause named (%)")
    return Sheet("Faults", headings, lines, words=(0, 1))


def gain_sheet(patterns: Sequence[str], seed: int) -> Sheet:
    """Table of bias over gain and depth: mean over the textures, and the share with a warning."""
    biases = np.empty((len(GAIN_PERCENTS), len(GAIN_DEPTHS_M), len(patterns)))
    warned = np.zeros(biases.shape, dtype=np.bool_)
    works = [(d, p) for d in range(len(GAIN_DEPTHS_M)) for p in range(len(patterns))]
    for d, p in track(works, "Gains", transient=True):
        texture = Texture(pattern=patterns[p], seed=seed)
        scene = d3s.Plane(depth_m=GAIN_DEPTHS_M[d], texture=texture)
        pair = d3s.simulate(scene, PROTOTYPE, noise=0.01, seed=(seed, d, p), shape=SHAPE)
        for g, percent in enumerate(GAIN_PERCENTS):
            gain = np.float32(1 - percent / 100)
            found = d3s.estimate(pair.left, gain * pair.right, PROTOTYPE)
            biases[g, d, p] = np.nanmedian(found.depth_m) - GAIN_DEPTHS_M[d]
            warned[g, d, p] = Cause.CONTRAST in causes_of(found)
    lines = [
        (
            f"{percent:g}",
            *(
                f"{100 * biases[g, d].mean():+.2f} ({100 * np.abs(biases[g, d]).max():.2f})"
                for d in range(len(GAIN_DEPTHS_M))
            ),
            f"{100 * warned[g].mean():.0f}",
        )
        for g, percent in enumerate(GAIN_PERCENTS)
    ]
    depths = (f"bias at {depth_m:g} m (cm)" for depth_m in GAIN_DEPTHS_M)
    return Sheet("Gain", ("gain less by (%)", *depths, "warned (%)"), lines)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="False alarms and named faults of the warnings.")
    parser.add_argument("--quick", action="store_true", help="few pairs, for a first look")
    parser.add_argument("--patterns", choices=SETS, default="report", help="which textures")
    parser.add_argument("--only", metavar="WORD", help="good, gains, or a word of faults")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    args = arguments(words)
    patterns, seed = SETS[args.patterns]
    step = QUICK if args.quick else 1
    sheets: list[Sheet] = []
    if args.only in (None, "good"):
        found = alarms(good_cases(patterns, seed)[::step])
        sheets.append(alarm_sheet(found))
        for one in found:
            if one.causes:
                print(f"{one.name}, density {one.density:.2f}: {', '.join(one.causes)}")
    if args.only != "good" and args.only != "gains":
        some = [one for one in faults() if args.only is None or args.only in one.what]
        result = namings(cases_to_spoil(patterns, seed + 500)[::step], some)
        sheets.append(naming_sheet(result))
        for one in result:
            others = sorted({str(cause) for causes in one.others for cause in causes})
            if others:
                print(f"{one.fault.what} {one.fault.size}: also {', '.join(others)}")
    if args.only in (None, "gains"):
        sheets.append(gain_sheet(patterns[:: 4 if args.quick else 1], seed))
    show(sheets)


if __name__ == "__main__":
    main(sys.argv[1:])
