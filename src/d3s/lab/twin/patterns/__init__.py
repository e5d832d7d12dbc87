"""Procedural patterns: a grid of texels and a seed in, reflectance of each texel out.

Patterns have no end and no period. The reflectance belongs to a place on the surface, so two grids
agree wherever they overlap. `PATTERNS` lists all patterns by name.

Modules::

    noise          grids of texels, random numbers of their places, and smooth noise
    shapes         layers of shapes: leaves, stone, gravel, grass, carpet, target; wood, bark
    manufactured   fabric, brick, printed pages
"""

from collections.abc import Callable
from functools import partial
from zlib import crc32

from d3s.lab.twin.patterns import manufactured, noise, shapes
from d3s.lab.twin.patterns.noise import Grid, Texels, seed_key

PATTERNS: dict[str, Callable[[Grid, int], Texels]] = {
    "leaves": partial(shapes.paint, shapes.LEAVES),
    "stone": partial(shapes.paint, shapes.STONE),
    "wood": shapes.wood,
    "fabric": manufactured.fabric,
    "text": manufactured.text,
    "brick": manufactured.brick,
    "noise": partial(noise.power_law, exponent=2.0),
    "noise_white": partial(noise.power_law, exponent=1.0, rms=1.1),
    "noise_smooth": partial(noise.power_law, exponent=3.0, coarsest_m=0.0128),
    "calibration": partial(shapes.paint, shapes.CALIBRATION),
    "gravel": partial(shapes.paint, shapes.GRAVEL),
    "grass": partial(shapes.paint, shapes.GRASS),
    "carpet": partial(shapes.paint, shapes.CARPET),
    "bark": shapes.bark,
}


def render(name: str, grid: Grid, seed: int) -> Texels:
    """Reflectance of each texel of a grid, 0 to 1, for one of all textures of a pattern."""
    # Two patterns with the same seed must not share their grain.
    own_seed = int(seed_key(seed, crc32(name.encode())))
    # Kernels are compiled per type: always pass the pitch as float.
    return PATTERNS[name](grid._replace(pitch_m=float(grid.pitch_m)), own_seed)
