"""Window matching over a grid of disparities, shared by phase, guo2017, li2010 and takeda2013.

`PaddedFft` blurs and shifts whole views. A method gives one cost image per disparity.
`RunningMinimum` keeps the smallest cost of each pixel, its two neighbours for a parabola, and the
best disparity of the right view for the left-right check. `estimate_by_search` runs a method over
the grid and makes its `DepthMap`.
"""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import MinConfidence, Options, PrefilterSigma, Window
from d3s.lab.peers.common import (
    RANGE_MARGIN_PX,
    Flags,
    Float32Array,
    MethodCall,
    NormalisedPair,
    box_mean,
    gaussian_radius_px,
    inside_frame,
    is_constant,
    normalise_pair,
)
from d3s.rig import Optics
from d3s.runtime.parallel import thread_count
from d3s.types import FloatArray

Spectrum = NDArray[np.complex64]
"""Half spectrum of a real image, as `scipy.fft.rfft2` returns it."""


class PaddedFft(NamedTuple):
    """Fourier transform of frames with a padded margin.

    The margin mirrors the frame and fades to the mean, so that a shift or blur does not wrap
    content around from the opposite side.
    """

    shape: tuple[int, int]  # rows and columns of the frame
    margin: tuple[int, int]  # rows and columns added before the frame; after it, at least as many
    size: tuple[int, int]  # padded rows and columns, rounded up to a fast transform length

    @classmethod
    def with_margin(
        cls, shape: tuple[int, int], margin_y_px: float, margin_x_px: float
    ) -> "PaddedFft":
        """Transform with a margin on each side: the widest blur; along x plus the largest shift."""
        from scipy.fft import next_fast_len  # importing scipy takes longer than the rest of d3s

        margin = int(np.ceil(margin_y_px)), int(np.ceil(margin_x_px))
        rows, cols = (n + 2 * m for n, m in zip(shape, margin, strict=True))
        size = next_fast_len(rows, real=True), next_fast_len(cols, real=True)
        return cls(shape, margin, size)

    @property
    def frequency_x(self) -> FloatArray:
        """Horizontal frequencies in cycles/px, (1, n)."""
        return np.asarray(np.fft.rfftfreq(self.size[1])[np.newaxis, :], dtype=np.float64)

    @property
    def frequency_radius(self) -> FloatArray:
        """Radial frequencies in cycles/px, (m, n)."""
        frequency_y = np.fft.fftfreq(self.size[0])[:, np.newaxis]
        return np.asarray(np.hypot(frequency_y, self.frequency_x), dtype=np.float64)

    def spectra(self, views: NormalisedPair) -> tuple[Spectrum, Spectrum]:
        """Spectra of both views minus their common mean, which keeps a difference in level."""
        mean = 0.5 * (float(views[0].mean()) + float(views[1].mean()))
        return self._spectrum(views[0] - mean), self._spectrum(views[1] - mean)

    def _spectrum(self, view: FloatArray) -> Spectrum:
        from scipy.fft import rfft2

        sides = [
            (margin, size - extent - margin)
            for extent, margin, size in zip(self.shape, self.margin, self.size, strict=True)
        ]
        padded = np.pad(view, sides, mode="symmetric")
        fade_y, fade_x = (
            _fade(extent, *side) for extent, side in zip(self.shape, sides, strict=True)
        )
        padded *= fade_y[:, np.newaxis] * fade_x
        return np.asarray(rfft2(padded.astype(np.float32), workers=thread_count()))

    def shift_factor(self, shift_px: float) -> Spectrum:
        """Factor on a spectrum that shifts its image to the right by `shift_px`, (1, n)."""
        return np.asarray(np.exp(-2j * np.pi * shift_px * self.frequency_x), dtype=np.complex64)

    def image(self, spectrum: Spectrum) -> Float32Array:
        """Inverse transform, cut to the frame (rows, cols)."""
        from scipy.fft import irfft2

        padded = irfft2(spectrum, s=self.size, workers=thread_count())
        (top, side), (rows, cols) = self.margin, self.shape
        return np.ascontiguousarray(padded[top : top + rows, side : side + cols])


