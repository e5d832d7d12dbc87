"""A scene from a picture and its depth map, cut into slices of depth.

Each slice is opaque where the scene is at its depth or nearer, and fades out towards the next one
behind it; light between two slices is mixed from both. Where something nearer hides a slice it goes
on beneath, as far as the other camera or the blur may look behind the edge, filled with its own
texture mirrored: no colour of the object in front ever gets into what lies behind it.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from d3s.errors import SceneError
from d3s.optics.lens import FloatArray
from d3s.scene.blur import Canvas, Sheet, margin_px, radius_nodes
from d3s.scene.geometry import Affine, View, Window
from d3s.scene.layers import fast_window
from d3s.scene.sampling import Image
from d3s.threads import over_rows

# Sub-pixel reading along a row: a windowed sinc of 12 pixels, tabulated.
_REACH = 6
_PHASES = 1024

# Neighbours that differ by more than this in disparity are two things, not one that is tilted.
EDGE_PX = 1.0

# Iterations to find the point that a pixel of the right view sees; each gains a factor of the slope
# of the disparity, below 1/4 on anything that still faces the camera.
_ITERATIONS = 12


def sheets_of_depth_map(
    image: Image, depth_m: FloatArray, views: tuple[View, View]
) -> tuple[list[Sheet], list[Sheet]]:
    """Sheets of both views, front to back."""
    frame = Window.frame((image.shape[0], image.shape[1]))
    inverse = (1.0 / depth_m).astype(np.float64)
    if float(np.ptp(inverse)) == 0 and all(view.mount == views[0].mount for view in views):
        return _one_plane(image, float(inverse.flat[0]), views, frame)
    left, right = (_slices(image, inverse, view, frame) for view in views)
    return left, right


def depth_edges(depth_m: FloatArray, view: View) -> NDArray[np.bool_]:
    """Pixels at which the depth jumps, to the right of them or below."""
    disparity = np.asarray(view.optics.disparity_px(depth_m))
    edges = np.zeros(disparity.shape, dtype=np.bool_)
    edges[:, :-1] |= np.abs(np.diff(disparity, axis=1)) > EDGE_PX
    edges[:-1] |= np.abs(np.diff(disparity, axis=0)) > EDGE_PX
    return edges


def _one_plane(
    image: Image, inverse_dpt: float, views: tuple[View, View], frame: Window
) -> tuple[list[Sheet], list[Sheet]]:
    """All at one depth: one canvas, read with a shift by the right view."""
    optics = views[0].optics
    shift = float(optics.disparity_px(1 / inverse_dpt)) * views[0].mount.scale
    radii = [float(optics.blur_radius_px(1 / inverse_dpt, camera)) for camera in (0, 1)]
    margin = margin_px(max(map(abs, radii)))
    window = fast_window(
        frame.grown(margin, margin + int(np.ceil(abs(shift))))
    )
    canvas = Canvas(window=window, colour=_mirrored(image, window))
    left, right = (
        Sheet(canvas, Affine(radius, 0.0, 0.0), Affine(inverse_dpt, 0.0, 0.0), (moved, 0.0))
        for radius, moved in zip(radii, (0.0, shift), strict=True)
    )
    return [left], [right]


def _mirrored(image: NDArray[np.generic], window: Window) -> NDArray[np.generic]:
    before = (-window.row, -window.col)
    after = (window.rows - image.shape[0] - before[0], window.cols - image.shape[1] - before[1])
    return np.pad(image, list(zip(before, after, strict=True)), mode="reflect")


def _nodes(farthest: float, nearest: float) -> FloatArray:
    """Signed radii from the nearest slice to the farthest, with one in focus if focus is between."""
    if farthest >= 0:
        return radius_nodes(farthest, nearest)[::-1]
    if nearest <= 0:
        return -radius_nodes(-nearest, -farthest)
    return np.concatenate([radius_nodes(0.0, nearest)[::-1], -radius_nodes(0.0, -farthest)[1:]])


def _slices(image: Image, inverse: FloatArray, view: View, frame: Window) -> list[Sheet]:
    optics, camera = view.optics, view.camera
    at_infinity = float(optics.blur_radius_px(np.inf, camera))
    per_dpt = float(optics.blur_radius_px(1.0, camera)) - at_infinity
    disparity = np.asarray(optics.disparity_px(1.0 / inverse))
    radius = at_infinity + per_dpt * inverse
    if per_dpt == 0:  # a pinhole: sharp everywhere, so slices by disparity keep the order of depth
        radius, nodes = disparity, np.linspace(
            disparity.max(), disparity.min(), 1 + int(np.ptp(disparity) / 4) + 1
        )
        blur = np.zeros_like(nodes)
        squares, bounds = radius, nodes
    else:
        nodes = _nodes(float(radius.min()), float(radius.max()))
        blur = nodes
        # Linear in the square of the radius, with the sign kept so that depth stays in order.
        squares, bounds = radius * np.abs(radius), nodes * np.abs(nodes)
    margin = margin_px(float(np.max(np.abs(blur))))
    disparity_range = (float(disparity.min()), float(disparity.max()))
    outer = fast_window(
        frame.grown(margin, margin + int(np.ceil(np.max(np.abs(disparity_range)))) + _REACH)
    )
    window = fast_window(frame.grown(margin, margin))
    wide = [_mirrored(values, outer).astype(np.float32) for values in (image, squares, disparity)]
    sheets = []
    for k in range(nodes.size):
        reach = (margin, int(disparity_range[1] - disparity_range[0]) + margin)
        made = _slice(*wide, bounds, k, reach, is_last=k == nodes.size - 1)
        if made is None:
            continue
        colour, alpha, shift = made
        pixels = _looked_at(colour, alpha, shift, outer, view, window, frame)
        sheets.append(
            Sheet(
                Canvas(
                    window=window,
                    colour=pixels[0],
                    alpha=None if k == nodes.size - 1 else pixels[1],
                ),
                Affine(float(blur[k]), 0.0, 0.0),
                _inverse_from_disparity(pixels[2], view),
            )
        )
    return sheets


def _inverse_from_disparity(disparity: Image, view: View) -> Image:
    optics = view.optics
    per_dpt = float(optics.disparity_px(1.0)) - optics.disparity_offset_px
    return ((disparity - np.float32(optics.disparity_offset_px)) / np.float32(per_dpt)).astype(
        np.float32
    )


def _slice(
    image: Image,
    squares: Image,
    disparity: Image,
    bounds: FloatArray,
    k: int,
    reach: tuple[int, int],
    *,
    is_last: bool,
) -> tuple[Image, Image, Image] | None:
    """Premultiplied colour, opacity and disparity of slice k, filled beneath what is nearer."""
    here = bounds[k]
    behind = bounds[k + 1] if not is_last else -np.inf
    before = bounds[k - 2] if k >= 2 else np.inf
    # What is up to two slices nearer may be the same surface, and shows its own colour.
    known = (squares > behind) & (squares <= before)
    core = known & (squares < (bounds[k - 1] if k else np.inf))
    if not core.any():
        return None
    colour, depth = image.copy(), disparity.copy()
    state = np.where(known, 1, 0).astype(np.uint8)
    state[known & ~core] = 3  # takes part, but nothing spreads from it
    nearer = squares > before
    limit_y, limit_x = (np.iinfo(np.int32).max,) * 2 if is_last else reach
    over_rows(_fill_rows, image.shape[0], colour, depth, state, limit_x)
    _fill_cols(colour, depth, state, limit_y)
    if is_last:
        colour[state == 0] = np.float32(image.mean())
        alpha = np.ones_like(image)
    else:
        ramp = np.clip((squares - np.float32(behind)) / np.float32(here - behind), 0.0, 1.0)
        alpha = np.where(known, ramp, (nearer & (state > 0)).astype(np.float32))
    alpha = alpha.astype(np.float32)
    return colour * alpha, alpha, depth


@njit(cache=True, nogil=True)
def _fill_rows(start, stop, colour, depth, state, limit):  # type: ignore[no-untyped-def]
    """Fill what is unknown (state 0) from the nearest known pixel of the row, mirrored there."""
    cols = colour.shape[1]
    edge_before = np.empty(cols, dtype=np.int64)
    for i in range(start, stop):
        last = -1
        for j in range(cols):
            if state[i, j] == 1:
                last = j
            edge_before[j] = last
        following = -1
        for j in range(cols - 1, -1, -1):
            if state[i, j] == 1:
                following = j
            if state[i, j] != 0:
                continue
            edge = edge_before[j]
            if edge < 0 or (following >= 0 and following - j < j - edge):
                edge = following
            if edge < 0 or abs(edge - j) > limit:
                continue
            mirror = 2 * edge - j
            if mirror < 0 or mirror >= cols or state[i, mirror] != 1:
                mirror = edge
            colour[i, j] = colour[i, mirror]
            depth[i, j] = depth[i, edge]
        for j in range(cols):
            if state[i, j] == 0:
                edge = edge_before[j]
                following = -1
                if edge >= 0 and j - edge <= limit:
                    following = edge
                state[i, j] = 2 if following >= 0 else 0
        following = -1
        for j in range(cols - 1, -1, -1):
            if state[i, j] == 1:
                following = j
            elif state[i, j] == 0 and following >= 0 and following - j <= limit:
                state[i, j] = 2


@njit(cache=True, nogil=True)
def _fill_cols(colour, depth, state, limit):  # type: ignore[no-untyped-def]
    """Fill what is still unknown from the nearest pixel above or below."""
    rows, cols = colour.shape
    above = np.full((rows, cols), -1, dtype=np.int32)
    for i in range(rows):
        for j in range(cols):
            if state[i, j] == 1 or state[i, j] == 2:
                above[i, j] = i
            elif i:
                above[i, j] = above[i - 1, j]
    below = np.full(cols, -1, dtype=np.int32)
    for i in range(rows - 1, -1, -1):
        for j in range(cols):
            if state[i, j] == 1 or state[i, j] == 2:
                below[j] = i
                continue
            if state[i, j] != 0:
                continue
            edge = above[i, j]
            if edge < 0 or (below[j] >= 0 and below[j] - i < i - edge):
                edge = below[j]
            if edge < 0 or abs(edge - i) > limit:
                continue
            mirror = 2 * edge - i
            if mirror < 0 or mirror >= rows or state[mirror, j] == 0 or state[mirror, j] > 2:
                mirror = edge
            colour[i, j] = colour[mirror, j]
            depth[i, j] = depth[edge, j]
            state[i, j] = 4


def _looked_at(
    colour: Image,
    alpha: Image,
    disparity: Image,
    outer: Window,
    view: View,
    window: Window,
    frame: Window,
) -> list[Image]:
    """Colour, opacity and disparity of a slice on the pixels of a view."""
    axis = np.array([(frame.cols - 1) / 2, (frame.rows - 1) / 2])
    # To pixels of the perfect view: (x, y) less the disparity, which follows by iteration.
    to_ideal = view.ray_matrix[:2] * view.optics.focal_length_px
    to_ideal = to_ideal + np.array([[0.0, 0.0, axis[0]], [0.0, 0.0, axis[1]]])
    if view.camera:  # the offset is part of the disparity already
        to_ideal[0, 2] -= view.optics.disparity_offset_px
    elif np.array_equal(to_ideal, np.eye(3)[:2]):
        part = window.within(outer)
        return [np.ascontiguousarray(values[part]) for values in (colour, alpha, disparity)]
    seen = [np.empty(window.shape, dtype=np.float32) for _ in range(3)]
    over_rows(
        _look,
        window.rows,
        colour,
        alpha,
        disparity,
        to_ideal,
        float(view.camera),
        np.array([window.row, window.col, outer.row, outer.col]),
        _sinc_table(),
        *seen,
    )
    np.clip(seen[1], 0.0, 1.0, out=seen[1])
    return seen


def _sinc_table() -> Image:
    offset = np.arange(_PHASES + 1)[:, np.newaxis] / _PHASES - np.arange(
        -_REACH + 1, _REACH + 1
    )
    window = np.i0(7.0 * np.sqrt(np.clip(1 - (offset / _REACH) ** 2, 0, None)))
    weights = np.sinc(offset) * window
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


@njit(cache=True, nogil=True)
def _look(  # type: ignore[no-untyped-def]
    start, stop, colour, alpha, disparity, to_ideal, camera, corners, table, out, mask, moved
):
    rows, cols = colour.shape
    reach = table.shape[1] // 2
    phases = table.shape[0] - 1
    for i in range(start, stop):
        for j in range(out.shape[1]):
            y0, x0 = i + corners[0], j + corners[1]
            x = to_ideal[0, 0] * x0 + to_ideal[0, 1] * y0 + to_ideal[0, 2] - corners[3]
            y = to_ideal[1, 0] * x0 + to_ideal[1, 1] * y0 + to_ideal[1, 2] - corners[2]
            y = min(max(y, 0.0), rows - 1.0)
            row = int(y)
            near_row = min(int(y + 0.5), rows - 1)
            place = min(max(x, reach - 1.0), cols - reach - 1.001)
            shift = 0.0
            if camera:
                for _ in range(_ITERATIONS):
                    k = int(place)
                    share = place - k
                    shift = (
                        disparity[near_row, k] * (1 - share) + disparity[near_row, k + 1] * share
                    )
                    place = min(max(x + shift, reach - 1.0), cols - reach - 1.001)
            else:
                shift = disparity[near_row, int(place + 0.5)]
            col = int(place)
            weights = table[int((place - col) * phases + 0.5)]
            part = y - row
            total = 0.0
            cover = 0.0
            for m in range(2 if part > 0 else 1):
                line_total = 0.0
                line_cover = 0.0
                line = min(row + m, rows - 1)
                for t in range(2 * reach):
                    place_t = col - reach + 1 + t
                    line_total += weights[t] * colour[line, place_t]
                    line_cover += weights[t] * alpha[line, place_t]
                share = part if m else 1.0 - part
                total += share * line_total
                cover += share * line_cover
            out[i, j] = total
            mask[i, j] = cover
            moved[i, j] = shift


def checked_depth(depth: NDArray[np.generic], image: Image) -> FloatArray:
    """The depth map as float64.

    Raises
    ------
    SceneError
        When it does not fit the image, or has values that are no depth.
    """
    if depth.shape != image.shape:
        raise SceneError(
            f"depth_m has shape {depth.shape} and image has {image.shape}. Both must be the same."
        )
    values = depth.astype(np.float64)
    wrong = ~((values > 0) & (values <= 1e4))
    if wrong.any():
        example = values[wrong][0]
        raise SceneError(
            f"depth_m has {int(wrong.sum())} values that are no depth, such as {example:g}: each "
            "must be above 0 and at most 10000, in metres. Fill what is unknown first."
        )
    return values
