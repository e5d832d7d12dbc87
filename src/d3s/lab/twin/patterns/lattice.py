"""Grids of texels, and the random numbers of the cells of a lattice.

Both belong to places on a surface, not to an image of it: the same place has the same texel and the
same random number in every call.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.compile import compiled
from d3s.types import FloatArray

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

    @property
    def x_m(self) -> FloatArray:
        """Centre of each column, in metres to the right of the origin."""
        return self.pitch_m * np.arange(
            self.first_col, self.first_col + self.cols, dtype=np.float64
        )

    @property
    def y_m(self) -> FloatArray:
        """Centre of each row, in metres below the origin."""
        return self.pitch_m * np.arange(
            self.first_row, self.first_row + self.rows, dtype=np.float64
        )


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
    """64 random bits of one cell of a lattice.

    Parameters
    ----------
    key
        From `seed_key`, or a hash of another cell.
    row, col
        Cell of the lattice; both may be negative.
    """
    return mix_bits(key + np.uint64(row) * _STRIDE + mix_bits(np.uint64(col) * _COLUMN))


@compiled
def uneven_cell(
    key: np.uint64, x: float, unevenness: float, channel: int
) -> tuple[int, float, float]:
    """Cell that holds x on a line, with its begin and end; cells have a mean width of 1.

    Cell n begins at n plus a random number from 0 to `unevenness`.

    Parameters
    ----------
    key
        Key of the hash of the pattern.
    x
        Place on the line, in mean widths of a cell.
    unevenness
        Largest random shift of the beginning of a cell, from 0 to 1.
    channel
        Number of the random value within a cell.
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
