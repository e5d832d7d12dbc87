"""Simulated captures of home-made cameras with different lens errors, and their truth."""

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import d3s
from d3s.files import write_image
from d3s.lab.twin.sequence import even_distances_m, typed_distances_m

# Two takes that overlap, as in the paper; the second is a millimetre farther, so that no two
# distances are equal.
DISTANCES_M = tuple(
    sorted((*even_distances_m(0.25, 1.21, 25), *even_distances_m(1.011, 1.971, 25)))
)
# Half of them, both ends included, for cameras with typical lenses.
LENS_DISTANCES_M = tuple(DISTANCES_M[round(49 * j / 24)] for j in range(25))
TYPED_SIGMA_M = 1e-3
SENSOR = d3s.Sensor(noise=0.01, bits=10)
PATTERN = "calibration"
# Walls that face a calibrated camera, with textures that were not used for tuning.
WALL_PATTERNS = ("text", "brick", "gravel", "bark")
WALL_DEPTHS_M = (0.25, 0.30, 0.40, 0.55, 0.70, 0.85, 1.00, 1.20, 1.40, 1.64, 1.90)
WALLS = tuple((pattern, depth_m) for depth_m in WALL_DEPTHS_M for pattern in WALL_PATTERNS)
# Frames are rendered in several rounds, so that an incomplete set spans all distances.
_ROUNDS = 5
_PERFECT = (d3s.LensErrors(), d3s.LensErrors())


class CaptureSet(NamedTuple):
    """A camera with mounting and lens errors, and a board that is slightly tilted and bent."""

    mounts: tuple[d3s.Mount, d3s.Mount]
    tilt_rad: tuple[float, float]
    seed: int
    lenses: tuple[d3s.LensErrors, d3s.LensErrors] = _PERFECT
    bend_per_m: tuple[float, float, float] = (0.0, 0.0, 0.0)  # along X, mixed, along Y
    distances_m: tuple[float, ...] = DISTANCES_M
    typed_sigma_m: float = 0.0

    def board(self, number: int) -> d3s.RawFrame:
        """Raw frame of the board at one of the distances."""
        scene = d3s.BentPlane(
            depth_m=self.distances_m[number],
            tilt_x_rad=self.tilt_rad[0],
            tilt_y_rad=self.tilt_rad[1],
            bend_x_per_m=self.bend_per_m[0],
            bend_xy_per_m=self.bend_per_m[1],
            bend_y_per_m=self.bend_per_m[2],
            texture=PATTERN,
        )
        return d3s.simulate_raw(
            scene,
            d3s.Rig.paper_prototype(),
            noise=SENSOR,
            seed=(self.seed, number),
            mounts=self.mounts,
            lenses=self.lenses,
        )

    def light_of_wall(self, pattern: str, depth_m: float) -> NDArray[np.float32]:
        """Raw frame of a wall that faces the camera, before the sensor adds its noise."""
        scene, rig = d3s.Plane(depth_m=depth_m, texture=pattern), d3s.Rig.paper_prototype()
        return d3s.simulate_raw(scene, rig, mounts=self.mounts, lenses=self.lenses).image

    @property
    def typed_m(self) -> tuple[float, ...]:
        """Distances of the boards as they are typed."""
        return typed_distances_m(self.distances_m, self.typed_sigma_m, seed=self.seed)


def _mount(scale: float, roll_deg: float, shift_x_px: float, shift_y_px: float) -> d3s.Mount:
    return d3s.Mount(
        scale=scale, roll_rad=math.radians(roll_deg), shift_x_px=shift_x_px, shift_y_px=shift_y_px
    )


def _tilt(x_deg: float, y_deg: float) -> tuple[float, float]:
    return math.radians(x_deg), math.radians(y_deg)


