"""The camera as data: `Optics` as designed, `Calibration` as measured, and both in a `Rig`.

Numbers or a TOML file come in, an immutable, validated description of one camera goes out, which
also splits raw frames into rectified pairs. The physics is in `d3s.optics`; the methods here call
it with the numbers of the camera. Wrong values raise `RigError`, which names every wrong field.

optics              `Optics`: two lenses and one sensor, as designed
lens_maps           `LensMaps`: distortion, light, focus and remaining disparity over the field
variance            variance of the disparity by errors of a calibration, over the field
calibration         `Calibration`, `Provenance`, `Change`: measurements and their origin; places in
                    the raw frame
bayer               luminance of raw frames of colour sensors, and how such frames are noticed
stereo              `Stereo` and `RawCamera`: two cameras side by side, rectified or raw
rig                 `Rig`: optics, calibration, stereo camera and name, with the TOML file
interpolation       kernel that adds no blur
split               raw frame in, rectified pair out
rectify             pictures of two cameras in, rectified pair out
stereo_calibration  calibration files of stereo data sets, as rigs
imports             calibrations of stereo cameras in files of other programs, as rigs
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
