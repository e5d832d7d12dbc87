"""Masks of random objects, with edges of one pixel."""

import numpy as np
from numpy.typing import NDArray

from d3s.types import FloatArray

Coverage = NDArray[np.float32]
"""Share of each pixel that an object covers (rows, cols), 0 to 1."""


def blob(
    shape: tuple[int, int],
    centre_px: tuple[float, float],
    radius_px: float,
    rng: np.random.Generator,
    *,
    roughness: float = 0.25,
) -> Coverage:
    """Round object with a wavy outline, like a fruit, a pebble or a head.

    Parameters
    ----------
    shape
        Rows and columns of the frame.
    centre_px
        Centre (x, y), in pixels.
    radius_px
        Mean radius, in pixels.
    rng
        Source of the random form.
    roughness
        Waviness: wave k (2 to 8 per turn) has an amplitude of sigma roughness / k, in radii.
    """
    dx, dy = _offsets(shape, centre_px)
    waves = np.arange(2, 9)
    size = roughness * rng.normal(size=waves.size) / waves
    angle = np.arctan2(dy, dx)
    outline = np.ones(shape)
    for wave, amplitude, phase in zip(
        waves, size, rng.uniform(0, 2 * np.pi, waves.size), strict=True
    ):
        outline += amplitude * np.cos(wave * angle + phase)
    squeeze = rng.uniform(0.6, 1.0)
    return _edge(radius_px * np.clip(outline, 0.2, None) - np.hypot(dx, dy / squeeze))


def box(
    shape: tuple[int, int],
    centre_px: tuple[float, float],
    radius_px: float,
    rng: np.random.Generator,
) -> Coverage:
    """Rotated rectangle, like a book or a carton.

    Parameters
    ----------
    shape
        Rows and columns of the frame.
    centre_px
        Centre (x, y), in pixels.
    radius_px
        Half the longer side, in pixels.
    rng
        Source of the random form.
    """
    across, along = _turned(shape, centre_px, rng)
    slimness = rng.uniform(0.4, 1.0)
    inside = np.minimum(radius_px - np.abs(along), slimness * radius_px - np.abs(across))
    return _edge(inside)


def bar(
    shape: tuple[int, int],
    centre_px: tuple[float, float],
    radius_px: float,
    rng: np.random.Generator,
) -> Coverage:
    """Long thin object, like a branch or a table leg.

    Parameters
    ----------
    shape
        Rows and columns of the frame.
    centre_px
        Centre (x, y), in pixels.
    radius_px
        A quarter of the length, in pixels.
    rng
        Source of the random form.
    """
    across, along = _turned(shape, centre_px, rng)
    bend = rng.normal(scale=0.2) * along**2 / radius_px
    thickness = rng.uniform(0.05, 0.2) * radius_px
    return _edge(np.minimum(thickness - np.abs(across - bend), 2 * radius_px - np.abs(along)))


def ring(
    shape: tuple[int, int],
    centre_px: tuple[float, float],
    radius_px: float,
    rng: np.random.Generator,
) -> Coverage:
    """Ring, like a handle or a wheel.

    Parameters
    ----------
    shape
        Rows and columns of the frame.
    centre_px
        Centre (x, y), in pixels.
    radius_px
        Outer radius, in pixels.
    rng
        Source of the random form.
    """
    dx, dy = _offsets(shape, centre_px)
    half_width = rng.uniform(0.1, 0.35) * radius_px
    return _edge(half_width - np.abs(np.hypot(dx, dy) - radius_px + half_width))


def _offsets(
    shape: tuple[int, int], centre_px: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    x = np.arange(shape[1], dtype=np.float64)[np.newaxis, :] - centre_px[0]
    y = np.arange(shape[0], dtype=np.float64)[:, np.newaxis] - centre_px[1]
    return np.broadcast_to(x, shape), np.broadcast_to(y, shape)


def _turned(
    shape: tuple[int, int], centre_px: tuple[float, float], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    dx, dy = _offsets(shape, centre_px)
    angle = rng.uniform(0, np.pi)
    return dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)


def _edge(depth_inside_px: FloatArray) -> Coverage:
    """Coverage from the signed distance of each pixel centre to the outline, positive inside."""
    return np.clip(depth_inside_px + 0.5, 0.0, 1.0).astype(np.float32)


SHAPES = {"blob": blob, "box": box, "bar": bar, "ring": ring}
