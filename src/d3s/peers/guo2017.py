"""Depth from differential defocus, after Guo, Alexander and Zickler (ICCV 2017).

"Focal Track: Depth and Accommodation with Oscillating Lens Deformation": two images of one view
whose optical powers differ a little. Their difference is the Laplacian of their mean times the
change of the blur's variance, which is linear in inverse depth, so that depth follows from a ratio
in closed form. In our terms, with S the mean of both and D the left less the right one,

    D = -alpha (1/Z - kappa) laplacian(S),    Z = laplacian(S) / (kappa laplacian(S) - D / alpha).

The ratio is taken by least squares in windows, at several scales, and the scales are fused by how
sure each of them is.

Assumes a Gaussian blur, a small change of power, one depth in a window, and one view. The last does
not hold for this camera:

- The views are aligned first, by block matching at whole pixels with a parabola for the fraction.
  So stereo says which points belong together; the depth is from the defocus alone. Where the
  matching fails, so does the depth.
- What the alignment leaves changes the difference as the defocus does: a tenth of a pixel about as
  much as all of it at 1.2 m. It is therefore fitted along with the defocus in each window, as a
  second unknown times the gradient along the rows.
- The paper fuses its scales by a confidence whose parameters are trained end to end. Here the
  weight is the inverse of the variance that least squares predict, which needs no training.
- The other constants that it trains are those of the rig here, but for one `gain`.
- The right view is asked too, by the same alignment, and where the two disagree there is no depth.
- Noise makes the square of the Laplacian too large, and the inverse depth too near to kappa; its
  training absorbs that too. Here what noise adds is subtracted: of white noise, smoothed by a
  Gaussian s, the Laplacian of the mean has 1 / (2 s^4) of the power that the difference has, and
  that one is seen in the residuals.

`sigma_m` is that predicted deviation times a factor that was found on the tuning textures, and
`confidence` is 1 / (1 + sigma² / tolerance²), with sigma and its tolerance in 1/m.
"""

from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import Window
from d3s.peers.common import Job, add_flag, box_mean, kernel_reach_px, scaled, smoothed
from d3s.peers.hypotheses import Hypotheses, block_match, independent_samples
from d3s.peers.search import CheckedOptions, Found, flagged
from d3s.rig import Rig
from d3s.types import FloatArray, Image

_SPLINE_REACH_PX = 2
_TINY = 1e-20
# The share of a Laplacian's power that is left when all of it seems to be noise.
_LEAST_SIGNAL = 0.01


class Guo2017Options(CheckedOptions):
    """Choices for differential defocus.

    Defaults by benchmarks/tune_peers.py.
    """

    # On the tuning planes an eighth better than by confidence, and alike on the scenes.
    ranked_by: ClassVar[str] = "sigma_m"

    # 31 px are a seventh worse, 51 px as good on planes and worse on scenes.
    window_px: Window = Field(
        default=41, description="the side of the window of the least squares, odd"
    )
    # The finest scale; each further one has twice the Gaussian. With 1 the disk of a blur shows,
    # which is no Gaussian, and beyond 1.5 what is in focus loses.
    prefilter_sigma_px: float = Field(
        default=1.25, gt=0, le=10, description="the Gaussian that both views are smoothed with"
    )
    # Near things have nothing but coarse scales: each one up to four takes a tenth of the error at
    # 0.25 m, and leaves what is in focus as it is.
    scales: int = Field(default=4, ge=1, le=5, description="how many scales are fused")
    # A wrong alignment is a wrong depth, and where little texture is left it takes many pixels.
    align_window_px: Window = Field(
        default=41, description="the side of the block that is matched to align the views, odd"
    )
    # A small gain, at 0.25 m: elsewhere block matching aligns planes well enough.
    fit_shift: bool = Field(
        default=True, description="whether what the alignment left is fitted along"
    )
    # A disk takes more from the high frequencies than the Gaussian of the same variance does, so
    # that depths come out too far from where both views are alike: with 1, by a quarter of a metre
    # at 2 m. The paper trains its constants.
    gain: float = Field(
        default=0.84, gt=0, le=10, description="what the defocus is multiplied by, 1 as derived"
    )
    # Nearer than 0.4 m the fine scales are noise, and would say that all is where both are alike.
    subtract_noise: bool = Field(
        default=True, description="whether the power that noise gives the Laplacian is taken out"
    )
    # A fifth of a dioptre is 5 cm at half a metre.
    tolerance_dpt: float = Field(
        default=0.2, gt=0, le=100, description="the deviation of 1/Z at which confidence is a half"
    )
    sigma_factor: float = Field(
        default=0.6, gt=0, le=100, description="what the predicted deviation is multiplied by"
    )
    # Leaves out the worst twentieth of scenes; more of it leaves nothing of what is near.
    min_confidence: float = Field(
        default=0.02, ge=0, le=1, description="the confidence that a depth must reach"
    )