# Choices were made on the first set; figures are reported on the others.
SETS = {
    "tuning0": CaptureSet(
        (_mount(1.003, 0.3, 20, -6), _mount(0.997, -0.4, -31, 5)), _tilt(0.4, -0.3), 10
    ),
    "report1": CaptureSet(
        (_mount(1.0, 0.9, 55, 12), _mount(1.008, -0.6, -40, -14)), _tilt(0.8, 0.5), 1
    ),
    "report2": CaptureSet(
        (_mount(0.995, -0.7, -60, -9), _mount(1.004, 0.2, 35, 15)), _tilt(-1.0, 0.2), 2
    ),
    "report3": CaptureSet(
        (_mount(1.002, 0.2, 10, 3), _mount(0.993, -0.75, 58, -11)), _tilt(0.1, -0.9), 3
    ),
}


def _with_lenses(
    name: str, lens_seed: int, bend_per_m: tuple[float, float, float], *, curvature: bool
) -> CaptureSet:
    """Camera of a set with typical lenses, before a bent board with distances by hand."""
    captures = SETS[name]
    return captures._replace(
        seed=captures.seed + 10,
        lenses=d3s.typical_lenses(lens_seed, curvature=curvature),
        bend_per_m=bend_per_m,
        distances_m=LENS_DISTANCES_M,
        typed_sigma_m=TYPED_SIGMA_M,
    )


# Choices for typical lenses were made on this camera. A bend of 0.064 per metre is 2 mm over 0.5 m.
for _kind, _curvature in (("lens", True), ("flat", False)):
    SETS[f"tuning_{_kind}"] = _with_lenses(
        "tuning0", 7, (0.050, -0.012, 0.025), curvature=_curvature
    )
# Other cameras with typical lenses, for the report.
_LENS_CAMERAS = (
    ("report1", 101, (0.064, 0.010, -0.020)),
    ("report2", 102, (-0.096, -0.016, 0.030)),
    ("report3", 103, (0.030, 0.020, 0.080)),
)
for _number, (_name, _seed, _bend) in enumerate(_LENS_CAMERAS, 1):
    SETS[f"lens{_number}"] = _with_lenses(_name, _seed, _bend, curvature=True)
    SETS[f"flat{_number}"] = _with_lenses(_name, _seed, _bend, curvature=False)


def render(name: str, folder: Path) -> None:
    """Render the missing frames of a set, and write its distances and its truth."""
    captures, count = SETS[name], len(SETS[name].distances_m)
    folder.mkdir(parents=True, exist_ok=True)
    for number in (j for start in range(_ROUNDS) for j in range(start, count, _ROUNDS)):
        path = folder / _file_name(number)
        if path.exists():
            continue
        frame = captures.board(number)
        write_image(path, frame.image)
        _write_distances(folder, captures)
        _write_truth(folder, captures, frame)
        print(path, flush=True)


def render_walls(name: str, folder: Path) -> None:
    """Render the missing walls of a set."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern, depth_m in WALLS:
        path = wall_file(folder, pattern, depth_m)
        if not path.exists():
            write_image(path, SETS[name].light_of_wall(pattern, depth_m))
            print(path, flush=True)


def wall_file(folder: Path, pattern: str, depth_m: float) -> Path:
    """Path of the noise-free frame of a wall."""
    return folder / f"{pattern}_{1e3 * depth_m:.0f}mm.png"


def _file_name(number: int) -> str:
    return f"board_{number:02d}.png"


def _write_distances(folder: Path, captures: CaptureSet) -> None:
    there = [j for j in range(len(captures.typed_m)) if (folder / _file_name(j)).exists()]
    lines = [f"{_file_name(j)},{captures.typed_m[j]:g}" for j in there]
    (folder / "distances.csv").write_text("\n".join(["file,distance_m", *lines]) + "\n")


def _write_truth(folder: Path, captures: CaptureSet, frame: d3s.RawFrame) -> None:
    truth = {name: value.tolist() for name, value in frame.truth().items() if name != "depth_m"}
    truth |= {"tilt_x_rad": captures.tilt_rad[0], "tilt_y_rad": captures.tilt_rad[1]}
    (folder / "truth.json").write_text(json.dumps(truth, indent=2) + "\n")
