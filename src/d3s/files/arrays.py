"""NPY and NPZ: an array, or named arrays in one file; the same arrays give the same bytes.

The header of an array is checked against the file before anything is allocated.
"""

import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s import atomic
from d3s.errors import InputError
from d3s.files.raw import Samples, check_size, cut_short, decoded_as, named, read_file
from d3s.formats import MAX_PIXELS

_KINDS = "biufcSU"  # booleans, numbers and texts
_HEADER_BYTES = 10_000  # numpy reads no longer one
_HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_NPY_KINDS = {"u1": 255, "u2": 65535, "f4": None, "f8": None}


class NpyHeader(NamedTuple):
    """Header of an NPY file; `start` is the byte at which its samples begin."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    start: int

    @property
    def bytes(self) -> int:
        """Bytes of all samples."""
        return math.prod(self.shape) * self.dtype.itemsize


def npy_header(raw: bytes) -> NpyHeader:
    """Header at the beginning of an NPY file."""
    file = io.BytesIO(raw)
    with decoded_as("NPY"):
        shape, fortran_order, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
        if dtype.kind not in _KINDS:
            raise InputError(f"holds values of type {dtype.str!r}, and numbers are read.")
    return NpyHeader(shape, fortran_order, dtype, file.tell())


def npy_array(raw: bytes, found: NpyHeader) -> NDArray[Any]:
    """Array of an NPY file, read-only and not copied; `npy_header` refuses pickled objects."""
    if len(raw) - found.start != found.bytes:
        raise cut_short(
            f"has {len(raw) - found.start} bytes of samples, and its header says {found.bytes}"
        )
    order: Literal["F", "C"] = "F" if found.fortran_order else "C"
    return np.ndarray(found.shape, found.dtype, raw, found.start, order=order)


def read_npy(raw: bytes, max_pixels: int) -> Samples:
    """Samples of an image that was saved with `numpy.save`."""
    found = npy_header(raw)
    kind = found.dtype.str[1:]
    if len(found.shape) not in (2, 3) or (
        len(found.shape) == 3 and found.shape[2] not in (1, 3, 4)
    ):
        raise InputError(
            f"holds an array of shape {found.shape}, and an image has (rows, columns), "
            "or (rows, columns, 3) in colour. Save one image a file."
        )
    if kind not in _NPY_KINDS:
        raise InputError(
            f"holds values of type {found.dtype}, and uint8, uint16, float32 and float64 are read. "
            "Convert the array before you save it."
        )
    check_size(found.shape[1], found.shape[0], max_pixels)
    return Samples(values=npy_array(raw, found), full_scale=_NPY_KINDS[kind])


def encode_npy(values: NDArray[Any]) -> bytes:
    """NPY file of an array."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, values, version=None, allow_pickle=False)
    return buffer.getvalue()


# NPZ ---------------------------------------------------------------------------------------------

MAX_BYTES = 2_000_000_000
_MOST_TEXT_BYTES = 4_000_000

# The fastest level: noise of depth, sigma and intensity does not compress. Level 6 takes two to
# four times as long for a size within 2 %, in either direction.
COMPRESSION_LEVEL = 1
# Of noise, only frequent bytes compress, and a search for repeated ones takes twice the time of the
# rest: it is left out if a sample of the array is not larger by more than this without it.
_WITHOUT_SEARCH = 1.1
_SAMPLE = (16, 1 << 10)  # pieces, and bytes of each
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The last record of an archive: its mark, and the number of its members.
_END = struct.Struct("<4s6xH10x")


def write_npz(
    path: str | os.PathLike[str], *, overwrite: bool = False, **arrays: ArrayLike
) -> None:
    """Write named arrays of numbers or texts into one compressed NPZ file, whole or not at all.

    `overwrite` says whether a file that holds something else may be replaced. What cannot be
    written is an `InputError`, a place that cannot an `OutputError`.
    """
    with named(path):
        content = packed(arrays)
    atomic.write_bytes(path, content, overwrite=overwrite)