def estimate_guo2017(left: Image, right: Image, rig: Rig, options: Guo2017Options) -> DepthMap:
    """Align the views, and take depth from the ratio of their difference and its Laplacian."""
    alpha_px2_m = rig.optics.alpha_px2_m
    if alpha_px2_m == 0:
        raise InputError(
            "method='guo2017' needs lenses of different power, and openings: this rig has the same "
            "blur in both views at all depths. Use another method, such as 'bm'."
        )
    job = Job.start("guo2017", left, right, rig, options)
    levels = scaled(job.views)
    if levels is None:
        return job.nothing(Flag.LOW_TEXTURE)
    tried = Hypotheses.of(rig.optics, job.range_m, 1.0, job.shape[1])
    widest_px = max(options.window_px, options.align_window_px)
    if tried is None or min(job.shape) < widest_px:
        return job.nothing(Flag.BORDER)
    smooth = [smoothed(view, options.prefilter_sigma_px) for view in levels]
    aligned = block_match(smooth[0], smooth[1], tried, options.align_window_px)
    spread = _fused(levels[0], _sampled(levels[1], aligned.disparity_px), options)
    per_dpt = alpha_px2_m / options.gain
    vergence_dpt = rig.optics.kappa_dpt - spread.value_px2 / per_dpt
    sigma_dpt = options.sigma_factor * spread.sigma_px2 / abs(per_dpt)
    confidence = 1.0 / (1.0 + (sigma_dpt / options.tolerance_dpt) ** 2)
    coarsest_px = options.prefilter_sigma_px * 2.0 ** (options.scales - 1)
    flags = flagged(
        job,
        levels[0],
        Found(*aligned, sigma_dpt, confidence),
        widest_px,
        kernel_reach_px(coarsest_px) + _SPLINE_REACH_PX,
    )
    with np.errstate(divide="ignore"):
        depth_m = np.where(vergence_dpt > 0, 1.0 / vergence_dpt, np.nan)
    nearest_m, farthest_m = job.range_m
    add_flag(flags, Flag.OUT_OF_RANGE, ~((depth_m >= nearest_m) & (depth_m <= farthest_m)))
    return job.finish(flags, depth_m, sigma_dpt * depth_m**2, confidence)


def _sampled(view: FloatArray, shift_px: FloatArray) -> FloatArray:
    """A view moved to the right by a shift of each pixel, continued at its sides."""
    from scipy.ndimage import map_coordinates  # importing scipy takes longer than the rest of d3s

    rows, cols = np.indices(view.shape, dtype=np.float64)
    return np.asarray(map_coordinates(view, [rows, cols - shift_px], order=5, mode="mirror"))


class _Spread(NamedTuple):
    """Half the difference of the blurs' variances, left less right, and its deviation."""

    value_px2: FloatArray
    sigma_px2: FloatArray


def _fused(left: FloatArray, right: FloatArray, options: Guo2017Options) -> _Spread:
    """All scales together, each as much as its variance allows."""
    total, weights = np.zeros(left.shape), np.zeros(left.shape)
    for scale in range(options.scales):
        sigma_px = options.prefilter_sigma_px * 2.0**scale
        one = _fitted(smoothed(left, sigma_px), smoothed(right, sigma_px), sigma_px, options)
        weight = 1.0 / np.maximum(one.sigma_px2, _TINY) ** 2
        total += weight * one.value_px2
        weights += weight
    # The scales see the same noise: together they are no surer than the surest by much.
    return _Spread(total / weights, np.sqrt(options.scales / weights))


def _fitted(
    left: FloatArray, right: FloatArray, sigma_px: float, options: Guo2017Options
) -> _Spread:
    """The multiple of the Laplacian, and of the gradient if asked, that is the difference."""
    import cv2

    mean, difference = 0.5 * (left + right), left - right
    laplacian = np.asarray(cv2.Laplacian(mean, cv2.CV_64F, ksize=1), dtype=np.float64)
    gradient = np.asarray(cv2.Sobel(mean, cv2.CV_64F, 1, 0, ksize=1, scale=0.5), dtype=np.float64)

    def window(product: FloatArray) -> FloatArray:
        return box_mean(product, options.window_px)

    power, along = window(laplacian**2), window(laplacian * difference)
    residual = window(difference**2)
    if options.fit_shift:
        flow, mixed = window(gradient**2) + _TINY, window(gradient * laplacian)
        moved = window(gradient * difference)
        power, along = power - mixed**2 / flow, along - mixed * moved / flow
        residual = residual - moved**2 / flow
    power = np.maximum(power, _TINY)
    residual = np.maximum(residual - along**2 / power, 0.0)
    signal = power
    if options.subtract_noise:
        signal = np.maximum(power - residual / (2.0 * sigma_px**4), _LEAST_SIGNAL * power)
    samples = independent_samples(options.window_px, sigma_px)
    return _Spread(along / signal, np.sqrt(residual * power / samples) / signal + _TINY)
