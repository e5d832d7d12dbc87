"""Rows of a PNG, from what its filters left of them (PNG specification, clause 9)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.files.compiled import compiled

SUB, UP, AVERAGE, PAETH = 1, 2, 3, 4
# Raw frames, of which there are many. A first small picture is not to wait for a compiler.
_WORTH_BYTES = 8_000_000


def worth_it(pixels: bytes) -> bool:
    """Whether there is so much that OpenCV, which would inflate it once more, is too slow."""
    return len(pixels) > _WORTH_BYTES


def samples(pixels: bytes, rows: int, channels: int, sample_bytes: int) -> NDArray[Any]:
    """Samples (rows, columns, channels) of 8 or 16 bits from inflated rows with a filter byte."""
    filtered = np.frombuffer(pixels, np.uint8).reshape(rows, -1)
    plain = np.empty((rows, filtered.shape[1] - 1), np.uint8)
    compiled(undo_filters)(filtered, plain, channels * sample_bytes)
    wide = plain if sample_bytes == 1 else plain.view(">u2").astype(np.uint16)
    return wide.reshape(rows, -1, channels)


def undo_filters(filtered: NDArray[np.uint8], plain: NDArray[np.uint8], pixel_bytes: int) -> int:
    """Write the bytes of all rows; every one but the first pixel and row knows its neighbours."""
    rows, size = len(plain), plain.shape[1]
    for row in range(rows):
        kind = filtered[row, 0]
        here, above = plain[row], plain[max(row - 1, 0)]
        for i in range(size):
            left = np.int32(here[i - pixel_bytes]) if i >= pixel_bytes else np.int32(0)
            up = np.int32(above[i]) if row > 0 else np.int32(0)
            corner = (
                np.int32(above[i - pixel_bytes]) if row > 0 and i >= pixel_bytes else np.int32(0)
            )
            if kind == SUB:
                guess = left
            elif kind == UP:
                guess = up
            elif kind == AVERAGE:
                guess = (left + up) >> 1
            elif kind == PAETH:
                from_left, from_up = abs(up - corner), abs(left - corner)
                from_corner = abs(left + up - 2 * corner)
                if from_left <= from_up and from_left <= from_corner:
                    guess = left
                elif from_up <= from_corner:
                    guess = up
                else:
                    guess = corner
            else:
                guess = np.int32(0)
            here[i] = np.uint8((np.int32(filtered[row, i + 1]) + guess) & 255)
    return rows
