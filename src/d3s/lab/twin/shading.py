"""Shading: slow variation of the light on a surface."""

import numpy as np

from d3s.lab.twin.geometry import Window
from d3s.types import FloatArray, Image

# Separates the random numbers of the shading from those of the pattern with the same seed.
_STREAM = int.from_bytes(b"shading")
_WAVES = 3
_SHORTEST_M, _LONGEST_M = 0.1, 0.4  # lengths of the waves on the surface


def shading(matrix: FloatArray, window: Window, amplitude: float, seed: int) -> Image:
    """Slow variation of the light over a window, to be added to its pixels.

    The sum of three waves in random directions, 0.1 to 0.4 m long on the surface. Both views see
    the same shading at the same point.

    Parameters
    ----------
    matrix
        (3, 3) homography from pixels to metres on the surface.
    window
        Pixels to fill.
    amplitude
        Largest difference from the mean.
    seed
        Seed of lengths, directions and phases.
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, _STREAM)))
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
