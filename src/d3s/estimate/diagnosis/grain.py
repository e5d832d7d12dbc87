"""Grain of the noise: whether neighbouring pixels have independent noise.

Second differences over 1 and over 2 rows have the same variance if noise is white. Demosaicing,
JPEG, denoising and resampling smooth the noise, and the variance over 1 row is the smaller one.
Texture has this property too, but both views share it: their covariance is taken off, and only
patches in which it is small count.
"""

import numpy as np

from d3s.estimate.diagnosis.light import Value
from d3s.estimate.diagnosis.patches import Patches

_SHARE = 0.25  # of the patches: those with the least texture
_FEWEST = 20
# Correlation of both views above which a patch shows more texture than noise.
_MAX_CORRELATION = 0.45
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
    plainest = plainest[correlation[plainest] < _MAX_CORRELATION]
    if plainest.size < _FEWEST:
        return None
    # The view with less energy holds less texture.
    noise = (np.minimum(left, right) - np.maximum(both, 0))[plainest]
    one, two = noise[:, 0], noise[:, 1]
    if not np.median(one) > _TINY:
        return None
    ratio = two[one > 0] / one[one > 0]
    low, middle, high = np.percentile(ratio, (16, 50, 84))
    return Value(float(middle), float(0.5 * (high - low) / np.sqrt(ratio.size)))
