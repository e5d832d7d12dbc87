"""Random numbers that belong to places in the world: asked again, each is the same."""

import numpy as np

from d3s.runtime.compile import compiled

_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_COLUMN = np.uint64(0xD6E8FEB86659FD93)
_S11, _S27, _S30, _S31 = (np.uint64(bits) for bits in (11, 27, 30, 31))


def seed_key(seed: int, *channels: int) -> np.uint64:
    """The key from which all numbers of one channel of one texture are made."""
    key = np.uint64(mix(np.uint64(seed & 0xFFFFFFFFFFFFFFFF)))
    for channel in channels:
        key = np.uint64(cell_hash(key, channel, 0x5EED))
    return key


@compiled
def mix(number: np.uint64) -> np.uint64:
    """64 bits that look random, one to one with the 64 bits given (the finisher of SplitMix64)."""
    number = (number ^ (number >> _S30)) * _MIX_1
    number = (number ^ (number >> _S27)) * _MIX_2
    return number ^ (number >> _S31)


@compiled
def cell_hash(key: np.uint64, row: int, col: int) -> np.uint64:
    """64 random bits of one cell of a lattice; rows and columns may be negative."""
    return mix(key + np.uint64(row) * _STRIDE + mix(np.uint64(col) * _COLUMN))


@compiled
def part(bits: np.uint64, which: int) -> float:
    """Number from 0 to 1 made of the first (0), second, third or fourth (3) 16 of 64 bits."""
    return np.float64((bits >> np.uint64(16 * which)) & np.uint64(0xFFFF)) * (1.0 / 65536.0)


@compiled
def unit(bits: np.uint64) -> float:
    """Number from 0 to 1 made of 53 of 64 bits."""
    return np.float64(bits >> _S11) * (1.0 / 9007199254740992.0)
