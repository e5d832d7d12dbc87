"""Smooth noise that belongs to places in the world, not to a picture of it.

Noise is a sum of octaves of cubic B-splines, each on its own lattice with half the spacing of the
one before. A cubic spline on one lattice is also one on the next finer (the two-scale relation),
so the octaves are summed as coefficients, coarse to fine, and only the sum is turned into texels.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.runtime.parallel import over_rows
from d3s.scene.grid import Grid
from d3s.scene.hashing import cell_hash, seed_key

Texels = NDArray[np.float32]

# The lattices of all octaves are those of BASE_M / 2^k, so that octaves of one spacing are the same
# whatever the pitch. Its 25 um octave is the finest that a camera at 0.2 m could tell from none.
BASE_M = 0.1024
FINEST_M = BASE_M / 4096

_S16, _S32, _S48 = (np.uint64(bits) for bits in (16, 32, 48))

# Root mean square of the splines whose coefficients are those of `_add_details` at unit scale;
# measured, and the same for every octave.
_DETAIL_RMS = 0.1951

_FINEST_SHOWN = 0.6


class Octaves(NamedTuple):
    """Spacings from coarse to fine, and how strong each is: a 2-D power spectrum 1/f^exponent.

    `rms` is that of the sum of all, finest included, whether or not a raster can show it.
    """

    coarsest_m: float
    finest_m: float
    exponent: float
    rms: float

    def strengths(self) -> list[tuple[float, float]]:
        """Spacing in metres and root mean square of each octave, coarse to fine."""
        first = math.ceil(math.log2(BASE_M / self.coarsest_m) - 1e-9)
        last = math.floor(math.log2(BASE_M / self.finest_m) + 1e-9)
        spacings = [BASE_M / 2.0**k for k in range(first, last + 1)]
        # An octave of the plane has the power f^-exponent f df, so its amplitude goes as this.
        raw = [spacing ** (self.exponent / 2.0 - 1.0) for spacing in spacings]
        scale = self.rms / math.sqrt(sum(value * value for value in raw))
        return [(spacing, scale * value) for spacing, value in zip(spacings, raw, strict=True)]

    def shown(self, pitch_m: float) -> list[tuple[float, float]]:
        """Those of `strengths` that texels of a pitch can show, if not quite to their end.

        A pixel is larger than a texel (`surface`): without the octave that is a little finer than
        the texels, it would see the texture lose detail where the next raster begins.
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
    """Noise of mean zero with the octaves that the texels can show; the others average out.

    `stretch` is how many times longer its features are down the surface than across it, `bend_m`
    how far each texel looks to the right of where it is.
    """
    out = np.zeros((grid.rows, grid.cols), np.float32)
    shown = octaves.shown(grid.pitch_m)
    if not shown or not out.size:
        return out
    reach = (0.0, 0.0) if bend_m is None else (float(bend_m.min()), float(bend_m.max()))
    spacing = shown[-1][0]
    rows = _blocks(grid.first_row, grid.rows, grid.pitch_m, spacing * stretch, (0.0, 0.0))
    cols = _blocks(grid.first_col, grid.cols, grid.pitch_m, spacing, reach)
    coefficients = _coefficients(key, shown, grid.pitch_m, rows, cols)
    step_row, step_col = grid.pitch_m / (spacing * stretch), grid.pitch_m / spacing
    origin_row, origin_col = 2 * rows[0], 2 * cols[0]
    if bend_m is None:
        index, weights = _taps(grid.first_col, grid.cols, step_col)
        arguments = (coefficients, index - origin_col, weights)
        over_rows(_texels, grid.rows, out, *arguments, grid.first_row, step_row, origin_row)
    else:
        where = (grid.first_row, step_row, origin_row, grid.first_col, step_col, origin_col)
        over_rows(_bent_texels, grid.rows, out, coefficients, bend_m, 1.0 / spacing, *where)
    return out


