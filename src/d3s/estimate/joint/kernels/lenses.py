"""Blur and disparity of lenses over the field.

Along a row of cells the maps are polynomials in x; those of the row come first. The disparity moves
a point in the right view and changes its vergence, so both are in the derivatives.
"""

from typing import Any, NamedTuple

import numpy as np

from d3s.estimate.joint.kernels.filters import fill
from d3s.estimate.joint.types import (
    COMA_NOISE,
    BlurPlane,
    Counts,
    Planes,
)
from d3s.estimate.lens_field import COMA_GAIN, LensField, ScaleLimits
from d3s.rig.lens_maps import SHARP_PX2
from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import run_over_rows
from d3s.runtime.scratch import Scratch
from d3s.runtime.simd import (
    FLOATS,
    load_8,
    maximum,
    select_less,
    splat_8,
    sqrt,
    store,
)
from d3s.types import Image

# Lines of a row of cells: x in the left view and the disparity.
_X, _DISPARITY, _LINES = range(3)


_XX, _XY, _YY, _, _XX_SLOPE, _XY_SLOPE, _YY_SLOPE, _COMA_X, _COMA_Y, _EVEN = (
    int(plane) for plane in BlurPlane
)


_PLANES = len(BlurPlane)


class _Cells(NamedTuple):
    """Places of cells, and what their disparities mean; places over the radius of the field."""

    first_x: np.float32  # place of the first cell
    first_y: np.float32
    step: np.float32  # side of a cell
    shift: np.float32  # place in the right view per disparity
    blur: np.float32  # left, at disparity 0 before the focus is subtracted, in px of the frame
    blur_slope: np.float32  # per disparity
    ratio: np.float32  # of the blur of the right view to that of the left one
    vergence: np.float32  # 1/Z at disparity 0
    vergence_slope: np.float32  # per disparity


class _Units(NamedTuple):
    """Factors from pixels of the frame to pixels of the scale."""

    half_variance: np.float32  # half a variance
    third_cube: np.float32  # third of a cube, times the gain of third derivatives


def blur_differences(
    memory: Scratch, disparity: Image, field: LensField, scale: int, cell_side: int
) -> Planes:
    """Return the planes `BlurPlane` (planes, rows, cols), in pixels of the scale.

    `HIGHER` is 0.
    """
    out = memory.empty((len(BlurPlane), *disparity.shape))
    cells = _cells(field, scale * cell_side, scale)
    units = _Units(
        np.float32(0.5 / scale**2),
        np.float32(COMA_GAIN / (3 * scale**3)),
    )
    coma = field.coma_px.astype(np.float32)
    args = (disparity, _maps(field), coma, cells, units, out)
    run_over_rows(_blur_differences, out.shape[1], *args)
    return out


def scales_by_blur(
    memory: Scratch,
    disparity_px: Image,
    field: LensField,
    cell_px: int,
    limits: tuple[ScaleLimits, ...],
) -> Counts:
    """Return the coarsest scale at which each cell may be fitted: 1, 2 or 4."""
    out = memory.empty(disparity_px.shape, np.uint8)
    table = np.array(limits, dtype=np.float32).reshape(-1, len(ScaleLimits._fields))
    cells = _cells(field, cell_px, 1)
    run_over_rows(_scales_by_blur, out.shape[0], disparity_px, _maps(field), cells, table, out)
    return out


def remaining_disparity(
    memory: Scratch, disparity_px: Image, field: LensField, cell_px: int, scale: int
) -> Image:
    """Return the disparity (rows, cols) that lenses add to that of the depth."""
    out = memory.empty(disparity_px.shape)
    maps = field.disparity_maps(scale).astype(np.float32)
    cells = _cells(field, cell_px, 1)
    args = (disparity_px, maps, _maps(field)[0], cells, out)
    run_over_rows(_remaining_disparity, out.shape[0], *args)
    return out


def _cells(field: LensField, cell_px: int, scale: int) -> _Cells:
    """Return the places of cells; disparities are in pixels of the scale."""
    x, y = field.places((1, 1), cell_px)
    radius = field.lenses.field_radius_px
    vergence = float(field.vergence_dpt(0.0))
    per_px = scale / field.per_dpt_px
    gain = field.blur_per_dpt_px
    places = (x[0], y[0, 0], cell_px / radius, scale / radius)
    blurs = (gain * vergence, gain * per_px, field.lenses.blur_ratio)
    return _Cells(*(np.float32(number) for number in (*places, *blurs, vergence, per_px)))


def _maps(field: LensField) -> Image:
    return field.tensor_maps().astype(np.float32)


