"""How far values scatter, whatever a few of them do."""

import numpy as np
from numpy.typing import ArrayLike

from d3s.types import FloatArray

_OF_MEDIAN = 1.4826  # standard deviation of Gaussian errors, of the median of their magnitude


def robust_sigma(errors: ArrayLike) -> float:
    """Standard deviation of Gaussian errors around zero that have this median magnitude."""
    return _OF_MEDIAN * float(np.median(np.abs(errors)))


def robust_sigmas(errors: ArrayLike) -> FloatArray:
    """The same of each column."""
    return np.asarray(_OF_MEDIAN * np.median(np.abs(errors), axis=0))
