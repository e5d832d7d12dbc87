"""Calibrate cameras on simulated boards, and keep their rigs for the league and the demo.

    .venv/bin/python benchmarks/typical_rig.py [--folder FOLDER]    # with typical lenses
    .venv/bin/python benchmarks/typical_rig.py --tuned              # the twin of the prototype

Frames that are in the folder already are not rendered again. One frame takes some ten seconds.
"""

import argparse
from pathlib import Path

import d3s
from d3s.files import write_image
from d3s.lab.evaluate.cameras import BOARD, LENS_SEED, TUNED_RIG, TYPICAL_RIG, raw_frame, tuned_twin
from d3s.lab.twin.sequence import even_distances_m

FOLDER = Path("captures") / "typical_rig"
DISTANCES_M = even_distances_m(0.25, 1.97, 25)
SENSOR = d3s.Sensor(noise=0.01, bits=10)
# The same frames must give the same rig file, so that its date of creation is a constant.
_CREATED = "2000-01-01T00:00:00+00:00"


def render(folder: Path) -> None:
    """Render the boards that are missing, and write their distances."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["file,distance_m"]
    for number, distance_m in enumerate(DISTANCES_M):
        path = folder / f"board_{number:02d}.png"
        lines.append(f"{path.name},{distance_m:g}")
        if path.exists():
            continue
        board = d3s.Plane(depth_m=distance_m, texture=BOARD)
        write_image(path, raw_frame(board, noise=SENSOR, seed=(LENS_SEED, number)).image)
        print(path, flush=True)
    (folder / "distances.csv").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Render, calibrate and write the rig."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the frames")
    parser.add_argument("--tuned", action="store_true", help="the twin of the prototype instead")
    given = parser.parse_args()
    if given.tuned:
        tuned_twin().rig.save(TUNED_RIG, overwrite=True)
        print(f"Wrote {TUNED_RIG.name}.")
        return
    folder = given.folder
    render(folder)
    rig, report = d3s.calibrate(folder, name=f"typical lenses, seed {LENS_SEED}")
    calibration = rig.calibration
    origin = calibration.provenance.replace(created=_CREATED)
    rig = rig.replace(calibration=calibration.replace(provenance=origin))
    rig.save(TYPICAL_RIG, overwrite=True)
    print(f"Wrote {TYPICAL_RIG.name}: {report.verdict.grade}.")
    for remark in report.verdict.remarks:
        print(remark.words)


if __name__ == "__main__":
    main()
