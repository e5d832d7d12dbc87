"""Depth from differential defocus, after Guo, Alexander and Zickler (ICCV 2017).

Paper: "Focal Track: Depth and Accommodation with Oscillating Lens Deformation".

Taken from the paper: two images of one view whose optical powers differ a little. Their difference
is the Laplacian of their mean times the change of the blur variance, which is linear in inverse
depth, so depth is a ratio in closed form. In our terms, with S the mean of both images and D the
left minus the right one,

    D = -alpha (1/Z - kappa) laplacian(S),    Z = laplacian(S) / (kappa laplacian(S) - D / alpha).

The ratio is a least-squares fit over windows at several scales. The scales are fused by their
confidence. The model assumes a Gaussian blur, a small change of power, one depth per window and one
view.

Different from the paper:

- This camera has two views. They are aligned first, by block matching with a subpixel parabola. So
  stereo finds the matching points, and depth comes from the defocus alone. Where the matching
  fails, so does the depth.
- An alignment error changes the difference image as defocus does: a tenth of a pixel about as much
  as the whole defocus at 1.2 m. The residual shift is therefore a second unknown of each window's
  fit, times the horizontal gradient.
- The paper fuses scales by a confidence with parameters trained end to end. Here the weight is the
  inverse of the variance predicted by least squares, which needs no training.
- The other trained constants of the paper come from the rig here, except one `gain`.
- A left-right check of the alignment rejects pixels visible in one view only.
- Noise adds power to the Laplacian and pulls inverse depth towards kappa; the paper's training
  absorbs that. Here the noise power is subtracted: after a Gaussian of standard deviation s, white
  noise in the Laplacian of the mean has 1 / (2 s^4) of its power in the difference, which the
  residuals show.

`sigma_m` is the predicted standard deviation times a factor found on the tuning textures.
`confidence` is 1 / (1 + sigma² / tolerance²), with sigma and tolerance in 1/m.
"""

from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import MinConfidence, Window
from d3s.lab.peers.common import (
    MethodCall,
    box_mean,
    gaussian_blur,
    gaussian_radius_px,
    normalise_pair,
)
from d3s.lab.peers.matching import (
    DisparityGrid,
    MatchedDisparity,
    MatchingOptions,
    SigmaFactor,
    block_match,
    flag_matches,
    independent_samples,
)
from d3s.rig import Rig
from d3s.types import FloatArray, Image

_SPLINE_RADIUS_PX = 2
_TINY = 1e-20  # avoids a division by zero
# Smallest share of the Laplacian's power kept as signal when all of it looks like noise.
_MIN_SIGNAL = 0.01


class Guo2017Options(MatchingOptions):
    """Options of differential defocus.

    Defaults by benchmarks/tune_peers.py.
    """

    # An eighth better than confidence on the tuning planes, equal on the scenes.
    ranked_by: ClassVar[str] = "sigma_m"

    # 31 px are a seventh worse; 51 px equal on planes and worse on scenes.
    window_px: Window = Field(
        default=41, description="the side of the window of the least squares, odd"
    )
    # The finest scale; each further scale doubles the Gaussian. With 1 the blur disk shows, which
    # is not Gaussian. Beyond 1.5 in-focus depths get worse.
    prefilter_sigma_px: float = Field(
        default=1.25, gt=0, le=10, description="the sigma of the Gaussian that smooths both views"
    )
    # Near objects are visible at coarse scales only: each scale up to the fourth removes a tenth of
    # the error at 0.25 m and does not change in-focus depths.
    scales: int = Field(default=4, ge=1, le=5, description="how many scales are fused")
    # A wrong alignment is a wrong depth; where texture is weak it takes many pixels to be right.
    align_window_px: Window = Field(
        default=41, description="the side of the block that is matched to align the views, odd"
    )
    # A small gain at 0.25 m; elsewhere block matching aligns planes well enough.
    fit_shift: bool = Field(
        default=True, description="whether the residual shift of the alignment is fitted too"
    )
    # A disk removes more of the high frequencies than a Gaussian of the same variance, so depths
    # come out too far from the depth of equal blur: with 1, by a quarter of a metre at 2 m. The
    # paper trains its constants.
    gain: float = Field(
        default=0.84, gt=0, le=10, description="the factor on the defocus, 1 as derived"
    )
    # Nearer than 0.4 m fine scales hold noise only, and would vote for the depth of equal blur.
    subtract_noise: bool = Field(
        default=True, description="whether the noise power in the Laplacian is subtracted"
    )
    # A fifth of a dioptre is 5 cm at half a metre.
    tolerance_dpt: float = Field(
        default=0.2, gt=0, le=100, description="the sigma of 1/Z at which confidence is a half"
    )
    sigma_factor: SigmaFactor = 0.6
    # Rejects the worst twentieth of scene pixels; a higher value rejects everything near.
    min_confidence: MinConfidence = 0.02


