"""Sharp images of layered planes in each view, with masks and blur radii, from front to back.

Layers that intersect are split.
"""

import math
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import next_fast_len

from d3s.errors import SceneError
from d3s.files.images import read_image
from d3s.lab.twin.blur import Canvas, Sheet, check_room, margin_px
from d3s.lab.twin.geometry import (
    FARTHEST_M,
    Affine,
    PlaneInSpace,
    View,
    Window,
    bent_surface,
    flat_window,
    nearest_plane,
    perfect_views,
)
from d3s.lab.twin.sampling import Raster, Surface, paint, sample_points
from d3s.lab.twin.scenes import checked_mask
from d3s.lab.twin.textures import Photo, Texture, surface_of
from d3s.lab.twin.warp import REACH_PX, read_at
from d3s.rig import Optics
from d3s.types import FloatArray, Image, Mask

# Layers are compared at every fourth pixel: planes intersect along lines.
_STEP = 4

# Every intersection adds a layer, which may intersect others.
_MOST_PIECES = 200


class PlacedLayer(NamedTuple):
    """A layer with its mask as an array, and a name for error messages."""

    plane: PlaneInSpace
    texture: Texture | Photo
    mask: Image | None  # None: everywhere
    name: str
    channel: int | None = None  # 0 red, 1 green, 2 blue; None: as a mono sensor sees it


class _Piece(NamedTuple):
    """A layer, or the part of a layer in front of another, sampled every `_STEP` pixels."""

    placed: PlacedLayer
    inverse: Affine  # 1 / Z in 1/m over the pixels of the perfect left view
    values: FloatArray  # samples of `inverse`
    is_there: Mask


def _sort_front_to_back(
    placed: list[PlacedLayer], optics: Optics, shape: tuple[int, int]
) -> list[PlacedLayer]:
    """Layers from front to back: of two that overlap, the nearer one comes first.

    If two layers intersect, the nearer part of one is added as a layer of its own. The whole layer
    stays behind the other, so that it shows through holes without a seam.

    Raises a SceneError if there is no such order (layers that overlap in a circle), or too many
    intersections.
    """
    if len(placed) == 1:
        return placed
    view, _ = perfect_views(optics, shape)
    frame = Window.frame(shape)
    pieces = [_piece(one, one.plane.inverse_depth(view), frame) for one in placed]
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
                # At equal depth, a layer with a mask is in front.
                mean = difference.mean()
                is_ahead = pieces[a].placed.mask is not None or pieces[b].placed.mask is None
                first, second = (a, b) if mean > 0 or (mean == 0 and is_ahead) else (b, a)
                in_front.setdefault(second, set()).add(first)
        b += 1
    try:
        order = TopologicalSorter(in_front).static_order()
        return [pieces[number].placed for number in order]
    except CycleError as error:
        raise SceneError("layers overlap in a circle: no one of them is in front.") from error


def _piece(placed: PlacedLayer, inverse: Affine, frame: Window) -> _Piece:
    values = inverse.over(frame.row_numbers[::_STEP], frame.col_numbers[::_STEP])
    is_there = np.ones(values.shape, dtype=np.bool_)
    if placed.mask is not None:
        # Maximum of each block, so that thin objects are not missed between samples.
        rows, cols = (-size % _STEP for size in placed.mask.shape)
        padded = np.pad(placed.mask, ((0, rows), (0, cols))) if rows or cols else placed.mask
        by_row = np.maximum.reduce([padded[first::_STEP] for first in range(_STEP)])
        is_there = np.maximum.reduce([by_row[:, first::_STEP] for first in range(_STEP)]) > 0
    return _Piece(placed, inverse, values, is_there)


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


def _part_before(a: _Piece, b: _Piece, frame: Window) -> PlacedLayer:
    """Part of a that is nearer than b, with an edge of one pixel along the intersection."""
    per_x, per_y = a.inverse.per_x - b.inverse.per_x, a.inverse.per_y - b.inverse.per_y
    nearer = Affine(a.inverse.constant - b.inverse.constant, per_x, per_y)
    inside_px = nearer.over(frame.row_numbers, frame.col_numbers) / np.hypot(per_x, per_y)
    mask = np.clip(inside_px + 0.5, 0.0, 1.0).astype(np.float32)
    if a.placed.mask is not None:
        mask *= a.placed.mask
    return a.placed._replace(mask=mask)


