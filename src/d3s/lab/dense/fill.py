"""`densify`: fill the holes of a depth map as far as they can be known."""

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap, check_limits
from d3s.estimate.flags import Flag
from d3s.estimate.methods import checked_options, estimate_quietly
from d3s.estimate.options import JointOptions, Options
from d3s.lab.dense.surfaces import Surfaces, fit_surfaces, guide_of, per_dpt_px
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import FloatArray, Image, Mask

CELL_PX = 2
"""Side of the cells that are filled: depth is not measured finer either."""
_NEARBY, _AROUND = 15, 21  # sides of windows around a cell, in cells
_LEAST_CHANCE = 0.9  # of being right, of depths that count as evidence
_CHANCE_POWER, _NOISE_PX = 4, 0.25  # by which evidence of little chance and precision counts less
_BEYOND = 0.1  # share of the range of disparities by which filled ones may leave it
_LEAST_SPAN = 0.3  # range of depths, as a share of their median, if all that is measured is flat

# `benchmarks/dense.py --fit` finds these numbers on scenes and rooms with tuning textures.
RIGHT = (2.364, 2.464, 0.395, -1.08)
"""Log-odds that a depth is right: a constant, and that of each of `evidence_features`."""
_GROSS = (-2.974, 0.833, 0.812, -0.346, -1.73)
"""Log-odds of a gross error, and those of `fill_features`."""
_ERROR = (-0.57, 0.368, 0.46, -0.497, -0.539)
"""Logarithm of 3 sigma of the disparity of the right surface, and that of `fill_features`."""
GROSS = 0.07
"""Error that counts as that of another surface, as a share of the depth."""
_GROSS_SIZE = 0.45  # typical gross error, as a share of the range of depths, beyond `GROSS`
_OUTSIDE = 0.04  # share of the errors beyond 3 sigma that is aimed at


