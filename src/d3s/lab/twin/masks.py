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