# Surroundings of the frame that count for the largest blur in it.
_BESIDE_PX = 32

# Distance beyond a window at which its pixels read the texture.
_KERNEL_PX = 8

_ROWS_AT_ONCE = 128


def placed_layers(
    layers: tuple[Any, ...], optics: Optics, shape: tuple[int, int]
) -> list[PlacedLayer]:
    """Layers with their masks read, from front to back.

    Masks have `shape`, centred on the axis of a perfect left camera. Raises a SceneError if every
    layer has a mask, a mask has another shape, or the layers have no order in depth.
    """
    placed = []
    for number, layer in enumerate(layers):
        name = f"layers[{number}]" if len(layers) > 1 else "the plane"
        mask = getattr(layer, "mask", None)  # of a `Layer`
        mask = _read_mask(mask) if isinstance(mask, str) else mask
        if mask is not None and mask.shape != shape:
            raise SceneError(
                f"{name}.mask has shape {mask.shape} and must have the frame's, {shape}."
            )
        if mask is None or mask.any():
            placed.append(PlacedLayer(layer.plane, layer.texture, mask, name))
    if not any(one.mask is None for one in placed):
        raise SceneError("layers must have one without a mask, behind the others.")
    return _sort_front_to_back(placed, optics, shape)


def sheets_of_layers(
    placed: list[PlacedLayer],
    views: tuple[View, View],
    frames: tuple[Window, Window],
    extra_px: float = 0.0,
    cameras: tuple[int, ...] = (0, 1),
) -> list[list[Sheet]]:
    """Sheets of the views of some cameras, front to back.

    A photo without a width fills both views. Light gets `extra_px` beyond the blur of a perfect
    lens, for the margin of each sheet. Raises a SceneError if a plane reaches the horizon within a
    frame, or the blur is too large for the frame.
    """
    sheets: list[list[Sheet]] = [[] for _ in cameras]
    for one in placed:
        surface = _surface(one, views, frames)
        shift = None
        if not extra_px and len(cameras) == 2 and frames[0] == frames[1]:
            shift = _common_shift(one.plane, views)
        # Views with little overlap are painted separately: one canvas for both would be larger.
        if shift is not None and max(map(abs, shift)) < max(frames[0].shape) / 2:
            parts = _shared_sheets(one, surface, views, frames[0], shift)
        else:
            parts = [
                _separate_sheet(one, surface, views[camera], frames[camera], extra_px)
                for camera in cameras
            ]
        for whole, part in zip(sheets, parts, strict=True):
            whole += part
    return sheets


def blur_radius(inverse_depth: Affine, view: View) -> Affine:
    """Signed blur radius over the pixels of a view, in px; linear in the inverse depth (1/m)."""
    at_infinity = float(view.optics.blur_radius_px(np.inf, view.camera))
    per_dpt = float(view.optics.blur_radius_px(1.0, view.camera)) - at_infinity
    constant, per_x, per_y = inverse_depth
    return Affine(per_dpt * constant + at_infinity, per_dpt * per_x, per_dpt * per_y)


def fast_window(window: Window) -> Window:
    """Window extended to the right and below to a size with a fast FFT."""
    return window._replace(
        rows=next_fast_len(window.rows, real=True), cols=next_fast_len(window.cols, real=True)
    )


def _read_mask(path: str) -> Image:
    mask = read_image(path)
    try:
        return checked_mask(mask)
    except ValueError as error:
        raise SceneError(f"mask {path} {error}") from error


