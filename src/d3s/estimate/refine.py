"""Between the shifts: least squares over a window, and how uncertain that leaves the disparity.

With r the residual of the views at a disparity d of each pixel and g its derivative to d, the
disparity of a window is where the sum of (r + g (d_window - d))² is least, brightness apart: once
linear, so two or three rounds are enough. The defocus is in both r and g.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.operations import Array, CompiledOperations, Operations, View
from d3s.estimate.search import Model, window_counts

Mask = NDArray[np.bool_]

# Share of the residual beyond noise that acts like noise. The rest is the blur that a Gaussian
# leaves out of a disk: as even as the texture, it hardly moves the fit. From the tuning textures.
_UNEXPLAINED = 0.25
# A window whose disparity is this many standard deviations off that of the small one within it
# does not lie on one surface.
_APART = 3.0
_TINY = 1e-30


class Level(NamedTuple):
    """Both views at one resolution, ready to be compared at any disparity."""

    scale: int  # pixels of the frame to one of these
    smoothing_px: float  # sigma of the Gaussian that the noise went through, in these pixels
    noise: Array  # variance of white noise in one view before it, of each pixel
    left: View
    left_x: Array
    right: View  # splines along the rows

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
    wide: Mask  # the large window was used


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
        return (self.gf - self.ge) / np.maximum(self.gg, _TINY)


def refine(
    level: Level,
    model: Model,
    start: Array,
    halves: tuple[int, int],
    usable: Mask,
    *,
    rounds: int,
    reach: float,
    ops: Operations,
) -> Fit:
    """Disparity that fits best over the large window, or over the small one where steps are near.

    `start` and `reach`, how far from it to look, are in pixels of the level; `usable` says where
    the large window has no step in it as far as the search can tell.
    """
    current = start
    for _ in range(rounds):
        seen = ops.compare(
            level.left, level.left_x, level.right, current, model.defocus_line(level.scale)
        )
        large, small = (_moments(seen.residual, seen.gradient, current, h, ops) for h in halves)
        wide = usable & _agree(large, small, level)
        chosen = _Moments(*(np.where(wide, *both) for both in zip(large, small, strict=True)))
        current = np.clip(chosen.disparity, start - reach, start + reach).astype(start.dtype)
    windows = _Windows(wide, halves, chosen.pixels, ops)
    straight = current - _tilt_px(current, seen.gradient, wide, halves[0], ops)
    return _judged(level, model, straight, chosen, seen.mean, seen.gradient, windows)._replace(
        misfit=_misfit(level, model, current, seen.residual, seen.mean, ops)
    )


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


def _agree(large: _Moments, small: _Moments, level: Level) -> Mask:
    """Whether a window and the small one within it tell the same, as far as noise lets them."""
    area = noise_gains(level.smoothing_px).area_px
    variance = small.ee * area / (small.pixels * np.maximum(small.gg, _TINY))
    gap = np.abs(large.disparity - small.disparity)
    return np.asarray(gap <= _APART * np.sqrt(np.maximum(variance, 0)))


class _Windows(NamedTuple):
    """The window that each pixel ended up with."""

    wide: Mask
    halves: tuple[int, int]
    pixels: Array
    ops: Operations

    def mean(self, values: Array) -> Array:
        """Average over it."""
        sums = (self.ops.window_sums(values, half) for half in self.halves)
        return np.where(self.wide, *sums) / self.pixels

    def variance(self, values: Array) -> Array:
        """Average square less squared average."""
        return np.asarray(np.maximum(self.mean(values * values) - self.mean(values) ** 2, 0))


def _tilt_px(disparity: Array, gradient: Array, wide: Mask, half: int, ops: Operations) -> Array:
    """What a slope of the surface adds, where the texture lies to one side of the window.

    The window's disparity is that of the centroid of its squared gradients. The slope is taken
    from the disparities half a window to each side, where they are of one surface.
    """
    weight = gradient * gradient
    total = np.maximum(ops.window_sums(weight, half), _TINY)
    tilt = np.zeros_like(disparity)
    for axis in (0, 1):
        size = disparity.shape[axis]
        if size <= 2 * half:
            continue
        place = np.arange(size, dtype=disparity.dtype) - size // 2
        place = place[:, None] if axis == 0 else place[None, :]
        offset = ops.window_sums(weight * place, half) / total - place
        ahead, behind = _shifted(disparity, half, axis), _shifted(disparity, -half, axis)
        one = wide & _shifted(wide, half, axis) & _shifted(wide, -half, axis)
        tilt += np.where(one, (ahead - behind) / (2 * half) * offset, 0)
    return tilt


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
    windows: _Windows,
) -> Fit:
    gains = noise_gains(level.smoothing_px)
    residual = np.maximum(moments.ee, 0) / _in_residual(level, model, disparity)
    sensor = np.minimum(level.noise, residual)
    noise = sensor + _UNEXPLAINED * (residual - sensor)
    # Noise raises the gradients too, and what it adds to them tells nothing of the disparity.
    telling = np.maximum(moments.gg - 0.5 * gains.gradient * noise, 0.1 * moments.gg)
    # The noise in two neighbouring pixels is alike after the smoothing: what counts is how much
    # of it goes through the gradients once more.
    through = windows.variance(smoothed(gradient, level.smoothing_px, 1, windows.ops))
    variance = 2 * noise * through / (windows.pixels * np.maximum(telling, _TINY) ** 2)
    texture = 4 * windows.variance(mean)
    grain = np.maximum(2 * gains.smoothed * noise, _TINY)
    return Fit(
        disparity_px=disparity * level.scale,
        sigma_px=np.sqrt(variance) * level.scale,
        correlation=(texture - grain) / (texture + grain),
        samples=windows.pixels / gains.area_px,
        misfit=np.zeros_like(disparity),
        wide=windows.wide,
    )


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
