"""Dual-focus stereo, after Li, Sun, Wang and Yu (Journal of Electronic Imaging 19, 2010).

Paper: "Dual-focus stereo imaging".

Taken from the paper: two cameras with wide apertures, focused at different distances. The blur of
both follows from the disparity, so at each disparity tried the views can be blurred until they are
equally blurred, and only then compared. A global energy weighs the matching cost against the
smoothness of the disparity. The model assumes a Gaussian blur, one depth per window, and surfaces
that are smooth except for steps.

Different from the paper:

- The paper estimates the camera constants from salient features and alternates between its blur map
  and its disparities. Here the rig is known, so the blur follows from the depth directly.
- The paper minimises its energy by graph cuts. Here costs are aggregated along four paths as in
  semi-global matching (Hirschmüller, 2008), with a small penalty on a step of one disparity and a
  large one on longer steps. That bounds time and memory, and is known to come close on two views.
- The paper blurs each view by the blur of the other. By default only the sharper view is blurred
  here, which leaves more texture; `equalise="both"` does as the paper does.
- Squared differences are divided by the contrast of both windows. Otherwise the depth with the
  widest blur would win, only because blurred views differ less.
- Aggregated costs choose the disparity. The subpixel part is from a parabola through the
  unaggregated costs, because step penalties pull to whole steps. The paper's graph cuts give whole
  labels; `labels="whole"` does as the paper does.
- A left-right check, from the same aggregated costs, rejects pixels visible in one view only.

`sigma_m` is from the width of that parabola and its smallest cost, times a factor found on the
tuning textures. `confidence` is one minus the smallest cost over the mean cost.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.options import MinConfidence, Window
from d3s.lab.peers.common import (
    Float32Array,
    MethodCall,
    NormalisedPair,
    box_mean,
    gaussian_radius_px,
)
from d3s.lab.peers.matching import (
    DisparityGrid,
    MatchedDisparity,
    PaddedFft,
    Parabola,
    RunningMinimum,
    SearchOptions,
    estimate_by_search,
    independent_samples,
)
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Image

CostVolume = NDArray[np.uint16]
"""Cost of each pixel at each disparity (rows, cols, disparities)."""

# Costs are stored as 0.._COST_LEVELS; the largest cost, of two views that are each other's
# negative, is 2.
_COST_LEVELS = 64_000
_LARGEST_COST = 2.0
# Costs lose this many low bits before aggregation, so that the sum of four paths fits into 16 bits.
_AGGREGATION_SHIFT_BITS = 6
_LARGEST_PENALTY = 20.0
# Variance below which a window is constant up to rounding, relative to full scale squared.
_MIN_VARIANCE = 1e-9


class Li2010Options(SearchOptions):
    """Options of dual-focus stereo.

    Defaults by benchmarks/tune_peers.py.
    """

    # A larger window has less noise: 31 px are a quarter worse on planes. Beyond 41 px scenes get
    # worse.
    window_px: Window = Field(default=41, description="the side of the cost window, odd")
    # The paper blurs both views. Blurring only the sharper one leaves more texture: a quarter less
    # error beyond 1.2 m.
    equalise: Literal["both", "sharper"] = Field(
        default="sharper", description="which view is blurred until both are equally blurred"
    )
    # Neighbouring cost windows overlap, so a false minimum is as wide as a window: penalties below
    # 1 change little. 8 and 16 are equal on scenes.
    smoothness: float = Field(
        default=4.0,
        ge=0,
        le=_LARGEST_PENALTY,
        description="the penalty on a step in disparity, in units of the cost of 0 to 2",
    )
    # No effect on planes, almost none on scenes.
    small_step_share: float = Field(
        default=0.3, ge=0, le=1, description="the share of the penalty for a single step"
    )
    # Rejects windows that hold two surfaces: with 0.8 the error on scenes is five times as large,
    # for a tenth more pixels.
    min_confidence: MinConfidence = 0.95


def estimate_li2010(left: Image, right: Image, rig: Rig, options: Li2010Options) -> DepthMap:
    """Equalise the blur at each depth, compare the views, and choose a smooth depth map."""
    return estimate_by_search(MethodCall("li2010", (left, right), rig, options), _search)


def _search(
    pair: NormalisedPair, grid: DisparityGrid, optics: Optics, options: Li2010Options
) -> tuple[MatchedDisparity, float]:
    added_px2 = _added_variances_px2(optics, grid, options)
    costs = _cost_volume(pair, grid, added_px2, options)
    large = round(options.smoothness * _COST_LEVELS / _LARGEST_COST) >> _AGGREGATION_SHIFT_BITS
    small = round(options.small_step_share * large)
    sums = aggregate_costs(costs, small, large, shift_bits=_AGGREGATION_SHIFT_BITS)
    best = RunningMinimum((costs.shape[0], costs.shape[1]))
    for number, shift_px in enumerate(grid.disparity_px):
        best.add(sums[..., number].astype(np.float32), float(shift_px))
    blur_px = gaussian_radius_px(float(np.sqrt(added_px2.max())))
    return _disparities(costs, best, grid, options), blur_px


def _added_variances_px2(optics: Optics, grid: DisparityGrid, options: Li2010Options) -> FloatArray:
    """Blur variance to add to each view until both are equally blurred, (2, disparities)."""
    depth_m = optics.depth_m(grid.disparity_px)
    left, right = (optics.blur_sigma_px(depth_m, camera) ** 2 for camera in (0, 1))
    if options.equalise == "both":
        return np.stack([right, left])
    return np.maximum(np.stack([right - left, left - right]), 0.0)


def _cost_volume(
    pair: NormalisedPair, grid: DisparityGrid, added_px2: FloatArray, options: Li2010Options
) -> CostVolume:
    """Normalised squared differences, from 0 to `_COST_LEVELS`."""
    variance_px2 = added_px2 + options.prefilter_sigma_px**2
    radius_px = gaussian_radius_px(float(np.sqrt(variance_px2.max())))
    rows, cols = pair[0].shape
    widest_px = radius_px + np.abs(grid.disparity_px).max()
    fft = PaddedFft.with_margin((rows, cols), radius_px, widest_px)
    left, right = fft.spectra(pair)
    exponent = (-2 * np.pi**2 * fft.frequency_radius**2).astype(np.float32)
    costs = np.empty((rows, cols, grid.disparity_px.size), dtype=np.uint16)
    for number, shift_px in enumerate(grid.disparity_px):
        transfers = [np.exp(exponent * np.float32(one)) for one in variance_px2[:, number]]
        first = fft.image(left * transfers[0])
        second = fft.image(right * transfers[1] * fft.shift_factor(shift_px))
        cost = _normalised_difference(first, second, options.window_px)
        costs[..., number] = np.rint(cost * (_COST_LEVELS / _LARGEST_COST))
    return costs


def _normalised_difference(
    first: Float32Array, second: Float32Array, window_px: int
) -> Float32Array:
    """Variance of the difference over the sum of both variances in a window, from 0 to 2."""
    means = box_mean(first, window_px), box_mean(second, window_px)
    variances = (
        box_mean(first**2, window_px)
        - means[0] ** 2
        + box_mean(second**2, window_px)
        - means[1] ** 2
    )
    difference = box_mean((first - second) ** 2, window_px) - (means[0] - means[1]) ** 2
    cost = difference / np.maximum(variances, np.float32(_MIN_VARIANCE))
    return np.asarray(np.clip(cost, 0, _LARGEST_COST), dtype=np.float32)


def aggregate_costs(
    costs: CostVolume, small: int, large: int, *, shift_bits: int = 0
) -> CostVolume:
    """Sum of the path costs from the left, the right, above and below (Hirschmüller, 2008).

    `small` and `large` are penalties on a step of one disparity and of more, after `shift_bits` low
    bits of the costs were dropped, so that the sums fit into 16 bits.
    """
    total = np.zeros_like(costs)
    transposed, sums = costs.swapaxes(0, 1), total.swapaxes(0, 1)
    for volume, out in ((costs, total), (transposed, sums)):
        for order in (range(volume.shape[0]), range(volume.shape[0] - 1, -1, -1)):
            path: NDArray[np.uint16] | None = None
            for line in order:
                own = np.right_shift(volume[line], np.uint16(shift_bits))
                path = _extend_path(own, path, np.uint16(small), np.uint16(large))
                out[line] += path
    return total


def _extend_path(
    costs: NDArray[np.uint16], path: NDArray[np.uint16] | None, small: np.uint16, large: np.uint16
) -> NDArray[np.uint16]:
    """Path costs of the next line (pixels, disparities) from the costs of the line before."""
    if path is None:
        return costs
    relative = path - path.min(axis=1, keepdims=True)
    best = np.minimum(relative, large)
    np.minimum(best[:, 1:], relative[:, :-1] + small, out=best[:, 1:])
    np.minimum(best[:, :-1], relative[:, 1:] + small, out=best[:, :-1])
    return np.asarray(best + costs, dtype=np.uint16)


def _disparities(
    costs: CostVolume, best: RunningMinimum, grid: DisparityGrid, options: Li2010Options
) -> MatchedDisparity:
    """Subpixel disparities from the unaggregated costs around the aggregated minimum."""
    last = costs.shape[2] - 1
    inner = np.clip(best.index.astype(np.intp), 1, last - 1)
    before, middle, after = (_cost_at(costs, inner + step) for step in (-1, 0, 1))
    # A neighbour may have a smaller unaggregated cost than the chosen disparity: move there.
    inner = np.clip(inner + (after < middle) - (before < np.minimum(middle, after)), 1, last - 1)
    before, middle, after = (_cost_at(costs, inner + step) for step in (-1, 0, 1))
    parabola = Parabola.through(before, middle, after)
    samples = independent_samples(options.window_px, options.prefilter_sigma_px)
    with np.errstate(divide="ignore", invalid="ignore"):
        confidence = 1.0 - parabola.least / costs.mean(axis=2, dtype=np.float64)
    if options.labels == "whole":
        disparity_px = grid.disparity_px[best.index]
    else:
        disparity_px = grid.disparity_px[inner] + grid.step_px * np.clip(parabola.offset, -1, 1)
    # A minimum at an end of the grid has one neighbour only: the true one may lie outside.
    disparity_px[(best.index == 0) | (best.index == last)] = np.nan
    return MatchedDisparity(
        disparity_px=disparity_px,
        sigma_px=parabola.sigma_px(grid.step_px, samples),
        confidence=confidence,
        left_right_difference_px=best.left_right_difference_px(disparity_px),
    )


def _cost_at(costs: CostVolume, index: NDArray[np.intp]) -> FloatArray:
    """Cost of each pixel at its own disparity index (rows, cols)."""
    return np.take_along_axis(costs, index[..., np.newaxis], axis=2)[..., 0].astype(np.float64)
