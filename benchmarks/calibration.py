"""`make calibration`: errors of calibrations, on simulated captures of home-made cameras.

    .venv/bin/python benchmarks/calibration.py [--folder FOLDER] [--sets NAME ...]
                                               [--json FILE] [--read | --timing]

Captures of cameras with known lens errors are rendered into the folder, unless they are there. Each
set is calibrated by `d3s calibrate` in a process of its own, the result is compared with the truth,
and then the calibrated camera looks at walls of other textures. Times need an idle machine:
--timing measures only time and memory again, and keeps the other results.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import d3s
from calibration_sets import (
    REPORT_SETS,
    SCENE_DEPTHS_M,
    SCENE_PATTERNS,
    SENSOR,
    SETS,
    render,
    render_walls,
    wall_file,
)
from d3s.files import read_image
from d3s.lab.evaluate.metrics import score
from d3s.lab.evaluate.truth import Truth, truth_of
from sheets import Sheet, show

RESULTS = Path(__file__).parent / "results" / "calibration.json"
FOLDER = Path("captures")
NOISE_SEED = 20
# Rows in the middle of the views: enough pixels for a mean; consensus takes 8 s for a megapixel.
WALL_ROWS_PX = 160
ACCURATE_M = 0.01


class Target(NamedTuple):
    """Limit of a figure: of its mean over the sets, or of the worst set."""

    what: str
    sense: Literal["<", "<=", ">="]
    limit: float
    unit: str
    digits: int
    over_sets: Literal["mean", "worst"] = "worst"

    @property
    def asked(self) -> str:
        """The limit with its unit."""
        return f"{self.sense} {self.limit:g}{self.unit}"

    def of(self, values: list[float]) -> float:
        """One value for all sets."""
        # NaN in one set is NaN for all; Python's own max could ignore it.
        if self.over_sets == "mean":
            return float(np.mean(values))
        return float(np.min(values) if self.sense == ">=" else np.max(values))

    def held(self, value: float) -> bool:
        """Whether a value is within the limit; NaN is not."""
        match self.sense:
            case "<":
                return value < self.limit
            case "<=":
                return value <= self.limit
            case ">=":
                return value >= self.limit


TARGETS = {
    "anchor_left_px": Target("anchor of the left view, error", "<=", 0.5, " px", 3, "mean"),
    "anchor_right_px": Target("anchor of the right view, error", "<=", 0.5, " px", 3, "mean"),
    "anchor_x_px": Target("horizontal difference of both errors", "<=", 0.1, " px", 3),
    "roll_deg": Target("roll, error", "<=", 0.01, "°", 5),
    "baseline_deg": Target("turn against the baseline, error", "<=", 0.01, "°", 4),
    "scale": Target("scale, error", "<=", 1e-4, "", 7),
    "shift_y_px": Target("vertical shift, error", "<=", 0.1, " px", 4),
    "sbp_percent": Target("s0·B/p, error", "<=", 0.1, " %", 3),
    "r2": Target("R² of the cubic fits", ">=", 0.98, "", 4),
    "joint_mae_cm": Target("`joint`, 0.25 to 1.9 m: largest MAE of a texture", "<", 1, " cm", 2),
    "joint_density": Target("`joint`, 0.25 to 1.9 m: smallest density", ">=", 85, " %", 1),
    "consensus_near_m": Target(
        "`consensus`: mean of all textures < 1 cm from", "<=", 0.30, " m", 2
    ),
    "consensus_far_m": Target(
        "`consensus`: mean of all textures < 1 cm up to", ">=", 1.64, " m", 2
    ),
    "worst_far_m": Target("`consensus`: every texture < 1 cm up to", ">=", 1.64, " m", 2),
}


@dataclass(frozen=True, kw_only=True)
class Wall:
    """Errors of a method on one wall."""

    pattern: str
    depth_m: float
    method: str
    mae_cm: float
    density: float


def main(words: list[str] | None = None) -> None:
    """Render, calibrate, measure and show."""
    given = _arguments(words)
    if given.render:
        _render(given.sets, given.folder)
        return
    is_there = given.read or given.timing
    results = json.loads(given.json.read_text()) if is_there else measure(given)
    for name, one in results["sets"].items():
        if given.timing:
            one["figures"] |= run_calibration(given.folder / name, out_folder(given.folder, name))
        one["figures"] |= _wall_figures([Wall(**wall) for wall in one["walls"]])
    if not given.read:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    show(sheets(results))


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the captures are")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(REPORT_SETS))
    parser.add_argument("--render", action="store_true", help="only render the captures")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--read", action="store_true", help="measure nothing, read the results")
    how.add_argument("--timing", action="store_true", help="only time and memory of the sets there")
    return parser.parse_args(words)


def _render(names: list[str], folder: Path) -> None:
    for name in names:
        render(name, folder / name)
    for name in names:
        if name in REPORT_SETS:
            render_walls(name, folder / f"{name}_walls")


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Render, calibrate and measure all sets: figures and raw results."""
    _render(given.sets, given.folder)
    sets = {name: _measure_set(given.folder, name) for name in given.sets}
    return {"version": d3s.__version__, "sets": sets}


