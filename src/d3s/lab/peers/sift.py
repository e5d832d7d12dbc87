"""SIFT keypoints matched between the views: a sparse disparity.

Paper: Lowe, "Distinctive image features from scale-invariant keypoints" (International Journal of
Computer Vision 60, 2004), in OpenCV's implementation.

Taken from the paper: keypoints, descriptors, and the ratio test of the two nearest descriptors.
The disparity of a match is the difference of two columns, which SIFT finds to a fraction of a
pixel. It is written into the one pixel at the keypoint; all other pixels have no depth. The method
assumes rectified views and corners visible in both. It does not use the defocus; its
scale-invariant descriptors only tolerate it.

Different from the paper:

- A match must lie in the same row within a tolerance, at a disparity of the depth range, and must
  have about the same size.
- The ratio test compares with the nearest descriptor anywhere else in the other view.
- Both keypoints must be the best match of each other.

`sigma_m` is a constant column error, found on the tuning textures, times the diameter of the
keypoint. `confidence` is one minus the ratio of the two nearest distances.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import MinConfidence, Options
from d3s.lab.peers.common import (
    Float32Array,
    MethodCall,
    gaussian_radius_px,
    normalise_pair,
    to_8_bit,
)
from d3s.rig import Rig
from d3s.types import FloatArray, Image, Mask

if TYPE_CHECKING:
    import cv2

# Keypoints nearer than this are one place with several orientations: no rival of a match.
_SAME_PLACE_PX = 1.5
# Left keypoints per batch: their distances to all right keypoints are in memory at once.
_BATCH = 512
_DESCRIPTOR_SIZE = 128
_TINY = 1e-9  # avoids a division by zero
_NO_MATCH = np.float32(np.inf)
# Radius of a descriptor with its smoothing, in diameters of the keypoint.
_RADIUS_DIAMETERS = 6
# Smallest frame whose pyramid has an octave in OpenCV.
_SMALLEST_FRAME_PX = 16


class SiftOptions(Options):
    """Options of the keypoint matching.

    Defaults by benchmarks/tune_peers.py, with --sparse.
    """

    # OpenCV's default is 0.04. With 0.01 the error is a twentieth larger.
    contrast_threshold: float = Field(
        default=0.03, ge=0, le=1, description="the contrast that a keypoint must have"
    )
    # OpenCV's default. 5 leaves a third fewer keypoints and fewer mistakes at edges.
    edge_threshold: float = Field(
        default=10.0, gt=1, le=1000, description="how much longer than wide a keypoint may be"
    )
    # OpenCV's default, and Lowe's. 3 is a twentieth more exact and leaves half of the keypoints.
    first_sigma_px: float = Field(
        default=1.6, ge=0.7, le=10, description="the Gaussian of the first octave"
    )
    # A match that is wrong by a row is wrong in its column too: with 2 the error is a quarter
    # larger.
    row_tolerance_px: float = Field(
        default=0.5, gt=0, le=100, description="the largest difference of the rows of a match"
    )
    # Lowe's 0.8 is a twentieth worse.
    ratio: float = Field(
        default=0.7, gt=0, le=1, description="the largest ratio of the two nearest distances"
    )
    # The blur of the views differs by less.
    size_ratio: float = Field(
        default=1.2, ge=1, le=100, description="the largest ratio of the sizes of a match"
    )
    # Two thirds of the errors on the tuning planes are smaller.
    column_sigma: float = Field(
        default=0.028,
        gt=0,
        le=10,
        description="the standard deviation of a disparity, per keypoint diameter",
    )
    # The ratio test is the filter.
    min_confidence: MinConfidence = 0.0


class _Keypoints(NamedTuple):
    """Keypoints of one view, (n,) each and (n, 128)."""

    rows: Float32Array
    cols: Float32Array
    diameters_px: Float32Array
    descriptors: Float32Array

    @classmethod
    def detect(cls, grey: NDArray[np.uint8], detector: "cv2.SIFT") -> "_Keypoints":
        """Keypoints sorted by position, so that their order does not depend on threads."""
        points, descriptors = detector.detectAndCompute(grey, None)
        values = np.array([(p.pt[1], p.pt[0], p.size, p.angle) for p in points], dtype=np.float32)
        if not values.size:
            empty = np.zeros(0, dtype=np.float32)
            return cls(empty, empty, empty, np.zeros((0, _DESCRIPTOR_SIZE), dtype=np.float32))
        order = np.lexsort(values.T)
        rows, cols, diameters_px, _ = values[order].T
        return cls(rows, cols, diameters_px, np.asarray(descriptors, dtype=np.float32)[order])

    def pixels(self, shape: tuple[int, int]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Row and column of the pixel at each keypoint."""
        rows, cols = (
            np.clip(np.rint(axis).astype(np.intp), 0, extent - 1)
            for axis, extent in zip((self.rows, self.cols), shape, strict=True)
        )
        return rows, cols


class _Matches(NamedTuple):
    """Indices of matched left and right keypoints, and the confidence of each match."""

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    confidence: FloatArray


def estimate_sift(left: Image, right: Image, rig: Rig, options: SiftOptions) -> DepthMap:
    """Match the keypoints of both views along their rows."""
    import cv2

    call = MethodCall("sift", (left, right), rig, options)
    pair = normalise_pair(call.views)
    if pair is None:
        return call.finish_empty(Flag.LOW_TEXTURE)
    if min(call.shape) < _SMALLEST_FRAME_PX:
        return call.finish_empty(Flag.BORDER)
    detector = cv2.SIFT.create(
        contrastThreshold=options.contrast_threshold,
        edgeThreshold=options.edge_threshold,
        sigma=options.first_sigma_px,
    )
    points = [_Keypoints.detect(grey, detector) for grey in to_8_bit(pair, 0.0)]
    matches = _match_keypoints(points[0], points[1], call.limits_px, options)
    return _depth_map(call, points[0], points[1], matches)


