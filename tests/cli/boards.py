"""Simulated captures of a board by a camera with a small sensor."""

import math
from functools import cache
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter, rotate

import d3s
from d3s.files import write_image

DISTANCES_M = tuple(np.round(np.geomspace(0.25, 0.55, 10), 3).tolist())
LAYOUT = d3s.RawLayout(
    rows_px=460, cols_px=860, field_radius_px=228.0, field_edge_px=6.0, partition_px=6.0,
    partition_edge_px=8.0,
)  # fmt: skip
MOUNTS = (
    d3s.Mount(scale=1.002, roll_rad=math.radians(0.4), shift_x_px=5.0, shift_y_px=-3.0),
    d3s.Mount(scale=0.996, roll_rad=math.radians(-0.3), shift_x_px=-6.0, shift_y_px=4.0),
)


def designed() -> d3s.Rig:
    """The paper's camera with a coarser sensor: its lenses are 427 px apart."""
    rig = d3s.Rig.paper_prototype()
    return rig.replace(optics=rig.optics.replace(pixel_pitch_m=9e-6))


@cache
def board(turn_deg: float = 0.0) -> d3s.Photo:
    """Marks of many sizes; an array is rendered faster than a pattern."""
    rng = np.random.default_rng(0)
    marks = sum(
        size * gaussian_filter(rng.standard_normal((1024, 1024)), size, mode="wrap")
        for size in (0.8, 1.6, 3.2, 6.4, 12.8)
    )
    if turn_deg:
        marks = rotate(marks, turn_deg, reshape=False, mode="mirror")
    grey = np.clip(0.5 + 0.18 * marks / marks.std(), 0.02, 0.98)
    return d3s.Photo(image=grey.astype(np.float32), width_m=0.35)


@cache
def frame(number: int, turn_deg: float = 0.0) -> d3s.RawFrame:
    """Raw frame of the board at one of the distances."""
    scene = d3s.TiltedPlane(
        depth_m=DISTANCES_M[number], tilt_x_rad=0.01, tilt_y_rad=-0.006, texture=board(turn_deg)
    )
    sensor = d3s.Sensor(noise=0.01, bits=10)
    return d3s.simulate_raw(
        scene, designed(), noise=sensor, seed=(3, number), layout=LAYOUT, mounts=MOUNTS
    )


def write_captures(folder: Path, frames: range | list[int] = range(10)) -> None:
    """Write a folder of captures."""
    folder.mkdir()
    for number in frames:
        write_image(folder / f"board_{number}.png", frame(number).image)
    write_distances(folder, {f"board_{number}.png": DISTANCES_M[number] for number in frames})


def write_distances(folder: Path, distances: dict[str, float]) -> None:
    lines = [f"{name},{distance:g}" for name, distance in distances.items()]
    (folder / "distances.csv").write_text("\n".join(["file,distance_m", *lines]) + "\n")
