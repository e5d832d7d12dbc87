"""NPY: one array, its header checked against the file before anything is allocated."""

import io
import math
import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.files.raw import Samples, check_size, cut_short
from d3s.formats import NPY

MAGIC = NPY.magics[0]

# numpy evaluates the header as Python: slowly, and with warnings if it is damaged. All programs
# that write NPY files write the header in this form and order.
_FIELDS = re.compile(
    rb"\{\s*'descr':\s*'([!-&(-~]{2,9})',\s*'fortran_order':\s*(True|False),"
    rb"\s*'shape':\s*\(((?:\s*\d{1,18}\s*,)*(?:\s*\d{1,18})?)\s*\),?\s*\}\s*"
)
NUMBERS = re.compile(r"\|b1|[|<>][iu]1|[<>][iu][248]|[<>]f[248]|[<>]c(8|16)|[|<>]S\d+|[<>]U\d+")

_KINDS = {"u1": 255, "u2": 65535, "f4": None, "f8": None}


@dataclass(frozen=True, kw_only=True)
class Header:
    """Header of an NPY file; `start` is the byte at which its samples begin."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    start: int

    @property
    def bytes(self) -> int:
        """Bytes of all samples."""
        return math.prod(self.shape) * self.dtype.itemsize


def header(raw: bytes) -> Header:
    """Header at the beginning of an NPY file."""
    width = {1: 2, 2: 4, 3: 4}.get(raw[6] if len(raw) > 6 else 0)
    if not raw.startswith(MAGIC) or width is None or len(raw) < 8 + width:
        raise cut_short("has no proper NPY header")
    start = 8 + width + int.from_bytes(raw[8 : 8 + width], "little")
    text = raw[8 + width : start]
    if start > len(raw) or len(text) > 10_000:  # as numpy limits it: a long text is slow to parse
        raise cut_short("has no proper NPY header")
    fields = _FIELDS.fullmatch(text)
    if fields is None:
        raise cut_short("has an NPY header that cannot be read")
    kind = fields[1].decode()
    if not NUMBERS.fullmatch(kind):
        raise InputError(f"holds values of type {kind!r}, and numbers are read. Save numbers.")
    return Header(
        shape=tuple(int(number) for number in re.findall(rb"\d+", fields[3])),
        fortran_order=fields[2] == b"True",
        dtype=np.dtype(kind),
        start=start,
    )


def array(raw: bytes, found: Header) -> NDArray[Any]:
    """Array of an NPY file, read-only and not copied; pickled objects are refused by `header`."""
    if len(raw) - found.start != found.bytes:
        raise cut_short(
            f"has {len(raw) - found.start} bytes of samples, and its header says {found.bytes}"
        )
    order: Literal["F", "C"] = "F" if found.fortran_order else "C"
    return np.ndarray(found.shape, found.dtype, raw, found.start, order=order)


def read(raw: bytes, max_pixels: int) -> Samples:
    """Samples of an image that was saved with `numpy.save`."""
    found = header(raw)
    kind = found.dtype.str[1:]
    if len(found.shape) not in (2, 3) or (
        len(found.shape) == 3 and found.shape[2] not in (1, 3, 4)
    ):
        raise InputError(
            f"holds an array of shape {found.shape}, and an image has (rows, columns), "
            "or (rows, columns, 3) in colour. Save one image a file."
        )
    if kind not in _KINDS:
        raise InputError(
            f"holds values of type {found.dtype}, and uint8, uint16, float32 and float64 are read. "
            "Convert the array before you save it."
        )
    check_size(found.shape[1], found.shape[0], max_pixels)
    return Samples(values=array(raw, found), full_scale=_KINDS[kind])


def encode(values: NDArray[Any]) -> bytes:
    """NPY file of an array."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, values, version=None, allow_pickle=False)
    return buffer.getvalue()
