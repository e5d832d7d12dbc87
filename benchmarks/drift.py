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
from typer.testing import CliRunner

import d3s
from d3s.check.compared_blocks import ComparedBlocks, compare_blocks
from d3s.check.drift import measure_drift
from d3s.check.drift_quantities import ALARM_SIGMAS, CORE, KINDS, Quantity
from d3s.check.noise_and_spots import find_spots, measure_noise
from d3s.cli import app
from d3s.estimate.diagnosis import Cause, DriftWatch
from d3s.types import Image
from drift_frames import Camera, drifted, plain_walls, rooms, scenes, walls
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
WATCHED, DRIFTS_AT = 20, 10  # frames of a batch, and the first that has drifted
ZERO_M, ZERO_PX, ZERO_TEXTURES = 1.0, 0.2, 4
TWO_M, STRETCH = (0.5, 2.0), 0.01
WITHIN_SHARE, WITHIN_SIGMAS = 0.2, 3.0


PARTS = ("found", "depth", "walls", "good", "unknown", "warnings")


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


def walls_sheet(folder: Path, patterns: str) -> Sheet:
    """Table of walls at known distances: what is left after the rig was mended."""
    lines = []
    one_m = walls(folder, (ZERO_M,), patterns, ZERO_TEXTURES)
    before = drifted(one_m.rig, {"disparity_px": ZERO_PX})
    left = []
    for number in range(ZERO_TEXTURES):
        report = d3s.check(before, one_m.noisy([number], 5), distances_m=[ZERO_M])
        moved = np.subtract(
            report.mended_rig.calibration.anchor_right_px, one_m.rig.calibration.anchor_right_px
        )
        left.append(float(np.abs(moved[0])))
    lines.append(
        (
            f"disparity {ZERO_PX:g} px",
            f"one, at {ZERO_M:g} m",
            f"{len(left)}",
            f"{np.mean(left):.3f} px",
            f"{max(left):.3f} px",
        )
    )
    two = walls(folder, TWO_M, patterns, 1)
    wrong = drifted(two.rig, {"focal_baseline": STRETCH})
    report = d3s.check(wrong, two.noisy([0, 1], 6), distances_m=list(TWO_M), distance_sigma_m=2e-4)
    share = report.mended_rig.optics.baseline_m / two.rig.optics.baseline_m - 1
    places = " and ".join(f"{one:g}" for one in TWO_M)
    what = f"focal length times baseline {100 * STRETCH:g} %"
    cell = f"{100 * abs(share):.2f} %"
    lines.append((what, f"two, at {places} m", "1", cell, cell))
    headings = ("drift", "walls", "trials", "left, mean", "left, largest")
    return Sheet("Walls", headings, lines, words=(0, 1))


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


def warnings_sheet(camera: Camera) -> Sheet:
    """Table of the warnings of `d3s.estimate`: single frames, and batches that drift midway."""
    lines = []
    good = [_estimated(camera, camera.rig, number, 0.0) for number in range(WATCHED)]
    drifts = {"none": {}, "scale 0.05 %": {"scale": 5e-4}, "gain 3 %": {"gain": 0.03}, **DRIFTS}
    for drift, values in track(drifts.items(), "Warnings", transient=True):
        gain = values.get("gain", 0.0)
        moved = {name: value for name, value in values.items() if name != "gain"}
        before = drifted(camera.rig, moved)
        bad = [_estimated(camera, before, number, gain) for number in range(WATCHED)]
        warned = sum(
            any(words.startswith((Cause.ROWS, Cause.CONTRAST)) for words in one.warnings)
            for one in bad
        )
        watch = DriftWatch()
        for number in range(WATCHED):
            watch.add(f"{number}", (good if number < DRIFTS_AT else bad)[number])
        found = watch.drift()
        dated = (
            ("no", "", "") if found is None else ("yes", found.first, ", ".join(found.quantities))
        )
        lines.append((drift, f"{warned} of {WATCHED}", *dated))
    headings = ("drift", "single frames warned", "batch warned", "from frame on", "named")
    return Sheet("Warnings", headings, lines, words=(0, 2, 4))


