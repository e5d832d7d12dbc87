"""Surfaces of a depth map: planes in inverse depth, fitted around each cell along the left view.

A domain transform (Gastal and Oliveira, 2011) spreads the moments of the evidence over the frame,
and hardly across edges of the left view. Its moments give a weighted plane around each cell, how
far the evidence departs from it, and how far aside it lies: near evidence counts most, and that of
a slanted wall is carried along its slope.
"""

from typing import NamedTuple

import numpy as np

from d3s.estimate.depth_map import DepthMap
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import FloatArray, Image

_SMOOTHING = 0.75  # of the guide, in cells: edges of single pixels are noise
_CONTRAST = 0.02  # unit of contrast, as a share of the range of the view
_REACH, _EDGE = 25.0, 2.0  # of the transform: in cells, and in units of contrast
_ROUNDS = 3
_RIDGE = 100.0  # cells², by which slopes are drawn to zero
_FAINT = 1e-9  # share that all evidence has everywhere, for cells that none reaches


class Surfaces(NamedTuple):
    """Arrays (rows, cols) on the surface at each cell."""

    disparity_px: FloatArray  # of the plane
    spread_px: FloatArray  # standard deviation of the evidence around the plane
    away: FloatArray  # distance to the middle of the evidence, in its standard deviations


def fit_surfaces(guide: Image, disparity_px: Image, weight: FloatArray) -> Surfaces:
    """Fit a plane to the evidence around each cell.

    Parameters
    ----------
    guide
        Left view in units of contrast (rows, cols, channels).
    disparity_px
        Disparities; NaN where there is no evidence.
    weight
        What each piece of evidence counts, 0 to 1.
    """
    known = np.isfinite(disparity_px) & (weight > 0)
    w = np.where(known, weight, 0.0).astype(np.float64)
    d = np.where(known, disparity_px, 0.0).astype(np.float64)
    y, x = np.indices(w.shape, float)
    products = (1, x, y, d, x * x, y * y, x * y, x * d, y * d, d * d)
    moments = np.stack([w * each for each in products])
    sums = spread(guide, moments) + _FAINT * moments.mean(axis=(1, 2), keepdims=True)
    mx, my, md, xx, yy, xy, xd, yd, dd = sums[1:] / sums[0]
    xx, yy, xy = xx - mx * mx, yy - my * my, xy - mx * my
    xd, yd, dd = xd - mx * md, yd - my * md, dd - md * md
    whole = (xx + _RIDGE) * (yy + _RIDGE) - xy * xy
    right = ((yy + _RIDGE) * xd - xy * yd) / whole
    down = ((xx + _RIDGE) * yd - xy * xd) / whole
    x, y = x - mx, y - my
    rest = dd - 2 * (right * xd + down * yd) + right**2 * xx + 2 * right * down * xy + down**2 * yy
    away = ((yy + _RIDGE) * x * x - 2 * xy * x * y + (xx + _RIDGE) * y * y) / whole
    spread_px = np.sqrt(np.maximum(rest, 0))
    return Surfaces(md + right * x + down * y, spread_px, np.sqrt(np.maximum(away, 0)))


def spread(guide: Image, values: FloatArray) -> FloatArray:
    """Domain transform of images (images, rows, cols): to and fro, in rounds of falling reach."""
    fall = -np.sqrt(2) / (_REACH * np.sqrt(3) * 2.0 ** (_ROUNDS - 1) / np.sqrt(4**_ROUNDS - 1))
    rises = [np.abs(np.diff(guide, axis=axis)).max(axis=-1) for axis in (0, 1)]
    down, right = (np.exp(fall * (1 + _REACH / _EDGE * rise)) for rise in rises)
    right = np.ascontiguousarray(right.T)
    for turn in range(_ROUNDS):
        for share in (down, right):
            values = np.array(values, order="C")
            run_over_rows(_sweep, values.shape[2], share ** (2.0**turn), values)
            values = values.swapaxes(1, 2)
    return values


@compiled
def _sweep(start: int, stop: int, share: FloatArray, values: FloatArray) -> None:
    """Filter some columns of images to and fro in place."""
    rows = values.shape[1]
    for image in range(values.shape[0]):
        for row in range(1, rows):
            for col in range(start, stop):
                gap = values[image, row - 1, col] - values[image, row, col]
                values[image, row, col] += share[row - 1, col] * gap
        for row in range(rows - 2, -1, -1):
            for col in range(start, stop):
                gap = values[image, row + 1, col] - values[image, row, col]
                values[image, row, col] += share[row, col] * gap


def per_dpt_px(depth_map: DepthMap) -> float:
    """Disparity of one dioptre, in pixels."""
    optics = depth_map.rig.optics
    return optics.focal_length_px * optics.baseline_m


def guide_of(depth_map: DepthMap) -> Image:
    """Left view in units of contrast (rows, cols, channels).

    Colours are used if there are any. Without a view, the guide is even.
    """
    views: list[Image] = []
    if depth_map.colour is not None:
        views = [depth_map.colour[..., channel].astype(np.float32) for channel in range(3)]
    elif depth_map.intensity is not None:
        views = [depth_map.intensity]
    smooth = [_smoothed(view) for view in views] or [np.zeros(depth_map.depth_m.shape, np.float32)]
    return np.stack(smooth, axis=-1)


def _smoothed(view: Image) -> Image:
    """View in units of contrast: a share of its range, or its noise."""
    import cv2

    is_known = np.isfinite(view)
    if not is_known.any():
        return np.zeros_like(view)
    known = view if is_known.all() else np.where(is_known, view, view[is_known].mean())
    smooth = cv2.GaussianBlur(np.asarray(known, np.float32), (0, 0), _SMOOTHING)
    low, high = np.percentile(smooth[::3, ::3], (1, 99))
    twice = known[::2, 1:-1] * 2 - known[::2, :-2] - known[::2, 2:]
    noise = 1.4826 * float(np.median(np.abs(twice))) / np.sqrt(6) if twice.size else 0.0
    unit = max(_CONTRAST * float(high - low), noise, 1e-12)
    return np.asarray(smooth / np.float32(unit), np.float32)
