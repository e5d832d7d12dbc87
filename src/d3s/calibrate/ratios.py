"""Ratio of the tuned depth equation in windows of a frame, as a function of the shift.

`optics.d3.gradient_ratio_per_px` depends on the shift alone, so that one pass over whole shifts
serves every depth and every virtual baseline. Numerator and denominator are correlations of
smoothed views, which have almost no detail as fine as a pixel: between whole shifts they are
interpolated by a spline.

Where lenses differ from those on the axis, the consensus adds second derivatives of the mean of the
views to their difference, with factors that depend on place and depth
(`estimate.consensus.lens_corrections`). Sums with these derivatives serve all factors.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate import ConsensusOptions
from d3s.estimate.consensus.consensus_plan import RigDefaults, settings_of
from d3s.estimate.consensus.noise_and_gain import without_noise
from d3s.estimate.consensus.smoothing import noise_variance, reach_px, smoothed
from d3s.runtime.compile import compiled
from d3s.types import FloatArray, Image, Mask

Places = NDArray[np.int64]

# Additional whole shifts at both ends, so that the ends of the spline have no effect.
_SPARE_PX = 8
# Least mean squared gradient in a window, over that of noise alone. Noise adds to the denominator
# only: with less texture it dominates the ratio.
_LEAST_TEXTURE = 10.0
_BLUR_TERMS = 4  # difference, S_xx, 2 S_xy and S_yy
# Part of the frame that windows are taken from: in the middle, depth depends little on the tilt of
# the board, and the lenses are best.
_MIDDLE_SHARE = 0.6


class Windows(NamedTuple):
    """Centres of windows in a left view."""

    rows: Places  # (windows,)
    cols: Places  # (windows,)


class Sums(NamedTuple):
    """Sums over the windows of a frame at whole shifts: numerator and denominator of the ratio.

    Terms are the difference of the views and, if lenses differ over the field, S_xx, 2 S_xy and
    S_yy of the mean S of both views.
    """

    first_px: int  # the smallest shift
    products: FloatArray  # (shifts, windows, terms): gradient of S along the rows times each term
    squares: FloatArray  # (shifts, windows, pairs): products of two terms, as in `_pairs`
    removed: float = 0.0  # noise that is taken from the sum of squares of a window

    def ratios_per_px(self, shifts_px: FloatArray, blur: FloatArray | None = None) -> FloatArray:
        """Ratio (shifts, windows) at shifts.

        Shifts are (shifts, 1), or (shifts, windows) if each window has its own. `blur` (3, shifts,
        windows) are factors of S_xx, 2 S_xy and S_yy that are added to the difference; none if
        left.
        """
        place = np.asarray(shifts_px, dtype=np.float64) - self.first_px
        # Lenses may add more to a shift than there is to spare, far from all depths of the board.
        place = np.clip(place, 2, len(self.products) - 4)
        shape = (place.shape[0], self.products.shape[1])
        terms = 1 if blur is None else self.products.shape[2]
        factors = np.ones((*shape, terms))
        if blur is not None:
            factors[..., 1:] = np.moveaxis(np.broadcast_to(blur, (terms - 1, *shape)), 0, -1)
        first, second = _pairs(terms)
        both = np.where(first == second, 1.0, 2.0) * factors[..., first] * factors[..., second]
        product = _interpolated(self.products[..., :terms], place, factors)
        square = _interpolated(self.squares[..., : first.size], place, both)
        square = without_noise(square, self.removed)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(product / square)


def _pairs(terms: int) -> tuple[Places, Places]:
    """Numbers of the terms of each pair; those of fewer terms come first."""
    second, first = np.tril_indices(terms)
    return first, second


def shift_sums(
    left: Image,
    right: Image,
    shifts_px: tuple[float, float],
    options: ConsensusOptions,
    most_windows: int,
    *,
    with_blur: bool = False,
    removed_noise: float = 0.0,
) -> tuple[Windows, Sums]:
    """Find textured windows in the middle of a pair, and their sums over a range of shifts.

    Each window lies in the frame with all pixels that it depends on, and so does its match at every
    shift. Windows do not overlap.

    `shifts_px` are the smallest and largest shift of the right view; window and prefilter of the
    options are used. `with_blur`: second derivatives are summed too, for lenses that differ over
    the field. `removed_noise` is the variance of the noise of the difference that is taken from its
    squares, in a pixel.
    """
    first = math.floor(shifts_px[0]) - _SPARE_PX
    last = math.ceil(shifts_px[1]) + _SPARE_PX
    settings = settings_of(options, None)
    half = settings.window_px // 2
    reach = half + 1 + reach_px(settings.prefilter_sigma_px)
    before, after = reach + max(last, 0), reach - min(first, 0)
    rows = _window_centres(left.shape[0], reach, reach, settings.window_px)
    cols = _window_centres(left.shape[1], before, after, settings.window_px)
    shifts, terms = last - first + 1, _BLUR_TERMS if with_blur else 1
    pairs = _pairs(terms)
    if not rows.size * cols.size:
        none = Sums(first, np.zeros((shifts, 0, terms)), np.zeros((shifts, 0, pairs[0].size)))
        return Windows(rows[:0], cols[:0]), none
    corner = np.array([rows[0] - reach, cols[0] - before])
    part = slice(corner[0], rows[-1] + reach + 1), slice(corner[1], cols[-1] + after + 1)
    views = [smoothed(view[part], settings.prefilter_sigma_px) for view in (left, right)]
    place = np.stack(np.meshgrid(rows, cols, indexing="ij"), axis=-1).reshape(-1, 2) - corner
    place = place[_are_known(left[part], right[part], place, reach, (before, after))]
    place = _textured(views[0], left[part], place, settings)
    place = place[np.linspace(0, len(place) - 1, min(most_windows, len(place))).astype(np.int64)]
    products = np.zeros((shifts, len(place), terms))
    squares = np.zeros((shifts, len(place), pairs[0].size))
    _sum_over_shifts(views[0], views[1], place, half, first, products, squares)
    removed = removed_noise * settings.window_px**2
    return Windows(*(place + corner).T), Sums(first, products, squares, removed)


def _are_known(
    left: Image, right: Image, place: Places, reach: int, aside: tuple[int, int]
) -> Mask:
    """Whether all pixels that a window and its matches depend on are known (not NaN)."""
    holes = np.isnan(left) | np.isnan(right)
    before, after = aside
    return np.array(
        [
            not holes[row - reach : row + reach + 1, col - before : col + after + 1].any()
            for row, col in place
        ]
    )


def _textured(view: FloatArray, unsmoothed: Image, place: Places, settings: RigDefaults) -> Places:
    """Windows whose texture exceeds the noise, (windows, 2)."""
    energy = np.zeros(len(place))
    _gradient_energy(view, place, settings.window_px // 2, energy)
    noise = noise_variance(unsmoothed) * _noise_gain(settings.prefilter_sigma_px)
    return place[energy > _LEAST_TEXTURE * noise]


def _window_centres(length: int, before: int, after: int, window_px: int) -> Places:
    """Centres of adjacent windows in the middle of an axis."""
    first = max(before, round(0.5 * (1.0 - _MIDDLE_SHARE) * length))
    last = min(length - 1 - after, round(0.5 * (1.0 + _MIDDLE_SHARE) * length))
    return np.arange(first, last + 1, window_px)


def _noise_gain(sigma_px: float) -> float:
    """Variance of the central gradient of white noise of variance 1, smoothed with a Gaussian."""
    reach = reach_px(sigma_px)
    line = np.zeros(2 * reach + 5)
    line[reach + 2] = 1.0
    blurred = smoothed(line[np.newaxis], sigma_px)[0] if reach else line
    gradient = 0.5 * (blurred[2:] - blurred[:-2])
    return float((gradient**2).sum() * (blurred**2).sum())


@compiled
def _gradient_energy(view: FloatArray, place: Places, half: int, out: FloatArray) -> None:
    """Write the mean squared gradient along the rows of each window to `out`."""
    for i in range(len(place)):
        row, col = place[i]
        total = 0.0
        for y in range(row - half, row + half + 1):
            for x in range(col - half, col + half + 1):
                total += (0.5 * (view[y, x + 1] - view[y, x - 1])) ** 2
        out[i] = total / (2 * half + 1) ** 2


@compiled
def _sum_over_shifts(
    left: FloatArray,
    right: FloatArray,
    place: Places,
    half: int,
    first: int,
    products: FloatArray,
    squares: FloatArray,
) -> None:
    """Write the sums of each window at each shift to `products` and `squares`."""
    terms = products.shape[2]
    term = np.zeros(terms)
    mean = np.zeros((3, 3))
    for i in range(len(place)):
        row, col = place[i]
        for s in range(len(products)):
            for y in range(row - half, row + half + 1):
                for x in range(col - half, col + half + 1):
                    match = x - first - s
                    term[0] = left[y, x] - right[y, match]
                    across = left[y, x + 1] - left[y, x - 1] + right[y, match + 1]
                    gradient = 0.25 * (across - right[y, match - 1])
                    if terms > 1:
                        for down in range(3):
                            for along in range(3):
                                mean[down, along] = 0.5 * (
                                    left[y + down - 1, x + along - 1]
                                    + right[y + down - 1, match + along - 1]
                                )
                        here = 2 * mean[1, 1]
                        term[1] = mean[1, 0] + mean[1, 2] - here
                        lean = (mean[2, 2] - mean[0, 2]) - (mean[2, 0] - mean[0, 0])
                        term[2] = 0.5 * lean
                        term[3] = mean[0, 1] + mean[2, 1] - here
                    pair = 0
                    for second in range(terms):
                        products[s, i, second] += gradient * term[second]
                        for one in range(second + 1):
                            squares[s, i, pair] += term[one] * term[second]
                            pair += 1


def _interpolated(samples: FloatArray, place: FloatArray, factors: FloatArray) -> FloatArray:
    """Weighted sum of quintic splines through samples (shifts, windows, parts).

    `place` is (places, 1 or windows), `factors` (places, windows, parts).
    """
    from scipy.ndimage import spline_filter1d  # importing scipy takes longer than the rest of d3s

    spline = spline_filter1d(samples, order=5, axis=0, mode="mirror")
    total = np.empty((place.shape[0], samples.shape[1]))
    _sum_of_splines(spline, np.broadcast_to(place, total.shape), factors, total)
    return total


@compiled
def _sum_of_splines(
    spline: FloatArray, place: FloatArray, factors: FloatArray, out: FloatArray
) -> None:
    """Write the sum of quintic B-splines with coefficients (shifts, windows, parts) to `out`."""
    parts = spline.shape[2]
    for i in range(place.shape[0]):
        for window in range(place.shape[1]):
            whole = int(np.floor(place[i, window]))
            total = 0.0
            for step in range(-2, 4):
                distance = abs(place[i, window] - whole - step)
                weight = (3 - distance) ** 5 - 6 * max(2 - distance, 0.0) ** 5
                weight += 15 * max(1 - distance, 0.0) ** 5
                for number in range(parts):
                    value = factors[i, window, number] * spline[whole + step, window, number]
                    total += weight * value
            out[i, window] = total / 120
