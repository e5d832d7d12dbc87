"""Masks of random objects, with edges of one pixel."""

import numpy as np
from numpy.typing import NDArray

from d3s.types import FloatArray

Coverage = NDArray[np.float32]
"""Share of each pixel that an object covers (rows, cols), 0 to 1."""

_WAVES = np.arange(2, 9)  # waves per turn of the outline of a blob
# Wave k of a blob has an amplitude of sigma _ROUGHNESS / k, in radii.
_ROUGHNESS = 0.25


def draw_mask(
    kind: str,
    shape: tuple[int, int],
    centre_px: tuple[float, float],
    radius_px: float,
    rng: np.random.Generator,
) -> Coverage:
    """Mask of an object of random form, of `SHAPES`, around a pixel (x, y).

    The radius is the mean radius of a blob, half the longer side of a box, a quarter of the length
    of a bar, or the outer radius of a ring.
    """
    rows, cols = shape
    dx, dy = np.meshgrid(np.arange(cols) - centre_px[0], np.arange(rows) - centre_px[1])
    inside_px = SHAPES[kind](dx, dy, radius_px, rng)
    return np.clip(inside_px + 0.5, 0.0, 1.0).astype(np.float32)


# Each shape is the signed distance in px of each pixel centre to its outline, positive inside.


def _blob(dx: FloatArray, dy: FloatArray, radius_px: float, rng: np.random.Generator) -> FloatArray:
    """Round object with a wavy outline, like a fruit, a pebble or a head."""
    amplitudes = _ROUGHNESS * rng.normal(size=_WAVES.size) / _WAVES
    phases = rng.uniform(0, 2 * np.pi, _WAVES.size)
    angle = np.arctan2(dy, dx)
    outline = np.ones(dx.shape)
    for wave, amplitude, phase in zip(_WAVES, amplitudes, phases, strict=True):
        outline += amplitude * np.cos(wave * angle + phase)
    squeeze = rng.uniform(0.6, 1.0)
    return np.asarray(radius_px * np.clip(outline, 0.2, None) - np.hypot(dx, dy / squeeze))


def _box(dx: FloatArray, dy: FloatArray, radius_px: float, rng: np.random.Generator) -> FloatArray:
    """Rotated rectangle, like a book or a carton."""
    across, along = _turned(dx, dy, rng)
    slimness = rng.uniform(0.4, 1.0)
    return np.minimum(radius_px - np.abs(along), slimness * radius_px - np.abs(across))


def _bar(dx: FloatArray, dy: FloatArray, radius_px: float, rng: np.random.Generator) -> FloatArray:
    """Long thin object, like a branch or a table leg."""
    across, along = _turned(dx, dy, rng)
    bend = rng.normal(scale=0.2) * along**2 / radius_px
    thickness = rng.uniform(0.05, 0.2) * radius_px
    return np.minimum(thickness - np.abs(across - bend), 2 * radius_px - np.abs(along))


def _ring(dx: FloatArray, dy: FloatArray, radius_px: float, rng: np.random.Generator) -> FloatArray:
    """Ring, like a handle or a wheel."""
    half_width = rng.uniform(0.1, 0.35) * radius_px
    return np.asarray(half_width - np.abs(np.hypot(dx, dy) - radius_px + half_width))


