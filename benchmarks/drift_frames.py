"""Raw frames for the benchmark of `d3s check`: rendered once, kept in a folder.

Three kinds: random scenes and walls before the camera with typical lenses, and path-traced rooms
before the perfect one. Frames are kept without noise; every set of frames gets its own. A drift is
put into the rig: the frames stay, and the rig says where the lenses were before.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.progress import track

import d3s
from d3s.check.mend import mended
from d3s.files.arrays import read_npz, write_npz
from d3s.lab.evaluate import REPORT_PATTERNS, TUNING_PATTERNS
from d3s.lab.evaluate.cameras import part_of_sensor, raw_frame, rig_of_part, typical_rig
from d3s.lab.evaluate.rooms import RoomSweep
from d3s.lab.rooms.store import load_or_render
from d3s.types import Image

NOISE = 0.01
SHAPE, ROOM_SHAPE = (400, 600), (400, 600)
ROOM_SAMPLES = 128
ROOM_MARGIN_PX = 24  # of a rendered room that its views leave out
PATTERNS = {"report": (REPORT_PATTERNS, 9000), "tuning": (TUNING_PATTERNS, 100)}


class Camera(NamedTuple):
    """Rig as the camera is, and its frames without noise."""

    rig: d3s.Rig
    frames: list[Image]

    def noisy(self, numbers: Sequence[int], seed: int, gain: float = 0.0) -> list[Image]:
        """Frames with noise; the right lens has more light by `gain`."""
        rng = np.random.default_rng([seed, *numbers])
        out = []
        for number in numbers:
            frame = self.frames[number].copy()
            frame[:, : frame.shape[1] // 2] *= np.float32(1 + gain)
            frame += NOISE * rng.standard_normal(frame.shape, dtype=np.float32)
            out.append(frame)
        return out


def drifted(rig: d3s.Rig, drift: dict[str, float]) -> d3s.Rig:
    """Rig of a camera before it drifted: mending it gives `rig` back."""
    return mended(rig, {name: -value for name, value in drift.items()})


def scenes(folder: Path, count: int, patterns: str) -> Camera:
    """Random scenes before the camera with typical lenses."""
    names, first = PATTERNS[patterns]
    some = [d3s.RandomScene(seed=first + number, patterns=names) for number in range(count)]
    return _typical(folder, f"{patterns}_scene", some)


def walls(folder: Path, distances_m: Sequence[float], patterns: str, count: int = 2) -> Camera:
    """Walls at each distance, with some textures each, before the same camera."""
    names, first = PATTERNS[patterns]
    some = [
        d3s.Plane(depth_m=distance, texture=d3s.Texture(pattern=pattern, seed=first))
        for distance in distances_m
        for pattern in names[:count]
    ]
    marks = "_".join(f"{one:g}" for one in distances_m)
    return _typical(folder, f"{patterns}_wall_{marks}", some)


def _typical(folder: Path, name: str, some: Sequence[d3s.RandomScene | d3s.Plane]) -> Camera:
    folder.mkdir(parents=True, exist_ok=True)
    layout = part_of_sensor(SHAPE)
    frames = []
    for number, scene in enumerate(track(some, f"Frames: {name}", transient=True)):
        path = folder / f"{name}_{number:03d}.npz"
        if not path.exists():
            write_npz(path, image=raw_frame(scene, layout=layout).image)
        frames.append(np.asarray(read_npz(path)["image"], dtype=np.float32))
    return Camera(rig_of_part(typical_rig(), layout, SHAPE), frames)


def rooms(folder: Path, count: int, patterns: str) -> Camera:
    """Path-traced rooms, both views side by side in a frame as the sensor has them."""
    names, _ = PATTERNS[patterns]
    sweep = RoomSweep(patterns=names, shape=ROOM_SHAPE, samples=ROOM_SAMPLES, count=count)
    rig = d3s.Rig.paper_prototype()
    frames = []
    for number in track(range(count), "Rooms", transient=True):
        pair = load_or_render(sweep.room(number), rig, folder / "rooms")
        frames.append(np.hstack([pair.right, pair.left]))
    return Camera(_room_rig(rig), frames)


def _room_rig(rig: d3s.Rig) -> d3s.Rig:
    """Rig that splits the frames of rooms, with the noise that is added to them."""
    rows, cols = ROOM_SHAPE
    down, across = (rows - 1) / 2, (cols - 1) / 2
    origin = d3s.Provenance(
        residuals={}, input_sha256={}, created="2000-01-01T00:00:00+00:00", d3s_version="0"
    )
    calibration = d3s.Calibration(
        anchor_left_px=(cols + across, down),
        anchor_right_px=(across, down),
        crop_rows_px=rows - 2 * ROOM_MARGIN_PX,
        crop_cols_px=cols - 2 * ROOM_MARGIN_PX,
        rectify_scale=1.0,
        rectify_angle_rad=0.0,
        rectify_shift_y_px=0.0,
        frame_rows_px=rows,
        frame_cols_px=2 * cols,
        noise_read=NOISE,
        noise_gain=0.0,
        virtual_baselines_m=(3.84e-4,),
        a_cubic_m_px=(0.0, 0.0, 0.0, 0.0),
        b_cubic_m=(0.0, 0.0, 0.0, 0.0),
        provenance=origin,
    )
    return rig.replace(calibration=calibration)
