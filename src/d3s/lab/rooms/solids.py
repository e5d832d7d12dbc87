"""Solids of a room as data: painted rectangles, cylinders, spheres and rough stones, and lamps.

Coordinates are those of the left camera: x right, y down, z forward, in metres.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.lab.twin.geometry import Window
from d3s.lab.twin.textures import Texture
from d3s.types import FloatArray, Image

_MOST_TEXELS = 8192  # per side of one raster
_BUMPS = 0.25  # height of the bumps of a stone over its radius
_REFLECTANCE = 0.03, 0.92  # of black cloth and of white paint

Finish = Literal["matt", "glossy", "glowing"]
"""How a paint shines: evenly to all sides, with soft highlights, or by light of its own."""


class Paint(NamedTuple):
    """Reflectance of a surface: one value, or a texture around it."""

    albedo: float
    texture: Texture | None = None  # its contrast is a factor on the difference from mid grey
    texel_m: float = 1e-4  # coarsest pitch that will do
    extent_m: tuple[float, float] = (0.1, 0.1)  # (height, width); beyond it the texture is mirrored
    finish: Finish = "matt"
    first_texel: tuple[int, int] = (0, 0)  # (row, col) of the texture in the corner of the paint
    offset_m: tuple[float, float] = (0.0, 0.0)  # (down, right) of its middle from the surface's

    def reflectance(self) -> Image:
        """Reflectance of each texel over `extent_m`; one texel if there is no texture."""
        if self.texture is None:
            return np.full((1, 1), self.albedo, dtype=np.float32)
        level, shape = self._texels(self.texture)
        values = self.texture.raster(level, Window(*self.first_texel, *shape)).values
        values = self.albedo + self.texture.contrast * (values - np.float32(0.5))
        darkest, brightest = (0.0, 1.0) if self.finish == "glowing" else _REFLECTANCE
        return np.asarray(np.clip(values, darkest, brightest), dtype=np.float32)

    @property
    def pitch_m(self) -> float:
        """Pitch of the texels of `reflectance`, in metres."""
        if self.texture is None:
            return self.texel_m
        return self.texture.base_pitch_m * 2.0 ** self._texels(self.texture)[0]

    @property
    def size_m(self) -> tuple[float, float]:
        """Height and width that the texels of `reflectance` cover, in metres."""
        if self.texture is None:
            return self.extent_m
        rows, cols = self._texels(self.texture)[1]
        return rows * self.pitch_m, cols * self.pitch_m

    def _texels(self, texture: Texture) -> tuple[int, tuple[int, int]]:
        """Level of the raster of a texture, and its rows and columns."""
        level = max(0, int(np.floor(np.log2(self.texel_m / texture.base_pitch_m))))
        pitch_m = texture.base_pitch_m * 2.0**level
        rows, cols = (min(_MOST_TEXELS, int(np.ceil(side / pitch_m))) for side in self.extent_m)
        return level, (rows, cols)


class Quad(NamedTuple):
    """Rectangle, painted on both sides; glowing paint shines against half_a x half_b.

    Columns of the texture run along half_a, and rows along half_b.
    """

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
    """Ball with random bumps."""

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
    """Return the six sides of a box; rows of `halves` lead from its centre to three of them."""
    return [
        Quad(centre + sign * halves[i], halves[i - 2], halves[i - 1], paint)
        for i in range(3)
        for sign in (-1.0, 1.0)
    ]


class TriangleMesh(NamedTuple):
    """Triangles of a surface."""

    vertices: FloatArray  # (n, 3)
    places: FloatArray  # (n, 2) coordinates on the texture, 0 to 1
    triangles: NDArray[np.int64]  # (m, 3)


def stone_mesh(stone: Stone, rings: int = 96) -> TriangleMesh:
    """Triangles of a stone, between so many rings from pole to pole."""
    rng = np.random.default_rng(stone.seed)
    theta, phi = np.linspace(0.0, np.pi, rings + 1), np.linspace(0.0, 2 * np.pi, 2 * rings + 1)
    across, down = np.meshgrid(phi, theta)
    unit = np.stack(
        (np.sin(down) * np.cos(across), np.cos(down), np.sin(down) * np.sin(across)), axis=-1
    )
    bumps = np.zeros(unit.shape[:2])
    for octave in range(4):
        waves = rng.normal(size=(6, 3)) * 2.2 * 1.9**octave
        phases = rng.uniform(0, 2 * np.pi, size=6)
        bumps += np.sin(unit @ waves.T + phases).sum(axis=-1) / 6 / 1.7**octave
    radius = stone.radius_m * (1 + _BUMPS * bumps / np.abs(bumps).max())
    vertices = stone.centre + radius[..., np.newaxis] * unit
    places = np.stack((across / (2 * np.pi), down / np.pi), axis=-1)
    return TriangleMesh(
        vertices.reshape(-1, 3), places.reshape(-1, 2), _grid_triangles(unit.shape[:2])
    )


def _grid_triangles(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Two triangles for each cell of a grid of vertices."""
    index: NDArray[Any] = np.arange(shape[0] * shape[1]).reshape(shape)
    corners = (index[:-1, :-1], index[:-1, 1:], index[1:, :-1], index[1:, 1:])
    a, b, c, d = (corner.ravel() for corner in corners)
    return np.concatenate((np.stack((a, b, c), axis=1), np.stack((b, d, c), axis=1)))
