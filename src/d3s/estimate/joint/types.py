"""Records that the stages of the joint method and its compiled loops exchange.

A cell is the square of 1 x 1 or 2 x 2 pixels that has one disparity. A scale is the number of frame
pixels per pixel of a shrunk view: 1, 2 or 4. A step counts whole shifts from the first one.
"""

from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.rig.variance import DisparityVariance

Array = NDArray[Any]
"""Floating-point numbers in single precision."""
Planes = NDArray[np.float32]
"""Several images (planes, rows, cols)."""
Counts = NDArray[np.uint8]
Indices = NDArray[np.int64]
Bits = NDArray[np.uint16]
"""Combinations of `d3s.estimate.flags.Flag`."""
Steps = NDArray[np.int16]
"""Whole shifts, counted from the first one searched."""
Real = float | np.float32
"""A number in single precision."""
Costs = NDArray[np.uint8]
"""Matching costs (rows, cols, shifts), the shifts padded to a multiple of `COST_PADDING`."""

# Numbers of the search.
MAX_COST = 255
CENSUS_WEIGHT = 8  # cost of a neighbour whose order differs, in units of the slope
MAX_SLOPE = 30  # largest slope; also the largest cost of slopes is twice this
# Nine pixels cost at most 9 (24 * 8 + 2 * 30) = 2268; 2268 * 14 / 2^7 = 248 fits into a byte.
COST_FACTOR, COST_SHIFT = 14, 7
MAX_PENALTY = 7500  # larger penalties act as prohibitions: this is 29 times MAX_COST
FORBIDDEN_TOTAL = 32000  # path total of a forbidden shift; above any other, 4 (255 + 7500)
COST_PADDING = 16  # SIMD width of the compiled search

# Added to margin and misfit before their logarithms are taken.
SMALL_MARGIN, SMALL_MISFIT = 0.02, 0.3

# Numbers of the fit.
TINY = 1e-30
# Mean squared gradient of a window without texture: the rounding of views whose range is about 1.
FLAT = 1e-14
UNKNOWN_PX = 1e4  # sigma of cells without a fit; finite, because sigma is interpolated
MIN_SIGMA_PX = 1e-4  # smallest sigma of a disparity, to keep its precision finite


class DefocusLine(NamedTuple):
    """Half the difference of the blur variances, right less left, as a line over the disparity."""

    constant: Real  # at disparity 0, in px²
    slope: Real  # in px² per px


class PathResult(NamedTuple):
    """Best shift of each pixel by path totals, and by how much it is the best."""

    step: Array  # sub-pixel, from the first shift
    lowest: Steps  # whole step of the lowest total
    total: Steps  # path total at `lowest`
    margin: Array  # share by which `total` is below the lowest one two or more shifts away, 0 to 1


class SearchResult(NamedTuple):
    """Result of the search, one value per pixel of the search's scale."""

    step: Array  # sub-pixel, from the first shift
    margin: Array  # as in `PathResult`, mean over a window; 0 where the texture repeats
    right_step: Steps  # step that the right view chose for this point; -1 if out of the frame


class SurfaceLimits(NamedTuple):
    """Limit on the extent of the disparities within a window that lies on one surface."""

    least: Real  # always allowed, in pixels of the scale
    share: Real  # allowed share of the disparity beyond `zero`
    zero: Real  # disparity at infinity, in pixels of the scale


class FitParameters(NamedTuple):
    """Parameters of the window fit at one scale; lengths in pixels of the scale."""

    view_shape: tuple[int, int]
    cell_side: int
    window_halves: tuple[int, ...]  # half sides of the windows in cells, increasing
    defocus: DefocusLine
    max_move: float  # distance from its start that a disparity may move
    anchor_sigma: float  # standard deviation of the disparity of the search
    agreement_sigmas: float  # distance between nested windows on one surface, in sigmas
    unexplained_share: float  # share of the residual beyond noise that counts as noise
    bend_share: float  # share of a surface's bend that is an error of the disparity
    bend_noise: float  # squared bend that noise makes, over the mean variance of the windows
    smoothed_gain: float  # variance of white noise of variance 1 in the smoothed views,
    laplacian_gain: float  # in their Laplacians,
    gradient_gain: float  # and in their derivatives
    noise_area: float  # pixels per independent sample of the noise
    cell_taps: tuple[float, ...]  # filter that smooths the means of cells as the views were
    energy_share: tuple[float, ...]  # per window, share of the smoothed energy it keeps
    chance_correlation: tuple[float, ...]  # per window, correlation that chance may make


class CellSum(IntEnum):
    """Planes of the sums over the pixels of each cell."""

    G = 0  # derivative g of the residual by the disparity
    H = 1  # h = g d - e, d being the disparity at which the residual was taken
    GG = 2
    GH = 3
    E = 4  # residual e: left view less right view, blurred alike
    EE = 5
    SS = 6  # square of the part of g that comes from the shift alone
    M = 7  # mean of both views
    MM = 8
    U = 9  # g, smoothed once more
    UU = 10


