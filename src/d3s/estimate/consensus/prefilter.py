"""What is done to a view before it is compared: holes filled, then smoothed; and its noise.

A hole is a pixel that is NaN. It is filled so that a filter, or a spline, has something to run on;
what it touched is known by `reach_px` and left out by the caller, never trusted.
"""

import math

import numpy as np
from numpy.typing import NDArray

from d3s.types import FloatArray

# Beyond it the Gaussian has 0.3 % of its weight, and both views lose the same.
_TRUNCATED_AT_SIGMAS = 3.0
# Holes are filled from so near that a spline finds no step to ring at.
_SMALLEST_FILL_SIGMA_PX = 1.0
# The median of the magnitude of Gaussian noise, in standard deviations.
_MEDIAN_OF_MAGNITUDE = 0.6744897501960817


def reach_px(sigma_px: float) -> int:
    """How many pixels to each side `smoothed` looks."""
    return math.ceil(_TRUNCATED_AT_SIGMAS * sigma_px)


def smoothed(image: NDArray[np.floating], sigma_px: float) -> FloatArray:
    """A view without holes, smoothed with a Gaussian; sigma 0 fills the holes only.

    A pixel farther than `reach_px` from every hole, and from the frame beyond which the view goes
    on as its mirror image, is what it would be without them.
    """
    return _gaussian(filled(image, sigma_px), sigma_px)


def filled(image: NDArray[np.floating], sigma_px: float) -> FloatArray:
    """A view whose holes have the mean of what is around them, or of the view where they are wide.

    Both move along with gain and offset, as a fixed number would not.
    """
    values = image.astype(np.float64)
    holes = np.isnan(values)
    if not holes.any():
        return values
    mean = float(values[~holes].mean()) if not holes.all() else 0.0
    near = max(sigma_px, _SMALLEST_FILL_SIGMA_PX)
    known = _gaussian(np.where(holes, 0.0, 1.0), near)
    around = _gaussian(np.where(holes, 0.0, values - mean), near)
    rest = np.divide(around, known, out=np.zeros_like(values), where=holes & (known > 1e-9))
    return np.where(holes, mean + rest, values)


def _gaussian(values: FloatArray, sigma_px: float) -> FloatArray:
    from scipy.ndimage import correlate1d  # importing scipy takes longer than the rest of d3s

    reach = reach_px(sigma_px)
    if reach == 0:
        return values
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma_px) ** 2)
    weights /= weights.sum()
    across = correlate1d(values, weights, axis=1, mode="mirror")
    return np.asarray(correlate1d(across, weights, axis=0, mode="mirror"))


def noise_variance(image: NDArray[np.floating]) -> float:
    """Variance of the noise of a view as it came, as if it were alike everywhere and white.

    From what is left of a pixel when its neighbours are taken off in a way that planes, edges
    along the rows and edges along the columns vanish from; of that the median, which detail has
    to be everywhere to move. Detail as fine as a pixel, everywhere, does count as noise.
    """
    if min(image.shape) < 3:
        return 0.0
    values = image.astype(np.float64)
    rows = values[2:] - 2.0 * values[1:-1] + values[:-2]
    rest = np.abs(rows[:, 2:] - 2.0 * rows[:, 1:-1] + rows[:, :-2])
    rest = rest[~np.isnan(rest)]
    if rest.size == 0:
        return 0.0
    # The squares of the nine weights, 1 2 1 by 1 2 1 with signs, sum to 36.
    return float(np.median(rest) / (6.0 * _MEDIAN_OF_MAGNITUDE)) ** 2
