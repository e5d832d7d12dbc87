"""The packed pixels of one JPEG scan, followed to their last bit.

Values are not wanted, only how many bits each takes: a scan is whole when its blocks use up its
bits. ITU-T T.81, annexes F (sequential) and G (progressive).

A kernel takes the bytes between two restart markers with some zeros behind them, how many bits they
are, the code tables one behind the other, the first of its units of blocks and their number, and
what else it needs. It gives the bit at which it ends, or -1 where a code is in no table, a
coefficient in no block, or the bits run out. It is Python that Numba can compile.

An entry of a table is for the next 16 bits: 256 times the length of the code that they begin with,
plus its symbol; 0 if they begin with none.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.files.compiled import Kernel, as_array, compiled

# More than the 64 coefficients of a block, of at most 31 bits each, can reach beyond the end.
_AHEAD = bytes(512)


def uses_up(
    kernel: Kernel,
    intervals: list[bytes],
    spans: list[tuple[int, int]],
    tables: NDArray[np.int32],
    *arguments: Any,
    fast: bool,
) -> bool:
    """Whether a kernel finds its units in each interval and uses up all but its last bits."""
    wrap: Callable[[bytes], Any] = bytes
    codes: Any = tables
    if fast:
        kernel, wrap = compiled(kernel), as_array
        arguments = tuple(as_array(value) for value in arguments)
    else:
        codes = tables.data  # which Python reads faster than an array
    for data, (first, units) in zip(intervals, spans, strict=True):
        bits = 8 * len(data)
        end = kernel(wrap(data + _AHEAD), bits, codes, first, units, *arguments)
        if not bits - 8 < end <= bits:
            return False
    return True


def coefficients(
    data: Any,
    bits: int,
    tables: Any,
    first: int,
    units: int,
    dc_tables: Any,
    ac_tables: Any,
    last: int,
) -> int:
    """DC coefficients of each unit's blocks and AC up to `last` (sections F.2.2.1 and F.2.2.2).

    With `last` 0 it is the first scan of DC coefficients of a progressive file (G.1.2.1).
    """
    at = 0
    for _ in range(units):
        for block in range(len(dc_tables)):
            byte = at >> 3
            ahead = data[byte] << 16 | data[byte + 1] << 8 | data[byte + 2]
            entry = tables[dc_tables[block] + (ahead >> (8 - (at & 7)) & 0xFFFF)]
            if entry == 0:
                return -1
            at += (entry >> 8) + (entry & 15)
            base = ac_tables[block]
            k = 1
            while k <= last:
                byte = at >> 3
                ahead = data[byte] << 16 | data[byte + 1] << 8 | data[byte + 2]
                entry = tables[base + (ahead >> (8 - (at & 7)) & 0xFFFF)]
                if entry == 0:
                    return -1
                size = entry & 15
                run = entry >> 4 & 15
                at += (entry >> 8) + size
                if size == 0 and run < 15:
                    break
                k += run + 1
            if k > last + 1 or at > bits:
                return -1
    return at


def dc_refined(data: Any, bits: int, tables: Any, first: int, units: int, blocks: int) -> int:
    """One more bit of each DC coefficient (section G.1.2.1)."""
    return units * blocks


def ac_first(
    data: Any, bits: int, tables: Any, first: int, units: int, low: int, last: int, known: Any
) -> int:
    """AC coefficients `low` to `last` (section G.1.2.2), into the 64 `known` of each block."""
    at = 0
    ended = 0
    for block in range(64 * first, 64 * (first + units), 64):
        if ended > 0:
            ended -= 1
            continue
        k = low
        while k <= last:
            if at > bits:
                return -1
            byte = at >> 3
            ahead = data[byte] << 16 | data[byte + 1] << 8 | data[byte + 2]
            entry = tables[ahead >> (8 - (at & 7)) & 0xFFFF]
            if entry == 0:
                return -1
            size = entry & 15
            run = entry >> 4 & 15
            at += entry >> 8
            if size == 0 and run < 15:  # this block ends, and so many after it are empty
                byte = at >> 3
                ahead = data[byte] << 16 | data[byte + 1] << 8 | data[byte + 2]
                ended = (1 << run) - 1 + ((ahead << (at & 7) & 0xFFFFFF) >> (24 - run))
                at += run
                break
            k += run
            if size > 0:
                if k > last:
                    return -1
                known[block + k] = 1
                at += size
            k += 1
    return at if ended == 0 else -1


def ac_refined(
    data: Any, bits: int, tables: Any, first: int, units: int, low: int, last: int, known: Any
) -> int:
    """One more bit of AC coefficients `low` to `last` (section G.1.2.3), and some new ones."""
    at = 0
    ended = 0
    for block in range(64 * first, 64 * (first + units), 64):
        k = low
        while ended == 0 and k <= last:
            if at > bits:
                return -1
            byte = at >> 3
            ahead = data[byte] << 16 | data[byte + 1] << 8 | data[byte + 2]
            entry = tables[ahead >> (8 - (at & 7)) & 0xFFFF]
            size = entry & 15
            if entry == 0 or size > 1:
                return -1
            run = entry >> 4 & 15
            at += (entry >> 8) + size
            if size == 0 and run < 15:
                byte = at >> 3
                ahead = data[byte] << 16 | data[byte + 1] << 8 | data[byte + 2]
                ended = (1 << run) + ((ahead << (at & 7) & 0xFFFFFF) >> (24 - run))
                at += run
                break
            while k <= last and (known[block + k] or run > 0):
                if known[block + k]:
                    at += 1
                else:
                    run -= 1
                k += 1
            if size > 0:
                if k > last:
                    return -1
                known[block + k] = 1
            k += 1
        if ended > 0:
            while k <= last:
                if known[block + k]:
                    at += 1
                k += 1
            ended -= 1
    return at if ended == 0 else -1
