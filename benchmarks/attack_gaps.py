"""Cases of `attacks.py`: plain walls that are seen between fine textured parts."""

from functools import partial
from itertools import cycle

import numpy as np

import d3s
from attacks import Attack, Case
from d3s.lab.evaluate import REPORT_PATTERNS, TUNING_PATTERNS
from d3s.lab.twin.random_scene import fine_mask

RIGS = {
    "paper": d3s.Rig.paper_prototype(),
    # As sharp as a phone; disparities of 12 to 40 px.
    "pinhole": d3s.Rig.from_pinhole(focal_length_px=700.0, baseline_m=0.04),
}


def attack(
    kind: str,
    rig: str,
    sizes: tuple[float, float],
    depths: tuple[float, float],
    contrast: float,
    pattern: str,
    seed: int,
    noise: float = 0.01,
) -> Attack:
    """Fine parts of a pattern before a wall of little contrast."""
    shape, rng = (260, 440), np.random.default_rng(seed)
    mask = fine_mask(kind, shape, *sizes, rng)
    near = d3s.Texture(pattern=pattern, seed=seed)
    wall = d3s.Texture(
        pattern=pattern, seed=seed + 1, contrast=contrast, grey=0.35 + 0.3 * (seed % 2)
    )
    layers = [
        d3s.Layer(depth_m=depths[0], mask=mask, texture=near),
        d3s.Layer(depth_m=depths[1], texture=wall),
    ]
    scene = d3s.Layered(layers=layers)
    pair = d3s.simulate(scene, RIGS[rig], noise=noise, shape=shape, seed=seed)
    return Attack(pair.left, pair.right, pair.depth_m, RIGS[rig])


# Kind, camera, widths of parts and gaps in px, depths of parts and wall in m, contrast of the wall.
REPORT = (
    ("fence", "paper", (12, 12), (0.7, 1.5), 0.0),
    ("fence", "pinhole", (12, 12), (0.7, 1.5), 0.0),
    ("fence", "paper", (12, 12), (0.7, 0.8), 0.05),
    ("fence", "pinhole", (10, 14), (0.9, 1.8), 0.1),
    ("fence", "paper", (30, 30), (0.7, 1.5), 0.0),
    ("mesh", "paper", (8, 16), (0.7, 1.5), 0.0),
    ("mesh", "pinhole", (8, 16), (0.7, 1.5), 0.03),
    ("mesh", "paper", (14, 10), (0.5, 1.0), 0.1),
    ("mesh", "pinhole", (6, 8), (1.0, 2.0), 0.0),
    ("stakes", "paper", (10, 10), (0.7, 1.5), 0.1),
    ("stakes", "pinhole", (10, 10), (0.7, 0.8), 0.0),
    ("stakes", "paper", (16, 12), (1.0, 1.6), 0.03),
    ("blocks", "paper", (10, 10), (0.7, 1.5), 0.0),
    ("blocks", "pinhole", (10, 10), (0.7, 1.5), 0.1),
    ("blocks", "paper", (14, 14), (0.6, 0.9), 0.05),
    ("foliage", "paper", (12, 8), (0.8, 1.6), 0.0),
    ("foliage", "pinhole", (9, 6), (0.6, 1.2), 0.05),
    ("foliage", "paper", (18, 10), (0.5, 2.0), 0.02),
    ("blinds", "paper", (10, 9), (0.7, 1.5), 0.0),
    ("blinds", "pinhole", (12, 7), (0.8, 1.1), 0.0),
    ("blinds", "paper", (20, 14), (1.2, 2.0), 0.1),
    ("chair", "paper", (12, 12), (0.9, 1.5), 0.0),
    ("chair", "pinhole", (8, 20), (0.7, 1.5), 0.05),
    ("cables", "paper", (10, 15), (0.6, 1.2), 0.0),
    ("cables", "pinhole", (6, 12), (0.7, 1.5), 0.0),
    ("cables", "paper", (14, 24), (0.4, 0.7), 0.1),
)
TUNING = (
    ("fence", "paper", (11, 13), (0.75, 1.4), 0.0),
    ("fence", "pinhole", (13, 11), (0.75, 1.4), 0.0),
    ("fence", "paper", (14, 10), (0.65, 0.75), 0.1),
    ("mesh", "paper", (9, 14), (0.8, 1.7), 0.05),
    ("mesh", "pinhole", (7, 13), (0.6, 1.3), 0.1),
    ("stakes", "paper", (12, 12), (0.6, 1.5), 0.0),
    ("stakes", "pinhole", (9, 12), (0.75, 1.6), 0.02),
    ("blocks", "paper", (11, 11), (0.75, 1.6), 0.1),
    ("blocks", "pinhole", (12, 12), (0.7, 1.0), 0.0),
    ("foliage", "paper", (14, 9), (0.7, 1.4), 0.03),
    ("foliage", "pinhole", (10, 8), (0.8, 1.5), 0.0),
    ("blinds", "paper", (12, 10), (0.8, 1.6), 0.02),
    ("blinds", "pinhole", (9, 9), (0.65, 1.3), 0.05),
    ("chair", "paper", (10, 14), (0.8, 1.3), 0.1),
    ("chair", "pinhole", (10, 16), (0.8, 1.6), 0.0),
    ("cables", "paper", (12, 18), (0.7, 1.3), 0.0),
    ("cables", "pinhole", (8, 10), (0.6, 1.1), 0.03),
    ("mesh", "paper", (13, 9), (0.55, 1.1), 0.05),
    ("blinds", "paper", (11, 8), (0.75, 1.4), 0.0),
    ("mesh", "pinhole", (7, 7), (0.9, 1.8), 0.0),
    ("blinds", "pinhole", (11, 6), (0.75, 1.2), 0.02),
    ("cables", "paper", (13, 20), (0.45, 0.8), 0.05),
    ("stakes", "paper", (15, 15), (0.45, 0.9), 0.0),
)


def _cases(rows: tuple, patterns: tuple[str, ...], first_seed: int, is_tuning: bool) -> list[Case]:
    return [
        Case(
            f"{row[0]} {row[2][0]}/{row[2][1]} at {row[3][0]} before {row[3][1]} m, "
            f"contrast {row[4]}, {row[1]}",
            partial(attack, *row, pattern, first_seed + place),
            is_tuning,
        )
        for place, (row, pattern) in enumerate(zip(rows, cycle(patterns), strict=False))
    ]


CASES = _cases(REPORT, REPORT_PATTERNS, 400, False) + _cases(TUNING, TUNING_PATTERNS, 1400, True)
