"""Gaussian smoothing: its taps, and what it does to noise and to the energy of a window."""

from functools import cache
from typing import NamedTuple

import numpy as np

from d3s.types import FloatArray

# Standard deviations by which chance may raise a correlation: all shifts of the search are tries.
_CHANCE_SIGMAS = 4.0


class NoiseGains(NamedTuple):
    """Variances that filters give to white noise of variance one."""

    smoothed: float  # after smoothing
    laplacian: float  # of the Laplacian of the smoothed noise
    gradient: float  # of the horizontal derivative of the smoothed noise
    area_px: float  # pixels per independent sample of the smoothed noise


@cache
def noise_gains(sigma_px: float) -> NoiseGains:
    """Return what a Gaussian of `sigma_px` does to white noise, from its impulse response."""
    taps = gaussian_taps(sigma_px)
    reach = taps.size // 2 + 4
    line = np.pad(taps, 4)
    response = np.outer(line, line)
    gradient = np.zeros_like(response)
    gradient[:, 2:-2] = (
        8 * (response[:, 3:-1] - response[:, 1:-3]) - (response[:, 4:] - response[:, :-4])
    ) / 12
    laplacian = np.zeros_like(response)
    laplacian[1:-1, 1:-1] = (
        response[2:, 1:-1]
        + response[:-2, 1:-1]
        + response[1:-1, 2:]
        + response[1:-1, :-2]
        - 4 * response[1:-1, 1:-1]
    )
    size = 4 * reach + 1
    power = np.abs(np.fft.fft2(response, s=(size, size))) ** 2
    variance = float(power.mean())
    return NoiseGains(
        smoothed=variance,
        laplacian=float(np.square(laplacian).sum()),
        gradient=float(np.square(gradient).sum()),
        area_px=float(np.square(power).mean()) / variance**2,
    )


def gaussian_taps(sigma_px: float) -> FloatArray:
    """Return Gaussian taps of unit sum, cut at 4.5 sigma, where float32 rounds them away.

    Sigma 0 gives one tap.
    """
    reach = int(np.ceil(4.5 * sigma_px))
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / max(sigma_px, 1e-9)) ** 2)
    return np.asarray(bell / bell.sum())


def cell_taps(sigma_px: float, cell_side: int) -> tuple[float, ...]:
    """Return taps that smooth the means of cells as a Gaussian smooths their pixels.

    For cells of one pixel these are the Gaussian's taps. For larger cells three taps are fitted to
    the Gaussian at the wavelength 2 pi sigma, the mean over the cell being part of the smoothing.
    """
    if cell_side == 1:
        return tuple(gaussian_taps(sigma_px).tolist())
    frequency = 1 / max(sigma_px, 0.3)
    box = np.sin(cell_side * frequency / 2) / (cell_side * np.sin(frequency / 2))
    gaussian = np.exp(-0.5 * (frequency * sigma_px) ** 2)
    side = 0.5 * (1 - gaussian / box) / (1 - np.cos(cell_side * frequency))
    if side > 0.25:
        return tuple(gaussian_taps(sigma_px / cell_side).tolist())
    side = max(float(side), 0.0)
    return (side, 1 - 2 * side, side)


@cache
def difference_gain(sigma_px: float, stride: int) -> float:
    """Return the variance of a difference of smoothed white noise of variance one.

    The two pixels are two strides apart, as those of a central difference in a view that was
    smoothed by `sigma_px` and shrunk by `stride`.
    """
    taps = gaussian_taps(sigma_px)
    apart = 2 * stride
    line = np.pad(taps, (0, apart)) - np.pad(taps, (apart, 0))
    return float((line**2).sum() * (taps**2).sum())


def energy_share(sigma_px: float, window_px: int) -> float:
    """Return the share of a smooth window's energy that is left after cutting and smoothing it.

    Along one axis the squares of a box of side n, smoothed by sigma, add up to
    n - 2 sigma / sqrt(pi).
    """
    return float(max(1 - 2 / np.sqrt(np.pi) * sigma_px / window_px, 0.3) ** 2)


def chance_correlation(samples: float) -> float:
    """Return the correlation that chance may give to so many independent samples (Fisher's z)."""
    return float(np.tanh(_CHANCE_SIGMAS / np.sqrt(max(samples - 3, 1))))
