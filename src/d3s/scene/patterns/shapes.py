"""Layers of shapes painted over one another: one random shape in each cell of a lattice."""

import math
from typing import NamedTuple

import numpy as np

from d3s.scene.grid import Grid
from d3s.scene.lattice import Texels, cell_hash, compiled, mix, part, seed_key
from d3s.threads import over_rows

ELLIPSE, BLADE, BOX, CRYSTAL = range(4)

# Share of its bounding box 2a x 2b that each kind of shape fills; that of a crystal is measured.
_FILL = {ELLIPSE: math.pi / 4.0, BLADE: 2.0 / 3.0, BOX: 1.0, CRYSTAL: 0.83}

# Further hashes of a cell: what its shape looks like, and its form.
_LOOK, _FORM = 1, 2


# Directions are whole parts of half a turn: looking them up is faster than working them out.
_TURNS = 512
_COS = np.cos(np.arange(2 * _TURNS) * (math.pi / _TURNS))
_SIN = np.sin(np.arange(2 * _TURNS) * (math.pi / _TURNS))


class Layer(NamedTuple):
    """Shapes of about one size. Lengths are half-lengths in metres, ranges are drawn evenly.

    A grey is `low` or `high` with some softness between the two: `bias` above 1 makes more of them
    dark, `split` pushes them to the ends. `dome` darkens towards the edge of a shape and `tilt`
    towards its lower right; `opacity` is how much of what lies below is hidden.
    """

    kind: int
    cell_m: float
    length: tuple[float, float]
    aspect: tuple[float, float]
    angle: tuple[float, float]
    density: float
    grey: tuple[float, float]
    bias: float = 1.0
    split: float = 0.0
    dome: float = 0.0
    tilt: float = 0.0
    opacity: float = 1.0

    @property
    def thin_m(self) -> float:
        """Half the width of a middling shape."""
        return sum(self.length) / 2.0 / (sum(self.aspect) / 2.0)

    @property
    def mean_grey(self) -> float:
        """Grey of the layer seen from so far away that its shapes are too small to see."""
        low, high = self.grey
        u = (np.arange(256) + 0.5) / 256.0
        plain = low + (high - low) * _pushed(u**self.bias, self.split).mean()
        # The square of the distance from the middle, over a disc, is 1/2 in the mean.
        return float(plain * (1.0 - 0.5 * self.dome))

    @property
    def cover(self) -> float:
        """Share of the surface that the layer hides."""
        (short, long), (round_, slim) = self.length, self.aspect
        square = (short * short + short * long + long * long) / 3.0
        inverse = math.log(slim / round_) / (slim - round_) if slim > round_ else 1.0 / slim
        area = 4.0 * _FILL[self.kind] * square * inverse
        # Shapes of neighbouring cells overlap as if thrown at random, nearly enough.
        return self.opacity * (1.0 - math.exp(-self.density * area / self.cell_m**2))


def _pushed(u: np.ndarray, split: float) -> np.ndarray:  # type: ignore[type-arg]
    ends = u * u * (3.0 - 2.0 * u)
    return np.asarray(u + split * (ends * ends * (3.0 - 2.0 * ends) - u))


def octave(layer: Layer, level: int) -> Layer:
    """The same layer with everything half as large, `level` times."""
    scale = 0.5**level
    short, long = layer.length
    return layer._replace(cell_m=layer.cell_m * scale, length=(short * scale, long * scale))


def fractal(layer: Layer, levels: int) -> list[Layer]:
    """Octaves of a layer, coarse to fine, each as much in sight as every other.

    Of n octaves the last must hide 1/n, the one before 1/(n - 1), and so on, for equal shares.
    """
    octaves = [octave(layer, level) for level in range(levels)]
    full = -math.log(1.0 - min(0.999, layer._replace(density=1.0, opacity=1.0).cover))
    hidden = [1.0 / (level + 1.0) for level in range(levels)]
    densities = [-math.log(max(1e-9, 1.0 - share)) / full for share in hidden]
    return [
        octave_._replace(density=min(layer.density, density))
        for octave_, density in zip(octaves, densities, strict=True)
    ]