def packed(arrays: Mapping[str, ArrayLike]) -> bytes:
    """Bytes of an NPZ file of named arrays; an `InputError` if one has no numbers or texts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # with the first day that a ZIP file can have
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # the same on every machine
            content = encode_npy(_writable(name, array))
            with archive.open(member, "w") as file:
                opened: Any = file  # zipfile itself has levels only
                opened._compressor = _compressor(content)
                file.write(content)
    return buffer.getvalue()


def read_npz(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, max_pixels: int = MAX_PIXELS
) -> dict[str, NDArray[Any]]:
    """Read the arrays of an NPZ file, by name; pickled objects are refused, never run.

    An `InputError` if by its headers an array has more than `max_pixels`, or all together more than
    `max_bytes`, and if the file is damaged or holds something other than numbers or texts.
    """
    with named(path):
        return unpacked(read_file(path, max_bytes), max_pixels, max_bytes)


def _compressor(content: bytes) -> Any:
    """Compressor for the bytes of an array, with a search for repeated ones if that is worth it."""
    pieces, size = _SAMPLE
    step = max(len(content) // pieces, size)
    sample = b"".join(content[start : start + size] for start in range(0, len(content), step))
    searched, coded = (
        len(one.compress(sample)) + len(one.flush())
        for one in (_deflate(zlib.Z_DEFAULT_STRATEGY), _deflate(zlib.Z_RLE))
    )
    is_noise = coded < _WITHOUT_SEARCH * searched
    return _deflate(zlib.Z_RLE if is_noise else zlib.Z_DEFAULT_STRATEGY)


def _deflate(strategy: int) -> Any:
    return zlib.compressobj(
        COMPRESSION_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy
    )


def _writable(name: str, array: ArrayLike) -> NDArray[Any]:
    try:
        values = np.asarray(array)
    except (ValueError, TypeError) as error:  # rows of unequal lengths
        raise InputError(f"{name} is no array: {error}.") from error
    if values.dtype.kind not in _KINDS:
        raise InputError(
            f"{name} has type {values.dtype}, and numbers or texts are written. Convert it first."
        )
    return values


def unpacked(
    raw: bytes, max_pixels: int = MAX_PIXELS, max_bytes: int = MAX_BYTES
) -> dict[str, NDArray[Any]]:
    """Arrays in the bytes of an NPZ file, by name, if their headers keep to the limits."""
    if not raw.startswith(b"PK"):
        raise InputError("does not begin like an NPZ file. Is it one?")
    with decoded_as("NPZ"), zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        _check_members(members, max_bytes)
        _check_count(raw, len(members), archive.comment)
        headers = [_checked_header(archive, one, max_pixels) for one in members]
        return {
            # Without a size, all that the file holds is unpacked, whatever it declares.
            member.filename.removesuffix(".npy"): npy_array(
                archive.open(member).read(member.file_size), header
            ).copy()
            for member, header in zip(members, headers, strict=True)
        }


def _check_members(members: list[zipfile.ZipInfo], max_bytes: int) -> None:
    total = sum(member.file_size for member in members)
    if total > max_bytes:
        raise InputError(
            f"declares {total} bytes when unpacked, more than max_bytes={max_bytes}. "
            "If the file is what you think it is, raise max_bytes."
        )
    if any(member.compress_type not in _PLAIN for member in members):
        raise InputError("is packed in an uncommon way. Save it again with numpy.")
    names = [member.filename for member in members]
    if len(set(names)) != len(names) or not all(name.endswith(".npy") for name in names):
        raise InputError("holds more than arrays of distinct names. Is it an NPZ file?")


def _check_count(raw: bytes, members: int, comment: bytes) -> None:
    """Refuse an archive with fewer members than its end declares: zipfile does not notice it."""
    end = len(raw) - len(comment) - _END.size
    magic, declared = _END.unpack_from(raw, max(end, 0))
    many = declared == 0xFFFF  # ZIP64: more arrays than any file of ours has
    if magic != b"PK\5\6" or declared != members or many:
        raise cut_short(f"has {members} arrays, and its end says {declared}")


def _checked_header(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, max_pixels: int
) -> NpyHeader:
    """Header of an array, if it fits the size that the archive declares, and the limits."""
    with named(member.filename), archive.open(member) as file:
        found = npy_header(file.read(_HEADER_BYTES))
        if found.start + found.bytes != member.file_size:
            raise cut_short(
                f"has {member.file_size - found.start} bytes of samples, and its header says "
                f"{found.bytes}"
            )
        if found.dtype.kind in "SU" and found.bytes > _MOST_TEXT_BYTES:
            raise cut_short(f"declares a text of {found.bytes} bytes")
        has_colours = len(found.shape) == 3 and found.shape[2] <= 4
        height, *rest = found.shape[: 2 if has_colours else None] or (1,)
        if height * math.prod(rest) > max_pixels:
            check_size(math.prod(rest), height, max_pixels)
    return found
