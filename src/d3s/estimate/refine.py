"""Between the shifts: least squares over a window, and how uncertain that leaves the disparity.

With r the residual of the views at a disparity d of each pixel and g its derivative to d, the
disparity of a window is where the sum of (r + g (d_window - d))² is least, brightness apart: once
linear, so two or three rounds are enough. The defocus is in both r and g.
"""

from functools import cache
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.holes import Mask
from d3s.estimate.operations import Array, CompiledOperations, Operations, View
from d3s.estimate.search import Model, window_counts

# Share of the residual beyond noise that acts like noise. The rest is the blur that a Gaussian
# leaves out of a disk: as even as the texture, it hardly moves the fit. From the tuning textures.
_UNEXPLAINED = 0.3
# A window whose disparity is this many standard deviations off that of the small one within it
# does not lie on one surface.
_APART = 3.0
_TINY = 1e-30
# Mean square of the gradients of a window that holds nothing: views have a range of about one, of
# which this is the rounding. So has a window whose match is out of the frame.
_FLAT = 1e-14
_UNKNOWN_PX = 1e4  # standard deviation of a disparity there; finite, since it is interpolated


class Level(NamedTuple):
    """Both views at one resolution, ready to be compared at any disparity."""

    scale: int  # pixels of the frame to one of these
    smoothing_px: float  # sigma of the Gaussian that the noise went through, in these pixels
    noise: Array  # variance of white noise in one view before it, of each pixel
    left: View
    left_x: Array
    right: View  # splines along the rows

    @property
    def reach_px(self) -> int:
        """How far the smoothing carries, in pixels of the frame; 0.3 % of it beyond."""
        return ceil(3 * self.smoothing_px * self.scale)

    @classmethod
    def of(
        cls,
        views: tuple[Array, Array],
        scale: int,
        smoothing_px: float,
        noise: Array,
        ops: Operations,
    ) -> "Level":
        """From views that are smoothed and shrunk already, and the noise of each."""
        left, spline = views[0], ops.spline(views[1])
        return cls(
            scale=scale,
            smoothing_px=smoothing_px,
            noise=noise,
            left=View(left, ops.laplacian(left)),
            left_x=ops.gradient_x(left),
            right=View(spline, ops.laplacian(spline)),
        )


class Fit(NamedTuple):
    """A disparity per pixel and what is known of it; pixels of the frame."""

    disparity_px: Array
    sigma_px: Array
    correlation: Array  # of both views in the window, once aligned, -1 to 1
    samples: Array  # how many of the window's pixels would be independent in pure noise
    misfit: Array  # of the pixel's close surroundings, over what noise and lenses explain
    half_px: NDArray[np.int64]  # half the side of the window in use
    reach_px: NDArray[np.int64]  # the same with the filters before it


class NoiseGains(NamedTuple):
    """What filters make of white noise of variance one."""

    smoothed: float  # variance after the smoothing
    laplacian: float  # variance of its Laplacian
    gradient: float  # variance of its derivative
    area_px: float  # pixels to one independent sample


