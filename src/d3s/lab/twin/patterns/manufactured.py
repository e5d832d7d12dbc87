"""Patterns of manufactured surfaces: woven fabric and brick walls."""

import math
from typing import NamedTuple

import numpy as np

from d3s.lab.twin.patterns.lattice import (
    Grid,
    Texels,
    cell_hash,
    seed_key,
    uneven_cell,
    uniform_16,
    uniform_53,
)
from d3s.lab.twin.patterns.spline_noise import FINEST_M, Octaves, add_grain, spline_noise
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows

_THREAD_M = 0.0007
_SAMPLES = 16  # of the profile across a thread
_UNEVEN = 0.42  # largest displacement of a thread, in threads

_COURSE_M, _BRICK_M, _JOINT_M = 0.013, 0.036, 0.0016
_WALL = 0.46  # mean grey of bricks and mortar


def fabric(grid: Grid, seed: int) -> Texels:
    """Plain weave, each thread over and under the others, uneven in width, place and grey."""
    sway = Octaves(0.0128, 0.0016, 2.6, 0.00022)
    across = spline_noise(grid, seed_key(seed, 2), sway)
    down = spline_noise(grid, seed_key(seed, 3), sway)
    step = max(_THREAD_M / _SAMPLES, grid.pitch_m / 16.0)
    warp, first_x = _threads(
        grid.first_col, grid.cols, grid.pitch_m, step, seed_key(seed, 4), across
    )
    weft, first_y = _threads(grid.first_row, grid.rows, grid.pitch_m, step, seed_key(seed, 5), down)
    out = np.empty((grid.rows, grid.cols), np.float32)
    samples = _Samples(step, first_x, first_y)
    run_over_rows(_weave, grid.rows, out, warp, weft, across, down, grid, samples)
    return add_grain(out, grid, seed, Octaves(0.0256, FINEST_M, 1.8, 0.3))


def _threads(
    first: int, count: int, pitch_m: float, step_m: float, key: np.uint64, sway: Texels
) -> tuple[Texels, int]:
    """Profile across all threads of one direction, averaged over a texel, and its first sample.

    Four numbers per sample, with s = +1 and -1 for alternate threads: the grey of the thread, the
    swell of the threads that cross it, and both times s. A weave is a sum of products of such
    profiles, so averaging the profiles averages the weave.
    """
    width = max(1, round(pitch_m / step_m))
    low = math.floor((first * pitch_m + float(sway.min(initial=0.0))) / step_m) - width
    high = math.ceil(((first + count) * pitch_m + float(sway.max(initial=0.0))) / step_m) + width
    profile = np.empty((high - low + 2, 4), np.float32)
    _profile(profile, low, step_m, width, key)
    return profile, low


@compiled
def _profile(out: Texels, first: int, step: float, width: int, key: np.uint64) -> None:
    raw = np.empty((out.shape[0] + width, 4), np.float64)
    for n in range(raw.shape[0]):
        raw[n] = 0.0
        x = (first + n - 0.5 * (width - 1)) * step / _THREAD_M
        # The spacing of the threads varies, so the weave has no period.
        x += 1.6 * _wave(key, 1, x / 23.0) + 0.5 * _wave(key, 2, x / 7.0)
        thread, low, high = uneven_cell(key, x, _UNEVEN, 3)
        t = 2.0 * (x - low) / (high - low) - 1.0
        own = uniform_53(cell_hash(key, thread, 4)) - 0.5
        grey = 0.60 + 0.54 * own + 0.24 * _wave(key, 5, x / 11.0) + 0.15 * _wave(key, 6, x / 41.0)
        sign = 1.0 if thread % 2 == 0 else -1.0
        shade, swell = 1.0 - 0.6 * t * t * t * t, 1.0 - 0.4 * t * t
        raw[n, 0], raw[n, 1] = grey * shade, swell
        raw[n, 2], raw[n, 3] = grey * shade * sign, swell * sign
    for n in range(out.shape[0]):
        for k in range(4):
            total = 0.0
            for m in range(width):
                total += raw[n + m, k]
            out[n, k] = total / width


@compiled
def _wave(key: np.uint64, channel: int, x: float) -> float:
    # Smooth noise in one dimension, about -1 to 1.
    node = math.floor(x)
    t = x - node
    t = t * t * (3.0 - 2.0 * t)
    here = uniform_53(cell_hash(key, node, channel + 100))
    there = uniform_53(cell_hash(key, node + 1, channel + 100))
    return 2.0 * (here + t * (there - here)) - 1.0


