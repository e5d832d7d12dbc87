"""Loops over bytes that Python runs at once, and Numba much faster once it has compiled them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

Kernel = Callable[..., int]

# Compiling takes about a second, in which Python gets through about this much.
COMPILE_ABOVE_BYTES = 500_000


@lru_cache
def compiled(kernel: Kernel) -> Kernel:
    """The same function as machine code; it takes what `as_array` gives."""
    from d3s.runtime.compile import (
        compiled as compile_now,  # here: importing Numba takes half a second
    )

    return compile_now(kernel)


def as_array(value: Any) -> Any:
    """What Numba takes for lists and bytes; the memory of a bytearray is shared."""
    if isinstance(value, bytes | bytearray):
        return np.frombuffer(value, np.uint8)
    return np.array(value) if isinstance(value, list) else value
