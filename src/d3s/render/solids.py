"""Solids of a room as data: painted rectangles, cylinders, spheres and rough stones, and lamps.

Coordinates are those of the left camera: x right, y down, z forward, in metres.
"""

from typing import NamedTuple

import numpy as np

from d3s.scene.geometry import Window
from d3s.scene.textures import Texture
from d3s.types import FloatArray, Image

_MOST_TEXELS = 8192  # per side of one raster
_DARKEST, _BRIGHTEST = 0.03, 0.92  # reflectance of black cloth and of white paint


class Paint(NamedTuple):
    """Reflectance of a surface: one value, or a texture around it."""

    albedo: float
    texture: Texture | None = None  # its contrast is a factor on the difference from mid grey
    texel_m: float = 1e-4
    extent_m: tuple[float, float] = (0.1, 0.1)  # (height, width); beyond it the texture is mirrored
    is_glossy: bool = False

    def reflectance(self) -> Image:
        """Reflectance of each texel over `extent_m`; one texel if there is no texture."""
        if self.texture is None:
            return np.full((1, 1), self.albedo, dtype=np.float32)
        level = max(0, int(np.floor(np.log2(self.texel_m / self.texture.base_pitch_m))))
        pitch = self.texture.base_pitch_m * 2.0**level
        rows, cols = (min(_MOST_TEXELS, int(np.ceil(side / pitch))) for side in self.extent_m)
        values = self.texture.raster(level, Window(0, 0, rows, cols)).values
        values = self.albedo + self.texture.contrast * (values - np.float32(0.5))
        return np.clip(values, _DARKEST, _BRIGHTEST, dtype=np.float32)

    @property
    def size_m(self) -> tuple[float, float]:
        """Height and width that the texels of `reflectance` cover, in metres."""
        if self.texture is None:
            return self.extent_m
        level = max(0, int(np.floor(np.log2(self.texel_m / self.texture.base_pitch_m))))
        pitch = self.texture.base_pitch_m * 2.0**level
        rows, cols = (min(_MOST_TEXELS, int(np.ceil(side / pitch))) for side in self.extent_m)
        return rows * pitch, cols * pitch


class Quad(NamedTuple):
    """Rectangle, painted on both sides."""

    centre: FloatArray
    half_a: FloatArray  # from the centre to the middle of one side
    half_b: FloatArray  # the same of the next side, at a right angle to it
    paint: Paint


class Cylinder(NamedTuple):
    """Upright or slanted round bar with flat ends."""

    base: FloatArray
    top: FloatArray
    radius_m: float
    paint: Paint


class Sphere(NamedTuple):
    """Ball."""

    centre: FloatArray
    radius_m: float
    paint: Paint


class Stone(NamedTuple):
    """Ball with random bumps of up to a quarter of its radius."""

    centre: FloatArray
    radius_m: float
    seed: int
    paint: Paint


class Lamp(NamedTuple):
    """Rectangle that shines towards half_a x half_b."""

    centre: FloatArray
    half_a: FloatArray
    half_b: FloatArray
    radiance: float


Solid = Quad | Cylinder | Sphere | Stone


def box(centre: FloatArray, halves: FloatArray, paint: Paint) -> list[Quad]:
    """Return the six sides of a box.

    Parameters
    ----------
    centre
        (3,) centre of the box.
    halves
        (3, 3) rows, from the centre to the middles of three sides, at right angles.
    paint
        Paint of all sides.
    """
    return [
        Quad(centre + sign * halves[i], halves[i - 2], halves[i - 1], paint)
        for i in range(3)
        for sign in (-1.0, 1.0)
    ]


def stone_mesh(stone: Stone, rings: int = 96) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Vertices (n, 3), texture coordinates (n, 2) and triangles (m, 3) of a stone."""
    rng = np.random.default_rng(stone.seed)
    theta = np.linspace(0.0, np.pi, rings + 1)
    phi = np.linspace(0.0, 2 * np.pi, 2 * rings + 1)
    across, down = np.meshgrid(phi, theta)
    unit = np.stack(
        (np.sin(down) * np.cos(across), np.cos(down), np.sin(down) * np.sin(across)), axis=-1
    )
    bumps = np.zeros(unit.shape[:2])
    for octave in range(4):
        waves = rng.normal(size=(6, 3)) * 2.2 * 1.9**octave
        phases = rng.uniform(0, 2 * np.pi, size=6)
        bumps += np.sin(unit @ waves.T + phases).sum(axis=-1) / 6 / 1.7**octave
    radius = stone.radius_m * (1 + 0.25 * bumps / np.abs(bumps).max())
    vertices = stone.centre + radius[..., np.newaxis] * unit
    places = np.stack((across / (2 * np.pi), down / np.pi), axis=-1)
    index = np.arange(unit.shape[0] * unit.shape[1]).reshape(unit.shape[:2])
    a, b, c, d = (part.ravel() for part in _corners(index))
    triangles = np.concatenate((np.stack((a, b, c), axis=1), np.stack((b, d, c), axis=1)))
    return vertices.reshape(-1, 3), places.reshape(-1, 2), triangles


def _corners(index: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    return index[:-1, :-1], index[:-1, 1:], index[1:, :-1], index[1:, 1:]
