"""`make calibration`: how right calibrations are, on simulated captures of home-made cameras.

    .venv/bin/python benchmarks/calibration.py [--folder FOLDER] [--sets NAME ...] [--read]

Captures of cameras with known lens errors are rendered into the folder, unless they are there. Each
set is calibrated by `d3s calibrate` in a process of its own, and the rig is compared with the
truth; then the camera, good or provisional, looks at walls of other textures, which are judged in
each ninth of the field. FOLDER/sets.csv and FOLDER/walls.csv keep the results of all sets.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import d3s
from calibration_sets import SENSOR, SETS, WALLS, render, render_walls, wall_file
from d3s.calibrate.validation import ACCURATE_M, working_range_m
from d3s.files import read_image
from d3s.lab.evaluate.truth import WINDOW_PX, within_frames
from sheets import Sheet, show

FOLDER = Path("captures")
KINDS = {"report": "perfect lenses", "flat": "typical, without curvature", "lens": "typical"}
REPORTED = tuple(name for name in SETS if name.rstrip("123") in KINDS)
NINTHS = (
    *("top left", "top", "top right"),
    *("left", "middle", "right"),
    *("bottom left", "bottom", "bottom right"),
)
FIELD, ROWS = "field", "middle rows"
CONSENSUS_ROWS_PX = 96  # enough for a mean: `consensus` takes seconds for a megapixel
NOISE_SEED = 20
TEXTS = ["set", "method", "pattern", "place"]
# Errors of a rig, and the largest that is asked.
LIMITS = {
    "anchor_left_px": 0.5,
    "anchor_right_px": 0.5,
    "anchor_x_px": 0.1,
    "roll_deg": 0.01,
    "baseline_deg": 0.01,
    "scale": 1e-4,
    "shift_y_px": 0.1,
    "sbp_percent": 0.1,
    "time_s": 240.0,
    "memory_gb": 2.0,
}


def main(words: list[str] | None = None) -> None:
    """Render, calibrate, measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where captures and results go")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=REPORTED)
    parser.add_argument("--read", action="store_true", help="measure nothing, show the results")
    given = parser.parse_args(words)
    for name in () if given.read else given.sets:
        render(name, given.folder / name)
        render_walls(name, given.folder / f"{name}_walls")
        rig, errors = calibrated(name, given.folder)
        keep(given.folder / "sets.csv", name, [errors])
        keep(given.folder / "walls.csv", name, measured(rig, given.folder / f"{name}_walls"))
    sets, walls = (pd.read_csv(given.folder / f"{one}.csv") for one in ("sets", "walls"))
    show([errors_sheet(sets), depths_sheet(walls), sigma_sheet(walls), consensus_sheet(walls)])


def keep(path: Path, name: str, rows: Any) -> None:
    """Put the rows of a set into a table, in place of its older ones."""
    new = pd.DataFrame(rows)
    new.insert(0, "set", name)
    if path.exists():
        old = pd.read_csv(path)
        new = pd.concat([old[old["set"] != name], new])
    new.to_csv(path, index=False, float_format="%.6g")


def calibrated(name: str, folder: Path) -> tuple[d3s.Rig, dict[str, Any]]:
    """Calibrate a set in a process of its own: the rig, its errors, time and memory."""
    out = folder / f"{name}_out"
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "d3s", "calibrate", os.fspath(folder / name)]
    command += ["-o", os.fspath(out / "rig.toml"), "--report", os.fspath(out / "cal.html")]
    begun = time.perf_counter()
    process = subprocess.Popen([*command, "--force", "--quiet"])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if status:
        raise SystemExit(f"{name}: d3s calibrate failed, see {out}.")
    rig = d3s.Rig.load(out / "rig.toml")
    truth = json.loads((folder / name / "truth.json").read_text())
    verdict = rig.calibration.provenance.verdict
    taken = {"time_s": seconds, "memory_gb": usage.ru_maxrss * 1024 / 1e9}
    return rig, {"verdict": verdict, **errors_of(rig, truth), **taken}


def errors_of(rig: d3s.Rig, truth: dict[str, Any]) -> dict[str, float]:
    """Errors of a calibrated rig, by the names of `LIMITS`."""
    found, optics = rig.calibration, rig.optics
    designed = d3s.Rig.paper_prototype().optics
    left, right = (
        np.subtract(getattr(found, f"anchor_{side}_px"), truth[f"anchor_{side}_px"])
        for side in ("left", "right")
    )
    sbp, true_sbp = (one.focal_length_px * one.baseline_m for one in (optics, designed))
    angle = truth["rectify_angle_rad"]
    # An error of the anchors is compensated by the same error of the shift.
    down = np.array([math.sin(angle), math.cos(angle)])
    true_shift_px = truth["rectify_scale"] * (right @ down) - left[1]
    return {
        "anchor_left_px": float(np.hypot(*left)),
        "anchor_right_px": float(np.hypot(*right)),
        "anchor_x_px": abs(float(left[0] - right[0])),
        "roll_deg": abs(math.degrees(found.rectify_angle_rad - angle)),
        "baseline_deg": abs(math.degrees(found.baseline_angle_rad - truth["roll_rad_left"])),
        "scale": abs(found.rectify_scale - truth["rectify_scale"]),
        "shift_y_px": abs(float(found.rectify_shift_y_px - true_shift_px)),
        "sbp_percent": 100 * abs(sbp / (true_sbp * truth["scale_left"]) - 1),
    }


