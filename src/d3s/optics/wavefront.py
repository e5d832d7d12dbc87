"""Transfer functions of a lens with aberrations, by geometric and by wave optics.

The wavefront error over the pupil, at points u from the axis in units of the aperture radius, is

    W(u) = (A p / 2 s0) u·M u + spherical |u|⁴ + |u|² coma·u.

M is the tensor of signed blur radii along x and y, in pixels: defocus, field curvature and
astigmatism. Light through u meets the sensor at -(s0 / A p) grad W from the image of a perfect
lens, in pixels: -M u for defocus. Transfer functions are given on the frequencies of
`scipy.fft.rfft2`; they are 1 at frequency 0. Light that a clipped pupil loses is not in them: see
`overlap_share`.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s.optics.lens import Lens
from d3s.types import FloatArray

Complex = NDArray[np.complex64]

_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Aberrations:
    """Wavefront and pupil of a lens in one direction and at one depth.

    Parameters
    ----------
    blur_px
        Signed blur radii, tensor of 3: along x, mixed, along y.
    spherical_m
        Spherical aberration at the rim of the pupil, in metres.
    coma_m
        Coma along x and y at the rim of the pupil, in metres.
    shift
        Offset (x, y) of the aperture over its radius.
    clip
        Offset (x, y) over the aperture radius of a second round opening, which clips the pupil.
    clip_radius
        Radius of the second opening over that of the aperture, at least 1.
    """

    blur_px: tuple[float, float, float]
    spherical_m: float = 0.0
    coma_m: tuple[float, float] = (0.0, 0.0)
    shift: tuple[float, float] = (0.0, 0.0)
    clip: tuple[float, float] = (0.0, 0.0)
    clip_radius: float = 1.0

    @property
    def is_defocus(self) -> bool:
        """Whether the spot is an ellipse of even light, around a place of its own."""
        return not (self.spherical_m or any(self.coma_m) or self.is_clipped)

    @property
    def is_clipped(self) -> bool:
        """Whether the second opening cuts some light off."""
        return math.hypot(*self.clip) > self.clip_radius - 1


def pixels_per_slope(lens: Lens) -> float:
    """Shift on the sensor per wavefront slope over the unit pupil, s0 / (A p), in px per metre."""
    return lens.reference_distance_m / (lens.aperture_radius_m * lens.pixel_pitch_m)


def ray_shift_px(points: FloatArray, aberrations: Aberrations, lens: Lens) -> FloatArray:
    """Place (2, ...) at which light through points of the pupil meets the sensor, in pixels.

    Parameters
    ----------
    points
        (2, ...) points x, y of the pupil over the aperture radius, from the axis of the lens.
    aberrations
        Wavefront error.
    lens
        Lens.
    """
    x, y = points
    square = x**2 + y**2
    along, mixed, down = aberrations.blur_px
    coma_x, coma_y = aberrations.coma_m
    lean = 2 * (coma_x * x + coma_y * y) + 4 * aberrations.spherical_m * square
    slope = pixels_per_slope(lens)
    return -np.stack(
        [
            along * x + mixed * y + slope * (lean * x + coma_x * square),
            mixed * x + down * y + slope * (lean * y + coma_y * square),
        ]
    )


def wavefront_m(points: FloatArray, aberrations: Aberrations, lens: Lens) -> FloatArray:
    """Wavefront error at points of the pupil, in metres.

    Parameters
    ----------
    points
        (2, ...) points x, y of the pupil over the aperture radius, from the axis of the lens.
    aberrations
        Wavefront error.
    lens
        Lens.
    """
    x, y = points
    square = x**2 + y**2
    along, mixed, down = aberrations.blur_px
    coma_x, coma_y = aberrations.coma_m
    defocus = 0.5 * (along * x**2 + 2 * mixed * x * y + down * y**2) / pixels_per_slope(lens)
    return np.asarray(
        defocus + square * (aberrations.spherical_m * square + coma_x * x + coma_y * y)
    )


def overlap_share(apart: ArrayLike, radius: float = 1.0) -> FloatArray:
    """Share of a round opening that a second round opening leaves free.

    `apart` is the distance of their centres, `radius` the radius of the second opening, at least
    1; both are over the radius of the first.
    """
    distance = np.clip(np.abs(np.asarray(apart, dtype=np.float64)), radius - 1, radius + 1)
    distance = np.maximum(distance, 1e-12)
    # Two segments of a circle, on either side of the chord that the circles have in common.
    first = (distance**2 + 1 - radius**2) / (2 * distance)
    second = distance - first
    area = np.arccos(np.clip(first, -1, 1)) - first * np.sqrt(np.maximum(1 - first**2, 0))
    area = area + radius**2 * np.arccos(np.clip(second / radius, -1, 1))
    area = area - second * np.sqrt(np.maximum(radius**2 - second**2, 0))
    return np.asarray(np.clip(area / np.pi, 0.0, 1.0))


@lru_cache(maxsize=64)
def clip_distance(share: float, radius: float = 1.0) -> float:
    """Distance of two round openings over the radius of the first, of which `share` is cut off.

    `radius` is the radius of the second opening over that of the first, at least 1. 0 for a share
    of 0.
    """
    if share == 0:
        return 0.0
    low, high = radius - 1, radius + 1
    for _ in range(60):
        middle = 0.5 * (low + high)
        is_beyond = 1 - overlap_share(middle, radius) >= share
        low, high = (low, middle) if is_beyond else (middle, high)
    return 0.5 * (low + high)


def reach_px(aberrations: Aberrations, lens: Lens) -> float:
    """Upper limit of the distance from the image of a perfect lens to any light of a point."""
    along, mixed, down = aberrations.blur_px
    radius = 0.5 * abs(along + down) + float(np.hypot(0.5 * (along - down), mixed))
    rim = 1 + float(np.hypot(*aberrations.shift))
    waves = 4 * abs(aberrations.spherical_m) * rim**3
    waves += 3 * float(np.hypot(*aberrations.coma_m)) * rim**2
    if not waves:
        return radius * rim
    return radius * rim + pixels_per_slope(lens) * waves


def pupil_points(count: int, gaussian_width: float | None = None) -> FloatArray:
    """Points (2, count) spread evenly over the unit pupil, on a spiral of the golden angle.

    Parameters
    ----------
    count
        Number of points.
    gaussian_width
        Standard deviation of a Gaussian pupil in place of the round one.
    """
    share = (np.arange(count) + 0.5) / count
    radius = np.sqrt(share)
    if gaussian_width is not None:
        radius = gaussian_width * np.sqrt(-2.0 * np.log1p(-share))
    angle = _GOLDEN_ANGLE * np.arange(count)
    points = radius * np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray(points - points.mean(axis=1, keepdims=True))


def diffraction_transfer(
    shape: tuple[int, int], aberrations: Aberrations, lens: Lens, wavelength_m: float
) -> Complex:
    """Transfer function of an aberrated pupil in light of one wavelength, (rows, cols // 2 + 1).

    The spot is the squared modulus of the Fourier transform of the pupil, computed on half pixels,
    which hold its highest frequencies.

    Parameters
    ----------
    shape
        Even numbers of rows and columns; the spot must be smaller.
    aberrations
        Wavefront error and pupil.
    lens
        Lens, with an aperture above 0.
    wavelength_m
        Wavelength of the light, in metres.
    """
    from scipy import fft

    # Frequency at the rim of the pupil, in cycles/px.
    rim = lens.aperture_radius_m * lens.pixel_pitch_m / (wavelength_m * lens.reference_distance_m)
    rows, cols = (_kept_frequencies(size, rim) for size in shape)
    x, y = np.meshgrid(cols[1] / rim, rows[1] / rim)
    edge = 1 / (rim * min(shape))  # one step of the grid, over which the rim fades
    light = _opening(x, y, edge)
    if aberrations.is_clipped:
        across, down = x - aberrations.clip[0], y - aberrations.clip[1]
        light = light * _opening(across, down, edge, aberrations.clip_radius)
    points = np.stack([x + aberrations.shift[0], y + aberrations.shift[1]])
    # Light comes to where the phase of the wave plus 2 pi f x is stationary: -slope.
    phase = 2j * np.pi / wavelength_m * wavefront_m(points, aberrations, lens)
    pupil = np.zeros((2 * shape[0], 2 * shape[1]), dtype=np.complex64)
    pupil[np.ix_(rows[0], cols[0])] = light * np.exp(phase)
    spot = np.abs(fft.ifft2(pupil, overwrite_x=True)) ** 2
    spectrum = half_pixels_to_pixels(fft.rfft2(spot)[:, : shape[1] // 2 + 1])
    spectrum *= pupil.size / light.sum()
    # The sum of squares misses some light of the rim, where the amplitude is a fraction.
    spectrum[0, 0] = 1.0
    return np.asarray(spectrum, dtype=np.complex64)


def half_pixels_to_pixels(spectrum: NDArray[Any]) -> NDArray[Any]:
    """Rows of a spectrum on half pixels that have the frequencies of whole pixels.

    Their number is even.
    """
    quarter = spectrum.shape[0] // 4
    return np.concatenate([spectrum[:quarter], spectrum[-quarter:]])


def _kept_frequencies(size: int, rim: float) -> tuple[NDArray[np.intp], FloatArray]:
    """Indices and values of the frequencies of 2 size half pixels that the pupil passes."""
    cycles = np.asarray(np.fft.fftfreq(2 * size, d=0.5), dtype=np.float64)
    kept = np.flatnonzero(np.abs(cycles) <= rim + 1 / size)
    return kept, np.asarray(cycles[kept])


def _opening(x: FloatArray, y: FloatArray, edge: float, radius: float = 1.0) -> FloatArray:
    """Disk whose rim fades over `edge`."""
    return np.clip((radius - np.hypot(x, y)) / edge + 0.5, 0.0, 1.0)
