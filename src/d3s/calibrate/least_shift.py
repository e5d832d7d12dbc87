"""Anchors by the paper's method: the point where features shift least from frame to frame."""

from collections.abc import Sequence

import numpy as np

from d3s.calibrate.matches import PairMatches, Place, place_of
from d3s.types import FloatArray

_STEP_SHARE = 1 / 128  # step of the window, as a share of the view
_REACH = 8  # half the width of the window, in steps
_FEWEST_IN_WINDOW = 3  # features
_FOLDS = 8  # of the jackknife


def least_shift(pairs: Sequence[PairMatches]) -> tuple[Place, Place]:
    """Point (x, y) around which features shift least (paper Eq. S6), and its sigma, in pixels.

    The mean squared shift of the features within a window, added over all pairs of frames, is
    smallest where the window is centred on the anchor. The window steps over a grid; a paraboloid
    through the smallest values gives the point between. Sigma is by the jackknife. The point is NaN
    if no pair has features.
    """
    neighbours = [pair for pair in pairs if len(pair.features_first_px)]
    if not neighbours:
        return (np.nan, np.nan), (np.inf, np.inf)
    places = np.concatenate([pair.features_first_px for pair in neighbours])
    low, high = places.min(axis=0), places.max(axis=0)
    step = float((high - low).max()) * _STEP_SHARE
    maps = np.stack([_shift_map(pair, low, high, step) for pair in neighbours])
    whole = _lowest(maps, low, step)
    folds = np.array(
        [
            _lowest(np.delete(maps, np.s_[fold::_FOLDS], axis=0), low, step)
            for fold in range(min(_FOLDS, len(maps)))
        ]
    )
    count = len(folds)
    spread = np.sqrt((count - 1) / count * np.sum((folds - folds.mean(axis=0)) ** 2, axis=0))
    # Interpolation on a grid is not better than a tenth of its step.
    sigma = np.hypot(spread, 0.1 * step)
    return place_of(whole), place_of(sigma)


def _shift_map(pair: PairMatches, low: FloatArray, high: FloatArray, step: float) -> FloatArray:
    """Mean squared shift of the features in the window at each position; NaN if too few."""
    from scipy.ndimage import uniform_filter

    cols, rows = (np.ceil((high - low) / step).astype(int) + 1).tolist()
    col, row = ((pair.features_first_px - low) / step + 0.5).astype(int).T
    square = np.sum((pair.features_second_px - pair.features_first_px) ** 2, axis=1)
    sums, counts = np.zeros((rows, cols)), np.zeros((rows, cols))
    np.add.at(sums, (row, col), square)
    np.add.at(counts, (row, col), 1.0)
    size = 2 * _REACH + 1
    sums = uniform_filter(sums, size, mode="constant") * size**2
    counts = uniform_filter(counts, size, mode="constant") * size**2
    is_enough = counts > _FEWEST_IN_WINDOW - 0.5
    return np.asarray(np.where(is_enough, sums / np.where(is_enough, counts, 1.0), np.nan))


def _lowest(maps: FloatArray, low: FloatArray, step: float) -> FloatArray:
    """Point (2,) where the sum of the maps is smallest, by a paraboloid around the minimum."""
    total = maps.sum(axis=0)
    if not np.any(np.isfinite(total)):
        return np.full(2, np.nan)
    row, col = np.unravel_index(np.nanargmin(total), total.shape)
    rows, cols = np.mgrid[-_REACH : _REACH + 1, -_REACH : _REACH + 1]
    down, along = rows.ravel(), cols.ravel()
    is_in = (
        (row + down >= 0)
        & (row + down < total.shape[0])
        & (col + along >= 0)
        & (col + along < total.shape[1])
    )
    down, along = down[is_in], along[is_in]
    values = total[row + down, col + along]
    is_in = np.isfinite(values)
    terms = np.stack([np.ones_like(along), along, down, along**2, along * down, down**2], axis=1)
    fit = np.linalg.lstsq(terms[is_in].astype(np.float64), values[is_in], rcond=None)[0]
    bend = np.array([[2 * fit[3], fit[4]], [fit[4], 2 * fit[5]]])
    if not np.all(np.linalg.eigvalsh(bend) > 0):
        return np.asarray(low + step * np.array([col, row]))
    lowest = np.clip(-np.linalg.solve(bend, fit[1:3]), -_REACH, _REACH)
    return np.asarray(low + step * (np.array([col, row]) + lowest))
