"""Interpolation kernel that adds no blur.

The camera measures blur, so resampling must not add any. The kernel has one set of weights for each
fraction of a pixel, all with the same frequency response: flat up to 0.35 cycles per pixel, where
the camera has signal, and falling to 0 at half a cycle per pixel. Sharpness and noise are therefore
equal in both views and in all parts of a view, wherever the samples lie between sensor pixels.
"""

from functools import cache
from typing import Any

import numpy as np

from d3s.runtime.compile import part
from d3s.runtime.simd import load_8, reduce_sum
from d3s.types import Image

# Kernel length: two SIMD vectors. With 8 weights no response is flat to 1 % up to 0.35 cycles per
# pixel and equal for all fractions; 12 weights nearly reach it.
TAPS = 16
# Taps before and behind the pixel at or before the sample position.
BEFORE, BEHIND = TAPS // 2 - 1, TAPS // 2
FLAT_UP_TO = 0.36  # cycles per pixel; beyond, the response falls like a squared cosine
# Weight of errors in the flat part of the response. A larger weight makes the response flatter, but
# less equal between fractions.
_FLAT_WEIGHT_UP_TO, _FLAT_WEIGHT = 0.35, 30.0
PHASES = 1024  # tabulated fractions of a pixel; the nearest is at most 0.0005 px away


@cache
def weights() -> Image:
    """Interpolation weights for each fraction of a pixel from 0 to 1, (fractions, TAPS).

    The first tap is `BEFORE` pixels before the sample. The weights are a least-squares fit to the
    desired frequency response, subject to a sum of 1 and first and second moments of 0: no shift
    and no blur.
    """
    cycles = np.linspace(0.0, 0.5, 129)
    fall = np.clip((cycles - FLAT_UP_TO) / (0.5 - FLAT_UP_TO), 0.0, 1.0)
    response = np.cos(0.5 * np.pi * fall) ** 2
    weight = np.where(cycles <= _FLAT_WEIGHT_UP_TO, _FLAT_WEIGHT, 1.0)
    offsets = np.arange(-BEFORE, BEHIND + 1) - np.arange(PHASES + 1)[:, np.newaxis] / PHASES
    # Least squares over the frequencies and over the real and imaginary part of
    # exp(-2 pi i cycles offset), with Lagrange multipliers for the moments. The product of two such
    # waves depends on the distance of their taps only.
    distance = np.arange(TAPS)[:, np.newaxis] - np.arange(TAPS)
    products = np.cos(2 * np.pi * distance[..., np.newaxis] * cycles) @ weight
    sides = np.cos(2 * np.pi * offsets[..., np.newaxis] * cycles) @ (weight * response)
    moments = np.stack([offsets**0, offsets, offsets**2], axis=1)
    system = np.zeros((PHASES + 1, TAPS + 3, TAPS + 3))
    system[:, :TAPS, :TAPS] = products
    system[:, TAPS:, :TAPS] = moments
    system[:, :TAPS, TAPS:] = moments.transpose(0, 2, 1)
    right = np.zeros((PHASES + 1, TAPS + 3, 1))
    right[:, :TAPS, 0], right[:, TAPS, 0] = sides, 1.0
    return np.ascontiguousarray(np.linalg.solve(system, right)[:, :TAPS, 0], dtype=np.float32)


@part
def is_plateau(raw: Image, row: int, col: int, limit: np.float32) -> bool:
    """Whether a pixel and its eight neighbours have the value `limit`.

    The pixel is not at the border of the frame; `limit` is the smallest or largest value of the
    frame.
    """
    for i in range(row - 1, row + 2):
        for j in range(col - 1, col + 2):
            if raw[i, j] != limit:
                return False
    return True


@part
def dot_16(values: Image, place: int, table: Image, weight: int) -> Any:
    """Dot product of 16 values and 16 weights.

    `table` is `weights` in one dimension; `place` and `weight` are the indices of the first value
    and weight.
    """
    near = load_8(values, place) * load_8(table, weight)
    far = load_8(values, place + 8) * load_8(table, weight + 8)
    return reduce_sum(near + far)
