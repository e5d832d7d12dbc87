"""Drift of a camera since its calibration: ordinary frames in, a report and a mended rig out.

pipeline     `check`: all steps, on raw frames or pairs, until nothing is left to take out
blocks       blocks of the left view compared with their matches in the right one
drift        rows, roll, scale, turn, light and focus from the blocks of all frames; disparity
             from walls; robust regression, with a sigma from the scatter of the frames
sensor       noise of raw frames, and spots that stay
quantities   units, limits and states
mend         rig with a drift taken out
report       `CheckReport`: quantities, verdict, mended rig; log of earlier checks
"""

import inspect
import sys
from types import ModuleType

from d3s.check.check_report import CheckReport
from d3s.check.check_run import check
from d3s.check.drift_quantities import Quantity

__all__ = ["CheckReport", "Quantity", "check"]


class _Callable(ModuleType):
    """Type of this package: `d3s.check` is both the package and the function."""

    __call__ = staticmethod(check)
    __signature__ = inspect.signature(check)


sys.modules[__name__].__class__ = _Callable

# `help(d3s.check)` shows the package: let its text begin with the signature and the docstring of
# the function.
__doc__ = f"""``check{inspect.signature(check)}``

{inspect.getdoc(check)}

Notes
-----
{__doc__}"""
