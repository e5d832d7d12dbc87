"""Random scenes: tilted objects in front of a tilted background, and the masks of the objects.

A mask is the share of each pixel that an object covers, with edges of one pixel.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import SceneError
from d3s.lab.twin.geometry import FARTHEST_M, ScenePart, View, Window, perfect_views
from d3s.lab.twin.patterns import PATTERNS
from d3s.lab.twin.scenes import Layer
from d3s.lab.twin.textures import PatternName, Photo, Texture
from d3s.record import Converted, OneLine
from d3s.rig import Optics
from d3s.types import FloatArray, Image

_WAVES = np.arange(2, 9)  # waves per turn of the outline of a blob
# Wave k of a blob has an amplitude of sigma _ROUGHNESS / k, in radii.
_ROUGHNESS = 0.25


class _Ground(NamedTuple):
    """Coordinates of all pixels, the sizes of an object in px, and its random numbers."""

    x: FloatArray
    y: FloatArray
    sizes: tuple[float, float]  # radius of an outline; width and gap of a fine structure
    rng: np.random.Generator

    def turned(self, x: float = 0.0, y: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Coordinates across and along a random direction, from (x, y)."""
        angle = self.rng.uniform(0, np.pi)
        dx, dy = self.x - x, self.y - y
        return dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)

    def bars(
        self, along: FloatArray, spread: float = 0.0, sizes: tuple[float, float] | None = None
    ) -> FloatArray:
        """Bars across a coordinate, with gaps between them."""
        sizes = sizes or self.sizes
        count = int(np.ptp(along) / sum(sizes) * (1 + spread)) + 3
        lengths = np.tile(sizes, count) * self.rng.uniform(1 - spread, 1 + spread, 2 * count)
        edges = along.min() - self.rng.uniform(0, sum(sizes))
        edges = edges + np.concatenate([[0], np.cumsum(lengths)])
        places = np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])])
        heights = np.concatenate([np.zeros(edges.size), 0.5 * lengths * np.tile((1, -1), count)])
        order = np.argsort(places)
        return np.asarray(np.interp(along, places[order], heights[order]))


def draw_mask(
    kind: str,
    shape: tuple[int, int],
    centre_px: tuple[float, float],
    radius_px: float,
    rng: np.random.Generator,
) -> Image:
    """Mask of an object of random form, of `SHAPES`, around a pixel (x, y).

    The radius is the mean radius of a blob, half the longer side of a box, a quarter of the length
    of a bar, or the outer radius of a ring.
    """
    x, y = np.meshgrid(np.arange(shape[1]) - centre_px[0], np.arange(shape[0]) - centre_px[1])
    return _covered(SHAPES[kind](_Ground(x, y, (radius_px, 0.0), rng)))


def fine_mask(
    kind: str, shape: tuple[int, int], width_px: float, gap_px: float, rng: np.random.Generator
) -> Image:
    """Mask of a fine structure of `FINE` over the whole frame: its parts and the gaps between them.

    Bars of random width have 0.6 to 1.4 times the given one, and so have the gaps between them.
    """
    x, y = np.meshgrid(np.arange(shape[1], dtype=float), np.arange(shape[0], dtype=float))
    return _covered(FINE[kind](_Ground(x, y, (width_px, gap_px), rng)))


def _covered(inside_px: FloatArray) -> Image:
    """Share of each pixel that is covered, from the distance to the outline, positive inside."""
    return np.clip(inside_px + 0.5, 0.0, 1.0).astype(np.float32)


def _blob(ground: _Ground) -> FloatArray:
    """Round object with a wavy outline, like a fruit, a pebble or a head."""
    x, y, (radius, _), rng = ground
    amplitudes = _ROUGHNESS * rng.normal(size=_WAVES.size) / _WAVES
    phases = rng.uniform(0, 2 * np.pi, _WAVES.size)
    angle = np.arctan2(y, x)
    outline = np.ones(x.shape)
    for wave, amplitude, phase in zip(_WAVES, amplitudes, phases, strict=True):
        outline += amplitude * np.cos(wave * angle + phase)
    squeeze = rng.uniform(0.6, 1.0)
    return np.asarray(radius * np.clip(outline, 0.2, None) - np.hypot(x, y / squeeze))


