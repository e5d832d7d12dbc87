"""Stereo and defocus fused by deconvolution, after Takeda, Hiura and Sato (CVPR 2013).

"Fusing Depth from Defocus and Stereo with Coded Apertures": two cameras focused differently, whose
point-spread functions at a depth hold both cues, the blur in their size and the disparity in their
place. For each depth that is tried, one sharp scene is restored from both views by Wiener
deconvolution, blurred and moved again, and compared with what the cameras saw. The depth of the
least residual wins.

Assumes one depth within a window, known point-spread functions, and a frame whose texture falls off
with frequency as natural ones do (the prior of the Wiener filter).

What is different here:

- The camera has round apertures without a code. A round one has zeros in its transfer, which the
  codes of the paper were made to avoid: what a view lost there, the other view has to bring.
- Both residuals are compared where the left view is, since depth is wanted there, and their squares
  are summed over a square window.
- Depths are even in disparity, and the best gets its fraction from a parabola.
- The right view is asked too, by the same residuals, and where the two disagree there is no depth.
- `sigma_m` is the width of that parabola, by the residual that is left, times a factor that was
  found on the tuning textures. `confidence` is how far the least residual is below the mean of all.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.options import Window
from d3s.optics.psf import disk_otf, gaussian_otf
from d3s.peers.common import Job, box_mean, kernel_reach_px
from d3s.peers.fourier import Plane, Single, Spectrum
from d3s.peers.hypotheses import Hypotheses, Winner, independent_samples
from d3s.peers.search import Found, SearchOptions, Views, searched, widest_blur_px
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image

# So that nothing is divided by nothing, at frequency zero or where both views are lost.
_LEAST_PRIOR = 1e-9
# At which a transfer is computed: enough for a thousandth of the widest one's first zero.
_RADII = 16_384


class Takeda2013Options(SearchOptions):
    """Choices for the fusion of stereo and defocus by deconvolution.

    Defaults by benchmarks/tune_peers.py.
    """

    # The larger the less noise: 31 px are a tenth worse on planes, 25 px a third.
    window_px: Window = Field(default=37, description="the side of the window of the costs, odd")
    # The Wiener filter leaves little for it to do: from 0.5 to 1.5 px all are alike.
    prefilter_sigma_px: float = Field(
        default=0.7, ge=0, le=10, description="the Gaussian that both views are smoothed with"
    )
    # The paper measures its point-spread functions; geometric optics says that ours are disks, and
    # so does the twin. Where they are not, a Gaussian is the safer guess: here its error is a
    # seventh larger at 2 m, and half as large again nearer than half a metre.
    psf: Literal["disk", "gaussian"] = Field(
        default="disk", description="the shape of a blurred point"
    )
    # At the noise of one percent 0.003 to 0.3 are alike; with 3 the error at 2 m is twice as large.
    noise_to_signal: float = Field(
        default=0.3,
        gt=0,
        le=1e6,
        description="the power of noise over that of the scene, at one cycle per pixel",
    )
    sigma_factor: float = Field(
        default=0.8, gt=0, le=100, description="what the predicted deviation is multiplied by"
    )
    # As fine as the steps are.
    consistency_px: float = Field(
        default=0.5, ge=-1, le=256, description="the most both ways may differ, -1 for no check"
    )
    # Leaves out windows that hold two surfaces: with 0.9 the error on scenes is half as large
    # again, at a thirtieth more of the pixels, and with 0.8 five times as large. 0.97 leaves out
    # what is near and faint.
    min_confidence: float = Field(
        default=0.95, ge=0, le=1, description="the confidence that a depth must reach"
    )


def estimate_takeda2013(
    left: Image, right: Image, rig: Rig, options: Takeda2013Options
) -> DepthMap:
    """Deconvolve both views with the blur and the disparity of each depth, and blur them again."""
    return searched(Job.start("takeda2013", left, right, rig, options), _search)


def _search(
    views: Views, tried: Hypotheses, optics: Optics, options: Takeda2013Options
) -> tuple[Found, float]:
    blur_px = widest_blur_px(optics, tried)
    margin_px = blur_px + kernel_reach_px(options.prefilter_sigma_px) + options.window_px // 2
    farthest_px = float(np.abs(tried.disparity_px).max())
    rows, cols = views[0].shape
    plane = Plane.around((rows, cols), margin_px, margin_px + farthest_px)
    winner = Winner((rows, cols))
    residuals = _residual_squares(plane, plane.spectra(views), tried, optics, options)
    for squares, shift_px in zip(residuals, tried.disparity_px, strict=True):
        winner.add(box_mean(squares, options.window_px), float(shift_px))
    return _found(winner, tried, options), blur_px


def _found(winner: Winner, tried: Hypotheses, options: Takeda2013Options) -> Found:
    minimum = winner.minimum
    samples = independent_samples(options.window_px, options.prefilter_sigma_px)
    disparity_px = tried.disparity_px[winner.index] + tried.step_px * minimum.offset
    return Found(
        disparity_px=disparity_px,
        sigma_px=minimum.sigma_px(tried.step_px, samples),
        confidence=winner.distinctness,
        disagreement_px=winner.disagreement_px(disparity_px),
    )


def _residual_squares(
    plane: Plane,
    spectra: tuple[Spectrum, Spectrum],
    tried: Hypotheses,
    optics: Optics,
    options: Takeda2013Options,
) -> Iterator[Single]:
    """Square of what the restored scene does not explain of both views, one depth at a time."""
    radius = plane.radius
    prefilter = gaussian_otf(radius, options.prefilter_sigma_px).astype(np.float32)
    prior = (options.noise_to_signal * radius**2 + _LEAST_PRIOR).astype(np.float32)
    left, right = (spectrum * prefilter for spectrum in spectra)
    # A transfer is round, and takes long to compute: once for each radius, not for each frequency.
    radii = np.linspace(0.0, float(radius.max()), _RADII)
    place = np.rint(radius * ((_RADII - 1) / radii[-1])).astype(np.int32)
    for shift_px in tried.disparity_px:
        depth_m = float(optics.depth_m(shift_px))
        first, second = (
            _transfer(radii, optics, depth_m, camera, options.psf)[place] for camera in (0, 1)
        )
        moved = right * plane.moved(shift_px)
        scene = (first * left + second * moved) / (first**2 + second**2 + prior)
        unexplained = plane.image(left - first * scene), plane.image(moved - second * scene)
        yield unexplained[0] ** 2 + unexplained[1] ** 2


def _transfer(
    frequency: FloatArray, optics: Optics, depth_m: float, camera: int, psf: str
) -> NDArray[np.float32]:
    if psf == "disk":
        transfer = disk_otf(frequency, optics.blur_radius_px(depth_m, camera))
    else:
        transfer = gaussian_otf(frequency, optics.blur_sigma_px(depth_m, camera))
    return transfer.astype(np.float32)
