"""Stereo and defocus fused by deconvolution, after Takeda, Hiura and Sato (CVPR 2013).

Paper: "Fusing Depth from Defocus and Stereo with Coded Apertures".

Taken from the paper: two cameras focused at different distances, whose point-spread functions at a
depth hold both cues, the blur in their size and the disparity in their position. For each depth
tried, one sharp scene is restored from both views by Wiener deconvolution, blurred and shifted
again, and compared with the views. The depth with the smallest residual wins. The model assumes one
depth per window, known point-spread functions, and a scene whose power falls with frequency as that
of natural images does (the prior of the Wiener filter).

Different from the paper:

- The camera has round apertures without a code. Their transfer function has zeros, which the codes
  of the paper avoid: a frequency that one view lost there comes from the other view.
- Both residuals are compared in the frame of the left view, where depth is wanted, and their
  squares are summed over a square window.
- The depths tried are evenly spaced in disparity, and a parabola gives the subpixel part. With
  `labels="whole"` the depth is the best of those one pixel of disparity apart.
- A left-right check, from the same residuals, rejects pixels visible in one view only.

`sigma_m` is from the width of that parabola and its smallest residual, times a factor found on the
tuning textures. `confidence` is one minus the smallest residual over the mean residual.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.options import MinConfidence, PrefilterSigma, Window
from d3s.lab.peers.common import (
    Float32Array,
    MethodCall,
    NormalisedPair,
    box_mean,
    gaussian_radius_px,
)
from d3s.lab.peers.matching import (
    Consistency,
    DisparityGrid,
    MatchedDisparity,
    PaddedFft,
    RunningMinimum,
    SearchOptions,
    SigmaFactor,
    Spectrum,
    estimate_by_search,
    independent_samples,
)
from d3s.optics.psf import disk_otf, gaussian_otf
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image

# Avoids a division by zero at frequency zero and where both transfer functions are zero.
_MIN_PRIOR = 1e-9
# Radii at which a transfer function is sampled: a thousandth of the first zero of the widest blur.
_RADII = 16_384


class Takeda2013Options(SearchOptions):
    """Options of the fusion of stereo and defocus by deconvolution.

    Defaults by benchmarks/tune_peers.py.
    """

    # A larger window has less noise: 31 px are a tenth worse on planes, 25 px a third.
    window_px: Window = Field(default=37, description="the side of the cost window, odd")
    # The Wiener filter already smooths: 0.5 to 1.5 px are equal.
    prefilter_sigma_px: PrefilterSigma = 0.7
    # The paper measures its point-spread functions. Geometric optics and the digital twin say that
    # ours are disks. Where they are not, a Gaussian is the safer guess: on disks its error is a
    # seventh larger at 2 m, and half as large again nearer than half a metre.
    psf: Literal["disk", "gaussian"] = Field(
        default="disk", description="the shape of a blurred point"
    )
    # At 1 % noise 0.003 to 0.3 are equal; with 3 the error at 2 m is twice as large.
    noise_to_signal: float = Field(
        default=0.3,
        gt=0,
        le=1e6,
        description="the power of noise over that of the scene, at one cycle per pixel",
    )
    sigma_factor: SigmaFactor = 0.8
    # One step of the grid.
    consistency_px: Consistency = 0.5
    # Rejects windows that hold two surfaces: with 0.9 the error on scenes is half as large again,
    # for a thirtieth more pixels, and with 0.8 five times as large. 0.97 rejects near objects of
    # low contrast.
    min_confidence: MinConfidence = 0.95


def estimate_takeda2013(
    left: Image, right: Image, rig: Rig, options: Takeda2013Options
) -> DepthMap:
    """Deconvolve both views at each depth, blur the scene again, and compare."""
    return estimate_by_search(MethodCall("takeda2013", (left, right), rig, options), _search)


def _search(
    pair: NormalisedPair, grid: DisparityGrid, optics: Optics, options: Takeda2013Options
) -> tuple[MatchedDisparity, float]:
    blur_px = _widest_blur_px(optics, grid)
    margin_px = blur_px + gaussian_radius_px(options.prefilter_sigma_px) + options.window_px // 2
    largest_shift_px = float(np.abs(grid.disparity_px).max())
    rows, cols = pair[0].shape
    fft = PaddedFft.with_margin((rows, cols), margin_px, margin_px + largest_shift_px)
    best = RunningMinimum((rows, cols))
    residuals = _squared_residuals(fft, fft.spectra(pair), grid, optics, options)
    for squares, shift_px in zip(residuals, grid.disparity_px, strict=True):
        best.add(box_mean(squares, options.window_px), float(shift_px))
    parabola = best.parabola
    offset = parabola.offset if options.labels == "subpixel" else 0.0 * parabola.offset
    disparity_px = grid.disparity_px[best.index] + grid.step_px * offset
    samples = independent_samples(options.window_px, options.prefilter_sigma_px)
    found = MatchedDisparity(
        disparity_px=disparity_px,
        sigma_px=parabola.sigma_px(grid.step_px, samples),
        confidence=best.distinctness,
        left_right_difference_px=best.left_right_difference_px(disparity_px),
    )
    return found, blur_px


def _widest_blur_px(optics: Optics, grid: DisparityGrid) -> float:
    """Largest blur radius of both cameras over the grid, in px."""
    depth_m = optics.depth_m(grid.disparity_px)
    return float(max(np.abs(optics.blur_radius_px(depth_m, camera)).max() for camera in (0, 1)))


def _squared_residuals(
    fft: PaddedFft,
    spectra: tuple[Spectrum, Spectrum],
    grid: DisparityGrid,
    optics: Optics,
    options: Takeda2013Options,
) -> Iterator[Float32Array]:
    """Squared difference of views and restored scene (rows, cols), one disparity at a time."""
    radius = fft.frequency_radius
    prefilter = gaussian_otf(radius, options.prefilter_sigma_px).astype(np.float32)
    prior = (options.noise_to_signal * radius**2 + _MIN_PRIOR).astype(np.float32)
    left, right = (spectrum * prefilter for spectrum in spectra)
    # A transfer function is round and slow to compute: once per radius, not once per frequency.
    radii = np.linspace(0.0, float(radius.max()), _RADII)
    index = np.rint(radius * ((_RADII - 1) / radii[-1])).astype(np.int32)
    for shift_px in grid.disparity_px:
        depth_m = float(optics.depth_m(shift_px))
        first, second = (
            _transfer(radii, optics, depth_m, camera, options.psf)[index] for camera in (0, 1)
        )
        shifted = right * fft.shift_factor(shift_px)
        scene = (first * left + second * shifted) / (first**2 + second**2 + prior)
        residuals = fft.image(left - first * scene), fft.image(shifted - second * scene)
        yield residuals[0] ** 2 + residuals[1] ** 2


def _transfer(
    frequency: FloatArray, optics: Optics, depth_m: float, camera: int, psf: str
) -> Float32Array:
    """Optical transfer function of one camera at a depth, at frequencies in cycles/px."""
    if psf == "disk":
        transfer = disk_otf(frequency, optics.blur_radius_px(depth_m, camera))
    else:
        transfer = gaussian_otf(frequency, optics.blur_sigma_px(depth_m, camera))
    return transfer.astype(np.float32)
