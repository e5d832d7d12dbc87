"""Scale a and offset b of the depth equation (paper Eq. 17), computed from the optics of a camera.

The paper tunes a and b on boards at known depths, because finite differences over a residual
disparity of several pixels are no derivatives. What they make of a texture follows from its
spectrum, the blur of both lenses, the prefilter and the disparity that a virtual baseline leaves.
So a camera that was never calibrated gets a and b from a texture whose amplitudes fall as
1/frequency, as those of most do, without noise: that is taken from the denominator.
"""

from functools import lru_cache

import numpy as np

from d3s.estimate.candidates import default_depth_range_m
from d3s.optics.psf import disk_otf
from d3s.rig import Optics
from d3s.types import FloatArray

_SIDE_PX = 128  # of the patch whose frequencies are summed
_DEPTHS = 48
# Share of the farthest depth up to which a line is fitted: 2.25 m for the prototype. On tuning
# textures 0.8 has 0.57 cm for 0.49 at 1.9 m, and 1 has 0.36 for 0.30 at 1.5 m.
_REACH = 0.9
_ROUNDS = 100
# Errors below 0.01 mm have the same weight: the weight of an error of 0 would be infinite.
_SMALL_M = 1e-5


@lru_cache(maxsize=64)
def line_from_optics(
    optics: Optics, virtual_baseline_m: float, prefilter_px: float, local_mean_px: float
) -> tuple[float, float]:
    """Scale a, in m px, and offset b, in m, that suit a camera over its depth range.

    Parameters
    ----------
    optics
        Optics of the camera.
    virtual_baseline_m
        Baseline that the alignment leaves, in metres.
    prefilter_px, local_mean_px
        Standard deviations of the Gaussians of the prefilter and of the mean that is taken away.
    """
    nearest_m, farthest_m = default_depth_range_m(optics)
    depth_m = np.linspace(nearest_m, _REACH * farthest_m, _DEPTHS)
    frequency = np.fft.fftfreq(_SIDE_PX)
    across, square = (
        2 * np.pi * frequency,
        (2 * np.pi) ** 2 * (frequency**2 + frequency[:, None] ** 2),
    )
    filters = np.exp(-(prefilter_px**2) * square)
    if local_mean_px > 0:
        filters *= (1 - np.exp(-0.5 * local_mean_px**2 * square)) ** 2
    power = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0)
    power *= filters / power.sum()
    ratios = []
    for one_m in depth_m:
        left, right = (
            disk_otf(np.sqrt(square) / (2 * np.pi), abs(optics.blur_radius_px(one_m, camera)))
            for camera in (0, 1)
        )
        phase = across * optics.focal_length_px * virtual_baseline_m / one_m
        right *= np.sqrt(np.sum(power * left**2) / np.sum(power * right**2))  # of equal contrast
        product = np.sum(power * left * right * np.sin(across) * np.sin(phase))
        energy = np.sum(power * (left**2 + right**2 - 2 * left * right * np.cos(phase)))
        ratios.append(-product / energy)
    a, b = least_absolute_lines(np.array([ratios]), depth_m, np.ones(_DEPTHS))
    return float(a[0]), float(b[0])


@lru_cache(maxsize=16)
def blur_slopes(optics: Optics, prefilter_px: float) -> tuple[FloatArray, FloatArray]:
    """Inverse depths, increasing, and the slope of the views' difference over the Laplacian.

    For a camera without baseline. The slope is alpha (kappa - 1/Z) for detail that is coarse
    beside pixels and blur.

    Parameters
    ----------
    optics
        Optics of the camera.
    prefilter_px
        Standard deviation of the Gaussian of the prefilter.
    """
    vergence = 1 / np.array(default_depth_range_m(optics))[::-1]
    vergence = np.linspace(0.5 * vergence[0], 1.2 * vergence[1], 2 * _DEPTHS)
    frequency = np.fft.fftfreq(_SIDE_PX)
    radius = np.hypot(frequency, frequency[:, np.newaxis])
    bend = 2 * (2 - np.cos(2 * np.pi * frequency)[:, np.newaxis] - np.cos(2 * np.pi * frequency))
    power = np.exp(-((prefilter_px * 2 * np.pi * radius) ** 2))
    power = np.divide(power, radius**2, out=np.zeros_like(power), where=radius > 0)
    slopes = []
    for one_dpt in vergence:
        left, right = (
            disk_otf(radius, abs(optics.blur_radius_px(1 / one_dpt, camera))) for camera in (0, 1)
        )
        energy = np.sum(power * (bend * 0.5 * (left + right)) ** 2)
        slopes.append(-0.5 * np.sum(power * bend * (left**2 - right**2)) / energy)
    return vergence, np.array(slopes)


def least_absolute_lines(
    ratio_per_px: FloatArray, depth_m: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fit lines that minimise the weighted sum of |a ratio + b - depth| (paper Eq. S8).

    The method is iteratively reweighted least squares.

    One line is fitted to each row of the ratios (lines, points), by iteratively reweighted least
    squares; `weight` (points,) is that of the absolute errors. Returns a and b, (lines,) each.
    """
    weights = np.broadcast_to(weight, ratio_per_px.shape)
    a, b = np.full((2, len(ratio_per_px)), np.inf)
    for _ in range(_ROUNDS):
        before = a, b
        share = weights / weights.sum(axis=1, keepdims=True)
        mean = (share * ratio_per_px).sum(axis=1)
        mean_depth = share @ depth_m
        away = ratio_per_px - mean[:, np.newaxis]
        a = (share * away) @ depth_m / (share * away**2).sum(axis=1)
        b = mean_depth - a * mean
        if np.allclose(before, (a, b), rtol=1e-6, atol=1e-9):
            break
        error = a[:, np.newaxis] * ratio_per_px + b[:, np.newaxis] - depth_m
        weights = weight / np.maximum(np.abs(error), _SMALL_M)
    return a, b
