"""Textures with a physical size, at any resolution: patterns and photos.

A texture is a set of rasters; the pitch of each is the base pitch times a power of two. The
homography between surface and view decides which rasters, and which part of each, a view needs. So
a texture shrinks with distance. Patterns are endless; photos are mirrored at their borders.
"""

import difflib
import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from d3s.lab.twin.colour import mixed_raster
from d3s.lab.twin.geometry import ScenePart, Window
from d3s.lab.twin.photos import Photo, PhotoSurface
from d3s.lab.twin.sampling import Raster
from d3s.lab.twin.surface import Surface
from d3s.record import OneLine
from d3s.runtime.parallel import run_together
from d3s.types import Image

__all__ = ["Photo", "Texture", "as_texture", "check_pattern", "surface_of"]

# Rasters of patterns are cached in blocks, for use in the next frame.
_BLOCK_TEXELS = 512
_BLOCKS_KEPT = 160  # 1 MB each; a frame of the prototype has 15 to 60

# Width of a photo that fills the view, over the width of the view: its border is trimmed.
_FILL = 1.04

# Finest detail of patterns, in metres; nearer surfaces are only magnified.
_FINEST_PITCH_M = 1e-5


def check_pattern(name: str) -> str:
    """Name of a pattern; ValueError if there is no such pattern."""
    from d3s.lab.twin.patterns import PATTERNS

    if name not in PATTERNS:
        raise ValueError(f"must be one of {', '.join(PATTERNS)}.")
    return name


class Texture(ScenePart):
    """Procedural pattern, endless and without a period, from a seed.

    Examples
    --------
    >>> import d3s
    >>> texture = d3s.Texture(pattern="leaves", seed=7, contrast=0.5)
    >>> d3s.Plane(depth_m=1.0, texture=texture).texture.seed
    7
    """

    pattern: Annotated[OneLine, AfterValidator(check_pattern)] = Field(
        default="leaves", description="the name of the pattern"
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="the seed of the pattern")
    scale: float = Field(default=1.0, gt=1e-3, lt=1e3, description="the size relative to nature")
    angle_rad: float = Field(default=0.0, ge=-4, le=4, description="the rotation, clockwise")
    contrast: float = Field(
        default=1.0,
        ge=0,
        le=2,
        description="a factor on the difference from mid grey; 0 is a plain surface",
    )
    grey: float = Field(default=0.5, ge=0, le=1, description="the grey that mid grey becomes")
    shading: float = Field(
        default=0.0, ge=0, le=0.5, description="the amplitude of slow shading, 0.1 to 0.4 m long"
    )

    colour: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="the share of the pattern that red, green and blue have each for themselves; "
        "none is grey",
    )

    @property
    def base_pitch_m(self) -> float:
        """Pitch of the finest raster, in metres."""
        return _FINEST_PITCH_M * self.scale

    def raster(self, level: int, texels: Window) -> Raster:
        """Texels at the pitch base_pitch_m * 2**level, numbered from the origin of the surface.

        Those of a coloured pattern are the mean of its channels.
        """
        return self.channel_raster(level, texels, None)

    def channel_raster(self, level: int, texels: Window, channel: int | None) -> Raster:
        """Texels of one channel; see `raster`.

        Parameters
        ----------
        level, texels
            As for `raster`.
        channel
            0 red, 1 green, 2 blue; None for the mean of the three.
        """
        if not self.colour:
            return self._drawn(level, texels, self.seed)
        return mixed_raster(
            lambda seed: self._drawn(level, texels, seed), self.seed, self.colour, channel
        )

    def _drawn(self, level: int, texels: Window, seed: int) -> Raster:
        values = np.empty(texels.shape, dtype=np.float32)
        blocks = [
            (block, _pattern_block(self.pattern, seed, level, block)) for block in _blocks(texels)
        ]

        def copy(some: list[tuple[Window, Image]]) -> None:
            for block, content in some:
                common = block.common(texels)
                values[common.within(texels)] = content[common.within(block)]

        half = len(blocks) // 2
        run_together(lambda: copy(blocks[:half]), lambda: copy(blocks[half:]))
        return Raster(values, texels.row, texels.col, self.base_pitch_m * 2.0**level)


