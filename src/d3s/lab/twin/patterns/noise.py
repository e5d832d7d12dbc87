"""Grids of texels, random numbers for the cells of a lattice, and smooth noise on a surface.

All belong to places on a surface, not to an image of it: the same place has the same texel and the
same random number in every call.

Smooth noise is a sum of octaves of cubic B-splines. Each octave has its own lattice, with half the
spacing of the octave before. A cubic spline on one lattice is also a cubic spline on the next finer
one (two-scale relation), so the octaves are summed as coefficients, coarse to fine, and only the
sum is evaluated at the texels.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows

Texels = NDArray[np.float32]
"""Values of the texels of a grid (rows, cols); the reflectance of a finished pattern is 0 to 1."""

_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_COLUMN = np.uint64(0xD6E8FEB86659FD93)
_S11, _S27, _S30, _S31 = (np.uint64(bits) for bits in (11, 27, 30, 31))


class Grid(NamedTuple):
    """Square texels, numbered from the origin of the surface.

    Texel (i, j) is centred at (x, y) = (j, i) times the pitch, so two grids with the same pitch
    have the same values at the texels that they share.
    """

    first_row: int
    first_col: int
    rows: int
    cols: int
    pitch_m: float


def seed_key(seed: int, *channels: int) -> np.uint64:
    """Hash key of one random channel of one texture."""
    key = np.uint64(mix_bits(np.uint64(seed & 0xFFFFFFFFFFFFFFFF)))
    for channel in channels:
        key = np.uint64(cell_hash(key, channel, 0x5EED))
    return key


@compiled
def mix_bits(number: np.uint64) -> np.uint64:
    """64 random-looking bits, a bijection of the 64 bits given (finisher of SplitMix64)."""
    number = (number ^ (number >> _S30)) * _MIX_1
    number = (number ^ (number >> _S27)) * _MIX_2
    return number ^ (number >> _S31)


@compiled
def cell_hash(key: np.uint64, row: int, col: int) -> np.uint64:
    """64 random bits of a cell of a lattice, for a key of `seed_key` or a hash of another cell."""
    return mix_bits(key + np.uint64(row) * _STRIDE + mix_bits(np.uint64(col) * _COLUMN))


@compiled
def uneven_cell(
    key: np.uint64, x: float, unevenness: float, channel: int
) -> tuple[int, float, float]:
    """Cell that holds x on a line, with its begin and end; cells have a mean width of 1.

    Cell n begins at n plus a random number from 0 to `unevenness`.

    `channel` is the number of the random value within a cell.
    """
    cell = math.floor(x)
    begin = cell + unevenness * uniform_53(cell_hash(key, cell, channel))
    if x < begin:
        before = cell - 1 + unevenness * uniform_53(cell_hash(key, cell - 1, channel))
        return cell - 1, before, begin
    return cell, begin, cell + 1 + unevenness * uniform_53(cell_hash(key, cell + 1, channel))


@compiled
def uniform_16(bits: np.uint64, which: int) -> float:
    """Number in [0, 1) from 16 of 64 bits: the first (which = 0) to the fourth (3) quarter."""
    return np.float64((bits >> np.uint64(16 * which)) & np.uint64(0xFFFF)) * (1.0 / 65536.0)


@compiled
def uniform_53(bits: np.uint64) -> float:
    """Number in [0, 1) from 53 of 64 bits."""
    return np.float64(bits >> _S11) * (1.0 / 9007199254740992.0)


# The spacings are BASE_M / 2^k, so an octave does not depend on the pitch of the texels.
# The finest, 25 um, is the finest that a camera at 0.2 m can resolve.
BASE_M = 0.1024
FINEST_M = BASE_M / 4096

_S16, _S32, _S48 = (np.uint64(bits) for bits in (16, 32, 48))

# RMS of a spline with the coefficients of `_add_details` at unit scale: measured, equal for every
# octave.
_DETAIL_RMS = 0.1951

# Finest octave that texels can show, in pitches.
_FINEST_SHOWN = 0.6


class Octaves(NamedTuple):
    """Range of octaves with a 2-D power spectrum of 1/f^exponent.

    `rms` is the RMS of the sum of all octaves, including those too fine for a given raster.
    """

    coarsest_m: float
    finest_m: float
    exponent: float
    rms: float

    def strengths(self) -> list[tuple[float, float]]:
        """Spacing in metres and RMS of each octave, coarse to fine."""
        first = math.ceil(math.log2(BASE_M / self.coarsest_m) - 1e-9)
        last = math.floor(math.log2(BASE_M / self.finest_m) + 1e-9)
        spacings = [BASE_M / 2.0**k for k in range(first, last + 1)]
        # The power of an octave in 2-D is f^-exponent f df: amplitude = spacing^(exponent/2 - 1).
        raw = [spacing ** (self.exponent / 2.0 - 1.0) for spacing in spacings]
        scale = self.rms / math.sqrt(sum(value * value for value in raw))
        return [(spacing, scale * value) for spacing, value in zip(spacings, raw, strict=True)]

    def resolved(self, pitch_m: float) -> list[tuple[float, float]]:
        """Octaves of `strengths` that texels of this pitch show, in full or in part.

        The octave slightly finer than the texels is included. A pixel is larger than a texel (see
        `surface`), so without this octave an image would lose detail where the next coarser raster
        begins.
        """
        return [octave for octave in self.strengths() if octave[0] >= _FINEST_SHOWN * pitch_m]


def spline_noise(
    grid: Grid,
    key: np.uint64,
    octaves: Octaves,
    *,
    stretch: float = 1.0,
    bend_m: Texels | None = None,
) -> Texels:
    """Noise of mean zero with the octaves that the texels can show; finer octaves average out.

    `stretch` is the length of the features down the surface over their length across it. Each texel
    reads the noise `bend_m` metres to the right, (rows, cols).
    """
    out = np.zeros((grid.rows, grid.cols), np.float32)
    resolved = octaves.resolved(grid.pitch_m)
    if not resolved or not out.size:
        return out
    reach = (0.0, 0.0) if bend_m is None else (float(bend_m.min()), float(bend_m.max()))
    spacing = resolved[-1][0]
    rows = _blocks(grid.first_row, grid.rows, grid.pitch_m, spacing * stretch, (0.0, 0.0))
    cols = _blocks(grid.first_col, grid.cols, grid.pitch_m, spacing, reach)
    coefficients = _coefficients(key, resolved, grid.pitch_m, rows, cols)
    down = _Axis(grid.first_row, grid.pitch_m / (spacing * stretch), 2 * rows[0])
    across = _Axis(grid.first_col, grid.pitch_m / spacing, 2 * cols[0])
    if bend_m is None:
        index, weights = _taps(across.first, grid.cols, across.step)
        run_over_rows(_texels, grid.rows, out, coefficients, index - across.origin, weights, down)
    else:
        per_m = 1.0 / spacing
        run_over_rows(_bent_texels, grid.rows, out, coefficients, bend_m, per_m, down, across)
    return out


def add_grain(out: Texels, grid: Grid, seed: int, grain: Octaves) -> Texels:
    """Make each texel lighter or darker by fractal noise, in place, within 0 and 1.

    The RMS of the noise is relative to the reflectance.
    """
    # The change is proportional to grey (1 - grey), so values stay within 0 and 1 almost without
    # clipping, which would shift the mean.
    grey = np.clip(out, 0.0, 1.0)
    change = spline_noise(grid, seed_key(seed, 1), grain)
    change *= np.float32(2.0)
    change *= grey
    change *= np.float32(1.0) - grey
    return np.clip(grey + change, 0.0, 1.0, out=out)


class _Axis(NamedTuple):
    """Position of texels along one axis, in nodes of the finest lattice."""

    first: int  # number of the first texel
    step: float  # nodes per texel
    origin: int  # node of the first coefficient


def _coefficients(
    key: np.uint64,
    resolved: list[tuple[float, float]],
    pitch_m: float,
    rows: tuple[int, int],
    cols: tuple[int, int],
) -> Texels:
    """Coefficients of the sum of all octaves on the finest lattice, in blocks of 2 by 2 nodes."""
    extents = [(rows, cols)]
    for _ in resolved:
        rows, cols = _parent(rows), _parent(cols)
        extents.append((rows, cols))
    rows, cols = extents.pop()
    parent = np.zeros((2 * (rows[1] - rows[0]), 2 * (cols[1] - cols[0])), np.float32)
    for spacing, strength in resolved:
        origin = (2 * rows[0], 2 * cols[0])
        rows, cols = extents.pop()
        child = np.empty((2 * (rows[1] - rows[0]), 2 * (cols[1] - cols[0])), np.float32)
        # A texel is an average over its square, which weakens features of its size: the sinc at
        # the centre of the octave's band, about 0.3 cycles per spacing.
        seen = float(np.sinc(0.3 * pitch_m / spacing))
        amplitude = np.float32(strength * seen / _DETAIL_RMS)
        octave = seed_key(int(key), round(math.log2(BASE_M / spacing)))
        where = (rows[0], cols[0], rows[0] - origin[0], cols[0] - origin[1])
        run_over_rows(_refine, rows[1] - rows[0], child, parent, amplitude, octave, *where)
        parent = child
    return parent


def _blocks(
    first: int, count: int, pitch_m: float, spacing_m: float, reach: tuple[float, float]
) -> tuple[int, int]:
    """Blocks of two nodes that a run of texels needs: the first, and one past the last."""
    low = math.floor((first * pitch_m + reach[0]) / spacing_m) - 2
    high = math.floor(((first + count - 1) * pitch_m + reach[1]) / spacing_m) + 3
    return low // 2, high // 2 + 1


def _parent(blocks: tuple[int, int]) -> tuple[int, int]:
    return (blocks[0] - 1) // 2, blocks[1] // 2 + 1


def _taps(first: int, count: int, step: float) -> tuple[NDArray[np.int64], Texels]:
    """First of the four nodes of each texel of a row, and the weights of the four nodes."""
    position = step * np.arange(first, first + count, dtype=np.float64)
    node = np.floor(position)
    t = position - node
    s = 1.0 - t
    second = (4.0 - 3.0 * t * t * (1.0 + s)) / 6.0
    third = (4.0 - 3.0 * s * s * (1.0 + t)) / 6.0
    weights = np.stack([s * s * s / 6.0, second, third, t * t * t / 6.0], axis=1)
    return node.astype(np.int64) - 1, weights.astype(np.float32)


@compiled
def _draw(upper: Texels, lower: Texels, key: np.uint64, row: int, col: int) -> None:
    # Two rows of numbers from -1 to 1. One hash gives the four nodes of a block.
    scale, one, mask = np.float32(2.0 / 65535.0), np.float32(1.0), np.uint64(0xFFFF)
    for c in range(upper.size // 2):
        bits = cell_hash(key, row, col + c)
        upper[2 * c] = np.float32(np.int64(bits & mask)) * scale - one
        upper[2 * c + 1] = np.float32(np.int64((bits >> _S16) & mask)) * scale - one
        lower[2 * c] = np.float32(np.int64((bits >> _S32) & mask)) * scale - one
        lower[2 * c + 1] = np.float32(np.int64(bits >> _S48)) * scale - one


@compiled
def _add_details(
    out: Texels, above: Texels, here: Texels, below: Texels, scale: np.float32
) -> None:
    # Random number of a node minus the weighted mean of its eight neighbours (isotropic weights).
    # The octave then has almost no low frequencies, so a coarse raster without this octave has the
    # right mean.
    sixth, twelfth = np.float32(1.0 / 6.0), np.float32(1.0 / 12.0)
    for c in range(out.size):
        near = above[c + 2] + below[c + 2] + here[c + 1] + here[c + 3]
        far = above[c + 1] + above[c + 3] + below[c + 1] + below[c + 3]
        out[c] += scale * (here[c + 2] - sixth * near - twelfth * far)


@compiled
def _refine(
    start: int,
    stop: int,
    out: Texels,
    parent: Texels,
    amplitude: np.float32,
    key: np.uint64,
    row: int,
    col: int,
    up: int,
    left: int,
) -> None:
    # Block (b, c) of the child holds the four nodes around node (b + up, c + left) of the parent.
    blocks = out.shape[1] // 2
    width = blocks + 2
    even = np.empty(width, np.float32)
    odd = np.empty(width, np.float32)
    drawn = np.empty((6, 2 * width), np.float32)
    eighth, six, half = np.float32(0.125), np.float32(6.0), np.float32(0.5)
    for b in range(start - 1, start + 1):
        at = 2 * (b % 3)
        _draw(drawn[at], drawn[at + 1], key, row + b, col - 1)
    for b in range(start, stop):
        p = b + up
        for c in range(width):
            q = c + left - 1
            middle = parent[p, q]
            even[c] = (parent[p - 1, q] + six * middle + parent[p + 1, q]) * eighth
            odd[c] = (middle + parent[p + 1, q]) * half
        for c in range(blocks):
            out[2 * b, 2 * c] = (even[c] + six * even[c + 1] + even[c + 2]) * eighth
            out[2 * b, 2 * c + 1] = (even[c + 1] + even[c + 2]) * half
            out[2 * b + 1, 2 * c] = (odd[c] + six * odd[c + 1] + odd[c + 2]) * eighth
            out[2 * b + 1, 2 * c + 1] = (odd[c + 1] + odd[c + 2]) * half
        last, this, new = 2 * ((b - 1) % 3) + 1, 2 * (b % 3), 2 * ((b + 1) % 3)
        _draw(drawn[new], drawn[new + 1], key, row + b + 1, col - 1)
        _add_details(out[2 * b], drawn[last], drawn[this], drawn[this + 1], amplitude)
        _add_details(out[2 * b + 1], drawn[this], drawn[this + 1], drawn[new], amplitude)


@compiled
def _blend_rows(line: Texels, coefficients: Texels, position: float, origin: int) -> None:
    # Weighted sum of the four rows of nodes around a row of texels.
    node = math.floor(position)
    t = position - node
    s = 1.0 - t
    w0 = np.float32(s * s * s / 6.0)
    w1 = np.float32((4.0 - 3.0 * t * t * (1.0 + s)) / 6.0)
    w2 = np.float32((4.0 - 3.0 * s * s * (1.0 + t)) / 6.0)
    w3 = np.float32(t * t * t / 6.0)
    r = np.int64(node) - 1 - origin
    for c in range(line.size):
        line[c] = (
            w0 * coefficients[r, c]
            + w1 * coefficients[r + 1, c]
            + w2 * coefficients[r + 2, c]
            + w3 * coefficients[r + 3, c]
        )


@compiled
def _texels(
    start: int,
    stop: int,
    out: Texels,
    coefficients: Texels,
    index: NDArray[np.int64],
    weights: Texels,
    down: _Axis,
) -> None:
    line = np.empty(coefficients.shape[1], np.float32)
    for i in range(start, stop):
        _blend_rows(line, coefficients, (down.first + i) * down.step, down.origin)
        for j in range(out.shape[1]):
            c = index[j]
            out[i, j] = (
                weights[j, 0] * line[c]
                + weights[j, 1] * line[c + 1]
                + weights[j, 2] * line[c + 2]
                + weights[j, 3] * line[c + 3]
            )


@compiled
def _bent_texels(
    start: int,
    stop: int,
    out: Texels,
    coefficients: Texels,
    bend: Texels,
    per_m: float,
    down: _Axis,
    across: _Axis,
) -> None:
    line = np.empty(coefficients.shape[1], np.float32)
    for i in range(start, stop):
        _blend_rows(line, coefficients, (down.first + i) * down.step, down.origin)
        for j in range(out.shape[1]):
            position = (across.first + j) * across.step + bend[i, j] * per_m
            node = math.floor(position)
            t = np.float32(position - node)
            s = np.float32(1.0) - t
            c = np.int64(node) - 1 - across.origin
            three, four = np.float32(3.0), np.float32(4.0)
            out[i, j] = (
                s * s * s * line[c]
                + (four - three * t * t * (np.float32(1.0) + s)) * line[c + 1]
                + (four - three * s * s * (np.float32(1.0) + t)) * line[c + 2]
                + t * t * t * line[c + 3]
            ) * np.float32(1.0 / 6.0)


def power_law(
    grid: Grid, seed: int, exponent: float, *, rms: float = 0.5, coarsest_m: float = 0.0512
) -> Texels:
    """Noise around 1/2 with a 2-D power spectrum of 1/f^exponent, softly limited to 0 to 1.

    An exponent of 2 is that of natural images: equal contrast at all sizes.

    `rms` is that of all octaves before the limit, in units of half the range. The largest features
    are so small that every frame has the mean of the texture.
    """
    out = spline_noise(grid, seed_key(seed, 1), Octaves(coarsest_m, FINEST_M, exponent, rms))
    # An odd function about 1/2, which keeps the mean at any contrast.
    half, one = np.float32(0.5), np.float32(1.0)
    return np.asarray(half + half * out / np.sqrt(one + out * out))
