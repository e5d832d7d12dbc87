"""Blocks of the left view compared with their matches in the right one.

Within a block of one surface, with S the mean of both views at the estimated disparity, the left
view less the right one is::

    left - right = c + u S_x + v S_y + g S - h (S_xx + S_yy)

v are rows by which the right view lies lower, u is what is left of the disparity, g the difference
of contrast, and h the half difference of blur variances beyond what the rig predicts. All five are
fitted to each block.
"""

from typing import NamedTuple

import numpy as np

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.lens_field import lens_field
from d3s.rig import Rig
from d3s.types import FloatArray, Image, Mask

_BLOCK_PX = 32
_SMOOTHING_PX = 2.0  # of both views: a tenth of the noise is left, and most of the texture
_MARGIN_PX = 8  # that the smoothing and the derivatives need
_LEAST_COVER = 0.6  # share of the pixels of a block that need a depth
_ONE_SURFACE_PX = 2.0  # extent of the disparities of a block
_DERIVATIVE = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12
_NOISE_AREA_PX = 4 * np.pi * _SMOOTHING_PX**2  # pixels of smoothed noise that are worth one
_HOLE_PX = 4.0  # standard deviation of the Gaussian that fills holes of the depth
_DERIVATIVE_REACH_PX, _STEP_PX = 4, 1.0  # of second derivatives; a step in disparity
_TERMS = 5
_CLEAR_SHARE = 0.6  # of the squared second derivatives that must be texture and not noise


class ComparedBlocks(NamedTuple):
    """Compared blocks of a frame; arrays have one value per block, lengths in pixels."""

    x_px: FloatArray  # place in the left view, from its middle
    y_px: FloatArray
    disparity_px: FloatArray  # x_left - x_right in the views
    vergence_dpt: FloatArray  # 1/Z
    rows_px: FloatArray  # rows by which the right view lies lower
    rows_sigma_px: FloatArray
    light: FloatArray  # log of the mean of the right view over that of the left one
    blur_px2: FloatArray  # half the blur variance, right less left, beyond the predicted one
    blur_sigma_px2: FloatArray

    @property
    def size(self) -> int:
        """Number of blocks."""
        return self.x_px.size


def compare_blocks(left: Image, right: Image, depth_map: DepthMap, rig: Rig) -> ComparedBlocks:
    """Compare the blocks of a pair on which depth is known and without a step."""
    is_known = np.isfinite(depth_map.depth_m)
    depth_m = _filled(depth_map.depth_m, is_known)
    disparity, blur = _predicted(depth_m, rig)
    views = [np.nan_to_num(view, nan=0.0).astype(np.float32) for view in (left, right)]
    seen, moved = _aligned(views[0], views[1], disparity)
    is_known &= _is_inside(left, right, disparity) & _is_smooth(disparity)
    terms, difference = _regressors(seen, moved, blur)
    weight = is_known.astype(np.float32)
    cover = _means(weight)
    low, high = _ends(np.where(is_known, disparity, np.nan))
    is_good = (cover > _LEAST_COVER) & (high - low < _ONE_SURFACE_PX)
    sums = _sums(terms, difference, weight, is_good)
    samples = cover[is_good] * _BLOCK_PX**2 / _NOISE_AREA_PX
    values, variances, left_over = _solved(sums, samples)
    predicted = _means(weight * (0.5 * (blur[0] + blur[2])))[is_good]
    blurs, blur_variances = _without_noise(sums, left_over, predicted, samples)
    down, across = np.nonzero(is_good)
    rows, cols = depth_m.shape
    share = cover[is_good]
    light = [_means(weight * view)[is_good] / share for view in (seen, moved)]
    is_lit = np.minimum(light[0], light[1]) > 0
    ratio = np.log(np.where(is_lit, light[1], 1) / np.where(is_lit, light[0], 1))
    found = ComparedBlocks(
        x_px=(across + 0.5) * _BLOCK_PX - cols / 2,
        y_px=(down + 0.5) * _BLOCK_PX - rows / 2,
        disparity_px=_means(weight * disparity)[is_good] / share,
        vergence_dpt=_means(weight / depth_m)[is_good] / share,
        rows_px=values[:, 2],
        rows_sigma_px=np.sqrt(variances[:, 2]),
        light=ratio,
        blur_px2=blurs,
        blur_sigma_px2=np.sqrt(blur_variances),
    )
    return ComparedBlocks(*(part[is_lit] for part in found))


