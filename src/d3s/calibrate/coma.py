"""Shift of detail by coma: blurred spots with coma are skewed, and shift waves unlike light.

Light through the point p of the unit pupil lands at M p + q: M is the tensor of the blur radii, and
coma of the size b adds q = 2 (b · p) p + b p², whose mean is b. So a wave k is multiplied by
F(z) - i k·n: z is the length of M k, F is the transfer function 2 J1(z) / z of an even spot, and n
is the mean of q cos(p · M k). Two pictures with unlike blur are matched by a shift that depends on
their texture. For blur wider than the detail it is up to a pixel.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from d3s.calibrate.matches import Matches, PairMatches
from d3s.calibrate.registration import smoothing_px
from d3s.rig import LensMaps, Optics
from d3s.types import FloatArray

_RADII, _ANGLES = 14, 12  # frequencies that integrals over the spectrum are computed at
_HIGHEST = 2.4  # frequency times smoothing, beyond which pictures have no contrast
_MOST_BLUR = 120.0  # frequency times blur radius up to which transfer functions are tabulated
_TABLE_STEPS = 40  # per unit
_MOST_SHIFT = 1.5  # of detail against that of the light, over the latter
_STRIDE = 5  # one pair of so many decides on the spectrum
_SLOPES = np.linspace(-0.5, 2.0, 26)  # of spectra: contrast falls with this power of the frequency


class Spectrum(NamedTuple):
    """Frequencies (n, 2) in radians per pixel and the power of the texture there, (n,)."""

    frequency: FloatArray
    power: FloatArray
    slope: float  # contrast falls with this power of the frequency


class _View(NamedTuple):
    """Transfer functions of windows at the frequencies of a spectrum."""

    even: FloatArray  # (windows, frequencies): F
    skew: FloatArray  # (windows, frequencies): k·n for coma of the given size


def spectrum(slope: float, smoothing_px: float) -> Spectrum:
    """Spectrum of a texture whose contrast falls with a power of the frequency, smoothed.

    Parameters
    ----------
    slope
        The power: 0 is white noise, 1 is like most photographs.
    smoothing_px
        Standard deviation of the smoothing of the pictures.
    """
    node, weight = np.polynomial.legendre.leggauss(_RADII)
    radius = 0.5 * _HIGHEST / smoothing_px * (node + 1)
    angle = np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
    frequency = radius[:, np.newaxis, np.newaxis] * np.stack([np.cos(angle), np.sin(angle)], 1)
    # Nodes of the radius stand for an area in proportion to the radius.
    power = weight * radius ** (1 - 2 * slope) * np.exp(-((radius * smoothing_px) ** 2))
    return Spectrum(frequency.reshape(-1, 2), np.repeat(power, _ANGLES), slope)


@lru_cache(maxsize=1)
def _tables() -> FloatArray:
    """F, -F' / z and -F'' (3, steps) over z, of the even disk F = 2 J1(z) / z."""
    from scipy.special import j1, jv

    z = np.arange(int(_MOST_BLUR * _TABLE_STEPS) + 1) / _TABLE_STEPS
    z[0] = 1e-4
    even = 2 * j1(z) / z
    # F' = -2 J2(z) / z.
    per_z = 2 * jv(2, z) / z**2
    second = 2 * (j1(z) / z - 3 * jv(2, z) / z**2)
    return np.stack([even, per_z, second])


def _view(blur_px: FloatArray, coma_px: FloatArray, waves: Spectrum) -> _View:
    """Transfer functions of windows with blur tensors (3, windows) and coma (2, windows)."""
    along, mixed, down = blur_px[..., np.newaxis]
    x, y = waves.frequency.T
    across, below = along * x + mixed * y, mixed * x + down * y
    size = np.hypot(across, below)
    place = np.minimum(size * _TABLE_STEPS, _tables().shape[1] - 2)
    step = place.astype(np.int64)
    share = place - step
    even, sideways, lengthwise = (
        table[step] + share * (table[step + 1] - table[step]) for table in _tables()
    )
    coma_x, coma_y = coma_px[..., np.newaxis]
    along_k = coma_x * x + coma_y * y
    # Parts of coma and of the frequency along the direction of M k.
    unit = np.maximum(size, 1e-12)
    product = (coma_x * across + coma_y * below) * (x * across + y * below) / unit**2
    both = lengthwise - sideways
    skew = 2 * (sideways * along_k + both * product) + along_k * (sideways + lengthwise)
    return _View(even, skew)


class DetailShift(NamedTuple):
    """Shift of the windows of a pair of pictures, (windows, 2) in pixels."""

    first_px: FloatArray
    second_px: FloatArray


def detail_shift(
    blurs_px: tuple[FloatArray, FloatArray],
    comas_px: tuple[FloatArray, FloatArray],
    waves: Spectrum,
) -> DetailShift:
    """Shift of the windows of two pictures that a match of them finds.

    Parameters
    ----------
    blurs_px
        Tensors of the blur radii (3, windows) of both pictures: along x, mixed, along y.
    comas_px
        Coma (2, windows) of both pictures along x and y, as shift of the light.
    waves
        Spectrum of the texture.
    """
    first, second = (
        _view(blur, coma, waves) for blur, coma in zip(blurs_px, comas_px, strict=True)
    )
    common = waves.power * first.even * second.even
    x, y = waves.frequency.T
    normal = np.stack([common @ (x * x), common @ (x * y), common @ (x * y), common @ (y * y)], -1)
    inverse = np.linalg.inv(normal.reshape(-1, 2, 2))

    def solved(weights: FloatArray) -> FloatArray:
        right = (waves.power * weights) @ waves.frequency
        return np.asarray(np.einsum("nij,nj->ni", inverse, right))

    def limited(shift: FloatArray, coma_px: FloatArray) -> FloatArray:
        # In blur much wider than the detail, the contrast of the two pictures may be opposite.
        most = _MOST_SHIFT * np.hypot(*coma_px)[:, np.newaxis]
        return np.asarray(coma_px.T + np.clip(shift - coma_px.T, -most, most))

    return DetailShift(
        limited(solved(first.skew * second.even), comas_px[0]),
        limited(solved(second.skew * first.even), comas_px[1]),
    )


