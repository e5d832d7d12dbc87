"""Filters of depth maps: with neighbours on the same surface, and over frames of one camera.

`smooth` averages disparity, weighted by information. A neighbour counts as far as its disparity
agrees and no edge of the left view lies between. Windows of the estimator overlap, so that
neighbours have nearly the same error: the mean is smoother and hardly more accurate, and sigma does
not fall.

`TemporalFilter` fuses frames of a still or slowly moving camera: each pixel keeps a mean disparity,
weighted by information. A frame that contradicts it, or whose left view has changed there, starts
it anew, so that something that moves leaves no ghost. Sigma has two parts: noise, which is measured
from frame to frame and falls with their number, and the rest, which all frames share and no average
removes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.lab.dense.surfaces import guide_of, per_dpt_px
from d3s.types import Image, Mask, Progress

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
    disparity = depth_map.disparity_px.astype(float)
    variance = depth_map.sigma_px.astype(float) ** 2
    guide = guide_of(depth_map).max(axis=-1).astype(float)
    padded = [
        np.pad(one, radius_px, constant_values=np.nan) for one in (disparity, variance, guide)
    ]
    total, mean, square = (np.zeros_like(disparity) for _ in range(3))
    rows, cols = disparity.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        for down, right in product(range(2 * radius_px + 1), repeat=2):
            other, doubt, light = (one[down : down + rows, right : right + cols] for one in padded)
            gap = (other - disparity) ** 2 / (_AGREE**2 * (variance + doubt))
            edge = ((light - guide) / _EDGE) ** 2
            weight = 1 / (doubt * (1 + gap) ** 2 * (1 + edge) ** 2)
            weight = np.where(np.isfinite(weight), weight, 0.0)
            total += weight
            mean += weight * np.nan_to_num(other)
            square += weight * np.nan_to_num(doubt)
        offset_px = depth_map.rig.optics.disparity_offset_px
        depth_m = per_dpt_px(depth_map) / (mean / total - offset_px)
        sigma_m = depth_m**2 * np.sqrt(square / total) / per_dpt_px(depth_map)
    kept, nothing = depth_map.valid, np.float32(np.nan)
    return replace(
        depth_map,
        depth_m=np.where(kept, depth_m, nothing).astype(np.float32),
        sigma_m=np.where(kept, sigma_m, nothing).astype(np.float32),
    )


_GATE = 3.0  # sigma by which a frame may differ and still be of the same surface
_CHANGE_PX = 5  # side of the window in which views are compared
_CHANGE = 5.0  # standard deviations of noise by which a view may change
_LEAST_CHANGE = 0.004  # or this share of its range
_MANY = 0.25  # share of changed pixels around one that has changed with them
_POOL_PX = 15  # side of the window in which the noise of the disparity is measured
_FEWEST = 4  # frames from which on noise is measured; until then sigma does not fall
# Variance that all frames share: a part of what noise does not explain, and of sigma. Chosen on
# planes of tuning textures, such that at least 96 % of the errors are within 3 sigma on each.
_NOT_NOISE, _SHARED = 0.3, 0.2
_NO_REASONS = np.uint16(0xFFFF & ~(Flag.CARRIED | Flag.FILLED | Flag.ENCLOSED))


@dataclass
class _State:
    """Arrays (rows, cols) that the filter keeps."""

    mean_px: Image
    weight: Image  # sum of 1 / sigma²
    count: Image
    square: Image  # sum of squares of the disparity around its mean
    confidence: Image
    flags: Image
    view: Image | None


class TemporalFilter:
    """Temporal filter over depth maps of one camera.

    Examples
    --------
    >>> import d3s
    >>> from d3s.lab.dense import TemporalFilter
    >>> rig = d3s.Rig.paper_prototype()
    >>> fused = TemporalFilter()
    >>> for seed in range(4):
    ...     pair = d3s.simulate(d3s.Plane(depth_m=1.0), rig, noise=0.02, shape=(80, 120), seed=seed)
    ...     found = fused.add(d3s.estimate(pair.left, pair.right, rig))
    >>> fused.frames
    4
    """

    def __init__(self) -> None:
        self.frames = 0
        self._state: _State | None = None
        self._last: DepthMap | None = None

    def add(self, depth_map: DepthMap) -> DepthMap:
        """Add a frame; return its depth map, fused with the frames before.

        Filled depths are not evidence, and are left out.

        Raises
        ------
        InputError
            If the frame has another shape or camera than those before.
        """
        found = depth_map.filter(filled=False)
        if self._last is not None and (
            found.depth_m.shape != self._last.depth_m.shape or found.rig != self._last.rig
        ):
            raise InputError(
                f"depth map of {found.depth_m.shape} px by {found.rig.name!r} does not follow one "
                f"of {self._last.depth_m.shape} px by {self._last.rig.name!r}: frames of one "
                "camera are fused. Begin a new filter."
            )
        if self._state is None:
            self._state = _begun(found)
        else:
            _update(self._state, found)
        self.frames, self._last = self.frames + 1, found
        return _fused(self._state, found)


def fuse(depth_maps: Iterable[DepthMap], *, progress: Progress | None = None) -> DepthMap:
    """Fuse frames in order; return the last one with all that the others add.

    Parameters
    ----------
    depth_maps
        Depth maps of one camera.
    progress
        Called with the number of frames that are done, twice.

    Raises
    ------
    InputError
        If there is no frame, or they do not belong together.
    """
    kept, found = TemporalFilter(), None
    for one in depth_maps:
        found = kept.add(one)
        if progress is not None:
            progress(kept.frames, kept.frames)
    if found is None:
        raise InputError("no depth map was given: fuse at least one.")
    return found


def _begun(found: DepthMap) -> _State:
    zero = np.zeros(found.depth_m.shape, np.float32)
    state = _State(
        mean_px=zero.copy(),
        weight=zero.copy(),
        count=zero.copy(),
        square=zero.copy(),
        confidence=found.confidence.copy(),
        flags=found.flags.astype(np.float32),
        view=None if found.intensity is None else found.intensity.copy(),
    )
    _restart(state, found, found.valid)
    return state


def _restart(state: _State, found: DepthMap, where: Mask) -> None:
    """Begin with the depths of this frame at some pixels."""
    known = where & found.valid
    state.mean_px[where] = np.where(known, found.disparity_px, 0)[where]
    state.weight[where] = np.where(known, 1 / np.maximum(found.sigma_px, 1e-6) ** 2, 0)[where]
    state.count[where] = known[where]
    state.square[where] = 0
    state.confidence[where] = found.confidence[where]
    state.flags[where] = found.flags[where]


def _update(state: _State, found: DepthMap) -> None:
    disparity, sigma = found.disparity_px, found.sigma_px
    has_changed = _changed(state, found)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = disparity - state.mean_px
        limit = _GATE**2 * (sigma**2 + 1 / state.weight)
        is_other = found.valid & (state.count > 0) & ~(gap * gap <= limit)
    is_new = has_changed | is_other | (found.valid & (state.count == 0))
    joins = found.valid & ~is_new
    _restart(state, found, is_new)
    weight = 1 / np.maximum(sigma[joins], 1e-6) ** 2
    total = state.weight[joins] + weight
    step = gap[joins]
    mean = state.mean_px[joins] + step * weight / total
    state.square[joins] += step * (disparity[joins] - mean)
    state.mean_px[joins], state.weight[joins] = mean, total
    state.count[joins] += 1
    state.confidence[joins] = np.maximum(state.confidence[joins], found.confidence[joins])
    state.flags[joins] = found.flags[joins]
    if state.view is not None and found.intensity is not None:
        state.view[is_new] = found.intensity[is_new]
        slow = np.float32(0.25)
        state.view += slow * np.nan_to_num(found.intensity - state.view)


def _changed(state: _State, found: DepthMap) -> Mask:
    """Pixels around which the left view differs from what it was."""
    import cv2

    if state.view is None or found.intensity is None:
        return np.zeros(found.depth_m.shape, np.bool_)
    rise = np.nan_to_num(found.intensity - state.view)
    rise -= np.median(rise[::4, ::4])  # the whole scene became brighter
    noise = 1.4826 * float(np.median(np.abs(rise[::3, ::3])))
    low, high = np.nanpercentile(found.intensity[::4, ::4], (1, 99))
    limit = max(_CHANGE * noise / _CHANGE_PX, _LEAST_CHANGE * float(high - low))
    local = np.abs(cv2.blur(rise, (_CHANGE_PX, _CHANGE_PX))) > limit
    # Texture that passes by looks like what was there at some pixels: most of them have changed.
    around = cv2.blur(local.astype(np.float32), (_POOL_PX, _POOL_PX))
    return np.asarray(local | (around > _MANY))


def _fused(state: _State, found: DepthMap) -> DepthMap:
    import cv2

    has_depth = state.count > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        single = state.count / state.weight  # variance of one frame, as the method predicts it
        several = state.count >= _FEWEST
        pool = (_POOL_PX, _POOL_PX)
        squares = cv2.blur(np.where(several, state.square, 0).astype(np.float32), pool)
        freedom = cv2.blur(np.where(several, state.count - 1, 0).astype(np.float32), pool)
        noise = np.minimum(squares / freedom, single)
        shared = _NOT_NOISE * (single - noise) + _SHARED**2 * single
        fused = noise / state.count + shared
        fused = np.minimum(fused, single)
        variance = np.where(several & (freedom > 0), fused, single)
        depth_m = per_dpt_px(found) / (state.mean_px - found.rig.optics.disparity_offset_px)
        sigma_m = depth_m**2 * np.sqrt(variance) / per_dpt_px(found)
    flags = state.flags.astype(np.uint16)
    nothing = np.float32(np.nan)
    return replace(
        found,
        depth_m=np.where(has_depth, depth_m, nothing).astype(np.float32),
        sigma_m=np.where(has_depth, sigma_m, nothing).astype(np.float32),
        confidence=np.where(has_depth, state.confidence, found.confidence).astype(np.float32),
        flags=np.where(has_depth, flags & ~_NO_REASONS, found.flags).astype(np.uint16),
    )
