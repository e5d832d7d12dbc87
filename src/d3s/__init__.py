"""Metric depth with an honest error bar from one snapshot of a tiny two-lens camera."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from d3s.errors import D3SError
    from d3s.rig import Calibration, Optics, Provenance, Rig

__version__ = "0.1.0"

__all__ = ["Calibration", "D3SError", "Optics", "Provenance", "Rig", "__version__"]

# Where the public names live. They are imported when first used, so that `import d3s` and
# `d3s --help` cost nothing.
_HOMES = {
    "Calibration": "d3s.rig",
    "D3SError": "d3s.errors",
    "Optics": "d3s.rig",
    "Provenance": "d3s.rig",
    "Rig": "d3s.rig",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'd3s' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