def _box(ground: _Ground) -> FloatArray:
    """Rotated rectangle, like a book or a carton."""
    across, along = ground.turned()
    radius, slimness = ground.sizes[0], ground.rng.uniform(0.4, 1.0)
    return np.minimum(radius - np.abs(along), slimness * radius - np.abs(across))


def _bar(ground: _Ground) -> FloatArray:
    """Long thin object, like a branch or a table leg."""
    across, along = ground.turned()
    radius, rng = ground.sizes[0], ground.rng
    bend = rng.normal(scale=0.2) * along**2 / radius
    thickness = rng.uniform(0.05, 0.2) * radius
    return np.minimum(thickness - np.abs(across - bend), 2 * radius - np.abs(along))


def _ring(ground: _Ground) -> FloatArray:
    """Ring, like a handle or a wheel."""
    radius = ground.sizes[0]
    half_width = ground.rng.uniform(0.1, 0.35) * radius
    return np.asarray(half_width - np.abs(np.hypot(ground.x, ground.y) - radius + half_width))


def _fence(ground: _Ground) -> FloatArray:
    """Upright bars of one width."""
    return ground.bars(ground.x)


def _blinds(ground: _Ground) -> FloatArray:
    """Slats that lie nearly level."""
    return ground.bars(ground.y + ground.rng.uniform(-0.2, 0.2) * ground.x)


def _mesh(ground: _Ground) -> FloatArray:
    """Wires that cross at a right angle."""
    across, along = ground.turned() if ground.rng.random() < 0.5 else (ground.x, ground.y)
    return np.maximum(ground.bars(across), ground.bars(along))


def _stakes(ground: _Ground) -> FloatArray:
    """Upright bars of random width at random distances."""
    return ground.bars(ground.x, 0.4)


def _chair(ground: _Ground) -> FloatArray:
    """Slats at a slant between a few rails."""
    slant, (width, gap) = ground.rng.uniform(-0.4, 0.4), ground.sizes
    rails = ground.bars(ground.y - slant * ground.x, 0.4, (width, 6 * gap))
    return np.maximum(ground.bars(ground.x + slant * ground.y), rails)


def _cables(ground: _Ground) -> FloatArray:
    """Cables that hang side by side in waves."""
    across, along = ground.turned()
    rng, sizes = ground.rng, ground.sizes
    waves = 2 * sizes[1] * np.sin(along / rng.uniform(4, 8) / sum(sizes) + rng.uniform(0, 6))
    return ground.bars(across + waves, 0.4)