def _match_keypoints(
    left: _Keypoints, right: _Keypoints, limits_px: tuple[float, float], options: SiftOptions
) -> _Matches:
    """Matches that pass the ratio test and are best in both directions."""
    best, ratio = _nearest(left, right, limits_px, options)
    back, _ = _nearest(right, left, (-limits_px[1], -limits_px[0]), options)
    matched = np.flatnonzero(ratio <= options.ratio)
    matched = matched[back[best[matched]] == matched]
    return _Matches(matched, best[matched], 1.0 - ratio[matched])


def _nearest(
    own: _Keypoints, others: _Keypoints, limits_px: tuple[float, float], options: SiftOptions
) -> tuple[NDArray[np.intp], FloatArray]:
    """Index of the nearest descriptor among candidates, and the ratio to the next; inf if none."""
    best = np.zeros(own.rows.size, dtype=np.intp)
    ratio = np.full(own.rows.size, np.inf)
    if not others.rows.size:
        return best, ratio
    for start in range(0, own.rows.size, _BATCH):
        batch = slice(start, start + _BATCH)
        some = _Keypoints(*(one[batch] for one in own))
        distance = _squared_distances(some, others)
        is_candidate = _are_candidates(some, others, limits_px, options)
        allowed = np.where(is_candidate, distance, _NO_MATCH)
        best[batch] = allowed.argmin(axis=1)
        nearest = allowed.min(axis=1)
        # The next nearest may be anywhere: along one row there are often too few to compare with.
        chosen = best[batch]
        offset_y, offset_x = (
            np.abs(axis - axis[chosen, np.newaxis]) for axis in (others.rows, others.cols)
        )
        is_same = (offset_y < _SAME_PLACE_PX) & (offset_x < _SAME_PLACE_PX)
        next_nearest = np.where(is_same, _NO_MATCH, distance).min(axis=1)
        with np.errstate(invalid="ignore"):  # inf / inf, where there is no candidate at all
            ratio[batch] = np.sqrt(nearest / np.maximum(next_nearest, _TINY))
    return best, ratio


def _squared_distances(own: _Keypoints, others: _Keypoints) -> Float32Array:
    """Squared distances of descriptors, (own, others)."""
    lengths = [np.einsum("ij,ij->i", k.descriptors, k.descriptors) for k in (own, others)]
    products = own.descriptors @ others.descriptors.T
    squares = lengths[0][:, np.newaxis] + lengths[1] - np.float32(2) * products
    return np.asarray(np.maximum(squares, 0), dtype=np.float32)


def _are_candidates(
    own: _Keypoints, others: _Keypoints, limits_px: tuple[float, float], options: SiftOptions
) -> Mask:
    """Mask (own, others) of pairs in one row, within the disparity limits and of similar size."""
    disparity = own.cols[:, np.newaxis] - others.cols
    log_ratio = np.abs(np.log(own.diameters_px)[:, np.newaxis] - np.log(others.diameters_px))
    return np.asarray(
        (np.abs(own.rows[:, np.newaxis] - others.rows) <= options.row_tolerance_px)
        & (disparity >= limits_px[0])
        & (disparity <= limits_px[1])
        & (log_ratio <= np.log(options.size_ratio))
    )


def _depth_map(
    call: MethodCall, left: _Keypoints, right: _Keypoints, matches: _Matches
) -> DepthMap:
    """Result with a depth at matched keypoints; of several in one pixel the most confident."""
    rows, cols = left.pixels(call.shape)
    flags = np.full(call.shape, Flag.LOW_TEXTURE, dtype=np.uint16)
    flags[rows, cols] = np.uint16(Flag.AMBIGUOUS)
    disparity_px, sigma_px = np.full((2, *call.shape), np.nan)
    confidence = np.zeros(call.shape)
    for k in np.argsort(matches.confidence, kind="stable"):
        i, j = matches.left[k], matches.right[k]
        pixel = rows[i], cols[i]
        disparity_px[pixel] = float(left.cols[i]) - float(right.cols[j])
        sigma_px[pixel] = call.options.column_sigma * float(left.diameters_px[i])
        confidence[pixel] = matches.confidence[k]
        flags[pixel] = 0
    call.flag_disparity(flags, disparity_px)
    is_low = (flags == 0) & (confidence < call.options.min_confidence)
    flags[is_low] |= np.uint16(Flag.LOW_CONFIDENCE)
    call.flag_invalid(flags, disparity_px, gaussian_radius_px(call.options.first_sigma_px))
    for view, points, index in (
        (call.views[0], left, matches.left),
        (call.views[1], right, matches.right),
    ):
        invalid = matches.left[_touches_nan(view, points, index)]
        flags[rows[invalid], cols[invalid]] |= np.uint16(Flag.INVALID_INPUT)
    return call.finish_disparity(flags, disparity_px, sigma_px, confidence)


def _touches_nan(view: Image, points: _Keypoints, index: NDArray[np.intp]) -> Mask:
    """Mask (n,) of the keypoints `index` whose descriptor contains a NaN pixel."""
    import cv2

    known = np.isfinite(view).astype(np.uint8)
    if known.all():  # without a zero pixel OpenCV's distance is not infinite
        return np.zeros(index.size, dtype=np.bool_)
    distance_px = cv2.distanceTransform(known, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    rows, cols = points.pixels((view.shape[0], view.shape[1]))
    radius_px = _RADIUS_DIAMETERS * points.diameters_px[index]
    return np.asarray(distance_px[rows[index], cols[index]] <= radius_px)
