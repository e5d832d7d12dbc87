"""Patterns of manufactured surfaces: woven fabric, brick walls and printed pages."""

import math
from typing import NamedTuple

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

_THREAD_M = 0.0007
_SAMPLES = 16  # of the profile across a thread
_UNEVEN = 0.42  # largest displacement of a thread, in threads

_COURSE_M, _BRICK_M, _JOINT_M = 0.013, 0.036, 0.0016
_WALL = 0.46  # mean grey of bricks and mortar


def fabric(grid: Grid, seed: int) -> Texels:
    """Plain weave, each thread over and under the others, uneven in width, place and grey."""
    sway = Octaves(0.0128, 0.0016, 2.6, 0.00022)
    across = spline_noise(grid, seed_key(seed, 2), sway)
    down = spline_noise(grid, seed_key(seed, 3), sway)
    step = max(_THREAD_M / _SAMPLES, grid.pitch_m / 16.0)
    warp, first_x = _threads(
        grid.first_col, grid.cols, grid.pitch_m, step, seed_key(seed, 4), across
    )
    weft, first_y = _threads(grid.first_row, grid.rows, grid.pitch_m, step, seed_key(seed, 5), down)
    out = np.empty((grid.rows, grid.cols), np.float32)
    samples = _Samples(step, first_x, first_y)
    run_over_rows(_weave, grid.rows, out, warp, weft, across, down, grid, samples)
    return add_grain(out, grid, seed, Octaves(0.0256, FINEST_M, 1.8, 0.3))


def _threads(
    first: int, count: int, pitch_m: float, step_m: float, key: np.uint64, sway: Texels
) -> tuple[Texels, int]:
    """Profile across all threads of one direction, averaged over a texel, and its first sample.

    Four numbers per sample, with s = +1 and -1 for alternate threads: the grey of the thread, the
    swell of the threads that cross it, and both times s. A weave is a sum of products of such
    profiles, so averaging the profiles averages the weave.
    """
    width = max(1, round(pitch_m / step_m))
    low = math.floor((first * pitch_m + float(sway.min(initial=0.0))) / step_m) - width
    high = math.ceil(((first + count) * pitch_m + float(sway.max(initial=0.0))) / step_m) + width
    profile = np.empty((high - low + 2, 4), np.float32)
    _profile(profile, low, step_m, width, key)
    return profile, low


@compiled
def _profile(out: Texels, first: int, step: float, width: int, key: np.uint64) -> None:
    raw = np.empty((out.shape[0] + width, 4), np.float64)
    for n in range(raw.shape[0]):
        raw[n] = 0.0
        x = (first + n - 0.5 * (width - 1)) * step / _THREAD_M
        # The spacing of the threads varies, so the weave has no period.
        x += 1.6 * _wave(key, 1, x / 23.0) + 0.5 * _wave(key, 2, x / 7.0)
        thread, low, high = uneven_cell(key, x, _UNEVEN, 3)
        t = 2.0 * (x - low) / (high - low) - 1.0
        own = uniform_53(cell_hash(key, thread, 4)) - 0.5
        grey = 0.60 + 0.54 * own + 0.24 * _wave(key, 5, x / 11.0) + 0.15 * _wave(key, 6, x / 41.0)
        sign = 1.0 if thread % 2 == 0 else -1.0
        shade, swell = 1.0 - 0.6 * t * t * t * t, 1.0 - 0.4 * t * t
        raw[n, 0], raw[n, 1] = grey * shade, swell
        raw[n, 2], raw[n, 3] = grey * shade * sign, swell * sign
    for n in range(out.shape[0]):
        for k in range(4):
            total = 0.0
            for m in range(width):
                total += raw[n + m, k]
            out[n, k] = total / width


@compiled
def _wave(key: np.uint64, channel: int, x: float) -> float:
    # Smooth noise in one dimension, about -1 to 1.
    node = math.floor(x)
    t = x - node
    t = t * t * (3.0 - 2.0 * t)
    here = uniform_53(cell_hash(key, node, channel + 100))
    there = uniform_53(cell_hash(key, node + 1, channel + 100))
    return 2.0 * (here + t * (there - here)) - 1.0


class _Samples(NamedTuple):
    """Sampling of the profiles: step in metres, number of the first sample of warp and weft."""

    step_m: float
    first_x: int
    first_y: int


