"""Coma of both lenses: blurred spots with coma are skewed, and shift waves unlike light.

Light through the point p of the unit pupil lands at M p + q: M is the tensor of the blur radii, and
coma of the size b adds q = 2 (b · p) p + b p², whose mean is b. So a wave k is multiplied by
F(z) - i k·n: z is the length of M k, F is the transfer function 2 J1(z) / z of an even spot, and n
is the mean of q cos(p · M k). Two pictures with unlike blur are matched by a shift that depends on
their texture. For blur wider than the detail it is up to a pixel.

Coma is found from the difference between coarse and fine detail. Pictures of a board are matched
twice, from frame to frame and from view to view: with all detail, and with coarse detail only.
Distortion, the shape and the depth of the board, and the mounting of the lenses move both alike, so
the difference is the work of coma. It is linear in the coma of the lenses, which is fitted to the
windows of all pairs.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.matches import Matches, PairMatches
from d3s.calibrate.registration import COARSER, smoothing_px
from d3s.calibrate.robust import PairEquations, solve_pairs
from d3s.rig import LensMaps, Optics
from d3s.types import FloatArray

_RADII, _ANGLES = 14, 12  # frequencies that integrals over the spectrum are computed at
_HIGHEST = 2.4  # frequency times smoothing, beyond which pictures have no contrast
_MOST_BLUR = 120.0  # frequency times blur radius up to which transfer functions are tabulated
_TABLE_STEPS = 40  # per unit
_MOST_SHIFT = 1.5  # of detail against that of the light, over the latter
_STRIDE = 5  # one pair of so many decides on the spectrum
_SLOPES = np.linspace(-0.5, 2.0, 26)  # of spectra: contrast falls with this power of the frequency


ComaNumbers = tuple[float, float, float]
"""Coma along x and y on the axis, and its growth per field radius, in pixels."""


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

    The power 0 is white noise, 1 is like most photographs; the smoothing of the pictures is a
    standard deviation.
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


def _view(blur_px: FloatArray, coma_px: FloatArray, frequency: FloatArray) -> _View:
    """Transfer functions of windows with blur tensors (3, windows) and coma (2, windows)."""
    along, mixed, down = blur_px[..., np.newaxis]
    x, y = frequency.T
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
    magnification: float = 1.0,
) -> DetailShift:
    """Shift of the windows of two pictures that a match of them finds.

    Blurs are tensors of the radii (3, windows): along x, mixed, along y; comas (2, windows) are
    shifts of the light along x and y. `waves` is the spectrum of the texture in the first picture.
    The magnification is the size of the texture in the second picture over that in the first: finer
    detail is shifted otherwise.
    """
    first = _view(blurs_px[0], comas_px[0], waves.frequency)
    second = _view(blurs_px[1], comas_px[1], waves.frequency / magnification)
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
        limited(magnification * solved(second.skew * first.even), comas_px[1]),
    )


def _common_contrast(blurs_px: tuple[FloatArray, FloatArray], waves: Spectrum) -> FloatArray:
    """Product of the contrast (windows, frequencies) that two even spots leave."""
    none = np.zeros((2, 1))
    first, second = (_view(blur, none, waves.frequency).even for blur in blurs_px)
    return np.asarray(first * second)


def _mean_square_frequency(contrast: FloatArray, waves: Spectrum) -> FloatArray:
    square = (waves.frequency**2).sum(axis=1)
    power = waves.power * square
    return np.asarray((contrast @ (power * square)) / (contrast @ power))


class BoardBlur(NamedTuple):
    """Blur of the board in all frames: lenses, axes, and where the board is."""

    lenses: LensMaps
    optics: Optics
    centres_px: tuple[FloatArray, FloatArray]  # (x, y) of the axes of both lenses in the raw frame
    depths_m: FloatArray  # (frames,): of the board on the axis; NaN where unknown
    board: Board

    def knows(self, pair: PairMatches) -> bool:
        """Whether the depths of both frames of a pair are known."""
        return bool(np.isfinite(self.depths_m[[pair.first, pair.second]]).all())

    def places(self, places_px: FloatArray, camera: int) -> FloatArray:
        """Places (2, windows) from the axis, in units of the field radius."""
        return np.asarray((places_px - self.centres_px[camera]).T / self.lenses.field_radius_px)

    def blurs_px(
        self, pair: PairMatches, cameras: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray]:
        """Tensors of the blur radii (3, windows) in both pictures of a pair."""
        first, second = (
            self._blur_px(places_px, camera, frame)
            for places_px, camera, frame in (
                (pair.first_px, cameras[0], pair.first),
                (pair.second_px, cameras[1], pair.second),
            )
        )
        return first, second

    def _blur_px(self, places_px: FloatArray, camera: int, frame: int) -> FloatArray:
        x, y = self.places(places_px, camera)
        tangent = self.lenses.field_radius_px / self.optics.focal_length_px
        depth_m = self.board.depth_along_m(tangent * x, tangent * y, self.depths_m[frame])
        return self.lenses.blur_radii_px(camera, x, y, 1 / depth_m, self.optics)


def magnification(pair: PairMatches) -> float:
    """Size of the second picture of a pair over that of the first."""
    first, second = (np.var(places, axis=0).sum() for places in (pair.first_px, pair.second_px))
    return float(np.sqrt(second / first))


def scaled(coma_px: ComaNumbers, share: float) -> ComaNumbers:
    """Coma of a share of this size."""
    x, y, growth = coma_px
    return share * x, share * y, share * growth


def without_coma(
    matches: Matches, comas_px: tuple[ComaNumbers, ComaNumbers], blur: BoardBlur, waves: Spectrum
) -> Matches:
    """Matches without the shift of detail by coma.

    Coma is along x and y on the axis, and its growth per field radius, as shift of the light.
    """

    def changed(pair: PairMatches, cameras: tuple[int, int]) -> PairMatches:
        if not blur.knows(pair):
            return pair
        first, second = (
            np.array(comas_px[camera][:2])[:, np.newaxis]
            + comas_px[camera][2] * blur.places(places_px, camera)
            for places_px, camera in zip((pair.first_px, pair.second_px), cameras, strict=True)
        )
        found = detail_shift(
            blur.blurs_px(pair, cameras), (first, second), waves, magnification(pair)
        )
        # The shift of the light itself is part of the magnification.
        return pair._replace(
            first_px=pair.first_px - found.first_px + first.T,
            second_px=pair.second_px - found.second_px + second.T,
        )

    return matches.changed(changed)


def board_spectrum(matches: Matches, blur: BoardBlur) -> Spectrum:
    """Spectrum of the board, smoothed as the pictures are that places were found in."""
    pairs = [(pair, blur.blurs_px(pair, (0, 0))) for pair in matches.left if blur.knows(pair)]
    return _fitting_spectrum(pairs, smoothing_px(2 * blur.lenses.field_radius_px))


def _fitting_spectrum(
    pairs: list[tuple[PairMatches, tuple[FloatArray, FloatArray]]], smoothing_px: float
) -> Spectrum:
    """Spectrum with the slope that agrees best with the detail of the windows."""
    if not pairs:
        return spectrum(1.0, smoothing_px)
    trials = [spectrum(float(slope), smoothing_px) for slope in _SLOPES]
    # Spectra differ by their power; the frequencies and what blur leaves of them are the same.
    detail = np.concatenate([pair.detail_per_px2 for pair, _ in pairs[::_STRIDE]])
    left = np.concatenate([_common_contrast(blurs, trials[0]) for _, blurs in pairs[::_STRIDE]])
    best, least = spectrum(1.0, smoothing_px), np.inf
    for waves in trials:
        ratios = detail / _mean_square_frequency(left, waves)
        known = np.abs(np.log(ratios[ratios > 0]))
        if known.size and float(np.median(known)) < least:
            best, least = waves, float(np.median(known))
    return best


_NONE = (0.0, 0.0, 0.0)
_UNKNOWNS = 6
_FEWEST_WINDOWS = 20  # of a pair
_MOST_SHIFT_PX = 3.0  # more is a wrong match
# Standard deviations of the prior, over the field radius: coma on the axis, and its growth.
_PRIOR = (0.3e-3, 0.3e-3, 2e-3)
# Share of coma that the model of the spots is wrong by: the spectrum of the board is not a power
# of the frequency, and spots are not even disks. From the tuning camera: 0.2 with and without
# curvature of the field.
_MODEL_ERROR = 0.25


class Coma(NamedTuple):
    """Coma of both lenses, and what its growth may be wrong by, in pixels."""

    left_px: ComaNumbers = _NONE
    right_px: ComaNumbers = _NONE
    sigma_px: float = 0.0  # of the growth
    board_slope: float = 1.0  # of the spectrum of the board

    @property
    def growth_px(self) -> float:
        """Coma at the field radius, mean of both lenses."""
        return 0.5 * (self.left_px[2] + self.right_px[2])


def find_coma(matches: Matches, blur: BoardBlur, waves: Spectrum) -> Coma:
    """Coma of both lenses that explains how coarse detail lies beside fine detail.

    There is none of it, with the standard deviation of the prior, if no pair can be used.
    """
    radius_px = blur.lenses.field_radius_px
    smoothing = smoothing_px(2 * radius_px)
    bands = [spectrum(waves.slope, factor * smoothing) for factor in (1.0, COARSER)]
    found = [
        one
        for pair, cameras in matches.with_cameras()
        if blur.knows(pair) and (one := _pair(pair, cameras, blur, bands))
    ]
    values, covariance = solve_pairs(found, radius_px * np.array([*_PRIOR, *_PRIOR]))
    mean = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.5])
    growth_sigma = float(np.sqrt(mean @ covariance @ mean))
    sigma = float(np.hypot(growth_sigma, _MODEL_ERROR * abs(float(mean @ values))))
    left, right = values[:3].tolist(), values[3:].tolist()
    return Coma(tuple(left), tuple(right), sigma, waves.slope)


def _pair(
    pair: PairMatches, cameras: tuple[int, int], blur: BoardBlur, bands: list[Spectrum]
) -> PairEquations | None:
    """Equations of the windows of one pair, of which enough have coarse detail."""
    shift_px = pair.coarse_shift_px
    if shift_px is None:
        return None
    # NaN, where a window was not found, is not below the limit.
    is_in = np.abs(shift_px).max(axis=1) < _MOST_SHIFT_PX
    if np.count_nonzero(is_in) < _FEWEST_WINDOWS:
        return None
    pair = pair.some(is_in)
    blurs = blur.blurs_px(pair, cameras)
    first, second = (
        blur.places(places_px, camera)
        for places_px, camera in zip((pair.first_px, pair.second_px), cameras, strict=True)
    )
    size = magnification(pair)
    columns = np.zeros((len(pair.first_px), 2, _UNKNOWNS))
    for kind in range(3):
        comas = _unit_coma(kind, first), _unit_coma(kind, second)
        fine, coarse = (detail_shift(blurs, comas, waves, size) for waves in bands)
        columns[:, :, 3 * cameras[0] + kind] += size * (fine.first_px - coarse.first_px)
        columns[:, :, 3 * cameras[1] + kind] += coarse.second_px - fine.second_px
    weights = np.repeat(1 / pair.sigma_px, 2)
    rows = columns.reshape(-1, _UNKNOWNS) * weights[:, np.newaxis]
    return PairEquations(rows, shift_px[is_in].reshape(-1) * weights)


def _unit_coma(kind: int, places: FloatArray) -> FloatArray:
    """Coma (2, windows) of one pixel along x, along y, or at the field radius."""
    if kind == 2:
        return places
    coma = np.zeros_like(places)
    coma[kind] = 1.0
    return coma
