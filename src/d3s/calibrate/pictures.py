"""Views made small and smooth, and the features by which two of them are first compared."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.alignment import spline_of
from d3s.calibrate.fields import Box
from d3s.types import FloatArray, Image, Mask

if TYPE_CHECKING:
    import cv2

_ROWS_PX = 720  # of the pictures that are compared: blur and smoothing leave no finer detail
_SMOOTH = 1.0  # sigma, of those pixels: a hundredth is left of what they cannot show
_FEATURES = 1000
_RATIO = 0.75  # of the nearest descriptor's distance to the second nearest
_RANSAC_PX = 2.0
FEWEST_FEATURES = 20  # that agree on a homography; chance brings 4 to 8 together


class Features(NamedTuple):
    """What stands out in a picture: where, and what it looks like."""

    places_px: FloatArray
    descriptors: NDArray[Any]


class View(NamedTuple):
    """One view of one frame, made small and smooth."""

    picture: Image
    spline: Image
    from_rim_px: Image  # of each pixel, to where the light ends
    origin_px: FloatArray  # of its first pixel, in the raw frame
    step_px: int
    sift: Features
    orb: Features

    def raw_px(self, places_px: FloatArray) -> FloatArray:
        """Raw pixels of places in the small picture."""
        return np.asarray(places_px * self.step_px + self.origin_px)


class Link(NamedTuple):
    """Two pictures that fit, and how."""

    matrix: FloatArray
    features_px: tuple[FloatArray, FloatArray]


def make_view(image: Image, box: Box, mask: Mask) -> View:
    """One view of a raw frame; `mask` is the light of that lens within its box."""
    import cv2

    step = max(1, round(box.rows / _ROWS_PX))
    part = np.ascontiguousarray(box.of(image), dtype=np.float32)
    smooth = cv2.GaussianBlur(part, (0, 0), _SMOOTH * step)
    first = step // 2
    picture = np.ascontiguousarray(smooth[first::step, first::step], dtype=np.float32)
    origin = np.array([box.col + first, box.row + first], dtype=np.float64)
    grey = _even_contrast(picture)
    factor = 2 if min(grey.shape) >= _ROWS_PX // 2 else 1
    coarse = np.asarray(cv2.pyrDown(grey), dtype=np.uint8) if factor == 2 else grey
    return View(
        picture,
        spline_of(picture),
        _from_rim_px(mask[first::step, first::step]),
        origin,
        step,
        _features(coarse, cv2.SIFT_create(nfeatures=_FEATURES), factor),  # type: ignore[attr-defined]
        _features(grey, cv2.ORB_create(nfeatures=2 * _FEATURES), 1),  # type: ignore[attr-defined]
    )


def _from_rim_px(mask: Mask) -> Image:
    import cv2

    # The edge of the picture is a rim too.
    framed = np.pad(mask.astype(np.uint8), 1)
    distance = cv2.distanceTransform(framed, cv2.DIST_L2, cv2.DIST_MASK_5)
    return np.asarray(distance[1:-1, 1:-1], dtype=np.float32)


def _even_contrast(picture: Image) -> NDArray[np.uint8]:
    """Grey values of 8 bits with the same contrast everywhere, but little where there is none."""
    import cv2

    reach = max(picture.shape) / 30
    bare = picture - cv2.GaussianBlur(picture, (0, 0), reach)
    contrast = np.sqrt(cv2.GaussianBlur(bare * bare, (0, 0), reach))
    floor = 0.1 * float(np.sqrt(np.mean(bare * bare))) + 1e-3
    return np.clip(128 + 50 * bare / (contrast + floor), 0, 255).astype(np.uint8)


def _features(grey: NDArray[np.uint8], detector: "cv2.Feature2D", factor: int) -> Features:
    keypoints, descriptors = detector.detectAndCompute(grey, None)
    if descriptors is None or not len(keypoints):
        return Features(np.empty((0, 2)), np.empty((0, 1), np.uint8))
    places = np.array([keypoint.pt for keypoint in keypoints], dtype=np.float64)
    return Features(places * factor, descriptors)


def motion_link(first: View, second: View) -> Link | None:
    """Homography between two frames of a view, from SIFT features."""
    import cv2

    places = _agreeing(first.sift, second.sift)
    if len(places[0]) < FEWEST_FEATURES:
        return None
    cv2.setRNGSeed(0)
    matrix, is_in = cv2.findHomography(*places, cv2.RANSAC, _RANSAC_PX)
    return _checked_link(matrix, is_in, places)


def across_link(left: View, right: View) -> Link | None:
    """Similarity between two views of a frame, from ORB features."""
    import cv2

    places = _agreeing(left.orb, right.orb)
    if len(places[0]) < FEWEST_FEATURES:
        return None
    cv2.setRNGSeed(0)
    matrix, is_in = cv2.estimateAffinePartial2D(
        *places, method=cv2.RANSAC, ransacReprojThreshold=2 * _RANSAC_PX
    )
    if matrix is not None:
        matrix = np.vstack([matrix, [0.0, 0.0, 1.0]])
    return _checked_link(matrix, is_in, places)


def _checked_link(
    matrix: NDArray[Any] | None,
    is_in: NDArray[Any] | None,
    places: tuple[FloatArray, FloatArray],
) -> Link | None:
    if matrix is None or is_in is None or not np.all(np.isfinite(matrix)):
        return None
    keep = is_in.ravel() > 0
    size = float(np.linalg.det(np.asarray(matrix, np.float64)[:2, :2]))
    # A board that is mirrored, or thrice as large as a frame before, is none.
    if np.count_nonzero(keep) < FEWEST_FEATURES or not 1 / 9 < size < 9:
        return None
    return Link(np.asarray(matrix, np.float64), (places[0][keep], places[1][keep]))


def _agreeing(first: Features, second: Features) -> tuple[FloatArray, FloatArray]:
    """Places of features whose descriptors are much nearer to each other than to any other."""
    import cv2

    if min(len(first.places_px), len(second.places_px)) < 2:
        return np.empty((0, 2)), np.empty((0, 2))
    norm = cv2.NORM_HAMMING if first.descriptors.dtype == np.uint8 else cv2.NORM_L2
    pairs = cv2.BFMatcher(norm).knnMatch(first.descriptors, second.descriptors, k=2)
    good = [best for best, other in pairs if best.distance < _RATIO * other.distance]
    return (
        first.places_px[[match.queryIdx for match in good]].reshape(-1, 2),
        second.places_px[[match.trainIdx for match in good]].reshape(-1, 2),
    )
