"""Metric depth with an honest error bar from one snapshot of a tiny two-lens camera."""

from importlib import import_module
from typing import TYPE_CHECKING

from d3s.version import __version__

if TYPE_CHECKING:
    from d3s.calibrate import Report, calibrate
    from d3s.check import CheckReport, check
    from d3s.errors import CalibrationError, D3SError, DepthWarning
    from d3s.estimate import ConsensusOptions, DepthMap, Flag, JointOptions, estimate
    from d3s.frames import load_pair
    from d3s.lab.twin.geometry import Mount
    from d3s.lab.twin.lens_errors import LensErrors, typical_lenses
    from d3s.lab.twin.pair import Pair, simulate
    from d3s.lab.twin.random_scene import RandomScene
    from d3s.lab.twin.raw import RawFrame, RawLayout, simulate_raw
    from d3s.lab.twin.scenes import BentPlane, DepthMapScene, Layer, Layered, Plane, TiltedPlane
    from d3s.lab.twin.sensor import Sensor
    from d3s.lab.twin.textures import Photo, Texture
    from d3s.rig import Calibration, Optics, Provenance, Rig

__all__ = [
    "BentPlane",
    "Calibration",
    "CalibrationError",
    "CheckReport",
    "ConsensusOptions",
    "D3SError",
    "DepthMap",
    "DepthMapScene",
    "DepthWarning",
    "Flag",
    "JointOptions",
    "Layer",
    "Layered",
    "LensErrors",
    "Mount",
    "Optics",
    "Pair",
    "Photo",
    "Plane",
    "Provenance",
    "RandomScene",
    "RawFrame",
    "RawLayout",
    "Report",
    "Rig",
    "Sensor",
    "Texture",
    "TiltedPlane",
    "__version__",
    "calibrate",
    "check",
    "estimate",
    "load_pair",
    "simulate",
    "simulate_raw",
    "typical_lenses",
]

# Module of each public name. Modules are imported on first use, which keeps `import d3s` and
# `d3s --help` fast.
_HOMES = {
    "BentPlane": "d3s.lab.twin.scenes",
    "Calibration": "d3s.rig",
    "CalibrationError": "d3s.errors",
    "CheckReport": "d3s.check",
    "ConsensusOptions": "d3s.estimate",
    "D3SError": "d3s.errors",
    "DepthMap": "d3s.estimate",
    "DepthMapScene": "d3s.lab.twin.scenes",
    "DepthWarning": "d3s.errors",
    "Flag": "d3s.estimate",
    "JointOptions": "d3s.estimate",
    "Layer": "d3s.lab.twin.scenes",
    "Layered": "d3s.lab.twin.scenes",
    "LensErrors": "d3s.lab.twin.lens_errors",
    "Mount": "d3s.lab.twin.geometry",
    "Optics": "d3s.rig",
    "Pair": "d3s.lab.twin.pair",
    "Photo": "d3s.lab.twin.textures",
    "Plane": "d3s.lab.twin.scenes",
    "Provenance": "d3s.rig",
    "RandomScene": "d3s.lab.twin.random_scene",
    "RawFrame": "d3s.lab.twin.raw",
    "RawLayout": "d3s.lab.twin.raw",
    "Report": "d3s.calibrate",
    "Rig": "d3s.rig",
    "Sensor": "d3s.lab.twin.sensor",
    "Texture": "d3s.lab.twin.textures",
    "TiltedPlane": "d3s.lab.twin.scenes",
    "calibrate": "d3s.calibrate",
    "check": "d3s.check",
    "estimate": "d3s.estimate",
    "load_pair": "d3s.frames",
    "simulate": "d3s.lab.twin.pair",
    "simulate_raw": "d3s.lab.twin.raw",
    "typical_lenses": "d3s.lab.twin.lens_errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'd3s' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    # `d3s.estimate`, `d3s.calibrate` and `d3s.check` are callable packages: return the package.
    return home if _HOMES[name] == f"d3s.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
