"""Order of layers from front to back; layers that intersect are split."""

from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np

from d3s.errors import SceneError
from d3s.lab.twin.geometry import Affine, View, Window, perfect_views
from d3s.lab.twin.masks import Coverage
from d3s.lab.twin.scenes import Layer
from d3s.rig import Optics
from d3s.types import FloatArray, Mask

# Layers are compared at every fourth pixel: planes intersect along lines.
_STEP = 4

# Every intersection adds a layer, which may intersect others.
_MOST_PIECES = 200


class PlacedLayer(NamedTuple):
    """A layer with its mask as an array, and a name for error messages."""

    layer: Layer
    mask: Coverage | None  # None: everywhere
    name: str
    channel: int | None = None  # 0 red, 1 green, 2 blue; None: as a mono sensor sees it


class _Piece(NamedTuple):
    """A layer, or the part of a layer in front of another, sampled every `_STEP` pixels."""

    placed: PlacedLayer
    inverse: Affine  # 1 / Z in 1/m over the pixels of the perfect left view
    values: FloatArray  # samples of `inverse`
    is_there: Mask


def sort_front_to_back(
    placed: list[PlacedLayer], optics: Optics, shape: tuple[int, int]
) -> list[PlacedLayer]:
    """Layers from front to back: of two that overlap, the nearer one comes first.

    If two layers intersect, the nearer part of one is added as a layer of its own. The whole layer
    stays behind the other, so that it shows through holes without a seam.

    Parameters
    ----------
    placed
        Layers in any order.
    optics
        Optics of the rig.
    shape
        Rows and columns of the masks.

    Raises
    ------
    SceneError
        If there is no such order (layers that overlap in a circle), or too many intersections.
    """
    if len(placed) == 1:
        return placed
    view, _ = perfect_views(optics, shape)
    frame = Window.frame(shape)
    pieces = [_piece(one, one.layer.plane.inverse_depth(view), frame) for one in placed]
    # For each piece, the pieces in front of it.
    in_front: dict[int, set[int]] = {n: set() for n in range(len(pieces))}
    b = 1
    while b < len(pieces):  # intersections append pieces
        for a in range(b):
            if a in in_front.get(b, ()) or b in in_front.get(a, ()):
                continue
            difference = _difference(pieces[a], pieces[b], view)
            if difference is None:
                continue
            if difference.min() < 0 < difference.max() and _overlap(pieces[a], pieces[b]):
                front = _piece(_part_before(pieces[a], pieces[b], frame), pieces[a].inverse, frame)
                pieces.append(front)
                if len(pieces) > _MOST_PIECES:
                    raise SceneError(
                        f"layers cut through each other in more than {_MOST_PIECES} pieces. Use "
                        "fewer layers, or tilt them less."
                    )
                new = len(pieces) - 1
                in_front.setdefault(b, set()).add(new)
                in_front.setdefault(a, set()).update((b, new))
            else:
                first, second = (a, b) if _is_before(pieces[a], pieces[b], difference) else (b, a)
                in_front.setdefault(second, set()).add(first)
        b += 1
    try:
        order = TopologicalSorter(in_front).static_order()
        return [pieces[number].placed for number in order]
    except CycleError as error:
        raise SceneError("layers overlap in a circle: no one of them is in front.") from error


def _piece(placed: PlacedLayer, inverse: Affine, frame: Window) -> _Piece:
    values = inverse.over(frame.row_numbers[::_STEP], frame.col_numbers[::_STEP])
    if placed.mask is None:
        return _Piece(placed, inverse, values, np.ones(values.shape, dtype=np.bool_))
    # Maximum of each block, so that thin objects are not missed between samples.
    return _Piece(placed, inverse, values, _block_maximum(placed.mask) > 0)


def _block_maximum(mask: Coverage) -> Coverage:
    rows, cols = (-size % _STEP for size in mask.shape)
    padded = np.pad(mask, ((0, rows), (0, cols))) if rows or cols else mask
    by_row = np.maximum.reduce([padded[first::_STEP] for first in range(_STEP)])
    return np.asarray(np.maximum.reduce([by_row[:, first::_STEP] for first in range(_STEP)]))


def _overlap(a: _Piece, b: _Piece) -> bool:
    return bool((a.is_there & b.is_there).any())


def _difference(a: _Piece, b: _Piece, view: View) -> FloatArray | None:
    """Inverse depth of a minus that of b, in 1/m, where they overlap or come close.

    Layers apart in the left view may still overlap in the right view, or when blurred; None if they
    do not.
    """
    difference = a.values - b.values
    if _overlap(a, b):
        return np.asarray(difference[a.is_there & b.is_there])
    values = np.concatenate([piece.values[piece.is_there] for piece in (a, b)])
    nearest, farthest = values.max(), values.min()
    blur = max(
        abs(float(view.optics.blur_radius_px(1 / max(end, 1e-6), camera)))
        for end in (nearest, farthest)
        for camera in (0, 1)
    )
    sideways = blur + abs(view.disparity_per_dpt) * (nearest - farthest)
    margin = (int(np.ceil(blur / _STEP)) + 1, int(np.ceil(sideways / _STEP)) + 1)
    first, second = (Window.around(piece.is_there).grown(*margin) for piece in (a, b))
    frame = Window(0, 0, *difference.shape)
    both = first.common(second).common(frame)
    return None if both.is_empty else difference[both.within(frame)].ravel()


def _is_before(a: _Piece, b: _Piece, difference: FloatArray) -> bool:
    """Whether a is in front of b; at equal depth, a layer with a mask is in front."""
    mean = difference.mean()
    if mean == 0:
        return a.placed.mask is not None or b.placed.mask is None
    return bool(mean > 0)


def _part_before(a: _Piece, b: _Piece, frame: Window) -> PlacedLayer:
    """Part of a that is nearer than b, with an edge of one pixel along the intersection."""
    per_x, per_y = a.inverse.per_x - b.inverse.per_x, a.inverse.per_y - b.inverse.per_y
    nearer = Affine(a.inverse.constant - b.inverse.constant, per_x, per_y)
    inside_px = nearer.over(frame.row_numbers, frame.col_numbers) / np.hypot(per_x, per_y)
    mask = np.clip(inside_px + 0.5, 0.0, 1.0).astype(np.float32)
    if a.placed.mask is not None:
        mask *= a.placed.mask
    return a.placed._replace(mask=mask)