def densify(
    depth_map: DepthMap, *, max_sigma_m: float | None = 0.05, min_confidence: float | None = None
) -> DepthMap:
    """Return a depth map with holes filled in as far as they can be known.

    Measured depths and their sigma stay as they are, bit for bit. Filled ones have the flag
    FILLED and a sigma that contains the chance of another surface; `filter(filled=False)`
    removes them again. Holes are filled along planes in inverse depth, with the left view as a
    guide; docs/dense.md says how good they are.

    There is most to go by if the depth map was made with the option `min_confidence=0`: depths
    below the usual threshold are then weak evidence, which the fill weighs and replaces.

    Parameters
    ----------
    depth_map
        Depth map; one with `min_confidence=0` in its options has most to go by.
    max_sigma_m
        Largest sigma of a filled depth, in metres. Holes that cannot be known better stay open.
        None fills all holes, however uncertain.
    min_confidence
        Least confidence of depths that count as measured, 0 to 1. None is 0.5 for a depth map
        that was made with the option `min_confidence=0`, and all depths for any other.

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> import d3s
    >>> from d3s.lab.dense import densify
    >>> rig = d3s.Rig.paper_prototype()
    >>> scene = d3s.RandomScene(seed=3, surfaces="weak")
    >>> pair = d3s.simulate(scene, rig, noise=0.01, shape=(120, 180))
    >>> all_depths = d3s.estimate(pair.left, pair.right, rig, options={"min_confidence": 0})
    >>> dense = densify(all_depths)
    >>> dense.density >= dense.filter(filled=False).density
    True
    """
    limit_m = _checked_sigma(max_sigma_m)
    started = perf_counter()
    is_measured = measured_pixels(depth_map, min_confidence)
    cells = np.ix_(*(np.arange(size) // CELL_PX for size in is_measured.shape))
    depth_m, sigma_m = (one[cells] for one in _cells_filled(depth_map, is_measured))
    is_filled = ~is_measured & (sigma_m <= limit_m)
    flags = depth_map.flags.copy()
    flags[~is_measured & depth_map.valid] |= np.uint16(Flag.LOW_CONFIDENCE)
    flags[is_filled] |= np.uint16(Flag.FILLED)
    nothing = np.float32(np.nan)
    return replace(
        depth_map,
        depth_m=np.where(is_measured, depth_map.depth_m, np.where(is_filled, depth_m, nothing)),
        sigma_m=np.where(is_measured, depth_map.sigma_m, np.where(is_filled, sigma_m, nothing)),
        flags=flags,
        timings_s=depth_map.timings_s | {"densify": perf_counter() - started},
    )


def estimate_dense(
    left: Any,
    right: Any,
    rig: Rig,
    *,
    max_sigma_m: float | None = 0.05,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
) -> DepthMap:
    """Estimate the depth of a pair with all weak depths, and densify it.

    Measured depths are those that `estimate` gives with the same options.

    Parameters
    ----------
    left, right, rig, method, options
        As for `estimate`, which also has the exceptions.
    max_sigma_m
        As for `densify`.
    """
    chosen = checked_options(method, options)
    least = getattr(chosen, "min_confidence", None)
    everything = chosen if least is None else chosen.replace(min_confidence=0.0)
    found = estimate_quietly(left, right, rig, method=method, options=everything)
    dense = densify(found, max_sigma_m=max_sigma_m, min_confidence=least)
    return replace(dense, options=chosen)


def measured_pixels(depth_map: DepthMap, min_confidence: float | None = None) -> Mask:
    """Pixels whose depth counts as measured; those that an earlier call has filled do not.

    `min_confidence` is the least confidence of measured depths, 0 to 1. None takes the default of
    the estimator for a depth map that was made with `min_confidence=0`, and all depths of others.
    """
    least = min_confidence
    if least is None:
        asked = getattr(depth_map.options, "min_confidence", None)
        least = JointOptions().min_confidence if asked == 0 else 0.0
    check_limits(min_confidence=least)
    is_kept = depth_map.valid & (depth_map.confidence >= np.float32(least))
    return np.asarray(is_kept & ((depth_map.flags & np.uint16(Flag.FILLED)) == 0))


def _cells_filled(depth_map: DepthMap, is_measured: Mask) -> tuple[Image, Image]:
    """Depth and sigma of all cells by what surrounds them; NaN if there is no evidence."""
    was_filled = (depth_map.flags & np.uint16(Flag.FILLED)) != 0  # a guess is no evidence
    source = replace(depth_map, depth_m=np.where(was_filled, np.float32(np.nan), depth_map.depth_m))
    cells, measured_cells = cells_of(source, is_measured)
    disparity_px, weight = evidence_of(cells, measured_cells)
    if not (weight > 0).any():
        nothing = np.full(weight.shape, np.nan, np.float32)
        return nothing, nothing
    found = fit_surfaces(guide_of(cells), disparity_px, weight)
    evidence_px = disparity_px[weight > 0]
    slack = _BEYOND * float(np.ptp(evidence_px))
    low, high = float(evidence_px.min()), float(evidence_px.max())
    disparity = np.clip(found.disparity_px, max(low - slack, 0.5 * low), high + slack)
    depth_m = per_dpt_px(depth_map) / disparity
    low_m, middle_m, high_m = np.percentile(depth_map.depth_m[is_measured], (5, 50, 95))
    span_m = max(high_m - low_m, _LEAST_SPAN * middle_m)
    sigma_m = _sigma_m(depth_map, depth_m, fill_features(found, weight > 0), span_m)
    sigma_m = np.maximum(sigma_m, _typical_around(sigma_m, measured_cells))
    return depth_m.astype(np.float32), sigma_m.astype(np.float32)


def _typical_around(sigma_m: FloatArray, is_measured: Mask) -> FloatArray:
    """Geometric mean of sigma over the holes around each cell.

    Few cells beside many unknown ones are taken for known only by mistake.
    """
    import cv2

    window = (_AROUND, _AROUND)
    logarithm = cv2.blur(np.where(is_measured, 0.0, np.log(sigma_m)), window)
    return np.asarray(np.exp(logarithm / np.maximum(cv2.blur((~is_measured) * 1.0, window), 1e-9)))


def cells_of(depth_map: DepthMap, is_measured: Mask) -> tuple[DepthMap, Mask]:
    """Depth map of cells, and which are measured: those of which all pixels are."""
    import cv2

    rows, cols = is_measured.shape
    margin = (0, rows % CELL_PX), (0, cols % CELL_PX)
    padded = np.pad(is_measured, margin, mode="edge")
    whole = padded[::2, ::2] & padded[1::2, ::2] & padded[::2, 1::2] & padded[1::2, 1::2]
    view: Image | None = None
    if depth_map.intensity is not None:
        even = np.pad(depth_map.intensity, margin, mode="edge")
        small = cv2.resize(even, whole.shape[::-1], interpolation=cv2.INTER_AREA)
        view = np.asarray(small, np.float32)
    few = np.s_[::CELL_PX, ::CELL_PX]
    smaller = replace(
        depth_map,
        depth_m=depth_map.depth_m[few],
        sigma_m=depth_map.sigma_m[few],
        confidence=depth_map.confidence[few],
        flags=depth_map.flags[few],
        intensity=view,
        colour=None if depth_map.colour is None else depth_map.colour[few],
    )
    return smaller, whole


def evidence_of(cells: DepthMap, is_measured: Mask) -> tuple[Image, FloatArray]:
    """Disparities of cells, and what they count, 0 to 1: measured and weak ones."""
    chance = 1 / (1 + np.exp(-_linear(RIGHT, evidence_features(cells, is_measured))))
    disparity_px = cells.disparity_px - np.float32(cells.rig.optics.disparity_offset_px)
    precision = 1 / (1 + (np.nan_to_num(cells.sigma_px) / _NOISE_PX) ** 2)
    counts = cells.valid & (is_measured | (chance > _LEAST_CHANCE))
    return disparity_px, np.where(counts, chance**_CHANCE_POWER * precision, 0.0)


def evidence_features(cells: DepthMap, is_measured: Mask) -> FloatArray:
    """Features (rows, cols, 3) that tell whether a depth is right.

    Log-odds of its confidence, and logarithms of the shares of the cells around it that have a
    depth, and a measured one. A weak depth beside a measured one is often that of another surface.
    """
    confidence = np.clip(np.nan_to_num(cells.confidence), 0.01, 0.99)
    shares = [np.log(share_around(part) + 0.02) for part in (cells.valid, is_measured)]
    return np.stack([np.log(confidence / (1 - confidence)), *shares], axis=-1)


def fill_features(found: Surfaces, is_evidence: Mask) -> FloatArray:
    """Features (rows, cols, 4) that tell how well a surface is known.

    Logarithms of the spread of the evidence, of the distance to it, of how far aside it lies, and
    of the share of the frame that has any.
    """
    import cv2

    distance = cv2.distanceTransform((~is_evidence).astype(np.uint8), cv2.DIST_L2, 5)
    share = np.full(distance.shape, np.log(is_evidence.mean() + 0.02))
    spread = np.log(found.spread_px + 0.05)
    return np.stack([spread, np.log1p(distance), np.log1p(found.away), share], axis=-1)


def share_around(mask: Mask) -> FloatArray:
    """Share of the cells around each one that are in a mask."""
    import cv2

    return np.asarray(cv2.blur(mask.astype(np.float64), (_NEARBY, _NEARBY)))


def _linear(numbers: tuple[float, ...], features: FloatArray) -> FloatArray:
    return np.asarray(numbers[0] + features @ np.array(numbers[1:]))


def _sigma_m(
    depth_map: DepthMap, depth_m: FloatArray, features: FloatArray, span_m: float
) -> FloatArray:
    """Sigma such that few errors are beyond 3 sigma, those of other surfaces included.

    Gross errors fall off exponentially from a share of the range of depths on. To the size of
    errors on the right surface comes that which the share left of gross ones exceeds.
    """
    chance = 1 / (1 + np.exp(-_linear(_GROSS, features)))
    near_m = depth_m**2 * np.exp(_linear(_ERROR, features)) / per_dpt_px(depth_map)
    size_m = GROSS * depth_m + _GROSS_SIZE * span_m
    far_m = size_m * np.log(np.maximum(chance / _OUTSIDE, 1))
    return np.asarray((near_m + far_m) / 3)


def _checked_sigma(max_sigma_m: float | None) -> float:
    if max_sigma_m is None:
        return float("inf")
    try:
        number = float(max_sigma_m)
    except (TypeError, ValueError):
        number = float("nan")
    if not number > 0:
        raise InputError(
            f"max_sigma_m={short_repr(max_sigma_m)} must be a number above 0, in metres: the "
            "largest sigma of a filled depth. None fills all holes."
        )
    return number
