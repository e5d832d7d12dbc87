"""Endless textures without a period, by name: each belongs to the world, not to a picture of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

from d3s.errors import InputError
from d3s.scene.grid import Grid
from d3s.scene.hashing import seed_key
from d3s.scene.lattice import Texels
from d3s.scene.patterns import made, natural, noise, text, wooden


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A kind of texture, and the function that makes it."""

    name: str
    draw: Callable[[Grid, int], Texels]

    @property
    def words(self) -> str:
        """What it looks like, in one line."""
        return (self.draw.__doc__ or "").partition("\n")[0]

    def render(self, grid: Grid, seed: int) -> Texels:
        """Reflectance of each texel of a grid, from 0 to 1; another seed is another texture."""
        if not 0.0 < grid.pitch_m < math.inf:
            raise InputError(
                f"pitch_m={grid.pitch_m} must be above zero: it is a texel, in metres."
            )
        if grid.rows < 0 or grid.cols < 0:
            raise InputError(f"grid of {grid.rows} x {grid.cols} texels: neither can be negative.")
        # Of one seed, two kinds of texture must not share their grain.
        own_seed = int(seed_key(seed, crc32(self.name.encode())))
        # One type of number for the kernels, which are compiled anew for another.
        return self.draw(grid._replace(pitch_m=float(grid.pitch_m)), own_seed)


PATTERNS: dict[str, Pattern] = {
    draw.__name__: Pattern(name=draw.__name__, draw=draw)
    for draw in (
        natural.leaves,
        natural.stone,
        wooden.wood,
        made.fabric,
        text.text,
        made.brick,
        noise.noise,
        noise.noise_white,
        noise.noise_smooth,
        natural.calibration,
        natural.gravel,
        natural.grass,
        natural.carpet,
        wooden.bark,
    )
}