def _filled(depth_m: Image, is_known: Mask) -> FloatArray:
    """Depth with holes filled from their surroundings, so that derivatives beside them are right.

    Filled pixels count for nothing else.
    """
    import cv2  # imported here: slow to load

    vergence = np.where(is_known, 1 / np.where(is_known, depth_m, 1.0), 0.0)
    out, share = vergence, is_known.astype(np.float64)
    for sigma in (_HOLE_PX, 4 * _HOLE_PX):
        smooth, cover = (cv2.GaussianBlur(one, (0, 0), sigma) for one in (vergence, share))
        is_near = (cover > 1e-3) & (out == 0)
        out = np.where(is_near, smooth / np.maximum(cover, 1e-3), out)
    return np.asarray(1 / np.where(out > 0, out, 1.0))


def _is_smooth(disparity: FloatArray) -> Mask:
    """Pixels without a step of the disparity within the reach of the derivatives."""
    import cv2

    side = np.ones((2 * _DERIVATIVE_REACH_PX + 1,) * 2, np.uint8)
    values = disparity.astype(np.float32)
    return np.asarray(cv2.dilate(values, side) - cv2.erode(values, side) < _STEP_PX)


def _predicted(depth_m: FloatArray, rig: Rig) -> tuple[FloatArray, FloatArray]:
    """Disparity in the views, and half the difference (3, ...) of the blur variances."""
    optics = rig.optics
    disparity = optics.disparity_px(depth_m)
    field = lens_field(rig, depth_m.shape)
    if field is None:
        right, left = (optics.blur_sigma_px(depth_m, camera) ** 2 for camera in (1, 0))
        half = 0.5 * (right - left)
        return disparity, np.stack([half, np.zeros_like(half), half])
    x, y = field.places(depth_m.shape, 1)
    disparity = disparity + field.lenses.remaining_disparity_px(x, y, 1 / depth_m, optics)
    return disparity, field.half_difference_px2(x, y, disparity)