@compiled
def _blur_differences(
    start: int,
    stop: int,
    disparity: Image,
    maps: Image,
    coma: Image,
    cells: _Cells,
    units: _Units,
    out: Planes,
) -> None:
    """Half the difference of the blur variances, its derivative, coma and the even equivalent.

    `coma` has the coma of each view (2, 3): along x and y on the axis, and its growth.
    """
    cols = disparity.shape[1]
    room = cols + FLOATS
    lines = np.zeros((_LINES, room), dtype=np.float32)
    found = np.zeros((_PLANES, room), dtype=np.float32)
    rows = np.zeros((2, 4, maps.shape[2]), dtype=np.float32)
    flat, target = lines.reshape(lines.size), found.reshape(found.size)
    two, eighth = np.float32(2), np.float32(0.125)
    half, third, noise = units.half_variance, units.third_cube, np.float32(COMA_NOISE)
    slopes = two * half, cells.blur_slope, cells.ratio * cells.blur_slope
    for row in range(start, stop):
        _start_row(row, disparity, maps, cells, lines, rows)
        y = cells.first_y + cells.step * np.float32(row)
        down = coma[0, 1] + coma[0, 2] * y, coma[1, 1] + coma[1, 2] * y
        for col in range(0, cols, FLOATS):
            x, d = load_8(flat, _X * room + col), load_8(flat, _DISPARITY * room + col)
            blur = cells.blur + cells.blur_slope * d
            moved = x - cells.shift * d
            a, b, c, more, _ = _tensor(rows[0], x, blur)
            p, q, r, other, lean = _tensor(rows[1], moved, cells.ratio * blur)
            left_xx, left_yy = a * a + b * b + more, c * c + b * b + more
            right_xx, right_yy = p * p + q * q + other, r * r + q * q + other
            xx = half * (right_xx - left_xx)
            xy = half * (q * (p + r) - b * (a + c))
            yy = half * (right_yy - left_yy)
            coma_x = (coma[0, 0] + coma[0, 2] * x) * left_xx
            coma_x = third * (coma_x - (coma[1, 0] + coma[1, 2] * moved) * right_xx)
            coma_y = third * (down[0] * left_yy - down[1] * right_yy)
            store(target, _COMA_X * room + col, coma_x)
            store(target, _COMA_Y * room + col, coma_y)
            p_slope = slopes[2] + cells.shift * _slope(rows[1, 0], moved)
            q_slope = cells.shift * _slope(rows[1, 1], moved)
            r_slope = slopes[2] + cells.shift * _slope(rows[1, 2], moved)
            lean = (np.float32(-0.5) * cells.shift) * lean
            store(target, _XX * room + col, xx)
            store(target, _XY * room + col, xy)
            store(target, _YY * room + col, yy)
            value = p * p_slope + q * q_slope + lean - slopes[1] * a
            store(target, _XX_SLOPE * room + col, slopes[0] * value)
            value = q_slope * (p + r) + q * (p_slope + r_slope) - (two * slopes[1]) * b
            store(target, _XY_SLOPE * room + col, half * value)
            value = r * r_slope + q * q_slope + lean - slopes[1] * c
            store(target, _YY_SLOPE * room + col, slopes[0] * value)
            square = xx * xx + two * (xy * xy) + yy * yy
            trace = xx + yy
            even = eighth * (two * square + trace * trace)
            even = sqrt(even + noise * (coma_x * coma_x + coma_y * coma_y))
            store(target, _EVEN * room + col, even)
        for plane in range(_PLANES):
            fill(found[plane], out[plane, row])


@compiled
def _scales_by_blur(
    start: int,
    stop: int,
    disparity: Image,
    maps: Image,
    cells: _Cells,
    limits: Image,
    out: Counts,
) -> None:
    """Coarsest scale of each cell: 1, or a scale whose limit the blur or its difference exceeds."""
    cols = disparity.shape[1]
    room = cols + FLOATS
    lines = np.zeros((_LINES, room), dtype=np.float32)
    found = np.zeros(room, dtype=np.float32)
    rows = np.zeros((2, 4, maps.shape[2]), dtype=np.float32)
    flat, half = lines.reshape(lines.size), np.float32(0.5)
    for row in range(start, stop):
        _start_row(row, disparity, maps, cells, lines, rows)
        for col in range(0, cols, FLOATS):
            x, d = load_8(flat, _X * room + col), load_8(flat, _DISPARITY * room + col)
            blur = cells.blur + cells.blur_slope * d
            a, b, c, more, _ = _tensor(rows[0], x, blur)
            p, q, r, other, _ = _tensor(rows[1], x - cells.shift * d, cells.ratio * blur)
            left_xx, left_xy, left_yy = a * a + b * b + more, b * (a + c), c * c + b * b + more
            right_xx, right_xy, right_yy = p * p + q * q + other, q * (p + r), r * r + q * q + other
            widest = maximum(
                _widest(left_xx, left_xy, left_yy), _widest(right_xx, right_xy, right_yy)
            )
            apart = half * _widest(right_xx - left_xx, right_xy - left_xy, right_yy - left_yy)
            scale = splat_8(np.float32(1))
            for which in range(limits.shape[0]):
                coarse = splat_8(limits[which, 0])
                scale = select_less(splat_8(limits[which, 1]), widest, coarse, scale)
                scale = select_less(splat_8(limits[which, 2]), apart, coarse, scale)
            store(found, col, scale)
        target = out[row]
        for col in range(cols):
            target[col] = np.int32(found[col])


