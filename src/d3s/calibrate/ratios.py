"""What the tuned depth equation takes from a frame: its ratio, over the shift between the views.

`optics.d3.gradient_ratio_per_px` depends on the shift alone, so that one pass over the whole shifts
serves every depth and every virtual baseline. Both of its sums are correlations of smoothed views,
which hold next to nothing as fine as a pixel: between whole shifts they are interpolated.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from d3s.estimate import ConsensusOptions
from d3s.estimate.consensus.plan import Settings, settings_of
from d3s.estimate.consensus.prefilter import noise_variance, reach_px, smoothed
from d3s.runtime.compile import compiled
from d3s.types import FloatArray, Image, Mask

Places = NDArray[np.int64]

# Whole shifts beyond those asked for, so that the spline through them does not feel its ends.
_SPARE_PX = 8
# The mean of the squared gradient in a window, in units of what noise makes of it. Noise adds to
# the square of the difference and to nothing else: with less texture it decides the ratio.
_LEAST_TEXTURE = 10.0
# Windows are taken from the middle of the frame: nearly the same depth whatever the tilt of the
# board, and the best of the lenses.
_MIDDLE_SHARE = 0.6


class Views(Protocol):
    """Rectified pairs (left, right), each read when it is asked for."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, number: int, /) -> tuple[Image, Image]:
        """One of them: float32, full scale 1."""
        ...


class Windows(NamedTuple):
    """Where to look in a left view: the middles of its windows."""

    rows: Places
    cols: Places


class Sums(NamedTuple):
    """Sums over the windows of a frame at whole shifts, (shifts, windows)."""

    first_px: int  # the smallest shift
    products: FloatArray  # of the gradient of the mean of both views and their difference
    squares: FloatArray  # of the difference

    def ratios_per_px(self, shifts_px: FloatArray) -> FloatArray:
        """The ratio at shifts (shifts, 1), or (shifts, windows) where each has its own."""
        taps = _taps(np.asarray(shifts_px, dtype=np.float64) - self.first_px)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(_between(self.products, taps) / _between(self.squares, taps))


def shift_sums(
    left: Image,
    right: Image,
    shifts_px: tuple[float, float],
    options: ConsensusOptions,
    most_windows: int,
) -> tuple[Windows, Sums]:
    """Textured windows in the middle of a pair, and their sums from a smallest to a largest shift.

    At most so many windows, beside each other or farther apart. Each is in the frame with all that
    it depends on, and so is its match at all of the shifts.
    """
    first = math.floor(shifts_px[0]) - _SPARE_PX
    last = math.ceil(shifts_px[1]) + _SPARE_PX
    settings = settings_of(options, None)
    half = settings.window_px // 2
    reach = half + 1 + reach_px(settings.prefilter_sigma_px)
    before, after = reach + max(last, 0), reach - min(first, 0)
    rows = _middles(left.shape[0], reach, reach, settings.window_px)
    cols = _middles(left.shape[1], before, after, settings.window_px)
    if not rows.size * cols.size:
        return Windows(rows[:0], cols[:0]), Sums(first, *np.zeros((2, last - first + 1, 0)))
    corner = np.array([rows[0] - reach, cols[0] - before])
    part = slice(corner[0], rows[-1] + reach + 1), slice(corner[1], cols[-1] + after + 1)
    views = [smoothed(view[part], settings.prefilter_sigma_px) for view in (left, right)]
    place = np.stack(np.meshgrid(rows, cols, indexing="ij"), axis=-1).reshape(-1, 2) - corner
    place = place[_are_whole(left[part], right[part], place, reach, (before, after))]
    place = _textured(views[0], left[part], place, settings)
    place = place[np.linspace(0, len(place) - 1, min(most_windows, len(place))).astype(np.int64)]
    products, squares = np.zeros((2, last - first + 1, len(place)))
    _sum_over_shifts(views[0], views[1], place, half, first, products, squares)
    return Windows(*(place + corner).T), Sums(first, products, squares)


def _are_whole(
    left: Image, right: Image, place: Places, reach: int, aside: tuple[int, int]
) -> Mask:
    """Windows without a hole in what they, or their matches, depend on."""
    holes = np.isnan(left) | np.isnan(right)
    before, after = aside
    return np.array(
        [
            not holes[row - reach : row + reach + 1, col - before : col + after + 1].any()
            for row, col in place
        ]
    )


def _textured(view: FloatArray, unsmoothed: Image, place: Places, settings: Settings) -> Places:
    """Those of the windows whose texture stands out of the noise."""
    energy = np.zeros(len(place))
    _gradient_energy(view, place, settings.window_px // 2, energy)
    noise = noise_variance(unsmoothed) * _noise_gain(settings.prefilter_sigma_px)
    return place[energy > _LEAST_TEXTURE * noise]


def _middles(length: int, before: int, after: int, window_px: int) -> Places:
    """Middles of windows side by side in the middle of an axis, away from its ends."""
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
    """Mean of the squared gradient along the rows, over each window."""
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
    for i in range(len(place)):
        row, col = place[i]
        for s in range(len(products)):
            product, square = 0.0, 0.0
            for y in range(row - half, row + half + 1):
                for x in range(col - half, col + half + 1):
                    match = x - first - s
                    difference = left[y, x] - right[y, match]
                    across = left[y, x + 1] - left[y, x - 1] + right[y, match + 1]
                    product += 0.25 * (across - right[y, match - 1]) * difference
                    square += difference * difference
            products[s, i] = product
            squares[s, i] = square


class _Taps(NamedTuple):
    """Six samples around each place, and their weights in a spline of degree 5."""

    first: NDArray[np.int64]
    weights: list[FloatArray]


def _taps(place: FloatArray) -> _Taps:
    from scipy.interpolate import BSpline  # importing scipy takes longer than the rest of d3s

    whole = np.floor(place)
    basis = BSpline.basis_element(np.arange(-3.0, 4.0), extrapolate=False)
    weights = [np.nan_to_num(basis(place - whole - step)) for step in range(-2, 4)]
    return _Taps(whole.astype(np.int64) - 2, weights)


def _between(samples: FloatArray, taps: _Taps) -> FloatArray:
    """Samples along the first axis, interpolated."""
    from scipy.ndimage import spline_filter1d

    spline = spline_filter1d(samples, order=5, axis=0, mode="mirror")
    window = np.arange(samples.shape[1])
    total = np.zeros((taps.first.shape[0], samples.shape[1]))
    for step, weight in enumerate(taps.weights):
        total += weight * spline[taps.first + step, window]
    return total
