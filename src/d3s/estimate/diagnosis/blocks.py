"""Blocks of the left view looked for in all of the right one: beyond the range, on other rows.

An exhaustive search by normalised correlation, of a few blocks, for depth maps that are poor. It
assumes nothing about the camera, so it also finds blocks of swapped views, of views whose rows
disagree, and of points outside of the depth range.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.types import FloatArray, Image, Mask

_BLOCK = 24, 40  # rows and columns of a block, in pixels of the search
_BANDS, _PER_BAND = 5, 7  # blocks down and across
_ROWS_BEYOND = 12  # rows searched above and below, in pixels of the search
_WIDTH = 700  # views are shrunk by whole numbers to about this many columns
_DETAIL_PX = 1.0, 6.0  # standard deviations of the Gaussians whose difference is compared
# Correlation of a block with its match, and its lead on the best place elsewhere.
_MIN_CORRELATION, _MIN_LEAD = 0.7, 0.12
_ELSEWHERE_PX = 6
# Variance of the detail over what white noise makes of it: below the first, a block shows noise
# only; above the second, its texture is strong enough to be found again.
_PLAIN, _RICH = 2.0, 8.0


class Blocks(NamedTuple):
    """Blocks of the left view; lengths in pixels of the frame, arrays with one value per block."""

    x: FloatArray  # place in the frame, -1 to 1
    y: FloatArray
    disparity_px: FloatArray  # x_left - x_right of the best match
    rows_px: FloatArray  # rows by which the right view lies lower there
    contrast: FloatArray  # log of the contrast of the left view over the right one
    is_sure: Mask  # whether the match is good and the only one
    is_plain_left: Mask  # whether the block shows nothing but noise and has no match
    is_plain_right: Mask  # the same of the right view at the same place
    is_rich: Mask  # whether both views show strong texture there


def match_blocks(left: Image, right: Image) -> Blocks | None:
    """Look for blocks of the left view in the right one; None if the views are too small.

    Parameters
    ----------
    left, right
        Views (rows, cols); NaN where there is no intensity.
    """
    step = max(round(left.shape[1] / _WIDTH), 1)
    small = [_shrunk(view, step) for view in (left, right)]
    rows, cols = small[0].shape
    high, wide = _BLOCK
    if rows < high + 2 or cols < 2 * wide:
        return None
    details = [_detail(view) for view in small]
    noise = [_noise_of_detail(view) for view in small]
    # A margin, so that blocks near the edge can be found on rows above and below.
    margin = min(_ROWS_BEYOND, (rows - high) // 4)
    tops = np.unique(np.linspace(margin, rows - high - margin, _BANDS).astype(np.int64))
    starts = np.unique(np.linspace(1, cols - wide - 1, _PER_BAND).astype(np.int64))
    bands = [_band(details[0], details[1], int(top), starts) for top in tops]
    found = np.array(bands).reshape(-1, 5)
    y, x = (place.ravel() for place in np.meshgrid(tops, starts, indexing="ij"))
    strength = [
        _energy(detail, y, x) / max(variance, 1e-30)
        for detail, variance in zip(details, noise, strict=True)
    ]
    is_sure = (found[:, 2] > _MIN_CORRELATION) & (found[:, 2] - found[:, 3] > _MIN_LEAD)
    return Blocks(
        x=2 * (x + wide / 2) / cols - 1,
        y=2 * (y + high / 2) / rows - 1,
        disparity_px=step * found[:, 0],
        rows_px=step * found[:, 1],
        contrast=found[:, 4],
        is_sure=is_sure,
        is_plain_left=(strength[0] < _PLAIN) & ~is_sure,
        is_plain_right=(strength[1] < _PLAIN) & ~is_sure,
        is_rich=np.minimum(*strength) > _RICH,
    )


def _shrunk(view: Image, step: int) -> FloatArray:
    """Means of squares of pixels; missing pixels get the median."""
    is_known = np.isfinite(view)
    middle = float(np.median(view[is_known])) if is_known.any() else 0.0
    rows, cols = (size // step for size in view.shape)
    whole = np.where(is_known, view, np.float32(middle))[: rows * step, : cols * step]
    return np.asarray(
        whole.reshape(rows, step, cols, step).mean(axis=(1, 3), dtype=np.float64) - middle
    )


def _detail(view: FloatArray) -> FloatArray:
    from scipy.ndimage import gaussian_filter

    fine, coarse = (gaussian_filter(view, sigma, mode="nearest") for sigma in _DETAIL_PX)
    return np.asarray(fine - coarse)


def _noise_of_detail(view: FloatArray) -> float:
    """Variance that white noise of the view has in its detail."""
    differences = view[:-2] - 2 * view[1:-1] + view[2:]
    # Median of the squares of a normal distribution: 0.455 times its variance.
    variance = float(np.median(np.square(differences))) / 0.455 / 6
    fine, coarse = _DETAIL_PX
    gain = 1 / (4 * np.pi) * (1 / fine**2 + 1 / coarse**2 - 4 / (fine**2 + coarse**2))
    return variance * float(gain)


def _energy(detail: FloatArray, tops: NDArray[np.int64], starts: NDArray[np.int64]) -> FloatArray:
    high, wide = _BLOCK
    return np.array(
        [
            np.mean(np.square(detail[top : top + high, start : start + wide]))
            for top, start in zip(tops, starts, strict=True)
        ]
    )


def _band(
    left: FloatArray, right: FloatArray, top: int, starts: NDArray[np.int64]
) -> list[FloatArray]:
    """Match the blocks of one band.

    Disparity, rows, correlation, correlation elsewhere, and log of the contrast of left over right.
    """
    high, wide = _BLOCK
    first = max(top - _ROWS_BEYOND, 0)
    area = right[first : min(top + high + _ROWS_BEYOND, right.shape[0])]
    shape = area.shape[0] - high + 1, area.shape[1] - wide + 1
    padded = area.shape[0], -(-area.shape[1] // 64) * 64  # sizes that transform fast
    spectrum = np.fft.rfft2(area, padded)
    size = np.sqrt(np.maximum(_box_sums(np.square(area), _BLOCK), 1e-30))
    found = []
    for start in starts:
        block = left[top : top + high, start : start + wide]
        product = np.fft.irfft2(spectrum * np.conj(np.fft.rfft2(block, padded)), padded)
        norm = max(float(np.sqrt(np.sum(np.square(block)))), 1e-30)
        correlation = product[: shape[0], : shape[1]] / (size * norm)
        ratio = np.log(norm / size.ravel()[correlation.argmax()])
        found.append(np.append(_peak(correlation, int(start), top - first), ratio))
    return found


def _peak(correlation: FloatArray, start: int, own_row: int) -> FloatArray:
    """Disparity, rows, correlation, and correlation elsewhere; none at the edge of the search."""
    row, col = divmod(int(correlation.argmax()), correlation.shape[1])
    best = float(correlation[row, col])
    if row in (0, correlation.shape[0] - 1) or col in (0, correlation.shape[1] - 1):
        return np.array([0.0, 0.0, best, best])
    down, across = _vertex(correlation[:, col], row), _vertex(correlation[row], col)
    near = (
        slice(max(row - _ELSEWHERE_PX, 0), row + _ELSEWHERE_PX + 1),
        slice(max(col - _ELSEWHERE_PX, 0), col + _ELSEWHERE_PX + 1),
    )
    others = correlation.copy()
    others[near] = -1.0
    return np.array([start - across, down - own_row, best, float(others.max())])


def _vertex(values: FloatArray, place: int) -> float:
    """Place of the vertex of the parabola through a maximum and its neighbours."""
    if not 0 < place < values.size - 1:
        return float(place)
    before, here, after = values[place - 1 : place + 2].tolist()
    bend = before - 2 * here + after
    return place + (0.5 * (before - after) / bend if bend < 0 else 0.0)


def _box_sums(values: FloatArray, box: tuple[int, int]) -> FloatArray:
    """Sums over all boxes that lie inside."""
    sums = np.zeros((values.shape[0] + 1, values.shape[1] + 1))
    np.cumsum(np.cumsum(values, axis=0), axis=1, out=sums[1:, 1:])
    high, wide = box
    return np.asarray(
        sums[high:, wide:] - sums[:-high, wide:] - sums[high:, :-wide] + sums[:-high, :-wide]
    )
