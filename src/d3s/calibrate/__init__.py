"""A folder of captures of a home-made camera in, a rig that one can trust out.

`d3s.calibrate` is this package and can be called: ``rig, report = d3s.calibrate("captures/")``.

pipeline      `calibrate`: the steps below in their order, and a test on frames that it did not see
captures      raw frames of a board at known distances; table: distances.csv
kept, frames  frames in memory, and the same work on each of them
fields        what of the frame each lens lights; crop: what of it is cut; views: pairs
matches       places on the board found again; pictures, homography and alignment are how
anchors       where each view has the point at infinity that the board moves towards
least_shift   the same as the paper finds it
rectify       what brings the rows of both views together
geometry      what disparity means in metres, where the ruler begins, how the board is tilted
disparity     of single frames; distances: the fit of all
defocus       where each lens focuses; spectra: blur of two images compared
tuning        scale and offset of the paper's depth equation; ratios: what it takes from the images
baselines     the virtual baselines that the consensus compares best
noise         the noise of the sensor against the light
validate      errors of a method on boards at known depths; reach: depths that it looks at
report        all of that; findings as a table, verdict in plain words
kinds         values that the steps hand to each other; robust: how far they scatter
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