def _measure_set(folder: Path, name: str) -> dict[str, Any]:
    out = out_folder(folder, name)
    usage = run_calibration(folder / name, out)
    rig = d3s.Rig.load(out / "rig.toml")
    truth = json.loads((folder / name / "truth.json").read_text())
    walls = list(estimate_walls(rig, folder / f"{name}_walls")) if name in REPORT_SETS else []
    report = json.loads((out / "cal.json").read_text())
    figures = usage | errors(rig, truth) | {"r2": _r2(report)}
    kept = {name: report[name] for name in ("verdict", "findings", "measures", "timings_s")}
    return {"figures": figures, "walls": [asdict(wall) for wall in walls], "report": kept}


def out_folder(folder: Path, name: str) -> Path:
    """Folder of the rig and the report of a set."""
    out = folder / f"{name}_out"
    out.mkdir(parents=True, exist_ok=True)
    return out


def run_calibration(captures: Path, out: Path, *, bad: bool = False) -> dict[str, float]:
    """Run `d3s calibrate` in a process of its own; returns its times and peak memory.

    A calibration that may be `bad` has a report, but no rig file.
    """
    for name in ("rig.toml", "cal.json"):
        (out / name).unlink(missing_ok=True)
    command = [sys.executable, "-c", "from d3s.cli import main; main()", "calibrate"]
    command += [os.fspath(captures), "-o", os.fspath(out / "rig.toml"), "--force", "--quiet"]
    command += ["--report", os.fspath(out / "cal.html")]
    begun = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if status and not (bad and (out / "cal.json").exists()):
        raise SystemExit(f"{captures}: d3s calibrate failed, see {out}.")
    return {
        "time_s": seconds,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "memory_gb": usage.ru_maxrss * 1024 / 1e9,
    }


def errors(rig: d3s.Rig, truth: dict[str, Any]) -> dict[str, float]:
    """Errors of a calibrated rig, by the names of the targets."""
    found, optics = rig.calibration, rig.optics
    designed = d3s.Rig.paper_prototype().optics
    if found is None:
        raise SystemExit("the rig has no calibration.")
    left, right = (
        np.subtract(getattr(found, f"anchor_{side}_px"), truth[f"anchor_{side}_px"])
        for side in ("left", "right")
    )
    true_sbp = designed.focal_length_px * designed.baseline_m * truth["scale_left"]
    sbp = optics.focal_length_px * optics.baseline_m
    turn = found.rectify_angle_rad - truth["rectify_angle_rad"]
    # An error of the anchors is compensated by the same error of the shift.
    true_shift_px = truth["rectify_scale"] * (right @ _down(truth)) - left[1]
    return {
        "anchor_left_px": float(np.hypot(*left)),
        "anchor_right_px": float(np.hypot(*right)),
        "anchor_x_px": abs(float(left[0] - right[0])),
        "roll_deg": abs(math.degrees(turn)),
        "scale": abs(found.rectify_scale - truth["rectify_scale"]),
        "baseline_deg": abs(math.degrees(found.baseline_angle_rad - truth["roll_rad_left"])),
        "shift_y_px": abs(float(found.rectify_shift_y_px - true_shift_px)),
        "sbp_percent": 100 * abs(sbp / true_sbp - 1),
    }


def _down(truth: dict[str, Any]) -> Any:
    """Downward component of (x, y) of the right view in the left view."""
    angle = truth["rectify_angle_rad"]
    return np.array([math.sin(angle), math.cos(angle)])


def estimate_walls(rig: d3s.Rig, folder: Path) -> Iterator[Wall]:
    """Estimate the walls with both methods."""
    for number, (pattern, depth_m) in enumerate(
        (pattern, depth_m) for pattern in SCENE_PATTERNS for depth_m in SCENE_DEPTHS_M
    ):
        light = read_image(wall_file(folder, pattern, depth_m))
        truth = _truth(rig, light, depth_m)
        rng = np.random.default_rng((NOISE_SEED, number))
        left, right = _middle(rig.split(SENSOR.expose(light, camera=0, rng=rng)))
        for method in ("joint", "consensus"):
            est = d3s.estimate(left, right, rig, method=method)
            if method == "consensus":
                est = est.filter(min_confidence=0.8)
            found = score(est, truth)
            yield Wall(
                pattern=pattern,
                depth_m=depth_m,
                method=method,
                mae_cm=100 * found.mae_m,
                density=100 * found.density,
            )


