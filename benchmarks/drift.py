"""Drift of a camera: how well `d3s check` finds and mends it, and when it says that it cannot know.

    python benchmarks/drift.py [--quick] [--patterns tuning] [--only PART]

Frames are rendered once into captures/drift; after that the run takes some minutes. --quick takes
few sets; --patterns tuning takes the textures on which the limits were set.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.progress import track

import d3s
from d3s.check.compared_blocks import ComparedBlocks, compare_blocks
from d3s.check.drift import measure_drift
from d3s.check.drift_quantities import ALARM_SIGMAS, CORE, KINDS, Quantity
from d3s.check.noise_and_spots import find_spots, measure_noise
from d3s.types import Image
from drift_frames import Camera, drifted, rooms, scenes, walls
from sheets import Sheet, show

FOLDER = Path(__file__).parents[1] / "captures" / "drift"
DRIFTS: dict[str, dict[str, float]] = {
    "roll 0.1°": {"roll_rad": np.radians(0.1)},
    "scale 0.1 %": {"scale": 1e-3},
    "rows 0.5 px": {"rows_px": 0.5},
    "gain 5 %": {"gain": 0.05},
    "all together": {
        "roll_rad": np.radians(0.1),
        "scale": 1e-3,
        "rows_px": 0.5,
        "gain": 0.05,
    },
}
PER_SET = 10
SCENES, ROOMS = 40, 10
WITH_SENSOR = 10  # noise and spots are looked for in one set of so many
NOISES = 3  # with which each frame without drift is compared
WALLS_M = (0.8, 2.0)
WALL_TEXTURES = 2
WITHIN_SHARE, WITHIN_SIGMAS = 0.2, 3.0


class Counts(NamedTuple):
    """Sets of frames by kind."""

    scenes: int  # of each drift, random scenes
    rooms: int  # of each drift, rooms
    good: int  # without drift


FULL, QUICK = Counts(2, 2, 100), Counts(1, 1, 5)


class Planes(NamedTuple):
    """Depth of walls at known distances."""

    mae_cm: tuple[float, ...]  # by distance
    within: float  # share of the errors within 3 sigma


def planes(camera: Camera, rig: d3s.Rig, gain: float) -> Planes:
    """Errors of depth on walls that no check has seen, by a rig."""
    frames = camera.noisy(range(len(camera.frames)), 77, gain)
    errors, within = [], []
    for number, frame in enumerate(frames):
        distance_m = WALLS_M[number // WALL_TEXTURES]
        found = d3s.estimate(*rig.split(frame), rig)
        error = np.abs(found.depth_m[found.valid] - distance_m)
        errors.append(100 * float(error.mean()))
        within.append(float(np.mean(error < 3 * found.sigma_m[found.valid])))
    by_distance = np.array(errors).reshape(len(WALLS_M), -1).mean(axis=1)
    return Planes(tuple(by_distance.tolist()), float(np.mean(within)))


class Trial(NamedTuple):
    """One set of frames with a drift."""

    found: dict[str, float]
    sigmas: dict[str, float]
    others: tuple[str, ...]  # alarms of quantities that had not drifted
    mended: d3s.Rig

    def is_right(self, drift: dict[str, float]) -> bool:
        """Whether each drift was found within a share or within its own sigmas."""
        return all(
            name in self.found
            and abs(self.found[name] - value)
            <= max(WITHIN_SHARE * abs(value), WITHIN_SIGMAS * self.sigmas[name])
            for name, value in drift.items()
        )


def trial(camera: Camera, drift: dict[str, float], seed: int) -> Trial:
    """Check a set of frames with the rig as it was before a drift."""
    rng = np.random.default_rng([seed, 5])
    numbers = rng.permutation(len(camera.frames))[:PER_SET].tolist()
    gain = drift.get("gain", 0.0)
    moved = {name: value for name, value in drift.items() if name != "gain"}
    before = drifted(camera.rig, moved)
    report = d3s.check(before, camera.noisy(numbers, seed, gain))
    found = {one.name: one for one in report.quantities}
    return Trial(
        {name: found[name].value for name in drift if found[name].state == "drifted"},
        {name: found[name].sigma for name in drift},
        tuple(one.name for one in report.drifted if one.name not in drift),
        report.mended_rig,
    )


def _shown(name: str, values: Sequence[float]) -> str:
    kind = KINDS[name]
    low, high = kind.factor * min(values), kind.factor * max(values)
    digits = min(kind.digits, 3)
    ends = f"{low:.{digits}f}" if len(values) == 1 else f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{kind.title} {ends} {kind.unit}".replace(" °", "°")


def found_sheet(cameras: dict[str, tuple[Camera, int]]) -> Sheet:
    """Table of the drifts: what was found in each set of ten frames."""
    lines = []
    works = [(drift, kind) for drift in DRIFTS for kind in cameras]
    for drift, kind in track(works, "Drifts", transient=True):
        camera, count = cameras[kind]
        trials = [trial(camera, DRIFTS[drift], 100 * number + 1) for number in range(count)]
        right = sum(one.is_right(DRIFTS[drift]) for one in trials)
        parts = [
            _shown(name, values)
            for name in DRIFTS[drift]
            if (values := [one.found[name] for one in trials if name in one.found])
        ]
        others = sum(bool(one.others) for one in trials)
        lines.append((drift, kind, f"{right} of {count}", "; ".join(parts), f"{others}"))
    headings = ("drift", "frames", "right", "found", "other alarms")
    return Sheet("Found", headings, lines, words=(0, 1, 3))


def depth_sheet(camera: Camera, seen: Camera) -> Sheet:
    """Table of depth on walls: with the rig before the drift, with the drift, and mended."""
    good = planes(seen, camera.rig, 0.0)
    lines = [("none", *_cells(good), "", "", "")]
    for drift, values in track(DRIFTS.items(), "Depth", transient=True):
        gain = values.get("gain", 0.0)
        moved = {name: value for name, value in values.items() if name != "gain"}
        wrong = planes(seen, drifted(camera.rig, moved), gain)
        after = planes(seen, trial(camera, values, 1).mended, gain)
        worst = max(new / old for new, old in zip(after.mae_cm, good.mae_cm, strict=True))
        lines.append((drift, *_cells(wrong), *_cells(after), f"{worst:.2f}"))
    return Sheet(
        "Depth",
        (
            "drift",
            "error, MAE (cm)",
            "within 3 sigma (%)",
            "mended: error (cm)",
            "mended: within 3 sigma (%)",
            "over no drift",
        ),
        lines,
    )


def _cells(one: Planes) -> tuple[str, str]:
    return " / ".join(f"{value:.2f}" for value in one.mae_cm), f"{100 * one.within:.0f}"


class Measured(NamedTuple):
    """One frame with its noise, and its blocks by the rig as it is."""

    raw: Image
    blocks: ComparedBlocks


def measured(camera: Camera, noises: int) -> list[Measured]:
    """Compare the views of all frames of a camera, each with some noises."""
    out = []
    works = [(number, noise) for noise in range(noises) for number in range(len(camera.frames))]
    for number, noise in track(works, "Frames without drift", transient=True):
        (raw,) = camera.noisy([number], 2000 + noise)
        left, right = camera.rig.split(raw)
        depth_map = d3s.estimate(left, right, camera.rig)
        out.append(Measured(raw, compare_blocks(left, right, depth_map, camera.rig)))
    return out


def good_sheet(cameras: dict[str, tuple[Camera, int]]) -> Sheet:
    """Table of sets without a drift: alarms, and rigs that were left as they are.

    Frames are compared once for each noise, and sets are drawn from them.
    """
    lines = []
    for kind, (camera, count) in cameras.items():
        frames, rng = measured(camera, NOISES), np.random.default_rng(9)
        calibration = camera.rig.calibration
        shape = calibration.crop_rows_px, calibration.crop_cols_px
        sets = []
        for number in track(range(count), f"No drift, {kind}", transient=True):
            scenes_of_set = rng.permutation(len(camera.frames))[:PER_SET]
            places = scenes_of_set + len(camera.frames) * rng.integers(0, NOISES, PER_SET)
            own = [frames[place] for place in places]
            found = measure_drift([one.blocks for one in own], camera.rig, shape)
            if number % WITH_SENSOR == 0:
                raws = [one.raw for one in own]
                found += [measure_noise(raws, calibration), find_spots(raws, calibration)]
            sets.append(found)
        lines.append((kind, f"{count}", *_states(sets)))
    headings = ("frames", "sets", "alarms", "not known", "nearest to an alarm")
    return Sheet("No drift", headings, lines, words=(0, 4))


def _states(sets: Sequence[Sequence[Quantity]]) -> tuple[str, str, str]:
    alarms = sum(any(one.state == "drifted" for one in found) for found in sets)
    unknown = sum(
        any(one.state == "unknown" and one.name in CORE for one in found) for found in sets
    )
    nearest, name = max(
        (abs(one.value) / max(one.limit, ALARM_SIGMAS * one.sigma), one.name)
        for found in sets
        for one in found
        if np.isfinite(one.value) and one.limit > 0
    )
    return f"{alarms}", f"{unknown}", f"{KINDS[name].title}, {100 * nearest:.0f} % of its limit"


def main(words: Sequence[str]) -> None:
    """Measure the wanted parts, and show them."""
    parser = argparse.ArgumentParser(description="How well `d3s check` finds and mends a drift.")
    parser.add_argument("--quick", action="store_true", help="few sets, for a first look")
    parser.add_argument("--patterns", choices=("report", "tuning"), default="report")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the frames")
    parser.add_argument("--only", choices=("found", "depth", "good"))
    args = parser.parse_args(words)
    counts = QUICK if args.quick else FULL
    scene = scenes(args.folder, SCENES, args.patterns)
    if args.only in (None, "depth"):
        seen = walls(args.folder, WALLS_M, args.patterns, WALL_TEXTURES)
        show([depth_sheet(scene, seen)])
    if args.only != "depth":
        room = rooms(args.folder, ROOMS, args.patterns)
        few = max(counts.good // 10, 1)
        if args.only != "good":
            cameras = {"random scenes": (scene, counts.scenes), "rooms": (room, counts.rooms)}
            show([found_sheet(cameras)])
        if args.only != "found":
            cameras = {"random scenes": (scene, counts.good - few), "rooms": (room, few)}
            show([good_sheet(cameras)])


if __name__ == "__main__":
    main(sys.argv[1:])
