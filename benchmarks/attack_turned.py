"""Cases of `attacks.py`: a right view that is turned, larger, or lies lower."""

from functools import partial

import cv2
import numpy as np

import d3s
from attacks import Attack, Case
from d3s.lab.twin.textures import Texture
from faults import PINHOLE, PROTOTYPE, SHAPE, random_scene

_SCENES = {False: ("bark", "gravel", "grass", "brick"), True: ("leaves", "stone", "wood")}


def _attack(
    what: str, depth_m: float, rig: d3s.Rig, roll: float, scale: float, rows: float, seed: int
) -> Attack:
    """A plane of a texture, or a random scene, whose right view is turned about its middle."""
    if what == "scene":
        scene = random_scene(_SCENES[seed < 1000], seed)
    else:
        scene = d3s.Plane(depth_m=depth_m, texture=Texture(pattern=what, seed=seed))
    pair = d3s.simulate(scene, rig, noise=0.01, seed=seed, shape=SHAPE)
    matrix = cv2.getRotationMatrix2D((SHAPE[1] / 2 - 0.5, SHAPE[0] / 2 - 0.5), roll, scale)
    matrix[1, 2] += rows
    right = cv2.warpAffine(
        pair.right, matrix, SHAPE[::-1], flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    depth = np.asarray(pair.depth_m, dtype=np.float64)
    return Attack(pair.left, np.asarray(right, dtype=np.float32), depth, rig)


_RIGS = {"": PROTOTYPE, "pinhole ": PINHOLE}
_Row = tuple[str, str, float, float, float, float]  # rig, what, depth, roll, scale, rows


def _cases(table: list[_Row], seed: int, *, is_tuning: bool) -> list[Case]:
    return [
        Case(
            f"{rig}{what}, roll {roll:g}, scale {scale:g}, rows {rows:g}",
            partial(_attack, what, depth_m, _RIGS[rig], roll, scale, rows, seed + i),
            is_tuning,
        )
        for i, (rig, what, depth_m, roll, scale, rows) in enumerate(table)
    ]


_REPORT: list[_Row] = [
    ("", "gravel", 1.0, 0.2, 1.0, 0.0),
    ("", "bark", 1.4, 0.5, 1.0, 0.0),
    ("", "grass", 0.7, 1.0, 1.0, 0.0),
    ("", "text", 1.0, -0.5, 1.0, 0.0),
    ("", "gravel", 1.6, 0.0, 1.002, 0.0),
    ("", "bark", 0.8, 0.0, 1.005, 0.0),
    ("", "carpet", 1.2, 0.0, 1.01, 0.0),
    ("", "noise", 1.0, 0.0, 1.0, 0.25),
    ("", "gravel", 1.3, 0.0, 1.0, 0.5),
    ("", "bark", 0.9, 0.0, 1.0, 1.0),
    ("", "grass", 1.1, 0.0, 1.0, -2.0),
    ("", "brick", 1.0, 0.3, 1.003, 0.4),
    ("", "gravel", 0.5, -0.8, 0.995, 1.0),
    ("", "scene", 0.0, 0.2, 1.0, 0.0),
    ("", "scene", 0.0, 0.5, 1.0, 0.0),
    ("", "scene", 0.0, 1.0, 1.0, 0.0),
    ("", "scene", 0.0, 0.0, 1.005, 0.0),
    ("", "scene", 0.0, 0.0, 1.01, 0.0),
    ("", "scene", 0.0, 0.0, 1.0, 0.25),
    ("", "scene", 0.0, 0.0, 1.0, 0.5),
    ("", "scene", 0.0, 0.4, 1.004, 1.0),
    ("pinhole ", "gravel", 1.0, 0.2, 1.0, 0.0),
    ("pinhole ", "bark", 1.2, 0.5, 1.0, 0.0),
    ("pinhole ", "grass", 0.8, 1.0, 1.0, 0.0),
    ("pinhole ", "text", 1.5, 0.0, 1.002, 0.0),
    ("pinhole ", "gravel", 1.5, 0.0, 1.01, 0.0),
    ("pinhole ", "bark", 1.0, 0.0, 1.0, 0.25),
    ("pinhole ", "noise", 1.0, 0.0, 1.0, 0.5),
    ("pinhole ", "gravel", 1.0, 0.0, 1.0, 2.0),
    ("pinhole ", "scene", 0.0, 0.5, 1.0, 0.0),
    ("pinhole ", "scene", 0.0, 0.0, 1.005, 0.5),
    ("pinhole ", "scene", 0.0, 0.3, 1.003, 1.0),
]

_TUNING: list[_Row] = [
    ("", "leaves", 1.1, 0.3, 1.0, 0.0),
    ("", "stone", 0.9, -0.7, 1.0, 0.0),
    ("", "wood", 1.3, 0.0, 1.004, 0.0),
    ("", "leaves", 0.8, 0.0, 0.992, 0.0),
    ("", "stone", 1.2, 0.0, 1.0, 0.3),
    ("", "fabric", 1.0, 0.0, 1.0, 1.5),
    ("", "noise_smooth", 1.0, 0.5, 1.0, 0.5),
    ("", "scene", 0.0, 0.3, 1.0, 0.0),
    ("", "scene", 0.0, -0.8, 1.0, 0.0),
    ("", "scene", 0.0, 0.0, 1.007, 0.3),
    ("", "scene", 0.0, 0.0, 1.0, 0.3),
    ("pinhole ", "leaves", 1.1, 0.4, 1.0, 0.0),
    ("pinhole ", "stone", 1.3, 0.0, 0.995, 0.0),
    ("pinhole ", "leaves", 0.9, 0.0, 1.0, 0.3),
    ("pinhole ", "scene", 0.0, -0.3, 1.004, 0.0),
    ("pinhole ", "scene", 0.0, 0.0, 1.0, 1.5),
]

CASES = _cases(_REPORT, 7300, is_tuning=False) + _cases(_TUNING, 360, is_tuning=True)
