"""Layers of random shapes painted over one another, and the patterns that are made of them.

One shape lies in each cell of a lattice; a `ShapeLayer` says how large, how many and how grey the
shapes are. Shapes too small for a texel are painted as the mean grey of their layer.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from d3s.lab.twin.patterns.noise import (
    FINEST_M,
    Grid,
    Octaves,
    Texels,
    add_grain,
    cell_hash,
    mix_bits,
    seed_key,
    spline_noise,
    uneven_cell,
    uniform_16,
    uniform_53,
)
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows

ELLIPSE, BLADE, BOX, CRYSTAL = range(4)

# Share of its bounding box 2a x 2b that each kind of shape fills; measured for the crystal.
_FILL = {ELLIPSE: math.pi / 4.0, BLADE: 2.0 / 3.0, BOX: 1.0, CRYSTAL: 0.83}

# Offsets to the hash of a cell, for the look and the form of its shape.
_LOOK, _FORM = 1, 2

# Directions are multiples of pi / _TURNS: a table is faster than cos and sin.
_TURNS = 512
_COS = np.cos(np.arange(2 * _TURNS) * (math.pi / _TURNS))
_SIN = np.sin(np.arange(2 * _TURNS) * (math.pi / _TURNS))


class ShapeLayer(NamedTuple):
    """Shapes of similar size. Pairs are ranges of uniform random numbers.

    The grey of a shape lies between the two values of `grey`: `split` from 0 to 1 moves greys to
    the ends of the range. `dome` darkens a shape towards its edge, `tilt` towards its lower right.
    `opacity` is the share hidden of what lies below.
    """

    kind: int
    cell_m: float  # side of a cell of the lattice
    half_length_m: tuple[float, float]  # along the shape
    aspect: tuple[float, float]  # length over width
    density: float  # share of cells with a shape
    grey: tuple[float, float]
    angle_rad: tuple[float, float] = (0.0, math.pi)  # any direction
    split: float = 0.0
    dome: float = 0.0
    tilt: float = 0.0
    opacity: float = 1.0

    @property
    def thin_m(self) -> float:
        """Half the width of a shape of mean length and aspect, in metres."""
        return sum(self.half_length_m) / 2.0 / (sum(self.aspect) / 2.0)

    @property
    def mean_grey(self) -> float:
        """Mean grey of the shapes, for texels much larger than a shape."""
        low, high = self.grey
        u = (np.arange(256) + 0.5) / 256.0
        ends = u * u * (3.0 - 2.0 * u)
        moved = u + self.split * (ends * ends * (3.0 - 2.0 * ends) - u)
        plain = low + (high - low) * moved.mean()
        # Over a disc, the mean of the squared distance from the centre is 1/2.
        return float(plain * (1.0 - 0.5 * self.dome))

    @property
    def cover(self) -> float:
        """Share of the surface that the layer hides, 0 to 1."""
        (short, long), (round_, slim) = self.half_length_m, self.aspect
        square = (short * short + short * long + long * long) / 3.0
        inverse = math.log(slim / round_) / (slim - round_) if slim > round_ else 1.0 / slim
        area = 4.0 * _FILL[self.kind] * square * inverse
        # Shapes of neighbouring cells overlap nearly as if placed independently.
        return self.opacity * (1.0 - math.exp(-self.density * area / self.cell_m**2))


def octave(layer: ShapeLayer, level: int) -> ShapeLayer:
    """Layer with all lengths halved `level` times."""
    scale = 0.5**level
    short, long = layer.half_length_m
    return layer._replace(cell_m=layer.cell_m * scale, half_length_m=(short * scale, long * scale))


def fractal(layer: ShapeLayer, levels: int) -> list[ShapeLayer]:
    """Octaves of a layer, coarse to fine, with equal visible area.

    Of n octaves the last hides 1/n of the surface, the one before 1/(n - 1), and so on.
    """
    octaves = [octave(layer, level) for level in range(levels)]
    full = -math.log(1.0 - min(0.999, layer._replace(density=1.0, opacity=1.0).cover))
    hidden = [1.0 / (level + 1.0) for level in range(levels)]
    densities = [-math.log(max(1e-9, 1.0 - share)) / full for share in hidden]
    return [
        octave_._replace(density=min(layer.density, density))
        for octave_, density in zip(octaves, densities, strict=True)
    ]


class Shape(NamedTuple):
    """One shape, in texels: half-lengths a and b, their inverse squares, direction and look."""

    a: np.float32
    b: np.float32
    a2: np.float32
    b2: np.float32
    cos: np.float32
    sin: np.float32
    cut_1: np.float32  # two more pairs of edges cut the corners of a crystal
    cut_2: np.float32
    grey: np.float32
    dome: np.float32
    slope: np.float32
    opacity: np.float32


def paint_shapes(out: Texels, grid: Grid, seed: int, layers: list[ShapeLayer]) -> None:
    """Paint layers over the texels, in place, first to last.

    A layer whose shapes are too small for the texels is painted as its mean grey.
    """
    for number, layer in enumerate(layers):
        key = seed_key(seed, 7000 + number)
        if layer.thin_m < 0.2 * grid.pitch_m or layer.cell_m < 1.2 * grid.pitch_m:
            cover = np.float32(layer.cover)
            out += cover * (np.float32(layer.mean_grey) - out)
        elif layer.half_length_m[1] < 1.0 * grid.pitch_m:
            run_over_rows(_dot, grid.rows, out, grid, key, layer, _FILL[layer.kind])
        else:
            run_over_rows(_paint, grid.rows, out, grid, key, layer)


@compiled
def _cells(first: int, count: int, pitch: float, cell: float, reach: float) -> tuple[int, int]:
    # Cells whose shapes may touch a run of texels: the first, and one past the last.
    low = math.floor((first * pitch - reach) / cell)
    return low, math.floor(((first + count - 1) * pitch + reach) / cell) + 1


@compiled
def _between(range_: tuple[float, float], u: float) -> float:
    return range_[0] + (range_[1] - range_[0]) * u


@compiled
def _grey(layer: ShapeLayer, u: float) -> np.float32:
    ends = u * u * (3.0 - 2.0 * u)
    u += layer.split * (ends * ends * (3.0 - 2.0 * ends) - u)
    return np.float32(_between(layer.grey, u))


@compiled
def _dot(
    start: int, stop: int, out: Texels, grid: Grid, key: np.uint64, layer: ShapeLayer, fill: float
) -> None:
    # Shapes smaller than a texel: each is shared among the four texels around its centre.
    row, col, pitch = grid.first_row, grid.first_col, grid.pitch_m
    cell, cols, per_pitch = layer.cell_m, out.shape[1], 1.0 / pitch
    top, bottom = _cells(row + start, stop - start, pitch, cell, pitch)
    left, right = _cells(col, cols, pitch, cell, pitch)
    share = 4.0 * fill * layer.opacity * per_pitch * per_pitch
    shade = np.float32(1.0 - 0.5 * layer.dome)
    for r in range(top, bottom):
        for c in range(left, right):
            bits = cell_hash(key, r, c)
            if uniform_16(bits, 3) < layer.density:
                y = (r + uniform_16(bits, 0)) * cell * per_pitch
                x = (c + uniform_16(bits, 1)) * cell * per_pitch
                look = mix_bits(bits + np.uint64(_LOOK))
                a = _between(layer.half_length_m, uniform_16(look, 0))
                cover = min(1.0, share * a * a / _between(layer.aspect, uniform_16(look, 1)))
                grey = _grey(layer, uniform_16(look, 3)) * shade
                i0, j0 = math.floor(y), math.floor(x)
                for i in range(max(start, i0 - row), min(stop, i0 - row + 2)):
                    part_y = cover * (1.0 - abs(y - (row + i)))
                    for j in range(max(0, j0 - col), min(cols, j0 - col + 2)):
                        weight = np.float32(part_y * (1.0 - abs(x - (col + j))))
                        out[i, j] += weight * (grey - out[i, j])


@compiled
def _paint(
    start: int, stop: int, out: Texels, grid: Grid, key: np.uint64, layer: ShapeLayer
) -> None:
    # A shape may reach beyond its cell by its length. The order of the cells does not depend on the
    # region, so that the same one of two overlapping shapes is on top in every raster.
    reach = layer.half_length_m[1] * 1.5 + grid.pitch_m
    cell = layer.cell_m
    top, bottom = _cells(grid.first_row + start, stop - start, grid.pitch_m, cell, reach)
    left, right = _cells(grid.first_col, out.shape[1], grid.pitch_m, cell, reach)
    for r in range(top, bottom):
        for c in range(left, right):
            bits = cell_hash(key, r, c)
            if uniform_16(bits, 3) < layer.density:
                y, x = (r + uniform_16(bits, 0)) * cell, (c + uniform_16(bits, 1)) * cell
                _paint_one(start, stop, out, grid, x, y, bits, layer)


@compiled
def _paint_one(
    start: int,
    stop: int,
    out: Texels,
    grid: Grid,
    x: float,
    y: float,
    bits: np.uint64,
    layer: ShapeLayer,
) -> None:
    # The shape of one cell, centred at (x, y) in metres.
    row, col, pitch = grid.first_row, grid.first_col, grid.pitch_m
    per_pitch = 1.0 / pitch
    look = mix_bits(bits + np.uint64(_LOOK))
    a = _between(layer.half_length_m, uniform_16(look, 0))
    b = a / _between(layer.aspect, uniform_16(look, 1))
    # A shape thinner than a texel is painted one texel wide, and weaker by the same factor.
    half = 0.5 * pitch
    faint = 1.0
    if b < half:
        faint, b = b / half, half
    if a < half:
        faint, a = faint * a / half, half
    tall, wide = b + half, a + half
    angle = np.int64(_between(layer.angle_rad, uniform_16(look, 2)) * (_TURNS / math.pi)) % (
        2 * _TURNS
    )
    cos, sin = _COS[angle], _SIN[angle]
    down = abs(sin) * wide + abs(cos) * tall
    across = abs(cos) * wide + abs(sin) * tall
    first = max(start, math.ceil((y - down) * per_pitch) - row)
    last = min(stop - 1, math.floor((y + down) * per_pitch) - row)
    left, right = (x - across) * per_pitch, (x + across) * per_pitch
    if first > last or right < col or left > col + out.shape[1] - 1:
        return

    # In texels from here on: numbers small enough for single precision.
    x, y, a, b = x * per_pitch, y * per_pitch, a * per_pitch, b * per_pitch
    wide, tall = wide * per_pitch + 0.1, tall * per_pitch + 0.1
    shape = _shape(layer, bits, a, b, cos, sin, faint)
    large = right - left > 6.0
    per_cos, per_sin = 1.0 / (cos + 1e-9), 1.0 / (sin + 1e-9)
    for i in range(first, last + 1):
        dy = row + i - y
        low, high = left, right
        if large:
            # Part of the row within the rotated bounding box of the shape.
            middle, spread = x - dy * sin * per_cos, abs(wide * per_cos)
            low, high = max(low, middle - spread), min(high, middle + spread)
            middle, spread = x + dy * cos * per_sin, abs(tall * per_sin)
            low, high = max(low, middle - spread), min(high, middle + spread)
        begin = max(0, math.ceil(low) - col)
        end = min(out.shape[1], math.floor(high) - col + 1)
        _paint_row(layer.kind, out[i], begin, end, col, x, np.float32(dy), shape)


@compiled
def _shape(
    layer: ShapeLayer, bits: np.uint64, a: float, b: float, cos: float, sin: float, faint: float
) -> Shape:
    # Half-lengths in texels; `faint` weakens a shape that was widened to one texel.
    look, form = mix_bits(bits + np.uint64(_LOOK)), mix_bits(bits + np.uint64(_FORM))
    return Shape(
        np.float32(a),
        np.float32(b),
        np.float32(1.0 / (a * a)),
        np.float32(1.0 / (b * b)),
        np.float32(cos),
        np.float32(sin),
        np.float32(0.7071 * (a + b) * (0.62 + 0.3 * uniform_16(form, 0))),
        np.float32(0.7071 * (a + b) * (0.62 + 0.3 * uniform_16(form, 1))),
        _grey(layer, uniform_16(look, 3)),
        np.float32(layer.dome),
        np.float32(layer.tilt * (0.5 + uniform_16(form, 2)) * 0.7071 / a),
        np.float32(layer.opacity * faint),
    )


@compiled
def _paint_row(
    kind: int, out: Texels, begin: int, end: int, col: int, middle: float, y: np.float32, s: Shape
) -> None:
    one, diagonal = np.float32(1.0), np.float32(0.7071)
    for j in range(begin, end):
        x = np.float32(col + j - middle)
        p, q = x * s.cos + y * s.sin, y * s.cos - x * s.sin
        pa, qb = p * p * s.a2, q * q * s.b2
        # Distance to the outline in texels, positive inside.
        if kind == ELLIPSE:  # pa + qb = 1, to first order
            steep = np.float32(2.0) * np.sqrt(pa * s.a2 + qb * s.b2) + np.float32(1e-6)
            inside = (one - pa - qb) / steep
        elif kind == BLADE:
            inside = s.b * (one - pa) - abs(q)
        else:
            inside = min(s.a - abs(p), s.b - abs(q))
            if kind == CRYSTAL:
                inside = min(inside, s.cut_1 - diagonal * abs(p + q))
                inside = min(inside, s.cut_2 - diagonal * abs(p - q))
        out[j] = _over(out[j], inside, pa + qb, x + y, s)


@compiled
def _over(below: np.float32, inside: np.float32, away: np.float32, x: np.float32, s: Shape) -> Any:
    # Grey of a texel whose centre lies `inside` texels within the outline of the shape.
    one = np.float32(1.0)
    cover = min(one, max(np.float32(0.0), np.float32(0.5) + inside)) * s.opacity
    shade = one - s.dome * min(one, away) - s.slope * x
    return below + cover * (s.grey * shade - below)


def _alternate(even: list[ShapeLayer], odd: list[ShapeLayer]) -> list[ShapeLayer]:
    """Octaves of two layers in turn: even levels from the first list, odd from the second."""
    return [pair[level % 2] for level, pair in enumerate(zip(even, odd, strict=True))]


class Painting(NamedTuple):
    """Pattern of layers of shapes, lowest first, on a ground of one reflectance, with grain."""

    ground: float
    layers: list[ShapeLayer]
    grain: Octaves


def paint(painting: Painting, grid: Grid, seed: int) -> Texels:
    """Texels of a painting."""
    out = np.full((grid.rows, grid.cols), painting.ground, np.float32)
    paint_shapes(out, grid, seed, painting.layers)
    return add_grain(out, grid, seed, painting.grain)


_DISC = ShapeLayer(ELLIPSE, 0.04, (0.012, 0.024), (1.0, 1.8), 0.8, (0.10, 0.88), tilt=0.15)
_LEAF = ShapeLayer(BLADE, 0.04, (0.016, 0.032), (1.6, 3.0), 0.9, (0.10, 0.88), tilt=0.12)
# Overlapping leaves and discs of all sizes from 4 cm down to 0.3 mm.
LEAVES = Painting(
    0.49, _alternate(fractal(_DISC, 8), fractal(_LEAF, 8)), Octaves(0.0064, FINEST_M, 1.8, 0.14)
)

_CRYSTAL = ShapeLayer(CRYSTAL, 0.008, (0.0034, 0.0064), (1.0, 1.7), 0.9, (0.3, 0.8), split=0.5)
_MICA = ShapeLayer(CRYSTAL, 0.008, (0.0015, 0.004), (1.2, 2.5), 0.8, (0.10, 0.28))
# Granite: light and grey crystals of several sizes with flakes of black mica. Fine grains first.
STONE = Painting(
    0.5,
    [
        octave(_CRYSTAL, 2),
        octave(_CRYSTAL, 2),
        octave(_CRYSTAL, 3)._replace(density=0.4),
        octave(_MICA, 2),
        octave(_CRYSTAL, 1),
        octave(_MICA, 1),
        _CRYSTAL._replace(density=0.3),
        _MICA._replace(density=0.3),
    ],
    Octaves(0.0256, FINEST_M, 1.75, 0.3),
)

_PEBBLE = ShapeLayer(
    ELLIPSE, 0.012, (0.0045, 0.0085), (1.0, 1.6), 0.85, (0.36, 0.9), dome=0.55, tilt=0.3
)
# Rounded stones lit from one side, with dark gaps, large ones among small ones.
GRAVEL = Painting(
    0.28,
    [octave(_PEBBLE, level) for level in (3, 2, 1, 0, 1, 0)],
    Octaves(0.0064, FINEST_M, 1.75, 0.3),
)

_BLADE = ShapeLayer(
    BLADE, 0.010, (0.014, 0.026), (9.0, 15.0), 0.65, (0.02, 0.42), (1.0, 2.1), tilt=0.1
)
# Blades that lean one way or the other, dark below and light on top.
GRASS = Painting(
    0.2,
    [
        octave(_BLADE, level)._replace(grey=(0.02 + 0.06 * number, 0.42 + 0.06 * number))
        for number, level in enumerate((0, 1, 0, 2, 1, 2))
    ],
    Octaves(0.0032, FINEST_M, 1.7, 0.26),
)

_TUFT = ShapeLayer(
    BLADE, 0.0028, (0.0014, 0.0035), (2.0, 4.0), 0.95, (0.34, 0.92), dome=0.5, tilt=0.25
)
# Tufts of yarn that stand close together, every way round, with dark gaps between them.
CARPET = Painting(
    0.3, [octave(_TUFT, level) for level in (0, 1, 0, 0)], Octaves(0.0512, FINEST_M, 2.0, 0.35)
)

_SQUARE = ShapeLayer(BOX, 0.016, (0.005, 0.009), (1.0, 1.4), 0.75, (0.10, 0.86), split=1.0)
_DOT = _SQUARE._replace(kind=ELLIPSE, aspect=(1.0, 1.2))
# Black and white squares and dots of many sizes, dense, to be found again at any distance.
CALIBRATION = Painting(
    0.48, _alternate(fractal(_SQUARE, 6), fractal(_DOT, 6)), Octaves(0.0016, FINEST_M, 2.0, 0.1)
)

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
        BLADE, 0.004, (0.0015, 0.004), (14.0, 24.0), 0.8, (0.1, 0.3), along, opacity=0.7
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
    # A crack lies where the noise crosses zero. Octaves too fine for the raster make the crack
    # softer by their RMS, with the same mean.
    one, soft = np.float32(1.0), np.float32(0.25 + lost)
    rise = out / np.sqrt(one + out * out)
    opened = np.float32(0.25) / soft / (one + (out / soft) * (out / soft))
    out = np.float32(0.52) + np.float32(0.16) * rise - np.float32(0.27) * opened
    return add_grain(out, grid, seed, Octaves(0.0512, FINEST_M, 1.8, 0.34))
