"""Patterns with a grain direction: planed wood and bark."""

import math

import numpy as np

from d3s.lab.twin.patterns.lattice import Grid, Texels, cell_hash, seed_key, uneven_cell, uniform_53
from d3s.lab.twin.patterns.shapes import BLADE, ShapeLayer, octave, paint_shapes
from d3s.lab.twin.patterns.spline_noise import FINEST_M, Octaves, add_grain, spline_noise
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows

_RING_M = 0.005


def wood(grid: Grid, seed: int) -> Texels:
    """Planed wood: year rings that wander, long fibres, and dark pores along them."""
    bend = spline_noise(grid, seed_key(seed, 2), Octaves(0.0512, 0.0064, 4.5, 0.012), stretch=6.0)
    out = np.empty((grid.rows, grid.cols), np.float32)
    run_over_rows(_rings, grid.rows, out, bend, grid, seed_key(seed, 3))
    fibres = Octaves(0.0064, FINEST_M, 1.7, 0.26)
    bend *= np.float32(0.25)
    out *= np.float32(1.0) + spline_noise(
        grid, seed_key(seed, 4), fibres, stretch=12.0, bend_m=bend
    )
    along = (0.5 * math.pi - 0.04, 0.5 * math.pi + 0.04)
    pore = ShapeLayer(
        kind=BLADE,
        cell_m=0.004,
        half_length_m=(0.0015, 0.004),
        aspect=(14.0, 24.0),
        angle_rad=along,
        density=0.8,
        grey=(0.1, 0.3),
        opacity=0.7,
    )
    paint_shapes(out, grid, seed, [octave(pore, level) for level in (-1, 0, 1, 2)])
    return add_grain(out, grid, seed, Octaves(0.0064, FINEST_M, 1.8, 0.14))


@compiled
def _rings(start: int, stop: int, out: Texels, bend: Texels, grid: Grid, key: np.uint64) -> None:
    # A ring grows darker over the year; the next ring starts light.
    pitch = grid.pitch_m
    for i in range(start, stop):
        for j in range(out.shape[1]):
            x = ((grid.first_col + j) * pitch + bend[i, j]) / _RING_M
            ring, low, high = uneven_cell(key, x, 0.8, 0)
            span = high - low
            half = min(0.5, max(0.05, 0.5 * pitch / (_RING_M * span)))
            late = _late((x - low) / span, half)
            own = 0.12 * (uniform_53(cell_hash(key, ring, 1)) - 0.5)
            # In a texel larger than a ring, the grey of single rings averages out.
            own *= min(1.0, span * _RING_M / pitch)
            out[i, j] = np.float32(0.59 + own - 0.42 * late)


@compiled
def _late(t: float, half: float) -> float:
    # Mean of t^3 from t - half to t + half, repeated with period 1 (one ring).
    low, high = t - half, t + half
    total = min(1.0, high) ** 4 - max(0.0, low) ** 4
    if high > 1.0:
        total += (high - 1.0) ** 4
    if low < 0.0:
        total += 1.0 - (1.0 + low) ** 4
    return total / (8.0 * half)


def bark(grid: Grid, seed: int) -> Texels:
    """Bark: ridges and deep cracks that run down the trunk and part and meet again."""
    bend = spline_noise(grid, seed_key(seed, 2), Octaves(0.0128, 0.0032, 3.0, 0.0025), stretch=2.0)
    ridges = Octaves(0.0064, 0.0002, 2.8, 1.0)
    out = spline_noise(grid, seed_key(seed, 3), ridges, stretch=6.0, bend_m=bend)
    seen = {spacing for spacing, _ in ridges.resolved(grid.pitch_m)}
    lost = math.sqrt(sum(rms * rms for spacing, rms in ridges.strengths() if spacing not in seen))
    run_over_rows(_cracks, grid.rows, out, np.float32(0.25 + lost))
    return add_grain(out, grid, seed, Octaves(0.0512, FINEST_M, 1.8, 0.34))


@compiled
def _cracks(start: int, stop: int, out: Texels, soft: np.float32) -> None:
    # A crack lies where the noise crosses zero. Octaves too fine for the raster make the crack
    # softer by their RMS, with the same mean.
    one, depth = np.float32(1.0), np.float32(0.27)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            value = out[i, j]
            rise = value / np.float32(math.sqrt(one + value * value))
            open_ = np.float32(0.25) / soft / (one + (value / soft) * (value / soft))
            out[i, j] = np.float32(0.52) + np.float32(0.16) * rise - depth * open_