def _blocks(texels: Window) -> list[Window]:
    """Blocks that overlap a window of texels."""
    return [
        Window(row, col, _BLOCK_TEXELS, _BLOCK_TEXELS)
        for row in _multiples(texels.row, texels.rows)
        for col in _multiples(texels.col, texels.cols)
    ]


def _multiples(first: int, count: int) -> range:
    return range(first - first % _BLOCK_TEXELS, first + count, _BLOCK_TEXELS)


@lru_cache(maxsize=_BLOCKS_KEPT)
def _pattern_block(pattern: str, seed: int, level: int, block: Window) -> Image:
    from d3s.lab.twin.patterns import PATTERNS
    from d3s.lab.twin.patterns.lattice import Grid

    texels = PATTERNS[pattern].render(Grid(*block, _FINEST_PITCH_M * 2.0**level), seed)
    texels.flags.writeable = False
    return texels


def as_texture(given: Any) -> Texture | Photo:
    """Texture or Photo from a pattern's name, a file, a folder, an array or a table of fields.

    Raises
    ------
    ValueError
        If the value is none of these; the message lists the patterns.
    """
    if isinstance(given, Texture | Photo):
        return given
    if isinstance(given, np.ndarray):
        return Photo(image=given)
    if isinstance(given, dict):
        return Photo(**given) if "image" in given else Texture(**given)
    if isinstance(given, str | os.PathLike):
        return _named(os.fspath(given))
    raise ValueError(
        "must be the name of a pattern, an image file or folder, a Texture, a Photo or an array."
    )


def _named(name: str) -> Texture | Photo:
    from d3s.lab.twin.patterns import PATTERNS

    if name in PATTERNS:
        return Texture(pattern=name)
    if not name:
        raise ValueError("is empty: name a pattern, an image file or a folder.")
    try:
        exists = Path(name).exists()
    except (OSError, ValueError):  # too long, or with a zero byte
        exists = False
    if exists:
        return Photo(image=name)
    close = difflib.get_close_matches(name, PATTERNS, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"Known patterns are {', '.join(PATTERNS)}."
    raise ValueError(f"is neither a pattern nor a file or folder. {hint}")


class PatternChannel:
    """One channel of a coloured pattern (a `Surface`): 0 red, 1 green, 2 blue."""

    def __init__(self, texture: Texture, channel: int) -> None:
        self.contrast, self.grey, self.shading = texture.contrast, texture.grey, texture.shading
        self.seed, self.angle_rad = texture.seed, texture.angle_rad
        self.base_pitch_m = texture.base_pitch_m
        self._texture, self._channel = texture, channel

    def raster(self, level: int, texels: Window) -> Raster:
        """Texels at the pitch base_pitch_m * 2**level, numbered from the origin of the surface."""
        return self._texture.channel_raster(level, texels, self._channel)


def surface_of(
    texture: Texture | Photo, extent_m: tuple[float, float], channel: int | None = None
) -> Surface:
    """Surface of a texture; a photo without a width fills `extent_m`, (height, width) in m.

    Parameters
    ----------
    texture
        Pattern or photo.
    extent_m
        Height and width of the view on the surface, in metres.
    channel
        0 red, 1 green, 2 blue; None for grey. A grey texture has it in all channels.
    """
    if isinstance(texture, Texture):
        return texture if channel is None else PatternChannel(texture, channel)
    rows, cols = texture.pyramid.shape
    width_m = texture.width_m
    if width_m is None:
        width_m = max(extent_m[1], extent_m[0] * cols / rows) * _FILL
    return PhotoSurface(texture, width_m, channel)