@cache
def noise_gains(smoothing_px: float) -> NoiseGains:
    """Noise after a Gaussian, by trying it on one bright pixel."""
    ops = CompiledOperations()
    size = 2 * int(np.ceil(9 * max(smoothing_px, 0.5))) + 5
    dot = np.zeros((size, size), dtype=np.float32)
    dot[size // 2, size // 2] = 1
    spot = smoothed(dot, smoothing_px, 1, ops)
    power = np.abs(np.fft.fft2(spot.astype(np.float64))) ** 2
    variance = float(power.mean())
    return NoiseGains(
        smoothed=variance,
        laplacian=float(np.square(ops.laplacian(spot), dtype=np.float64).sum()),
        gradient=float(np.square(ops.gradient_x(spot), dtype=np.float64).sum()),
        area_px=float(np.square(power).mean()) / variance**2,
    )


def smoothed(image: Array, sigma_px: float, step: int, ops: Operations) -> Array:
    """Gaussian, then every `step`-th pixel; a sigma of zero is no Gaussian."""
    if sigma_px > 0:
        return ops.smooth(image, sigma_px, step)
    return np.ascontiguousarray(image[::step, ::step])


class _Moments(NamedTuple):
    """Means over a window of products of residual e and gradient g, freed of their means."""

    gg: Array
    ge: Array
    gf: Array  # with f = g times the disparity that e was taken at
    ee: Array
    pixels: Array

    @property
    def disparity(self) -> Array:
        return (self.gf - self.ge) / np.maximum(self.gg, _FLAT)

    @property
    def is_flat(self) -> Mask:
        return np.asarray(self.gg <= _FLAT)


def refine(
    level: Level,
    model: Model,
    start: Array,
    windows: "Windows",
    *,
    rounds: int,
    reach: float,
) -> Fit:
    """Disparity that fits best over the largest window that lies on one surface.

    `start` and `reach`, how far from it to look, are in pixels of the level; `windows` has what the
    search can tell of them.
    """
    ops, current = windows.ops, start
    line = model.defocus_line(level.scale)
    for _ in range(rounds):
        seen = ops.compare(level.left, level.left_x, level.right, current, line)
        moments = [_moments(seen.residual, seen.gradient, current, h, ops) for h in windows.halves]
        windows = windows.where(_agreement(moments, level))
        chosen = _Moments(*(windows.chosen(list(same)) for same in zip(*moments, strict=True)))
        moved = np.clip(chosen.disparity, start - reach, start + reach).astype(start.dtype)
        current = np.where(chosen.is_flat, current, moved)
    straight = current - _tilt_px(current, seen.gradient, windows)
    return _judged(level, model, straight, chosen, seen.mean, seen.gradient, windows)._replace(
        misfit=_misfit(level, model, current, seen.residual, seen.mean, ops)
    )


class Windows(NamedTuple):
    """Windows around each pixel, increasing, and the one that it has."""

    halves: tuple[int, ...]
    usable: list[Mask]  # for all but the smallest: no step in it, as far as the search can tell
    used: NDArray[np.int64]  # which of them
    ops: Operations

    @classmethod
    def of(
        cls,
        halves: tuple[int, ...],
        usable: list[Mask],
        shape: tuple[int, ...],
        ops: Operations,
    ) -> "Windows":
        """Largest that is usable, and so are all within it."""
        return cls(halves, usable, _largest(usable, shape), ops)

    def where(self, agreement: list[Mask]) -> "Windows":
        """The same with those left out that do not agree with the next smaller one."""
        both = [first & second for first, second in zip(self.usable, agreement, strict=True)]
        return self._replace(used=_largest(both, self.used.shape))

    def chosen(self, values: list[Array]) -> Array:
        """Of values for each window, those of the one in use."""
        picked = values[0]
        for place, value in enumerate(values[1:], start=1):
            picked = np.where(self.used == place, value, picked)
        return picked

    def pixels(self) -> Array:
        """How many pixels it has inside the frame."""
        like = np.empty(self.used.shape, dtype=self.ops.dtype)
        return self.chosen([window_counts(like, half) for half in self.halves])

    def mean(self, values: Array) -> Array:
        """Average over it."""
        return self.chosen([self.ops.window_sums(values, h) for h in self.halves]) / self.pixels()

    def variance(self, values: Array) -> Array:
        """Average square less squared average."""
        return np.asarray(np.maximum(self.mean(values * values) - self.mean(values) ** 2, 0))


def _largest(usable: list[Mask], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """How many windows in a row, from the smallest but one, can be used."""
    index = np.zeros(shape, dtype=np.int64)
    for place, mask in enumerate(usable, start=1):
        index[mask & (index == place - 1)] = place
    return index


def _moments(
    residual: Array, gradient: Array, disparity: Array, half: int, ops: Operations
) -> _Moments:
    count = window_counts(residual, half)
    flow = gradient * disparity

    def average(values: Array) -> Array:
        return ops.window_sums(values, half) / count

    g, e, f = average(gradient), average(residual), average(flow)
    return _Moments(
        gg=average(gradient * gradient) - g * g,
        ge=average(gradient * residual) - g * e,
        gf=average(gradient * flow) - g * f,
        ee=average(residual * residual) - e * e,
        pixels=count,
    )


def _agreement(moments: list[_Moments], level: Level) -> list[Mask]:
    """Whether each window tells the same as the next smaller one, as far as noise lets them."""
    area = noise_gains(level.smoothing_px).area_px
    agree = []
    for small, large in pairwise(moments):
        variance = small.ee * area / (small.pixels * np.maximum(small.gg, _FLAT))
        gap = np.abs(large.disparity - small.disparity)
        agree.append(np.asarray(gap <= _APART * np.sqrt(np.maximum(variance, 0))))
    return agree


def _tilt_px(disparity: Array, gradient: Array, windows: Windows) -> Array:
    """What a slope of the surface adds, where the texture lies to one side of the window.

    The window's disparity is that of the centroid of its squared gradients.
    """
    weight = gradient * gradient
    total = np.maximum(windows.mean(weight), _TINY)
    tilt = np.zeros_like(disparity)
    for axis in (0, 1):
        size = disparity.shape[axis]
        place = np.arange(size, dtype=disparity.dtype) - size // 2
        place = place[:, None] if axis == 0 else place[None, :]
        offset = windows.mean(weight * place) / total - place
        tilt += offset * _slope(disparity, offset, windows, axis)
    return tilt


def _slope(disparity: Array, offset: Array, windows: Windows, axis: int) -> Array:
    """Slope of the surface along an axis, from as far apart as it is known to be one.

    A disparity belongs to the centroid of its window, `offset` away from the pixel.
    """
    slope = np.zeros_like(disparity)
    for place, step in enumerate(windows.halves[1:], start=1):
        fits = windows.used >= place
        is_one = fits & _shifted(fits, step, axis) & _shifted(fits, -step, axis)
        rise = _shifted(disparity, step, axis) - _shifted(disparity, -step, axis)
        run = 2 * step + _shifted(offset, step, axis) - _shifted(offset, -step, axis)
        is_one &= run > 0.5 * step
        slope = np.where(is_one, rise / np.where(is_one, run, 1), slope)
    return slope


def _shifted(image: Array, step: int, axis: int) -> Array:
    """Image read `step` pixels ahead; beyond the border its last pixel."""
    places = np.clip(np.arange(image.shape[axis]) + step, 0, image.shape[axis] - 1)
    return np.take(image, places, axis=axis)


def _in_residual(level: Level, model: Model, disparity: Array) -> Array:
    """Variance that white noise of variance one in both views has in the residual."""
    gains = noise_gains(level.smoothing_px)
    constant, slope = model.defocus_line(level.scale)
    defocus = constant + slope * disparity
    return 2 * gains.smoothed + 0.5 * gains.laplacian * defocus * defocus


def _judged(
    level: Level,
    model: Model,
    disparity: Array,
    moments: _Moments,
    mean: Array,
    gradient: Array,
    windows: Windows,
) -> Fit:
    gains = noise_gains(level.smoothing_px)
    residual = np.maximum(moments.ee, 0) / _in_residual(level, model, disparity)
    sensor = np.minimum(level.noise, residual)
    noise = sensor + _UNEXPLAINED * (residual - sensor)
    # Noise raises the gradients too, and what it adds to them tells nothing of the disparity. Nor
    # is blur trusted to tell it alone, as of stripes along the rows: its model is too coarse.
    by_shift = windows.variance(windows.ops.gradient_x(mean))
    telling = np.minimum(moments.gg, by_shift) - 0.5 * gains.gradient * noise
    telling = np.maximum(telling, 0.03 * moments.gg)
    # The noise in two neighbouring pixels is alike after the smoothing: what counts is how much
    # of it goes through the gradients once more, and of those at the window's edge less does.
    through = windows.variance(smoothed(gradient, level.smoothing_px, 1, windows.ops))
    through = through * _share_inside(level.smoothing_px, windows)
    sigma = np.sqrt(2 * noise * through / moments.pixels) / np.maximum(telling, 0.1 * _FLAT)
    texture = 4 * windows.variance(mean)
    grain = np.maximum(2 * gains.smoothed * noise, _TINY)
    half = level.scale * np.array(windows.halves)[windows.used]
    return Fit(
        disparity_px=disparity * level.scale,
        sigma_px=np.where(moments.is_flat, _UNKNOWN_PX, sigma * level.scale),
        correlation=np.where(moments.is_flat, 0, (texture - grain) / (texture + grain)),
        samples=moments.pixels / gains.area_px,
        misfit=np.zeros_like(disparity),
        half_px=half,
        reach_px=half + level.reach_px,
    )


def _share_inside(smoothing_px: float, windows: Windows) -> Array:
    """Share of the energy of a smooth window that stays when it is cut out and smoothed.

    Along one axis a box of side n, smoothed by sigma, has squares that add up to
    n - 2 sigma / sqrt(pi).
    """
    sides = 2 * np.array(windows.halves) + 1
    share = np.maximum(1 - 2 / np.sqrt(np.pi) * smoothing_px / sides, 0.3) ** 2
    return np.asarray(share.astype(windows.ops.dtype)[windows.used])


def _misfit(
    level: Level, model: Model, disparity: Array, residual: Array, mean: Array, ops: Operations
) -> Array:
    """Variance of the residual close by, over that of the noise and a tenth of the contrast."""
    half = 2
    count = window_counts(residual, half)

    def variance(values: Array) -> Array:
        square = ops.window_sums(values * values, half) / count
        return np.maximum(square - (ops.window_sums(values, half) / count) ** 2, 0)

    explained = level.noise * _in_residual(level, model, disparity) + 0.01 * variance(mean)
    return variance(residual) / np.maximum(explained, _TINY)
