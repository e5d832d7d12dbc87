"""`diagnose`: the numbers from which the cause of a poor depth map can be told."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.candidates import default_depth_range_m
from d3s.estimate.checked_pair import CheckedPair
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.diagnosis.blocks import Blocks, match_blocks
from d3s.estimate.diagnosis.grain import noise_grain
from d3s.estimate.diagnosis.light import Value, ViewDifferences, compare, robust_fit
from d3s.estimate.diagnosis.patches import matched_patches
from d3s.estimate.flags import Flag
from d3s.estimate.lens_field import lens_field
from d3s.types import FloatArray, Mask

# Density below which blocks are searched in all of the right view, and the share of pixels out of
# range above which they are.
_POOR_DENSITY, _MANY_OUT_OF_RANGE = 0.35, 0.1
# The same density if the depths leave no room for patches.
_SCATTERED_DENSITY = 0.6
# Methods whose depths are sparse by design are searched only if they are nearly empty.
_POOR_SPARSE_DENSITY = 0.15
_FEWEST_DEPTHS = 0.05  # density below which depths may all be chance
_SOME = 8  # every so many rows and columns are counted
_TOLERANCE_PX = 2.0  # beyond the range, for a block
_FEWEST_BLOCKS = 5
_SAME_ROWS_PX, _MOST = 1.5, 0.7  # blocks that agree on the rows, and how many have to
_ROTATION_LIMITS_PX = (40.0, 20.0, 10.0, 5.0, 3.0)  # each fit of a rotation uses blocks this near


class Found(NamedTuple):
    """Blocks of the left view found in the right one; shares are of the blocks that were found."""

    share: float  # of all blocks
    inside: float  # within the depth range
    mirrored: float  # within the range of swapped views, and not of these
    nearer: float  # nearer than the range
    farther: float  # farther than the range, or beyond infinity
    disparity_px: tuple[float, float]  # smallest and largest, without outliers
    rows_px: tuple[float, float]  # rows by which the right view lies lower: smallest and largest
    rows_agree: float  # share of the blocks that these rows fit
    gain: Value  # log of the contrast of the right view over the left one
    plain_left: float  # share of all blocks without texture, in the left view
    plain_right: float
    rich: float  # share of all blocks with strong texture in both views
    # Rows in the middle, and their change to the right edge and to the bottom, where blocks agree.
    rows_terms: tuple[Value, Value, Value] | None = None


class Diagnosis(NamedTuple):
    """Measured properties of a pair and its depth map; None where one cannot be measured."""

    density: float  # of every eighth pixel
    is_empty: bool  # whether no pixel at all has a depth
    missing: float  # share of the pixels without a value nearby
    clipped: float  # share of the pixels with a clipped one nearby
    clipped_white: float  # share of the pixels of both views at the largest value
    clipped_black: float  # and at the smallest
    uncertain: float  # share of the pixels with too little confidence
    constant: tuple[bool, bool]  # whether the left and the right view have a single value
    depth_range_m: tuple[float, float]
    comparison: ViewDifferences | None
    grain: Value | None
    found: Found | None
    ambiguous: float = 0.0  # share of the pixels where another depth fits about as well
    shape: tuple[int, int] = (1, 1)  # rows and columns of a view
    # Standard deviation of the disparity that sigma holds; None for pairs rectified elsewhere.
    held_px: float | None = None
    # Rows, roll and scale of the right view that the pair showed before it was aligned.
    turn: tuple[Value, Value, Value] | None = None
    crosstalk: tuple[float, float] | None = None  # shares that were taken out of both views
    is_aligned: bool = False  # whether that is taken out, and not too much is left


def diagnose(pair: CheckedPair, depth_map: DepthMap) -> Diagnosis:
    """Measure a pair and its depth map.

    A few milliseconds on an ordinary frame: light and noise are measured on patches. Blocks are
    searched only if the depth map is poor.

    Parameters
    ----------
    pair
        The views that the depth map was made of.
    depth_map
        Result of a method.
    """
    some = (slice(_SOME // 2, None, _SOME),) * 2
    if min(depth_map.flags.shape) <= _SOME:
        some = (slice(None),) * 2
    flags = depth_map.flags[some]
    density = float(np.isfinite(depth_map.depth_m[some]).mean())
    white, black, constant = _limits(pair, some)
    depth_range_m = _depth_range_m(depth_map)
    is_own = depth_map.method == "joint"
    comparison = grain = found = None
    if is_own and density > _FEWEST_DEPTHS:
        field = lens_field(depth_map.rig, depth_map.depth_m.shape)
        patches = matched_patches(*pair, depth_map.depth_m, depth_map.rig.optics, field)
        comparison, grain = compare(patches), noise_grain(patches)
    least = _POOR_DENSITY if comparison is not None else _SCATTERED_DENSITY
    is_poor = density < (least if is_own else _POOR_SPARSE_DENSITY)
    if is_poor or (is_own and _share(flags, Flag.OUT_OF_RANGE) > _MANY_OUT_OF_RANGE):
        blocks = match_blocks(*pair)
        found = None if blocks is None else _found(blocks, depth_map, depth_range_m)
    return Diagnosis(
        density=density,
        is_empty=not depth_map.valid.any(),
        missing=_share(flags, Flag.INVALID_INPUT),
        clipped=_share(flags, Flag.SATURATED),
        clipped_white=white,
        clipped_black=black,
        uncertain=_share(flags, Flag.LOW_CONFIDENCE),
        constant=constant,
        depth_range_m=depth_range_m,
        comparison=comparison,
        grain=grain if _rests_on_noise(depth_map) else None,
        found=found,
        ambiguous=_share(flags, Flag.AMBIGUOUS),
        shape=(depth_map.depth_m.shape[0], depth_map.depth_m.shape[1]),
        held_px=_held_px(depth_map),
    )


def _held_px(depth_map: DepthMap) -> float | None:
    if depth_map.rig.optics.aperture_radius_m == 0:
        return None
    given = getattr(depth_map.options, "rectification_sigma_px", None)
    age_days = getattr(depth_map.options, "calibration_age_days", 0.0)
    return depth_map.rig.rectification_sigma_px(age_days) if given is None else float(given)


def _rests_on_noise(depth_map: DepthMap) -> bool:
    """Return whether sigma rests on the noise of the views.

    A calibration may know the noise, and for a camera without aperture most of sigma is the assumed
    error of rectification.
    """
    calibration, options = depth_map.rig.calibration, depth_map.options
    if calibration is not None and calibration.noise_read is not None:
        return False
    is_sharp = depth_map.rig.optics.aperture_radius_m == 0
    return not (is_sharp and getattr(options, "rectification_sigma_px", None) != 0)


def _share(flags: NDArray[np.uint16], flag: Flag) -> float:
    return float(np.mean((flags & np.uint16(flag)) != 0))


def _limits(pair: CheckedPair, some: tuple[slice, ...]) -> tuple[float, float, tuple[bool, bool]]:
    """Shares of the pixels at the largest and at the smallest value; whether views are constant."""
    white, black, constant = [], [], []
    for view in pair:
        values = view[some]
        low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
        white.append(float(np.mean(values == high)))
        black.append(float(np.mean(values == low)))
        constant.append(bool(low == high))
    return float(np.mean(white)), float(np.mean(black)), (constant[0], constant[1])


def _depth_range_m(depth_map: DepthMap) -> tuple[float, float]:
    options = depth_map.options
    if options.candidates_m is not None:
        return float(options.candidates_m[0]), float(options.candidates_m[-1])
    return options.depth_range_m or default_depth_range_m(depth_map.rig.optics)


def _found(blocks: Blocks, depth_map: DepthMap, depth_range_m: tuple[float, float]) -> Found:
    """Sort the blocks that were found by where they were."""
    is_sure = blocks.is_sure
    count = int(is_sure.sum())
    plain = float(blocks.is_plain_left.mean()), float(blocks.is_plain_right.mean())
    if count < _FEWEST_BLOCKS:
        return Found(
            share=count / is_sure.size,
            inside=0.0,
            mirrored=0.0,
            nearer=0.0,
            farther=0.0,
            disparity_px=(0.0, 0.0),
            rows_px=(0.0, 0.0),
            rows_agree=0.0,
            gain=Value(0.0, 0.0),
            plain_left=plain[0],
            plain_right=plain[1],
            rich=float(blocks.is_rich.mean()),
        )
    disparity = blocks.disparity_px[is_sure]
    ends = [float(depth_map.rig.optics.disparity_px(depth)) for depth in depth_range_m]
    high, low = ends[0] + _TOLERANCE_PX, ends[1] - _TOLERANCE_PX
    is_inside = (disparity >= low) & (disparity <= high)
    is_mirrored = ~is_inside & (-disparity >= low) & (-disparity <= high)
    rows_px, rows_agree = _rows(blocks)
    smallest, largest = np.percentile(disparity, (10, 90)).tolist()
    return Found(
        share=count / is_sure.size,
        inside=float(is_inside.mean()),
        mirrored=float(is_mirrored.mean()),
        nearer=float((disparity > high).mean()),
        farther=float((disparity < low).mean()),
        disparity_px=(smallest, largest),
        rows_px=rows_px,
        rows_agree=rows_agree,
        gain=_mean(-blocks.contrast[is_sure]),
        plain_left=plain[0],
        plain_right=plain[1],
        rich=float(blocks.is_rich.mean()),
        rows_terms=rows_terms(blocks),
    )


def _mean(values: FloatArray) -> Value:
    """Median and its standard deviation, from the quartiles."""
    low, middle, high = np.percentile(values, (25, 50, 75)).tolist()
    return Value(middle, (high - low) / 1.349 * 1.253 / float(np.sqrt(values.size)))


def _rows(blocks: Blocks) -> tuple[tuple[float, float], float]:
    """Smallest and largest shift of rows over the frame, and the share of blocks that fit.

    One shift if it fits most blocks; else a plane, since a rotation shifts rows more towards the
    edges.
    """
    rows = blocks.rows_px[blocks.is_sure]
    middle = float(np.median(rows))
    agree = float((np.abs(rows - middle) < _SAME_ROWS_PX).mean())
    if agree > _MOST:
        return (middle, middle), agree
    terms, _, fit = _rows_plane(blocks)
    at_blocks = terms @ fit
    agree = float((np.abs(rows - at_blocks) < _SAME_ROWS_PX).mean())
    return (float(at_blocks.min()), float(at_blocks.max())), agree


def _rows_plane(blocks: Blocks) -> tuple[FloatArray, Mask, FloatArray]:
    """Terms of a plane at each block that was found, which are near the plane, and its factors."""
    rows = blocks.rows_px[blocks.is_sure]
    x, y = blocks.x[blocks.is_sure], blocks.y[blocks.is_sure]
    terms = np.stack([np.ones(x.shape), x, y], axis=1)
    fit: FloatArray = np.array([float(np.median(rows)), 0.0, 0.0])
    is_near = np.ones(rows.shape, dtype=np.bool_)
    for limit_px in _ROTATION_LIMITS_PX:
        is_near = np.abs(rows - terms @ fit) < limit_px
        if is_near.sum() < _FEWEST_BLOCKS:
            break
        solution = np.linalg.lstsq(terms[is_near], rows[is_near], rcond=None)[0]
        fit = np.asarray(solution, dtype=np.float64)
    return terms, is_near, fit


def rows_terms(blocks: Blocks) -> tuple[Value, Value, Value] | None:
    """Rows in the middle, and their change to an edge across and down, if most blocks agree."""
    terms, is_near, _ = _rows_plane(blocks)
    if is_near.mean() < _MOST or is_near.sum() < 2 * _FEWEST_BLOCKS:
        return None
    found = robust_fit(terms[is_near], blocks.rows_px[blocks.is_sure][is_near])
    if found is None:
        return None
    one, two, three = (
        Value(float(value), float(sigma)) for value, sigma in zip(*found, strict=True)
    )
    return one, two, three
