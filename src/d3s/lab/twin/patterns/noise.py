"""Noise with a power-law spectrum, as natural images have."""

import numpy as np

from d3s.lab.twin.patterns.lattice import Grid, Texels, seed_key
from d3s.lab.twin.patterns.spline_noise import FINEST_M, Octaves, spline_noise
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows


def power_law(
    grid: Grid, seed: int, exponent: float, *, rms: float = 0.5, coarsest_m: float = 0.0512
) -> Texels:
    """Noise around 1/2 with a 2-D power spectrum of 1/f^exponent, softly limited to 0 to 1.

    Parameters
    ----------
    grid
        Texels to compute.
    seed
        Seed of the pattern.
    exponent
        Exponent of the spectrum.
    rms
        RMS of all octaves before the limit, in units of half the range.
    coarsest_m
        Size of the largest features: small enough that every frame has the mean of the texture.
    """
    octaves = Octaves(coarsest_m, FINEST_M, exponent, rms)
    out = spline_noise(grid, seed_key(seed, 1), octaves)
    run_over_rows(_limit, grid.rows, out)
    return out


def noise(grid: Grid, seed: int) -> Texels:
    """Noise with the spectrum of natural images: 1/f^2, equal contrast at all sizes."""
    return power_law(grid, seed, 2.0)


def noise_white(grid: Grid, seed: int) -> Texels:
    """Noise with a flatter spectrum, 1/f: most contrast in the finest detail."""
    return power_law(grid, seed, 1.0, rms=1.1)


def noise_smooth(grid: Grid, seed: int) -> Texels:
    """Noise with a steep spectrum, 1/f^3: soft clouds with little detail."""
    return power_law(grid, seed, 3.0, coarsest_m=0.0128)


@compiled
def _limit(start: int, stop: int, out: Texels) -> None:
    # An odd function about 1/2, which keeps the mean at any contrast.
    one, half = np.float32(1.0), np.float32(0.5)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            value = out[i, j]
            out[i, j] = half + half * value / np.float32(np.sqrt(one + value * value))