class BlurPlane(IntEnum):
    """Planes of the difference of blur of each cell."""

    XX = 0  # half the difference of the blur variances, right less left, along x
    XY = 1
    YY = 2
    HIGHER = 3  # rows by which the right view lies higher
    XX_SLOPE = 4  # derivative of the first three by the disparity
    XY_SLOPE = 5
    YY_SLOPE = 6
    COMA_X = 7  # third of coma times blur variance, left less right, along x
    COMA_Y = 8
    EVEN = 9  # difference, alike in all directions, that passes as much noise into the residual


COMA_NOISE = 9.5 / 20
"""Variance that a derivative of the Laplacian makes of white noise, over that of the Laplacian."""


class WindowFit(NamedTuple):
    """Least-squares fit of each cell at one scale; lengths in pixels of the scale."""

    disparity: Array
    sigma: Array
    correlation: Array  # of both views in the window, beyond what chance may make, 0 to 1
    misfit: Array  # residual of 3 x 3 cells over what noise and lenses explain
    centroid_down: Array  # from the cell to the centroid of its window's texture, in cells
    centroid_across: Array
    window: Counts  # index of the window that was used


class CellFit(NamedTuple):
    """Fit of each cell of the frame; lengths in pixels of the frame.

    All fields but `flags` are images that are interpolated between scales, whatever their
    number: a new quantity per cell is a new field before `flags`.
    """

    disparity_px: Array
    sigma_px: Array
    bend_px: Array  # error that a curved surface may add
    correlation: Array
    misfit: Array
    flags: Bits  # BORDER, INVALID_INPUT, SATURATED


class Evidence(NamedTuple):
    """Evidence about wrong disparities, one image of cells each."""

    margin: Array  # margin of the search
    least: Array  # least margin close by
    step_px: Array  # distance to a step in depth, in pixels of the frame
    misfit: Array  # residual of 3 x 3 cells over what noise and lenses explain
    move: Array  # distance of the fit from the search, in pixels of the search
    gap_px: Array  # gap between ridges of texture around the cell, in pixels of the frame
    nearest_px: Array  # distance to the nearest ridge of the same surface


class TrustModel(NamedTuple):
    """Coefficients of the logistic model of wrong disparities."""

    constant: Real
    margin: Real  # of ln(margin + 0.02)
    least: Real  # of ln(least + 0.02)
    step: Real  # of ln(1 + step_px)
    misfit: Real  # of ln(misfit + 0.3)
    move: Real  # of the move, at most 1
    gap: Real  # of ln(1 + gap_px)


class Trust(NamedTuple):
    """Probability of each cell that its disparity is wrong, and its distance to texture."""

    wrong: Array  # probability that it is wrong by more than a pixel
    carried_px: Array  # distance to the nearest texture of the same surface, in pixels


class ConfidenceParameters(NamedTuple):
    """Camera, options and thresholds that turn a fit into depth, sigma, confidence and flags."""

    frame_shape: tuple[int, int]
    cell_side: int  # 1 or 2 pixels
    per_dpt_px: float  # disparity per dioptre
    offset_px: float  # disparity at infinity
    calibration: DisparityVariance  # by errors of the calibration
    nearest_m: float
    farthest_m: float
    min_confidence: float
    wrong_at_half_confidence: float  # probability of being wrong
    sigma_at_half_confidence_px: float
    sigma_at_half_confidence_per_px: float  # or this times the squared disparity, if larger
    wrong_variance_px2: float  # of a disparity that is wrong
    harmless_wrong: float  # probability that adds nothing to sigma
    max_carried_px: float  # distance to texture beyond which a depth is flagged as carried over
    min_correlation: float
    max_misfit: float
    remarks: int  # flags of pixels that keep their depth
    enclosed_confidence: float  # factor on the confidence in gaps


class DepthPlanes(NamedTuple):
    """Depth, sigma, confidence and flags of each pixel, in single precision."""

    depth_m: Array
    sigma_m: Array
    confidence: Array
    flags: Bits


@lru_cache(maxsize=256)
def window_pixels(size: int, cell_side: int, halves: tuple[int, ...]) -> NDArray[np.float32]:
    """Return how many pixels along an axis each window of each cell has inside the frame.

    Parameters
    ----------
    size
        Pixels of the view along the axis.
    cell_side
        Pixels of a cell along the axis.
    halves
        Half sides of the windows, in cells.

    Returns
    -------
    Array (windows, cells).
    """
    place = np.arange(-(-size // cell_side))
    half = np.array(halves)[:, np.newaxis]
    first, last = (place - half) * cell_side, (place + half + 1) * cell_side
    return np.asarray(np.minimum(last, size) - np.maximum(first, 0), dtype=np.float32)
