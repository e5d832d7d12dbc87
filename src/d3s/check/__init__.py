"""Drift of a camera since its calibration: ordinary frames in, a report and a mended rig out."""

from d3s.check.check_report import CheckReport
from d3s.check.check_run import check
from d3s.check.drift_quantities import Quantity
from d3s.registry import make_callable

__all__ = ["CheckReport", "Quantity", "check"]

make_callable(__name__, check)
