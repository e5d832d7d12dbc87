"""Procedural patterns: a grid of texels and a seed in, reflectance of each texel out.

Patterns have no end and no period. The reflectance belongs to a place on the surface, so two grids
agree wherever they overlap. `PATTERNS` lists all patterns by name.

Modules::

    noise          grids of texels, random numbers of their places, and smooth noise
    shapes         layers of shapes: leaves, stone, gravel, grass, carpet, target, wood, bark
    manufactured   fabric, brick, printed pages
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

from d3s.errors import InputError
from d3s.lab.twin.patterns import manufactured, noise, shapes
from d3s.lab.twin.patterns.noise import Grid, Texels, seed_key


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """One pattern: its name, and the function that draws it."""

    name: str
    draw: Callable[[Grid, int], Texels]

    @property
    def words(self) -> str:
        """Appearance in one line, from the docstring of the function."""
        return (self.draw.__doc__ or "").partition("\n")[0]

    def render(self, grid: Grid, seed: int) -> Texels:
        """Reflectance of each texel of a grid, 0 to 1, for one of all textures of this pattern."""
        if not 0.0 < grid.pitch_m < math.inf:
            raise InputError(
                f"pitch_m={grid.pitch_m} must be above zero: it is a texel, in metres."
            )
        if grid.rows < 0 or grid.cols < 0:
            raise InputError(f"grid of {grid.rows} x {grid.cols} texels: neither can be negative.")
        # Two patterns with the same seed must not share their grain.
        own_seed = int(seed_key(seed, crc32(self.name.encode())))
        # Kernels are compiled per type: always pass the pitch as float.
        return self.draw(grid._replace(pitch_m=float(grid.pitch_m)), own_seed)


PATTERNS: dict[str, Pattern] = {
    draw.__name__: Pattern(name=draw.__name__, draw=draw)
    for draw in (
        shapes.leaves,
        shapes.stone,
        shapes.wood,
        manufactured.fabric,
        manufactured.text,
        manufactured.brick,
        noise.noise,
        noise.noise_white,
        noise.noise_smooth,
        shapes.calibration,
        shapes.gravel,
        shapes.grass,
        shapes.carpet,
        shapes.bark,
    )
}
