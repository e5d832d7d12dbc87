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


class FitErrors(NamedTuple):
    """Errors of the disparity on a plane, in pixels of the frame; numbers, or arrays of them.

    Those by noise are for a noise of 1.
    """

    per_noise_px: FloatArray | float  # standard deviation by noise of the residual
    per_noise2_px: FloatArray | float  # by noise of the weight times that of the residual
    misfit_px: FloatArray | float  # error by the model of the blur; of one window with its sign
    residual: FloatArray | float  # what the model does not explain, as noise of a pixel
    per_slope: FloatArray | float  # more misfit per pixel of `defocus_slope_px`: 0 in a table
    scale: Any  # at which the views are fitted

    @property
    def means(self) -> "FitErrors":
        """Root mean squares over windows."""
        squares = [np.sqrt(np.mean(np.square(one))) for one in self[:4]]
        return FitErrors._make((*squares, np.mean(self.per_slope), self.scale))

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


def window_errors(
    texture: FloatArray,
    depth_m: float,
    plan: Plan,
    *,
    lenses: Optics | None = None,
    rows_px: float = 0.0,
) -> FitErrors:
    """Errors of the largest windows of the fit on a plane with a texture, one value each.

    `texture` is a sharp picture of the plane at one texel per pixel, at least 128 x 128. Before a
    calibration, `lenses` blur the views otherwise than those of the plan, and the right view is
    `rows_px` lower.
    """
    from scipy import fft  # here, to keep `import d3s` fast

    optics = plan.optics
    disparity = float(optics.disparity_px(depth_m))
    scale = scale_at(disparity, plan)
    parameters = fit_parameters((texture.shape[0] // scale, texture.shape[1] // scale), scale, plan)
    smoothing_px = plan.smoothing_px[scale]
    smoothing, slopes, laplacian, radius = _filters(texture.shape, scale, smoothing_px)
    spectrum = fft.rfft2(texture - texture.mean()) * smoothing
    views = [
        spectrum * transfer_at(radius, (lenses or optics).lens(camera), depth_m)
        for camera in (0, 1)
    ]
    if rows_px:
        down = np.fft.fftfreq(texture.shape[0])[:, np.newaxis]
        views[1] = views[1] * np.exp(-2j * np.pi * rows_px * down)
    mean = 0.5 * (views[0] + views[1])
    constant, slope = parameters.defocus
    defocus = constant + slope * disparity / scale
    weight = (1j * slopes + slope * laplacian) * mean
    residual = views[0] - views[1] + defocus * laplacian * mean
    planes = [
        fft.irfft2(plane, s=texture.shape)
        for plane in (weight, residual, weight * smoothing, laplacian * mean)
    ]
    side = (2 * parameters.window_halves[-1] + 1) * parameters.cell_side * scale
    sums = _window_means(planes, side, _margin_px(optics, depth_m, smoothing_px))
    gains = noise_gains(smoothing_px / scale)
    both = float(np.mean(smoothing**4 * slopes**2))
    energy = np.maximum(sums["gg"], 1e-30)
    # Windows are cut out before noise is smoothed: beyond their border there is no weight.
    seen = parameters.energy_share[-1] * sums["vv"]
    return FitErrors(
        per_noise_px=scale * np.sqrt(2 * seen) / side / energy,
        per_noise2_px=scale * np.sqrt(both) / side / energy,
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
def _filters(shape: tuple[int, ...], scale: int, smoothing_px: float) -> tuple[FloatArray, ...]:
    """Transfer functions on the frequencies of a picture, and the frequencies in cycles/px.

    The smoothing, the imaginary part of the derivative along x per pixel of the scale, and the
    Laplacian per square pixel of the scale.
    """
    down = np.fft.fftfreq(shape[0])[:, np.newaxis]
    across = np.fft.rfftfreq(shape[1])[np.newaxis, :]
    radius = np.hypot(down, across)
    w_y, w_x = (2 * np.pi * scale * frequency for frequency in (down, across))
    kept = np.maximum(np.abs(w_y), np.abs(w_x)) <= np.pi
    smoothing = np.where(kept, np.exp(-2 * np.square(np.pi * smoothing_px * radius)), 0.0)
    slope = np.broadcast_to((8 * np.sin(w_x) - np.sin(2 * w_x)) / 6, radius.shape)
    laplacian = 2 * np.cos(w_x) + 2 * np.cos(w_y) - 4
    return smoothing, slope, np.asarray(laplacian), radius


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
