"""Evidence for the fill: measured and weak depths of a depth map, and the left view as a guide."""

from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.lab.dense.candidates import CELL_PX, CellEvidence
from d3s.lab.dense.judge import (
    MARGIN,
    Around,
    Ground,
    Network,
    Surfaces,
    TextureFeature,
    scale_features,
    write_outputs,
)
from d3s.lab.dense.propagation import block_planes, sweep_sides
from d3s.runtime.compile import borrowing, compiled
from d3s.runtime.parallel import run_over_rows, run_together
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
_CARRIED = int(Flag.CARRIED)
_AT_ONCE = 128  # cells whose features fit into fast memory
_ONE, _ZERO, _LEAST = np.float32(1), np.float32(0), np.float32(0.02)


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


EvidenceFeature = IntEnum(
    "EvidenceFeature",
    "CONSTANT CONFIDENCE CARRIED NEARBY SIGMA AROUND FRAME FINE_TEXTURE TEXTURE BROAD_TEXTURE "
    "ASIDE FAR_ASIDE OVER_NOISE STRONG_EDGE ONE_SIDED ONE_SIDED_BESIDE TEXTURE_INWARD "
    "TEXTURE_INWARD_BESIDE FAR_TEXTURE_INWARD",
    module=__name__,
    start=0,
)
"""Features of `EvidenceModel`, in the order of the coefficients; from FINE_TEXTURE on seven of
`TextureFeature`, in its order."""


EVIDENCE_FEATURES = tuple(
    one.name.lower().replace("one_sided", "one-sided").replace("_", " ") for one in EvidenceFeature
)
"""Names of the features of `EvidenceModel`, in order."""


def judged_evidence(cells: Cells) -> tuple[Mask, Mask]:
    """Measured cells beside holes, and weak cells: those whose depth may be wrong."""
    import cv2

    depth_map, is_measured = cells
    window = np.ones((_AT_HOLES, _AT_HOLES), np.uint8)
    is_beside = cv2.dilate((~is_measured).astype(np.uint8), window) > 0
    return is_measured & is_beside, depth_map.valid & ~is_measured


class MeasuredShare(NamedTuple):
    """Arrays (rows, cols) on the measured cells around each cell."""

    nearby: Image  # share of measured cells
    wide: Image  # the same, farther around
    frame: np.float32  # the same, of the whole frame
    x: Image  # centre of the measured cells nearby, -1 to 1
    y: Image
    beside_x: Image  # the same, right beside the cell
    beside_y: Image


class Depths(NamedTuple):
    """Arrays (rows, cols) on the depth of each cell, and its surroundings."""

    confidence: Image
    flags: NDArray[np.uint16]
    sigma_px: Image
    texture: Image  # as `texture_of` gives it
    measured: MeasuredShare


def measured_around(is_measured: Mask) -> MeasuredShare:
    """Find how many cells around each one are measured, and on which side."""
    import cv2

    mask = is_measured.astype(np.float32)
    nearby, wide = (cv2.blur(mask, (side, side)) for side in (_NEARBY, _WIDE))
    centres = (*centre_of(mask, _NEARBY), *centre_of(mask, _BESIDE))
    return MeasuredShare(np.asarray(nearby), np.asarray(wide), np.float32(mask.mean()), *centres)


def evidence_features(cells: Cells, texture: Image, where: Mask) -> Image:
    """Features of `EvidenceModel` of the cells asked for (cells, features), to fit a model."""
    places = np.argwhere(where)
    out = np.empty((len(EVIDENCE_FEATURES), len(places)), np.float32)
    depths = _depths(cells, texture, measured_around(cells.is_measured))
    _features_at(places, depths, out)
    return np.ascontiguousarray(out.T)


def evidence_odds(
    cells: Cells, texture: Image, measured: MeasuredShare, model: EvidenceModel
) -> Image:
    """Log-odds that each depth is right."""
    odds = np.full(cells.is_measured.shape, _SURE, np.float32)
    depths = _depths(cells, texture, measured)
    for network, where in zip(model, judged_evidence(cells), strict=True):
        run_over_rows(_write_odds, len(odds), depths, where, network, odds)
    return odds


def _depths(cells: Cells, texture: Image, measured: MeasuredShare) -> Depths:
    found = cells.depth_map
    return Depths(
        np.asarray(found.confidence), np.asarray(found.flags), found.sigma_px, texture, measured
    )


@compiled
def _features_at(places: NDArray[np.int64], depths: Depths, features: Image) -> None:
    for one in range(len(places)):
        _describe(places[one, 0], places[one, 1], depths, features, one)


