"""Contrast of the right view, made equal to that of the left one before the search.

A gain between the lenses adds its share of the texture to the difference of the views. Coarse
texture is then mistaken for disparity: with 3 % of gain 0.4 cm of error become 1.1 at 1.64 m. The
ratio of contrasts is measured at the matches of a coarse search. `depth_lines` expects views of
equal contrast. Those of calibrated lenses are left as they are: a and b know their blur, and their
gain has been taken away with their falloff.
"""

from collections.abc import Callable

import numpy as np

from d3s.estimate.consensus.consensus_plan import ConsensusPlan, make_plan
from d3s.estimate.consensus.result import ChosenCandidates
from d3s.estimate.consensus.smoothing import noise_passed
from d3s.types import FloatArray

_CANDIDATES = 120  # 0.7 px apart for the prototype: near enough to compare contrasts
_SURE = 0.5  # confidence of the matches that are compared
_LEAST_PIXELS = 1000  # fewer may differ by chance
_LIMITS = 0.5, 2.0  # ratios beyond these are no gain, but wrong matches


def equal_contrast(
    left: FloatArray,
    right: FloatArray,
    noises: tuple[float, float],
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
    is_inside = (matches >= 0) & (matches < left.shape[1])
    if is_inside.sum() < _LEAST_PIXELS:
        return right
    one, other = left[rows, cols][is_inside], right[rows, matches][is_inside]
    passed = noise_passed(settings.prefilter_sigma_px)
    contrasts = [
        np.mean(values**2) - passed * noise
        for values, noise in zip((one, other), noises, strict=True)
    ]
    if min(contrasts) <= 0:
        return right
    return right * np.clip(np.sqrt(contrasts[0] / contrasts[1]), *_LIMITS)