def _fade(extent: int, before: int, after: int) -> FloatArray:
    """Weight of 1 over the frame and a raised cosine down to 0 over the margins."""
    rise = 0.5 - 0.5 * np.cos(np.pi * (np.arange(before) + 0.5) / max(before, 1))
    fall = 0.5 + 0.5 * np.cos(np.pi * (np.arange(after) + 0.5) / max(after, 1))
    return np.concatenate([rise, np.ones(extent), fall])


SigmaFactor = Annotated[
    float, Field(gt=0, le=100, description="the factor on the predicted standard deviation")
]
Consistency = Annotated[
    float, Field(ge=-1, le=256, description="the largest left-right difference, -1 for no check")
]


class MatchingOptions(Options):
    """Options of every window-matching rival: error bar, left-right check, confidence."""

    unfiltered: ClassVar[dict[str, float]] = {"consistency_px": -1.0, "min_confidence": 0.0}

    # Chosen so that two thirds of the errors on the tuning planes are smaller than sigma.
    sigma_factor: SigmaFactor = 1.0
    # Rejects pixels visible in one view only, as OpenCV's matchers do. The papers have no
    # left-right check; without it a method gives a depth to occluded pixels.
    consistency_px: Consistency = 1.0
    min_confidence: MinConfidence = 0.0


class SearchOptions(MatchingOptions):
    """Options of the rivals that compute a cost at every disparity of a grid."""

    window_px: Window = Field(default=31, description="the side of the cost window, odd")
    prefilter_sigma_px: PrefilterSigma = 1.0
    # With 1 px the parabola is too coarse where the views are sharp: up to twice the error at
    # 0.9 m.
    step_px: float = Field(
        default=0.5, ge=0.1, le=4, description="the disparity from one depth to the next"
    )
    # Graph cuts and the smallest residual give a label, and neither paper says that it refines it.
    # Between labels of a pixel lie 7 cm at 1.3 m: `d3s reproduce order`.
    labels: Literal["subpixel", "whole"] = Field(
        default="subpixel",
        description="whether a parabola refines the best step, or disparities are whole pixels",
    )

    @property
    def grid_step_px(self) -> float:
        """Disparity from one label to the next: a pixel for whole labels."""
        return 1.0 if self.labels == "whole" else self.step_px


# Costs over a grid of disparities -----------------------------------------------------------------


class DisparityGrid(NamedTuple):
    """Evenly spaced disparities to try, increasing."""

    disparity_px: FloatArray  # (n,)
    step_px: float

    @classmethod
    def covering(
        cls, optics: Optics, range_m: tuple[float, float], step_px: float, cols: int
    ) -> "DisparityGrid | None":
        """Grid over a range of depths; None if fewer than three disparities fit into the frame.

        All disparities are whole multiples of the step, and below `cols`, the columns of a view.
        """
        nearest_px, farthest_px = (float(one) for one in optics.disparity_px(range_m))
        # Disparities at or beyond infinity have no depth and so no blur: stay half way before it.
        least_px = 0.5 * (farthest_px + optics.disparity_offset_px)
        lowest = max(farthest_px - RANGE_MARGIN_PX, least_px, 1.0 - cols)
        highest = min(nearest_px + RANGE_MARGIN_PX, cols - 1.0)
        # With whole multiples a step of one pixel needs no interpolation.
        multiples = np.arange(np.ceil(lowest / step_px), np.floor(highest / step_px) + 1)
        return cls(multiples * step_px, step_px) if multiples.size >= 3 else None


