"""Functions by their names, as JSON: what a worker process or a cluster is told to call."""

import importlib
import os
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from d3s.errors import InputError


def call_of(work: Callable[[Any], Any]) -> dict[str, Any]:
    """Name of a function of a module and its first arguments, as JSON holds them.

    Raises
    ------
    InputError
        When it is neither a function of a module nor a `functools.partial` of one.
    """
    if isinstance(work, partial):
        if work.keywords:
            raise InputError(f"{work!r} has arguments by name. Give them by place, or in the job.")
        return {"name": _name(work.func), "first": [_argument(one) for one in work.args]}
    return {"name": _name(work), "first": []}


def function_of(call: dict[str, Any]) -> Callable[[Any], Any]:
    """Function of `call_of`, imported."""
    first = [_named(one["name"]) if "name" in one else one["value"] for one in call["first"]]
    function = _named(call["name"])
    return partial(function, *first) if first else function


def _argument(value: Any) -> dict[str, Any]:
    if isinstance(value, os.PathLike):
        return {"value": os.fspath(value)}
    if callable(value):
        return {"name": _name(value)}
    return {"value": value}


def _name(thing: Any) -> str:
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if module in (None, "__main__") or not name or "<" in name:
        raise InputError(
            f"{thing!r} cannot be called in another process: it must be a function of a module, "
            "not of a script or of another function."
        )
    return f"{module}:{name}"


def _named(name: str) -> Any:
    module, _, path = name.partition(":")
    return reduce(getattr, path.split("."), importlib.import_module(module))