class _Samples(NamedTuple):
    """Sampling of the profiles: step in metres, number of the first sample of warp and weft."""

    step_m: float
    first_x: int
    first_y: int


@compiled
def _weave(
    start: int,
    stop: int,
    out: Texels,
    warp: Texels,
    weft: Texels,
    across: Texels,
    down: Texels,
    grid: Grid,
    samples: _Samples,
) -> None:
    row, col, pitch = grid.first_row, grid.first_col, grid.pitch_m
    per_step, half = 1.0 / samples.step_m, np.float32(0.5)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            x = ((col + j) * pitch + across[i, j]) * per_step
            y = ((row + i) * pitch + down[i, j]) * per_step
            m, n = math.floor(x), math.floor(y)
            s, t = np.float32(x - m), np.float32(y - n)
            m, n = m - samples.first_x, n - samples.first_y
            a = warp[m, 0] + s * (warp[m + 1, 0] - warp[m, 0])
            d = warp[m, 1] + s * (warp[m + 1, 1] - warp[m, 1])
            sa = warp[m, 2] + s * (warp[m + 1, 2] - warp[m, 2])
            sd = warp[m, 3] + s * (warp[m + 1, 3] - warp[m, 3])
            b = weft[n, 0] + t * (weft[n + 1, 0] - weft[n, 0])
            c = weft[n, 1] + t * (weft[n + 1, 1] - weft[n, 1])
            sb = weft[n, 2] + t * (weft[n + 1, 2] - weft[n, 2])
            sc = weft[n, 3] + t * (weft[n + 1, 3] - weft[n, 3])
            # The warp is on top with weight (1 + ss) / 2, the weft with (1 - ss) / 2.
            out[i, j] = half * (a * c + b * d + sa * sc - sb * sd)


def brick(grid: Grid, seed: int) -> Texels:
    """Courses of bricks with chipped edges, no two of one grey, rough, in light mortar."""
    chips = Octaves(0.0128, 0.0002, 2.4, 0.0007)
    across = spline_noise(grid, seed_key(seed, 2), chips)
    down = spline_noise(grid, seed_key(seed, 3), chips)
    out = np.empty((grid.rows, grid.cols), np.float32)
    run_over_rows(_lay, grid.rows, out, across, down, grid, seed_key(seed, 4))
    return add_grain(out, grid, seed, Octaves(0.0256, FINEST_M, 1.5, 0.36))


@compiled
def _within(x: float, low: float, high: float, pitch: float) -> float:
    # Share of the texel around x that lies between low and high.
    return max(0.0, min(high, x + 0.5 * pitch) - max(low, x - 0.5 * pitch)) / pitch


@compiled
def _lay(
    start: int,
    stop: int,
    out: Texels,
    across: Texels,
    down: Texels,
    grid: Grid,
    key: np.uint64,
) -> None:
    row, col, pitch = grid.first_row, grid.first_col, grid.pitch_m
    gap = 0.5 * _JOINT_M
    # In a texel larger than a course, single bricks average out.
    seen, texel = min(1.0, _COURSE_M / pitch), min(pitch, 0.4 * _COURSE_M)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            y, x = (row + i) * pitch + down[i, j], (col + j) * pitch + across[i, j]
            course, top, bottom = uneven_cell(key, y / _COURSE_M, 0.35, -7)
            shift = uniform_53(cell_hash(key, course, 1 << 20))
            number, left, right = uneven_cell(key, x / _BRICK_M + shift, 0.35, course)
            look = cell_hash(key, number, course + (1 << 30))
            clay = _within(y, top * _COURSE_M + gap, bottom * _COURSE_M - gap, texel)
            low, high = (left - shift) * _BRICK_M + gap, (right - shift) * _BRICK_M - gap
            clay *= _within(x, low, high, texel)
            # Each brick has its own grey, and is burnt more at one end.
            burnt = 0.16 * (uniform_16(look, 1) - 0.5) * (x - low) / _BRICK_M
            grey = 0.24 + 0.36 * uniform_16(look, 0) + burnt
            out[i, j] = np.float32(_WALL + seen * (0.66 + clay * (grey - 0.66) - _WALL))
