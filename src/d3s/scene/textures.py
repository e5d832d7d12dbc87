"""Textures: what is painted on a surface, with a physical size, at any resolution.

A texture comes as rasters whose pitch is a power of two of its base pitch. Which of them a view
needs, and how much of each, follows from the homography between both; so a surface shrinks with
distance as a real one does. A pattern of ours has no end. A photograph has: beyond it, it goes on
mirrored.
"""

import difflib
import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from d3s.record import OneLine
from d3s.runtime.parallel import together
from d3s.scene.geometry import ScenePart, Window
from d3s.scene.grid import Grid
from d3s.scene.photos import Photo, Picture
from d3s.scene.sampling import Raster
from d3s.scene.surface import Surface
from d3s.types import Image

__all__ = ["Photo", "Texture", "as_texture", "check_pattern", "surface_of"]

# Rasters of patterns are kept in blocks, so that the next frame finds them.
BLOCK_TEXELS = 512
_BLOCKS_KEPT = 160  # 1 MB each; a frame of the prototype has 15 to 60

# A picture that is to fill the view has a little more: some texels of its border are trimmed.
_FILL = 1.04

# Patterns have detail down to this size, in metres; what is closer is only magnified.
FINEST_PITCH_M = 1e-5


def check_pattern(name: str) -> str:
    """The name of a pattern; a ValueError, if it is none."""
    from d3s.scene.patterns import PATTERNS

    if name not in PATTERNS:
        raise ValueError(f"must be one of {', '.join(PATTERNS)}.")
    return name


class Texture(ScenePart):
    """A pattern that D3S makes itself, endless and without a period, from a seed.

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
    seed: int = Field(default=0, ge=0, lt=2**63, description="which of all patterns of that name")
    scale: float = Field(
        default=1.0, gt=1e-3, lt=1e3, description="the size, one as it is in nature"
    )
    angle_rad: float = Field(default=0.0, ge=-4, le=4, description="the turn, clockwise")
    contrast: float = Field(
        default=1.0, gt=0, le=2, description="a factor on the difference to mid grey"
    )

    @property
    def base_pitch_m(self) -> float:
        """Pitch of the finest raster."""
        return FINEST_PITCH_M * self.scale

    def raster(self, level: int, grid_rows: range, grid_cols: range) -> Raster:
        """Texels of some rows and columns, at base_pitch_m * 2**level."""
        values = np.empty((len(grid_rows), len(grid_cols)), dtype=np.float32)
        outer = Window(grid_rows.start, grid_cols.start, *values.shape)
        blocks = [
            (
                Window(row * BLOCK_TEXELS, col * BLOCK_TEXELS, BLOCK_TEXELS, BLOCK_TEXELS),
                _pattern_block(self.pattern, self.seed, level, row, col),
            )
            for row in _blocks(grid_rows)
            for col in _blocks(grid_cols)
        ]

        def copy(some: list[tuple[Window, Image]]) -> None:
            for block, texels in some:
                common = block.common(outer)
                values[common.within(outer)] = texels[common.within(block)]

        half = len(blocks) // 2
        together(lambda: copy(blocks[:half]), lambda: copy(blocks[half:]))
        return Raster(values, outer.row, outer.col, self.base_pitch_m * 2.0**level)


def _blocks(numbers: range) -> range:
    return range(numbers.start // BLOCK_TEXELS, (numbers.stop - 1) // BLOCK_TEXELS + 1)


@lru_cache(maxsize=_BLOCKS_KEPT)
def _pattern_block(pattern: str, seed: int, level: int, block_row: int, block_col: int) -> Image:
    from d3s.scene.patterns import PATTERNS

    grid = Grid(
        first_row=block_row * BLOCK_TEXELS,
        first_col=block_col * BLOCK_TEXELS,
        rows=BLOCK_TEXELS,
        cols=BLOCK_TEXELS,
        pitch_m=FINEST_PITCH_M * 2.0**level,
    )
    texels = PATTERNS[pattern].render(grid, seed)
    texels.flags.writeable = False
    return texels


def as_texture(given: Any) -> Texture | Photo:
    """A texture from what people write: a pattern's name, a file, a folder, an array.

    Raises
    ------
    ValueError
        Telling what is known, when it is none of these.
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
    from d3s.scene.patterns import PATTERNS

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


def surface_of(texture: Texture | Photo, extent_m: tuple[float, float]) -> Surface:
    """The texture with its physical size; a picture without one fills (height, width) metres."""
    if isinstance(texture, Texture):
        return texture
    rows, cols = texture.pyramid.shape
    width_m = texture.width_m
    if width_m is None:
        width_m = max(extent_m[1], extent_m[0] * cols / rows) * _FILL
    return Picture(texture.pyramid, width_m, texture.angle_rad, texture.contrast)
