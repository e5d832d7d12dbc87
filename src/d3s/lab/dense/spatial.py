"""Spatial filter: depths averaged with their neighbours on the same surface.

The mean is in disparity, weighted by information. A neighbour counts as far as its disparity agrees
and no edge of the left view lies between. Windows of the estimator overlap, so that neighbours have
nearly the same error: the mean is smoother and hardly more accurate, and sigma does not fall.
"""

from dataclasses import replace

import numpy as np

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.lab.dense.evidence import guide_of
from d3s.types import FloatArray

_EDGE = 1.0  # contrast at which a neighbour counts half
_AGREE = 3.0  # sigma at which a neighbour counts half
_LARGEST_PX = 8


def smooth(depth_map: DepthMap, *, radius_px: int = 2) -> DepthMap:
    """Average each depth with its neighbours on the same surface; holes stay holes.

    Sigma becomes the mean of those that are averaged: it does not fall, since neighbours have
    nearly the same error.

    Parameters
    ----------
    depth_map
        Depth map.
    radius_px
        Largest distance of a neighbour along rows and columns, 1 to 8.

    Raises
    ------
    InputError
        If the radius is out of its range.
    """
    if not isinstance(radius_px, int) or not 1 <= radius_px <= _LARGEST_PX:
        raise InputError(f"radius_px={radius_px!r} must be a whole number from 1 to {_LARGEST_PX}.")
    disparity, variance = (
        depth_map.disparity_px.astype(float),
        depth_map.sigma_px.astype(float) ** 2,
    )
    guide = guide_of(depth_map).max(axis=-1).astype(float)
    total, mean, square = (np.zeros_like(disparity) for _ in range(3))
    steps = range(-radius_px, radius_px + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        for down in steps:
            for right in steps:
                place = down, right
                other, doubt = _shifted(disparity, place), _shifted(variance, place)
                gap = (other - disparity) ** 2 / (_AGREE**2 * (variance + doubt))
                edge = ((_shifted(guide, place) - guide) / _EDGE) ** 2
                weight = 1 / (doubt * (1 + gap) ** 2 * (1 + edge) ** 2)
                weight = np.where(np.isfinite(weight), weight, 0.0)
                total += weight
                mean += weight * np.nan_to_num(other)
                square += weight * np.nan_to_num(doubt)
        optics = depth_map.rig.optics
        per_dpt_px = optics.focal_length_px * optics.baseline_m
        depth_m = per_dpt_px / (mean / total - optics.disparity_offset_px)
        sigma_m = depth_m**2 * np.sqrt(square / total) / per_dpt_px
    kept, nothing = depth_map.valid, np.float32(np.nan)
    return replace(
        depth_map,
        depth_m=np.where(kept, depth_m, nothing).astype(np.float32),
        sigma_m=np.where(kept, sigma_m, nothing).astype(np.float32),
    )


def _shifted(image: FloatArray, place: tuple[int, int]) -> FloatArray:
    """Image whose pixels are those so far below and right; NaN beyond the frame."""
    out = np.full(image.shape, np.nan)
    rows, cols = image.shape
    down, right = place
    to = np.s_[max(-down, 0) : rows - max(down, 0), max(-right, 0) : cols - max(right, 0)]
    source = np.s_[max(down, 0) : rows - max(-down, 0), max(right, 0) : cols - max(-right, 0)]
    out[to] = image[source]
    return out