def measured(rig: d3s.Rig, folder: Path) -> Iterator[dict[str, Any]]:
    """Figures of both methods on all walls, by part of the field."""
    for number, (pattern, depth_m) in enumerate(WALLS):
        light = read_image(wall_file(folder, pattern, depth_m))
        rng = np.random.default_rng((NOISE_SEED, number))
        left, right = rig.split(SENSOR.expose(light, camera=0, rng=rng))
        wall = {"pattern": pattern, "depth_m": depth_m}
        found = d3s.estimate(left, right, rig)
        thirds = ([slice(n * j // 3, n * (j + 1) // 3) for j in range(3)] for n in left.shape)
        rows, cols = thirds
        parts = [(row, col) for row in rows for col in cols]
        for place, part in ((FIELD, np.s_[:, :]), *zip(NINTHS, parts, strict=True)):
            yield {"method": "joint", **wall, "place": place, **figures(found, depth_m, part)}
        cut = max(left.shape[0] - CONSENSUS_ROWS_PX, 0) // 2
        strip = slice(cut, left.shape[0] - cut)
        found = d3s.estimate(left[strip], right[strip], rig, method="consensus")
        found = found.filter(min_confidence=0.8)
        for place, part in ((ROWS, np.s_[:, :]), ("middle", np.s_[:, cols[1]])):
            yield {"method": "consensus", **wall, "place": place, **figures(found, depth_m, part)}


def figures(found: d3s.DepthMap, depth_m: float, part: Any) -> dict[str, float]:
    """Errors in a part of the field, of pixels whose window and its match lie in the views."""
    disparity = np.full(found.depth_m.shape, found.rig.optics.disparity_px(depth_m))
    judged = within_frames(disparity, WINDOW_PX // 2)[part]
    kept = judged & found.valid[part]
    error = found.depth_m[part][kept].astype(np.float64) - depth_m
    size, sigma = np.abs(error), found.sigma_m[part][kept]
    if not kept.any():
        return {"density": 0.0}
    return {
        "density": 100 * float(kept.sum() / judged.sum()),
        "mae_cm": 100 * float(size.mean()),
        "bias_cm": 100 * float(error.mean()),
        "within_1": 100 * float(np.mean(size < sigma)),
        "within_3": 100 * float(np.mean(size < 3 * sigma)),
    }


# Tables -------------------------------------------------------------------------------------------


def errors_sheet(sets: pd.DataFrame) -> Sheet:
    """Errors, time and memory of all sets beside what is asked of perfect lenses."""
    table = sets.set_index("set")
    lines = [["verdict", "", *table["verdict"].str.split(":").str[0]]]
    lines += [
        [name, f"<= {limit:g}", *(f"{value:.3g}" for value in table[name])]
        for name, limit in LIMITS.items()
    ]
    return Sheet("calibrations against the truth", ("error", "asked", *table.index), lines)


def of_kind(walls: pd.DataFrame, kind: str, method: str = "joint") -> pd.DataFrame:
    """Rows of the sets of a kind."""
    is_kind = walls["set"].str.rstrip("123") == kind
    return walls[is_kind & (walls["method"] == method)]


def depths_sheet(walls: pd.DataFrame) -> Sheet:
    """Error and density of `joint` by depth: the mean, and the worst texture and camera."""
    lines = []
    for kind, words in KINDS.items():
        for place in (FIELD, "middle"):
            some = of_kind(walls, kind)
            for depth_m, part in some[some["place"] == place].groupby("depth_m"):
                line = (part["mae_cm"].mean(), part["mae_cm"].max(), part["density"].min())
                lines.append([words, place, f"{depth_m:.2f}", *(f"{one:.3f}" for one in line)])
    headings = ("lenses", "place", "depth (m)", "MAE (cm)", "worst (cm)", "least density (%)")
    return Sheet("joint on walls of other textures", headings, lines, words=(0, 1))


def sigma_sheet(walls: pd.DataFrame) -> Sheet:
    """Errors of `joint` within sigma, and mean errors, over the ninths of all cameras by depth."""
    lines = []
    for kind, words in KINDS.items():
        ninths = of_kind(walls, kind)
        ninths = ninths[ninths["place"].isin(NINTHS)].drop(columns=["pattern", "method"])
        by_ninth = ninths.groupby(["depth_m", "set", "place"]).mean(numeric_only=True)
        for depth_m, part in by_ninth.groupby("depth_m"):
            one, three = part["within_1"], part["within_3"]
            cells = (one.mean(), one.min(), one.max(), three.mean(), three.min())
            bias = part["bias_cm"].abs().max()
            lines.append(
                [words, f"{depth_m:.2f}", *(f"{cell:.0f}" for cell in cells), f"{bias:.2f}"]
            )
    headings = (
        *("lenses", "depth (m)", "within 1 sigma (%)", "least ninth", "largest ninth"),
        *("within 3 (%)", "least ninth", "largest mean error (cm)"),
    )
    return Sheet("joint: sigma over the field", headings, lines)


def consensus_sheet(walls: pd.DataFrame) -> Sheet:
    """Depths between which `consensus` has an error below 1 cm, the mean of all textures."""
    lines = []
    for kind in KINDS:
        for (name, place), part in of_kind(walls, kind, "consensus").groupby(["set", "place"]):
            mae_cm = part.groupby("depth_m")["mae_cm"].mean()
            accurate = [bool(one < 100 * ACCURATE_M) for one in mae_cm]
            near_m, far_m = working_range_m(list(mae_cm.index), accurate) or (math.nan, math.nan)
            lines.append([name, place, f"{near_m:.2f} to {far_m:.2f}", f"{mae_cm.mean():.2f}"])
    headings = ("set", "place", "range (m)", "MAE of all depths (cm)")
    return Sheet("consensus, C > 0.8", headings, lines, words=(0, 1))


if __name__ == "__main__":
    main()
