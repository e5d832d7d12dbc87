"""Files that are written whole or not at all, and that never silently replace one of the user's.

A file is written under a hidden name, and locked until it is renamed. The lock ends with the
process, even if that is killed: a file with such a name and no lock is left over from a killed
process, and is removed by the next process that writes into the folder.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from d3s.errors import OutputError

try:
    import fcntl
except ImportError:  # Windows: no locks, and no leftovers are removed
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = re.compile(r"\.d3s-[0-9a-f]{16}\.tmp")
_REMEDIES = {
    errno.EACCES: "Choose a folder you may write to.",
    errno.EPERM: "Choose a folder you may write to.",
    errno.EROFS: "Choose a folder you may write to.",
    errno.ENOENT: "Make its folder first.",
    errno.ENOTDIR: "Part of the path is a file, not a folder.",
    errno.ENOSPC: "Free some space on the disk.",
    errno.EDQUOT: "Free some space on the disk.",
}


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool = False) -> None:
    """Write text as UTF-8, whole or not at all."""
    write_bytes(path, text.encode(), overwrite=overwrite)


def write_bytes(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = False) -> None:
    """Write a file whole or not at all.

    A file that has the same content already is left alone. A link is followed, so that it stays a
    link.
    """
    try:
        target = Path(os.path.realpath(path))
        _clear_leftovers(target.parent)
        if os.path.lexists(target):
            _check_replaceable(target)
            if _holds(target, content):
                return
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from error
    with replacing(path, overwrite=overwrite) as file:
        file.write(content)


@contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write, which gets its name when the block has ended without an error."""
    try:
        target = Path(os.path.realpath(path))
        _clear_leftovers(target.parent)
        if os.path.lexists(target):
            _check_replaceable(target)
            if not overwrite:
                raise _would_replace(path)
        with _temporary(target.parent) as temporary:
            with temporary.open("r+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            _move(temporary, target, overwrite)
    except FileExistsError as error:  # made by another process in the meantime
        raise _would_replace(path) from error
    except OSError as error:
        raise _refusal(path, error) from error


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder and its parents; a folder that is there already is fine."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        _clear_leftovers(Path(os.path.realpath(path)))
    except FileExistsError as error:
        raise OutputError(f"{path} is a file, and a folder is needed. Name another.") from error
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from error


def clear_leftovers(folder: str | os.PathLike[str]) -> None:
    """Remove unfinished files of killed processes from a folder; others that write there go on."""
    _clear_leftovers.__wrapped__(Path(os.path.realpath(folder)))


def _would_replace(path: str | os.PathLike[str]) -> OutputError:
    return OutputError(
        f"{path} exists and holds something else. Choose another name, or allow it to be "
        "replaced: --force on the command line, overwrite=True in Python."
    )


def _refusal(path: str | os.PathLike[str], error: OSError | ValueError) -> OutputError:
    if isinstance(error, OSError):
        remedy = _REMEDIES.get(error.errno or 0, "Choose another place.")
        return OutputError(f"{path} cannot be written: {error.strerror or error}. {remedy}")
    # ValueError: a zero byte in the path
    return OutputError(f"{path!r} cannot be written: {error}. Choose another name.")


def _check_replaceable(target: Path) -> None:
    if target.is_dir():
        raise OutputError(f"{target} cannot be written: it is a folder. Name a file in it.")
    if not target.is_file():  # reading a pipe hangs, and replacing a device breaks the machine
        raise OutputError(f"{target} cannot be written: it is no ordinary file. Name another.")


def _holds(target: Path, content: bytes) -> bool:
    return target.stat().st_size == len(content) and target.read_bytes() == content


@contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    """New file that no process removes while the block runs."""
    path, file = _locked(folder)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        file.close()


def _locked(folder: Path) -> tuple[Path, BinaryIO]:
    """New file, and the open file that holds its lock."""
    while True:
        # In the same folder, since a rename is atomic only within one file system. The name has a
        # fixed length, since the target's may be as long as the file system allows.
        path = folder / f".d3s-{os.urandom(8).hex()}.tmp"
        file = path.open("xb")
        if fcntl is None:
            file.close()  # Windows does not rename an open file
            return path, file
        with suppress(OSError):  # a file system without locks: there, leftovers stay
            fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists():  # else another process removed it before it was locked
            return path, file
        file.close()


@cache
def _clear_leftovers(folder: Path) -> None:
    """Remove the leftovers of killed processes; once per process, since listing may be slow."""
    if fcntl is None:
        return
    left: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        left = [
            entry.path
            for entry in entries
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    for path in left:
        with suppress(OSError), Path(path).open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an error if it is being written
            Path(path).unlink()


def _move(temporary: Path, target: Path, overwrite: bool) -> None:
    """Rename a finished file; without `overwrite`, only if the name is still free."""
    if overwrite:
        temporary.replace(target)
        return
    try:
        os.link(temporary, target)  # a rename would replace silently
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the earlier check has to do
        temporary.replace(target)