def _surface(one: PlacedLayer, views: tuple[View, View], frames: tuple[Window, Window]) -> Surface:
    """Textured surface of a layer; a photo without a width fills both views."""
    reach = []
    for view, frame in zip(views, frames, strict=True):
        # Distances in metres of the frame's corners from the surface origin, (x, y).
        xs, ys = (frame.col, frame.col + frame.cols), (frame.row, frame.row + frame.rows)
        corners = np.array([(x, y, 1.0) for x in xs for y in ys])
        places = corners @ one.plane.surface_matrix(view).T
        reach.append(np.max(np.abs(places[:, :2] / places[:, 2:]), axis=0))
    extent = np.max(reach, axis=0)
    return surface_of(one.texture, (2 * extent[1], 2 * extent[0]), one.channel)


def _common_shift(plane: PlaneInSpace, views: tuple[View, View]) -> tuple[float, float] | None:
    """Shift (x, y) in px between the views on one raster; None if they differ by more."""
    left, right = (plane.surface_matrix(view) for view in views)
    is_turned = np.any(left[:2, :2] != right[:2, :2]) or left[0, 1] or left[1, 0]
    if is_turned or any(plane[1:]):
        return None
    return (
        float((right[0, 2] - left[0, 2]) / left[0, 0]),
        float((right[1, 2] - left[1, 2]) / left[1, 1]),
    )


def _shared_sheets(
    one: PlacedLayer,
    surface: Surface,
    views: tuple[View, View],
    frame: Window,
    shift: tuple[float, float],
) -> list[list[Sheet]]:
    """Sheets of a layer that differ between the views by a shift: painted and transformed once."""
    inverse = [one.plane.inverse_depth(view) for view in views]
    radii = [blur_radius(*pair) for pair in zip(inverse, views, strict=True)]
    widest = max(abs(radius.constant) for radius in radii)
    check_room(widest, frame)
    right = Window(
        int(np.floor(frame.row + shift[1])),
        int(np.floor(frame.col + shift[0])),
        frame.rows + 1,
        frame.cols + 1,
    )
    room = _room(_place(one, views[0]), frame.joined(right), margin_px(widest))
    if room is None:
        return [[], []]
    canvas = _canvas(one, surface, views[0], room)
    return [[Sheet(canvas, radii[0], inverse[0])], [Sheet(canvas, radii[1], inverse[1], shift)]]


def _separate_sheet(
    one: PlacedLayer, surface: Surface, view: View, frame: Window, extra_px: float
) -> list[Sheet]:
    inverse = one.plane.inverse_depth(view)
    radius = blur_radius(inverse, view)
    place = _place(one, view)
    beside = frame.grown(_BESIDE_PX, _BESIDE_PX)
    near = beside if place is None else place.common(beside)
    if near.is_empty:
        return []
    widest = max(map(abs, radius.range_over(near)))
    check_room(widest, frame)
    room = _room(place, frame, margin_px(widest + extra_px))
    if room is None:
        return []
    if inverse.range_over(room.painted.grown(_KERNEL_PX, _KERNEL_PX))[0] < 1 / FARTHEST_M:
        raise SceneError(
            f"{one.name} reaches the horizon in or beside the view: depth_m="
            f"{one.plane.depth_m:g}, tilt_x_rad={math.atan(one.plane.slope_x):g}, "
            f"tilt_y_rad={math.atan(one.plane.slope_y):g}. Tilt it less."
        )
    if one.plane.is_bent:
        return [_bent_sheet(one, surface, view, frame, room.window)]
    return [Sheet(_canvas(one, surface, view, room), radius, inverse)]


def _bent_sheet(
    one: PlacedLayer, surface: Surface, view: View, frame: Window, window: Window
) -> Sheet:
    """Sheet of a bent plane: the image of the plane that touches it, warped; the blur of a plane.

    The warp moves points by a few pixels at most if the bend is small.
    """
    plane = one.plane
    painted = flat_window(plane, view, window).grown(REACH_PX + 2, REACH_PX + 2)
    flat = paint(surface, plane.surface_matrix(view), painted)
    colour, inverse = (np.empty(window.shape, dtype=np.float32) for _ in range(2))
    for first in range(0, window.rows, _ROWS_AT_ONCE):  # to limit the memory for places
        rows = slice(first, min(first + _ROWS_AT_ONCE, window.rows))
        part = window._replace(row=window.row + first, rows=rows.stop - first)
        inverse[rows], x, y = bent_surface(plane, view, part)
        colour[rows] = read_at(flat, x - painted.col, y - painted.row)
    nearest = nearest_plane(inverse[frame.within(window)], frame)
    return Sheet(Canvas(window=window, colour=colour), blur_radius(nearest, view), inverse)


