"""What a fit at one scale needs to know, and what it gives; shared by both kinds of operations."""

from enum import IntEnum
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of the precision of the operations

TINY = 1e-30
# Mean square of the gradients of a window that holds nothing: views have a range of about one, of
# which this is the rounding. So has a window whose match is out of the frame.
FLAT = 1e-14
# How many of its own standard deviations chance may move a correlation, among all the shifts.
_CHANCE = 4.0
UNKNOWN_PX = 1e4  # standard deviation of a disparity there; finite, since it is interpolated


class Fitting(NamedTuple):
    """Numbers of a fit at one scale; lengths in pixels of it, windows in cells."""

    shape: tuple[int, int]  # of the views
    cell: int  # side of a cell
    halves: tuple[int, ...]  # half sides of the windows, increasing
    defocus: tuple[float, float]  # half the blur-variance difference, a line over the disparity
    reach: float  # how far from its start a disparity may go
    apart: float  # standard deviations between windows that are still of one surface
    unexplained: float  # share of the residual beyond noise that acts like noise
    bend: float  # share of a bend of the surface that is an error of its disparity,
    bend_noise: float  # and what noise may make of its square, over the mean of the variances
    smoothed_gain: float  # what white noise of variance one becomes in the views,
    laplacian_gain: float  # in their Laplacians,
    gradient_gain: float  # and in their derivatives
    area: float  # pixels to one independent sample of the noise
    taps: tuple[float, ...]  # smooths the mean of cells as the views were
    share_inside: tuple[float, ...]  # for each window, what it keeps of smoothed energy
    chance: tuple[float, ...]  # for each window, the correlation that chance may have made


class Plane(IntEnum):
    """Sums over the pixels of each cell, one plane each."""

    G = 0  # gradient of the residual to the disparity
    H = 1  # g times the disparity that the residual was taken at, less the residual
    GG = 2
    GH = 3
    E = 4  # residual: left less right, blurred alike
    EE = 5
    SS = 6  # squares of the part of the gradient that the shift makes
    M = 7  # mean of both views
    MM = 8
    U = 9  # gradient, smoothed once more
    UU = 10


class Fit(NamedTuple):
    """What is known of each cell; lengths in pixels of the scale."""

    disparity: Array
    sigma: Array
    correlation: Array  # of both views in the window, beyond what chance may have made, 0 to 1
    misfit: Array  # of the close surroundings, over what noise and lenses explain
    down: Array  # from the cell to where the texture of its window has its centre, in cells
    across: Array
    used: NDArray[np.uint8]  # which of the windows


class Refined(NamedTuple):
    """What is known of each cell of the frame; lengths in pixels of it."""

    disparity_px: Array
    sigma_px: Array
    bend_px: Array  # what a surface that is not flat may add to it
    correlation: Array
    misfit: Array
    flags: NDArray[np.uint16]  # of windows that leave the frame, or hold no intensity


class NoiseGains(NamedTuple):
    """What filters make of white noise of variance one."""

    smoothed: float  # variance after the smoothing
    laplacian: float  # variance of its Laplacian
    gradient: float  # variance of its derivative
    area_px: float  # pixels to one independent sample


@cache
def noise_gains(smoothing_px: float) -> NoiseGains:
    """Noise after a Gaussian, by what it makes of one bright pixel."""
    bell = gaussian_taps(smoothing_px)
    reach = bell.size // 2 + 4
    line = np.pad(bell, 4)
    dot = np.outer(line, line)
    across = np.zeros_like(dot)
    across[:, 2:-2] = (8 * (dot[:, 3:-1] - dot[:, 1:-3]) - (dot[:, 4:] - dot[:, :-4])) / 12
    bend = np.zeros_like(dot)
    bend[1:-1, 1:-1] = (
        dot[2:, 1:-1] + dot[:-2, 1:-1] + dot[1:-1, 2:] + dot[1:-1, :-2] - 4 * dot[1:-1, 1:-1]
    )
    size = 4 * reach + 1
    power = np.abs(np.fft.fft2(dot, s=(size, size))) ** 2
    variance = float(power.mean())
    return NoiseGains(
        smoothed=variance,
        laplacian=float(np.square(bend).sum()),
        gradient=float(np.square(across).sum()),
        area_px=float(np.square(power).mean()) / variance**2,
    )


def gaussian_taps(sigma_px: float) -> NDArray[np.float64]:
    """Gaussian of unit sum, cut where a float of 24 bits would not see it; sigma 0 is one tap."""
    reach = int(np.ceil(4.5 * sigma_px))
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / max(sigma_px, 1e-9)) ** 2)
    return np.asarray(bell / bell.sum())


def cell_taps(smoothing_px: float, cell: int) -> tuple[float, ...]:
    """Taps that smooth the means of cells as a Gaussian would their pixels.

    Of cells of one pixel the Gaussian itself; of others three taps that agree with it at the
    wavelength of 2 pi sigma, the mean over the cell being part of the smoothing.
    """
    if cell == 1:
        return tuple(gaussian_taps(smoothing_px).tolist())
    wave = 1 / max(smoothing_px, 0.3)
    box = np.sin(cell * wave / 2) / (cell * np.sin(wave / 2))
    side = 0.5 * (1 - np.exp(-0.5 * (wave * smoothing_px) ** 2) / box) / (1 - np.cos(cell * wave))
    if side > 0.25:
        return tuple(gaussian_taps(smoothing_px / cell).tolist())
    side = max(float(side), 0.0)
    return (side, 1 - 2 * side, side)


def share_inside(smoothing_px: float, side_px: int) -> float:
    """Share of the energy of a smooth window that stays when it is cut out and smoothed.

    Along one axis a box of side n, smoothed by sigma, has squares that add up to
    n - 2 sigma / sqrt(pi).
    """
    return float(max(1 - 2 / np.sqrt(np.pi) * smoothing_px / side_px, 0.3) ** 2)


def chance(samples: float) -> float:
    """Correlation that chance may make of so many independent samples (by Fisher's z)."""
    return float(np.tanh(_CHANCE / np.sqrt(max(samples - 3, 1))))


@lru_cache(maxsize=256)
def window_pixels(size: int, cell: int, halves: tuple[int, ...]) -> NDArray[np.float32]:
    """How many pixels along an axis the windows of each cell have inside the frame."""
    place = np.arange(-(-size // cell))
    half = np.array(halves)[:, np.newaxis]
    first, last = (place - half) * cell, (place + half + 1) * cell
    return np.asarray(np.minimum(last, size) - np.maximum(first, 0), dtype=np.float32)
