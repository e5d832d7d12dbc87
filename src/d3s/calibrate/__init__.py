"""Calibration of a home-made camera: raw frames of a board in, a rig and a report out.

In come raw frames of a textured board at known distances, in a folder with distances.csv or as
arrays. Out come a `d3s.Rig` that can split raw frames and give depth, and a `Report` with all
results, their standard deviations, the errors on frames that were not calibrated with, and a
verdict. `d3s.calibrate` is this package and can be called:
``rig, report = d3s.calibrate("captures/")``.

pipeline        `calibrate`: the steps in their order
steps           groups of steps that calibration and cross-validation share
colour          order, gains and noise of a colour sensor
captures        read raw frames and check them; distance_table: distances.csv
frames          frames in memory: caches, work in parallel, rectified pairs, thumbnails
fields          the parts of the frame that the two lenses light, and the views cut from these
alignment       matches, distortion, anchors, rectification and geometry; a rig that splits frames
matches         places on the board found again, from frame to frame and from view to view
registration    two pictures compared: features, then windows
distortion      distortion of both lenses and bend of the board; board: its shape
coma            shift of detail by coma, once the focus is known
coma_fit        coma of both lenses, by coarse and fine detail
anchors         the points towards which the board shrinks; least_shift: by the paper's method
rectification   scale, rotation and shift that bring the rows of both views together
geometry        disparity in metres, offset of the ruler, tilt; distance_fit: the fit of all frames
noise           noise of the sensor over brightness
lenses          the next four: errors of the lenses over the field
illumination    light of both views
defocus         focus and aperture; spectra: difference of the blur of two images
focus_map       field curvature, astigmatism and tilt of the focus
disparity_map   disparity that the lenses add, and its standard deviation
uncertainty     errors of the disparity that frames of one board cannot show
tuning          a and b of the paper's depth equation; ratios: its ratio in windows of a frame
baselines       choice of the virtual baselines
validation      errors of a method on boards at known depths, and the working range
field_residuals what is left of disparity, rows and light over the field, on frames of the test
report          results of all steps; findings: the table of parameters
verdict         good, usable or bad, by measures and their limits
percent         progress of the whole from that of its steps
robust          robust standard deviation, line and homography
"""

import inspect
import sys
from types import ModuleType

from d3s.calibrate.pipeline import calibrate
from d3s.calibrate.report import Report

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
