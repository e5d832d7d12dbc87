"""Metric depth with an honest error bar from one snapshot of a tiny two-lens camera."""

from importlib import import_module
from typing import TYPE_CHECKING

from d3s.version import __version__

if TYPE_CHECKING:
    from d3s.calibrate import Report, calibrate
    from d3s.capture import load_pair
    from d3s.check import CheckReport, check
    from d3s.errors import CalibrationError, D3SError, DepthWarning
    from d3s.estimate import ConsensusOptions, DepthMap, Flag, JointOptions, estimate
    from d3s.rig import Calibration, Optics, Provenance, Rig
    from d3s.scene.geometry import Mount
    from d3s.scene.lens_errors import LensErrors
    from d3s.scene.pair import Pair, simulate
    from d3s.scene.random_scene import RandomScene
    from d3s.scene.raw import RawFrame, RawLayout, simulate_raw
    from d3s.scene.scenes import BentPlane, DepthMapScene, Layer, Layered, Plane, TiltedPlane
    from d3s.scene.sensor import Sensor
    from d3s.scene.textures import Photo, Texture
    from d3s.scene.typical_lenses import typical_lenses

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
    "BentPlane": "d3s.scene.scenes",
    "Calibration": "d3s.rig",
    "CalibrationError": "d3s.errors",
    "CheckReport": "d3s.check",
    "ConsensusOptions": "d3s.estimate",
    "D3SError": "d3s.errors",
    "DepthMap": "d3s.estimate",
    "DepthMapScene": "d3s.scene.scenes",
    "DepthWarning": "d3s.errors",
    "Flag": "d3s.estimate",
    "JointOptions": "d3s.estimate",
    "Layer": "d3s.scene.scenes",
    "Layered": "d3s.scene.scenes",
    "LensErrors": "d3s.scene.lens_errors",
    "Mount": "d3s.scene.geometry",
    "Optics": "d3s.rig",
    "Pair": "d3s.scene.pair",
    "Photo": "d3s.scene.textures",
    "Plane": "d3s.scene.scenes",
    "Provenance": "d3s.rig",
    "RandomScene": "d3s.scene.random_scene",
    "RawFrame": "d3s.scene.raw",
    "RawLayout": "d3s.scene.raw",
    "Report": "d3s.calibrate",
    "Rig": "d3s.rig",
    "Sensor": "d3s.scene.sensor",
    "Texture": "d3s.scene.textures",
    "TiltedPlane": "d3s.scene.scenes",
    "calibrate": "d3s.calibrate",
    "check": "d3s.check",
    "estimate": "d3s.estimate",
    "load_pair": "d3s.capture",
    "simulate": "d3s.scene.pair",
    "simulate_raw": "d3s.scene.raw",
    "typical_lenses": "d3s.scene.typical_lenses",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'd3s' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    # `d3s.estimate`, `d3s.calibrate` and `d3s.check` are callable packages: return the package.
    return home if _HOMES[name] == f"d3s.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