def estimate_guo2017(left: Image, right: Image, rig: Rig, options: Guo2017Options) -> DepthMap:
    """Align the views, then divide the Laplacian of their mean by their difference.

    Raises an InputError when both views have the same blur at all depths.
    """
    if rig.optics.alpha_px2_m == 0:
        raise InputError(
            "method='guo2017' needs lenses of different power, and openings: this rig has the same "
            "blur in both views at all depths. Use another method, such as 'bm'."
        )
    call = MethodCall("guo2017", (left, right), rig, options)
    pair = normalise_pair(call.views)
    if pair is None:
        return call.finish_empty(Flag.LOW_TEXTURE)
    grid = DisparityGrid.covering(rig.optics, call.range_m, 1.0, call.shape[1])
    widest_px = max(options.window_px, options.align_window_px)
    if grid is None or min(call.shape) < widest_px:
        return call.finish_empty(Flag.BORDER)
    smooth = [gaussian_blur(view, options.prefilter_sigma_px) for view in pair]
    alignment = block_match(smooth[0], smooth[1], grid, options.align_window_px)
    change = _fuse_scales(pair[0], _warp_rows(pair[1], alignment.disparity_px), options)
    px2_per_dpt = rig.optics.alpha_px2_m / options.gain
    vergence_dpt = rig.optics.kappa_dpt - change.value_px2 / px2_per_dpt
    sigma_dpt = options.sigma_factor * change.sigma_px2 / abs(px2_per_dpt)
    confidence = 1.0 / (1.0 + (sigma_dpt / options.tolerance_dpt) ** 2)
    coarsest_px = options.prefilter_sigma_px * 2.0 ** (options.scales - 1)
    flags = flag_matches(
        call,
        pair[0],
        MatchedDisparity(*alignment, sigma_dpt, confidence),
        widest_px,
        gaussian_radius_px(coarsest_px) + _SPLINE_RADIUS_PX,
    )
    with np.errstate(divide="ignore"):
        depth_m = np.where(vergence_dpt > 0, 1.0 / vergence_dpt, np.nan)
    nearest_m, farthest_m = call.range_m
    flags[~((depth_m >= nearest_m) & (depth_m <= farthest_m))] |= np.uint16(Flag.OUT_OF_RANGE)
    return call.finish(flags, depth_m, sigma_dpt * depth_m**2, confidence)


def _warp_rows(view: FloatArray, shift_px: FloatArray) -> FloatArray:
    """View with each pixel shifted to the right by its own amount, mirrored at the sides."""
    from scipy.ndimage import map_coordinates  # importing scipy takes longer than the rest of d3s

    rows, cols = np.indices(view.shape, dtype=np.float64)
    return np.asarray(map_coordinates(view, [rows, cols - shift_px], order=5, mode="mirror"))


class _VarianceChange(NamedTuple):
    """Half the difference of the blur variances, left minus right, and its standard deviation."""

    value_px2: FloatArray
    sigma_px2: FloatArray


def _fuse_scales(left: FloatArray, right: FloatArray, options: Guo2017Options) -> _VarianceChange:
    """Mean over all scales, weighted by inverse variance."""
    total, weights = np.zeros(left.shape), np.zeros(left.shape)
    for scale in range(options.scales):
        sigma_px = options.prefilter_sigma_px * 2.0**scale
        smooth = gaussian_blur(left, sigma_px), gaussian_blur(right, sigma_px)
        one = _fit_scale(smooth, sigma_px, options)
        weight = 1.0 / np.maximum(one.sigma_px2, _TINY) ** 2
        total += weight * one.value_px2
        weights += weight
    # The scales share their noise: the variance of the mean is not reduced by their number.
    return _VarianceChange(total / weights, np.sqrt(options.scales / weights))


def _fit_scale(
    views: tuple[FloatArray, FloatArray], sigma_px: float, options: Guo2017Options
) -> _VarianceChange:
    """Fit the difference of the views by a multiple of the Laplacian and, optionally, a shift."""
    import cv2

    mean, difference = 0.5 * (views[0] + views[1]), views[0] - views[1]
    laplacian = np.asarray(cv2.Laplacian(mean, cv2.CV_64F, ksize=1), dtype=np.float64)
    gradient = np.asarray(cv2.Sobel(mean, cv2.CV_64F, 1, 0, ksize=1, scale=0.5), dtype=np.float64)

    def window(product: FloatArray) -> FloatArray:
        return box_mean(product, options.window_px)

    power, product = window(laplacian**2), window(laplacian * difference)
    residual = window(difference**2)
    if options.fit_shift:
        gradient_power, mixed = window(gradient**2) + _TINY, window(gradient * laplacian)
        shift_product = window(gradient * difference)
        power = power - mixed**2 / gradient_power
        product = product - mixed * shift_product / gradient_power
        residual = residual - shift_product**2 / gradient_power
    power = np.maximum(power, _TINY)
    residual = np.maximum(residual - product**2 / power, 0.0)
    signal = power
    if options.subtract_noise:
        signal = np.maximum(power - residual / (2.0 * sigma_px**4), _MIN_SIGNAL * power)
    samples = independent_samples(options.window_px, sigma_px)
    return _VarianceChange(product / signal, np.sqrt(residual * power / samples) / signal + _TINY)
