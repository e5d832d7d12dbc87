"""Evidence for the fill: measured and weak depths of a depth map, and the left view as a guide."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from d3s.dense.candidates import CELL_PX, Evidence
from d3s.dense.judge import Around, Ground, Texture
from d3s.dense.network import Network, compiled_outputs
from d3s.dense.planes import block_planes
from d3s.dense.sweeps import sweep_sides
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.types import Image, Mask

_SMOOTHING = 0.75  # of the guide, in cells: edges of single pixels are noise
_CONTRAST = 0.02  # unit of contrast, as a share of the range of the view
_NEARBY, _WIDE = 15, 61  # sides of windows, in cells
_FINE, _MIDDLE, _BROAD = 3, 11, 29  # those of texture: a cell, and windows of the estimator
_BESIDE = 7  # that of the evidence right beside a cell
_AT_HOLES = 9  # that in which there is a hole, if measured depths are judged
_SURE = np.float32(6)  # log-odds of measured depths that are farther from holes
_STRONG = 9  # that of the strongest edge around a cell
_LEAST_ENERGY = np.float32(1e-3)  # of slopes, so that their logarithm is finite
_PLAIN_PERCENT = 10  # of the cells of a frame, at least, that show noise alone
_LEAST_ODDS = 1.4  # log-odds from which on weak depths count as evidence for others
_MOST_PX = 1e6  # beyond any disparity
_NOTHING_ALIKE = 2.0  # logarithm of how unlike a cell is that has no evidence around it
_WEAK_START, _DOUBT = 2.5, 50.0  # cost at which paths from weak depths begin, in cells


class Cells(NamedTuple):
    """Depth map of cells of 2 x 2 pixels, and which of them are measured."""

    depth_map: DepthMap
    is_measured: Mask


class EvidenceModel(NamedTuple):
    """Networks over `evidence_features`: log-odds that a depth is right."""

    measured: Network
    weak: Network


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


EVIDENCE_FEATURES = (
    "constant",
    "confidence",
    "carried",
    "nearby",
    "sigma",
    "around",
    "frame",
    "fine texture",
    "texture",
    "broad texture",
    "aside",
    "far aside",
    "over noise",
    "strong edge",
    "one-sided",
    "one-sided beside",
    "texture inward",
    "texture inward beside",
    "far texture inward",
)
"""Names of the features of `EvidenceModel`, in order."""


def judged_evidence(cells: Cells) -> tuple[Mask, Mask]:
    """Measured cells beside holes, and weak cells: those whose depth may be wrong."""
    import cv2

    depth_map, is_measured = cells
    window = np.ones((_AT_HOLES, _AT_HOLES), np.uint8)
    is_beside = cv2.dilate((~is_measured).astype(np.uint8), window) > 0
    return is_measured & is_beside, depth_map.valid & ~is_measured


def evidence_features(cells: Cells, texture: Image, where: Mask) -> Image:
    """Features of `EvidenceModel` of some cells (cells, features).

    Parameters
    ----------
    cells
        Cells.
    texture
        As `texture_of` gives it.
    where
        Cells that are asked for.
    """
    depth_map, is_measured = cells
    sigma_px = depth_map.sigma_px[where]
    confidence = np.clip(depth_map.confidence[where], 0.01, 0.99)
    nearby, wide, frame = shares(is_measured)
    mask = is_measured.astype(np.float32)
    x, y = (one[where] for one in centre_of(mask, _NEARBY))
    beside_x, beside_y = (one[where] for one in centre_of(mask, _BESIDE))
    textures = texture[where]
    aside_x, aside_y = textures[:, Texture.ASIDE_X], textures[:, Texture.ASIDE_Y]
    far_x, far_y = textures[:, Texture.FAR_ASIDE_X], textures[:, Texture.FAR_ASIDE_Y]
    parts = (
        np.ones_like(confidence),
        np.log(confidence / (1 - confidence)),
        (depth_map.flags[where] & np.uint16(Flag.CARRIED)) != 0,
        np.log(nearby[where] + 0.02),
        np.log(np.nan_to_num(sigma_px, nan=1.0) + 0.02),
        np.log(wide[where] + 0.02),
        np.full_like(confidence, np.log(frame + 0.02)),
        *textures[:, : Texture.ASIDE_X].T,
        np.hypot(x, y),
        np.hypot(beside_x, beside_y),
        aside_x * x + aside_y * y,
        aside_x * beside_x + aside_y * beside_y,
        far_x * x + far_y * y,
    )
    out = np.empty((len(confidence), len(parts)), np.float32)
    for number, one in enumerate(parts):
        out[:, number] = one
    return out


def shares(is_measured: Mask) -> tuple[Image, Image, float]:
    """Share of measured pixels nearby, farther around, and in the frame."""
    import cv2

    mask = is_measured.astype(np.float32)
    nearby, wide = (cv2.blur(mask, (side, side)) for side in (_NEARBY, _WIDE))
    return nearby.astype(np.float32), wide.astype(np.float32), float(mask.mean())


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


def texture_of(guide: Image) -> Image:
    """Texture around each cell (rows, cols, Texture).

    Depth beside the outline of an object is that of the outline: all texture of the window is
    aside, to one side of its middle.
    """
    import cv2

    energy = np.zeros(guide.shape[:2], np.float32)
    for channel in range(guide.shape[2]):
        view = np.ascontiguousarray(guide[..., channel])
        down, right = cv2.Sobel(view, -1, 0, 1, scale=0.125), cv2.Sobel(view, -1, 1, 0, scale=0.125)
        energy = np.maximum(energy, down * down + right * right)
    slopes, asides = [], []
    vectors: list[Image] = []
    for side in (_FINE, _MIDDLE, _BROAD):
        slopes.append(0.5 * np.log(cv2.blur(energy, (side, side)) + _LEAST_ENERGY))
        if side > _FINE:
            vector = centre_of(energy, side)
            asides.append(cv2.magnitude(*vector))
            vectors += vector
    noise = np.float32(np.percentile(energy, _PLAIN_PERCENT)) + _LEAST_ENERGY
    strongest = cv2.dilate(energy, np.ones((_STRONG, _STRONG), np.uint8))
    over_noise = [
        np.log(one / noise + np.float32(0.3)) for one in (cv2.blur(energy, (5, 5)), strongest)
    ]
    return np.stack(slopes + asides + over_noise + vectors, axis=-1).astype(np.float32)


def centre_of(mass: Image, side: int) -> tuple[Image, Image]:
    """Centre of a mass in windows around each cell: x and y, -1 to 1 within the window.

    Parameters
    ----------
    mass
        Array (rows, cols), not negative.
    side
        Side of the windows, in cells.
    """
    import cv2

    even = np.full(side, 1 / side, np.float32)
    ramp = np.linspace(-1, 1, side, dtype=np.float32) / np.float32(side)
    mean = cv2.blur(mass, (side, side)) + _LEAST_ENERGY
    x, y = cv2.sepFilter2D(mass, -1, ramp, even), cv2.sepFilter2D(mass, -1, even, ramp)
    return x / mean, y / mean


def surroundings_of(disparity_px: Image, guide: Image) -> Image:
    """Surfaces and brightness around each cell: six numbers (rows, cols, 6).

    The lowest and the highest disparity of the evidence in two windows, NaN if there is none; and
    for two smaller windows, how far the view at the cell is from that of the evidence, in standard
    deviations. What is unlike the evidence beside it is often of another surface.

    Parameters
    ----------
    disparity_px
        Disparity of evidence, NaN where there is none.
    guide
        As `guide_of` gives it.
    """
    import cv2

    has_evidence = np.isfinite(disparity_px)
    parts = []
    for side in (_NEARBY, _WIDE):
        window = np.ones((side, side), np.uint8)
        for worst, extreme in ((np.inf, cv2.erode), (-np.inf, cv2.dilate)):
            found = extreme(np.where(has_evidence, disparity_px, np.float32(worst)), window)
            parts.append(np.where(np.abs(found) < _MOST_PX, found, np.float32(np.nan)))
    weight = has_evidence.astype(np.float32)
    for side in (_MIDDLE, _BROAD):
        size = (side, side)
        share = cv2.blur(weight, size)
        some = np.maximum(share, np.float32(1e-6))
        unlike = np.zeros_like(share)
        for channel in range(guide.shape[2]):
            view = np.ascontiguousarray(guide[..., channel])
            mean = cv2.blur(weight * view, size) / some
            square = cv2.blur(weight * view * view, size) / some
            spread = np.sqrt(np.maximum(square - mean * mean, 0) + 1)
            unlike = np.maximum(unlike, np.abs(view - mean) / spread)
        parts.append(np.where(share > 1e-4, np.log1p(np.minimum(unlike, 30)), _NOTHING_ALIKE))
    return np.stack(parts, axis=-1).astype(np.float32)


def make_ground(cells: Cells, model: EvidenceModel) -> Ground:
    """Gather all that the fill looks at, with a model of the evidence."""
    depth_map, is_measured = cells
    offset = np.float32(depth_map.rig.optics.disparity_offset_px)
    disparity_px, sigma_px = depth_map.disparity_px - offset, depth_map.sigma_px
    is_weak = depth_map.valid & ~is_measured
    guide = guide_of(depth_map)
    texture = texture_of(guide)
    odds = np.full(is_measured.shape, _SURE, np.float32)
    for network, where in zip(model, judged_evidence(cells), strict=True):
        odds[where] = compiled_outputs(network, evidence_features(cells, texture, where))
    is_source = is_measured | (is_weak & (odds > _LEAST_ODDS))
    doubt = np.where(is_measured, 0, np.float32(_WEAK_START)) + _DOUBT / (1 + np.exp(odds))
    start = np.where(is_source, doubt, np.inf).astype(np.float32)
    sources_px = np.where(is_source, disparity_px, np.float32(np.nan))
    nearby, wide, frame = shares(is_measured)
    below, above, right, left = sweep_sides(guide, start)
    return Ground(
        Evidence(disparity_px, sigma_px, odds, is_measured, sources_px),
        block_planes(sources_px),
        (below, above, right, left),
        Around(
            np.asarray(depth_map.confidence),
            np.asarray(depth_map.flags),
            texture,
            surroundings_of(sources_px, guide),
            nearby,
            wide,
            np.float32(frame),
            np.float32(is_weak.mean()),
        ),
    )
