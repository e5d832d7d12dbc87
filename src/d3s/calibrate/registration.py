"""Registration of two pictures of the board: by features to a pixel, then by windows.

Features (SIFT from frame to frame, ORB from view to view) with a ratio test and RANSAC give the
homography between two pictures to a pixel or two. A window is carried over by this homography; the
shift that is left is found to hundredths of a pixel by Gauss-Newton steps on the grey values, with
gain and offset free in each window. Blur is symmetric, so that it does not shift a window.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.fields import Box
from d3s.runtime.compile import compiled, inlined, part
from d3s.runtime.parallel import run_over_rows
from d3s.types import FloatArray, Image, Mask

if TYPE_CHECKING:
    import cv2

_ROWS_PX = 720  # height of the small pictures: blur and smoothing leave no finer detail
_SMOOTH = 1.0  # sigma of the anti-aliasing filter in small pixels: leaves 1 % of aliased detail
COARSER = 2.0
"""Smoothing of coarse pictures over that of the small pictures."""

_FEATURES = 1000
_RATIO = 0.75  # largest ratio of distances to the nearest and the second nearest descriptor
_RANSAC_PX = 2.0
FEWEST_FEATURES = 20  # that agree on a homography; by chance 4 to 8 agree

_STEPS = 6  # Gauss-Newton steps: each reduces the error to about a tenth
_SETTLED_PX = 0.01  # the fit has converged when a step is smaller
_FARTHEST_PX = 4.0  # largest error of the homography by features


# Features -----------------------------------------------------------------------------------------


class Features(NamedTuple):
    """Features of a picture."""

    places_px: FloatArray  # (features, 2): x, y
    descriptors: NDArray[Any]  # (features, length)


_NO_FEATURES = Features(np.empty((0, 2)), np.empty((0, 1), np.uint8))


class ReducedView(NamedTuple):
    """One view of one frame, low-pass filtered and subsampled, with its features."""

    picture: Image
    spline: Image  # cubic spline coefficients of the picture
    from_rim_px: Image  # distance of each pixel from the edge of the light
    origin_px: FloatArray  # x, y of the first pixel in the raw frame
    step_px: int  # raw pixels per pixel
    sift: Features
    orb: Features

    def raw_px(self, places_px: FloatArray) -> FloatArray:
        """Raw pixels of places (places, 2) in the small picture."""
        return np.asarray(places_px * self.step_px + self.origin_px)


class Link(NamedTuple):
    """Homography between two pictures, and the features that agree on it."""

    matrix: FloatArray  # (3, 3)
    features_px: tuple[FloatArray, FloatArray]  # (features, 2) in each of the pictures


def make_view(image: Image, box: Box, mask: Mask, *, with_sift: bool = True) -> ReducedView:
    """Cut one view from a raw frame, subsample it and find its features.

    `mask` (box.rows, box.cols) are the pixels within the outline of the field. SIFT features are
    needed by `motion_link`, and not by `across_link`.
    """
    import cv2

    step = _step(box.rows)
    part = np.ascontiguousarray(box.of(image), dtype=np.float32)
    smooth = cv2.GaussianBlur(part, (0, 0), smoothing_px(box.rows))
    first = step // 2
    picture = np.ascontiguousarray(smooth[first::step, first::step], dtype=np.float32)
    origin = np.array([box.col + first, box.row + first], dtype=np.float64)
    grey = _even_contrast(picture)
    factor = 2 if min(grey.shape) >= _ROWS_PX // 2 else 1
    sift = _NO_FEATURES
    if with_sift:
        coarse = np.asarray(cv2.pyrDown(grey), dtype=np.uint8) if factor == 2 else grey
        sift = _features(coarse, cv2.SIFT_create(nfeatures=_FEATURES), factor)  # type: ignore[attr-defined]
    return ReducedView(
        picture,
        spline_of(picture),
        _from_rim_px(mask[first::step, first::step]),
        origin,
        step,
        sift,
        _features(grey, cv2.ORB_create(nfeatures=2 * _FEATURES), 1),  # type: ignore[attr-defined]
    )


def smoothing_px(rows: float) -> float:
    """Sigma of the smoothing of a view of so many rows, in its pixels, before it is subsampled."""
    return _SMOOTH * _step(rows)


def coarse_picture(picture: Image) -> Image:
    """Small picture with `COARSER` times its smoothing."""
    import cv2

    return np.asarray(cv2.GaussianBlur(picture, (0, 0), _SMOOTH * float(np.sqrt(COARSER**2 - 1))))


def _step(rows: float) -> int:
    return max(1, round(rows / _ROWS_PX))


def _from_rim_px(mask: Mask) -> Image:
    import cv2

    # The edge of the picture counts as an edge of the light.
    framed = np.pad(mask.astype(np.uint8), 1)
    distance = cv2.distanceTransform(framed, cv2.DIST_L2, cv2.DIST_MASK_5)
    return np.asarray(distance[1:-1, 1:-1], dtype=np.float32)


def _even_contrast(picture: Image) -> NDArray[np.uint8]:
    """8-bit picture with local contrast normalised; a floor keeps flat parts flat."""
    import cv2

    reach = max(picture.shape) / 30
    bare = picture - cv2.GaussianBlur(picture, (0, 0), reach)
    contrast = np.sqrt(cv2.GaussianBlur(bare * bare, (0, 0), reach))
    floor = 0.1 * float(np.sqrt(np.mean(bare * bare))) + 1e-3
    return np.clip(128 + 50 * bare / (contrast + floor), 0, 255).astype(np.uint8)


def _features(grey: NDArray[np.uint8], detector: "cv2.Feature2D", factor: int) -> Features:
    keypoints, descriptors = detector.detectAndCompute(grey, None)
    if descriptors is None or not len(keypoints):
        return _NO_FEATURES
    places = np.array([keypoint.pt for keypoint in keypoints], dtype=np.float64)
    return Features(places * factor, descriptors)


def motion_link(first: ReducedView, second: ReducedView) -> Link | None:
    """Homography between two frames of one view, from SIFT features; None if too few agree."""
    import cv2

    places = agreeing_features(first.sift, second.sift)
    return _link(places, cv2.findHomography, _RANSAC_PX)


def across_link(left: ReducedView, right: ReducedView) -> Link | None:
    """Similarity between the views of one frame, from ORB features; None if too few agree."""
    return similarity_link(agreeing_features(left.orb, right.orb))


def similarity_link(places: tuple[FloatArray, FloatArray]) -> Link | None:
    """Similarity that most pairs of places agree on; None if too few do."""
    import cv2

    return _link(places, cv2.estimateAffinePartial2D, 2 * _RANSAC_PX)


def _link(
    places: tuple[FloatArray, FloatArray], fit: Callable[..., Any], tolerance_px: float
) -> Link | None:
    """Fit by RANSAC to features that pass the ratio test; `fit` is a function of OpenCV."""
    import cv2

    if len(places[0]) < FEWEST_FEATURES:
        return None
    cv2.setRNGSeed(0)
    fitted, is_in = fit(*places, method=cv2.RANSAC, ransacReprojThreshold=tolerance_px)
    if fitted is None or is_in is None or not np.all(np.isfinite(fitted)):
        return None
    matrix = np.eye(3)
    matrix[: len(fitted)] = fitted  # the affine function returns the first two rows
    keep = is_in.ravel() > 0
    size = float(np.linalg.det(matrix[:2, :2]))
    # A board that is mirrored, or three times as large as in the frame before, is a false match.
    if np.count_nonzero(keep) < FEWEST_FEATURES or not 1 / 9 < size < 9:
        return None
    return Link(matrix, (places[0][keep], places[1][keep]))


def agreeing_features(first: Features, second: Features) -> tuple[FloatArray, FloatArray]:
    """Places of the features that pass the ratio test, (features, 2) in each picture."""
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


# Windows ------------------------------------------------------------------------------------------


class Aligned(NamedTuple):
    """Places of windows in the second picture."""

    places_px: FloatArray  # (windows, 2): x, y; NaN where not found
    sigma_px: FloatArray  # (windows,): standard deviation if all pixels were independent


def spline_of(picture: Image) -> Image:
    """Coefficients of the cubic spline through all pixels.

    Cubic interpolation of the pixels themselves underestimates small shifts by some per cent.
    """
    from scipy.ndimage import spline_filter

    return np.asarray(spline_filter(picture, order=3, output=np.float32, mode="mirror"))


def align_windows(
    first: Image, second: Image, matrix: FloatArray, centres_px: FloatArray, half_px: int
) -> Aligned:
    """Find windows of one picture in another.

    A window that reaches beyond either picture, has no texture or does not converge is NaN.

    `second` is the `spline_of` the second picture; `matrix` the homography from (x, y, 1) of the
    first picture to the second, right to 4 px; `centres_px` (windows, 2) are whole numbers. Windows
    are 2 half_px + 1 pixels wide and high.
    """
    count = len(centres_px)
    places = np.full((count, 2), np.nan)
    sigma = np.full(count, np.nan)
    weights = np.hanning(2 * half_px + 3)[1:-1]
    centres = np.ascontiguousarray(centres_px, dtype=np.int64)
    run_over_rows(
        _align, count, first, second, np.ascontiguousarray(matrix, np.float64), centres, weights,
        places, sigma,
    )  # fmt: skip
    return Aligned(places, sigma)


def mean_square_frequency(
    first: Image, second: Image, matrix: FloatArray, centres_px: FloatArray, half_px: int
) -> FloatArray:
    """Mean square frequency (windows,) of what two pictures both show, weighted as by a match.

    A match weights each frequency k by k² times the cross power of the pictures, to which their
    noise does not contribute. NaN where the pictures have nothing in common.

    The arguments are as for `align_windows`, with the second picture itself.
    """
    import cv2

    rows, cols = first.shape
    moved = cv2.warpPerspective(
        second,
        matrix,
        (cols, rows),
        flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )
    size = (2 * half_px + 1, 2 * half_px + 1)
    pairs = [(cv2.Laplacian(one, cv2.CV_32F) for one in (first, moved))]
    pairs += [(np.diff(one, axis=axis, append=0) for one in (first, moved)) for axis in (0, 1)]
    curvature, down, across = (
        cv2.blur(np.asarray(one * other, dtype=np.float32), size) for one, other in pairs
    )
    col, row = np.rint(centres_px).astype(np.int64).T
    slope = down[row, col] + across[row, col]
    is_known = (slope > 0) & (curvature[row, col] > 0)
    return np.where(is_known, curvature[row, col] / np.where(is_known, slope, 1), np.nan)


@inlined
def _cubic(f: Any, taps: Any, slopes: Any) -> None:
    """Weights of four spline coefficients for value and slope at a fraction f after the second."""
    g = 1 - f
    taps[0] = g * g * g / 6
    taps[1] = (4 - 3 * f * f * (1 + g)) / 6
    taps[2] = (4 - 3 * g * g * (1 + f)) / 6
    taps[3] = f * f * f / 6
    slopes[0] = -g * g / 2
    slopes[1] = f * (3 * f - 4) / 2
    slopes[2] = g * (4 - 3 * g) / 2
    slopes[3] = f * f / 2


@inlined
def _carried(matrix: FloatArray, x: float, y: float) -> tuple[float, float]:
    """Place after a homography."""
    z = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2]
    return (
        (matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]) / z,
        (matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]) / z,
    )


@inlined
def _interpolate(spline: Image, u: float, v: float, taps: FloatArray, terms: FloatArray) -> None:
    """Write slope in x, slope in y and value of a spline at (u, v) to the first three terms."""
    col, row = int(u), int(v)
    _cubic(u - col, taps[0], taps[1])
    _cubic(v - row, taps[2], taps[3])
    value, value_x, value_y = 0.0, 0.0, 0.0
    for k in range(4):
        line, slope = 0.0, 0.0
        for m in range(4):
            grey = spline[row - 1 + k, col - 1 + m]
            line += taps[0, m] * grey
            slope += taps[1, m] * grey
        value += taps[2, k] * line
        value_x += taps[2, k] * slope
        value_y += taps[3, k] * line
    terms[0], terms[1], terms[2] = value_x, value_y, value


@inlined
def _add(terms: FloatArray, weight: float, target: Any, normal: FloatArray, right: Any) -> None:
    """Add one pixel to the normal equations, upper triangle only."""
    for a in range(4):
        for b in range(a, 4):
            normal[a, b] += weight * terms[a] * terms[b]
        right[a] += weight * terms[a] * target


@part
def _sums(
    first: Image,
    spline: Image,
    matrix: FloatArray,
    centre: NDArray[np.int64],
    shift: FloatArray,
    weights: FloatArray,
    normal: FloatArray,
    right: FloatArray,
) -> tuple[float, float]:
    """Normal equations of a window; returns its weighted sum of squares and its weight.

    The unknowns are gain times shift in x, gain times shift in y, gain and offset. The weight is 0
    if the window leaves the picture.
    """
    rows, cols = spline.shape
    half = len(weights) // 2
    taps, terms = np.empty((4, 4)), np.ones(4)
    normal[:] = 0.0
    right[:] = 0.0
    square, total = 0.0, 0.0
    for i in range(-half, half + 1):
        for j in range(-half, half + 1):
            u, v = _carried(matrix, float(centre[0] + j), float(centre[1] + i))
            u, v = u + shift[0], v + shift[1]
            if not (u >= 1.0 and v >= 1.0 and u < cols - 2.0 and v < rows - 2.0):
                return 0.0, 0.0
            _interpolate(spline, u, v, taps, terms)
            weight = weights[half + i] * weights[half + j]
            target = first[centre[1] + i, centre[0] + j]
            _add(terms, weight, target, normal, right)
            square += weight * target * target
            total += weight
    return square, total


@part
def _inverse(normal: FloatArray) -> Any:
    """Inverse of the normal matrix from its upper triangle, regularised so that it exists."""
    for a in range(4):
        normal[a, a] *= 1 + 1e-9
        normal[a, a] += 1e-12
        for b in range(a):
            normal[a, b] = normal[b, a]
    return np.linalg.inv(normal)


@part
def _find_shift(
    first: Image,
    spline: Image,
    matrix: FloatArray,
    centre: NDArray[np.int64],
    weights: FloatArray,
    shift: FloatArray,
) -> tuple[bool, float]:
    """Write the shift of a window after the homography; returns convergence and sigma in px."""
    normal, right = np.empty((4, 4)), np.empty(4)
    shift[:] = 0.0
    for _ in range(_STEPS):
        square, total = _sums(first, spline, matrix, centre, shift, weights, normal, right)
        if total == 0.0:
            break
        inverse = _inverse(normal)
        solution = inverse @ right
        gain = solution[2]
        if not gain > 0.2:
            break
        step_x, step_y = solution[0] / gain, solution[1] / gain
        size = float(np.hypot(step_x, step_y))
        if not size < _FARTHEST_PX:
            break
        # The linear model does not hold for steps longer than a pixel or two.
        shortening = 1.0 if size < 1.5 else 1.5 / size
        shift[0] += shortening * step_x
        shift[1] += shortening * step_y
        if size < _SETTLED_PX:
            left = max(float(square - solution @ right), 0.0) / total
            sigma = np.sqrt(left * (inverse[0, 0] + inverse[1, 1]) / 2) / gain
            return bool(np.hypot(shift[0], shift[1]) < _FARTHEST_PX), sigma
    return False, np.nan


@compiled
def _align(
    start: int,
    stop: int,
    first: Image,
    spline: Image,
    matrix: FloatArray,
    centres: NDArray[np.int64],
    weights: FloatArray,
    places: FloatArray,
    sigma: FloatArray,
) -> None:
    """Places and standard deviations of windows start to stop - 1; unchanged where not found."""
    rows, cols = first.shape
    half = len(weights) // 2
    shift = np.empty(2)
    for n in range(start, stop):
        x, y = centres[n, 0], centres[n, 1]
        if x < half or y < half or x + half >= cols or y + half >= rows:
            continue
        is_found, spread = _find_shift(first, spline, matrix, centres[n], weights, shift)
        if is_found:
            u, v = _carried(matrix, float(x), float(y))
            places[n, 0], places[n, 1] = u + shift[0], v + shift[1]
            sigma[n] = spread
