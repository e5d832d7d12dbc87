"""What the judgement needs to know, and what it gives; shared by both kinds of operations."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.joint.model import Array

LEAST_SIGMA_PX = 1e-4  # of a disparity, so that its precision is a number


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
    sigma_m: float  # at which a depth is half as good as can be,
    sigma_share: float  # or as a share of the depth
    least_correlation: float
    largest_misfit: float


class Judged(NamedTuple):
    """A depth map in the precision of the operations."""

    depth_m: Array
    sigma_m: Array
    confidence: Array
    flags: NDArray[np.uint16]
