"""The rehearsal of docs/build.md: what a calibration from a number of frames is worth.

    .venv/bin/python benchmarks/rehearsal.py [--frames 12 25 49] [--spacings metres inverse]
                                             [--seeds 201 ...] [--rows 480] [--read]

Captures of cameras with typical lenses, a board every so often from 0.25 to 1.2 m, are rendered,
calibrated and tried on walls that the calibration has not seen. Results are kept as they come, and
what is there is not measured again. A whole frame takes 12 s. Fewer rows of its middle are faster,
but have no corners, where lenses are worst.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import d3s
from d3s.calibrate.calibration_report import Report
from d3s.errors import CalibrationError
from d3s.files import read_image, write_image
from d3s.lab.twin.sequence import even_distances_m
from sheets import Sheet, show

RESULTS = Path(__file__).parent / "results" / "rehearsal.json"
# The boards of 25 frames are among those of 49.
FRAMES, SPACINGS, SEEDS = (12, 25, 49), ("metres", "inverse"), (201, 202, 203, 204, 205)
ROWS_PX = 2160
ENDS_M = (0.25, 1.2)
WALLS = (("text", 0.4), ("gravel", 0.7), ("bark", 1.1))
NOISE = 0.01


def main(words: list[str] | None = None) -> None:
    """Measure what is missing, and show the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--frames", type=int, nargs="+", default=FRAMES)
    parser.add_argument("--spacings", choices=SPACINGS, nargs="+", default=SPACINGS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--rows", type=int, default=ROWS_PX, help="of a frame, in its middle")
    parser.add_argument("--folder", type=Path, default=Path("captures"), help="of the frames")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--read", action="store_true", help="measure nothing, read the results")
    given = parser.parse_args(words)
    runs: dict[str, Any] = json.loads(given.json.read_text()) if given.json.exists() else {}
    wanted = [(n, s, one) for one in given.seeds for n in given.frames for s in given.spacings]
    for count, spacing, seed in () if given.read else wanted:
        key = f"{count} {spacing} {given.rows} {seed}"
        if key not in runs:
            folder = given.folder / f"rehearsal{seed}_{given.rows}"
            runs[key] = rehearse(count, spacing, Camera(seed, given.rows, folder))
            given.json.parent.mkdir(parents=True, exist_ok=True)
            given.json.write_text(json.dumps(runs, indent=1) + "\n")
            print(key, runs[key], flush=True)
    show([sheet(runs)])


class Camera(NamedTuple):
    """A camera with two typical lenses, and the folder of its frames."""

    seed: int
    rows_px: int
    folder: Path


def rehearse(count: int, spacing: str, camera: Camera) -> dict[str, Any]:
    """Calibrate one camera: the verdict, its measures, and errors on walls, as shares."""
    distances_m = even_distances_m(*ENDS_M, count, inverse=spacing == "inverse")
    frames = [_frame(camera, "calibration", distance_m) for distance_m in distances_m]
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
    return found | ({} if report.rig is None else _on_walls(report.rig, camera))


def _frame(camera: Camera, texture: str, distance_m: float) -> Any:
    """Raw frame of a board, rendered once: those of other numbers of frames may share it."""
    path = camera.folder / f"{texture}_{1e6 * distance_m:.0f}.png"
    if not path.exists():
        frame = d3s.simulate_raw(
            d3s.Plane(depth_m=distance_m, texture=texture),
            d3s.Rig.paper_prototype(),
            noise=NOISE,
            seed=(camera.seed, round(1e6 * distance_m)),
            layout=d3s.RawLayout(rows_px=camera.rows_px),
            lenses=d3s.typical_lenses(camera.seed),
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_image(path, frame.image)
    return read_image(path)


def _on_walls(rig: d3s.Rig, camera: Camera) -> dict[str, float]:
    """Mean absolute error as a share of the distance, and the share of errors within 3 sigma."""
    errors, within = [], []
    for texture, depth_m in WALLS:
        est = d3s.estimate(*rig.split(_frame(camera, texture, depth_m)), rig)
        error_m = np.abs(est.depth_m - depth_m)[est.valid]
        errors.append(float(error_m.mean()) / depth_m)
        within.append(float(np.mean(error_m <= 3 * est.sigma_m[est.valid])))
    return {"wall_error_share": float(np.mean(errors)), "walls_within_3": float(np.mean(within))}


def sheet(runs: dict[str, Any]) -> Sheet:
    """Table: a line for each spacing and number of frames, means over the cameras."""
    lines = []
    for count, spacing, rows in sorted({_case(key) for key in runs}):
        of = [one for key, one in runs.items() if _case(key) == (count, spacing, rows)]
        grades = [one["grade"] for one in of]
        said = ", ".join(f"{grades.count(one)} {one}" for one in dict.fromkeys(sorted(grades)))
        means = (
            f"{100 * float(np.mean([one[name] for one in of if one.get(name) is not None])):.2f}"
            for name in ("joint_error_share", "beyond_3_sigma", "wall_error_share")
        )
        beyond = [100 * (1 - one["walls_within_3"]) for one in of if "walls_within_3" in one]
        lines.append((str(count), spacing, str(rows), said, *means, f"{np.mean(beyond):.1f}"))
    headings = (
        *("frames", "even in", "rows", "verdicts", "error (%)", "beyond 3 sigma (%)"),
        *("error on walls (%)", "walls beyond 3 sigma (%)"),
    )
    return Sheet("rehearsals with typical lenses", headings, lines, words=(1, 3))


def _case(key: str) -> tuple[int, str, int]:
    """Frames, spacing and rows."""
    count, spacing, rows, _ = key.split()
    return int(count), spacing, int(rows)


if __name__ == "__main__":
    main()
