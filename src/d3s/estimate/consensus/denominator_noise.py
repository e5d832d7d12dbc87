"""Noise in the denominator of the depth equation.

The ratio sum(S_x D) / sum(D²) of the tuned equation (paper Eq. 17) has the noise of the difference
D of the views in its denominator, and not in its numerator: weak texture, and blurred texture off
the axis, comes out nearer than it is. The noise of a calibrated sensor is known, and is taken from
the denominator if a and b were tuned without it.
"""

import numpy as np

from d3s.estimate.consensus.smoothing import noise_passed, noise_variance
from d3s.rig import Calibration, Rig
from d3s.types import FloatArray, Image

LEAST_SHARE = 0.1
"""Least of a denominator that is left, over the noise that it had: weaker texture has no depth."""


def removed_noise(rig: Rig, views: tuple[Image, Image], prefilter_px: float) -> float:
    """Variance of the noise of D in smoothed views that is taken from its squares.

    0 if a and b of the rig were tuned with noise, as in the paper.

    Parameters
    ----------
    rig
        The camera.
    views
        Left and right view, not smoothed.
    prefilter_px
        Standard deviation of the Gaussian that they are smoothed by.
    """
    calibration = rig.calibration
    if calibration is None or not calibration.tuned_without_noise:
        return 0.0
    return noise_passed(prefilter_px) * sum(_sensor_noise(view, calibration) for view in views)


def without_noise(squares: FloatArray, noise: float) -> FloatArray:
    """Sums of D² over windows less the noise in them, of which `LEAST_SHARE` is left at least."""
    return np.maximum(squares - noise, LEAST_SHARE * noise)


def _sensor_noise(view: Image, calibration: Calibration) -> float:
    """Noise variance of a view: that of the sensor at its mean light, if it is known.

    A resampled view has lost the finest part of its noise, by which it is measured.
    """
    if calibration.noise_read is None or calibration.noise_gain is None:
        return noise_variance(view)
    some = view[:: max(view.shape[0] // 64, 1)]
    light = float(np.nanmean(some)) if np.isfinite(some).any() else 0.0
    return calibration.noise_read**2 + calibration.noise_gain * max(light, 0.0)
