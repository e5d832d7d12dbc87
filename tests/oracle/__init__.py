"""The oracle: the operations of the joint method in NumPy and double precision, slow and short.

They are written from the definition of the operations, not from the compiled loops, which tests
hold to them. `joint_reference` runs the stages of the method over them.

prefilter    centring, smoothing, noise
search       matching costs and paths
refine       least squares over windows
support      texture around cells, and the probability of being wrong
confidence   depth, sigma, confidence and flags
lenses       blur and disparity of lenses over the field
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

import d3s
from d3s.estimate.joint.kernels import (
    cells,
    costs,
    filters,
    grids,
    paths,
    periods,
    surfaces,
    windows,
)
from d3s.estimate.joint.kernels import (
    confidence as _confidence,
)
from d3s.estimate.joint.kernels import (
    lenses as _lenses,
)
from d3s.estimate.joint.kernels import (
    prefilter as _prefilter,
)
from d3s.estimate.joint.kernels import (
    support as _support,
)
from d3s.estimate.joint.method import estimate_joint
from d3s.runtime.scratch import Scratch
from oracle import confidence, lenses, prefilter, refine, search, support

# Compiled modules and the modules here that have their functions.
MODULES: dict[ModuleType, ModuleType] = {
    _prefilter: prefilter,
    filters: search,
    costs: search,
    paths: search,
    periods: search,
    grids: refine,
    cells: refine,
    windows: refine,
    surfaces: refine,
    _support: support,
    _confidence: confidence,
    _lenses: lenses,
}
_ELSEWHERE = {"halve": refine, "double": refine}


def operations() -> Iterator[tuple[ModuleType, str, Callable[..., Any], Callable[..., Any]]]:
    """Return module, name, compiled function and oracle of every operation."""
    for ours, theirs in MODULES.items():
        for name, function in vars(ours).items():
            is_own = getattr(function, "__module__", None) == ours.__name__
            if is_own and not name.startswith("_") and _takes_memory(function):
                yield ours, name, function, getattr(_ELSEWHERE.get(name, theirs), name)


def _takes_memory(function: Any) -> bool:
    return getattr(function, "__annotations__", {}).get("memory") is Scratch


class Compiled:
    """Compiled operations by name, each with scratch memory of its own."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return next(partial(ours, Scratch()) for _, own, ours, _ in operations() if own == name)

    def run(self, stage: Callable[..., Any], *args: Any) -> Any:
        """Run a stage of the method."""
        return stage(*args, Scratch())


class Plain:
    """Operations of the oracle by name."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return next(theirs for _, own, _, theirs in operations() if own == name)

    def run(self, stage: Callable[..., Any], *args: Any) -> Any:
        """Run a stage of the method over the oracle."""
        with in_place():
            return stage(*args, Scratch())


OURS, ORACLE = Compiled(), Plain()


@contextmanager
def in_place() -> Iterator[None]:
    """Context in which the stages of the method run over the oracle."""

    def without_memory(function: Callable[..., Any], memory: Scratch, *args: Any, **known: Any):
        return function(*args, **known)

    with ExitStack() as stack:
        for module, name, _, theirs in list(operations()):
            stack.enter_context(patch.object(module, name, partial(without_memory, theirs)))
        yield


def joint_reference(left: Any, right: Any, rig: d3s.Rig, options: d3s.JointOptions) -> d3s.DepthMap:
    """Estimate depth as `estimate_joint` does, in NumPy and double precision."""
    with in_place():
        return estimate_joint(left, right, rig, options)
