"""Loops as machine code."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from logging import getLogger
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The same function as machine code, kept on disk, that runs without Python's lock.

    No parallel loops (`d3s.runtime.parallel` shares the rows out) and no reordered sums: the same
    bytes whatever the number of threads. Where nothing can be kept, as `d3s doctor` says,
    it is compiled in every run.
    """
    loop = njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):  # neither beside the source nor at home is a folder to write to
        loop.enable_caching()
    return cast(F, loop)


_PART: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def part(function: F) -> F:
    """A part of compiled functions, not to be called from Python: compiled and kept with them."""
    return cast(F, njit(nogil=True, error_model="numpy", **_PART)(function))


def inlined(function: F) -> F:
    """The same, and its code goes into theirs."""
    return cast(F, njit(nogil=True, error_model="numpy", forceinline=True, **_PART)(function))


class _Notice(event.Listener):
    """Says once that the first call takes long because of us."""

    def on_start(self, event: Any) -> None:
        module = getattr(event.data.get("dispatcher"), "__module__", "") or ""
        if module.partition(".")[0] == "d3s":
            _say_that_it_compiles()

    def on_end(self, event: Any) -> None:
        pass


@cache
def _say_that_it_compiles() -> None:
    getLogger("d3s").warning(
        "d3s is compiling its loops for this machine: once, for up to a minute."
    )


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
