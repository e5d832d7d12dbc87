"""Point-spread functions: how light of a point out of focus spreads, and behind lenses with errors.

A PSF is a function from frequencies in cycles/px, a signed blur radius in px and the lens to the
transfer function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.lab.twin.geometry import ScenePart
from d3s.optics.lens import Lens
from d3s.optics.psf import diffraction_otf, disk_otf, gaussian_otf
from d3s.optics.wavefront import (
    Aberrations,
    diffraction_transfer,
    half_pixels_to_pixels,
    pupil_points,
    ray_shift_px,
    reach_px,
)
from d3s.runtime.compile import compiled
from d3s.types import FloatArray, Image

_Complex = NDArray[np.complex64]

Psf = Callable[[FloatArray, float, Lens], FloatArray]
"""Transfer function at frequencies in cycles/px, for a signed blur radius in px behind a lens.

Edges of objects and aberrations of a PSF of your own are those of an evenly lit opening.
"""
PsfName = Literal["disk", "gaussian", "diffraction"]


def disk(frequency: FloatArray, radius_px: float, lens: Lens) -> FloatArray:
    """Geometric optics of an evenly lit opening."""
    return disk_otf(frequency, radius_px)


def gaussian(frequency: FloatArray, radius_px: float, lens: Lens) -> FloatArray:
    """Model of the depth equations."""
    return gaussian_otf(frequency, lens.aperture_gaussian_width * radius_px)


@dataclass(frozen=True)
class Diffraction:
    """Perfect lens in light of one wavelength."""

    wavelength_m: float

    def __call__(self, frequency: FloatArray, radius_px: float, lens: Lens) -> FloatArray:
        """Transfer function of wave optics."""
        return diffraction_otf(frequency, radius_px, lens, self.wavelength_m)


class _NamedPsf(ScenePart):
    """PSF by name, and the light for which it is computed."""

    psf: PsfName = Field(description="the shape of a blurred point")
    wavelength_m: float = Field(gt=1e-7, lt=2e-5, description="the wavelength of the light")


def psf_of(psf: PsfName | Psf, wavelength_m: float) -> Psf:
    """PSF as given, or of its name; a SceneError for another name or no wavelength."""
    name = "disk" if callable(psf) else psf
    known = _NamedPsf(psf=name, wavelength_m=wavelength_m)
    if callable(psf):
        return psf
    if known.psf == "diffraction":
        return Diffraction(known.wavelength_m)
    return gaussian if known.psf == "gaussian" else disk


def gaussian_width(psf: Psf, lens: Lens) -> float | None:
    """Sigma of the light over a Gaussian opening, over its radius; None if it is lit evenly."""
    return lens.aperture_gaussian_width if psf is gaussian else None


# Table of the transfer function of a spot over blur radius times frequency. Linear interpolation
# has an error below 1e-5.
_TABLE_STEPS = 512
_TABLE_CYCLES = 96

# Points of the pupil per square pixel of its spot, and their smallest and largest number.
_POINTS_PER_PX2 = 3.0
_FEWEST_POINTS, _MOST_POINTS = 600, 20_000

# Spreading kernel of a point, exp(beta (sqrt(1 - z²) - 1)), over this many half pixels. Its own
# transfer function is divided out; what it aliases is below 1e-4.
_SPREAD = 6
_SPREAD_BETA = 2.3 * _SPREAD
_SPREAD_PHASES = 1024


def transfer(shape: tuple[int, int], aberrations: Aberrations, lens: Lens, psf: Psf) -> _Complex:
    """Transfer function of a spot at the frequencies of `rfft2`, (rows, cols // 2 + 1).

    `shape` has even numbers of rows and columns.
    """
    if isinstance(psf, Diffraction):
        return diffraction_transfer(shape, aberrations, lens, psf.wavelength_m)
    if aberrations.is_defocus:
        return _ellipse_transfer(shape, aberrations, _profile(psf, lens))
    return _ray_transfer(shape, aberrations, lens, gaussian_width(psf, lens))


@lru_cache(maxsize=4)
def _profile(psf: Psf, lens: Lens) -> FloatArray:
    """Transfer function over blur radius times frequency."""
    return psf(np.arange(_TABLE_CYCLES * _TABLE_STEPS + 2) / _TABLE_STEPS, 1.0, lens)


def _ellipse_transfer(
    shape: tuple[int, int], aberrations: Aberrations, profile: FloatArray
) -> _Complex:
    out = np.empty((shape[0], shape[1] // 2 + 1), dtype=np.complex64)
    along, mixed, down = aberrations.blur_px
    x, y = aberrations.shift
    # Light lands at -M (u + shift).
    move = (-(along * x + mixed * y), -(mixed * x + down * y))
    blur = np.array([along, mixed, down])
    y_cycles: FloatArray = np.fft.fftfreq(shape[0]).astype(np.float64)
    x_cycles: FloatArray = np.fft.rfftfreq(shape[1]).astype(np.float64)
    _fill_ellipse(y_cycles, x_cycles, blur, np.array(move), profile, out)
    return out


@compiled
def _fill_ellipse(
    frequency_y: FloatArray,
    frequency_x: FloatArray,
    blur: FloatArray,
    move: FloatArray,
    profile: FloatArray,
    out: _Complex,
) -> None:
    is_moved = move[0] != 0 or move[1] != 0
    last = profile.size - 2
    for i in range(out.shape[0]):
        fy = frequency_y[i]
        for j in range(out.shape[1]):
            fx = frequency_x[j]
            a, b = blur[0] * fx + blur[1] * fy, blur[1] * fx + blur[2] * fy
            place = _TABLE_STEPS * np.sqrt(a * a + b * b)
            step = min(int(place), last)
            share = min(place - step, 1.0)
            value = profile[step] + (profile[step + 1] - profile[step]) * share
            if is_moved:
                out[i, j] = value * np.exp(-2j * np.pi * (fx * move[0] + fy * move[1]))
            else:
                out[i, j] = value


def _ray_transfer(
    shape: tuple[int, int], aberrations: Aberrations, lens: Lens, width: float | None
) -> _Complex:
    """Transfer function of rays through many points of the pupil, by a non-uniform FFT."""
    from scipy import fft

    area = np.pi * reach_px(aberrations, lens) ** 2
    count = float(np.clip(_POINTS_PER_PX2 * area, _FEWEST_POINTS, _MOST_POINTS))
    x, y = _points(int(1.2 ** np.ceil(np.log(count) / np.log(1.2))), width)
    if aberrations.is_clipped:
        # A Gaussian pupil has no rim: twice its width stands for it.
        rim = 1.0 if width is None else 2 * width
        clip_x, clip_y = aberrations.clip
        free = (rim * aberrations.clip_radius) ** 2
        kept = (x - rim * clip_x) ** 2 + (y - rim * clip_y) ** 2 <= free
        x, y = x[kept], y[kept]
    points = np.stack([x + aberrations.shift[0], y + aberrations.shift[1]])
    places = 2 * ray_shift_px(points, aberrations, lens)
    # Half pixels of the spot only: rows above and below it have no light.
    half = min(int(np.abs(places[1]).max()) + _SPREAD + 2, shape[0])
    light = np.zeros((2 * half, 2 * shape[1]), dtype=np.float32)
    _spread_points(places[0], places[1], _spread_table(), light)
    lines = fft.rfft(light, axis=1, overwrite_x=True)[:, : shape[1] // 2 + 1]
    columns = np.zeros((2 * shape[0], lines.shape[1]), dtype=np.complex64)
    columns[:half], columns[-half:] = lines[half:], lines[:half]
    spectrum = half_pixels_to_pixels(fft.fft(columns, axis=0, overwrite_x=True))
    spectrum *= _undo_spread(shape) / spectrum[0, 0].real
    return spectrum


@lru_cache(maxsize=16)
def _points(count: int, gaussian_width: float | None) -> FloatArray:
    points = pupil_points(count, gaussian_width)
    points.flags.writeable = False
    return points


@lru_cache(maxsize=1)
def _spread_table() -> Image:
    """Weights (phases + 1, taps) of the half pixels around a point, the first at or before it."""
    phase = np.arange(_SPREAD_PHASES + 1)[:, np.newaxis] / _SPREAD_PHASES
    return _spread(np.arange(_SPREAD) - (_SPREAD // 2 - 1) - phase).astype(np.float32)


def _spread(offset: FloatArray) -> FloatArray:
    inside = np.clip(1 - (2 * offset / _SPREAD) ** 2, 0.0, None)
    return np.where(inside > 0, np.exp(_SPREAD_BETA * (np.sqrt(inside) - 1)), 0.0)


@lru_cache(maxsize=64)
def _undo_spread(shape: tuple[int, int]) -> Image:
    """Inverse of the transfer function of the spreading kernel, 1 at frequency 0.

    Columns are counted from the middle of the image, which gives odd frequencies another sign.
    """
    node, weight = np.polynomial.legendre.leggauss(48)
    offset = 0.5 * _SPREAD * node
    parts = []
    for cycles in (np.fft.fftfreq(shape[0]), np.fft.rfftfreq(shape[1])):
        waves = np.cos(np.pi * cycles[:, np.newaxis] * offset)  # offsets are in half pixels
        share = waves @ (weight * _spread(offset))
        parts.append(share[0] / share)
    turned = np.where(np.arange(parts[1].size) % 2, -1.0, 1.0)
    return np.outer(parts[0], parts[1] * turned).astype(np.float32)


@compiled
def _spread_points(x: FloatArray, y: FloatArray, table: Image, out: Image) -> None:
    """Add each point, at (x, y) from the middle of the image, to the pixels around it."""
    rows, cols = out.shape
    before = _SPREAD // 2 - 1
    for n in range(x.size):
        a, b = x[n] + cols // 2, y[n] + rows // 2
        if not (before <= a < cols - _SPREAD and before <= b < rows - _SPREAD):
            continue  # the last light of a Gaussian pupil
        col, row = int(a), int(b)
        across = int((a - col) * _SPREAD_PHASES + 0.5)
        down = int((b - row) * _SPREAD_PHASES + 0.5)
        for i in range(_SPREAD):
            weight = table[down, i]
            for j in range(_SPREAD):
                out[row - before + i, col - before + j] += weight * table[across, j]
