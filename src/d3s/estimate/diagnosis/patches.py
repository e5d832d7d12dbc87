"""Patches of the left view and their matches in the right one, measured at equal blur.

Each patch is reduced to a few numbers per view: its mean, the difference of two Gaussian means
(its detail), the derivatives of the detail, and the energy of fine second differences. The Gaussian
of the sharper view is the wider one, so that lens and Gaussian together blur both views alike.
"""

from enum import IntEnum
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.lens_field import LensField
from d3s.rig import Optics
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import FloatArray, Image, Mask

# Standard deviations of the two Gaussians of a patch: the inner one in pixels, or as a share of the
# lens blur if that is more, and the outer one over the inner one.
_INNER_PX, _INNER_SHARE, _OUTER = 3.0, 1.0, 2.0
_REACH = 2.5  # half side of a patch, in standard deviations of the outer Gaussian
_LARGEST_HALF_PX = 30
# Places tried on a frame, and pixels in all patches: a few milliseconds of work.
_PLACES, _PIXELS = 2400, 240_000
_SMALLEST_PITCH_PX = 6
# Difference of the disparities across a patch that lies on one surface, in pixels.
_FLAT_PX = 1.0
_FEWEST_BESIDE = 3  # depths beside a place that must be known, of four
_FINE_HALF_PX = 8  # half side of the part whose second differences are measured


class PatchStatistic(IntEnum):
    """Numbers of a patch in one view."""

    MEAN = 0  # mean under the outer Gaussian
    DETAIL = 1  # inner mean less outer mean
    DETAIL_X = 2  # derivatives of the detail, per pixel
    DETAIL_Y = 3


LAGS = (1, 2, 4)
"""Distances in rows of the second differences v(r - lag) - 2 v(r) + v(r + lag)."""


class Patches(NamedTuple):
    """Matched patches of a pair; arrays have one row per patch."""

    x: FloatArray  # place in the frame, -1 at the left and 1 at the right edge
    y: FloatArray  # -1 at the top and 1 at the bottom
    left: FloatArray  # (patches, 4), columns of `PatchStatistic`
    right: FloatArray
    fine: FloatArray  # (patches, 3, lags): mean products left left, right right, left right


class _Places(NamedTuple):
    """Centres of patches and their matches."""

    row: NDArray[np.int64]
    col: NDArray[np.int64]
    disparity_px: FloatArray
    variance_px2: FloatArray  # (patches, 2, 2): of the inner Gaussian by view; down, across
    wider_px2: float  # variance of the outer Gaussian less that of the inner one
    half: int


def matched_patches(
    left: Image, right: Image, depth_m: Image, optics: Optics, field: LensField | None = None
) -> Patches:
    """Measure patches of both views where the depth is known and without a step.

    Parameters
    ----------
    left, right
        Views (rows, cols); NaN where there is no intensity.
    depth_m
        Depth of the left view (rows, cols), NaN where there is none.
    optics
        The camera.
    field
        Its lenses, if they are known to differ from place to place.
    """
    places = _places(depth_m, optics, field)
    count = places.row.size
    measures = np.empty((count, 2, len(PatchStatistic)))
    fine = np.empty((count, 3, len(LAGS)))
    run_over_rows(
        _measure,
        count,
        left,
        right,
        places.row,
        places.col,
        places.disparity_px,
        places.variance_px2,
        places.wider_px2,
        places.half,
        measures,
        fine,
    )
    is_known = np.isfinite(measures).all(axis=(1, 2)) & np.isfinite(fine).all(axis=(1, 2))
    rows, cols = depth_m.shape
    return Patches(
        x=(2 * (places.col + 0.5) / cols - 1)[is_known],
        y=(2 * (places.row + 0.5) / rows - 1)[is_known],
        left=measures[is_known, 0],
        right=measures[is_known, 1],
        fine=fine[is_known],
    )


