"""Textures of things that lie about: leaves, stone, gravel, grass and carpet."""

import math

import numpy as np

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import over_rows
from d3s.scene.grid import Grid
from d3s.scene.hashing import seed_key
from d3s.scene.lattice import FINEST_M, Octaves, Texels, spline_noise
from d3s.scene.patterns.layers import BLADE, BOX, CRYSTAL, ELLIPSE, Layer, fractal, octave
from d3s.scene.patterns.shapes import paint

_ANY = (0.0, math.pi)


def leaves(grid: Grid, seed: int) -> Texels:
    """Overlapping leaves and discs of all sizes from 4 cm down to 0.3 mm."""
    disc = Layer(ELLIPSE, 0.04, (0.012, 0.024), (1.0, 1.8), _ANY, 0.8, (0.10, 0.88), tilt=0.15)
    leaf = Layer(BLADE, 0.04, (0.016, 0.032), (1.6, 3.0), _ANY, 0.9, (0.10, 0.88), tilt=0.12)
    layers = alternate(fractal(disc, 8), fractal(leaf, 8))
    return painted(grid, seed, 0.49, layers, Octaves(0.0064, FINEST_M, 1.8, 0.14))


def stone(grid: Grid, seed: int) -> Texels:
    """Granite: light and grey crystals of several sizes with flakes of black mica."""
    crystal = Layer(CRYSTAL, 0.008, (0.0034, 0.0064), (1.0, 1.7), _ANY, 0.9, (0.3, 0.8), split=0.5)
    mica = Layer(CRYSTAL, 0.008, (0.0015, 0.004), (1.2, 2.5), _ANY, 0.8, (0.10, 0.28))
    # The fine-grained ground first, the large crystals in it last.
    layers = [octave(crystal, 2), octave(crystal, 2), octave(crystal, 3)._replace(density=0.4)]
    layers += [octave(mica, 2), octave(crystal, 1), octave(mica, 1)]
    layers += [crystal._replace(density=0.3), mica._replace(density=0.3)]
    return painted(grid, seed, 0.5, layers, Octaves(0.0256, FINEST_M, 1.75, 0.3))


def gravel(grid: Grid, seed: int) -> Texels:
    """Rounded stones lit from one side, with dark gaps, large ones among small ones."""
    pebble = Layer(
        ELLIPSE, 0.012, (0.0045, 0.0085), (1.0, 1.6), _ANY, 0.85, (0.36, 0.9), dome=0.55, tilt=0.3
    )
    layers = [octave(pebble, level) for level in (3, 2, 1, 0, 1, 0)]
    return painted(grid, seed, 0.28, layers, Octaves(0.0064, FINEST_M, 1.75, 0.3))


def grass(grid: Grid, seed: int) -> Texels:
    """Blades that lean one way or the other, dark below and light on top."""
    blade = Layer(BLADE, 0.010, (0.014, 0.026), (9.0, 15.0), (1.0, 2.1), 0.65, (0.0, 0.4), tilt=0.1)
    layers = []
    for number, level in enumerate((0, 1, 0, 2, 1, 2)):
        light = 0.06 * number
        layers.append(octave(blade, level)._replace(grey=(0.02 + light, 0.42 + light)))
    return painted(grid, seed, 0.2, layers, Octaves(0.0032, FINEST_M, 1.7, 0.26))


def carpet(grid: Grid, seed: int) -> Texels:
    """Tufts of yarn that stand close together, every way round, with dark gaps between them."""
    tuft = Layer(
        BLADE, 0.0028, (0.0014, 0.0035), (2.0, 4.0), _ANY, 0.95, (0.34, 0.92), dome=0.5, tilt=0.25
    )
    layers = [octave(tuft, level) for level in (0, 1, 0, 0)]
    return painted(grid, seed, 0.3, layers, Octaves(0.0512, FINEST_M, 2.0, 0.35))


def calibration(grid: Grid, seed: int) -> Texels:
    """Black and white squares and dots of many sizes, dense, to be found again at any distance."""
    ends = (0.10, 0.86)
    square = Layer(BOX, 0.016, (0.005, 0.009), (1.0, 1.4), _ANY, 0.75, ends, split=1.0)
    dot = Layer(ELLIPSE, 0.016, (0.005, 0.009), (1.0, 1.2), _ANY, 0.75, ends, split=1.0)
    layers = alternate(fractal(square, 6), fractal(dot, 6))
    return painted(grid, seed, 0.48, layers, Octaves(0.0016, FINEST_M, 2.0, 0.1))


def alternate(even: list[Layer], odd: list[Layer]) -> list[Layer]:
    """Octaves that are of one kind and of the other in turn."""
    return [pair[level % 2] for level, pair in enumerate(zip(even, odd, strict=True))]


def painted(grid: Grid, seed: int, ground: float, layers: list[Layer], grain: Octaves) -> Texels:
    """Layers on a ground, with a grain that makes every texel lighter or darker by its share."""
    out = np.full((grid.rows, grid.cols), ground, np.float32)
    paint(out, grid, seed, layers)
    return grained(out, grid, seed, grain)


def grained(out: Texels, grid: Grid, seed: int, grain: Octaves) -> Texels:
    """The same texels, each lighter or darker by a fractal grain, within 0 and 1."""
    over_rows(_grain, grid.rows, out, spline_noise(grid, seed_key(seed, 1), grain))
    return out


@compiled
def _grain(start: int, stop: int, out: Texels, grain: Texels) -> None:
    # In proportion to the grey, and less on what is light already: what stays between 0 and 1 by
    # itself is not cut off, which would change the mean.
    zero, one, two = np.float32(0.0), np.float32(1.0), np.float32(2.0)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            grey = min(one, max(zero, out[i, j]))
            out[i, j] = min(one, max(zero, grey + grain[i, j] * two * grey * (one - grey)))
