"""The camera as data: `Optics` as designed, `Calibration` as measured, and both in a `Rig`.

These classes hold numbers, check them once when made, and never change. The mathematics is in
`d3s.optics`; the methods here only hand it the numbers. A wrong value raises `RigError`, which
names every wrong field at once.

part         what the classes have in common
optics       two lenses before one sensor
calibration  what was measured on one camera, and where that comes from
file         the TOML file of a rig
split        a raw frame in, the rectified pair out
rig          all of it together, to be loaded and saved
"""

from d3s.rig.calibration import Calibration, Provenance
from d3s.rig.optics import Optics
from d3s.rig.rig import Rig

__all__ = ["Calibration", "Optics", "Provenance", "Rig"]
