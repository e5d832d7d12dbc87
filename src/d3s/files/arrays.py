"""NPY and NPZ: an array, or named arrays in one file; the same arrays give the same bytes.

The header of an array is checked against the file before anything is allocated.
"""

import io
import math
import os
import re
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
from d3s.formats import MAX_PIXELS, NPY

_MAGIC = NPY.magics[0]

# numpy evaluates the header as Python: slowly, and with warnings if it is damaged. All programs
# that write NPY files write the header in this form and order.
_FIELDS = re.compile(
    rb"\{\s*'descr':\s*'([!-&(-~]{2,9})',\s*'fortran_order':\s*(True|False),"
    rb"\s*'shape':\s*\(((?:\s*\d{1,18}\s*,)*(?:\s*\d{1,18})?)\s*\),?\s*\}\s*"
)
_NUMBERS = re.compile(r"\|b1|[|<>][iu]1|[<>][iu][248]|[<>]f[248]|[<>]c(8|16)|[|<>]S\d+|[<>]U\d+")

_MOST_CHARS = 10_000  # of a header, as numpy limits it: a long text is slow to parse
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
    width = {1: 2, 2: 4, 3: 4}.get(raw[6] if len(raw) > 6 else 0, 0)
    start = 8 + width + int.from_bytes(raw[8 : 8 + width], "little")
    if not raw.startswith(_MAGIC) or not width or not 8 + width < start <= len(raw):
        raise cut_short("has no proper NPY header")
    if start > _MOST_CHARS:
        raise cut_short("has no proper NPY header")
    fields = _FIELDS.fullmatch(raw[8 + width : start])
    if fields is None:
        raise cut_short("has an NPY header that cannot be read")
    kind = fields[1].decode()
    if not _NUMBERS.fullmatch(kind):
        raise InputError(f"holds values of type {kind!r}, and numbers are read. Save numbers.")
    return NpyHeader(
        shape=tuple(int(number) for number in re.findall(rb"\d+", fields[3])),
        fortran_order=fields[2] == b"True",
        dtype=np.dtype(kind),
        start=start,
    )


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

# The first day that a ZIP file can have: numpy would write the time of writing.
_DATE = (1980, 1, 1, 0, 0, 0)
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
    """Write named arrays into one compressed NPZ file, whole or not at all.

    Parameters
    ----------
    path
        The file to write.
    overwrite
        Whether a file that holds something else may be replaced.
    **arrays
        Numbers or texts of any shape, by name.

    Raises
    ------
    InputError
        When an array does not hold numbers or texts.
    OutputError
        When the file cannot be written, or would replace another.
    """
    with named(path):
        content = packed(arrays)
    atomic.write_bytes(path, content, overwrite=overwrite)


def packed(arrays: Mapping[str, ArrayLike]) -> bytes:
    """Bytes of an NPZ file of named arrays.

    Raises
    ------
    InputError
        When an array does not hold numbers or texts.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", _DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # the same on every machine
            content = encode_npy(_writable(name, array))
            with archive.open(member, "w") as file:
                opened: Any = file
                opened._compressor = _compressor(content)  # zipfile itself has levels only
                file.write(content)
    return buffer.getvalue()


def read_npz(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, max_pixels: int = MAX_PIXELS
) -> dict[str, NDArray[Any]]:
    """Read the arrays of an NPZ file, by name; pickled objects are refused, never run.

    Raises
    ------
    InputError
        When the file is missing, damaged, holds something other than arrays of numbers or texts,
        or when by its headers an array has more than `max_pixels`, or all of them together have
        more than `max_bytes`.
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
    if not _NUMBERS.fullmatch(values.dtype.str):
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
        found = npy_header(file.read(_MOST_CHARS + 12))
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
