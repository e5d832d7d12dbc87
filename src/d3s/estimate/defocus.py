"""`estimate_defocus`: depth from defocus alone, for two focuses behind one view point.

A beam splitter gives both sensors the same view, so that the baseline is 0 and the depth equation
(paper Eq. 10) has no gradient. Solved for 1/Z, it says that the views differ by
alpha (kappa - 1/Z) times the Laplacian of their mean: a line through 0, whose slope is fitted over
a window. Detail as fine as pixels and blur changes the slope by what `depth_lines.blur_slopes`
computes. Noise is in the difference of the views, and hardly in the Laplacian.
"""

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.checked_pair import CheckedPair
from d3s.estimate.clipping import clipped
from d3s.estimate.consensus.depth_lines import blur_slopes
from d3s.estimate.consensus.smoothing import noise_passed, noise_variance, reach_px, smoothed
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import DefocusOptions
from d3s.optics.windows import five_point_laplacian, window_sum
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image

# Share of the misfit beyond noise that acts like noise; the rest is as fine as the texture.
_MISFIT_SHARE = 0.3
# Standard deviation of what blurred disks and pixels add to the inverse depth of a texture, as a
# share of what they add to that of the usual spectrum.
_TEXTURE_SHARE = 0.3


def estimate_defocus(left: Image, right: Image, rig: Rig, options: DefocusOptions) -> DepthMap:
    """Estimate depth from the difference of focus of two views from one point.

    Parameters
    ----------
    left, right
        Views (rows, cols) as `checked_pair` returns them; NaN where there is no value.
    rig
        The camera, with `optics.baseline_m` = 0 and two optical powers.
    options
        Range, window, prefilter and threshold.

    Raises
    ------
    InputError
        If the camera has a baseline, or its lenses have the same focus.
    """
    passing = noise_passed(options.prefilter_sigma_px)
    optics, pair, sigma_px = rig.optics, CheckedPair(left, right), options.prefilter_sigma_px
    if optics.baseline_m != 0 or optics.alpha_px2_m == 0:
        raise InputError(
            f"method='defocus' needs two views from one point with different focus, but the rig "
            f"has optics.baseline_m={optics.baseline_m} and optical powers of "
            f"{optics.optical_power_left_dpt} and {optics.optical_power_right_dpt} dpt. Use "
            "method='joint' for a camera with a baseline."
        )
    views = [smoothed(view, sigma_px) for view in pair]
    noise = 0.5 * sum(noise_variance(view) for view in pair)
    detail, difference = five_point_laplacian(0.5 * (views[0] + views[1])), views[0] - views[1]
    again, twice = _noise_weights(detail, sigma_px)
    with np.errstate(divide="ignore", invalid="ignore"):
        energy = window_sum(detail**2, options.window_px)
        slope = window_sum(difference * detail, options.window_px) / energy
        passed = window_sum(again**2, options.window_px) / energy
        rest = window_sum((difference - slope * detail) ** 2, options.window_px)
        rest = np.maximum(rest / options.window_px**2 - 2 * noise * passing, 0.0)
        curved = window_sum(twice**2, options.window_px) / energy
        variance = 2 * noise * (passed + 0.25 * slope**2 * curved) / energy
        variance += _MISFIT_SHARE * rest / passing * passed / energy
        vergence, per_px2, linear = _vergence(slope, rig.optics, sigma_px)
        variance = variance * per_px2**2 + (_TEXTURE_SHARE * (vergence - linear)) ** 2
        depth_m = 1.0 / vergence
        sigma_m = depth_m**2 * np.sqrt(variance)
        confidence = 1.0 / (1.0 + sigma_m / np.abs(depth_m) / options.half_sigma)
    flags = _flags(pair, depth_m, confidence, rig, options)
    keep, nan = flags == 0, np.float32(np.nan)
    return DepthMap(
        depth_m=np.where(keep, depth_m, nan).astype(np.float32),
        sigma_m=np.where(keep, sigma_m, nan).astype(np.float32),
        confidence=np.nan_to_num(confidence).astype(np.float32),
        flags=flags,
        rig=rig,
        method="defocus",
        options=options,
    )


def _vergence(
    slope: FloatArray, optics: Optics, prefilter_px: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inverse depth of slopes, its derivative, and the inverse depth by Eq. 10 as it is."""
    known, slopes = blur_slopes(optics, prefilter_px)
    sign = -np.sign(optics.alpha_px2_m)
    rising = np.maximum.accumulate(sign * slopes)
    place = sign * slope
    inverse = np.interp(place, rising, known, left=np.nan, right=np.nan)
    rates = np.gradient(known) / np.maximum(np.gradient(rising), 1e-9)
    linear = optics.kappa_dpt - slope / optics.alpha_px2_m
    return inverse, np.interp(place, rising, rates), linear


def _noise_weights(detail: FloatArray, sigma_px: float) -> tuple[FloatArray, FloatArray]:
    """Weights of the noise of a pixel in the sum of a window, and those of its Laplacian."""
    known = np.nan_to_num(detail)
    again = smoothed(known, sigma_px)
    return again, np.nan_to_num(five_point_laplacian(again))


def _flags(
    pair: CheckedPair,
    depth_m: FloatArray,
    confidence: FloatArray,
    rig: Rig,
    options: DefocusOptions,
) -> NDArray[np.uint16]:
    from scipy.ndimage import maximum_filter

    nearest_m, farthest_m = options.depth_range_m or default_depth_range_m(rig.optics)
    reach = options.window_px // 2 + 1 + reach_px(options.prefilter_sigma_px)
    inner = np.zeros(depth_m.shape, dtype=np.bool_)
    inner[reach : depth_m.shape[0] - reach, reach : depth_m.shape[1] - reach] = True
    missing, bright = (
        maximum_filter(mask(pair.left) | mask(pair.right), 2 * reach + 1)
        for mask in (np.isnan, clipped)
    )
    masks = {
        Flag.BORDER: ~inner,
        Flag.INVALID_INPUT: missing,
        Flag.SATURATED: bright,
        Flag.LOW_TEXTURE: inner & ~np.isfinite(depth_m),
        Flag.OUT_OF_RANGE: inner & ~((depth_m > nearest_m) & (depth_m < farthest_m)),
        Flag.LOW_CONFIDENCE: inner & ~(confidence >= options.min_confidence),
    }
    flags = np.zeros(depth_m.shape, dtype=np.uint16)
    for flag, mask in masks.items():
        flags[mask] |= np.uint16(flag)
    return flags
