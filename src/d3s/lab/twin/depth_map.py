"""Layers of a depth-map scene: the image cut into slices of depth.

A slice is opaque where the scene is at its depth or nearer, and fades out towards the next slice
behind; light between two slices is mixed from both. Beneath nearer surfaces a slice continues as
far as the other camera or the blur can look behind the edge, filled with its own texture mirrored.
So no colour of the foreground gets into the background.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import SceneError
from d3s.lab.twin.blur import Canvas, Sheet, check_room, margin_px, radius_nodes
from d3s.lab.twin.geometry import FARTHEST_M, PERFECT, Affine, View, Window
from d3s.lab.twin.layers import blur_radius, fast_window
from d3s.lab.twin.warp import REACH_PX, Relief, warp_to_view
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import FloatArray, Image, Mask

# State of a pixel of a layer.
_HIDDEN = 0  # a nearer surface is in front: the layer may continue beneath it
_SOURCE = 1  # the layer is visible, and may be copied from
_KNOWN = 2  # the layer is visible, and is not copied from
_ABSENT = 3  # a farther surface is visible: the layer ends here
_FILLED = 4

_EVERYWHERE = 2**31 - 1


def _fill_hidden(
    colour: Image, depth: Image, state: NDArray[np.uint8], reach_px: tuple[int, int]
) -> Mask:
    """Continue a layer beneath nearer surfaces, in place.

    Rows are filled first, because the other camera looks behind an edge along the row. Pixels
    without a source in their row are filled along the column. Colour is mirrored at the nearest
    source, depth is constant. Depth is also continued where the layer is absent, so that an edge
    has a depth on both sides.

    Nothing is farther from its source than `reach_px` (rows, cols). `state` has _HIDDEN, _SOURCE,
    _KNOWN or _ABSENT for each pixel. Returns the pixels that were filled.
    """
    reach_y, reach_x = reach_px
    run_over_rows(_fill_lines, colour.shape[0], colour, depth, state, reach_x, True)
    turned = [np.ascontiguousarray(values.T) for values in (colour, depth, state)]
    turned[2][turned[2] == _FILLED] = _SOURCE
    run_over_rows(_fill_lines, colour.shape[1], *turned, reach_y, False)
    colour[:], depth[:] = turned[0].T, turned[1].T
    return np.asarray((state == _FILLED) | (turned[2].T == _FILLED))


@compiled
def _nearer_source(before: int, after: int, place: int, reach: int) -> int:
    """Nearer of two sources (-1: none), or -1 if it is out of reach."""
    source = before
    if before < 0 or (after >= 0 and after - place < place - before):
        source = after
    return source if source >= 0 and abs(source - place) <= reach else -1


@compiled
def _fill_lines(
    start: int,
    stop: int,
    colour: Image,
    depth: Image,
    state: NDArray[np.uint8],
    reach: int,
    has_absent: bool,
) -> None:
    """Fill the hidden pixels of each line; with `has_absent` also the depth of absent ones."""
    cols = colour.shape[1]
    # Last source so far: any, and without an _ABSENT pixel in between.
    before = np.empty(cols, dtype=np.int64)
    open_before = np.empty(cols, dtype=np.int64)
    for i in range(start, stop):
        last = open_last = -1
        for j in range(cols):
            if state[i, j] == _SOURCE:
                last = open_last = j
            elif state[i, j] == _ABSENT:
                open_last = -1
            before[j], open_before[j] = last, open_last
        after = open_after = -1
        for j in range(cols - 1, -1, -1):
            if state[i, j] == _SOURCE:
                after = open_after = j
            elif state[i, j] == _ABSENT:
                open_after = -1
                source = _nearer_source(before[j], after, j, reach)
                if source >= 0 and has_absent:
                    depth[i, j] = depth[i, source]
            if state[i, j] != _HIDDEN:
                continue
            source = _nearer_source(open_before[j], open_after, j, reach)
            if source < 0:
                continue
            mirror = 2 * source - j
            if mirror < 0 or mirror >= cols or state[i, mirror] != _SOURCE:
                mirror = source
            colour[i, j] = colour[i, mirror]
            depth[i, j] = depth[i, source]
            state[i, j] = _FILLED


# Distance of slices in disparity for a pinhole, which has no blur to choose slices by.
_PINHOLE_STEP_PX = 4.0


def checked_depth(depth: NDArray[Any], image: Image) -> FloatArray:
    """Depth map in metres as float64; a SceneError if it does not fit the image or is no depth."""
    if depth.shape != image.shape:
        raise SceneError(
            f"depth_m has shape {depth.shape} and image has {image.shape}. Both must be the same."
        )
    if not np.issubdtype(depth.dtype, np.floating):
        raise SceneError(
            f"depth_m has {depth.dtype} values, and floats in metres are needed. Did you pass "
            "millimetres? Divide them by 1000."
        )
    values = depth.astype(np.float64)
    wrong = ~((values > 0) & (values <= FARTHEST_M))
    if wrong.any():
        raise SceneError(
            f"depth_m has {int(wrong.sum())} values that are no depth, such as "
            f"{values[wrong][0]:g}: each must be above 0 and at most {FARTHEST_M:g}, in metres. "
            "Fill what is unknown first."
        )
    return values


def sheets_of_depth_map(
    image: Image, depth_m: FloatArray, views: tuple[View, View], extra_px: float = 0.0
) -> list[list[Sheet]]:
    """Sheets of both views, front to back; a SceneError if the blur is too large for the image.

    Light gets `extra_px` beyond the blur of a perfect lens, for the margin of each sheet.
    """
    frame = Window.frame((image.shape[0], image.shape[1]))
    is_plane = float(np.ptp(depth_m)) == 0
    if is_plane and all(view.mount == PERFECT for view in views):
        return _sheets_of_plane(image, float(depth_m.flat[0]), views, frame, extra_px)
    return [_slices(image, 1.0 / depth_m, view, frame, extra_px) for view in views]


def _sheets_of_plane(
    image: Image, depth_m: float, views: tuple[View, View], frame: Window, extra_px: float
) -> list[list[Sheet]]:
    """Scene at one depth: one canvas, which the right view reads with a shift."""
    inverse = Affine(1 / depth_m, 0.0, 0.0)
    radii = [blur_radius(inverse, view) for view in views]
    shift = float(views[0].optics.disparity_px(depth_m))
    widest = max(abs(radius.constant) for radius in radii)
    check_room(widest, frame)
    margin = margin_px(widest + extra_px)
    window = fast_window(frame.grown(margin, margin + int(np.ceil(abs(shift)))))
    canvas = Canvas(window=window, colour=_mirrored(image, window))
    left = Sheet(canvas, radii[0], inverse)
    right = Sheet(canvas, radii[1], inverse, (shift, 0.0))
    return [[left], [right]]


def _mirrored(values: NDArray[Any], window: Window) -> Image:
    """Pixels of a window larger than the image, which is mirrored at its borders."""
    above, before = -window.row, -window.col
    below, after = window.rows - values.shape[0] - above, window.cols - values.shape[1] - before
    padded = np.pad(values, ((above, below), (before, after)), mode="reflect")
    return padded.astype(np.float32)


class _Cuts(NamedTuple):
    """Slices of one view, by a coordinate of depth that is larger for nearer points."""

    place: FloatArray  # (rows, cols) coordinate of each pixel
    nodes: FloatArray  # coordinate of each slice, front to back
    radius_px: FloatArray  # signed blur radius of each slice


def _cuts(inverse: FloatArray, disparity: FloatArray, view: View) -> _Cuts:
    per_dpt = blur_radius(Affine(1.0, 0.0, 0.0), view).constant
    at_infinity = blur_radius(Affine(0.0, 0.0, 0.0), view).constant
    if per_dpt == at_infinity:
        count = 2 + int(np.ptp(disparity) / _PINHOLE_STEP_PX)
        nodes = np.linspace(disparity.max(), disparity.min(), count)
        return _Cuts(disparity, nodes, np.zeros(count))
    radius = at_infinity + (per_dpt - at_infinity) * inverse
    nodes = _signed_nodes(float(radius.min()), float(radius.max()))
    # Squared radius with its sign: light is mixed linearly in it, and it is monotonic in depth.
    return _Cuts(radius * np.abs(radius), nodes * np.abs(nodes), nodes)


def _signed_nodes(farthest: float, nearest: float) -> FloatArray:
    """Signed radii in px, nearest slice first; one slice is in focus if focus lies between."""
    if farthest >= 0:
        return radius_nodes(farthest, nearest)[::-1]
    if nearest <= 0:
        return -radius_nodes(-nearest, -farthest)
    return np.concatenate([radius_nodes(0.0, nearest)[::-1], -radius_nodes(0.0, -farthest)[1:]])


def _slices(
    image: Image, inverse: FloatArray, view: View, frame: Window, extra_px: float
) -> list[Sheet]:
    disparity = view.optics.disparity_px(1.0 / inverse)
    cuts = _cuts(inverse, disparity, view)
    widest = float(np.max(np.abs(cuts.radius_px)))
    check_room(widest, frame)
    margin = margin_px(widest + extra_px)
    sideways = int(np.ceil(np.max(np.abs(disparity)))) + REACH_PX
    outer = fast_window(frame.grown(margin, margin + sideways))
    window = fast_window(frame.grown(margin, margin))
    wide = tuple(_mirrored(values, outer) for values in (image, cuts.place, disparity))
    middle_px = ((frame.cols - 1) / 2, (frame.rows - 1) / 2)
    # As far as the blur spreads; along rows also as far as the other camera looks behind an edge.
    reach_px = (margin, margin + int(np.ptp(disparity)))
    sheets = []
    for number, radius in enumerate(cuts.radius_px):
        relief = _relief(wide, cuts.nodes, number, outer, reach_px)
        if relief is None:
            continue
        seen = warp_to_view(relief, view, window, middle_px)
        is_last = number == cuts.nodes.size - 1
        part = seen if is_last else _cropped(seen, margin)
        if part is None:
            continue
        alpha = None if is_last else part.alpha
        canvas = Canvas(window=part.window, colour=part.colour, alpha=alpha)
        offset_px = np.float32(view.optics.disparity_offset_px)
        inverse_depth = (part.disparity_px - offset_px) / np.float32(view.disparity_per_dpt)
        sheets.append(Sheet(canvas, Affine(float(radius), 0.0, 0.0), inverse_depth))
    return sheets


def _cropped(relief: Relief, margin: int) -> Relief | None:
    """Non-empty part of a slice with a margin for its blur; None if the slice is empty."""
    box = Window.around(relief.alpha)
    if box.is_empty:
        return None
    box = box._replace(row=relief.window.row + box.row, col=relief.window.col + box.col)
    window = fast_window(box.grown(margin, margin))
    kept = window.common(relief.window)
    parts = []
    for values in relief[1:]:
        part = np.zeros(window.shape, dtype=np.float32)
        part[kept.within(window)] = values[kept.within(relief.window)]
        parts.append(part)
    return Relief(window, *parts)


def _relief(
    wide: tuple[Image, ...],
    nodes: FloatArray,
    number: int,
    window: Window,
    reach_px: tuple[int, int],
) -> Relief | None:
    """One slice, continued beneath nearer surfaces; None if no pixel lies at its depth.

    `wide` holds the image, the depth coordinate and the disparity on `window`.
    """
    image, place, disparity = wide
    is_last = number == nodes.size - 1
    behind = -np.inf if is_last else nodes[number + 1]
    before = nodes[number - 1] if number else np.inf
    # Pixels up to two slices nearer may belong to the same surface, and keep their colour.
    hides = nodes[number - 2] if number >= 2 else np.inf
    state = np.full(place.shape, _HIDDEN, dtype=np.uint8)
    state[place <= behind] = _ABSENT
    state[(place > behind) & (place <= hides)] = _KNOWN
    state[(place > behind) & (place < before)] = _SOURCE
    if not is_last and not (state == _SOURCE).any():
        return None
    is_known = (state == _KNOWN) | (state == _SOURCE)
    colour, depth = image.copy(), disparity.copy()
    is_beneath = _fill_hidden(
        colour, depth, state, (_EVERYWHERE, _EVERYWHERE) if is_last else reach_px
    )
    if is_last:
        alpha = np.ones_like(image)
    else:
        here = nodes[number]
        ramp = np.clip((place - np.float32(behind)) / np.float32(here - behind), 0.0, 1.0)
        alpha = np.where(is_known, ramp, is_beneath.astype(np.float32))
    return Relief(window, colour * alpha, alpha, depth)
