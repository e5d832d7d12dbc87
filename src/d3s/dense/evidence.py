"""Evidence for the fill: measured and weak depths of a depth map, and the left view as a guide."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from d3s.dense.candidates import CELL_PX, Evidence
from d3s.dense.judge import Around, Ground
from d3s.dense.planes import block_planes
from d3s.dense.sweeps import sweep_sides
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.types import Image, Mask

_SMOOTHING = 0.75  # of the guide, in cells: edges of single pixels are noise
_CONTRAST = 0.02  # unit of contrast, as a share of the range of the view
_NEARBY, _WIDE, _TEXTURE = 15, 61, 5  # sides of windows, in cells
_SURE = 4.0  # log-odds of measured depths
_LEAST_ODDS = 1.4  # log-odds from which on weak depths count as evidence for others
_WEAK_START, _DOUBT = 2.5, 50.0  # cost at which paths from weak depths begin, in cells


class Cells(NamedTuple):
    """Depth map of cells of 2 x 2 pixels, and which of them are measured."""

    depth_map: DepthMap
    is_measured: Mask


class WeakModel(NamedTuple):
    """Log-odds that a weak depth is right."""

    constant: float
    confidence: float  # of ln(c / (1 - c))
    carried: float
    nearby: float  # of ln(share of measured pixels nearby + 0.02)
    sigma: float  # of ln(sigma in px + 0.02)
    wide: float
    frame: float


def cells_of(depth_map: DepthMap, is_measured: Mask) -> Cells:
    """Shrink a depth map to cells; a cell is measured if all of its pixels are."""
    import cv2

    rows, cols = is_measured.shape
    padded = np.pad(is_measured, ((0, rows % CELL_PX), (0, cols % CELL_PX)), mode="edge")
    whole = padded[::2, ::2] & padded[1::2, ::2] & padded[::2, 1::2] & padded[1::2, 1::2]
    view: Image | None = None
    if depth_map.intensity is not None:
        even = np.pad(depth_map.intensity, ((0, rows % CELL_PX), (0, cols % CELL_PX)), mode="edge")
        small = cv2.resize(even, whole.shape[::-1], interpolation=cv2.INTER_AREA)
        view = np.asarray(small, np.float32)
    few = np.s_[::CELL_PX, ::CELL_PX]
    smaller = replace(
        depth_map,
        depth_m=depth_map.depth_m[few],
        sigma_m=depth_map.sigma_m[few],
        confidence=np.ascontiguousarray(depth_map.confidence[few]),
        flags=np.ascontiguousarray(depth_map.flags[few]),
        intensity=view,
        colour=None if depth_map.colour is None else depth_map.colour[few],
    )
    return Cells(smaller, whole)


def weak_features(cells: Cells) -> Image:
    """Features of `WeakModel` of all cells (rows, cols, features)."""
    depth_map, is_measured = cells
    sigma_px = depth_map.sigma_px
    confidence = np.clip(depth_map.confidence, 0.01, 0.99)
    nearby, wide, frame = shares(is_measured)
    parts = (
        np.ones_like(confidence),
        np.log(confidence / (1 - confidence)),
        (depth_map.flags & np.uint16(Flag.CARRIED)) != 0,
        np.log(nearby + 0.02),
        np.log(np.nan_to_num(sigma_px, nan=1.0) + 0.02),
        np.log(wide + 0.02),
        np.full_like(confidence, np.log(frame + 0.02)),
    )
    return np.stack([np.asarray(one, np.float32) for one in parts], axis=-1)


def shares(is_measured: Mask) -> tuple[Image, Image, float]:
    """Share of measured pixels nearby, farther around, and in the frame."""
    import cv2

    mask = is_measured.astype(np.float32)
    nearby, wide = (cv2.blur(mask, (side, side)) for side in (_NEARBY, _WIDE))
    return nearby.astype(np.float32), wide.astype(np.float32), float(mask.mean())


def guide_of(depth_map: DepthMap) -> tuple[Image, Image]:
    """Left view in units of contrast (rows, cols, channels), and the logarithm of its slope.

    Colours are used if there are any. Without a view, the guide is even.
    """
    views: list[Image] = []
    if depth_map.colour is not None:
        views = [depth_map.colour[..., channel].astype(np.float32) for channel in range(3)]
    elif depth_map.intensity is not None:
        views = [depth_map.intensity]
    smooth = [_smoothed(view) for view in views] or [np.zeros(depth_map.depth_m.shape, np.float32)]
    return np.stack(smooth, axis=-1), np.max([_texture(one) for one in smooth], axis=0)


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


def _texture(guide: Image) -> Image:
    import cv2

    down, right = cv2.Sobel(guide, -1, 0, 1, scale=0.125), cv2.Sobel(guide, -1, 1, 0, scale=0.125)
    energy = cv2.blur(down * down + right * right, (_TEXTURE, _TEXTURE))
    return np.asarray(0.5 * np.log(energy + np.float32(1e-3)), np.float32)


def make_ground(cells: Cells, weak: WeakModel) -> Ground:
    """Gather all that the fill looks at, with a model of weak depths."""
    depth_map, is_measured = cells
    offset = np.float32(depth_map.rig.optics.disparity_offset_px)
    disparity_px, sigma_px = depth_map.disparity_px - offset, depth_map.sigma_px
    is_weak = depth_map.valid & ~is_measured
    odds = weak_features(cells) @ np.asarray(weak, np.float32)
    odds = np.where(is_measured, np.float32(_SURE), odds).astype(np.float32)
    is_source = is_measured | (is_weak & (odds > _LEAST_ODDS))
    doubt = _WEAK_START + _DOUBT / (1 + np.exp(odds))
    start = np.where(is_measured, 0.0, np.where(is_source, doubt, np.inf)).astype(np.float32)
    guide, texture = guide_of(depth_map)
    nearby, wide, frame = shares(is_measured)
    below, above, right, left = sweep_sides(guide, start)
    return Ground(
        Evidence(disparity_px, sigma_px, odds, is_measured),
        block_planes(np.where(is_source, disparity_px, np.float32(np.nan))),
        (below, above, right, left),
        Around(
            np.asarray(depth_map.confidence),
            np.asarray(depth_map.flags),
            texture,
            nearby,
            wide,
            np.float32(frame),
            np.float32(is_weak.mean()),
        ),
    )
