"""Loops as machine code."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The same function as machine code, kept on disk, that runs without Python's lock.

    No parallel loops (`d3s.threads` shares the rows out) and no liberties with the order of sums:
    the same bytes whatever the number of threads.
    """
    return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """A part of compiled functions: its code goes into theirs, and has no life of its own."""
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, njit(nogil=True, error_model="numpy", forceinline=True, **options)(function))
