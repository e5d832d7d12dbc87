"""Layers of shapes painted over one another: one random shape in each cell of a lattice."""

import math
from typing import Any, NamedTuple

import numpy as np

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import over_rows
from d3s.scene.grid import Grid
from d3s.scene.hashing import cell_hash, mix, part, seed_key
from d3s.scene.lattice import Texels
from d3s.scene.patterns.layers import BLADE, BOX, ELLIPSE, FILL, Layer

# Further hashes of a cell: what its shape looks like, and its form.
_LOOK, _FORM = 1, 2


# Directions are whole parts of half a turn: looking them up is faster than working them out.
_TURNS = 512
_COS = np.cos(np.arange(2 * _TURNS) * (math.pi / _TURNS))
_SIN = np.sin(np.arange(2 * _TURNS) * (math.pi / _TURNS))


class Shape(NamedTuple):
    """One shape in texels: half-lengths and the inverses of their squares, direction, and look."""

    a: np.float32
    b: np.float32
    a2: np.float32
    b2: np.float32
    cos: np.float32
    sin: np.float32
    cut_1: np.float32  # the corners of a crystal are cut by two more pairs of edges
    cut_2: np.float32
    grey: np.float32
    dome: np.float32
    slope: np.float32
    opacity: np.float32


def paint(out: Texels, grid: Grid, seed: int, layers: list[Layer]) -> None:
    """Paint the layers over what is there, first to last; what is too small to see, as its mean."""
    place = (grid.first_row, grid.first_col, grid.pitch_m)
    for number, layer in enumerate(layers):
        key = seed_key(seed, 7000 + number)
        if layer.thin_m < 0.2 * grid.pitch_m or layer.cell_m < 1.2 * grid.pitch_m:
            cover = np.float32(layer.cover)
            out += cover * (np.float32(layer.mean_grey) - out)
        elif layer.length[1] < 1.0 * grid.pitch_m:
            over_rows(_dot, grid.rows, out, *place, key, layer, FILL[layer.kind])
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
    look = mix(bits + np.uint64(_LOOK))
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
    left, right = (x - across) * per_pitch, (x + across) * per_pitch
    if first > last or right < col or left > col + out.shape[1] - 1:
        return

    # In texels from here on: numbers small enough for single precision.
    form = mix(bits + np.uint64(_FORM))
    x, y, a, b = x * per_pitch, y * per_pitch, a * per_pitch, b * per_pitch
    wide, tall = wide * per_pitch + 0.1, tall * per_pitch + 0.1
    shape = Shape(
        np.float32(a),
        np.float32(b),
        np.float32(1.0 / (a * a)),
        np.float32(1.0 / (b * b)),
        np.float32(cos),
        np.float32(sin),
        np.float32(0.7071 * (a + b) * (0.62 + 0.3 * part(form, 0))),
        np.float32(0.7071 * (a + b) * (0.62 + 0.3 * part(form, 1))),
        _grey(layer, part(look, 3)),
        np.float32(layer.dome),
        np.float32(layer.tilt * (0.5 + part(form, 2)) * 0.7071 / a),
        np.float32(layer.opacity * faint),
    )
    large = right - left > 6.0
    per_cos, per_sin = 1.0 / (cos + 1e-9), 1.0 / (sin + 1e-9)
    for i in range(first, last + 1):
        dy = row + i - y
        low, high = left, right
        if large:
            # The part of the row that lies within the box around the shape, turned as it is.
            middle, spread = x - dy * sin * per_cos, abs(wide * per_cos)
            low, high = max(low, middle - spread), min(high, middle + spread)
            middle, spread = x + dy * cos * per_sin, abs(tall * per_sin)
            low, high = max(low, middle - spread), min(high, middle + spread)
        begin = max(0, math.ceil(low) - col)
        end = min(out.shape[1], math.floor(high) - col + 1)
        if layer.kind == ELLIPSE:
            _row_of_ellipse(out[i], begin, end, col, x, np.float32(dy), shape)
        elif layer.kind == BLADE:
            _row_of_blade(out[i], begin, end, col, x, np.float32(dy), shape)
        elif layer.kind == BOX:
            _row_of_box(out[i], begin, end, col, x, np.float32(dy), shape)
        else:
            _row_of_crystal(out[i], begin, end, col, x, np.float32(dy), shape)


@compiled
def _over(below: np.float32, inside: np.float32, away: np.float32, x: np.float32, s: Shape) -> Any:
    # What is seen of a texel whose centre lies so far inside of a shape.
    one = np.float32(1.0)
    cover = min(one, max(np.float32(0.0), np.float32(0.5) + inside)) * s.opacity
    shade = one - s.dome * min(one, away) - s.slope * x
    return below + cover * (s.grey * shade - below)


@compiled
def _row_of_ellipse(
    out: Texels, begin: int, end: int, col: int, middle: float, y: np.float32, s: Shape
) -> None:
    for j in range(begin, end):
        x = np.float32(col + j - middle)
        p, q = x * s.cos + y * s.sin, y * s.cos - x * s.sin
        pa, qb = p * p * s.a2, q * q * s.b2
        # To first order, the distance to where pa + qb = 1.
        steep = np.float32(2.0) * np.sqrt(pa * s.a2 + qb * s.b2) + np.float32(1e-6)
        inside = (np.float32(1.0) - pa - qb) / steep
        out[j] = _over(out[j], inside, pa + qb, x + y, s)


@compiled
def _row_of_blade(
    out: Texels, begin: int, end: int, col: int, middle: float, y: np.float32, s: Shape
) -> None:
    for j in range(begin, end):
        x = np.float32(col + j - middle)
        p, q = x * s.cos + y * s.sin, y * s.cos - x * s.sin
        pa, qb = p * p * s.a2, q * q * s.b2
        out[j] = _over(out[j], s.b * (np.float32(1.0) - pa) - abs(q), pa + qb, x + y, s)


@compiled
def _row_of_box(
    out: Texels, begin: int, end: int, col: int, middle: float, y: np.float32, s: Shape
) -> None:
    for j in range(begin, end):
        x = np.float32(col + j - middle)
        p, q = x * s.cos + y * s.sin, y * s.cos - x * s.sin
        away = p * p * s.a2 + q * q * s.b2
        out[j] = _over(out[j], min(s.a - abs(p), s.b - abs(q)), away, x + y, s)


@compiled
def _row_of_crystal(
    out: Texels, begin: int, end: int, col: int, middle: float, y: np.float32, s: Shape
) -> None:
    diagonal = np.float32(0.7071)
    for j in range(begin, end):
        x = np.float32(col + j - middle)
        p, q = x * s.cos + y * s.sin, y * s.cos - x * s.sin
        inside = min(s.a - abs(p), s.b - abs(q))
        inside = min(inside, s.cut_1 - diagonal * abs(p + q))
        inside = min(inside, s.cut_2 - diagonal * abs(p - q))
        out[j] = _over(out[j], inside, p * p * s.a2 + q * q * s.b2, x + y, s)