@compiled
def _weave(
    start: int,
    stop: int,
    out: Texels,
    warp: Texels,
    weft: Texels,
    across: Texels,
    down: Texels,
    grid: Grid,
    samples: _Samples,
) -> None:
    row, col, pitch = grid.first_row, grid.first_col, grid.pitch_m
    per_step, half = 1.0 / samples.step_m, np.float32(0.5)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            x = ((col + j) * pitch + across[i, j]) * per_step
            y = ((row + i) * pitch + down[i, j]) * per_step
            m, n = math.floor(x), math.floor(y)
            s, t = np.float32(x - m), np.float32(y - n)
            m, n = m - samples.first_x, n - samples.first_y
            a = warp[m, 0] + s * (warp[m + 1, 0] - warp[m, 0])
            d = warp[m, 1] + s * (warp[m + 1, 1] - warp[m, 1])
            sa = warp[m, 2] + s * (warp[m + 1, 2] - warp[m, 2])
            sd = warp[m, 3] + s * (warp[m + 1, 3] - warp[m, 3])
            b = weft[n, 0] + t * (weft[n + 1, 0] - weft[n, 0])
            c = weft[n, 1] + t * (weft[n + 1, 1] - weft[n, 1])
            sb = weft[n, 2] + t * (weft[n + 1, 2] - weft[n, 2])
            sc = weft[n, 3] + t * (weft[n + 1, 3] - weft[n, 3])
            # The warp is on top with weight (1 + ss) / 2, the weft with (1 - ss) / 2.
            out[i, j] = half * (a * c + b * d + sa * sc - sb * sd)


def brick(grid: Grid, seed: int) -> Texels:
    """Courses of bricks with chipped edges, no two of one grey, rough, in light mortar."""
    chips = Octaves(0.0128, 0.0002, 2.4, 0.0007)
    across = spline_noise(grid, seed_key(seed, 2), chips)
    down = spline_noise(grid, seed_key(seed, 3), chips)
    out = np.empty((grid.rows, grid.cols), np.float32)
    run_over_rows(_lay, grid.rows, out, across, down, grid, seed_key(seed, 4))
    return add_grain(out, grid, seed, Octaves(0.0256, FINEST_M, 1.5, 0.36))


@compiled
def _within(x: float, low: float, high: float, pitch: float) -> float:
    # Share of the texel around x that lies between low and high.
    return max(0.0, min(high, x + 0.5 * pitch) - max(low, x - 0.5 * pitch)) / pitch


@compiled
def _lay(
    start: int, stop: int, out: Texels, across: Texels, down: Texels, grid: Grid, key: np.uint64
) -> None:
    row, col, pitch = grid.first_row, grid.first_col, grid.pitch_m
    gap = 0.5 * _JOINT_M
    # In a texel larger than a course, single bricks average out.
    seen, texel = min(1.0, _COURSE_M / pitch), min(pitch, 0.4 * _COURSE_M)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            y, x = (row + i) * pitch + down[i, j], (col + j) * pitch + across[i, j]
            course, top, bottom = uneven_cell(key, y / _COURSE_M, 0.35, -7)
            shift = uniform_53(cell_hash(key, course, 1 << 20))
            number, left, right = uneven_cell(key, x / _BRICK_M + shift, 0.35, course)
            look = cell_hash(key, number, course + (1 << 30))
            clay = _within(y, top * _COURSE_M + gap, bottom * _COURSE_M - gap, texel)
            low, high = (left - shift) * _BRICK_M + gap, (right - shift) * _BRICK_M - gap
            clay *= _within(x, low, high, texel)
            # Each brick has its own grey, and is burnt more at one end.
            burnt = 0.16 * (uniform_16(look, 1) - 0.5) * (x - low) / _BRICK_M
            grey = 0.24 + 0.36 * uniform_16(look, 0) + burnt
            out[i, j] = np.float32(_WALL + seen * (0.66 + clay * (grey - 0.66) - _WALL))


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
def _reached(
    band: _Band, half: float, top: float, bottom: float, left: float, right: float
) -> tuple[int, int, int, int]:
    # First and last row and column of a pen of half a width over a box; in metres on the surface.
    row, col, pitch = band.grid.first_row, band.grid.first_col, band.grid.pitch_m
    reach = half + 0.5 * pitch
    first = max(band.start, math.ceil((top - reach) / pitch) - row)
    last = min(band.stop - 1, math.floor((bottom + reach) / pitch) - row)
    begin = max(0, math.ceil((left - reach) / pitch) - col)
    end = min(band.ink.shape[1] - 1, math.floor((right + reach) / pitch) - col)
    return first, last, begin, end


@compiled
def _ring(band: _Band, bold: float, x: float, y: float, a: float, b: float) -> None:
    ink, row, col, pitch = band.ink, band.grid.first_row, band.grid.first_col, band.grid.pitch_m
    half = max(0.5 * bold, 0.5 * pitch)
    faint = 0.5 * bold / half
    first, last, begin, end = _reached(band, half, y - b, y + b, x - a, x + a)
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
    ink, row, col, pitch = band.ink, band.grid.first_row, band.grid.first_col, band.grid.pitch_m
    half = max(0.5 * bold, 0.5 * pitch)
    faint = 0.5 * bold / half
    first, last, begin, end = _reached(
        band, half, min(y0, y1), max(y0, y1), min(x0, x1), max(x0, x1)
    )
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
