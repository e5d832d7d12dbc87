"""What other floors, and other packages, add to the core: methods, sources, fills and reports.

They register themselves as entry points of their package, in its pyproject.toml, in a group:

d3s.methods   a table of `Method` by the names that `d3s.estimate` takes
d3s.sources   a table of functions that open a source of frames, by the first word of its name, such
              as "basler", or by the suffix of its file, such as ".mcap"
d3s.fills     functions that estimate a pair and fill the holes
d3s.reports   functions that write a report as a page

`make_callable` is for the packages of the core that are named like their function.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from d3s.errors import InputError


@cache
def tables(group: str) -> Mapping[str, Any]:
    """All tables that are registered in a group, as one; imported once."""
    points = sorted(entry_points(group=f"d3s.{group}"), key=lambda point: point.name)
    return {name: entry for point in points for name, entry in point.load().items()}


@cache
def registered(group: str, name: str) -> Any:
    """Function of this name that is registered in a group."""
    for point in entry_points(group=f"d3s.{group}", name=name):
        return point.load()
    raise InputError(
        f"no {name!r} is registered among the {group}. Install d3s again, whole: its entry points "
        "name it."
    )


def make_callable(package: str, function: Callable[..., Any]) -> None:
    """Make a package callable, such as `d3s.estimate`: it is the package and the function.

    Its help begins with the signature and the docstring of the function.
    """
    module, signature = sys.modules[package], inspect.signature(function)
    members = {"__call__": staticmethod(function), "__signature__": signature}
    module.__class__ = type("CallablePackage", (ModuleType,), members)
    module.__doc__ = (
        f"``{function.__name__}{signature}``\n\n{inspect.getdoc(function)}\n\n"
        f"Notes\n-----\n{module.__doc__}"
    )
