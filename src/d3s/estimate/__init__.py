"""A pair of views in, a depth map with an error bar out.

`d3s.estimate` is this package and can be called: ``d3s.estimate(left, right, rig)``.

methods     `estimate`, and the table of methods by name
options     what each method can be told, with reasons
depth_map   `DepthMap`, what comes back; flags: why a pixel has no depth; saving: its files
images      the user's arrays, checked; clipping and holes: pixels that hold no intensity
candidates  which depths to look at

joint       ours, written once over operations: plan, then search, then refine, then judge
operations  what it does to images: compiled in kernels, and plain in plain, its oracle
model       the camera as it sees it; fitting and judging are what its stages pass on

consensus   the paper's algorithm, as printed, compiled (consensus_kernels)
reference   its oracle in plain NumPy; both share consensus_plan and consensus_result
"""

import inspect
import sys
from types import ModuleType

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.methods import estimate
from d3s.estimate.options import ConsensusOptions, JointOptions, Options

__all__ = ["ConsensusOptions", "DepthMap", "Flag", "JointOptions", "Options", "estimate"]


class _Callable(ModuleType):
    """Type of this package: `d3s.estimate` is both the package and the function."""

    __call__ = staticmethod(estimate)
    __signature__ = inspect.signature(estimate)


sys.modules[__name__].__class__ = _Callable

# `help(d3s.estimate)` shows the package: let its text begin with the signature and the docstring
# of the function.
__doc__ = f"""``estimate{inspect.signature(estimate)}``

{inspect.getdoc(estimate)}

Notes
-----
{__doc__}"""
