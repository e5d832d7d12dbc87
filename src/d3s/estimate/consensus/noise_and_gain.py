"""Noise and gain of the views, which would be mistaken for a difference between them.

The ratio sum(S_x D) / sum(D²) of the tuned equation (paper Eq. 17) has the noise of the difference
D of the views in its denominator, and not in its numerator: weak texture, and blurred texture off
the axis, comes out nearer than it is. So the noise is taken from the denominator if a and b were
computed or tuned without it; that of a calibrated sensor is known, other views show theirs.

A gain between the lenses adds its share of the texture to D, and coarse texture comes out nearer
too: with 3 % of gain 0.4 cm of error become 1.1 at 1.64 m. So the right view gets the contrast that
the left one has at the matches of a coarse search, as `depth_lines` expects. Calibrated lenses are
left as they are: their gain has gone with their falloff, and a and b know their blur.
"""

from collections.abc import Callable, Sequence

import numpy as np

from d3s.estimate.consensus.consensus_plan import ConsensusPlan, make_plan, settings_of
from d3s.estimate.consensus.result import ChosenCandidates
from d3s.estimate.consensus.smoothing import noise_passed, noise_variance
from d3s.estimate.options import ConsensusOptions
from d3s.rig import Calibration, Rig
from d3s.types import FloatArray, Image

LEAST_SHARE = 1.0
"""Least of a denominator that is left, over the noise that it had: weaker texture has no depth.

With 0.1 planes are as accurate, but in weak scenes 27 instead of 20 % of the pixels are wrong."""

_CANDIDATES = 120  # 0.7 px apart for the prototype: near enough to compare contrasts
_SURE = 0.5  # confidence of the matches that are compared


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


def equal_contrast(
    left: FloatArray,
    right: FloatArray,
    noises: Sequence[float],
    plan: ConsensusPlan,
    search: Callable[[FloatArray, FloatArray, ConsensusPlan], ChosenCandidates],
) -> FloatArray:
    """Return the right view with the contrast that the left one has at the same points.

    Parameters
    ----------
    left, right
        Views (rows, cols), filtered as the plan says. Views with their mean stay as they are.
    noises
        Noise variance of each view before the filter.
    plan
        Plan of the search that follows.
    search
        The search, for candidates that are farther apart.
    """
    settings = plan.settings
    if settings.local_mean_px == 0 or plan.field is not None:
        return right
    options = plan.options.replace(candidates=_CANDIDATES, candidates_m=None)
    coarse = make_plan(plan.rig, options, left.shape)
    found = search(left, right, coarse)
    rows, cols = np.nonzero(found.confidence > _SURE)
    depths_m = coarse.candidates_m[found.candidate[rows, cols]]
    matches = cols - np.rint(plan.rig.optics.disparity_px(depths_m)).astype(np.int64)
    some = (matches >= 0) & (matches < left.shape[1])
    if some.sum() < settings.window_px**2:  # fewer may differ by chance
        return right
    # The farther half: there a gain does harm, and near by the focus changes the contrast too.
    some &= depths_m >= np.median(depths_m[some])
    one, other = left[rows, cols][some], right[rows, matches][some]
    passed = noise_passed(settings.prefilter_sigma_px)
    contrasts = [
        np.mean(values**2) - passed * noise
        for values, noise in zip((one, other), noises, strict=True)
    ]
    if min(contrasts) <= 0:
        return right
    return np.asarray(right * np.sqrt(contrasts[0] / contrasts[1]))
