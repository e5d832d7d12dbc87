"""Crosstalk: the share of one view that is seen in the other, measured at the matches.

With a share l of the right view in the left one and r of the left view in the right one, a point
at x in the left view and at m in the right one differs by r L(m) - l R(x): by what each view shows
at the place that the point has in the other.
"""

from math import isqrt
from typing import NamedTuple

import numpy as np

from d3s.estimate.diagnosis.light import Value, robust_fit
from d3s.rig import Optics
from d3s.types import FloatArray, Image

# Pixels that are tried: half a millisecond of work, and more if these show something. Fewer with a
# depth than the second tell nothing.
_PLACES, _FEWEST = (1500, 6000), 200
_MOST_ALIKE = 1e6  # condition of the terms, beyond which they cannot be told apart
_LAG = 3  # rows of the second difference that takes light and offsets of columns out
_LEAST, _SIGMAS = 0.012, 6.0
# Parts of the frame, by rows, in each of which the larger share is at least half as large: lenses
# mix all parts alike, objects before a plain wall that are blurred unlike do not.
_PARTS, _LEAST_OF_PART = 3, 0.5
# Disparity that a share moves: brightness over its slope, of texture that the lenses pass.
_PX = 3.0


class Crosstalk(NamedTuple):
    """Shares of the other view that are seen in the left and in the right one."""

    left: Value
    right: Value

    @property
    def sigma_px(self) -> float:
        """Standard deviation of the disparity that is left when the shares are taken out."""
        return _PX * float(np.hypot(self.left.sigma, self.right.sigma))

    def taken_out(self, left: Image, right: Image) -> tuple[Image, Image]:
        """Return the views without the shares."""
        one, other = np.float32(self.left.value), np.float32(self.right.value)
        whole = 1 - one * other
        return np.asarray((left - one * right) / whole), np.asarray((right - other * left) / whole)


def measure_crosstalk(
    left: Image, right: Image, depth_m: Image, optics: Optics
) -> Crosstalk | None:
    """Measure the crosstalk of a pair, None if there is none or it cannot be told.

    Parameters
    ----------
    left, right
        Views (rows, cols); NaN where there is no intensity.
    depth_m
        Depth of the left view (rows, cols); NaN where there is none.
    optics
        The camera.
    """
    if min(left.shape) <= 2 * _LAG:
        return None
    for places in _PLACES:
        samples = _samples(left, right, depth_m, optics, places)
        if samples is None:
            return None
        terms, difference = samples
        normal = terms.T @ terms
        if np.linalg.cond(normal) > _MOST_ALIKE:
            return None
        quick = np.linalg.solve(normal, terms.T @ difference)
        if np.abs(quick[:2]).max() < 0.5 * _LEAST:
            return None
    found = robust_fit(terms, difference)
    if found is None:
        return None
    values = [Value(float(found[0][i]), float(found[1][i])) for i in range(2)]
    if not any(one.exceeds(_LEAST, _SIGMAS) for one in values):
        return None
    larger = int(np.argmax(np.abs(found[0][:2])))
    for part in np.array_split(np.arange(difference.size), _PARTS):  # in the order of the rows
        again = robust_fit(terms[part], difference[part])
        if again is None or again[0][larger] / found[0][larger] < _LEAST_OF_PART:
            return None
    return Crosstalk(*values)


def _samples(
    left: Image, right: Image, depth_m: Image, optics: Optics, places: int
) -> tuple[FloatArray, FloatArray] | None:
    """Terms (pixels, 3) of the shares and of the gain, and the difference of the views."""
    rows, cols = left.shape
    step = max(isqrt(rows * cols // places), 1)
    row, col = (axis.ravel() for axis in np.mgrid[_LAG : rows - _LAG : step, 1 : cols - 1 : step])
    match = col - np.asarray(optics.disparity_px(depth_m[row, col].astype(np.float64)))
    is_inside = (match >= 0) & (match < cols - 1)  # neither, of NaN
    row, col, match = row[is_inside], col[is_inside], match[is_inside]
    own, other = _detail(left, row, col), _between(right, row, match)
    beside = _between(left, row, match), _detail(right, row, col)
    sizes = np.bincount(row, minlength=rows)[row]
    for part in (own, other, *beside):  # offsets of rows
        part -= np.bincount(row, np.nan_to_num(part), rows)[row] / sizes
    # The last term stands for a gain, and for lenses that blur the views unlike.
    terms = np.stack([-beside[1], beside[0], 0.5 * (own + other)], axis=1)
    difference = other - own
    is_known = np.isfinite(terms).all(axis=1) & np.isfinite(difference)
    if is_known.sum() < _FEWEST:
        return None
    return terms[is_known], difference[is_known]


def _detail(view: Image, row: np.ndarray, col: np.ndarray) -> FloatArray:
    """Return second differences along the columns, of means of three pixels along the rows."""
    total = np.zeros(row.shape)
    for down, weight in ((-_LAG, 1.0), (0, -2.0), (_LAG, 1.0)):
        for across in (-1, 0, 1):
            total += weight * view[row + down, np.clip(col + across, 0, view.shape[1] - 1)]
    return total


def _between(view: Image, row: np.ndarray, place: FloatArray) -> FloatArray:
    """Return the detail at places between two columns."""
    first = np.floor(place).astype(np.int64)
    share = place - first
    return np.asarray(
        (1 - share) * _detail(view, row, first) + share * _detail(view, row, first + 1)
    )
