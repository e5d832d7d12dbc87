"""Printed pages: lines of letter-like marks in many sizes on paper."""

import math
from typing import NamedTuple

import numpy as np

from d3s.lab.twin.patterns.lattice import Grid, Texels, cell_hash, mix_bits, seed_key, uniform_16
from d3s.lab.twin.patterns.spline_noise import FINEST_M, Octaves, add_grain
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows

# A page is a square: one block of text, or four pages of half the size (a quadtree).
_PAGE_M = 0.064
_LEVELS = 6
_KEPT = np.array([0.12, 0.2, 0.27, 0.35, 0.5, 1.0])  # share of undivided squares, by level
_PAPER, _INK = 0.575, 0.08

# Share of a block covered by ink, for blocks with letters too small to show; measured.
_INKED = 0.152


def text(grid: Grid, seed: int) -> Texels:
    """Lines of words in many sizes on paper, close in one place and sparse in another."""
    ink = np.zeros((grid.rows, grid.cols), np.float32)
    # Squares smaller than a texel are not divided.
    levels = min(_LEVELS, 1 + math.floor(math.log2(_PAGE_M / grid.pitch_m)))
    if levels > 0:
        run_over_rows(_print, grid.rows, ink, grid, seed_key(seed, 2), levels)
    else:
        ink += np.float32(_INKED)
    ink *= np.float32(_INK - _PAPER)
    ink += np.float32(_PAPER)
    return add_grain(ink, grid, seed, Octaves(0.0128, FINEST_M, 1.8, 0.18))


class _Band(NamedTuple):
    """Rows of the raster that one call fills; x and y below are in metres on the surface."""

    start: int
    stop: int
    ink: Texels
    grid: Grid


@compiled
def _print(start: int, stop: int, ink: Texels, grid: Grid, key: np.uint64, levels: int) -> None:
    row, col, pitch = grid.first_row, grid.first_col, grid.pitch_m
    band = _Band(start, stop, ink, grid)
    top, bottom = (row + start - 2) * pitch, (row + stop + 1) * pitch
    left, right = (col - 2) * pitch, (col + ink.shape[1] + 1) * pitch
    for level in range(levels):
        size = _PAGE_M / 2.0**level
        # Letters may reach out of their square by a fraction of a line.
        for r in range(math.floor(top / size - 0.2), math.floor(bottom / size + 0.2) + 1):
            for c in range(math.floor(left / size - 0.2), math.floor(right / size + 0.2) + 1):
                if _is_block(key, r, c, level, level == levels - 1):
                    bits = mix_bits(cell_hash(key, r, c) + np.uint64(level + 50))
                    _block(band, c * size, r * size, size, level, bits)


@compiled
def _stays(key: np.uint64, r: int, c: int, level: int) -> bool:
    return bool(uniform_16(mix_bits(cell_hash(key, r, c) + np.uint64(level)), 0) < _KEPT[level])


@compiled
def _is_block(key: np.uint64, r: int, c: int, level: int, last: bool) -> bool:
    for above in range(1, level + 1):
        if _stays(key, r >> above, c >> above, level - above):
            return False
    return last or _stays(key, r, c, level)


@compiled
def _block(band: _Band, x: float, y: float, size: float, level: int, bits: np.uint64) -> None:
    row, pitch = band.grid.first_row, band.grid.pitch_m
    # Some small blocks stay empty, like margins and the ends of paragraphs.
    if level >= 2 and uniform_16(bits, 0) < 0.1:
        return
    lines = 2.2 + 2.6 * uniform_16(bits, 1)
    high = size / lines
    if high < 1.6 * pitch:
        _tint(band, x, y, size)
        return
    wide = high * (0.46 + 0.16 * uniform_16(bits, 2))
    bold = high * (0.07 + 0.07 * uniform_16(bits, 3))
    for line in range(math.floor(lines)):
        this = cell_hash(bits, line, 1)
        letters = np.int64(size / wide * (0.55 + 0.45 * math.sqrt(uniform_16(this, 0))))
        base = y + (line + 0.12 + 0.1 * uniform_16(this, 1)) * high
        above, below = base - 0.2 * high, base + 1.2 * high
        if above > (row + band.stop + 1) * pitch or below < (row + band.start - 2) * pitch:
            continue
        for letter in range(letters):
            form = cell_hash(this, letter, 2)
            if uniform_16(form, 3) > 0.17:
                at = x + (letter + 0.16 + 0.28 * uniform_16(form, 1)) * wide
                _letter(band, at, base, wide, high, bold, form)