def _middle(views: tuple[Any, Any]) -> tuple[Any, Any]:
    """Rows in the middle of both views."""
    cut = max(views[0].shape[0] - WALL_ROWS_PX, 0) // 2
    left, right = (view[cut : view.shape[0] - cut] for view in views)
    return left, right


def _truth(rig: d3s.Rig, light: Any, depth_m: float) -> Truth:
    """Truth of a wall: its depth, and the pixels with texture in a noise-free frame."""
    left, right = _middle(rig.split(light))
    flat = np.full(left.shape, depth_m, dtype=np.float32)
    nowhere = np.zeros(left.shape, dtype=np.bool_)
    pair = d3s.Pair(
        left=left, right=right, depth_m=flat, all_in_focus=left, occluded=nowhere, rig=rig
    )
    return truth_of(pair, noise_sigma=SENSOR.noise)


def _r2(report: dict[str, Any]) -> float:
    tuning = report["tuning"]
    return min(tuning["a_cubic"]["r2"], tuning["b_cubic"]["r2"])


def _wall_figures(walls: list[Wall]) -> dict[str, float]:
    if not walls:
        return {}
    joint = [wall for wall in walls if wall.method == "joint"]
    consensus = [wall for wall in walls if wall.method == "consensus"]
    near, far = _accurate_range(consensus, np.mean)
    _, worst_far = _accurate_range(consensus, np.max)
    return {
        "joint_mae_cm": max(wall.mae_cm for wall in joint),
        "joint_density": min(wall.density for wall in joint),
        "consensus_near_m": near,
        "consensus_far_m": far,
        "worst_far_m": worst_far,
    }


def _accurate_range(walls: list[Wall], over_textures: Any) -> tuple[float, float]:
    """Longest run of depths whose MAE over the textures is below 1 cm; NaN if there is none."""
    from d3s.calibrate.validation import working_range_m

    accurate = [
        over_textures([wall.mae_cm for wall in walls if wall.depth_m == depth_m]) < 100 * ACCURATE_M
        for depth_m in SCENE_DEPTHS_M
    ]
    return working_range_m(SCENE_DEPTHS_M, accurate) or (math.nan, math.nan)


def sheets(results: dict[str, Any]) -> list[Sheet]:
    """Tables of the figures and, where they were measured, of the walls."""
    made = [_figures_sheet(results["sets"])]
    if any(one["walls"] for one in results["sets"].values()):
        made.append(_walls_sheet(results["sets"]))
    return made


def _figures_sheet(sets: dict[str, Any]) -> Sheet:
    lines = []
    for key, target in TARGETS.items():
        values = [one["figures"].get(key, math.nan) for one in sets.values()]
        value = target.of(values)
        held = "yes" if target.held(value) else "**no**"
        cells = [f"{one:.{target.digits}f}" for one in values]
        shown = f"{value:.{target.digits}f}{target.unit}"
        lines.append((target.what, target.asked, *cells, shown, held))
    headings = ("what", "asked", *sets, "all", "held?")
    return Sheet("calibration: what is asked and what was measured", headings, lines)


def _walls_sheet(sets: dict[str, Any]) -> Sheet:
    """Mean and worst MAE, and smallest density, over sets and textures."""
    walls = [Wall(**wall) for one in sets.values() for wall in one["walls"]]
    lines = []
    for depth_m in SCENE_DEPTHS_M:
        cells = [f"{depth_m:.2f}"]
        for method in ("joint", "consensus"):
            some = [one for one in walls if one.depth_m == depth_m and one.method == method]
            cells.append(f"{np.mean([one.mae_cm for one in some]):.2f}")
            cells.append(f"{max(one.mae_cm for one in some):.2f}")
            cells.append(f"{min(one.density for one in some):.1f}")
        lines.append(tuple(cells))
    headings = ["depth (m)"]
    for method in ("`joint`", "`consensus`, C > 0.8"):
        headings += [f"{method}: MAE (cm)", "worst (cm)", "least density (%)"]
    return Sheet("walls of other textures, after calibration", headings, lines, words=())


if __name__ == "__main__":
    main()
