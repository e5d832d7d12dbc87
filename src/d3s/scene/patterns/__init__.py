"""Endless textures without a period, by name: each belongs to the world, not to a picture of it."""

from collections.abc import Callable
from dataclasses import dataclass

from d3s.scene.grid import Grid
from d3s.scene.lattice import Texels
from d3s.scene.patterns import made, natural, noise, text, wooden


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A kind of texture: `render` gives the reflectance of each texel of a grid, for a seed."""

    name: str
    render: Callable[[Grid, int], Texels]

    @property
    def words(self) -> str:
        """What it looks like, in one line."""
        return (self.render.__doc__ or "").partition("\n")[0]


PATTERNS: dict[str, Pattern] = {
    render.__name__: Pattern(name=render.__name__, render=render)
    for render in (
        natural.leaves,
        natural.stone,
        natural.gravel,
        natural.grass,
        natural.carpet,
        natural.calibration,
        made.fabric,
        made.brick,
        wooden.wood,
        wooden.bark,
        text.text,
        noise.noise,
        noise.noise_white,
        noise.noise_smooth,
    )
}