class _Room(NamedTuple):
    """Window to transform for a layer, and the part of the window to paint."""

    window: Window
    painted: Window


def _room(place: Window | None, frame: Window, margin: int) -> _Room | None:
    """Windows for a layer at `place` (None: everywhere); None if the layer is out of sight.

    The FFT is periodic: a margin as wide as the blur around the place keeps an object cut by the
    frame from reappearing on the opposite side.
    """
    seen = frame.grown(margin, margin)
    if place is None:
        window = fast_window(seen)
        return _Room(window, window)
    painted = place.common(seen)
    if painted.is_empty:
        return None
    return _Room(fast_window(painted.grown(margin, margin)), painted)


def _place(one: PlacedLayer, view: View) -> Window | None:
    """Bounding window of the mask of a layer in a view; None if it is everywhere."""
    if one.mask is None:
        return None
    box = Window.around(one.mask)
    top, bottom = _extended(box.row, box.rows, one.mask.shape[0])
    begin, end = _extended(box.col, box.cols, one.mask.shape[1])
    corners = np.array([(x, y, 1.0) for x in (begin, end) for y in (top, bottom)])
    places = corners @ np.linalg.inv(_to_mask(one, view)).T
    if np.any(places[:, 2] <= 0):
        return None
    x, y = places[:, 0] / places[:, 2], places[:, 1] / places[:, 2]
    return Window(
        int(np.floor(y.min())),
        int(np.floor(x.min())),
        int(np.ceil(np.ptp(y))) + 2,
        int(np.ceil(np.ptp(x))) + 2,
    ).grown(2, 2)


def _extended(first: int, count: int, size: int) -> tuple[int, int]:
    """First and last pixel of an object, far away where the frame of `size` pixels cuts it."""
    far = 4 * size
    return (first or -far), (far if first + count == size else first + count - 1)


def _to_mask(one: PlacedLayer, view: View) -> FloatArray:
    """Homography from pixels of a view to pixels of the mask."""
    if one.mask is None:
        return np.eye(3)
    reference, _ = perfect_views(view.optics, (one.mask.shape[0], one.mask.shape[1]))
    if view == reference:
        return np.eye(3)
    # To the pixel at which the perfect left view sees the same point of the plane.
    there, here = one.plane.surface_matrix(reference), one.plane.surface_matrix(view)
    matrix = np.linalg.solve(there, here)
    return np.asarray(matrix / matrix[2, 2])


def _canvas(one: PlacedLayer, surface: Surface, view: View, room: _Room) -> Canvas:
    colour = paint(surface, one.plane.surface_matrix(view), room.painted)
    if one.mask is None:
        return Canvas(window=room.window, colour=colour)
    matrix, window = _to_mask(one, view), room.painted
    # The border pixels of the mask are repeated beyond it.
    if np.array_equal(matrix, np.eye(3)):
        rows = np.clip(np.arange(window.rows) + window.row, 0, one.mask.shape[0] - 1)
        cols = np.clip(np.arange(window.cols) + window.col, 0, one.mask.shape[1] - 1)
        alpha = one.mask[np.ix_(rows, cols)]
    else:
        raster = Raster(np.pad(one.mask, 2, mode="edge"), -2, -2, 1.0)
        alpha = np.clip(sample_points(raster, matrix, window), 0.0, 1.0)
    whole = np.zeros((2, *room.window.shape), dtype=np.float32)
    whole[(slice(None), *window.within(room.window))] = colour * alpha, alpha
    return Canvas(window=room.window, colour=whole[0], alpha=whole[1])
