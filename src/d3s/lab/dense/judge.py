"""Chance of another surface and error of the surface, for the best candidates of each cell.

Both are small networks over features of a cell, one layer of hidden units beside a linear model:
log-odds of a gross error, and the logarithm of the error in pixels of disparity otherwise.
`benchmarks/tune_dense.py` fits them.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.flags import Flag
from d3s.lab.dense.candidates import (
    CellCandidates,
    CellEvidence,
    Group,
    PathModel,
    best_group,
    gather,
    new_candidates,
)
from d3s.lab.dense.propagation import BlockPlanes, Paths
from d3s.runtime.compile import borrowing, compiled, part
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image

LARGEST = np.float32(4)
"""Standard deviations from the mean at which features end, so that none counts without bounds."""

_AT_ONCE = 128  # cells whose features fit into fast memory


class Network(NamedTuple):
    """Coefficients of a network with one output, float32."""

    mean: Image  # of each feature
    scale: Image  # of each feature, one over its standard deviation
    linear: Image  # of each scaled feature
    bias: np.float32
    hidden: Image  # (features, units)
    hidden_bias: Image  # of each unit
    output: Image  # of each unit


def outputs_of(network: Network, features: Image) -> Image:
    """Output for each row of features (cells, features)."""
    scaled = np.clip((features - network.mean) * network.scale, -LARGEST, LARGEST)
    units = scaled @ network.hidden + network.hidden_bias
    units /= 1 + np.abs(units)
    return np.asarray(scaled @ network.linear + units @ network.output + network.bias, np.float32)


def compiled_outputs(network: Network, features: Image) -> Image:
    """Output for each row of features (cells, features), by compiled loops and all threads."""
    out = np.empty(len(features), np.float32)
    run_over_rows(_outputs, len(features), network, features, out)
    return out


@compiled
def _outputs(start: int, stop: int, network: Network, features: Image, out: Image) -> None:
    some = np.empty((network.mean.size, _AT_ONCE), np.float32)
    unit = np.empty(_AT_ONCE, np.float32)
    for first in range(start, stop, _AT_ONCE):
        count = min(_AT_ONCE, stop - first)
        for cell in range(count):
            for one in range(network.mean.size):
                some[one, cell] = features[first + cell, one]
        scale_features(some, count, network)
        write_outputs(network, some, unit, out[first : first + count])


@part
def scale_features(features: Image, count: int, network: Network) -> None:
    """Scale and bound the features of some cells in place.

    Features are (features, cells), a row for each: loops go over the cells, which SIMD takes.
    """
    for one in range(network.mean.size):
        mean, scale = network.mean[one], network.scale[one]
        for cell in range(count):
            scaled = (features[one, cell] - mean) * scale
            features[one, cell] = min(max(scaled, -LARGEST), LARGEST)


@part
def write_outputs(network: Network, scaled: Image, unit: Image, out: Image) -> None:
    """Write the outputs of a network for some cells.

    Features are as `scale_features` leaves them; `unit` is room for one hidden unit of each cell.
    """
    cells = out.size
    for cell in range(cells):
        out[cell] = network.bias
    for one in range(network.mean.size):
        for cell in range(cells):
            out[cell] += network.linear[one] * scaled[one, cell]
    for number in range(network.output.size):
        for cell in range(cells):
            unit[cell] = network.hidden_bias[number]
        for one in range(network.mean.size):
            share = network.hidden[one, number]
            for cell in range(cells):
                unit[cell] += share * scaled[one, cell]
        for cell in range(cells):
            out[cell] += network.output[number] * unit[cell] / (np.float32(1) + abs(unit[cell]))


Feature = IntEnum(
    "Feature",
    "CONSTANT SUPPORT AGAINST LENGTH EDGE STRONGEST SPREAD PRECISION OWN OWN_GAP OWN_ODDS "
    "LOW_TEXTURE INCONSISTENT OCCLUDED MEASURED_NEARBY MEASURED_AROUND MEASURED_IN_THE_FRAME "
    "CONFIDENCE TEXTURE TEXTURE_AND_EDGE HIDDEN OTHER_SURFACE OWN_AND_TEXTURE "
    "WEAK_IN_THE_FRAME MIDDLE_TEXTURE BROAD_TEXTURE ASIDE FAR_ASIDE CARRIED EVIDENCE_ODDS "
    "BETWEEN ENCLOSED NEARER_THAN_NEARBY FARTHER_THAN_NEARBY NEARER_THAN_AROUND "
    "FARTHER_THAN_AROUND UNLIKE UNLIKE_AROUND OVER_NOISE STRONG_EDGE AHEAD BEHIND FOE_BEHIND "
    "SAME_BESIDE NEARER_BESIDE FARTHER_BESIDE SAME_TOWARD_TEXTURE NEARER_TOWARD_TEXTURE "
    "FARTHER_TOWARD_TEXTURE SAME_AROUND NEARER_AROUND FARTHER_AROUND SAME_TOWARD_FAR_TEXTURE "
    "NEARER_TOWARD_FAR_TEXTURE FARTHER_TOWARD_FAR_TEXTURE",
    module=__name__,
    start=0,
)
"""Features of a cell, in the order of the coefficients."""


FEATURES = tuple(one.name.lower().replace("_", " ") for one in Feature)
"""Names of the features, in order."""

_LOW_TEXTURE, _INCONSISTENT = int(Flag.LOW_TEXTURE), int(Flag.INCONSISTENT)
_OCCLUDED, _CARRIED = int(Flag.OCCLUDED), int(Flag.CARRIED)
_LEAST, _LEAST_PX = np.float32(0.02), np.float32(0.1)
_ONE, _ZERO = np.float32(1), np.float32(0)
_COUNT = len(FEATURES)
_PLACES = 3  # on each side of a cell that are looked at, in a window
_SHARE, _STEP = np.float32(1 / (2 * _PLACES + 1) ** 2), np.float32(1 / _PLACES)
# Counts of places of the same surface, nearer and farther are parts of one number.
_KIND_BITS = 16
_SAME, _NEARER, _FARTHER = 1, 1 << _KIND_BITS, 1 << (2 * _KIND_BITS)
_KIND_MASK = _NEARER - 1
_SAME_PX, _SAME_SHARE = np.float32(0.5), np.float32(0.05)  # disparities of the same surface


class TextureFeature(IntEnum):
    """Places in `Around.texture`, as `texture_of` gives them.

    The logarithm of the slope of the guide in three windows; for the two larger ones how far the
    centre of the texture is from that of the window, 0 to 1; how far the slope, and the steepest
    around, is above noise; and the centres of the texture, right and down, -1 to 1.
    """

    FINE = 0
    MIDDLE = 1
    BROAD = 2
    ASIDE = 3
    FAR_ASIDE = 4
    OVER_NOISE = 5
    STRONG_EDGE = 6
    ASIDE_X = 7
    ASIDE_Y = 8
    FAR_ASIDE_X = 9
    FAR_ASIDE_Y = 10


class Surfaces(IntEnum):
    """Places in `Around.surfaces`, as `surroundings_of` gives them."""

    LOWEST_NEARBY = 0
    HIGHEST_NEARBY = 1
    LOWEST_AROUND = 2
    HIGHEST_AROUND = 3
    UNLIKE = 4
    UNLIKE_AROUND = 5


class FeatureWindow(NamedTuple):
    """Window of `_PLACES` places on each side of a cell."""

    step: int  # cells from one place to the next
    aside: int  # centre of the texture, in `Around.texture`
    lowest: int  # lowest disparity in a larger window, in `Around.surfaces`
    first: int  # first of six features


MARGIN = 15
"""Cells on each side of `Around.sources_px`, so that windows need not look where it ends."""

_BESIDE = FeatureWindow(
    2, int(TextureFeature.ASIDE_X), int(Surfaces.LOWEST_NEARBY), int(Feature.SAME_BESIDE)
)
_AROUND = FeatureWindow(
    5, int(TextureFeature.FAR_ASIDE_X), int(Surfaces.LOWEST_AROUND), int(Feature.SAME_AROUND)
)


class Around(NamedTuple):
    """Arrays (rows, cols) on the surroundings of a cell, and the frame."""

    confidence: Image
    flags: NDArray[np.uint16]
    texture: Image  # of the left view around the cell (Texture, rows, cols)
    surfaces: Image  # of the evidence around the cell (Surfaces, rows, cols)
    sources_px: Image  # disparity of evidence for others, else NaN; `MARGIN` more on each side
    nearby: Image  # share of measured cells
    wide: Image  # the same, farther around
    frame: np.float32  # the same, of the whole frame
    weak: np.float32  # share of weak depths, of the whole frame


class Ground(NamedTuple):
    """Input of the fill: evidence, planes around it, paths from it, surroundings and view."""

    evidence: CellEvidence
    blocks: BlockPlanes
    paths: Paths
    around: Around
    guide: Image  # left view in units of contrast (rows, cols, channels)


class FillModel(NamedTuple):
    """Networks over the features, of as many units, and with the same mean and scale."""

    gross: Network  # log-odds of a gross error
    error: Network  # ln of the error in px, of the others


class Filled(NamedTuple):
    """Arrays (rows, cols); NaN where there is no candidate, and where depth is measured."""

    disparity_px: Image
    error_px: Image  # standard deviation if it is the right surface
    gross: Image  # probability of another surface


def judge_cells(ground: Ground, path_model: PathModel, model: FillModel) -> Filled:
    """Fill all cells that are not measured and have candidates."""
    shape = ground.evidence.disparity_px.shape
    out = Filled(*(np.full(shape, np.nan, np.float32) for _ in range(3)))
    run_over_rows(_judge, shape[0], ground, path_model, model, out)
    return out


def features_at(
    ground: Ground, path_model: PathModel, cells: NDArray[np.int64]
) -> tuple[Image, Image]:
    """Return the filled disparity and the features of cells (cells, 2), to fit a model."""
    disparity = np.full(len(cells), np.nan, np.float32)
    features = np.zeros((_COUNT, len(cells)), np.float32)
    _features_at(cells, ground, path_model, disparity, features)
    return disparity, np.ascontiguousarray(features.T)


@compiled
def _judge(
    start: int, stop: int, ground: Ground, path_model: PathModel, model: FillModel, out: Filled
) -> None:
    """Judge the holes of some rows, a few at once."""
    cols = out.gross.shape[1]
    found, place = new_candidates(), np.empty(_AT_ONCE, np.int64)
    features = np.empty((_COUNT, _AT_ONCE), np.float32)
    unit, odds = np.empty(_AT_ONCE, np.float32), np.empty(_AT_ONCE, np.float32)
    error = np.empty(_AT_ONCE, np.float32)
    is_measured = ground.evidence.is_measured
    for row in range(start, stop):
        for first in range(0, cols, _AT_ONCE):
            count = 0
            for col in range(first, min(first + _AT_ONCE, cols)):
                if not is_measured[row, col]:
                    disparity = _describe(row, col, ground, path_model, found, features, count)
                    if np.isfinite(disparity):
                        out.disparity_px[row, col] = disparity
                        place[count] = col
                        count += 1
            if count:
                scale_features(features, count, model.gross)
                write_outputs(model.gross, features, unit, odds[:count])
                write_outputs(model.error, features, unit, error[:count])
            for one in range(count):
                col = place[one]
                out.error_px[row, col] = np.exp(min(error[one], np.float32(3)))
                out.gross[row, col] = _ONE / (_ONE + np.exp(-odds[one]))


@compiled
def _features_at(
    cells: NDArray[np.int64],
    ground: Ground,
    path_model: PathModel,
    disparity: Image,
    features: Image,
) -> None:
    found = new_candidates()
    for one in range(len(cells)):
        row, col = cells[one, 0], cells[one, 1]
        disparity[one] = _describe(row, col, ground, path_model, found, features, one)


@borrowing
def _describe(
    row: int,
    col: int,
    ground: Ground,
    path_model: PathModel,
    found: CellCandidates,
    features: Image,
    cell: int,
) -> np.float32:
    """Write the features of a cell; return its disparity, NaN if there is no candidate.

    `found` is room for its candidates; features are (features, cells), written at `cell`.
    """
    evidence, texture = ground.evidence, ground.around.texture
    count = gather(row, col, evidence, ground.blocks, ground.paths, path_model, found)
    if count == 0:
        return np.float32(np.nan)
    group = best_group(
        found,
        count,
        row,
        col,
        texture[TextureFeature.FAR_ASIDE_X, row, col],
        texture[TextureFeature.FAR_ASIDE_Y, row, col],
    )
    _of_group(group, features, cell)
    _of_cell(row, col, group.disparity_px, evidence, ground.around, features, cell)
    _of_texture(row, col, texture, features, cell)
    _of_surfaces(row, col, group.disparity_px, ground.around.surfaces, features, cell)
    _of_window(row, col, group.disparity_px, ground.around, _BESIDE, features, cell)
    _of_window(row, col, group.disparity_px, ground.around, _AROUND, features, cell)
    return group.disparity_px


@borrowing
def _log_above(value: np.float32) -> np.float32:
    """ln(1 + value) of a value that is not negative, faster than log1p."""
    return np.float32(np.log(_ONE + value))


@borrowing
def _of_group(group: Group, features: Image, cell: int) -> None:
    """Write the features of the candidates alone."""
    features[Feature.CONSTANT, cell] = _ONE
    features[Feature.SUPPORT, cell] = _log_above(group.support)
    features[Feature.AGAINST, cell] = _log_above(group.against)
    features[Feature.LENGTH, cell] = _log_above(group.length)
    features[Feature.EDGE, cell] = _log_above(min(group.edge, np.float32(100)))
    features[Feature.STRONGEST, cell] = group.strongest
    features[Feature.SPREAD, cell] = np.log(np.sqrt(group.spread) + np.float32(0.05))
    features[Feature.PRECISION, cell] = np.log(np.sqrt(group.variance) + np.float32(0.02))
    features[Feature.HIDDEN, cell] = min(group.hidden_px, np.float32(8))
    features[Feature.OTHER_SURFACE, cell] = _log_above(group.foe)
    features[Feature.EVIDENCE_ODDS, cell] = group.odds
    features[Feature.BETWEEN, cell] = _log_above(group.between)
    features[Feature.ENCLOSED, cell] = _log_above(group.enclosed)
    features[Feature.AHEAD, cell] = _log_above(group.ahead)
    features[Feature.BEHIND, cell] = _log_above(group.behind)
    features[Feature.FOE_BEHIND, cell] = _log_above(group.foe_behind)


@borrowing
def _of_cell(
    row: int,
    col: int,
    disparity_px: np.float32,
    evidence: CellEvidence,
    around: Around,
    features: Image,
    cell: int,
) -> None:
    """Write what the estimator says of the cell, and how much is measured around it."""
    own_px = evidence.disparity_px[row, col]
    own = np.isfinite(own_px)
    gap = np.log(min(abs(own_px - disparity_px), np.float32(4)) + np.float32(0.1))
    odds = min(max(evidence.odds[row, col], np.float32(-5)), np.float32(5))
    features[Feature.OWN, cell] = _ONE if own else _ZERO
    features[Feature.OWN_GAP, cell] = gap if own else _ZERO
    features[Feature.OWN_ODDS, cell] = odds if own else _ZERO
    features[Feature.OWN_AND_TEXTURE, cell] = (
        around.texture[TextureFeature.FINE, row, col] if own else _ZERO
    )
    flags = around.flags[row, col]
    features[Feature.LOW_TEXTURE, cell] = _ONE if flags & _LOW_TEXTURE else _ZERO
    features[Feature.INCONSISTENT, cell] = _ONE if flags & _INCONSISTENT else _ZERO
    features[Feature.CARRIED, cell] = _ONE if flags & _CARRIED else _ZERO
    features[Feature.OCCLUDED, cell] = _ONE if flags & _OCCLUDED else _ZERO
    features[Feature.MEASURED_NEARBY, cell] = np.log(around.nearby[row, col] + _LEAST)
    features[Feature.MEASURED_AROUND, cell] = np.log(around.wide[row, col] + _LEAST)
    features[Feature.MEASURED_IN_THE_FRAME, cell] = np.log(around.frame + _LEAST)
    features[Feature.WEAK_IN_THE_FRAME, cell] = np.log(around.weak + _LEAST)
    confidence = min(max(around.confidence[row, col], np.float32(0.01)), np.float32(0.99))
    features[Feature.CONFIDENCE, cell] = np.log(confidence / (_ONE - confidence))


@borrowing
def _of_texture(row: int, col: int, texture: Image, features: Image, cell: int) -> None:
    """Write the features of the left view around the cell, after `_of_group` has written EDGE."""
    fine = texture[TextureFeature.FINE, row, col]
    features[Feature.TEXTURE, cell] = fine
    features[Feature.MIDDLE_TEXTURE, cell] = texture[TextureFeature.MIDDLE, row, col]
    features[Feature.BROAD_TEXTURE, cell] = texture[TextureFeature.BROAD, row, col]
    features[Feature.ASIDE, cell] = texture[TextureFeature.ASIDE, row, col]
    features[Feature.FAR_ASIDE, cell] = texture[TextureFeature.FAR_ASIDE, row, col]
    features[Feature.TEXTURE_AND_EDGE, cell] = fine * features[Feature.EDGE, cell]
    features[Feature.OVER_NOISE, cell] = texture[TextureFeature.OVER_NOISE, row, col]
    features[Feature.STRONG_EDGE, cell] = texture[TextureFeature.STRONG_EDGE, row, col]


@borrowing
def _of_surfaces(
    row: int, col: int, disparity_px: np.float32, surfaces: Image, features: Image, cell: int
) -> None:
    """Write how the cell compares with the nearest and farthest surfaces around it."""
    near = max(disparity_px, _LEAST_PX)
    lowest, highest = (
        surfaces[Surfaces.LOWEST_NEARBY, row, col],
        surfaces[Surfaces.HIGHEST_NEARBY, row, col],
    )
    features[Feature.NEARER_THAN_NEARBY, cell] = _nearer(near, lowest)
    features[Feature.FARTHER_THAN_NEARBY, cell] = _nearer(highest, near)
    lowest, highest = (
        surfaces[Surfaces.LOWEST_AROUND, row, col],
        surfaces[Surfaces.HIGHEST_AROUND, row, col],
    )
    features[Feature.NEARER_THAN_AROUND, cell] = _nearer(near, lowest)
    features[Feature.FARTHER_THAN_AROUND, cell] = _nearer(highest, near)
    features[Feature.UNLIKE, cell] = surfaces[Surfaces.UNLIKE, row, col]
    features[Feature.UNLIKE_AROUND, cell] = surfaces[Surfaces.UNLIKE_AROUND, row, col]


@borrowing
def _nearer(one_px: np.float32, other_px: np.float32) -> np.float32:
    """Logarithm by which one surface is nearer than another; 0 if there is none."""
    ratio = np.log(max(one_px, _LEAST_PX) / max(other_px, _LEAST_PX))
    if not np.isfinite(one_px + other_px):
        return _ZERO
    return min(max(ratio, -_ONE), np.float32(2))


@borrowing
def _of_window(
    row: int,
    col: int,
    disparity_px: np.float32,
    around: Around,
    window: FeatureWindow,
    features: Image,
    cell: int,
) -> None:
    """Write how much evidence around a cell is of the same surface, nearer and farther, and where.

    Six features from `FeatureWindow.first` on: the share of each, and whether it lies where the
    texture is. Beyond the outline of an object both its depth and all texture are on one side.
    """
    first = window.first
    if np.isnan(around.surfaces[window.lowest, row, col]):  # no evidence, even farther away
        for one in range(first, first + 3):
            features[one, cell] = np.log(_LEAST)
            features[one + 3, cell] = _ZERO
        return
    aside_x = around.texture[window.aside, row, col]
    aside_y = around.texture[window.aside + 1, row, col]
    sources, step = around.sources_px, window.step
    row, col = row + MARGIN - _PLACES * step, col + MARGIN - _PLACES * step
    tolerance = _SAME_PX + _SAME_SHARE * abs(disparity_px)
    count, right, down = 0, 0, 0  # places of each kind, and the sums of their steps
    for i in range(2 * _PLACES + 1):
        y, in_row = row + i * step, 0
        for j in range(2 * _PLACES + 1):
            gap = sources[y, col + j * step] - disparity_px
            # Without branches, which no processor could foresee; what is no number is no kind.
            kind = _SAME if abs(gap) <= tolerance else 0
            kind = _NEARER if gap > tolerance else kind
            kind = _FARTHER if gap < -tolerance else kind
            in_row += kind
            right += kind * j
        count += in_row
        down += in_row * i
    for number in range(3):
        bits = number * _KIND_BITS
        some = (count >> bits) & _KIND_MASK
        x, y = (right >> bits) & _KIND_MASK, (down >> bits) & _KIND_MASK
        toward = np.float32(x - _PLACES * some) * aside_x
        toward += np.float32(y - _PLACES * some) * aside_y
        features[first + number, cell] = np.log(np.float32(some) * _SHARE + _LEAST)
        features[first + 3 + number, cell] = toward * _STEP / (np.float32(some) + _ONE)
