"""The camera as data: `Optics` as designed, `Calibration` as measured, and both in a `Rig`.

Numbers or a TOML file come in, an immutable, validated description of one camera goes out, which
also splits raw frames into rectified pairs. The physics is in `d3s.optics`; the methods here call
it with the numbers of the camera. Wrong values raise `RigError`, which names every wrong field.
"""

from d3s.rig.calibration import Calibration, Change, Provenance
from d3s.rig.lens_maps import Correction, LensMaps
from d3s.rig.optics import Optics
from d3s.rig.rig import Rig
from d3s.rig.stereo_camera import RawCamera, Stereo

__all__ = [
    "Calibration",
    "Change",
    "Correction",
    "LensMaps",
    "Optics",
    "Provenance",
    "RawCamera",
    "Rig",
    "Stereo",
]