def expected_square_frequency(
    blurs_px: tuple[FloatArray, FloatArray], waves: Spectrum
) -> FloatArray:
    """Mean square frequency (windows,) that a match of two blurred pictures weights.

    Parameters
    ----------
    blurs_px
        Tensors of the blur radii (3, windows) of both pictures.
    waves
        Spectrum of the texture.
    """
    return _mean_square_frequency(_common_contrast(blurs_px, waves), waves)


def _common_contrast(blurs_px: tuple[FloatArray, FloatArray], waves: Spectrum) -> FloatArray:
    """Product of the contrast (windows, frequencies) that two even spots leave."""
    none = np.zeros((2, 1))
    first, second = (_view(blur, none, waves).even for blur in blurs_px)
    return np.asarray(first * second)


def _mean_square_frequency(contrast: FloatArray, waves: Spectrum) -> FloatArray:
    square = (waves.frequency**2).sum(axis=1)
    power = waves.power * square
    return np.asarray((contrast @ (power * square)) / (contrast @ power))


def with_detail_shift(
    matches: Matches,
    lenses: LensMaps,
    optics: Optics,
    centres_px: tuple[FloatArray, FloatArray],
    depths_m: FloatArray,
) -> tuple[Matches, Spectrum]:
    """Matches with the shift of each window by coma of one pixel at the field radius.

    Parameters
    ----------
    matches
        Places on the board.
    lenses, optics
        Focus over the field.
    centres_px
        (x, y) of the axes of both lenses in the raw frame.
    depths_m
        Depth of the board in each frame; NaN where unknown.

    Returns
    -------
    tuple
        The matches, and the spectrum of the board.
    """
    radius_px = lenses.field_radius_px
    smoothing = smoothing_px(2 * radius_px)

    def window(places_px: FloatArray, camera: int, frame: int) -> tuple[FloatArray, FloatArray]:
        x, y = ((places_px - centres_px[camera]) / radius_px).T
        vergence = 1 / depths_m[frame] if np.isfinite(depths_m[frame]) else 0.0
        return lenses.blur_radii_px(camera, x, y, vergence, optics), np.stack([x, y])

    def windows(pair: PairMatches, cameras: tuple[int, int]) -> tuple[FloatArray, ...]:
        first = window(pair.first_px, cameras[0], pair.first)
        second = window(pair.second_px, cameras[1], pair.second)
        return first[0], second[0], first[1], second[1]

    waves = _fitting_spectrum([(pair, windows(pair, (0, 0))) for pair in matches.left], smoothing)

    def changed(pair: PairMatches, cameras: tuple[int, int]) -> PairMatches:
        one, other, first_coma, second_coma = windows(pair, cameras)
        found = detail_shift((one, other), (first_coma, second_coma), waves)
        return pair._replace(
            # The shift of the light itself is part of the magnification.
            skew_first_px=found.first_px - first_coma.T,
            skew_second_px=found.second_px - second_coma.T,
        )

    return matches.changed(changed), waves


def without_coma(matches: Matches, coma_px: float) -> Matches:
    """Matches without the shift of detail by coma of this size at the field radius.

    Parameters
    ----------
    matches
        Places on the board, from `with_detail_shift`.
    coma_px
        Shift of the light at the field radius, alike in two lenses of a kind.
    """

    def changed(pair: PairMatches, _cameras: tuple[int, int]) -> PairMatches:
        if pair.skew_first_px is None or pair.skew_second_px is None:
            return pair
        return pair._replace(
            first_px=pair.first_px - coma_px * pair.skew_first_px,
            second_px=pair.second_px - coma_px * pair.skew_second_px,
            skew_first_px=None,
            skew_second_px=None,
        )

    return matches.changed(changed)


def _fitting_spectrum(
    pairs: list[tuple[PairMatches, tuple[FloatArray, ...]]], smoothing_px: float
) -> Spectrum:
    """Spectrum with the slope that agrees best with the detail of the windows."""
    trials = [spectrum(float(slope), smoothing_px) for slope in _SLOPES]
    # Spectra differ by their power; the frequencies and what blur leaves of them are the same.
    detail = np.concatenate([pair.detail_per_px2 for pair, _ in pairs[::_STRIDE]])
    left = np.concatenate(
        [_common_contrast((one, other), trials[0]) for _, (one, other, *_) in pairs[::_STRIDE]]
    )
    best, least = spectrum(1.0, smoothing_px), np.inf
    for waves in trials:
        ratios = detail / _mean_square_frequency(left, waves)
        known = np.abs(np.log(ratios[ratios > 0]))
        if known.size and float(np.median(known)) < least:
            best, least = waves, float(np.median(known))
    return best