def _turned(
    dx: FloatArray, dy: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Coordinates rotated by a random angle."""
    angle = rng.uniform(0, np.pi)
    return dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)


SHAPES = {"blob": _blob, "box": _box, "bar": _bar, "ring": _ring}


def fine_mask(
    kind: str,
    shape: tuple[int, int],
    width_px: float,
    gap_px: float,
    rng: np.random.Generator,
) -> Coverage:
    """Mask of a fine structure of `FINE` over the whole frame: its parts and the gaps between them.

    Bars of random width have 0.6 to 1.4 times the given one, and so have the gaps between them.
    """
    rows, cols = shape
    dx, dy = np.meshgrid(np.arange(cols, dtype=float), np.arange(rows, dtype=float))
    inside_px = FINE[kind](dx, dy, (width_px, gap_px), rng)
    return np.clip(inside_px + 0.5, 0.0, 1.0).astype(np.float32)


def _bars(
    along: FloatArray, sizes: tuple[float, float], rng: np.random.Generator, spread: float = 0.0
) -> FloatArray:
    """Bars across a coordinate, with gaps between them."""
    count = int(np.ptp(along) / sum(sizes) * (1 + spread)) + 3
    lengths = np.tile(sizes, count) * rng.uniform(1 - spread, 1 + spread, 2 * count)
    edges = along.min() - rng.uniform(0, sum(sizes)) + np.concatenate([[0], np.cumsum(lengths)])
    middles = 0.5 * (edges[1:] + edges[:-1])
    heights = 0.5 * lengths * np.tile((1, -1), count)
    places = np.concatenate([edges, middles])
    heights = np.concatenate([np.zeros(edges.size), heights])
    order = np.argsort(places)
    return np.asarray(np.interp(along, places[order], heights[order]))


def _fence(
    dx: FloatArray, dy: FloatArray, sizes: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Upright bars of one width."""
    return _bars(dx, sizes, rng)


def _blinds(
    dx: FloatArray, dy: FloatArray, sizes: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Slats that lie nearly level."""
    return _bars(dy + rng.uniform(-0.2, 0.2) * dx, sizes, rng)


def _mesh(
    dx: FloatArray, dy: FloatArray, sizes: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Wires that cross at a right angle."""
    across, along = _turned(dx, dy, rng) if rng.random() < 0.5 else (dx, dy)
    return np.maximum(_bars(across, sizes, rng), _bars(along, sizes, rng))


def _stakes(
    dx: FloatArray, dy: FloatArray, sizes: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Upright bars of random width at random distances."""
    return _bars(dx, sizes, rng, spread=0.4)


def _chair(
    dx: FloatArray, dy: FloatArray, sizes: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Slats at a slant between a few rails."""
    slant = rng.uniform(-0.4, 0.4)
    rails = _bars(dy - slant * dx, (sizes[0], 6 * sizes[1]), rng, spread=0.4)
    return np.maximum(_bars(dx + slant * dy, sizes, rng), rails)


def _cables(
    dx: FloatArray, dy: FloatArray, sizes: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Cables that hang side by side in waves."""
    across, along = _turned(dx, dy, rng)
    waves = 2 * sizes[1] * np.sin(along / rng.uniform(4, 8) / sum(sizes) + rng.uniform(0, 6))
    return _bars(across + waves, sizes, rng, spread=0.4)


def _blocks(
    dx: FloatArray, dy: FloatArray, sizes: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Square patches at random, like a bush; the larger the gap, the fewer."""
    side = sizes[0]
    count = int(max(dx.max(), dy.max()) / side) + 2
    is_there = rng.random((count, count)) < side / sum(sizes)
    return np.asarray(is_there[(dy // side).astype(int), (dx // side).astype(int)] - 0.5)


def _foliage(
    dx: FloatArray, dy: FloatArray, sizes: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Leaves at random: slim ellipses in all directions."""
    inside = np.full(dx.shape, -np.inf)
    for _ in range(int(dx.size / (2.5 * sum(sizes) ** 2))):
        x, y = rng.uniform(0, dx.max()), rng.uniform(0, dy.max())
        across, along = _turned(dx - x, dy - y, rng)
        inside = np.maximum(inside, 0.5 * sizes[0] - np.hypot(across, 0.5 * along))
    return inside


FINE = {
    "fence": _fence,
    "blinds": _blinds,
    "mesh": _mesh,
    "stakes": _stakes,
    "chair": _chair,
    "cables": _cables,
    "blocks": _blocks,
    "foliage": _foliage,
}