@compiled
def _remaining_disparity(
    start: int,
    stop: int,
    disparity: Image,
    maps: Image,
    tensor: Image,
    cells: _Cells,
    out: Image,
) -> None:
    """Disparity of lenses at the depth that is left without it.

    `tensor` has the maps of the left view's blur, (4, power of x, power of y).
    """
    terms, last = maps.shape[0], maps.shape[1] - 1
    cols = disparity.shape[1]
    room = cols + FLOATS
    rows = np.zeros((terms, last + 1), dtype=np.float32)
    focus = np.zeros((4, tensor.shape[1]), dtype=np.float32)
    one, half, per_px2 = splat_8(np.float32(1)), np.float32(0.5), np.float32(1 / SHARP_PX2)
    lines = np.zeros((_LINES, room), dtype=np.float32)
    values = np.zeros((terms + 1, room), dtype=np.float32)  # of each term, and of their sum
    flat, found = lines.reshape(lines.size), values.reshape(values.size)
    for row in range(start, stop):
        y = cells.first_y + cells.step * np.float32(row)
        for term in range(terms):
            _reduce(maps[term], y, rows[term])
        for which in range(4):
            _reduce(tensor[which], y, focus[which])
        _place_cells(disparity[row], cells, lines)
        for col in range(0, cols, FLOATS):
            x, d = load_8(flat, _X * room + col), load_8(flat, _DISPARITY * room + col)
            for term in range(terms):
                value = splat_8(rows[term, last])
                for power in range(last - 1, -1, -1):
                    value = value * x + rows[term, power]
                store(found, term * room + col, value)
            total = splat_8(np.float32(0))
            for _ in range(2):
                left = d - total
                vergence = cells.vergence + cells.vergence_slope * left
                total = load_8(found, (terms - 1) * room + col)
                for term in range(terms - 2, 0, -1):
                    total = total * vergence + load_8(found, term * room + col)
                a, b, c, more, _ = _tensor(focus, x, cells.blur + cells.blur_slope * left)
                blur = half * (a * a + c * c) + b * b + more
                total = total + load_8(found, col) / (one + per_px2 * blur)
            store(found, terms * room + col, total)
        fill(values[terms], out[row])


@part
def _start_row(
    row: int, disparity: Image, maps: Image, cells: _Cells, lines: Image, rows: Image
) -> None:
    """Set places and disparities of a row, and the maps of both views as polynomials in x."""
    y = cells.first_y + cells.step * np.float32(row)
    for view in range(2):
        for which in range(4):
            _reduce(maps[view, which], y, rows[view, which])
    _place_cells(disparity[row], cells, lines)


@part
def _place_cells(disparity: Image, cells: _Cells, lines: Image) -> None:
    """Set places and disparities of a row of cells."""
    places = lines[_X]
    for col in range(disparity.size):
        places[col] = cells.first_x + cells.step * np.float32(col)
    fill(disparity, lines[_DISPARITY])


@part
def _reduce(table: Image, y: np.float32, out: Image) -> None:
    """Polynomial in x at one y, from the coefficients by power of x and power of y."""
    for power in range(out.size):
        value = np.float32(0)
        for other in range(out.size - 1, -1, -1):
            value = value * y + table[power, other]
        out[power] = value


@inlined
def _tensor(rows: Image, x: Any, blur: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Blur tensor of one view along x, mixed, along y; the extra variance and its slope."""
    xx = blur - (rows[0, 0] + x * (rows[0, 1] + rows[0, 2] * x))
    yy = blur - (rows[2, 0] + x * (rows[2, 1] + rows[2, 2] * x))
    xy = np.float32(-1) * (rows[1, 0] + x * (rows[1, 1] + rows[1, 2] * x))
    last = rows.shape[1] - 1
    extra, slope = splat_8(rows[3, last]), splat_8(np.float32(0))
    for power in range(last - 1, -1, -1):
        slope = slope * x + extra
        extra = extra * x + rows[3, power]
    return xx, xy, yy, extra, slope


@inlined
def _slope(line: Image, x: Any) -> Any:
    """Derivative of a polynomial of second degree."""
    return line[1] + (np.float32(2) * line[2]) * x


@inlined
def _widest(across: Any, mixed: Any, down: Any) -> Any:
    """Largest magnitude of a tensor along any direction."""
    half = np.float32(0.5)
    apart = half * (across - down)
    mean = half * (across + down)
    return sqrt(mean * mean) + sqrt(apart * apart + mixed * mixed)