def _coefficients(
    key: np.uint64,
    shown: list[tuple[float, float]],
    pitch_m: float,
    rows: tuple[int, int],
    cols: tuple[int, int],
) -> Texels:
    """Coefficients of the sum of all octaves, on the lattice of the finest: blocks of 2 by 2."""
    extents = [(rows, cols)]
    for _ in shown:
        rows, cols = _parent(rows), _parent(cols)
        extents.append((rows, cols))
    rows, cols = extents.pop()
    parent = np.zeros((2 * (rows[1] - rows[0]), 2 * (cols[1] - cols[0])), np.float32)
    for spacing, strength in shown:
        origin = (2 * rows[0], 2 * cols[0])
        rows, cols = extents.pop()
        child = np.empty((2 * (rows[1] - rows[0]), 2 * (cols[1] - cols[0])), np.float32)
        # A texel averages over itself, which takes something from features of about its size; the
        # middle of the octave's band is near 0.3 cycles a spacing.
        seen = float(np.sinc(0.3 * pitch_m / spacing))
        amplitude = np.float32(strength * seen / _DETAIL_RMS)
        octave = seed_key(int(key), round(math.log2(BASE_M / spacing)))
        where = (rows[0], cols[0], rows[0] - origin[0], cols[0] - origin[1])
        over_rows(_refine, rows[1] - rows[0], child, parent, amplitude, octave, *where)
        parent = child
    return parent


def _blocks(
    first: int, count: int, pitch_m: float, spacing_m: float, reach: tuple[float, float]
) -> tuple[int, int]:
    """First block of two nodes, and the one after the last, that a run of texels needs."""
    low = math.floor((first * pitch_m + reach[0]) / spacing_m) - 2
    high = math.floor(((first + count - 1) * pitch_m + reach[1]) / spacing_m) + 3
    return low // 2, high // 2 + 1


def _parent(blocks: tuple[int, int]) -> tuple[int, int]:
    return (blocks[0] - 1) // 2, blocks[1] // 2 + 1


def _taps(first: int, count: int, step: float) -> tuple[NDArray[np.int64], Texels]:
    """First of the four nodes of each texel of a line, and the weights of the four."""
    position = step * np.arange(first, first + count, dtype=np.float64)
    node = np.floor(position)
    t = position - node
    s = 1.0 - t
    weights = np.stack(
        [
            s * s * s / 6.0,
            (4.0 - 3.0 * t * t * (1.0 + s)) / 6.0,
            (4.0 - 3.0 * s * s * (1.0 + t)) / 6.0,
            t * t * t / 6.0,
        ],
        axis=1,
    )
    return node.astype(np.int64) - 1, weights.astype(np.float32)


@compiled
def _draw(upper: Texels, lower: Texels, key: np.uint64, row: int, col: int) -> None:
    # Two rows of numbers from -1 to 1: four a hash, of the four nodes of a block.
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
    # A node's number less the mean of those around it, weighted so that no direction stands out.
    # Such an octave has next to nothing of low frequency: what a coarse raster drops was not part
    # of what it shows.
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
    # Block (b, c) of the child is the four nodes that stand around node (b + up, c + left) of the
    # parent.
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
    # The four rows of nodes around a row of texels, as one.
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
    row: int,
    step: float,
    origin: int,
) -> None:
    line = np.empty(coefficients.shape[1], np.float32)
    for i in range(start, stop):
        _blend_rows(line, coefficients, (row + i) * step, origin)
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
    row: int,
    step: float,
    origin: int,
    col: int,
    step_col: float,
    origin_col: int,
) -> None:
    line = np.empty(coefficients.shape[1], np.float32)
    for i in range(start, stop):
        _blend_rows(line, coefficients, (row + i) * step, origin)
        for j in range(out.shape[1]):
            position = (col + j) * step_col + bend[i, j] * per_m
            node = math.floor(position)
            t = np.float32(position - node)
            s = np.float32(1.0) - t
            c = np.int64(node) - 1 - origin_col
            three, four = np.float32(3.0), np.float32(4.0)
            out[i, j] = (
                s * s * s * line[c]
                + (four - three * t * t * (np.float32(1.0) + s)) * line[c + 1]
                + (four - three * s * s * (np.float32(1.0) + t)) * line[c + 2]
                + t * t * t * line[c + 3]
            ) * np.float32(1.0 / 6.0)
