"""Cases of `attacks.py`: structure locked to the frame - JPEG, blocks, columns, rows, crosstalk."""

from collections.abc import Callable
from functools import partial

import numpy as np

import d3s
from attacks import Attack, Case
from d3s.lab.twin.textures import Texture
from d3s.types import Image
from faults import PINHOLE, PROTOTYPE, SHAPE, as_jpeg, random_scene

Spoil = Callable[[Image, Image, np.random.Generator], tuple[Image, Image]]

_PLAIN = 0.002


def jpeg(left: Image, right: Image, rng: np.random.Generator, *, quality: int) -> tuple[Image, ...]:
    """Both views as JPEG."""
    return as_jpeg(left, quality), as_jpeg(right, quality)


def jpeg_frame(left: Image, right: Image, rng: np.random.Generator, *, quality: int, gap: int):
    """Both views cut from one JPEG in which they are a gap apart."""
    between = np.full((left.shape[0], gap), left.mean(), dtype=left.dtype)
    frame = as_jpeg(np.hstack([left, between, right]), quality)
    return frame[:, : left.shape[1]], frame[:, -left.shape[1] :]


def stuck(left: Image, right: Image, rng: np.random.Generator, *, count: int, common: bool):
    """Columns with one value each, in both views at the same or at other places."""
    views = []
    places, levels = rng.choice(left.shape[1], count, False), rng.uniform(0, 1, count)
    for view in (left, right):
        if views and not common:
            places, levels = rng.choice(left.shape[1], count, False), rng.uniform(0, 1, count)
        view = view.copy()
        view[:, places] = levels
        views.append(view)
    return tuple(views)


def stripes(left: Image, right: Image, rng: np.random.Generator, *, size: float, axis: int = 1):
    """Offsets of columns (axis 1) or rows (axis 0), alike in both views."""
    shape = (1, left.shape[1]) if axis == 1 else (left.shape[0], 1)
    offsets = size * rng.standard_normal(shape)
    return left + offsets, right + offsets


def crosstalk(left: Image, right: Image, rng: np.random.Generator, *, both: float, one: float = 0):
    """A share of each view is seen in the other, and more in the right one."""
    return left + both * (right - left), right + (both + one) * (left - right)


