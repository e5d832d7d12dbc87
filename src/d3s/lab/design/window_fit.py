"""Errors of the window fit of `joint` on a plane, computed from its texture without a search.

The fit of a window solves ``sum g (e + g step) = 0`` (docs/estimator_method.md). Two errors move
its zero away from the truth: noise in the residual e, and what the model of the blur does not
explain of it, since a lens blurs by a diffracted disk and the model is a Gaussian. Both follow
from the texture, the transfer functions of the lenses and the filters of the method, which are
linear: a sharp picture of the texture is blurred and filtered in the frequency domain, and the sums
of the fit are taken over its windows.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.refine import UNEXPLAINED, fit_parameters
from d3s.estimate.joint.smoothing import noise_gains
from d3s.lab.design.limits import transfer_at
from d3s.rig import Optics
from d3s.types import FloatArray

# Margin of the picture that the blur, the prefilter and the wrap of the transform may spoil.
_LEAST_MARGIN_PX = 12
_STEP_PX = 4  # distance of neighbouring windows: they overlap, so that all of them tell no more


class WindowErrors(NamedTuple):
    """Errors of the disparity of windows on a plane, in pixels of the frame, one value each."""

    per_noise_px: FloatArray  # standard deviation by noise of the residual, for a noise of 1
    per_noise2_px: FloatArray  # by noise of the weight times that of the residual, for a noise of 1
    misfit_px: FloatArray  # error by the model of the blur, with its sign
    residual: FloatArray  # what the model does not explain, as noise of a pixel
    per_slope: FloatArray  # further misfit per pixel of `defocus_slope_px`, which is 0 in a table
    scale: int  # at which the views are fitted

    @property
    def means(self) -> "FitErrors":
        """Root mean squares over the windows."""
        return FitErrors(
            per_noise_px=_rms(self.per_noise_px),
            per_noise2_px=_rms(self.per_noise2_px),
            misfit_px=_rms(self.misfit_px),
            residual=_rms(self.residual),
            per_slope=float(np.mean(self.per_slope)),
            scale=self.scale,
        )


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


class FitErrors(NamedTuple):
    """Root mean square errors of windows; numbers or arrays. See `WindowErrors`."""

    per_noise_px: FloatArray | float
    per_noise2_px: FloatArray | float
    misfit_px: FloatArray | float
    residual: FloatArray | float
    per_slope: FloatArray | float
    scale: Any

    def noise_px(self, noise_sigma: ArrayLike) -> FloatArray:
        """Standard deviation of the disparity by noise of a standard deviation."""
        noise = np.asarray(noise_sigma)
        return np.hypot(self.per_noise_px * noise, self.per_noise2_px * noise**2)

    def total_px(self, noise_sigma: ArrayLike) -> FloatArray:
        """Root mean square error of the disparity."""
        return np.hypot(self.noise_px(noise_sigma), self.misfit_px)

    def stated_px(self, noise_sigma: ArrayLike) -> FloatArray:
        """Sigma that the estimator states, about."""
        like_noise = np.sqrt(np.square(noise_sigma) + UNEXPLAINED * np.square(self.residual))
        return np.asarray(self.per_noise_px * like_noise)


class _Filters(NamedTuple):
    """Transfer functions on the frequencies of a picture, for one scale of the fit."""

    smoothing: FloatArray
    slope: FloatArray  # imaginary part of the derivative along x, per pixel of the scale
    laplacian: FloatArray  # per square pixel of the scale
    radius: FloatArray  # frequency, in cycles/px


def window_errors(
    texture: FloatArray,
    depth_m: float,
    plan: Plan,
    *,
    lenses: Optics | None = None,
    rows_px: float = 0.0,
) -> WindowErrors:
    """Errors of the largest windows of the fit on a plane with a texture.

    `texture` is a sharp picture of the plane at one texel per pixel, at least 128 x 128. Before a
    calibration, `lenses` blur the views otherwise than those of the plan, and the right view is
    `rows_px` lower.
    """
    from scipy import fft  # here, to keep `import d3s` fast

    optics = plan.optics
    disparity = float(optics.disparity_px(depth_m))
    scale = scale_at(disparity, plan)
    parameters = fit_parameters((texture.shape[0] // scale, texture.shape[1] // scale), scale, plan)
    filters = _filters(texture.shape, scale, plan.smoothing_px[scale])
    spectrum = fft.rfft2(texture - texture.mean()) * filters.smoothing
    views = [
        spectrum * transfer_at(filters.radius, (lenses or optics).lens(camera), depth_m)
        for camera in (0, 1)
    ]
    if rows_px:
        down = np.fft.fftfreq(texture.shape[0])[:, np.newaxis]
        views[1] = views[1] * np.exp(-2j * np.pi * rows_px * down)
    mean = 0.5 * (views[0] + views[1])
    constant, slope = parameters.defocus
    defocus = constant + slope * disparity / scale
    weight = (1j * filters.slope + slope * filters.laplacian) * mean
    residual = views[0] - views[1] + defocus * filters.laplacian * mean
    planes = [
        fft.irfft2(plane, s=texture.shape)
        for plane in (weight, residual, weight * filters.smoothing, filters.laplacian * mean)
    ]
    side = (2 * parameters.window_halves[-1] + 1) * parameters.cell_side * scale
    sums = _window_means(planes, side, _margin_px(optics, depth_m, plan.smoothing_px[scale]))
    # Windows are cut out before noise is smoothed: beyond their border there is no weight.
    sums["vv"] *= parameters.energy_share[-1]
    return _errors(sums, side, scale, filters, plan)


def _errors(
    sums: dict[str, FloatArray], side: int, scale: int, filters: _Filters, plan: Plan
) -> WindowErrors:
    """Errors from the means over windows: `gg`, `ge`, `ee`, `le` and `vv`."""
    pixels = side**2
    gains = noise_gains(plan.smoothing_px[scale] / scale)
    both = float(np.mean(filters.smoothing**4 * filters.slope**2))
    energy = np.maximum(sums["gg"], 1e-30)
    return WindowErrors(
        per_noise_px=scale * np.sqrt(2 * sums["vv"] / pixels) / energy,
        per_noise2_px=scale * np.sqrt(both / pixels) / energy,
        misfit_px=-scale * sums["ge"] / energy,
        # Noise of the frame is less by the scale in views that are shrunk.
        residual=np.sqrt(sums["ee"] / (2 * gains.smoothed)) * scale,
        per_slope=sums["le"] / energy,
        scale=scale,
    )


def scale_at(disparity_px: float, plan: Plan) -> int:
    """Scale at which a plane of this disparity is fitted; as `coarsest_scales` of the method."""
    scale = 1
    for coarser, (low, high) in sorted(plan.finer_px.items()):
        if disparity_px < low or disparity_px > high:
            scale = coarser
    return scale


@lru_cache(maxsize=24)
def _filters(shape: tuple[int, ...], scale: int, smoothing_px: float) -> _Filters:
    down = np.fft.fftfreq(shape[0])[:, np.newaxis]
    across = np.fft.rfftfreq(shape[1])[np.newaxis, :]
    radius = np.hypot(down, across)
    w_y, w_x = (2 * np.pi * scale * frequency for frequency in (down, across))
    kept = np.maximum(np.abs(w_y), np.abs(w_x)) <= np.pi
    smoothing = np.where(kept, np.exp(-2 * np.square(np.pi * smoothing_px * radius)), 0.0)
    slope = np.broadcast_to((8 * np.sin(w_x) - np.sin(2 * w_x)) / 6, radius.shape)
    laplacian = 2 * np.cos(w_x) + 2 * np.cos(w_y) - 4
    return _Filters(smoothing, slope, np.asarray(laplacian), radius)


def _margin_px(optics: Optics, depth_m: float, smoothing_px: float) -> int:
    blur = max(abs(float(optics.blur_radius_px(depth_m, camera))) for camera in (0, 1))
    return int(np.ceil(max(_LEAST_MARGIN_PX, blur + 2 * smoothing_px)))


def _window_means(planes: list[FloatArray], side: int, margin_px: int) -> dict[str, FloatArray]:
    """Means over windows within the margin of products of the planes."""
    import cv2

    weight, residual, smoothed, laplacian = planes
    border = margin_px + side // 2
    inner = tuple(slice(border, size - border, _STEP_PX) for size in weight.shape)

    def box(plane: FloatArray) -> FloatArray:
        return np.asarray(cv2.blur(plane, (side, side)), dtype=np.float64)[inner]

    means = {"g": box(weight), "e": box(residual)}
    return {
        "gg": box(weight**2) - means["g"] ** 2,
        "ge": box(weight * residual) - means["g"] * means["e"],
        "ee": np.maximum(box(residual**2) - means["e"] ** 2, 0),
        "le": box(laplacian * residual),
        "vv": np.maximum(box(smoothed**2) - box(smoothed) ** 2, 0),
    }
