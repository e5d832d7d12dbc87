"""Calibration of a home-made camera: raw frames of a board in, a rig and a report out.

In come raw frames of a textured board at known distances, in a folder with distances.csv or as
arrays. Out come a `d3s.Rig` that can split raw frames and give depth, and a `Report` with all
results, their standard deviations, the errors on frames that were not calibrated with, and a
verdict. `d3s.calibrate` is this package and can be called:
``rig, report = d3s.calibrate("captures/")``.

pipeline       `calibrate`: the steps in their order
steps          groups of steps that calibration and cross-validation share: errors of the lenses,
               tuning, test; and their progress
captures       read raw frames and check them; distance_table: distances.csv
frames         frames in memory: caches, work in parallel, rectified pairs, thumbnails
fields         the parts of the frame that the two lenses light, and the views cut from these
alignment      matches, distortion, anchors, rectification and geometry; a rig that splits frames
matches        places on the board found again, from frame to frame and from view to view
registration   two pictures compared: features, then windows
distortion     distortion of both lenses and shape of the board
anchors        the points towards which the board shrinks, also by the paper's method
rectification  scale, rotation and shift that bring the rows of both views together
geometry       disparity in metres, offset of the ruler, tilt; distance_fit: the fit of all frames
coma           coma of both lenses, and the shift of detail by it
noise          noise of the sensor over brightness
illumination   light of both views over the field
defocus        focus and aperture, from the difference of the blur of two images
focus_map      field curvature, astigmatism and tilt of the focus
disparity_map  disparity that the lenses add, its standard deviation, and errors that frames of one
               board cannot show
tuning         a and b of the paper's depth equation; ratios: its ratio in windows of a frame
baselines      choice of the virtual baselines
validation     what is left on frames of the test: errors of a method and the working range;
               disparity, rows and light over the field
report         results of all steps, and the table of parameters
verdict        good, usable or bad, by measures and their limits
robust         robust standard deviation, line and homography
"""

import inspect
import sys
from types import ModuleType

from d3s.calibrate.calibration_report import Report
from d3s.calibrate.calibration_run import calibrate

__all__ = ["Report", "calibrate"]


class _Callable(ModuleType):
    """Type of this package: `d3s.calibrate` is both the package and the function."""

    __call__ = staticmethod(calibrate)
    __signature__ = inspect.signature(calibrate)


sys.modules[__name__].__class__ = _Callable

# `help(d3s.calibrate)` shows the package: let its text begin with the signature and the docstring
# of the function.
__doc__ = f"""``calibrate{inspect.signature(calibrate)}``

{inspect.getdoc(calibrate)}

Notes
-----
{__doc__}"""