def _aligned(left: Image, right: Image, disparity: FloatArray) -> tuple[Image, Image]:
    """Smoothed left view, and the smoothed right one at the matches."""
    import cv2

    smooth = [cv2.GaussianBlur(view, (0, 0), _SMOOTHING_PX) for view in (left, right)]
    rows, cols = left.shape
    match = (np.arange(cols)[np.newaxis] - disparity).astype(np.float32)
    line = np.broadcast_to(np.arange(rows, dtype=np.float32)[:, np.newaxis], match.shape).copy()
    moved = cv2.remap(smooth[1], match, line, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(smooth[0]), np.asarray(moved)


def _is_inside(left: Image, right: Image, disparity: FloatArray) -> Mask:
    """Pixels away from the borders whose match is too, without missing pixels nearby."""
    import cv2

    rows, cols = left.shape
    line, col = np.arange(rows)[:, np.newaxis], np.arange(cols)[np.newaxis]
    match = col - disparity
    inside = (line >= _MARGIN_PX) & (line < rows - _MARGIN_PX)
    inside = inside & (col >= _MARGIN_PX) & (col < cols - _MARGIN_PX)
    inside &= (match >= _MARGIN_PX) & (match < cols - _MARGIN_PX - 1)
    for view, place in ((left, np.broadcast_to(col, match.shape)), (right, np.rint(match))):
        is_missing = ~np.isfinite(view)
        if is_missing.any():
            side = 2 * _MARGIN_PX + 1
            near = cv2.dilate(is_missing.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
            at = np.clip(place, 0, cols - 1).astype(np.intp)
            inside &= ~np.take_along_axis(near, at, axis=1)
    return np.asarray(inside)


def _regressors(seen: Image, moved: Image, blur: FloatArray) -> tuple[list[Image], Image]:
    """Terms of the fit, and the difference of the views without the predicted blur."""
    import cv2

    one = np.ones(1)
    mean = np.float32(0.5) * (seen + moved)
    across = cv2.sepFilter2D(mean, -1, _DERIVATIVE, one)
    down = cv2.sepFilter2D(mean, -1, one, _DERIVATIVE)
    xx = cv2.sepFilter2D(across, -1, _DERIVATIVE, one)
    xy = cv2.sepFilter2D(across, -1, one, _DERIVATIVE)
    yy = cv2.sepFilter2D(down, -1, one, _DERIVATIVE)
    predicted = (blur[0] * xx + 2 * blur[1] * xy + blur[2] * yy).astype(np.float32)
    centred = mean - np.float32(mean.mean())
    terms = [np.ones_like(mean), across, down, centred, -(xx + yy)]
    return [np.asarray(term) for term in terms], np.asarray(seen - moved + predicted)


_Sums = tuple[FloatArray, FloatArray, FloatArray]
"""Normal equations of the good blocks: (blocks, terms, terms), (blocks, terms) and (blocks,)."""


def _sums(terms: list[Image], difference: Image, weight: Image, is_good: Mask) -> _Sums:
    """Mean products of the terms, with the difference of the views, and of it with itself."""
    normal = np.empty((int(is_good.sum()), _TERMS, _TERMS))
    right = np.empty(normal.shape[:2])
    for i, first in enumerate(terms):
        # In double precision: terms of blurred texture are nearly proportional to each other.
        weighted = weight * first.astype(np.float64)
        right[:, i] = _means(weighted * difference)[is_good]
        for j in range(i, _TERMS):
            normal[:, i, j] = normal[:, j, i] = _means(weighted * terms[j])[is_good]
    return normal, right, _means(weight * difference**2)[is_good]


def _solved(sums: _Sums, samples: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coefficients (blocks, terms), their variances, and the mean square that is left."""
    normal, right, square = sums
    inverse = _inverse(normal)
    values = np.einsum("bij,bj->bi", inverse, right)
    left_over = np.maximum(square - np.einsum("bi,bi->b", values, right), 1e-14)
    share = left_over / np.maximum(samples - _TERMS, 2.0)
    return values, share[:, np.newaxis] * np.einsum("bii->bi", inverse), left_over


def _inverse(normal: FloatArray) -> FloatArray:
    # A block of one grey value has no derivatives: its variances become huge.
    size = np.abs(np.einsum("bii->bi", normal))[:, np.newaxis]
    return np.linalg.inv(normal + (1e-9 * size + 1e-24) * np.eye(_TERMS))


def _without_noise(
    sums: _Sums, left_over: FloatArray, predicted: FloatArray, samples: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Blur of the blocks, and its variance, with the share of noise in the terms taken out.

    Noise of the mean of both views makes its second derivatives larger than those of the texture,
    and the blur too small. The mean has a quarter of the variance of the difference; the rest is
    that of white noise smoothed by a Gaussian.
    """
    one, two = _SMOOTHING_PX**-2, 2 * _SMOOTHING_PX**-4
    shares = np.zeros((_TERMS, _TERMS))
    shares[[1, 2], [1, 2]] = one / 2
    shares[3, 3], shares[4, 4], shares[3, 4], shares[4, 3] = 1.0, two, one, one
    noise = left_over / 4
    normal, right, _ = sums
    clean = normal - noise[:, np.newaxis, np.newaxis] * shares
    is_clear = clean[:, 4, 4] > _CLEAR_SHARE * normal[:, 4, 4]
    clean = np.where(is_clear[:, np.newaxis, np.newaxis], clean, normal)
    right = right + (noise * predicted)[:, np.newaxis] * shares[4]
    inverse = _inverse(clean)
    blur = np.einsum("bj,bj->b", inverse[:, 4], right)
    variance = left_over / np.maximum(samples - _TERMS, 2.0) * np.abs(inverse[:, 4, 4])
    return blur, np.where(is_clear, variance, np.inf)


def _means(image: Image | FloatArray) -> FloatArray:
    """Mean of each block."""
    rows, cols = (size // _BLOCK_PX for size in image.shape)
    whole = image[: rows * _BLOCK_PX, : cols * _BLOCK_PX]
    blocks = whole.reshape(rows, _BLOCK_PX, cols, _BLOCK_PX)
    return np.asarray(blocks.mean(axis=(1, 3), dtype=np.float64))


def _ends(image: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest known value of each block; infinite where there is none."""
    rows, cols = (size // _BLOCK_PX for size in image.shape)
    whole = image[: rows * _BLOCK_PX, : cols * _BLOCK_PX]
    blocks = whole.reshape(rows, _BLOCK_PX, cols, _BLOCK_PX)
    low = np.fmin.reduce(np.fmin.reduce(blocks, axis=3), axis=1)
    high = np.fmax.reduce(np.fmax.reduce(blocks, axis=3), axis=1)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
