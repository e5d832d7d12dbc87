"""Loops compiled to machine code by Numba, and the cache that keeps them between runs.

Numba stores compiled functions beside their source and, by itself, compiles them again only when
that one file changes: a constant imported from another module would keep its old value. Here the
cache key is a digest of the function's module and of every d3s module that it imports, directly or
not. So an edit always takes effect, and an edit that compiled code cannot see costs no compilation.
"""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from logging import getLogger
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core import event

from d3s.errors import D3SError
from d3s.runtime.cache import Keeping, LoopCache, folders_of

if cast(Any, config).DISABLE_JIT:
    raise D3SError(
        "NUMBA_DISABLE_JIT is set, and d3s has no depth without compiled loops: as Python they "
        "would take hours. Unset NUMBA_DISABLE_JIT."
    )

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parents[1]
_LOOPS: set[Callable[..., Any]] = set()  # of all modules that are loaded
_TELL_S = 10.0  # between messages on how far the compilation is
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>d3s[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<module>d3s[\w.]*))",
    re.MULTILINE,
)


def compiled(function: F) -> F:
    """Compile a function on its first call, without Python's lock, and keep the machine code.

    No parallel loops (`d3s.runtime.parallel` shares the rows) and no reordered sums, so results are
    the same bytes for any number of threads. `d3s.runtime.cache` has the folders of the code; where
    none can be written, as `d3s doctor` tells, the function is compiled in every run.
    """
    loop: Any = njit(nogil=True, error_model="numpy")(function)
    _LOOPS.add(function)
    source = source_file(function.__module__)
    if source is not None:
        loop._cache = LoopCache(function, folders_of(source), cache_key(function.__module__))
    else:  # a function outside of the package: as Numba keeps it, if it finds a folder
        with suppress(RuntimeError):
            loop.enable_caching()
    return cast(F, loop)


def load_compiler() -> None:
    """Load what Numba needs before the first call of any compiled function: half a second."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    # Numba's tables cannot be filled by two threads: another one may call a compiled function.
    with global_compiler_lock:
        cpu_target.target_context.refresh()


_PART: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_BORROWING: Any = _PART | {"_nrt": False}  # without Numba's runtime, which counts references


def part(function: F) -> F:
    """Compile a function that only compiled functions call; it is kept with these."""
    return cast(F, njit(nogil=True, error_model="numpy", **_PART)(function))


def inlined(function: F) -> F:
    """Compile a function into the code of the compiled functions that call it."""
    return cast(F, njit(nogil=True, error_model="numpy", forceinline=True, **_PART)(function))


def borrowing(function: F) -> F:
    """Compile a function into its compiled callers that allocates no array and keeps none.

    Numba counts the references to each array that a function takes out of a tuple, by atomic
    operations: in a function of a few numbers per cell that takes longer than the arithmetic. The
    callers hold all arrays, so nothing need be counted here.
    """
    return cast(F, njit(nogil=True, error_model="numpy", forceinline=True, **_BORROWING)(function))


@cache
def cache_key(module: str) -> str:
    """Return a digest of a d3s module and of all d3s modules that it imports, as hexadecimal."""
    digest = sha256()
    for name in sorted(_reachable(module)):
        digest.update(name.encode() + b"\0" + _source(name).encode() + b"\0")
    return digest.hexdigest()


def _reachable(module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and source_file(name) is not None:
            found.add(name)
            waiting += _imports(name)
    return found


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Names of all modules that a module may import; a name that is no module is harmless."""
    names: list[str] = []
    for match in _IMPORT.finditer(_source(module)):
        if match["module"]:
            names.append(match["module"])
        else:
            imported = re.findall(r"\w+", re.sub(r"#.*", "", match["names"]))
            names += [match["source"], *(f"{match['source']}.{name}" for name in imported)]
    return tuple(names)


@cache
def _source(module: str) -> str:
    file = source_file(module)
    return "" if file is None else file.read_text(encoding="utf-8")


@cache
def source_file(module: str) -> Path | None:
    """Source file of a d3s module, None for any other name."""
    package, *parts = module.split(".")
    if package != "d3s":
        return None
    path = _PACKAGE.joinpath(*parts)
    files = (path.with_suffix(".py"), path / "__init__.py") if parts else (path / "__init__.py",)
    return next((file for file in files if file.is_file()), None)


class _CompileNotice(event.Listener):
    """Tells that the first call takes long because kernels are compiled, and how far that is."""

    def __init__(self) -> None:
        self._done: set[Callable[..., Any]] = set()
        self._told_s = 0.0

    def on_start(self, event: Any) -> None:
        module = getattr(event.data.get("dispatcher"), "__module__", "") or ""
        if module.partition(".")[0] == "d3s":
            self._told_s = self._told_s or time.monotonic()
            _announce_compilation()

    def on_end(self, event: Any) -> None:
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        if function not in _LOOPS:
            return
        self._done.add(function)
        if time.monotonic() - self._told_s >= _TELL_S:
            self._told_s = time.monotonic()
            words = "d3s has compiled %d loops of %d that may be needed."
            getLogger("d3s").warning(words, len(self._done), len(_LOOPS))


@cache
def _announce_compilation() -> None:
    keeping = folders_of(Path(__file__)).keeping
    ending = {
        Keeping.KEPT: "once, for up to a minute.",
        Keeping.TEMPORARY: "for up to a minute. They are kept among temporary files: to keep them "
        "longer, set NUMBA_CACHE_DIR to a folder that can be written.",
    }.get(
        keeping,
        "for up to two minutes, and in every run, since no folder can be written to keep them. Set "
        "NUMBA_CACHE_DIR to one, or run d3s doctor --warm where it is installed.",
    )
    getLogger("d3s").warning("d3s is compiling its loops for this machine: %s", ending)


event.register("numba:compile", _CompileNotice())  # type: ignore[no-untyped-call]