def lines(left: Image, right: Image, rng: np.random.Generator, *, period: int, size: float):
    """Blocks of a period with one offset each, as coarse compression leaves them."""
    rows, cols = (-(-side // period) for side in left.shape)
    kinds = rng.integers(0, 2, (rows, cols)) * 2 - 1
    blocks = size * np.kron(kinds, np.ones((period, period)))[: left.shape[0], : left.shape[1]]
    return left + blocks, right + blocks


def dust(left: Image, right: Image, rng: np.random.Generator, *, count: int):
    """Dark soft spots at the same places of both views."""
    y, x = np.mgrid[: left.shape[0], : left.shape[1]]
    shade = np.ones(left.shape)
    for row, col in zip(
        rng.uniform(0, y.max(), count), rng.uniform(0, x.max(), count), strict=True
    ):
        shade -= 0.15 * np.exp(-((x - col) ** 2 + (y - row) ** 2) / (2 * rng.uniform(2, 5) ** 2))
    return left * shade, right * shade


def _attack(
    wall: str, depth_m: float, rig: d3s.Rig, noise: float, spoil: Spoil, seed: int
) -> Attack:
    """A wall ("shaded", or of a texture) or a random scene ("scene"), spoilt."""
    rng = np.random.default_rng(seed)
    if wall == "scene":
        scene = random_scene(("bark", "gravel", "grass", "brick"), seed)
    else:
        texture = Texture(pattern="noise", seed=seed, contrast=_PLAIN)
        if wall != "shaded":
            texture = Texture(pattern=wall, seed=seed)
        scene = d3s.Plane(depth_m=depth_m, texture=texture)
    pair = d3s.simulate(
        scene, rig, noise=0.0 if wall == "shaded" else noise, seed=seed, shape=SHAPE
    )
    views = [pair.left, pair.right]
    if wall == "shaded":
        # Light that falls off along some direction; the wall itself shows nothing.
        y, x = np.meshgrid(*(np.linspace(-1, 1, side) for side in SHAPE), indexing="ij")
        along, down, bow = rng.uniform(-0.3, 0.3), rng.uniform(-0.2, 0.2), rng.uniform(0, 0.1)
        shade = 0.5 + along * x + down * y - bow * (x**2 + y**2)
        views = [shade + noise * rng.standard_normal(SHAPE) for _ in views]
    left, right = spoil(*(np.asarray(view, dtype=np.float32) for view in views), rng)
    depth = np.asarray(pair.depth_m, dtype=np.float64)
    if wall == "shaded":
        depth = np.full(SHAPE, depth_m)
    return Attack(left.astype(np.float32), right.astype(np.float32), depth, rig)


_RIGS = {"": PROTOTYPE, "pinhole ": PINHOLE}
_Row = tuple[str, str, float, str, float, Spoil]


def _cases(rows: list[_Row], seed: int, *, is_tuning: bool) -> list[Case]:
    return [
        Case(
            f"{rig}{wall} {name}, noise {100 * noise:g} %",
            partial(_attack, wall, depth_m, _RIGS[rig], noise, spoil, seed + i),
            is_tuning,
        )
        for i, (rig, wall, depth_m, name, noise, spoil) in enumerate(rows)
    ]


def _jpegs(wall: str, depth_m: float, qualities: tuple[int, ...], noises: tuple[float, ...]):
    return [
        (
            rig,
            wall,
            depth_m,
            f"JPEG {quality}",
            noises[i % len(noises)],
            partial(jpeg, quality=quality),
        )
        for i, quality in enumerate(qualities)
        for rig in _RIGS
    ]


_REPORT: list[_Row] = [
    *_jpegs("shaded", 1.0, (10, 30, 50, 75, 85), (0.0, 0.003, 0.001)),
    ("", "shaded", 1.0, "JPEG 40", 0.003, partial(jpeg, quality=40)),
    ("pinhole ", "shaded", 1.0, "JPEG 75", 0.0, partial(jpeg, quality=75)),
    ("", "shaded", 1.0, "frame as JPEG 50", 0.001, partial(jpeg_frame, quality=50, gap=75)),
    ("", "gravel", 0.9, "JPEG 75", 0.003, partial(jpeg, quality=75)),
    ("", "bark", 1.2, "JPEG 50", 0.003, partial(jpeg, quality=50)),
    ("pinhole ", "grass", 1.2, "JPEG 85", 0.003, partial(jpeg, quality=85)),
    ("pinhole ", "brick", 1.0, "JPEG 50", 0.003, partial(jpeg, quality=50)),
    ("", "scene", 1.0, "JPEG 75", 0.005, partial(jpeg, quality=75)),
    *(
        (
            rig,
            wall,
            1.1,
            f"blocks of {period} of {100 * size:g} %",
            0.002,
            partial(lines, period=period, size=size),
        )
        for rig, wall, period, size in (
            ("", "shaded", 8, 0.004),
            ("", "shaded", 16, 0.01),
            ("pinhole ", "shaded", 8, 0.01),
            ("pinhole ", "shaded", 16, 0.004),
            ("", "gravel", 8, 0.01),
            ("pinhole ", "grass", 16, 0.01),
        )
    ),
    *(
        (
            rig,
            wall,
            depth_m,
            f"{count} stuck columns, {where}",
            0.01,
            partial(stuck, count=count, common=common),
        )
        for rig, wall, depth_m, count, where, common in (
            ("", "gravel", 1.0, 4, "in common", True),
            ("", "bark", 1.4, 20, "in common", True),
            ("", "text", 0.8, 10, "each its own", False),
            ("", "scene", 1.0, 10, "in common", True),
            ("", "shaded", 1.0, 10, "in common", True),
            ("pinhole ", "bark", 1.0, 10, "in common", True),
            ("pinhole ", "shaded", 1.0, 10, "each its own", False),
        )
    ),
    *(
        (
            rig,
            wall,
            depth_m,
            f"column stripes of {100 * size:g} %",
            noise,
            partial(stripes, size=size),
        )
        for rig, wall, depth_m, size, noise in (
            ("", "gravel", 1.0, 0.01, 0.01),
            ("", "bark", 1.5, 0.03, 0.01),
            ("", "carpet", 0.7, 0.003, 0.005),
            ("", "scene", 1.0, 0.01, 0.01),
            ("", "shaded", 1.0, 0.01, 0.005),
            ("pinhole ", "grass", 1.0, 0.02, 0.01),
            ("pinhole ", "shaded", 1.0, 0.005, 0.005),
        )
    ),
    ("", "bark", 1.2, "row stripes of 2 %", 0.01, partial(stripes, size=0.02, axis=0)),
    ("pinhole ", "shaded", 1.2, "row stripes of 1 %", 0.005, partial(stripes, size=0.01, axis=0)),
    *(
        (
            rig,
            wall,
            depth_m,
            f"crosstalk of {100 * both:g}+{100 * one:g} %",
            0.01,
            partial(crosstalk, both=both, one=one),
        )
        for rig, wall, depth_m, both, one in (
            ("", "gravel", 1.0, 0.1, 0.0),
            ("", "bark", 1.6, 0.03, 0.0),
            ("", "text", 0.6, 0.1, 0.0),
            ("", "scene", 1.0, 0.1, 0.0),
            ("", "noise", 1.3, 0.0, 0.1),
            ("pinhole ", "grass", 1.0, 0.1, 0.0),
            ("pinhole ", "scene", 1.0, 0.03, 0.0),
        )
    ),
    ("", "gravel", 1.0, "dust", 0.01, partial(dust, count=40)),
    ("", "shaded", 1.0, "dust", 0.003, partial(dust, count=60)),
    ("pinhole ", "shaded", 1.0, "dust", 0.003, partial(dust, count=60)),
]

_TUNING: list[_Row] = [
    *_jpegs("shaded", 1.3, (15, 45, 80, 95), (0.002, 0.0, 0.004)),
    ("", "stone", 1.0, "JPEG 60", 0.004, partial(jpeg, quality=60)),
    ("pinhole ", "leaves", 1.4, "JPEG 40", 0.002, partial(jpeg, quality=40)),
    ("", "wood", 0.7, "JPEG 90", 0.002, partial(jpeg, quality=90)),
    ("", "shaded", 0.8, "blocks of 8 of 0.6 %", 0.003, partial(lines, period=8, size=0.006)),
    (
        "pinhole ",
        "leaves",
        0.8,
        "blocks of 16 of 0.8 %",
        0.003,
        partial(lines, period=16, size=0.008),
    ),
    ("", "stone", 1.2, "6 stuck columns, in common", 0.01, partial(stuck, count=6, common=True)),
    (
        "",
        "leaves",
        0.9,
        "15 stuck columns, each its own",
        0.01,
        partial(stuck, count=15, common=False),
    ),
    (
        "pinhole ",
        "stone",
        1.2,
        "15 stuck columns, in common",
        0.01,
        partial(stuck, count=15, common=True),
    ),
    ("", "leaves", 1.1, "column stripes of 1.5 %", 0.01, partial(stripes, size=0.015)),
    ("", "stone", 0.8, "column stripes of 0.5 %", 0.008, partial(stripes, size=0.005)),
    ("", "shaded", 0.8, "column stripes of 0.6 %", 0.003, partial(stripes, size=0.006)),
    ("pinhole ", "fabric", 0.8, "column stripes of 1.5 %", 0.01, partial(stripes, size=0.015)),
    ("", "leaves", 1.1, "crosstalk of 7+0 %", 0.01, partial(crosstalk, both=0.07)),
    ("", "stone", 0.8, "crosstalk of 2+10 %", 0.01, partial(crosstalk, both=0.02, one=0.1)),
    ("pinhole ", "leaves", 1.3, "crosstalk of 12+0 %", 0.01, partial(crosstalk, both=0.12)),
    ("", "shaded", 1.3, "dust", 0.002, partial(dust, count=50)),
]

CASES = _cases(_REPORT, 7100, is_tuning=False) + _cases(_TUNING, 310, is_tuning=True)
