"""What decides which depths are to be believed; shared by both kinds of operations."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.model import Array

# A depth is half as good as can be once its sigma is this, in metres or as a share of the depth.
SIGMA_M, SIGMA_SHARE = 0.01, 0.005
# What is left of a correlation without chance, from which on there is texture.
LEAST_CORRELATION = 0.3
# Residual close by, over what noise and lenses explain: on a plane 3 pixels in 1000 have more.
LARGEST_MISFIT = 6.0
# Cost by which the best valley must be lower than the next; noise makes one of 1.
LEAST_MARGIN = 0.05
# Disparities within the small window that are still of one surface, in pixels.
SPREAD_PX = 2.0
# What a step nearby does to sigma: the window may hold a strip of the other surface.
CAUTION = 1.5
# Ends of the range are not exact to more than this share.
RANGE_SHARE = 0.005


class Judging(NamedTuple):
    """Numbers of the camera and the options."""

    shape: tuple[int, int]  # of the frame
    cell: int  # side of the cells, one or two
    per_dpt_px: float
    offset_px: float
    rectification_sigma_px: float
    nearest_m: float
    farthest_m: float
    min_confidence: float


class Judged(NamedTuple):
    """A depth map in the precision of the operations."""

    depth_m: Array
    sigma_m: Array
    confidence: Array
    flags: NDArray[np.uint16]
