"""Prefilter of the consensus: fill holes, smooth with a Gaussian, measure the noise.

A hole is a NaN pixel. Holes are filled so that filters and splines can run over the whole view; the
caller flags all pixels within `reach_px` of a hole.
"""

import math

import numpy as np
from numpy.typing import NDArray

from d3s.types import FloatArray

# The Gaussian has 0.3 % of its weight beyond, and both views lose the same share.
_TRUNCATED_AT_SIGMAS = 3.0
# Narrow enough that a spline finds no step at the edge of a filled hole, at which it would ring.
_MIN_FILL_SIGMA_PX = 1.0
# Median of the magnitude of Gaussian noise, in standard deviations: robust standard deviation.
_MEDIAN_OF_MAGNITUDE = 0.6744897501960817


def reach_px(sigma_px: float) -> int:
    """Half width of the Gaussian kernel of `smoothed`, in whole pixels."""
    return math.ceil(_TRUNCATED_AT_SIGMAS * sigma_px)


def smoothed(image: NDArray[np.floating], sigma_px: float) -> FloatArray:
    """View (rows, cols) with holes filled, smoothed with a Gaussian; sigma 0 only fills holes.

    The view is mirrored at its borders. Pixels farther than `reach_px` from every hole have the
    value that they would have without holes.
    """
    return _gaussian(filled(image, sigma_px), sigma_px)


def without_mean(image: FloatArray, sigma_px: float) -> FloatArray:
    """View (rows, cols) without holes, less its Gaussian mean; as it is if sigma is 0."""
    import cv2  # imported here: slow to load

    if sigma_px == 0:
        return image
    mean = cv2.GaussianBlur(image, (0, 0), sigma_px, borderType=cv2.BORDER_REFLECT_101)
    return np.asarray(image - mean)


def filled(image: NDArray[np.floating], sigma_px: float) -> FloatArray:
    """View (rows, cols) whose holes have the Gaussian mean of the pixels around them.

    Pixels in the middle of a wide hole have the mean of the view. Both means follow the gain and
    offset of the view, as a constant would not.
    """
    values = image.astype(np.float64)
    holes = np.isnan(values)
    if not holes.any():
        return values
    mean = float(values[~holes].mean()) if not holes.all() else 0.0
    fill_sigma_px = max(sigma_px, _MIN_FILL_SIGMA_PX)
    weight = _gaussian(np.where(holes, 0.0, 1.0), fill_sigma_px)
    around = _gaussian(np.where(holes, 0.0, values - mean), fill_sigma_px)
    rest = np.divide(around, weight, out=np.zeros_like(values), where=holes & (weight > 1e-9))
    return np.where(holes, mean + rest, values)


def _gaussian(values: FloatArray, sigma_px: float) -> FloatArray:
    from scipy.ndimage import correlate1d  # importing scipy takes longer than the rest of d3s

    reach = reach_px(sigma_px)
    if reach == 0:
        return values
    weights = _weights(sigma_px)
    across = correlate1d(values, weights, axis=1, mode="mirror")
    return np.asarray(correlate1d(across, weights, axis=0, mode="mirror"))


def _weights(sigma_px: float) -> FloatArray:
    """Weights of the Gaussian, (2 reach + 1,)."""
    reach = reach_px(sigma_px)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma_px) ** 2)
    return np.asarray(weights / weights.sum())


def noise_passed(sigma_px: float) -> float:
    """Share of the variance of white noise that `smoothed` leaves."""
    reach = reach_px(sigma_px)
    if reach == 0:
        return 1.0
    return float((_weights(sigma_px) ** 2).sum() ** 2)


def noise_variance(image: NDArray[np.floating]) -> float:
    """Variance of white noise of the same strength in the whole view, before any filter.

    Second differences along the rows and along the columns remove planes, and edges that run along
    a row or a column. The median of their magnitude ignores detail, unless the detail is as fine
    as a pixel and everywhere: then it counts as noise. NaN pixels are left out.
    """
    if min(image.shape) < 3:
        return 0.0
    values = image.astype(np.float64)
    rows = values[2:] - 2.0 * values[1:-1] + values[:-2]
    rest = np.abs(rows[:, 2:] - 2.0 * rows[:, 1:-1] + rows[:, :-2])
    rest = rest[~np.isnan(rest)]
    if rest.size == 0:
        return 0.0
    # The squares of the nine weights, (1, -2, 1) by (1, -2, 1), sum to 36.
    return float(np.median(rest) / (6.0 * _MEDIAN_OF_MAGNITUDE)) ** 2