class Parabola(NamedTuple):
    """Vertex of the parabola through a smallest cost and its two neighbours."""

    offset: FloatArray  # position of the vertex, in steps from the middle
    least: FloatArray  # cost at the vertex
    curvature: FloatArray  # rise of the cost one step away from the vertex

    @classmethod
    def through(cls, before: ArrayLike, middle: ArrayLike, after: ArrayLike) -> "Parabola":
        """Fit three costs one step apart, the middle one the least; NaN where not convex."""
        first, mid, last = (np.asarray(one, dtype=np.float64) for one in (before, middle, after))
        curvature = 0.5 * (first + last) - mid
        with np.errstate(divide="ignore", invalid="ignore"):
            offset = np.where(curvature > 0, 0.25 * (first - last) / curvature, np.nan)
        return cls(offset, mid - curvature * offset**2, curvature)

    def sigma_px(self, step_px: float, samples: float) -> FloatArray:
        """Standard deviation of the vertex position in px, for a mean-square cost.

        A mean of squared residuals over n independent samples that is r at its minimum and grows
        by c one step away has a minimum known to sqrt(r / (n c)) steps, if all of r is noise.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.maximum(self.least, 0.0) / self.curvature
        return np.asarray(step_px * np.sqrt(share / samples))


class RunningMinimum:
    """Smallest of the cost images added one at a time, per pixel of the left view.

    Keeps a few images instead of the whole cost volume. The same costs, sorted by the matched
    column, give the best disparity of each right pixel for the left-right check.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.count = 0
        self.index = np.full(shape, -1, dtype=np.int32)  # number of the smallest cost
        self.least = np.full(shape, np.inf, dtype=np.float32)
        self._before = np.full(shape, np.nan, dtype=np.float32)
        self._after = np.full(shape, np.nan, dtype=np.float32)
        self._last = np.full(shape, np.nan, dtype=np.float32)
        self._sum = np.zeros(shape, dtype=np.float32)
        self._right_least = np.full(shape, np.inf, dtype=np.float32)
        self._right_px = np.full(shape, np.nan, dtype=np.float32)

    def add(self, cost: Float32Array, disparity_px: float) -> None:
        """Add the cost image (rows, cols) of the next disparity; of equal costs the first wins."""
        np.copyto(self._after, cost, where=self.index == self.count - 1)
        is_better = cost < self.least
        np.copyto(self.least, cost, where=is_better)
        np.copyto(self.index, self.count, where=is_better)
        np.copyto(self._before, self._last, where=is_better)
        np.copyto(self._after, np.nan, where=is_better)
        self._last = cost
        self._sum += cost
        self.count += 1
        left, right = _overlap(cost.shape[1], round(disparity_px))
        is_better = cost[:, left] < self._right_least[:, right]
        np.copyto(self._right_least[:, right], cost[:, left], where=is_better)
        np.copyto(self._right_px[:, right], disparity_px, where=is_better)

    def left_right_difference_px(self, disparity_px: FloatArray) -> FloatArray:
        """Absolute difference to the best disparity of the matched right pixel; NaN outside."""
        cols = disparity_px.shape[1]
        column = np.rint(np.arange(cols) - np.nan_to_num(disparity_px)).astype(np.intp)
        right_px = np.take_along_axis(self._right_px, np.clip(column, 0, cols - 1), axis=1)
        inside = (column >= 0) & (column < cols)
        return np.where(inside, np.abs(disparity_px - right_px), np.nan)

    @property
    def parabola(self) -> Parabola:
        """Parabola through the smallest cost and its neighbours; NaN at the ends of the grid."""
        return Parabola.through(self._before, self.least, self._after)

    @property
    def distinctness(self) -> FloatArray:
        """One minus the smallest cost over the mean cost, from 0 to 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(1.0 - self.least * self.count / self._sum, dtype=np.float64)


def _overlap(cols: int, shift: int) -> tuple[slice, slice]:
    """Columns of the left view that have a match at a whole disparity, and the matched columns."""
    return slice(max(shift, 0), cols + min(shift, 0)), slice(max(-shift, 0), cols - max(shift, 0))


def independent_samples(window_px: int, sigma_px: float) -> float:
    """Number of pixels with independent noise in a window, after a Gaussian prefilter."""
    return max(window_px**2 / max(4.0 * np.pi * sigma_px**2, 1.0), 1.0)


# Block matching -----------------------------------------------------------------------------------


class BlockMatch(NamedTuple):
    """Result of `block_match`, each (rows, cols)."""

    disparity_px: FloatArray
    left_right_difference_px: FloatArray


def block_match(
    left: FloatArray, right: FloatArray, grid: DisparityGrid, window_px: int
) -> BlockMatch:
    """Minimise the sum of squared differences over windows: the starting point of other methods.

    The mean of each view over the window is subtracted first, which removes vignetting. The
    subpixel part is from a parabola; the first and last disparity of the grid have none.

    `grid` has whole disparities; the window is odd.
    """
    first, second = (
        np.asarray(view - box_mean(view, window_px), dtype=np.float32) for view in (left, right)
    )
    best = RunningMinimum((first.shape[0], first.shape[1]))
    cols = first.shape[1]
    for shift in grid.disparity_px.astype(int):
        column = np.clip(np.arange(cols) - shift, 0, cols - 1)
        best.add(box_mean((first - second[:, column]) ** 2, window_px), float(shift))
    disparity_px = grid.disparity_px[best.index] + np.nan_to_num(best.parabola.offset)
    return BlockMatch(disparity_px, best.left_right_difference_px(disparity_px))


# From disparity to the result ---------------------------------------------------------------------


class MatchedDisparity(NamedTuple):
    """Result of a matcher for each pixel of the left view, each (rows, cols)."""

    disparity_px: FloatArray  # NaN where there is none
    left_right_difference_px: FloatArray  # NaN where the right view has no match
    sigma_px: FloatArray  # standard deviation of the disparity, before `sigma_factor`
    confidence: FloatArray  # 0 to 1


Search = Callable[[NormalisedPair, DisparityGrid, Optics, Any], tuple[MatchedDisparity, float]]
"""Function of (views, grid, optics, options): disparities, and the widest blur radius in px."""


def estimate_by_search(call: MethodCall, search: Search) -> DepthMap:
    """Run a search over the disparities of the call's depth range.

    Without contrast, or in a frame smaller than a window, the result has no depth.
    """
    pair = normalise_pair(call.views)
    if pair is None:
        return call.finish_empty(Flag.LOW_TEXTURE)
    options, optics = call.options, call.rig.optics
    grid = DisparityGrid.covering(optics, call.range_m, options.grid_step_px, call.shape[1])
    if grid is None or min(call.shape) < options.window_px:
        return call.finish_empty(Flag.BORDER)
    found, blur_px = search(pair, grid, optics, options)
    radius_px = gaussian_radius_px(options.prefilter_sigma_px) + int(np.ceil(blur_px))
    flags = flag_matches(call, pair[0], found, options.window_px, radius_px)
    # Without a parabola the smallest cost is at an end of the grid, or equals its neighbours.
    flags[np.isnan(found.disparity_px) & (flags == 0)] |= np.uint16(Flag.OUT_OF_RANGE)
    sigma_px = options.sigma_factor * found.sigma_px
    if options.labels == "whole":  # and the rounding
        sigma_px = np.hypot(sigma_px, grid.step_px / np.sqrt(12))
    return call.finish_disparity(flags, found.disparity_px, sigma_px, found.confidence)


def flag_matches(
    call: MethodCall, left: FloatArray, found: MatchedDisparity, window_px: int, radius_px: int
) -> Flags:
    """Flags (rows, cols): border, texture, range, left-right check, confidence, invalid input.

    `left` is the left view of the normalised pair. `radius_px` is that of all filters before the
    window: as far as a NaN pixel spreads beyond it.
    """
    options = call.options
    flags = np.zeros(call.shape, dtype=np.uint16)
    # Views are mirrored at their borders, so half of the window inside the frame is enough.
    flags[~inside_frame(call.shape, window_px // 4)] |= np.uint16(Flag.BORDER)
    flags[is_constant(left, window_px | 1)] |= np.uint16(Flag.LOW_TEXTURE)
    call.flag_disparity(flags, found.disparity_px)
    if options.consistency_px >= 0:
        is_inconsistent = found.left_right_difference_px > options.consistency_px
        flags[is_inconsistent] |= np.uint16(Flag.INCONSISTENT)
    flags[~(found.confidence >= options.min_confidence)] |= np.uint16(Flag.LOW_CONFIDENCE)
    call.flag_invalid(flags, found.disparity_px, window_px // 2 + radius_px)
    return flags