def paint(out: Texels, grid: Grid, seed: int, layers: list[Layer]) -> None:
    """Paint the layers over what is there, first to last; what is too small to see, as its mean."""
    place = (grid.first_row, grid.first_col, grid.pitch_m)
    for number, layer in enumerate(layers):
        key = seed_key(seed, 7000 + number)
        if layer.thin_m < 0.2 * grid.pitch_m or layer.cell_m < 1.2 * grid.pitch_m:
            cover = np.float32(layer.cover)
            out += cover * (np.float32(layer.mean_grey) - out)
        elif layer.length[1] < 1.0 * grid.pitch_m:
            over_rows(_dot, grid.rows, out, *place, key, layer, _FILL[layer.kind])
        else:
            over_rows(_paint, grid.rows, out, *place, key, layer)


@compiled
def _cells(first: int, count: int, pitch: float, cell: float, reach: float) -> tuple[int, int]:
    # First cell whose shape may touch a run of texels, and the one after the last.
    low = math.floor((first * pitch - reach) / cell)
    return low, math.floor(((first + count - 1) * pitch + reach) / cell) + 1


@compiled
def _between(range_: tuple[float, float], u: float) -> float:
    return range_[0] + (range_[1] - range_[0]) * u


@compiled
def _grey(layer: Layer, u: float) -> np.float32:
    if layer.bias != 1.0:
        u = u**layer.bias
    ends = u * u * (3.0 - 2.0 * u)
    u += layer.split * (ends * ends * (3.0 - 2.0 * ends) - u)
    return np.float32(_between(layer.grey, u))


@compiled
def _dot(
    start: int,
    stop: int,
    out: Texels,
    row: int,
    col: int,
    pitch: float,
    key: np.uint64,
    layer: Layer,
    fill: float,
) -> None:
    # Shapes that are smaller than a texel: each is shared among the four texels around it.
    cell, cols, per_pitch = layer.cell_m, out.shape[1], 1.0 / pitch
    top, bottom = _cells(row + start, stop - start, pitch, cell, pitch)
    left, right = _cells(col, cols, pitch, cell, pitch)
    share = 4.0 * fill * layer.opacity * per_pitch * per_pitch
    shade = np.float32(1.0 - 0.5 * layer.dome)
    for r in range(top, bottom):
        for c in range(left, right):
            bits = cell_hash(key, r, c)
            if part(bits, 3) < layer.density:
                y = (r + part(bits, 0)) * cell * per_pitch
                x = (c + part(bits, 1)) * cell * per_pitch
                look = mix(bits + np.uint64(_LOOK))
                a = _between(layer.length, part(look, 0))
                cover = min(1.0, share * a * a / _between(layer.aspect, part(look, 1)))
                grey = _grey(layer, part(look, 3)) * shade
                i0, j0 = math.floor(y), math.floor(x)
                for i in range(max(start, i0 - row), min(stop, i0 - row + 2)):
                    part_y = cover * (1.0 - abs(y - (row + i)))
                    for j in range(max(0, j0 - col), min(cols, j0 - col + 2)):
                        weight = np.float32(part_y * (1.0 - abs(x - (col + j))))
                        out[i, j] += weight * (grey - out[i, j])


@compiled
def _paint(
    start: int,
    stop: int,
    out: Texels,
    row: int,
    col: int,
    pitch: float,
    key: np.uint64,
    layer: Layer,
) -> None:
    # A shape may reach beyond its cell by its length; cells are taken in one order whatever the
    # region, so that of two shapes the same one is on top everywhere.
    reach = layer.length[1] * 1.5 + pitch
    cell = layer.cell_m
    top, bottom = _cells(row + start, stop - start, pitch, cell, reach)
    left, right = _cells(col, out.shape[1], pitch, cell, reach)
    for r in range(top, bottom):
        for c in range(left, right):
            bits = cell_hash(key, r, c)
            if part(bits, 3) < layer.density:
                y, x = (r + part(bits, 0)) * cell, (c + part(bits, 1)) * cell
                _paint_one(start, stop, out, row, col, pitch, x, y, bits, layer)


