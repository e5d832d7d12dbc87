"""Dual-focus stereo, after Li, Sun, Wang and Yu (Journal of Electronic Imaging 19, 2010).

"Dual-focus stereo imaging": two cameras with wide apertures, focused differently. At each depth
that is tried the blur of both is known from its disparity, so the views can be made equally blurred
before they are compared: each is blurred as the other one is. A global energy then weighs how well
they match against how smooth the disparity is.

Assumes a Gaussian blur, one depth within a window, and surfaces that are smooth but for steps.

What is different here:

- The paper finds the cameras' constants from salient features and refines its map of blurs in turn
  with the disparities. Here the rig is known, so that the blur follows from the depth at once.
- Its energy is minimised by graph cuts; here costs are gathered along four paths as in semi-global
  matching (Hirschmüller, 2008), with a small price for a step of one hypothesis and one price for
  all larger ones. That bounds time and memory, and is known to come near on two views.
- The paper blurs each view as the other one is. By default only the sharper one is blurred here,
  until both are alike, which leaves more texture; `equalise="both"` is as the paper has it.
- Squares of differences are divided by the contrast of both windows. Otherwise the depth with the
  widest blur would win, for no reason but that blurred views differ less.
- Gathered costs choose the depth; its fraction comes from a parabola through the costs as they
  were, since prices for steps pull to whole steps.
- The right view is asked too, by the same gathered costs, and where the two disagree there is no
  depth.
- `sigma_m` is the width of that parabola, by the difference that is left, times a factor that was
  found on the tuning textures. `confidence` is how far that difference is below the mean of all.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.options import Window
from d3s.peers.common import Job, box_mean, kernel_reach_px
from d3s.peers.fourier import Plane, Single
from d3s.peers.hypotheses import Hypotheses, Minimum, Winner, independent_samples
from d3s.peers.search import Found, SearchOptions, Views, searched
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image

Volume = NDArray[np.uint16]

# Costs are kept as whole numbers; two is the largest, of views that are each other's negative.
_LEVELS = 64_000
_LARGEST_COST = 2.0
# What is gathered is coarser, so that four paths fit into 16 bits.
_SHIFT_BITS = 6
_LARGEST_PRICE = 20.0
# Of the contrast of full scale: what is below it is rounding.
_LEAST_POWER = 1e-9


class Li2010Options(SearchOptions):
    """Choices for dual-focus stereo.

    Defaults by benchmarks/tune_peers.py.
    """

    # The larger the less noise: 31 px are a quarter worse on planes. Beyond 41 px scenes lose.
    window_px: Window = Field(default=41, description="the side of the window of the costs, odd")
    # Both as the paper has it. The same blur that both have in the end can be had by blurring the
    # sharper one alone, which leaves more texture: a quarter less error beyond 1.2 m.
    equalise: Literal["both", "sharper"] = Field(
        default="sharper", description="which view is blurred until both are alike"
    )
    # Costs of neighbours are of windows that overlap, so that a false best lasts for a window's
    # side: prices of less than a cost change little. On scenes 8 and 16 are alike.
    smoothness: float = Field(
        default=4.0,
        ge=0,
        le=_LARGEST_PRICE,
        description="the price of a step in depth, in costs of 0 to 2",
    )
    # Of no effect on planes, and hardly any on scenes.
    small_step_share: float = Field(
        default=0.3, ge=0, le=1, description="the share of it that a single step costs"
    )
    # Leaves out windows that hold two surfaces: with 0.8 the error on scenes is five times as
    # large, at a tenth more of the pixels.
    min_confidence: float = Field(
        default=0.95, ge=0, le=1, description="the confidence that a depth must reach"
    )


def estimate_li2010(left: Image, right: Image, rig: Rig, options: Li2010Options) -> DepthMap:
    """Blur both views alike at each depth, compare them, and choose depths that are smooth."""
    return searched(Job.start("li2010", left, right, rig, options), _search)


def _search(
    views: Views, tried: Hypotheses, optics: Optics, options: Li2010Options
) -> tuple[Found, float]:
    extra_px2 = _extra_variances_px2(optics, tried, options)
    costs = _costs(views, tried, extra_px2, options)
    large = round(options.smoothness * _LEVELS / _LARGEST_COST) >> _SHIFT_BITS
    small = round(options.small_step_share * large)
    sums = gathered(costs, small, large, shift_bits=_SHIFT_BITS)
    winner = Winner((costs.shape[0], costs.shape[1]))
    for number, shift_px in enumerate(tried.disparity_px):
        winner.add(sums[..., number].astype(np.float32), float(shift_px))
    return _found(costs, winner, tried, options), kernel_reach_px(float(np.sqrt(extra_px2.max())))


def _extra_variances_px2(optics: Optics, tried: Hypotheses, options: Li2010Options) -> FloatArray:
    """How much more each view must be blurred for both to be alike, (views, depths)."""
    depth_m = optics.depth_m(tried.disparity_px)
    left, right = (optics.blur_sigma_px(depth_m, camera) ** 2 for camera in (0, 1))
    if options.equalise == "both":
        return np.stack([right, left])
    return np.maximum(np.stack([right - left, left - right]), 0.0)


def _costs(
    views: Views,
    tried: Hypotheses,
    extra_px2: FloatArray,
    options: Li2010Options,
) -> Volume:
    """Normalised squares of differences, (rows, cols, depths), 0 to `_LEVELS`."""
    blur_px2 = extra_px2 + options.prefilter_sigma_px**2
    reach_px = kernel_reach_px(float(np.sqrt(blur_px2.max())))
    rows, cols = views[0].shape
    plane = Plane.around((rows, cols), reach_px, reach_px + np.abs(tried.disparity_px).max())
    left, right = plane.spectra(views)
    exponent = (-2 * np.pi**2 * plane.radius**2).astype(np.float32)
    costs = np.empty((rows, cols, tried.disparity_px.size), dtype=np.uint16)
    for number, shift_px in enumerate(tried.disparity_px):
        kernels = [np.exp(exponent * np.float32(variance)) for variance in blur_px2[:, number]]
        first = plane.image(left * kernels[0])
        second = plane.image(right * kernels[1] * plane.moved(shift_px))
        cost = _normalised_squares(first, second, options.window_px)
        costs[..., number] = np.rint(cost * (_LEVELS / _LARGEST_COST))
    return costs


def _normalised_squares(first: Single, second: Single, window_px: int) -> Single:
    """Square of the difference over the sum of the squares, about the means of a window; 0 to 2."""
    means = box_mean(first, window_px), box_mean(second, window_px)
    powers = (
        box_mean(first**2, window_px)
        - means[0] ** 2
        + box_mean(second**2, window_px)
        - means[1] ** 2
    )
    squares = box_mean((first - second) ** 2, window_px) - (means[0] - means[1]) ** 2
    share = squares / np.maximum(powers, np.float32(_LEAST_POWER))
    return np.asarray(np.clip(share, 0, _LARGEST_COST), dtype=np.float32)


def gathered(costs: Volume, small: int, large: int, *, shift_bits: int = 0) -> Volume:
    """Sum of the costs along four paths to each pixel, with prices for steps of one and of more.

    Paths come from the left, the right, above and below; semi-global matching of Hirschmüller. The
    lowest bits of the costs can be left out.
    """
    total = np.zeros_like(costs)
    turned, sums = costs.swapaxes(0, 1), total.swapaxes(0, 1)
    for volume, out in ((costs, total), (turned, sums)):
        for order in (range(volume.shape[0]), range(volume.shape[0] - 1, -1, -1)):
            path: NDArray[np.uint16] | None = None
            for line in order:
                own = np.right_shift(volume[line], np.uint16(shift_bits))
                path = _next(own, path, np.uint16(small), np.uint16(large))
                out[line] += path
    return total


def _next(
    costs: NDArray[np.uint16],
    path: NDArray[np.uint16] | None,
    small: np.uint16,
    large: np.uint16,
) -> NDArray[np.uint16]:
    """One step of the paths of a line, (pixels, depths)."""
    if path is None:
        return costs
    relative = path - path.min(axis=1, keepdims=True)
    best = np.minimum(relative, large)
    np.minimum(best[:, 1:], relative[:, :-1] + small, out=best[:, 1:])
    np.minimum(best[:, :-1], relative[:, 1:] + small, out=best[:, :-1])
    return np.asarray(best + costs, dtype=np.uint16)


def _found(costs: Volume, winner: Winner, tried: Hypotheses, options: Li2010Options) -> Found:
    last = costs.shape[2] - 1
    inner = np.clip(winner.index.astype(np.intp), 1, last - 1)
    before, middle, after = (_taken(costs, inner + step) for step in (-1, 0, 1))
    # The chosen depth need not be the least by itself: its better neighbour is the middle then.
    inner = np.clip(inner + (after < middle) - (before < np.minimum(middle, after)), 1, last - 1)
    before, middle, after = (_taken(costs, inner + step) for step in (-1, 0, 1))
    minimum = Minimum.through(before, middle, after)
    samples = independent_samples(options.window_px, options.prefilter_sigma_px)
    with np.errstate(divide="ignore", invalid="ignore"):
        confidence = 1.0 - minimum.least / costs.mean(axis=2, dtype=np.float64)
    disparity_px = tried.disparity_px[inner] + tried.step_px * np.clip(minimum.offset, -1, 1)
    # Where the best is the first or the last, there is nothing to tell that it is the least.
    disparity_px[(winner.index == 0) | (winner.index == last)] = np.nan
    return Found(
        disparity_px=disparity_px,
        sigma_px=minimum.sigma_px(tried.step_px, samples),
        confidence=confidence,
        disagreement_px=winner.disagreement_px(disparity_px),
    )


def _taken(costs: Volume, index: NDArray[np.intp]) -> FloatArray:
    return np.take_along_axis(costs, index[..., np.newaxis], axis=2)[..., 0].astype(np.float64)
