"""Patterns of scattered shapes: leaves, stone, gravel, grass, carpet, calibration target."""

import numpy as np

from d3s.lab.twin.patterns.lattice import Grid, Texels
from d3s.lab.twin.patterns.shapes import (
    BLADE,
    BOX,
    CRYSTAL,
    ELLIPSE,
    ShapeLayer,
    fractal,
    octave,
    paint_shapes,
)
from d3s.lab.twin.patterns.spline_noise import FINEST_M, Octaves, add_grain


def leaves(grid: Grid, seed: int) -> Texels:
    """Overlapping leaves and discs of all sizes from 4 cm down to 0.3 mm."""
    disc = ShapeLayer(
        kind=ELLIPSE,
        cell_m=0.04,
        half_length_m=(0.012, 0.024),
        aspect=(1.0, 1.8),
        density=0.8,
        grey=(0.10, 0.88),
        tilt=0.15,
    )
    leaf = disc._replace(
        kind=BLADE, half_length_m=(0.016, 0.032), aspect=(1.6, 3.0), density=0.9, tilt=0.12
    )
    layers = _alternate(fractal(disc, 8), fractal(leaf, 8))
    return _painted(grid, seed, 0.49, layers, Octaves(0.0064, FINEST_M, 1.8, 0.14))


def stone(grid: Grid, seed: int) -> Texels:
    """Granite: light and grey crystals of several sizes with flakes of black mica."""
    crystal = ShapeLayer(
        kind=CRYSTAL,
        cell_m=0.008,
        half_length_m=(0.0034, 0.0064),
        aspect=(1.0, 1.7),
        density=0.9,
        grey=(0.3, 0.8),
        split=0.5,
    )
    mica = crystal._replace(
        half_length_m=(0.0015, 0.004), aspect=(1.2, 2.5), density=0.8, grey=(0.10, 0.28), split=0.0
    )
    # Fine grains first, large crystals last.
    layers = [octave(crystal, 2), octave(crystal, 2), octave(crystal, 3)._replace(density=0.4)]
    layers += [octave(mica, 2), octave(crystal, 1), octave(mica, 1)]
    layers += [crystal._replace(density=0.3), mica._replace(density=0.3)]
    return _painted(grid, seed, 0.5, layers, Octaves(0.0256, FINEST_M, 1.75, 0.3))


def gravel(grid: Grid, seed: int) -> Texels:
    """Rounded stones lit from one side, with dark gaps, large ones among small ones."""
    pebble = ShapeLayer(
        kind=ELLIPSE,
        cell_m=0.012,
        half_length_m=(0.0045, 0.0085),
        aspect=(1.0, 1.6),
        density=0.85,
        grey=(0.36, 0.9),
        dome=0.55,
        tilt=0.3,
    )
    layers = [octave(pebble, level) for level in (3, 2, 1, 0, 1, 0)]
    return _painted(grid, seed, 0.28, layers, Octaves(0.0064, FINEST_M, 1.75, 0.3))


def grass(grid: Grid, seed: int) -> Texels:
    """Blades that lean one way or the other, dark below and light on top."""
    blade = ShapeLayer(
        kind=BLADE,
        cell_m=0.010,
        half_length_m=(0.014, 0.026),
        aspect=(9.0, 15.0),
        angle_rad=(1.0, 2.1),
        density=0.65,
        grey=(0.02, 0.42),
        tilt=0.1,
    )
    layers = [
        octave(blade, level)._replace(grey=(0.02 + 0.06 * number, 0.42 + 0.06 * number))
        for number, level in enumerate((0, 1, 0, 2, 1, 2))
    ]
    return _painted(grid, seed, 0.2, layers, Octaves(0.0032, FINEST_M, 1.7, 0.26))


def carpet(grid: Grid, seed: int) -> Texels:
    """Tufts of yarn that stand close together, every way round, with dark gaps between them."""
    tuft = ShapeLayer(
        kind=BLADE,
        cell_m=0.0028,
        half_length_m=(0.0014, 0.0035),
        aspect=(2.0, 4.0),
        density=0.95,
        grey=(0.34, 0.92),
        dome=0.5,
        tilt=0.25,
    )
    layers = [octave(tuft, level) for level in (0, 1, 0, 0)]
    return _painted(grid, seed, 0.3, layers, Octaves(0.0512, FINEST_M, 2.0, 0.35))


def calibration(grid: Grid, seed: int) -> Texels:
    """Black and white squares and dots of many sizes, dense, to be found again at any distance."""
    square = ShapeLayer(
        kind=BOX,
        cell_m=0.016,
        half_length_m=(0.005, 0.009),
        aspect=(1.0, 1.4),
        density=0.75,
        grey=(0.10, 0.86),
        split=1.0,
    )
    dot = square._replace(kind=ELLIPSE, aspect=(1.0, 1.2))
    layers = _alternate(fractal(square, 6), fractal(dot, 6))
    return _painted(grid, seed, 0.48, layers, Octaves(0.0016, FINEST_M, 2.0, 0.1))


def _alternate(even: list[ShapeLayer], odd: list[ShapeLayer]) -> list[ShapeLayer]:
    """Octaves of two layers in turn: even levels from the first list, odd from the second."""
    return [pair[level % 2] for level, pair in enumerate(zip(even, odd, strict=True))]


def _painted(
    grid: Grid, seed: int, ground: float, layers: list[ShapeLayer], grain: Octaves
) -> Texels:
    """Layers of shapes, lowest first, on a ground of one reflectance, with grain."""
    out = np.full((grid.rows, grid.cols), ground, np.float32)
    paint_shapes(out, grid, seed, layers)
    return add_grain(out, grid, seed, grain)
