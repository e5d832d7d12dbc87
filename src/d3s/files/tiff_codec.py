"""How a strip or a tile of a TIFF file is packed: as it is, PackBits, LZW or deflate."""

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.compiled import COMPILE_ABOVE_BYTES, as_array, compiled
from d3s.files.raw import cut_short

Codec = Callable[[bytes, tuple[int, int, int], np.dtype[Any]], NDArray[Any]]
_Unpack = Callable[[bytes, int], bytes]


def codec(compression: int, predictor: int, kind: np.dtype[Any], image_bytes: int) -> Codec:
    """Function from packed bytes, shape and type of a block to its samples."""
    if compression not in _UNPACKERS:
        raise InputError(
            f"is a TIFF with compression {compression}, and none, LZW, deflate and PackBits are "
            "read. Save it without compression."
        )
    unpack = _UNPACKERS[compression]
    if unpack is _lzw and image_bytes > COMPILE_ABOVE_BYTES:
        unpack = _fast_lzw
    if compression in (1, 32773):
        predictor = 1  # these have none, whatever the header says
    if predictor not in (1, 2, 3) or (predictor == 3) > (kind.kind == "f"):
        raise cut_short(f"has TIFF predictor {predictor}, which is none for its samples")

    def decode(packed: bytes, shape: tuple[int, int, int], kind: np.dtype[Any]) -> NDArray[Any]:
        expected = math.prod(shape) * kind.itemsize
        unpacked = unpack(packed, expected)
        if len(unpacked) != expected:
            raise cut_short("has a TIFF strip or tile that does not hold what its header says")
        return _predicted(unpacked, shape, kind, predictor)

    return decode


def _predicted(
    unpacked: bytes, shape: tuple[int, int, int], kind: np.dtype[Any], predictor: int
) -> NDArray[Any]:
    """Samples from their differences along a row."""
    if predictor == 3:  # of the bytes, first all the highest of a row, then all the next
        rows, columns, channels = shape
        steps = np.frombuffer(unpacked, np.uint8).reshape(rows, -1, channels)
        planes = np.cumsum(steps, axis=1, dtype=np.uint8).reshape(rows, kind.itemsize, -1)
        together = np.ascontiguousarray(planes.transpose(0, 2, 1))
        return together.view(kind.newbyteorder(">")).reshape(rows, columns, channels)
    samples = np.frombuffer(unpacked, kind).reshape(shape)
    if predictor == 1:
        return samples
    whole = samples.view(samples.dtype.str.replace("f", "u"))
    summed = np.cumsum(whole, axis=1, dtype=whole.dtype.newbyteorder("="))
    return summed.view(kind.newbyteorder("="))


def _plain(packed: bytes, expected: int) -> bytes:
    return packed


def _deflate(packed: bytes, expected: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        unpacked = inflater.decompress(packed, expected + 1)
    except zlib.error as error:
        raise cut_short(f"has a TIFF strip or tile that does not inflate ({error})") from error
    return unpacked if inflater.eof else b""


def _packbits(packed: bytes, expected: int) -> bytes:
    unpacked = bytearray()
    at = 0
    while at < len(packed) and len(unpacked) <= expected:
        lead = packed[at]
        if lead < 128:
            if at + 2 + lead > len(packed):
                return b""
            unpacked += packed[at + 1 : at + 2 + lead]
            at += 2 + lead
        elif lead == 128:
            at += 1
        else:
            unpacked += packed[at + 1 : at + 2] * (257 - lead)
            at += 2
    return bytes(unpacked)


def _lzw(packed: bytes, expected: int) -> bytes:
    unpacked = bytearray(expected)
    size = lzw(packed, unpacked, [0] * 4096, [0] * 4096)
    return bytes(unpacked) if size == expected else b""


def _fast_lzw(packed: bytes, expected: int) -> bytes:
    unpacked = bytearray(expected)
    starts, sizes = np.zeros((2, 4096), np.int64)
    size = compiled(lzw)(as_array(packed), as_array(unpacked), starts, sizes)
    return bytes(unpacked) if size == expected else b""


def lzw(packed: Any, unpacked: Any, starts: Any, sizes: Any) -> int:
    """Number of bytes that were unpacked; -1 where a code cannot be, or for more than fit.

    The text of a code from 258 is what an earlier code gave and one byte more, which lies in
    `unpacked` already: `starts` and `sizes` say where. It is Python that Numba can compile.
    """
    end, codes, width, previous, bits, held = 0, 258, 9, 0, 0, 0
    for byte in packed:
        bits = (bits << 8 | byte) & 0xFFFFFF
        held += 8
        if held < width:
            continue
        held -= width
        code = bits >> held & ((1 << width) - 1)
        if code == 257:
            return end
        if code == 256:
            codes, width, previous = 258, 9, 0
            continue
        if previous > 0:  # the size of the text before, which this one continues
            if codes > 4095:
                return -1
            starts[codes] = end - previous
            sizes[codes] = previous + 1
            codes += 1
        if code < 256:
            size = 1
        elif code < codes:
            size = sizes[code]
        else:
            return -1
        if end + size > len(unpacked):
            return -1
        if code < 256:
            unpacked[end] = code
        else:
            for i in range(size):  # one by one: the last may be the first one copied
                unpacked[end + i] = unpacked[starts[code] + i]
        end += size
        previous = size
        # A code grows a step before the table needs it, as the first encoder happened to do.
        width = 9 if codes < 511 else 10 if codes < 1023 else 11 if codes < 2047 else 12
    return end


_UNPACKERS: dict[int, _Unpack] = {
    1: _plain,
    5: _lzw,
    8: _deflate,
    32946: _deflate,
    32773: _packbits,
}
