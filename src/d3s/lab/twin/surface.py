"""Pixels of a textured surface: choose the rasters that a view needs, resample them, and shade."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from d3s.lab.twin.geometry import Window
from d3s.lab.twin.sampling import (
    RASTER_MARGIN,
    REACH_PX,
    Raster,
    finest_footprint,
    largest_pitch,
    sample_projected,
    sample_scaled,
)
from d3s.types import FloatArray, Image

# Separates the random numbers of the shading from those of the pattern with the same seed.
_SHADING_STREAM = int.from_bytes(b"shading")
_WAVES = 3
_SHORTEST_M, _LONGEST_M = 0.1, 0.4  # lengths of the waves on the surface


def _shading(matrix: FloatArray, window: Window, amplitude: float, seed: int) -> Image:
    """Slow variation of the light over a window, to be added to its pixels.

    The sum of three waves in random directions, 0.1 to 0.4 m long on the surface. Both views see
    the same shading at the same point.
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, _SHADING_STREAM)))
    length_m = np.exp(rng.uniform(np.log(_SHORTEST_M), np.log(_LONGEST_M), _WAVES))
    direction, phase = rng.uniform(0, 2 * np.pi, (2, _WAVES))
    share = rng.dirichlet(np.ones(_WAVES))
    col = np.arange(window.col, window.col + window.cols)
    row = np.arange(window.row, window.row + window.rows)[:, np.newaxis]
    x, y, w = (line[0] * col + line[1] * row + line[2] for line in matrix)
    total = np.zeros(window.shape)
    for k in range(_WAVES):
        along_m = (np.cos(direction[k]) * x + np.sin(direction[k]) * y) / w
        total += share[k] * np.cos(2 * np.pi * along_m / length_m[k] + phase[k])
    return (amplitude * total).astype(np.float32)


_MID_GREY = 0.5


class Surface(NamedTuple):
    """A texture with a physical size, at any resolution."""

    raster: Callable[[int, Window], Raster]
    """Texels at the pitch base_pitch_m * 2**level, numbered from the origin of the surface."""
    base_pitch_m: float  # of the finest raster
    angle_rad: float  # rotation on the surface, clockwise
    contrast: float  # factor on the difference from mid grey
    grey: float  # that mid grey becomes
    shading: float  # amplitude of the slow shading
    seed: int  # of the shading


def _rasters_for(
    surface: Surface, matrix: FloatArray, window: Window, finest_m: float
) -> list[Raster]:
    """Rasters that a window needs, each covering the part of the window that reads it."""
    reach = REACH_PX + 1
    corners = _corners(window.grown(reach, reach))
    w = corners @ matrix[2]
    largest = largest_pitch(finest_m)
    first, last = (
        max(0, int(np.floor(np.log2(largest / end / surface.base_pitch_m) + 1e-9)))
        for end in (w.max(), w.min())
    )
    rasters = []
    for level in range(first, last + 1):
        pitch = surface.base_pitch_m * 2.0**level
        far = largest / pitch * 1.01 if level > first else np.inf
        near = largest / (2 * pitch) * 0.99 if level < last else 0.0
        part = _clipped(_clipped(corners, matrix[2], -near), -matrix[2], far)
        if len(part):
            places = part @ matrix[:2].T / (part @ matrix[2])[:, np.newaxis] / pitch
            rasters.append(surface.raster(level, _covering(places)))
    return rasters


def _corners(window: Window) -> FloatArray:
    top, left = window.row, window.col
    bottom, right = top + window.rows - 1, left + window.cols - 1
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    return np.array([(x, y, 1.0) for x, y in corners])


def _clipped(polygon: FloatArray, line: FloatArray, offset: float) -> FloatArray:
    """Part of a convex polygon of points (x, y, 1) with line . point + offset >= 0."""
    if not np.isfinite(offset) or not len(polygon):
        return polygon
    height = polygon @ line + offset
    kept = []
    for i, (point, here) in enumerate(zip(polygon, height, strict=True)):
        before = height[i - 1]
        if (here >= 0) != (before >= 0):
            kept.append(polygon[i - 1] + (point - polygon[i - 1]) * before / (before - here))
        if here >= 0:
            kept.append(point)
    return np.array(kept)


def _covering(places: FloatArray) -> Window:
    """Texels around points (x, y), with a margin."""
    col, row = np.floor(places.min(axis=0)).astype(int).tolist()
    last_col, last_row = np.ceil(places.max(axis=0)).astype(int).tolist()
    covered = Window(row, col, last_row - row + 1, last_col - col + 1)
    return covered.grown(RASTER_MARGIN, RASTER_MARGIN)


def paint(surface: Surface, matrix: FloatArray, window: Window) -> Image:
    """Pixels of a window that sees a surface through a perfect lens, linear, full scale 1."""
    on_surface = matrix
    if surface.angle_rad:
        cos, sin = np.cos(surface.angle_rad), np.sin(surface.angle_rad)
        matrix = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]]) @ matrix
    finest_m = finest_footprint(matrix, window)
    rasters = _rasters_for(surface, matrix, window, finest_m)
    is_scaling = np.count_nonzero(matrix - np.diag(np.diag(matrix))) == np.count_nonzero(
        matrix[:2, 2]
    )
    # A magnified texture, with texels larger than pixels, is interpolated.
    is_fine = rasters[0].pitch_m <= finest_m / matrix[2, 2]
    if is_scaling and is_fine and len(rasters) == 1:
        pixels = sample_scaled(rasters[0], matrix, window)
    else:
        pixels = sample_projected(rasters, matrix, window, finest_m)
    if surface.contrast != 1 or surface.grey != _MID_GREY:
        difference = np.float32(surface.contrast) * (pixels - np.float32(_MID_GREY))
        pixels = np.float32(surface.grey) + difference
    if surface.shading:
        pixels = pixels + _shading(on_surface, window, surface.shading, surface.seed)
    return pixels
