"""Calibration of a home-made camera: raw frames of a board in, a rig and a report out.

In come raw frames of a textured board at known distances, in a folder with distances.csv or as
arrays. Out come a `d3s.Rig` that can split raw frames and give depth, and a `Report` with all
results, their standard deviations, the errors on frames that were not calibrated with, and a
verdict. `d3s.calibrate` is this package and can be called:
``rig, report = d3s.calibrate("captures/")``.
"""

from d3s.calibrate.calibration_report import Report
from d3s.calibrate.calibration_run import calibrate
from d3s.registry import make_callable

__all__ = ["Report", "calibrate"]

make_callable(__name__, calibrate)
