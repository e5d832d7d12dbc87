"""The bytes of a file, read with suspicion, and what every format shares.

Errors of the formats do not name the file: the caller adds the name, with `named`.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError

ORIENTATION = 274
"""Tag of the EXIF orientation, 1 to 8 (TIFF 6.0 and EXIF 2.32); 1 is upright."""

WORDS = {
    2: "mirrored left to right",
    3: "turned by 180 degrees",
    4: "mirrored top to bottom",
    5: "mirrored and turned by 90 degrees",
    6: "turned by 90 degrees clockwise",
    7: "mirrored and turned by 90 degrees",
    8: "turned by 90 degrees counterclockwise",
}
"""Turn and flip by which `upright` mends each orientation."""

DAMAGED = "The file is damaged or was not copied whole: get it again from where it was made."


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Samples of an image file: (rows, columns), or those of grey, RGB or RGBA behind them."""

    values: NDArray[Any]
    full_scale: int | None  # integer that means 1; None for floats, which are taken as they are
    orientation: int = 1  # EXIF orientation of the file, 1 to 8
    is_lossy: bool = False  # whether it was compressed with loss, in blocks


def cut_short(what: str) -> InputError:
    """Error of a file that ends too early, or whose parts do not fit together."""
    return InputError(f"{what}. {DAMAGED}")


def path_text(path: str | os.PathLike[str]) -> str:
    """Path as a person can read it: control characters are escaped."""
    text = os.fsdecode(path)
    return text if text.isprintable() else repr(text)


@contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let every error in the block name the file, and be an `InputError`."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path_text(path)}: {error}") from error
    except MemoryError as error:
        raise InputError(
            f"{path_text(path)}: there is not enough memory for it. Cut it into parts."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{path_text(path)}: cannot be read: {reason}. Check the name and the rights."
        ) from error


@contextmanager
def decoded_as(kind: str) -> Iterator[None]:
    """Turn every exception of an image library in the block into an `InputError`."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # on damaged bytes, libraries raise anything
        reason = str(error).partition("\n")[0][:200].rstrip(" .") or type(error).__name__
        raise cut_short(f"cannot be decoded as {kind} ({reason})") from error


def check_size(width: int, height: int, max_pixels: int) -> None:
    """Refuse an image without pixels, or with too many."""
    if width < 1 or height < 1:
        raise cut_short(f"declares a size of {width} x {height} pixels")
    if width * height > max_pixels:
        raise InputError(
            f"declares {width} x {height} pixels, more than max_pixels={max_pixels}. "
            "If the file is what you think it is, raise max_pixels in Python, or --max-pixels of "
            "d3s depth; or shrink the image."
        )


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open an ordinary file for reading. A pipe would hang, and a device may have no end."""
    try:
        # Without O_NONBLOCK, opening a pipe waits until another process writes into it.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags)
    except FileNotFoundError as error:
        raise InputError("there is no such file. Check the name.") from error
    except IsADirectoryError as error:  # Windows says PermissionError
        raise InputError("is a folder. Name a file in it.") from error
    except ValueError as error:  # a zero byte in the path
        raise InputError(f"cannot be read: {error}. Check the name.") from error
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise InputError("is a folder. Name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise InputError("is no ordinary file (a pipe or a device?). Name a file.")
    raise cut_short("is empty")


def read_file(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Read all bytes of an ordinary file, if there are at most `max_bytes`."""
    with open_file(path) as file:
        return read_rest(file, max_bytes)


def read_rest(file: BinaryIO, max_bytes: int) -> bytes:
    """Read all bytes of an open file from its beginning, if there are at most `max_bytes`."""
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        raise InputError(
            f"has {size} bytes, more than the {max_bytes} that are read at most. "
            "If the file is what you think it is, raise the limit or split it."
        )
    file.seek(0)
    raw = file.read(size)
    if len(raw) != size:  # another process is writing to it
        raise cut_short(f"ended after {len(raw)} of {size} bytes")
    return raw


def upright(samples: Samples) -> Samples:
    """Samples turned by their orientation, so that the image stands as the camera was held."""
    values = samples.values
    if samples.orientation >= 5:
        values = values.swapaxes(0, 1)
    if samples.orientation in (3, 4, 7, 8):
        values = np.flip(values, axis=0)
    if samples.orientation in (2, 3, 6, 7):
        values = np.flip(values, axis=1)
    return replace(samples, values=values)