@compiled
def _tint(band: _Band, x: float, y: float, size: float) -> None:
    # Mean ink of a block whose letters are too small to show.
    ink, row, col, pitch = band.ink, band.grid.first_row, band.grid.first_col, band.grid.pitch_m
    x, y, size = x / pitch, y / pitch, size / pitch
    for i in range(
        max(band.start, math.floor(y) - row), min(band.stop, math.ceil(y + size) - row + 1)
    ):
        down = min(y + size, row + i + 0.5) - max(y, row + i - 0.5)
        for j in range(
            max(0, math.floor(x) - col), min(ink.shape[1], math.ceil(x + size) - col + 1)
        ):
            across = min(x + size, col + j + 0.5) - max(x, col + j - 0.5)
            ink[i, j] += np.float32(_INKED * max(0.0, down) * max(0.0, across))


@compiled
def _letter(
    band: _Band, x: float, y: float, wide: float, high: float, bold: float, form: np.uint64
) -> None:
    # A letter is a stem (short or long, up or down) with a bowl or one or two slanted strokes.
    w, body = 0.66 * wide, 0.46 * high
    top = y + 0.26 * high
    foot = top + body
    kind = np.int64(form & np.uint64(15))
    if kind < 8:  # bowl: o, b, d, p, q
        _ring(band, bold, x + 0.5 * w, top + 0.5 * body, 0.5 * w, 0.5 * body)
        if kind > 1:
            side = x if kind % 2 else x + w
            up = y + 0.02 * high if kind in (2, 3, 6) else top
            down = foot + 0.22 * high if kind in (4, 5) else foot
            _stroke(band, bold, side, up, side, down)
    else:
        lean = 0.5 * w * uniform_16(form, 1)
        up = y + 0.04 * high if kind % 3 == 0 else top
        _stroke(band, bold, x + lean * (kind % 2), up, x + lean * ((kind + 1) % 2), foot)
        if kind > 9:
            _stroke(
                band, bold, x + w, top if kind % 2 else foot, x + lean, foot if kind % 4 else top
            )
        if kind > 11:
            bar = top + body * uniform_16(form, 2)
            _stroke(band, bold, x, bar, x + w, bar)
        if kind == 15:
            _stroke(band, bold, x + w, top, x + w, foot)


@compiled
def _ring(band: _Band, bold: float, x: float, y: float, a: float, b: float) -> None:
    start, stop, ink = band.start, band.stop, band.ink
    row, col, pitch = band.grid.first_row, band.grid.first_col, band.grid.pitch_m
    half = max(0.5 * bold, 0.5 * pitch)
    faint = 0.5 * bold / half
    reach = half + 0.5 * pitch
    first = max(start, math.ceil((y - b - reach) / pitch) - row)
    last = min(stop - 1, math.floor((y + b + reach) / pitch) - row)
    begin = max(0, math.ceil((x - a - reach) / pitch) - col)
    end = min(ink.shape[1] - 1, math.floor((x + a + reach) / pitch) - col)
    for i in range(first, last + 1):
        q = ((row + i) * pitch - y) / b
        for j in range(begin, end + 1):
            p = ((col + j) * pitch - x) / a
            away = p * p + q * q
            steep = math.sqrt(p * p / (a * a) + q * q / (b * b)) + 1e-9
            inside = half - abs(away - 1.0) * 0.5 / steep
            cover = np.float32(faint * min(1.0, max(0.0, 0.5 + inside / pitch)))
            ink[i, j] = max(ink[i, j], cover)


@compiled
def _stroke(band: _Band, bold: float, x0: float, y0: float, x1: float, y1: float) -> None:
    start, stop, ink = band.start, band.stop, band.ink
    row, col, pitch = band.grid.first_row, band.grid.first_col, band.grid.pitch_m
    half = max(0.5 * bold, 0.5 * pitch)
    faint = 0.5 * bold / half
    reach = half + 0.5 * pitch
    first = max(start, math.ceil((min(y0, y1) - reach) / pitch) - row)
    last = min(stop - 1, math.floor((max(y0, y1) + reach) / pitch) - row)
    begin = max(0, math.ceil((min(x0, x1) - reach) / pitch) - col)
    end = min(ink.shape[1] - 1, math.floor((max(x0, x1) + reach) / pitch) - col)
    ux, uy = x1 - x0, y1 - y0
    per_square = 1.0 / (ux * ux + uy * uy + 1e-18)
    for i in range(first, last + 1):
        dy = (row + i) * pitch - y0
        for j in range(begin, end + 1):
            dx = (col + j) * pitch - x0
            t = min(1.0, max(0.0, (dx * ux + dy * uy) * per_square))
            ex, ey = dx - t * ux, dy - t * uy
            inside = half - math.sqrt(ex * ex + ey * ey)
            cover = np.float32(faint * min(1.0, max(0.0, 0.5 + inside / pitch)))
            ink[i, j] = max(ink[i, j], cover)
