"""Chance of another surface and error of the surface, for the best candidates of each cell.

Both are small networks over features of a cell: log-odds of a gross error, and the logarithm of the
error in pixels of disparity otherwise. `benchmarks/tune_dense.py` fits them.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.dense.candidates import (
    Candidates,
    Evidence,
    Group,
    PathModel,
    best_group,
    gather,
    new_candidates,
)
from d3s.dense.network import Network, scale_features, write_outputs
from d3s.dense.planes import Blocks
from d3s.dense.sweeps import Paths
from d3s.estimate.flags import Flag
from d3s.runtime.compile import compiled, part
from d3s.runtime.parallel import run_over_rows
from d3s.types import Image


class Feature(IntEnum):
    """Features of a cell, in the order of the coefficients."""

    CONSTANT = 0
    SUPPORT = 1
    AGAINST = 2
    LENGTH = 3
    EDGE = 4
    STRONGEST = 5
    SPREAD = 6
    PRECISION = 7
    OWN = 8
    OWN_GAP = 9
    OWN_ODDS = 10
    LOW_TEXTURE = 11
    INCONSISTENT = 12
    OCCLUDED = 13
    MEASURED_NEARBY = 14
    MEASURED_AROUND = 15
    MEASURED_IN_THE_FRAME = 16
    CONFIDENCE = 17
    TEXTURE = 18
    TEXTURE_AND_EDGE = 19
    HIDDEN = 20
    OTHER_SURFACE = 21
    OWN_AND_TEXTURE = 22
    WEAK_IN_THE_FRAME = 23
    MIDDLE_TEXTURE = 24
    BROAD_TEXTURE = 25
    ASIDE = 26
    FAR_ASIDE = 27
    CARRIED = 28
    EVIDENCE_ODDS = 29
    BETWEEN = 30
    ENCLOSED = 31
    NEARER_THAN_NEARBY = 32
    FARTHER_THAN_NEARBY = 33
    NEARER_THAN_AROUND = 34
    FARTHER_THAN_AROUND = 35
    UNLIKE = 36
    UNLIKE_AROUND = 37
    OVER_NOISE = 38
    STRONG_EDGE = 39
    AHEAD = 40
    BEHIND = 41
    FOE_BEHIND = 42
    SAME_BESIDE = 43
    NEARER_BESIDE = 44
    FARTHER_BESIDE = 45
    SAME_TOWARD_TEXTURE = 46
    NEARER_TOWARD_TEXTURE = 47
    FARTHER_TOWARD_TEXTURE = 48
    SAME_AROUND = 49
    NEARER_AROUND = 50
    FARTHER_AROUND = 51
    SAME_TOWARD_FAR_TEXTURE = 52
    NEARER_TOWARD_FAR_TEXTURE = 53
    FARTHER_TOWARD_FAR_TEXTURE = 54


FEATURES = tuple(one.name.lower().replace("_", " ") for one in Feature)
"""Names of the features, in order."""

_LOW_TEXTURE, _INCONSISTENT = int(Flag.LOW_TEXTURE), int(Flag.INCONSISTENT)
_OCCLUDED, _CARRIED = int(Flag.OCCLUDED), int(Flag.CARRIED)
_LEAST, _LEAST_PX = np.float32(0.02), np.float32(0.1)
_COUNT = len(FEATURES)
_PLACES = 3  # on each side of a cell that are looked at, in a window
_SAME_PX, _SAME_SHARE = np.float32(0.5), np.float32(0.05)  # disparities of the same surface

Sides = tuple[Paths, Paths, Paths, Paths]


class Texture(IntEnum):
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


class Window(NamedTuple):
    """Window of `_PLACES` places on each side of a cell."""

    step: int  # cells from one place to the next
    aside: int  # centre of the texture, in `Around.texture`
    lowest: int  # lowest disparity in a larger window, in `Around.surfaces`
    first: int  # first of six features


_BESIDE = Window(2, int(Texture.ASIDE_X), int(Surfaces.LOWEST_NEARBY), int(Feature.SAME_BESIDE))
_AROUND = Window(5, int(Texture.FAR_ASIDE_X), int(Surfaces.LOWEST_AROUND), int(Feature.SAME_AROUND))


class Around(NamedTuple):
    """Arrays (rows, cols) on the surroundings of a cell, and the frame."""

    confidence: Image
    flags: NDArray[np.uint16]
    texture: Image  # of the left view around the cell (rows, cols, Texture)
    surfaces: Image  # of the evidence around the cell (rows, cols, Surfaces)
    nearby: Image  # share of measured cells
    wide: Image  # the same, farther around
    frame: np.float32  # the same, of the whole frame
    weak: np.float32  # share of weak depths, of the whole frame


class Ground(NamedTuple):
    """Input of the fill: evidence, planes around it, paths from it, and surroundings."""

    evidence: Evidence
    blocks: Blocks
    paths: Sides
    around: Around


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
    """Fill all cells that are not measured and have candidates.

    Parameters
    ----------
    ground
        Evidence and surroundings.
    path_model
        Log-odds of candidates.
    model
        Coefficients of the features.
    """
    shape = ground.evidence.disparity_px.shape
    out = Filled(*(np.full(shape, np.nan, np.float32) for _ in range(3)))
    run_over_rows(_judge, shape[0], ground, path_model, model, out)
    return out


def features_at(
    ground: Ground, path_model: PathModel, cells: NDArray[np.int64]
) -> tuple[Image, Image]:
    """Return the filled disparity and the features of some cells, to fit a model.

    Parameters
    ----------
    ground, path_model
        As for `judge_cells`.
    cells
        Array (cells, 2) of row and column.
    """
    disparity = np.full(len(cells), np.nan, np.float32)
    features = np.zeros((len(cells), _COUNT), np.float32)
    _features_at(cells, ground, path_model, disparity, features)
    return disparity, features


@compiled
def _judge(
    start: int, stop: int, ground: Ground, path_model: PathModel, model: FillModel, out: Filled
) -> None:
    cols = out.gross.shape[1]
    found, place = new_candidates(), np.empty(cols, np.int64)
    features, scaled = np.empty((cols, _COUNT), np.float32), np.empty((_COUNT, cols), np.float32)
    unit, odds, error = (
        np.empty(cols, np.float32),
        np.empty(cols, np.float32),
        np.empty(cols, np.float32),
    )
    for row in range(start, stop):
        count = 0
        for col in range(cols):
            if not ground.evidence.is_measured[row, col]:
                disparity = _describe(row, col, ground, path_model, found, features[count])
                if np.isfinite(disparity):
                    out.disparity_px[row, col] = disparity
                    place[count] = col
                    count += 1
        scale_features(features[:count], model.gross, scaled)
        write_outputs(model.gross, scaled, unit, odds[:count])
        write_outputs(model.error, scaled, unit, error[:count])
        for one in range(count):
            col = place[one]
            out.error_px[row, col] = np.exp(min(error[one], np.float32(3)))
            out.gross[row, col] = np.float32(1) / (np.float32(1) + np.exp(-odds[one]))


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
        row, col = cells[one]
        disparity[one] = _describe(row, col, ground, path_model, found, features[one])


@part
def _describe(
    row: int,
    col: int,
    ground: Ground,
    path_model: PathModel,
    found: Candidates,
    features: Image,
) -> np.float32:
    """Write the features of a cell; return its disparity, NaN if there is no candidate."""
    evidence, around = ground.evidence, ground.around
    count = gather(row, col, evidence, ground.blocks, ground.paths, path_model, found)
    if count == 0:
        return np.float32(np.nan)
    textures = around.texture[row, col]
    group = best_group(
        found, count, row, col, textures[Texture.FAR_ASIDE_X], textures[Texture.FAR_ASIDE_Y]
    )
    own = np.isfinite(evidence.disparity_px[row, col])
    _of_group(group, features)
    texture = around.texture[row, col, Texture.FINE]
    features[Feature.OWN] = np.float32(0)
    features[Feature.OWN_GAP] = np.float32(0)
    features[Feature.OWN_ODDS] = np.float32(0)
    features[Feature.OWN_AND_TEXTURE] = np.float32(0)
    if own:
        gap = abs(evidence.disparity_px[row, col] - group.disparity_px)
        features[Feature.OWN] = np.float32(1)
        features[Feature.OWN_GAP] = np.log(min(gap, np.float32(4)) + np.float32(0.1))
        features[Feature.OWN_ODDS] = min(
            max(evidence.odds[row, col], np.float32(-5)), np.float32(5)
        )
        features[Feature.OWN_AND_TEXTURE] = texture
    flags = around.flags[row, col]
    features[Feature.LOW_TEXTURE] = np.float32(1 if flags & _LOW_TEXTURE else 0)
    features[Feature.INCONSISTENT] = np.float32(1 if flags & _INCONSISTENT else 0)
    features[Feature.CARRIED] = np.float32(1 if flags & _CARRIED else 0)
    features[Feature.OCCLUDED] = np.float32(1 if flags & _OCCLUDED else 0)
    features[Feature.MEASURED_NEARBY] = np.log(around.nearby[row, col] + _LEAST)
    features[Feature.MEASURED_AROUND] = np.log(around.wide[row, col] + _LEAST)
    features[Feature.MEASURED_IN_THE_FRAME] = np.log(around.frame + _LEAST)
    features[Feature.WEAK_IN_THE_FRAME] = np.log(around.weak + _LEAST)
    confidence = min(max(around.confidence[row, col], np.float32(0.01)), np.float32(0.99))
    features[Feature.CONFIDENCE] = np.log(confidence / (np.float32(1) - confidence))
    features[Feature.TEXTURE] = texture
    features[Feature.MIDDLE_TEXTURE] = around.texture[row, col, Texture.MIDDLE]
    features[Feature.BROAD_TEXTURE] = around.texture[row, col, Texture.BROAD]
    features[Feature.ASIDE] = around.texture[row, col, Texture.ASIDE]
    features[Feature.FAR_ASIDE] = around.texture[row, col, Texture.FAR_ASIDE]
    features[Feature.TEXTURE_AND_EDGE] = texture * features[Feature.EDGE]
    near = max(group.disparity_px, _LEAST_PX)
    surfaces = around.surfaces[row, col]
    features[Feature.NEARER_THAN_NEARBY] = _nearer(near, surfaces[Surfaces.LOWEST_NEARBY])
    features[Feature.FARTHER_THAN_NEARBY] = _nearer(surfaces[Surfaces.HIGHEST_NEARBY], near)
    features[Feature.NEARER_THAN_AROUND] = _nearer(near, surfaces[Surfaces.LOWEST_AROUND])
    features[Feature.FARTHER_THAN_AROUND] = _nearer(surfaces[Surfaces.HIGHEST_AROUND], near)
    features[Feature.UNLIKE] = surfaces[Surfaces.UNLIKE]
    features[Feature.UNLIKE_AROUND] = surfaces[Surfaces.UNLIKE_AROUND]
    features[Feature.OVER_NOISE] = textures[Texture.OVER_NOISE]
    features[Feature.STRONG_EDGE] = textures[Texture.STRONG_EDGE]
    _of_window(row, col, group.disparity_px, ground, _BESIDE, features)
    _of_window(row, col, group.disparity_px, ground, _AROUND, features)
    return group.disparity_px


@part
def _nearer(one_px: np.float32, other_px: np.float32) -> np.float32:
    """Logarithm by which one surface is nearer than another; 0 if there is none."""
    ratio = np.log(max(one_px, _LEAST_PX) / max(other_px, _LEAST_PX))
    if not np.isfinite(one_px + other_px):
        return np.float32(0)
    return min(max(ratio, np.float32(-1)), np.float32(2))


@part
def _of_group(group: Group, features: Image) -> None:
    """Write the features of the candidates alone."""
    features[Feature.CONSTANT] = np.float32(1)
    features[Feature.SUPPORT] = np.log1p(group.support)
    features[Feature.AGAINST] = np.log1p(group.against)
    features[Feature.LENGTH] = np.log1p(group.length)
    features[Feature.EDGE] = np.log1p(min(group.edge, np.float32(100)))
    features[Feature.STRONGEST] = group.strongest
    features[Feature.SPREAD] = np.log(np.sqrt(group.spread) + np.float32(0.05))
    features[Feature.PRECISION] = np.log(np.sqrt(group.variance) + np.float32(0.02))
    features[Feature.HIDDEN] = min(group.hidden_px, np.float32(8))
    features[Feature.OTHER_SURFACE] = np.log1p(group.foe)
    features[Feature.EVIDENCE_ODDS] = group.odds
    features[Feature.BETWEEN] = np.log1p(group.between)
    features[Feature.ENCLOSED] = np.log1p(group.enclosed)
    features[Feature.AHEAD] = np.log1p(group.ahead)
    features[Feature.BEHIND] = np.log1p(group.behind)
    features[Feature.FOE_BEHIND] = np.log1p(group.foe_behind)


@part
def _of_window(
    row: int,
    col: int,
    disparity_px: np.float32,
    ground: Ground,
    window: Window,
    features: Image,
) -> None:
    """Write how much evidence around a cell is of the same surface, nearer and farther, and where.

    Six features from `Window.first` on: the share of each, and whether it lies where the texture
    is. Beyond the outline of an object both its depth and all texture are on one side.

    Parameters
    ----------
    row, col, disparity_px
        Cell, and its disparity.
    ground
        Evidence and surroundings.
    window
        Window around the cell.
    features
        Features, written in place.
    """
    sources, first = ground.evidence.sources_px, window.first
    if np.isnan(ground.around.surfaces[row, col, window.lowest]):  # no evidence, even farther away
        features[first : first + 3] = np.log(_LEAST)
        features[first + 3 : first + 6] = np.float32(0)
        return
    rows, cols = sources.shape
    textures = ground.around.texture[row, col]
    aside_x, aside_y = textures[window.aside], textures[window.aside + 1]
    tolerance = _SAME_PX + _SAME_SHARE * abs(disparity_px)
    zero, one = np.float32(0), np.float32(1)
    same, nearer, farther = zero, zero, zero
    same_toward, nearer_toward, farther_toward = zero, zero, zero
    for i in range(-_PLACES, _PLACES + 1):
        y = row + i * window.step
        if 0 <= y < rows:
            for j in range(-_PLACES, _PLACES + 1):
                x = col + j * window.step
                if 0 <= x < cols and np.isfinite(sources[y, x]):
                    toward = np.float32(j) * aside_x + np.float32(i) * aside_y
                    gap = sources[y, x] - disparity_px
                    if gap > tolerance:
                        nearer += one
                        nearer_toward += toward
                    elif gap < -tolerance:
                        farther += one
                        farther_toward += toward
                    else:
                        same += one
                        same_toward += toward
    share, middle = one / np.float32((2 * _PLACES + 1) ** 2), one / np.float32(_PLACES)
    features[first] = np.log(same * share + _LEAST)
    features[first + 1] = np.log(nearer * share + _LEAST)
    features[first + 2] = np.log(farther * share + _LEAST)
    features[first + 3] = same_toward * middle / (same + one)
    features[first + 4] = nearer_toward * middle / (nearer + one)
    features[first + 5] = farther_toward * middle / (farther + one)