@compiled
def _write_odds(
    start: int, stop: int, depths: Depths, where: Mask, network: Network, out: Image
) -> None:
    """Write the output of a network for the cells of some rows that are asked for."""
    cols = out.shape[1]
    features = np.empty((network.mean.size, _AT_ONCE), np.float32)
    unit, odds = np.empty(_AT_ONCE, np.float32), np.empty(_AT_ONCE, np.float32)
    for row in range(start, stop):
        for first in range(0, cols, _AT_ONCE):
            count, end = 0, min(first + _AT_ONCE, cols)
            for col in range(first, end):
                if where[row, col]:
                    _describe(row, col, depths, features, count)
                    count += 1
            if count:
                scale_features(features, count, network)
                write_outputs(network, features, unit, odds[:count])
                count = 0
                for col in range(first, end):
                    if where[row, col]:
                        out[row, col] = odds[count]
                        count += 1


@borrowing
def _describe(row: int, col: int, depths: Depths, features: Image, cell: int) -> None:
    """Write the features of `EvidenceModel` to column `cell` of an array (features, cells)."""
    texture, measured = depths.texture, depths.measured
    confidence = min(max(depths.confidence[row, col], np.float32(0.01)), np.float32(0.99))
    sigma_px = depths.sigma_px[row, col]
    x, y = measured.x[row, col], measured.y[row, col]
    beside_x, beside_y = measured.beside_x[row, col], measured.beside_y[row, col]
    aside_x, aside_y = (
        texture[TextureFeature.ASIDE_X, row, col],
        texture[TextureFeature.ASIDE_Y, row, col],
    )
    far_x, far_y = (
        texture[TextureFeature.FAR_ASIDE_X, row, col],
        texture[TextureFeature.FAR_ASIDE_Y, row, col],
    )
    features[EvidenceFeature.CONSTANT, cell] = _ONE
    features[EvidenceFeature.CONFIDENCE, cell] = np.log(confidence / (_ONE - confidence))
    features[EvidenceFeature.CARRIED, cell] = _ONE if depths.flags[row, col] & _CARRIED else _ZERO
    features[EvidenceFeature.NEARBY, cell] = np.log(measured.nearby[row, col] + _LEAST)
    features[EvidenceFeature.SIGMA, cell] = np.log(
        (_ONE if np.isnan(sigma_px) else sigma_px) + _LEAST
    )
    features[EvidenceFeature.AROUND, cell] = np.log(measured.wide[row, col] + _LEAST)
    features[EvidenceFeature.FRAME, cell] = np.log(measured.frame + _LEAST)
    for one in range(TextureFeature.ASIDE_X):
        features[EvidenceFeature.FINE_TEXTURE + one, cell] = texture[one, row, col]
    features[EvidenceFeature.ONE_SIDED, cell] = np.sqrt(x * x + y * y)
    features[EvidenceFeature.ONE_SIDED_BESIDE, cell] = np.sqrt(
        beside_x * beside_x + beside_y * beside_y
    )
    features[EvidenceFeature.TEXTURE_INWARD, cell] = aside_x * x + aside_y * y
    features[EvidenceFeature.TEXTURE_INWARD_BESIDE, cell] = aside_x * beside_x + aside_y * beside_y
    features[EvidenceFeature.FAR_TEXTURE_INWARD, cell] = far_x * x + far_y * y


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
    """Texture around each cell (Texture, rows, cols).

    Depth beside the outline of an object is that of the outline: all texture of the window is
    aside, to one side of its middle.
    """
    import cv2

    energy = np.zeros(guide.shape[:2], np.float32)
    for channel in range(guide.shape[2]):
        view = np.ascontiguousarray(guide[..., channel])
        down, right = cv2.Sobel(view, -1, 0, 1, scale=0.125), cv2.Sobel(view, -1, 1, 0, scale=0.125)
        energy = np.maximum(energy, down * down + right * right)
    out = np.empty((len(TextureFeature), *energy.shape), np.float32)
    for number, side in enumerate((_FINE, _MIDDLE, _BROAD)):
        cv2.blur(energy, (side, side), dst=out[number])
    np.log(out[:3] + _LEAST_ENERGY, out=out[:3])
    out[:3] *= np.float32(0.5)
    for aside, x, side in (
        (TextureFeature.ASIDE, TextureFeature.ASIDE_X, _MIDDLE),
        (TextureFeature.FAR_ASIDE, TextureFeature.FAR_ASIDE_X, _BROAD),
    ):
        out[x], out[x + 1] = centre_of(energy, side)
        cv2.magnitude(out[x], out[x + 1], magnitude=out[aside])
    noise = np.float32(np.percentile(energy, _PLAIN_PERCENT)) + _LEAST_ENERGY
    over_noise = out[[TextureFeature.OVER_NOISE, TextureFeature.STRONG_EDGE]]
    cv2.blur(energy, (5, 5), dst=over_noise[0])
    cv2.dilate(energy, np.ones((_STRONG, _STRONG), np.uint8), dst=over_noise[1])
    out[[TextureFeature.OVER_NOISE, TextureFeature.STRONG_EDGE]] = np.log(
        over_noise / noise + np.float32(0.3)
    )
    return out


