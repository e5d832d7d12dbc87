"""Folders that keep compiled loops between runs, and the cache that Numba uses to reach them.

Numba by itself keeps compiled code beside the source or in the home of the user, and compiles in
every run where it can write to neither. Here a folder that cannot be written is still read, as one
is that was filled while a container was built, and the last resort is a private folder for
temporary files. Folders outside of the package have names that do not depend on where the package
is installed, so that they can be copied.

Processes that start together compile a loop once: the first locks it, and the others wait and load.
"""

import os
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.misc.appdirs import AppDirs

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None  # type: ignore[assignment]

_PACKAGE = Path(__file__).parents[1]
_LONGEST_S = 120.0  # of one loop that another process compiles
_LOOK_S = 0.05


class Keeping(StrEnum):
    """Time that compiled loops are kept, in words."""

    KEPT = "kept between runs"
    TEMPORARY = "kept until temporary files are removed"
    SHIPPED = "read only: loops that it lacks are compiled in every run"
    NOWHERE = "compiled in every run"


class Folders(NamedTuple):
    """Folders of compiled loops of one package: one to write to, and others to read only."""

    writable: Path | None
    shipped: tuple[Path, ...]
    keeping: Keeping


def folders_of(source: Path) -> Folders:
    """Folders for the loops of a source file of the package."""
    settings: Any = config
    return _folders(source.parent, settings.CACHE_DIR)


@cache
def _folders(folder: Path, cache_dir: str) -> Folders:
    place = Path(f"d3s-numba-{numba.__version__}", os.path.relpath(folder, _PACKAGE))
    directories: Any = AppDirs
    home = Path(directories("d3s", appauthor=False).user_cache_dir)
    candidates = [folder / "__pycache__", home / place]
    if cache_dir:
        candidates.insert(0, Path(cache_dir) / place)
    shipped: list[Path] = []
    for one in candidates:
        if _is_writable(one):
            return Folders(one, tuple(shipped), Keeping.KEPT)
        if _has_loops(one):
            shipped.append(one)
    private = _private_folder()
    if private is not None and _is_writable(private / place):
        return Folders(private / place, tuple(shipped), Keeping.TEMPORARY)
    keeping = Keeping.SHIPPED if shipped else Keeping.NOWHERE
    return Folders(None, tuple(shipped), keeping)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _has_loops(folder: Path) -> bool:
    try:
        return any(one.suffix == ".nbi" for one in folder.iterdir())
    except OSError:
        return False


@cache
def _private_folder() -> Path | None:
    """Folder for temporary files that nobody else can write to: it holds code that is executed."""
    if not hasattr(os, "getuid"):
        return None
    try:
        folder = Path(tempfile.gettempdir()) / f"d3s-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder if is_own and not found.st_mode & 0o022 else None


class LoopCache:
    """Cache of one compiled function, over a folder to write to and folders to read only.

    It has the methods that a Numba dispatcher calls on its cache.
    """

    def __init__(self, function: Callable[..., Any], folders: Folders, stamp: str) -> None:
        self._own = None if folders.writable is None else _layer(function, folders.writable, stamp)
        self._shipped = [_layer(function, one, stamp) for one in folders.shipped]
        first = folders.writable or (folders.shipped[0] if folders.shipped else None)
        self.cache_path = None if first is None else str(first)
        self._lock = None if folders.writable is None else _Lock(folders.writable, function)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Compiled code of a signature; None if no folder has it, and it is to be compiled."""
        found = self._kept(signature, target)
        if found is not None or self._lock is None:
            return found
        self._lock.take()
        found = self._kept(signature, target)  # another process may have compiled it meanwhile
        if found is not None:
            self._lock.release()
        return found

    def _kept(self, signature: Any, target: Any) -> Any:
        for layer in (self._own, *self._shipped):
            found = None
            if layer is not None:
                try:
                    found = layer.load_overload(signature, target)
                except OSError:  # a folder that may not be read
                    found = None
            if found is not None:
                return found
        return None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep the compiled code of a signature, if a folder can be written."""
        if self._own is not None:
            with suppress(OSError):  # a full disk: compiled again in the next run
                self._own.save_overload(signature, code)
        if self._lock is not None:
            self._lock.release()

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Forget the compiled code of this function, where it can be written."""
        if self._own is not None:
            self._own.flush()


class _Lock:
    """Lock of the compilation of one function, among the processes of this machine.

    Numba compiles one function at a time in a process, so its threads do not meet here. The lock
    ends with the process, and it is no harm if it is not taken: the function is compiled twice.

    Parameters
    ----------
    folder
        Folder that can be written.
    function
        Function to compile.
    """

    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        self._path = folder / f"{function.__module__}.{function.__qualname__}.lock"
        self._file: int | None = None

    def take(self) -> None:
        """Take the lock, when no other process has it any more."""
        self.release()  # of a compilation that has failed
        if fcntl is None:
            return
        with suppress(OSError):  # a file system without locks
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            deadline = time.monotonic() + _LONGEST_S
            while not _locked(self._file) and time.monotonic() < deadline:
                time.sleep(_LOOK_S)

    def release(self) -> None:
        """Let others have it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _locked(file: int) -> bool:
    """Lock an open file, if no other process has locked it; whether it is ours."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _layer(function: Callable[..., Any], folder: Path, stamp: str) -> Any:
    """Numba's cache of a function in one folder, with our stamp of the source."""
    line = function.__code__.co_firstlineno
    locator = SimpleNamespace(
        ensure_cache_path=lambda: folder.mkdir(parents=True, exist_ok=True),
        get_cache_path=lambda: str(folder),
        get_source_stamp=lambda: stamp,
        get_disambiguator=lambda: str(line),
    )
    found = SimpleNamespace(from_function=lambda *_: locator)
    kind: Any = type("_Folder", (CompileResultCacheImpl,), {"_locator_classes": [found]})
    return type("_Layer", (FunctionCache,), {"_impl_class": kind})(function)