def _places(depth_m: Image, optics: Optics, field: LensField | None = None) -> _Places:
    """Choose places on a regular grid whose surroundings have one surface."""
    rows, cols = depth_m.shape
    pitch = max(isqrt(rows * cols // _PLACES), _SMALLEST_PITCH_PX)
    grid = np.meshgrid(
        np.arange(pitch // 2, rows, pitch), np.arange(pitch // 2, cols, pitch), indexing="ij"
    )
    row, col = (axis.ravel() for axis in grid)
    row, col = _kept((row, col), np.isfinite(depth_m[row, col]))
    depth = depth_m[row, col].astype(np.float64)
    disparity = optics.disparity_px(depth)
    if field is None:
        sigmas = np.stack([optics.blur_sigma_px(depth, camera) for camera in (0, 1)], axis=1)
        variances = np.repeat(sigmas[:, :, np.newaxis] ** 2, 2, axis=2)
    else:
        x, y = field.places(depth_m.shape, 1)
        x, y = x[col], y[row, 0]
        disparity = disparity + field.lenses.remaining_disparity_px(x, y, 1 / depth, optics)
        # Down and across; the mixed part is small, and 0 in the middle row and column.
        variances = np.stack([one[[2, 0]].T for one in field.blur_px2(x, y, disparity)], axis=1)
    blur_px = float(np.sqrt(np.median(variances.max(axis=(1, 2))))) if row.size else 0.0
    inner_px = max(_INNER_PX, _INNER_SHARE * blur_px)
    half = min(int(np.ceil(_REACH * _OUTER * inner_px)), _LARGEST_HALF_PX)
    is_good = _is_inside(row, col, disparity, half, depth_m.shape)
    is_good &= _is_flat(depth_m, row, col, disparity, half // 2, optics)
    chosen = np.flatnonzero(is_good)
    most = max(_PIXELS // (2 * half + 1) ** 2, 1)
    if chosen.size > most:
        chosen = chosen[np.linspace(0, chosen.size - 1, most).astype(np.int64)]
    # The sharper view gets what its lens lacks in blur.
    lacking = variances[chosen].max(axis=1, keepdims=True) - variances[chosen]
    return _Places(
        row[chosen],
        col[chosen],
        disparity[chosen],
        inner_px**2 + lacking,
        (_OUTER**2 - 1) * inner_px**2,
        half,
    )


def _kept(
    places: tuple[NDArray[np.int64], NDArray[np.int64]], mask: Mask
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return places[0][mask], places[1][mask]


def _is_inside(
    row: NDArray[np.int64],
    col: NDArray[np.int64],
    disparity_px: FloatArray,
    half: int,
    shape: tuple[int, ...],
) -> Mask:
    """Return whether patch and match are inside the frame."""
    reach = max(half, _FINE_HALF_PX + LAGS[-1])
    match = col - disparity_px
    inside = (row >= reach) & (row < shape[0] - reach) & (col >= reach) & (col < shape[1] - reach)
    return np.asarray(inside & (match >= reach + 1) & (match < shape[1] - reach - 2))


def _is_flat(
    depth_m: Image,
    row: NDArray[np.int64],
    col: NDArray[np.int64],
    disparity_px: FloatArray,
    reach: int,
    optics: Optics,
) -> Mask:
    """Return whether most depths around the places are known, and none has a step."""
    known = np.zeros(row.shape, dtype=np.int64)
    has_step = np.zeros(row.shape, dtype=np.bool_)
    for down, right in ((-reach, 0), (reach, 0), (0, -reach), (0, reach)):
        beside = depth_m[
            np.clip(row + down, 0, depth_m.shape[0] - 1),
            np.clip(col + right, 0, depth_m.shape[1] - 1),
        ]
        known += np.isfinite(beside)
        has_step |= np.abs(optics.disparity_px(beside) - disparity_px) > _FLAT_PX
    return np.asarray((known >= _FEWEST_BESIDE) & ~has_step)


@compiled
def _measure(
    start: int,
    stop: int,
    left: Image,
    right: Image,
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    disparity_px: FloatArray,
    variance_px2: FloatArray,
    wider_px2: float,
    half: int,
    measures: FloatArray,
    fine: FloatArray,
) -> None:
    """Measure patches start to stop - 1 in both views.

    Parameters
    ----------
    start, stop
        Patches to measure, the last one excluded.
    left, right
        Views (rows, cols).
    rows, cols
        Centres of the patches in the left view.
    disparity_px
        Disparity of each patch.
    variance_px2
        Variance of the inner Gaussian in the left and in the right view (patches, 2, 2), down and
        across.
    wider_px2
        Variance of the outer Gaussian less that of the inner one.
    half
        Half side of a patch in pixels; both patches of every pair are inside the frame.
    measures
        Result (patches, 2, 4), written in place.
    fine
        Result (patches, 3, lags), written in place.
    """
    weights = np.empty((2, 4, 2 * half + 2))
    for i in range(start, stop):
        centre = cols[i] - disparity_px[i]
        match = int(np.floor(centre))
        _gaussians(variance_px2[i, 0], wider_px2, 0.0, half, weights)
        _filter(left, rows[i], cols[i], half, weights, measures[i, 0])
        _gaussians(variance_px2[i, 1], wider_px2, centre - match, half, weights)
        _filter(right, rows[i], match, half, weights, measures[i, 1])
        _fine_products(left, right, rows[i], cols[i], int(np.rint(centre)), fine[i])


@compiled
def _gaussians(
    variances: FloatArray, wider: float, shift: float, half: int, weights: FloatArray
) -> None:
    """Make weights along rows and columns: inner, its derivative, outer, its derivative.

    A column more than rows, since a match lies between two columns.
    """
    for axis in range(2):
        by = shift if axis == 1 else 0.0
        for scale in range(2):
            spread = variances[axis] + scale * wider
            total = 0.0
            for k in range(2 * half + 1 + axis):
                distance = k - half - by
                weight = np.exp(-0.5 * distance * distance / spread)
                total += weight
                weights[axis, 2 * scale, k] = weight
                weights[axis, 2 * scale + 1, k] = weight * distance / spread
            for k in range(2 * half + 1 + axis):
                weights[axis, 2 * scale, k] /= total
                weights[axis, 2 * scale + 1, k] /= total


@compiled
def _filter(
    view: Image, row: int, col: int, half: int, weights: FloatArray, out: FloatArray
) -> None:
    """Measure one patch: the mean, the detail and its derivatives."""
    width = 2 * half + 2
    down, across = weights[0], weights[1]
    inner, inner_y = np.zeros(width), np.zeros(width)  # sums along each column
    outer, outer_y = np.zeros(width), np.zeros(width)
    for k in range(2 * half + 1):
        line = view[row - half + k, col - half : col + half + 2]
        a, a_y, b, b_y = down[0, k], down[1, k], down[2, k], down[3, k]
        for n in range(width):
            value = line[n]
            inner[n] += a * value
            inner_y[n] += a_y * value
            outer[n] += b * value
            outer_y[n] += b_y * value
    mean = detail = detail_x = detail_y = 0.0
    for n in range(width):
        mean += across[2, n] * outer[n]
        detail += across[0, n] * inner[n] - across[2, n] * outer[n]
        detail_x += across[1, n] * inner[n] - across[3, n] * outer[n]
        detail_y += across[0, n] * inner_y[n] - across[2, n] * outer_y[n]
    out[0], out[1], out[2], out[3] = mean, detail, detail_x, detail_y


@compiled
def _fine_products(
    left: Image, right: Image, row: int, col: int, match: int, out: FloatArray
) -> None:
    """Measure the mean products of the second differences along columns, at each lag."""
    side = 2 * _FINE_HALF_PX + 1
    ours = slice(col - _FINE_HALF_PX, col + _FINE_HALF_PX + 1)
    theirs = slice(match - _FINE_HALF_PX, match + _FINE_HALF_PX + 1)
    sums = np.empty((3, side))
    for i in range(len(LAGS)):
        lag = LAGS[i]
        sums[:] = 0.0
        for r in range(row - _FINE_HALF_PX, row + _FINE_HALF_PX + 1):
            a, b, c = left[r - lag, ours], left[r, ours], left[r + lag, ours]
            d, e, f = right[r - lag, theirs], right[r, theirs], right[r + lag, theirs]
            for n in range(side):
                first, second = a[n] - 2 * b[n] + c[n], d[n] - 2 * e[n] + f[n]
                sums[0, n] += first * first
                sums[1, n] += second * second
                sums[2, n] += first * second
        for j in range(3):
            out[j, i] = sums[j].sum() / (side * side)
