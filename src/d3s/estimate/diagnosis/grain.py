"""Grain of the noise: whether neighbouring pixels have independent noise.

Second differences over 1 and over 2 rows have the same variance if noise is white. Demosaicing,
JPEG, denoising and resampling smooth the noise, and the variance over 1 row is the smaller one.
Texture has this property too, but both views share it. Over the patches, the variance that the
views do not share is a line over the variance that they share; noise is its value without texture.
"""

import numpy as np

from d3s.estimate.diagnosis.light import Value, robust_fit
from d3s.estimate.diagnosis.patches import Patches, PatchStatistic
from d3s.types import FloatArray

_SHARE = 0.5  # of the patches: those with the least texture
_FEWEST = 40
# Correlation of both views that so many of these patches must not exceed: else texture hides the
# noise.
_MAX_CORRELATION = {0.04: 0.4, 0.1: 0.7}
_MOST_UNSURE = 0.15  # standard deviation of the noise variance, as a share of it
# Least standard deviation of noise that counts, as a share of the range of the patches' means: a
# tenth of what rounding to 8 bits makes. Views that are made without noise have less.
_LEAST_NOISE = 5e-4
_GAIN = 6.0  # variance of second differences of white noise of variance 1
_TINY = 1e-30


def noise_grain(patches: Patches) -> Value | None:
    """Measure the variance of noise over 2 rows relative to 1 row: 1 if it is white.

    None if texture hides the noise, or there are too few patches.

    Parameters
    ----------
    patches
        Matched patches of a pair.
    """
    left, right, both = (patches.fine[:, i, :2] for i in range(3))
    correlation = both[:, 1] / np.sqrt(left[:, 1] * right[:, 1] + _TINY)
    plainest = np.argsort(correlation, kind="stable")[: int(_SHARE * correlation.size)]
    if plainest.size < _FEWEST:
        return None
    least = np.quantile(correlation[plainest], list(_MAX_CORRELATION))
    if np.all(least > list(_MAX_CORRELATION.values())):
        return None
    shared = np.maximum(both, 0)[plainest]
    # The view with less energy holds less texture.
    own = np.minimum(left, right)[plainest] - shared
    noise = [_without_texture(own[:, lag], shared[:, lag]) for lag in range(2)]
    if noise[0] is None or noise[1] is None:
        return None
    low, high = np.percentile(patches.left[:, PatchStatistic.MEAN], (2, 98))
    if noise[0].value < _GAIN * (_LEAST_NOISE * (high - low)) ** 2:
        return None
    ratio = noise[1].value / noise[0].value
    shares = (noise[0].sigma / noise[0].value, noise[1].sigma / noise[1].value)
    return Value(ratio, ratio * float(np.hypot(*shares)))


def _without_texture(own: FloatArray, shared: FloatArray) -> Value | None:
    """Variance at which the line of `own` over `shared` begins; None if it is too uncertain."""
    size = np.maximum(own + shared, _TINY)  # errors of a variance are in proportion to it
    terms = np.stack([1 / size, shared / size], axis=1)
    found = robust_fit(terms if shared.any() else terms[:, :1], own / size)
    if found is None:
        return None
    value, sigma = float(found[0][0]), float(found[1][0])
    return Value(value, sigma) if sigma < _MOST_UNSURE * value else None
