"""The rehearsal of docs/build.md: what a calibration from a number of frames is worth.

    .venv/bin/python benchmarks/rehearsal.py [--frames 12 25 50] [--spacings metres inverse]
                                             [--seeds 201 ...] [--folder FOLDER] [--read]

Captures of cameras with typical lenses, a board every so often from 0.25 to 1.2 m, are rendered,
calibrated and tried on walls that the calibration has not seen. Results are kept as they come, and
what is there is not measured again. A calibration of 12 frames takes minutes with its rendering.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import d3s
from d3s.calibrate.calibration_report import Report
from d3s.errors import CalibrationError
from d3s.files import read_image, write_image
from d3s.lab.twin.sequence import even_distances_m
from sheets import Sheet, show

RESULTS = Path(__file__).parent / "results" / "rehearsal.json"
FRAMES, SPACINGS, SEEDS = (12, 25, 50), ("metres", "inverse"), (201, 202, 203, 204, 205)
ENDS_M = (0.25, 1.2)
WALLS = (("text", 0.4), ("gravel", 0.7), ("bark", 1.1))
NOISE = 0.01


def main(words: list[str] | None = None) -> None:
    """Measure what is missing, and show the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--frames", type=int, nargs="+", default=FRAMES)
    parser.add_argument("--spacings", choices=SPACINGS, nargs="+", default=SPACINGS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--folder", type=Path, default=Path("captures"), help="of the frames")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--read", action="store_true", help="measure nothing, read the results")
    given = parser.parse_args(words)
    runs: dict[str, Any] = json.loads(given.json.read_text()) if given.json.exists() else {}
    wanted = [(n, s, one) for one in given.seeds for n in given.frames for s in given.spacings]
    for count, spacing, seed in () if given.read else wanted:
        key = f"{count} {spacing} {seed}"
        if key not in runs:
            runs[key] = rehearse(count, spacing, seed, given.folder / f"rehearsal{seed}")
            given.json.parent.mkdir(parents=True, exist_ok=True)
            given.json.write_text(json.dumps(runs, indent=1) + "\n")
            print(key, runs[key], flush=True)
    show([sheet(runs)])


def rehearse(count: int, spacing: str, seed: int, folder: Path) -> dict[str, Any]:
    """Calibrate one camera: the verdict, its measures, and errors on walls, as shares."""
    distances_m = even_distances_m(*ENDS_M, count, inverse=spacing == "inverse")
    frames = [_frame(folder, "calibration", distance_m, seed) for distance_m in distances_m]
    try:
        _, report = d3s.calibrate(frames, distances_m)
    except CalibrationError as error:
        if not isinstance(error.report, Report):
            raise
        report = error.report
    found = {
        "grade": report.verdict.grade,
        "remarks": [one.words for one in report.verdict.remarks],
    }
    names = ("joint_error_share", "beyond_3_sigma", "largest_ninth_share")
    found |= {name: report.measures.get(name) for name in names}
    return found | ({} if report.rig is None else _on_walls(report.rig, folder, seed))


def _frame(folder: Path, texture: str, distance_m: float, seed: int) -> Any:
    """Raw frame of a board, rendered once: those of other numbers of frames may share it."""
    path = folder / f"{texture}_{1e6 * distance_m:.0f}.png"
    if not path.exists():
        frame = d3s.simulate_raw(
            d3s.Plane(depth_m=distance_m, texture=texture),
            d3s.Rig.paper_prototype(),
            noise=NOISE,
            seed=(seed, round(1e6 * distance_m)),
            lenses=d3s.typical_lenses(seed),
        )
        folder.mkdir(parents=True, exist_ok=True)
        write_image(path, frame.image)
    return read_image(path)


def _on_walls(rig: d3s.Rig, folder: Path, seed: int) -> dict[str, float]:
    """Mean absolute error as a share of the distance, and the share of errors within 3 sigma."""
    errors, within = [], []
    for texture, depth_m in WALLS:
        est = d3s.estimate(*rig.split(_frame(folder, texture, depth_m, seed)), rig)
        error_m = np.abs(est.depth_m - depth_m)[est.valid]
        errors.append(float(error_m.mean()) / depth_m)
        within.append(float(np.mean(error_m <= 3 * est.sigma_m[est.valid])))
    return {"wall_error_share": float(np.mean(errors)), "walls_within_3": float(np.mean(within))}


def sheet(runs: dict[str, Any]) -> Sheet:
    """Table: a line for each spacing and number of frames, means over the cameras."""
    lines = []
    for count, spacing in sorted({(int(key.split()[0]), key.split()[1]) for key in runs}):
        of = [one for key, one in runs.items() if key.startswith(f"{count} {spacing} ")]
        grades = [one["grade"] for one in of]
        said = ", ".join(f"{grades.count(one)} {one}" for one in dict.fromkeys(sorted(grades)))
        means = (
            f"{100 * float(np.mean([one[name] for one in of if one.get(name) is not None])):.2f}"
            for name in ("joint_error_share", "beyond_3_sigma", "wall_error_share")
        )
        beyond = [100 * (1 - one["walls_within_3"]) for one in of if "walls_within_3" in one]
        lines.append((str(count), spacing, said, *means, f"{np.mean(beyond):.1f}"))
    headings = (
        *("frames", "even in", "verdicts", "error (%)", "beyond 3 sigma (%)"),
        *("error on walls (%)", "walls beyond 3 sigma (%)"),
    )
    return Sheet("rehearsals with typical lenses", headings, lines, words=(0, 1, 2))


if __name__ == "__main__":
    main()
