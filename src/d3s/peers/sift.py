"""Keypoints of SIFT matched between the views: a sparse disparity, and nothing elsewhere.

Lowe, "Distinctive image features from scale-invariant keypoints" (International Journal of Computer
Vision 60, 2004), as OpenCV has it. A keypoint of the left view may match one of the right view that
lies in the same row, within a tolerance, at a disparity of the range, and that is about as large.
Of those it takes the one
with the nearest descriptor, if the next best of any other place is much farther, and if each is the
best of the other. Its disparity is the difference of two columns, which SIFT itself finds to a
fraction of a pixel, and stands in the one pixel where the keypoint is.

Assumes rectified views and corners that both of them show. It knows nothing of defocus but what its
descriptors, which do not depend on scale, forgive.

`sigma_m` is one constant error of a column, as it was on the tuning textures, in proportion to the
size of the keypoint. `confidence` is by how much the best descriptor is nearer than the next.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import Options
from d3s.peers.common import (
    SLACK_PX,
    Job,
    add_flag,
    eight_bits,
    flag_disparity,
    flag_invalid,
    kernel_reach_px,
    scaled,
    sigma_m,
)
from d3s.rig import Rig
from d3s.types import FloatArray, Image, Mask

if TYPE_CHECKING:
    import cv2

# Matches of one keypoint at several orientations lie nearer than this: no other place.
_SAME_PLACE_PX = 1.5
# Of left keypoints whose distances to all right ones are in memory at once.
_AT_ONCE = 512
_NUMBERS = 128  # of a descriptor
_TINY = 1e-9
_FAR = np.float32(np.inf)
# A descriptor reaches so many diameters of its keypoint from the centre, with all that it smooths.
_REACH_DIAMETERS = 6
# OpenCV's smallest frame whose pyramid has an octave.
_SMALLEST_PX = 16


class SiftOptions(Options):
    """Choices for the matching of keypoints.

    Defaults by benchmarks/tune_peers.py, with --sparse.
    """

    # OpenCV's own is 0.04. With 0.01 the error is a twentieth larger.
    contrast_threshold: float = Field(
        default=0.03, ge=0, le=1, description="the contrast that a keypoint must have"
    )
    # OpenCV's own. 5 leaves a third fewer keypoints and fewer mistakes at edges.
    edge_threshold: float = Field(
        default=10.0, gt=1, le=1000, description="how much longer than wide a keypoint may be"
    )
    # OpenCV's own, and Lowe's. 3 is a twentieth more exact, and leaves half of the keypoints.
    first_sigma_px: float = Field(
        default=1.6, ge=0.7, le=10, description="the Gaussian of the first octave"
    )
    # A match that is wrong by a row is wrong along it: with 2 the error is a quarter larger.
    row_tolerance_px: float = Field(
        default=0.5, gt=0, le=100, description="what the rows of a match may differ by"
    )
    # Lowe's 0.8 is a twentieth worse.
    ratio: float = Field(
        default=0.7, gt=0, le=1, description="the most of the next distance that the best may have"
    )
    # The blur of the views differs by less.
    size_ratio: float = Field(
        default=1.2, ge=1, le=100, description="what the sizes of a match may differ by"
    )
    # What two thirds of the errors on the tuning planes are below.
    column_sigma: float = Field(
        default=0.028,
        gt=0,
        le=10,
        description="the deviation of a disparity, per keypoint diameter",
    )
    # The ratio says it already.
    min_confidence: float = Field(
        default=0.0, ge=0, le=1, description="the confidence that a depth must reach"
    )


class _Keypoints(NamedTuple):
    """Keypoints of one view."""

    rows: NDArray[np.float32]
    cols: NDArray[np.float32]
    diameters: NDArray[np.float32]
    descriptors: NDArray[np.float32]

    @classmethod
    def of(cls, grey: NDArray[np.uint8], detector: "cv2.SIFT") -> "_Keypoints":
        """In an order that does not depend on threads."""
        points, descriptors = detector.detectAndCompute(grey, None)
        numbers = np.array([(p.pt[1], p.pt[0], p.size, p.angle) for p in points], dtype=np.float32)
        if not numbers.size:
            nothing = np.zeros(0, dtype=np.float32)
            return cls(nothing, nothing, nothing, np.zeros((0, _NUMBERS), dtype=np.float32))
        order = np.lexsort(numbers.T)
        rows, cols, diameters, _ = numbers[order].T
        return cls(rows, cols, diameters, np.asarray(descriptors, dtype=np.float32)[order])


class _Matches(NamedTuple):
    """Which left keypoints have a match, and how good it is."""

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    confidence: FloatArray


def estimate_sift(left: Image, right: Image, rig: Rig, options: SiftOptions) -> DepthMap:
    """Match the keypoints of both views along their rows."""
    import cv2

    job = Job.start("sift", left, right, rig, options)
    levels = scaled(job.views)
    if levels is None:
        return job.nothing(Flag.LOW_TEXTURE)
    if min(job.shape) < _SMALLEST_PX:
        return job.nothing(Flag.BORDER)
    detector = cv2.SIFT.create(
        contrastThreshold=options.contrast_threshold,
        edgeThreshold=options.edge_threshold,
        sigma=options.first_sigma_px,
    )
    points = [_Keypoints.of(grey, detector) for grey in eight_bits(levels, 0.0)]
    nearest_px, farthest_px = (float(one) for one in rig.optics.disparity_px(job.range_m))
    limits_px = farthest_px - SLACK_PX, nearest_px + SLACK_PX
    matches = _matched(points[0], points[1], limits_px, options)
    return _mapped(job, points[0], points[1], matches)


def _matched(
    left: _Keypoints, right: _Keypoints, limits_px: tuple[float, float], options: SiftOptions
) -> _Matches:
    """Best match of each left keypoint that is also the best of its right one."""
    best, share = _best(left, right, limits_px, options)
    back, _ = _best(right, left, (-limits_px[1], -limits_px[0]), options)
    own = np.flatnonzero(share <= options.ratio)
    own = own[back[best[own]] == own]
    return _Matches(own, best[own], 1.0 - share[own])


def _best(
    own: _Keypoints, others: _Keypoints, limits_px: tuple[float, float], options: SiftOptions
) -> tuple[NDArray[np.intp], FloatArray]:
    """The nearest of others, and its distance as a share of the next one's; infinite if none."""
    best = np.zeros(own.rows.size, dtype=np.intp)
    share = np.full(own.rows.size, np.inf)
    if not others.rows.size:
        return best, share
    for start in range(0, own.rows.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        some = _Keypoints(*(one[part] for one in own))
        square = _squares(some, others)
        possible = np.where(_may_match(some, others, limits_px, options), square, _FAR)
        best[part] = possible.argmin(axis=1)
        nearest = possible.min(axis=1)
        # The next best may be anywhere: along one row there is often nothing to compare with.
        here = best[part]
        down, along = (np.abs(axis - axis[here, np.newaxis]) for axis in (others.rows, others.cols))
        is_same = (down < _SAME_PLACE_PX) & (along < _SAME_PLACE_PX)
        next_one = np.where(is_same, _FAR, square).min(axis=1)
        with np.errstate(invalid="ignore"):  # infinite by infinite, where there is nothing at all
            share[part] = np.sqrt(nearest / np.maximum(next_one, _TINY))
    return best, share


def _squares(own: _Keypoints, others: _Keypoints) -> NDArray[np.float32]:
    """Squared distances of descriptors, (own, others)."""
    lengths = [np.einsum("ij,ij->i", k.descriptors, k.descriptors) for k in (own, others)]
    products = own.descriptors @ others.descriptors.T
    square = lengths[0][:, np.newaxis] + lengths[1] - np.float32(2) * products
    return np.asarray(np.maximum(square, 0), dtype=np.float32)


def _may_match(
    own: _Keypoints, others: _Keypoints, limits_px: tuple[float, float], options: SiftOptions
) -> Mask:
    """Whether two keypoints lie in one row, at a disparity of the range, and are alike in size."""
    disparity = own.cols[:, np.newaxis] - others.cols
    growth = np.abs(np.log(own.diameters)[:, np.newaxis] - np.log(others.diameters))
    return np.asarray(
        (np.abs(own.rows[:, np.newaxis] - others.rows) <= options.row_tolerance_px)
        & (disparity >= limits_px[0])
        & (disparity <= limits_px[1])
        & (growth <= np.log(options.size_ratio))
    )


def _mapped(job: Job, left: _Keypoints, right: _Keypoints, matches: _Matches) -> DepthMap:
    """Disparities in the pixels of the keypoints; of several in one pixel the surest."""
    rows, cols = (
        np.clip(np.rint(axis).astype(np.intp), 0, extent - 1)
        for axis, extent in zip((left.rows, left.cols), job.shape, strict=True)
    )
    flags = np.full(job.shape, Flag.LOW_TEXTURE, dtype=np.uint16)
    flags[rows, cols] = np.uint16(Flag.AMBIGUOUS)
    disparity_px, sigma_px = np.full((2, *job.shape), np.nan)
    confidence = np.zeros(job.shape)
    own, other = matches.left, matches.right
    for k in np.argsort(matches.confidence, kind="stable"):
        i, place = own[k], (rows[own[k]], cols[own[k]])
        disparity_px[place] = float(left.cols[i]) - float(right.cols[other[k]])
        sigma_px[place] = job.options.column_sigma * float(left.diameters[i])
        confidence[place] = matches.confidence[k]
        flags[place] = 0
    optics = job.rig.optics
    flag_disparity(flags, disparity_px, optics, job.range_m)
    add_flag(flags, Flag.LOW_CONFIDENCE, (flags == 0) & (confidence < job.options.min_confidence))
    flag_invalid(flags, job.views, disparity_px, kernel_reach_px(job.options.first_sigma_px))
    for view, points, one in ((0, left, own), (1, right, other)):
        reached = own[_is_reached(job.views[view], points, one)]
        flags[rows[reached], cols[reached]] |= np.uint16(Flag.INVALID_INPUT)
    depth_m = optics.depth_m(disparity_px)
    return job.finish(flags, depth_m, sigma_m(sigma_px, depth_m, optics), confidence)


def _is_reached(view: Image, points: _Keypoints, which: NDArray[np.intp]) -> Mask:
    """Whether the descriptor of a keypoint holds a pixel without a value."""
    import cv2

    known = np.isfinite(view).astype(np.uint8)
    if known.all():  # the distance to nothing is not infinite in OpenCV
        return np.zeros(which.size, dtype=np.bool_)
    distance_px = cv2.distanceTransform(known, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    rows, cols = (
        np.clip(np.rint(axis[which]).astype(np.intp), 0, extent - 1)
        for axis, extent in zip((points.rows, points.cols), view.shape, strict=True)
    )
    return np.asarray(distance_px[rows, cols] <= _REACH_DIAMETERS * points.diameters[which])