@compiled
def _paint_one(
    start: int,
    stop: int,
    out: Texels,
    row: int,
    col: int,
    pitch: float,
    x: float,
    y: float,
    bits: np.uint64,
    layer: Layer,
) -> None:
    per_pitch = 1.0 / pitch
    look, form = mix(bits + np.uint64(_LOOK)), mix(bits + np.uint64(_FORM))
    a = _between(layer.length, part(look, 0))
    b = a / _between(layer.aspect, part(look, 1))
    # What is thinner than a texel is painted as wide as one, and as much weaker.
    half = 0.5 * pitch
    faint = 1.0
    if b < half:
        faint, b = b / half, half
    if a < half:
        faint, a = faint * a / half, half
    tall, wide = b + half, a + half
    angle = np.int64(_between(layer.angle, part(look, 2)) * (_TURNS / math.pi)) % (2 * _TURNS)
    cos, sin = _COS[angle], _SIN[angle]
    down = abs(sin) * wide + abs(cos) * tall
    across = abs(cos) * wide + abs(sin) * tall
    first = max(start, math.ceil((y - down) * per_pitch) - row)
    last = min(stop - 1, math.floor((y + down) * per_pitch) - row)
    left, right = (x - across) * per_pitch - col, (x + across) * per_pitch - col
    if first > last or right < 0 or left > out.shape[1] - 1:
        return

    # In texels from here on: floats that are small enough to keep their precision.
    large = across > 3.0 * pitch
    per_cos, per_sin = 1.0 / (cos + 1e-9), 1.0 / (sin + 1e-9)
    wide, tall = wide * per_pitch + 0.1, tall * per_pitch + 0.1
    x, y = x * per_pitch, y * per_pitch
    fa, fb = np.float32(a * per_pitch), np.float32(b * per_pitch)
    a2, b2 = np.float32(1.0) / (fa * fa), np.float32(1.0) / (fb * fb)
    # Corners of a crystal are cut by two more pairs of edges.
    cut_1 = (fa + fb) * np.float32(0.62 + 0.3 * part(form, 0))
    cut_2 = (fa + fb) * np.float32(0.62 + 0.3 * part(form, 1))
    # How far the surface leans to one side, different for each shape.
    slope = np.float32(layer.tilt * (0.5 + part(form, 2)) * 0.7071) / fa
    grey = _grey(layer, part(look, 3))
    dome, opacity = np.float32(layer.dome), np.float32(layer.opacity * faint)
    one, point5, diagonal = np.float32(1.0), np.float32(0.5), np.float32(0.7071)
    fcos, fsin = np.float32(cos), np.float32(sin)
    for i in range(first, last + 1):
        dy = row + i - y
        low, high = left, right
        if large:
            # The part of the row that lies within the box around the shape, turned as it is.
            middle, spread = -dy * sin * per_cos, abs(wide * per_cos)
            low, high = max(low, x - col + middle - spread), min(high, x - col + middle + spread)
            middle, spread = dy * cos * per_sin, abs(tall * per_sin)
            low, high = max(low, x - col + middle - spread), min(high, x - col + middle + spread)
        fy = np.float32(dy)
        for j in range(max(0, math.ceil(low)), min(out.shape[1] - 1, math.floor(high)) + 1):
            fx = np.float32(col + j - x)
            p = fx * fcos + fy * fsin
            q = fy * fcos - fx * fsin
            pa, qb = p * p * a2, q * q * b2
            away = pa + qb
            if layer.kind == ELLIPSE:
                steep = np.float32(math.sqrt(pa * a2 + qb * b2)) + np.float32(1e-6)
                inside = (one - away) * point5 / steep
            elif layer.kind == BLADE:
                inside = fb * (one - pa) - abs(q)
            else:
                inside = min(fa - abs(p), fb - abs(q))
                if layer.kind == CRYSTAL:
                    inside = min(inside, cut_1 * diagonal - diagonal * abs(p + q))
                    inside = min(inside, cut_2 * diagonal - diagonal * abs(p - q))
            cover = min(one, max(np.float32(0.0), point5 + inside)) * opacity
            if cover > 0:
                shade = one - dome * min(one, away) - slope * (fx + fy)
                out[i, j] += cover * (grey * shade - out[i, j])