def _blocks(ground: _Ground) -> FloatArray:
    """Square patches at random, like a bush; the larger the gap, the fewer."""
    x, y, sizes, rng = ground
    count = int(max(x.max(), y.max()) / sizes[0]) + 2
    is_there = rng.random((count, count)) < sizes[0] / sum(sizes)
    return np.asarray(is_there[(y // sizes[0]).astype(int), (x // sizes[0]).astype(int)] - 0.5)


def _foliage(ground: _Ground) -> FloatArray:
    """Leaves at random: slim ellipses in all directions."""
    x, y, sizes, rng = ground
    inside = np.full(x.shape, -np.inf)
    for _ in range(int(x.size / (2.5 * sum(sizes) ** 2))):
        across, along = ground.turned(rng.uniform(0, x.max()), rng.uniform(0, y.max()))
        inside = np.maximum(inside, 0.5 * sizes[0] - np.hypot(across, 0.5 * along))
    return inside


_Outline = Callable[[_Ground], FloatArray]
SHAPES: dict[str, _Outline] = {"blob": _blob, "box": _box, "bar": _bar, "ring": _ring}
FINE: dict[str, _Outline] = {
    "fence": _fence,
    "blinds": _blinds,
    "mesh": _mesh,
    "stakes": _stakes,
    "chair": _chair,
    "cables": _cables,
    "blocks": _blocks,
    "foliage": _foliage,
}


# Separates the random numbers of a scene from those of the noise with the same seed.
_STREAM = int.from_bytes(b"scene")

# Share of the depth range of a layer that its tilt may use.
_TILT_SHARE = 0.8
_STEEPEST_RAD = 1.1

Surfaces = Literal["textured", "weak", "fine"]
"""Surfaces of random scenes: textured, some plain and weak, or fences before plain walls."""

# Shares of the outlines in the order of `SHAPES`: weak scenes have more bars.
_OUTLINES: dict[Surfaces, tuple[float, ...]] = {
    "textured": (0.5, 0.25, 0.15, 0.1),
    "weak": (0.4, 0.2, 0.3, 0.1),
    "fine": (0.5, 0.5, 0.0, 0.0),
}
# Weak surfaces of a weak scene: the background, and this share of the objects.
_WEAK_SHARE = 1 / 3
_PLAIN_SHARE = 1 / 3  # of the weak surfaces; the others have some texture
_WEAKEST, _STRONGEST = 0.02, 0.2  # contrast of the others
_SHADED_SHARE = 0.5  # of the weak surfaces
_SHADING = (0.02, 0.15)
_GREYS = (0.3, 0.7)
# Widths of the parts and the gaps of fine objects, and the largest contrast of the wall behind.
_FINE_PX, _FINE_CONTRAST = (8.0, 20.0), 0.1

# Margin around an object that also keeps to its depth range, since the blur brings it in.
_BESIDE_PX = 40


class RandomScene(ScenePart):
    """Objects in front of a background, like the synthetic data of the paper's supplement.

    The seed determines the whole scene. Each layer has its own range of inverse depth, so layers
    never intersect.

    In a scene with weak surfaces the background is plain or has a contrast of 0.02 to 0.2, and so
    has a third of the objects; half of these surfaces have slow shading. More of the objects are
    thin bars. In a fine scene the objects are fences, meshes, leaves, blinds, chairs and cables
    of `FINE`, and the background has a contrast of at most 0.1.
    """

    own_shape: ClassVar[tuple[int, int]] = (1025, 1025)
    """Rows and columns of the paper's synthetic data."""

    seed: int = Field(ge=0, lt=2**63, description="the seed of the whole scene")
    nearest_m: float = Field(
        default=0.3, gt=0, le=FARTHEST_M, description="the smallest depth in the scene"
    )
    farthest_m: float = Field(
        default=1.9, gt=0, le=FARTHEST_M, description="the largest depth in the scene"
    )
    things: int | None = Field(
        default=None,
        ge=0,
        le=20,
        description="the number of objects in front; two to five by default",
    )
    patterns: Converted[tuple[PatternName, ...]] = Field(
        default=(), validate_default=True, description="the patterns to choose from; all by default"
    )
    photos: Converted[tuple[OneLine, ...]] = Field(
        default=(),
        validate_default=True,
        description="folders of photos to use as textures, in place of patterns",
    )

    surfaces: Surfaces = Field(
        default="textured",
        description="textured, or weak: a plain or weakly textured background, and some such "
        "objects, or fine: fences and the like before a plain background",
    )

    @field_validator("farthest_m")
    @classmethod
    def _is_farther(cls, farthest_m: float, info: ValidationInfo) -> float:
        nearest_m = info.data.get("nearest_m")
        if nearest_m is not None and farthest_m < 1.1 * nearest_m:
            raise ValueError(f"must be at least 1.1 times nearest_m={nearest_m:g}.")
        return farthest_m

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple[Layer, ...]:
        """Layers of the scene for a frame of (rows, cols), the background last."""
        rng = np.random.default_rng(np.random.SeedSequence((self.seed, _STREAM)))
        view, _ = perfect_views(optics, shape)
        count = int(rng.integers(2, 6)) if self.things is None else self.things
        nearest_dpt, farthest_dpt = 1 / self.nearest_m, 1 / self.farthest_m
        # The background gets the far part of the range; the objects share the rest.
        middle_dpt = farthest_dpt + rng.uniform(0.25, 0.5) * (nearest_dpt - farthest_dpt)
        edges = np.linspace(middle_dpt, nearest_dpt, count + 1)
        layers = [
            self._thing(view, shape, (low, high), rng) for low, high in pairwise(edges.tolist())
        ]
        background = _tilted(view, Window.frame(shape), (farthest_dpt, middle_dpt), rng)
        texture = self._texture(rng) if self.surfaces == "textured" else self._weak_texture(rng)
        if self.surfaces == "fine":
            texture = texture.replace(contrast=min(texture.contrast, _FINE_CONTRAST))
        return (*layers[::-1], Layer(**background, texture=texture))

    def _thing(
        self,
        view: View,
        shape: tuple[int, int],
        range_dpt: tuple[float, float],
        rng: np.random.Generator,
    ) -> Layer:
        # An outline can miss the frame; the first attempt nearly always succeeds.
        for _ in range(100):
            kind = tuple(SHAPES)[int(rng.choice(len(SHAPES), p=_OUTLINES[self.surfaces]))]
            centre = (float(rng.uniform(0, shape[1])), float(rng.uniform(0, shape[0])))
            mask = draw_mask(kind, shape, centre, rng.uniform(0.08, 0.3) * min(shape), rng)
            if self.surfaces == "fine":
                kind = tuple(FINE)[int(rng.integers(len(FINE)))]
                width_px, gap_px = rng.uniform(*_FINE_PX, 2).tolist()
                mask = np.minimum(mask, fine_mask(kind, shape, width_px, gap_px, rng))
            if mask.max() == 1:
                break
        else:
            raise SceneError(f"shape={shape} is too small for a random scene.")
        plane = _tilted(view, Window.around(mask), range_dpt, rng)
        is_weak = self.surfaces == "weak" and rng.random() < _WEAK_SHARE
        texture = self._weak_texture(rng) if is_weak else self._texture(rng)
        return Layer(**plane, texture=texture, mask=mask)

    def _weak_texture(self, rng: np.random.Generator) -> Texture | Photo:
        texture = self._texture(rng)
        contrast = float(np.exp(rng.uniform(np.log(_WEAKEST), np.log(_STRONGEST))))
        grey, shading = float(rng.uniform(*_GREYS)), float(rng.uniform(*_SHADING))
        is_plain, is_shaded = rng.random(2) < (_PLAIN_SHARE, _SHADED_SHARE)
        if is_plain:  # a photo has some contrast
            texture, contrast = Texture(seed=int(rng.integers(2**31))), 0.0
        return texture.replace(contrast=contrast, grey=grey, shading=shading if is_shaded else 0.0)

    def _texture(self, rng: np.random.Generator) -> Texture | Photo:
        contrast, angle = float(rng.uniform(0.6, 1.1)), float(rng.uniform(-np.pi, np.pi))
        number, scale = int(rng.integers(2**31)), float(np.exp(rng.uniform(-0.5, 0.7)))
        if self.photos:
            folder = self.photos[int(rng.integers(len(self.photos)))]
            return Photo(image=folder, number=number, contrast=contrast)
        names = self.patterns or tuple(PATTERNS)
        return Texture(
            pattern=names[int(rng.integers(len(names)))],
            seed=number,
            scale=scale,
            angle_rad=angle,
            contrast=contrast,
        )


def _tilted(
    view: View, window: Window, range_dpt: tuple[float, float], rng: np.random.Generator
) -> dict[str, float]:
    """Random plane within a range of inverse depth over a window, as fields of a `Layer`."""
    low, high = range_dpt
    middle = low + (high - low) * rng.uniform(0.4, 0.6)
    # Random share of the range over the window, limited to the slope of a floor or a wall.
    room = _TILT_SHARE * min(middle - low, high - middle)
    reach = 0.5 * np.array(window.shape[::-1]) + _BESIDE_PX
    per_px = room * rng.dirichlet((1.0, 1.0, 1.0))[:2] / reach
    steepest_rad = rng.uniform(0.0, _STEEPEST_RAD, size=2)
    slopes = np.minimum(per_px * view.optics.focal_length_px / middle, np.tan(steepest_rad))
    slopes *= rng.choice((-1.0, 1.0), size=2)
    centre = view.ray_matrix @ (
        window.col + (window.cols - 1) / 2,
        window.row + (window.rows - 1) / 2,
        1.0,
    )
    # Depth such that 1/Z = middle on the ray through the centre of the window.
    depth_m = (1 - slopes @ centre[:2]) / middle
    return {
        "depth_m": float(depth_m),
        "tilt_x_rad": float(np.arctan(slopes[0])),
        "tilt_y_rad": float(np.arctan(slopes[1])),
    }