def _estimated(camera: Camera, rig: d3s.Rig, number: int, gain: float) -> d3s.DepthMap:
    (frame,) = camera.noisy([number], 300, gain)
    return d3s.estimate(*rig.split(frame), rig)


def unknown_sheet(folder: Path, camera: Camera) -> Sheet:
    """Table of frames that cannot tell: verdict, and exit code of the command."""
    plain = plain_walls(folder, 3)
    cases = {
        "10 frames of plain walls": plain.noisy([0, 1, 2] * 3 + [0], 3),
        "1 frame of a plain wall": plain.noisy([1], 4),
        "1 frame, a small part textured": [_corner(camera.noisy([0], 5)[0], camera.rig)],
        "10 frames, a small part textured": [
            _corner(frame, camera.rig) for frame in camera.noisy(range(10), 6)
        ],
    }
    lines = []
    for name, frames in cases.items():
        report = d3s.check(camera.rig, frames)
        code = _exit_code(camera.rig, frames, folder)
        lines.append((name, report.verdict, f"{len(report.drifted)}", f"{code}"))
    headings = ("frames", "verdict", "alarms", "exit code")
    return Sheet("Cannot know", headings, lines, words=(0, 1))


def _corner(frame: np.ndarray, rig: d3s.Rig) -> np.ndarray:
    """Frame that shows texture in one corner of its views only."""
    out = np.full_like(frame, 0.5)
    out += 0.01 * np.random.default_rng(1).standard_normal(frame.shape, dtype=np.float32)
    for x, y in (rig.calibration.anchor_left_px, rig.calibration.anchor_right_px):
        top, first = int(y) - 180, int(x) - 280
        out[top : top + 110, first : first + 150] = frame[top : top + 110, first : first + 150]
    return out


def _exit_code(rig: d3s.Rig, frames: Sequence[np.ndarray], folder: Path) -> int:
    place = folder / "unknown"
    place.mkdir(parents=True, exist_ok=True)
    rig.save(place / "rig.toml", overwrite=True)
    names = []
    for number, frame in enumerate(frames):
        names.append(str(place / f"{number}.npy"))
        np.save(names[-1], frame)
    done = CliRunner().invoke(app, ["check", str(place / "rig.toml"), *names, "--no-log"])
    return done.exit_code


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How well `d3s check` finds and mends a drift.")
    parser.add_argument("--quick", action="store_true", help="few sets, for a first look")
    parser.add_argument("--patterns", choices=("report", "tuning"), default="report")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the frames")
    parser.add_argument("--only", choices=PARTS)
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    args = arguments(words)
    counts = QUICK if args.quick else FULL
    scene = scenes(args.folder, SCENES, args.patterns)
    sheets: list[Sheet] = []

    def wanted(name: str) -> bool:
        return args.only in (None, name)

    if wanted("walls"):
        sheets.append(walls_sheet(args.folder, args.patterns))
    if wanted("unknown"):
        sheets.append(unknown_sheet(args.folder, scene))
    if wanted("warnings"):
        sheets.append(warnings_sheet(scene))
    if wanted("depth"):
        seen = walls(args.folder, WALLS_M, args.patterns, WALL_TEXTURES)
        sheets.append(depth_sheet(scene, seen))
    if wanted("found") or wanted("good"):
        room = rooms(args.folder, ROOMS, args.patterns)
        names = "random scenes", "rooms"
        if wanted("found"):
            cameras = (scene, counts.scenes), (room, counts.rooms)
            sheets.append(found_sheet(dict(zip(names, cameras, strict=True))))
        if wanted("good"):
            few = max(counts.good // 10, 1)
            cameras = (scene, counts.good - few), (room, few)
            sheets.append(good_sheet(dict(zip(names, cameras, strict=True))))
    show(sheets)


if __name__ == "__main__":
    main(sys.argv[1:])
