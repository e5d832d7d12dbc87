"""Which layer is in front of which, and what to do about two that cut through each other."""

from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import SceneError
from d3s.optics.lens import FloatArray
from d3s.rig import Optics
from d3s.scene.geometry import Affine, Window, perfect_views
from d3s.scene.sampling import Image
from d3s.scene.scenes import Layer

# Planes that cross do so along a line, which every fourth pixel will show.
_STEP = 4

# Each two layers that cross make one more, and these may cross others.
_MOST_PIECES = 200


class Placed(NamedTuple):
    """A layer with its mask as an array, and a name for errors."""

    layer: Layer
    mask: Image | None
    name: str

    @property
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """First and last row, and first and last column, at which the mask has something."""
        if self.mask is None:
            raise ValueError("a layer without a mask is everywhere")
        rows, cols = (np.flatnonzero(self.mask.max(axis=axis)) for axis in (1, 0))
        return (int(rows[0]), int(rows[-1])), (int(cols[0]), int(cols[-1]))


class _Piece(NamedTuple):
    """A layer, or the part of one that is in front of another, and where it is."""

    placed: Placed
    inverse: Affine
    values: FloatArray  # 1 / Z, every few pixels
    is_there: NDArray[np.bool_]


def in_order(placed: list[Placed], optics: Optics, shape: tuple[int, int]) -> list[Placed]:
    """Layers from front to back: whoever is nearer where two of them overlap comes first.

    Of two that cut through each other, the part of one that is in front is added as a layer of its
    own. The whole of it stays behind: it shows where the other has a hole, without a seam.

    Raises
    ------
    SceneError
        When there is no such order: three that overlap in a circle.
    """
    if len(placed) == 1:
        return placed
    view, _ = perfect_views(optics, shape)
    frame = Window.frame(shape)
    pieces = [_piece(one, one.layer.plane.inverse_depth(view), frame) for one in placed]
    in_front: dict[int, set[int]] = {}  # of each piece, those before it
    b = 1
    while b < len(pieces):  # which grows
        for a in range(b):
            if a in in_front.get(b, ()) or b in in_front.get(a, ()):
                continue
            overlap = _difference(pieces[a], pieces[b])
            if overlap.min() < 0 < overlap.max():
                front = _piece(_part_before(pieces[a], pieces[b], frame), pieces[a].inverse, frame)
                pieces.append(front)
                _check_number(pieces)
                new = len(pieces) - 1
                in_front.setdefault(b, set()).add(new)
                in_front.setdefault(a, set()).update((b, new))
            else:
                first, second = (a, b) if overlap.mean() > 0 else (b, a)
                in_front.setdefault(second, set()).add(first)
        b += 1
    try:
        order = TopologicalSorter(in_front).static_order()
        return [pieces[number].placed for number in order]
    except CycleError as error:
        raise SceneError("layers overlap in a circle: no one of them is in front.") from error


def _piece(placed: Placed, inverse: Affine, frame: Window) -> _Piece:
    values = inverse.over(frame.row_numbers[::_STEP], frame.col_numbers[::_STEP])
    if placed.mask is None:
        return _Piece(placed, inverse, values, np.ones(values.shape, dtype=np.bool_))
    # The largest of each block: something thin must not fall through the grid.
    return _Piece(placed, inverse, values, _block_largest(placed.mask) > 0)


def _block_largest(mask: Image) -> Image:
    rows, cols = (-size % _STEP for size in mask.shape)
    padded = np.pad(mask, ((0, rows), (0, cols))) if rows or cols else mask
    by_row = np.maximum.reduce([padded[first::_STEP] for first in range(_STEP)])
    return np.asarray(np.maximum.reduce([by_row[:, first::_STEP] for first in range(_STEP)]))


def _difference(a: _Piece, b: _Piece) -> FloatArray:
    """How much nearer a is than b in 1/m, where they overlap."""
    difference = a.values - b.values
    overlap = difference[a.is_there & b.is_there]
    # Apart in the left view, they still may overlap in the right one, or in the blur.
    return overlap if overlap.size else np.array([difference.mean()])


def _part_before(a: _Piece, b: _Piece, frame: Window) -> Placed:
    """The part of a that is nearer than b, with an edge of one pixel along the line."""
    per_x, per_y = a.inverse.per_x - b.inverse.per_x, a.inverse.per_y - b.inverse.per_y
    nearer = Affine(a.inverse.constant - b.inverse.constant, per_x, per_y)
    inside_px = nearer.over(frame.row_numbers, frame.col_numbers) / np.hypot(per_x, per_y)
    mask = np.clip(inside_px + 0.5, 0.0, 1.0).astype(np.float32)
    if a.placed.mask is not None:
        mask *= a.placed.mask
    return a.placed._replace(mask=mask)


def _check_number(pieces: list[_Piece]) -> None:
    if len(pieces) > _MOST_PIECES:
        raise SceneError(
            f"layers cut through each other in more than {_MOST_PIECES} pieces. Use fewer layers, "
            "or tilt them less."
        )
