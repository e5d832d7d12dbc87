"""Waiting for another thread awake: to fall asleep and be woken takes longer than the wait."""

import os
import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from d3s.runtime.compile import compiled

Counters = NDArray[np.int64]

_PATIENCE = 200  # turns before others may have the core

# What tells a processor that a loop only waits, so that its twin may use what they share.
_PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "AMD64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}


def _pause(_: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        name, numbers = _PAUSES.get(platform.machine(), ("", ()))
        if name:
            whole = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [whole] * len(numbers))
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            builder.call(function, [ir.Constant(whole, number) for number in numbers])
        return context.get_dummy_value()

    return types.void(), code


def _read(_: Any, counters: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(counters)(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "acquire", 8)

    return types.int64(counters, types.intp), code


def _no_code(_: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.IntType(32), 0)

    return types.int32(), code


_nothing: Any = intrinsic(_no_code)
pause: Any = intrinsic(_pause)
read: Any = intrinsic(_read)


# Lets another thread of the same core go on, if one waits: it may be the one that is waited for.
_give_way: Any = (
    types.ExternalFunction("sched_yield", types.int32()) if hasattr(os, "sched_yield") else _nothing
)


@compiled
def spin(counters: Counters, place: int, until: int, most: int, more: int) -> bool:
    """Wait until a counter has a value, for so many turns at most and some more; whether it has."""
    for turn in range(most):
        if read(counters, place) == until:
            for _ in range(more):
                pause()
            return True
        pause()
        if turn % _PATIENCE == _PATIENCE - 1:
            _give_way()
    return False