def centre_of(mass: Image, side: int) -> tuple[Image, Image]:
    """Centre of a mass in windows around each cell: x and y, -1 to 1 within the window.

    The mass is not negative; `side` is in cells.
    """
    import cv2

    even = np.full(side, 1 / side, np.float32)
    ramp = np.linspace(-1, 1, side, dtype=np.float32) / np.float32(side)
    mean = cv2.blur(mass, (side, side)) + _LEAST_ENERGY
    x, y = cv2.sepFilter2D(mass, -1, ramp, even), cv2.sepFilter2D(mass, -1, even, ramp)
    return x / mean, y / mean


def surroundings_of(disparity_px: Image, guide: Image) -> Image:
    """Surfaces and brightness around each cell: six planes (Surfaces, rows, cols).

    The lowest and the highest disparity of the evidence in two windows, NaN if there is none; and
    for two smaller windows, how far the view at the cell is from that of the evidence, in standard
    deviations. What is unlike the evidence beside it is often of another surface.

    Disparities are NaN where there is no evidence.
    """
    import cv2

    has_evidence = np.isfinite(disparity_px)
    out = np.empty((len(Surfaces), *disparity_px.shape), np.float32)
    for worst, extreme, first in ((np.inf, cv2.erode, 0), (-np.inf, cv2.dilate, 1)):
        known = np.where(has_evidence, disparity_px, np.float32(worst))
        for number, side in enumerate((_NEARBY, _WIDE)):
            extreme(known, np.ones((side, side), np.uint8), dst=out[first + 2 * number])
    out[:4][np.abs(out[:4]) > _MOST_PX] = np.nan  # OpenCV has large numbers beyond the frame
    weight = has_evidence.astype(np.float32)
    views = [np.ascontiguousarray(guide[..., channel]) for channel in range(guide.shape[2])]
    weighted = [weight * view for view in views]
    squares = [one * view for one, view in zip(weighted, views, strict=True)]
    for number, side in ((Surfaces.UNLIKE, _MIDDLE), (Surfaces.UNLIKE_AROUND, _BROAD)):
        size = (side, side)
        share = cv2.blur(weight, size)
        out[number] = 0
        for view, one, square in zip(views, weighted, squares, strict=True):
            sums = cv2.blur(one, size), cv2.blur(square, size)
            run_over_rows(_widen, len(share), view, share, *sums, out[number])
        np.log1p(np.minimum(out[number], 30, out=out[number]), out=out[number])
        out[number][share <= 1e-4] = _NOTHING_ALIKE
    return out


@compiled
def _widen(
    start: int, stop: int, view: Image, share: Image, total: Image, square: Image, out: Image
) -> None:
    """Raise `out` to the distance of the view from that of the evidence, in deviations.

    `view` is one channel of the guide; `share`, `total` and `square` are means of a window: of the
    evidence, and of the view and its square there.
    """
    for row in range(start, stop):
        for col in range(view.shape[1]):
            some = max(share[row, col], np.float32(1e-6))
            mean = total[row, col] / some
            spread = np.sqrt(max(square[row, col] / some - mean * mean, _ZERO) + _ONE)
            out[row, col] = max(out[row, col], abs(view[row, col] - mean) / spread)


def make_ground(cells: Cells, model: EvidenceModel) -> Ground:
    """Gather all that the fill looks at, with a model of the evidence."""
    depth_map, is_measured = cells
    offset = np.float32(depth_map.rig.optics.disparity_offset_px)
    disparity_px, sigma_px = depth_map.disparity_px - offset, depth_map.sigma_px
    is_weak = depth_map.valid & ~is_measured
    guide = guide_of(depth_map)
    texture, measured = run_together(
        lambda: texture_of(guide), lambda: measured_around(is_measured)
    )
    odds = evidence_odds(cells, texture, measured, model)
    is_source = is_measured | (is_weak & (odds > _LEAST_ODDS))
    doubt = np.where(is_measured, 0, np.float32(_WEAK_START)) + _DOUBT / (1 + np.exp(odds))
    start = np.where(is_source, doubt, np.inf).astype(np.float32)
    sources_px = np.where(is_source, disparity_px, np.float32(np.nan))
    surfaces, paths = run_together(
        lambda: surroundings_of(sources_px, guide), lambda: sweep_sides(guide, start)
    )
    return Ground(
        CellEvidence(disparity_px, sigma_px, odds, is_measured),
        block_planes(sources_px, paths.sources_of(~is_measured)),
        paths,
        Around(
            np.asarray(depth_map.confidence),
            np.asarray(depth_map.flags),
            texture,
            surfaces,
            np.pad(sources_px, MARGIN, constant_values=np.float32(np.nan)),
            measured.nearby,
            measured.wide,
            measured.frame,
            np.float32(is_weak.mean()),
        ),
        guide,
    )
