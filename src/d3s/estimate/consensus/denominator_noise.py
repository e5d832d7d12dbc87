"""Noise in the denominator of the depth equation.

The ratio sum(S_x D) / sum(D²) of the tuned equation (paper Eq. 17) has the noise of the difference
D of the views in its denominator, and not in its numerator: weak texture, and blurred texture off
the axis, comes out nearer than it is. So the noise is taken from the denominator if a and b were
computed or tuned without it; that of a calibrated sensor is known, other views show theirs.
"""

import numpy as np

from d3s.estimate.consensus.consensus_plan import settings_of
from d3s.estimate.consensus.smoothing import noise_passed, noise_variance
from d3s.estimate.options import ConsensusOptions
from d3s.rig import Calibration, Rig
from d3s.types import FloatArray, Image

LEAST_SHARE = 0.1
"""Least of a denominator that is left, over the noise that it had: weaker texture has no depth."""


def removed_noise(rig: Rig, views: tuple[Image, Image], options: ConsensusOptions) -> float:
    """Variance of the noise of D in smoothed views that is taken from its squares.

    0 if a and b of the rig were tuned with noise, and by Eq. 10, as in the paper. What a local mean
    takes from the noise is not counted: less noise removed is worse at 1.9 m on tuning textures.

    Parameters
    ----------
    rig
        The camera.
    views
        Left and right view, not smoothed.
    options
        Options of the consensus, with the prefilter.
    """
    calibration = rig.calibration
    if options.as_printed if calibration is None else not calibration.tuned_without_noise:
        return 0.0
    passed = noise_passed(settings_of(options, calibration).prefilter_sigma_px)
    return passed * sum(_sensor_noise(view, calibration) for view in views)


def without_noise(squares: FloatArray, noise: float) -> FloatArray:
    """Sums of D² over windows less the noise in them, of which `LEAST_SHARE` is left at least."""
    return np.maximum(squares - noise, LEAST_SHARE * noise)


def _sensor_noise(view: Image, calibration: Calibration | None) -> float:
    """Noise variance of a view: that of the sensor at its mean light, if it is known.

    A resampled view has lost the finest part of its noise, by which it is measured.
    """
    if calibration is None or calibration.noise_read is None or calibration.noise_gain is None:
        return noise_variance(view)
    some = view[:: max(view.shape[0] // 64, 1)]
    light = float(np.nanmean(some)) if np.isfinite(some).any() else 0.0
    return calibration.noise_read**2 + calibration.noise_gain * max(light, 0.0)
