"""Light on the sensor from layers: blur each, blend front to back, correct the edges; its truth.

Blending layers that are blurred one by one multiplies two averages over the lens opening: the light
of the layer behind, and the share of the opening that the layer in front leaves free. The light
that arrives is the average of the product. The two differ near an edge, where the occluder hides
one side of the opening and the other side sees the background from a slightly different point. The
difference is a covariance over the opening, summed here over points of the opening, at edges only.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.lab.twin.blur import BlurModel, BlurredLayer, Sheet, blur_sheet
from d3s.lab.twin.geometry import Affine, View, Window
from d3s.lab.twin.masks import Coverage
from d3s.optics.lens import Lens
from d3s.optics.wavefront import pupil_points
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import FloatArray, Image, Mask


class Front(NamedTuple):
    """View through a pinhole in place of the lens."""

    colour: Image
    inverse_depth: Image  # 1/m


def front_of(sheets: list[Sheet], frame: Window, *, colour: bool = True) -> Front:
    """Sharp image, and inverse depth of the surface that covers at least half of each pixel.

    A sheet with a sub-pixel shift is read at its nearest pixels, which moves the edge of a mask by
    up to half a pixel.

    Without `colour` the image is 0; it is wanted only for sheets without a shift.
    """
    if len(sheets) == 1 and sheets[0].canvas.alpha is None:
        return _front_of_one(sheets[0], frame)
    image = np.zeros(frame.shape, dtype=np.float32)
    inverse = np.zeros(frame.shape, dtype=np.float32)
    free = np.ones(frame.shape, dtype=np.float32)
    for sheet in sheets:
        canvas = sheet.canvas
        dx, dy = (round(part) for part in sheet.shift_px)
        window = canvas.window._replace(row=canvas.window.row - dy, col=canvas.window.col - dx)
        kept = window.common(frame)
        there, here = kept.within(window), kept.within(frame)
        depth = _inverse_depth(sheet, kept, there)
        if canvas.alpha is None:
            np.copyto(inverse[here], depth, where=free[here] >= 0.5)
            if colour:
                image[here] += free[here] * canvas.colour[there]
            break
        left = free[here] * (1 - canvas.alpha[there])
        np.copyto(inverse[here], depth, where=(free[here] >= 0.5) & (left < 0.5))
        if colour:
            image[here] += free[here] * canvas.colour[there]
        free[here] = left
    return Front(image, inverse)


def _front_of_one(sheet: Sheet, frame: Window) -> Front:
    there = frame.within(sheet.canvas.window)
    inverse = np.empty(frame.shape, dtype=np.float32)
    inverse[:] = _inverse_depth(sheet, frame, there)
    return Front(sheet.canvas.colour[there].copy(), inverse)


def _inverse_depth(sheet: Sheet, kept: Window, there: tuple[slice, slice]) -> Image:
    if isinstance(sheet.inverse_depth, np.ndarray):
        return sheet.inverse_depth[there]
    if sheet.inverse_depth.is_constant:
        return np.float32(sheet.inverse_depth.constant) * np.ones((1, 1), dtype=np.float32)
    return sheet.inverse_depth.over(kept.row_numbers, kept.col_numbers).astype(np.float32)


def find_occluded(
    inverse_left: Image, inverse_right: Image | None, views: tuple[View, View], step_dpt: float
) -> Mask:
    """Pixels of the left view whose point is hidden from the right camera, or outside its frame.

    Inverse depths are in 1/m; `inverse_right` is None if nothing can hide anything. A point is
    hidden if the right camera sees a surface nearer by more than `step_dpt`.
    """
    if inverse_right is None:
        inverse_right = np.zeros((0, 0), dtype=np.float32)
    to_right = np.linalg.inv(views[1].ray_matrix)
    # Position in the right view: `far` at infinity, plus `near` per 1/m of inverse depth.
    far = to_right @ views[0].ray_matrix
    near = -views[1].camera_x_m * to_right[:, 0]
    hidden = np.empty(inverse_left.shape, dtype=np.bool_)
    run_over_rows(
        _hide_rows, inverse_left.shape[0], inverse_left, inverse_right, far, near, step_dpt, hidden
    )
    return hidden


@compiled
def _hide_rows(
    start: int,
    stop: int,
    inverse_left: Image,
    inverse_right: Image,
    far: FloatArray,
    near: FloatArray,
    step_dpt: float,
    out: Mask,
) -> None:
    rows, cols = out.shape
    is_alone = inverse_right.size == 0
    for i in range(start, stop):
        for j in range(cols):
            inverse = inverse_left[i, j]
            x = far[0, 0] * j + far[0, 1] * i + far[0, 2] + near[0] * inverse
            y = far[1, 0] * j + far[1, 1] * i + far[1, 2] + near[1] * inverse
            # The sensor ends half a pixel beyond the outermost pixel centre.
            out[i, j] = x < -0.5 or y < -0.5 or x >= cols - 0.5 or y >= rows - 0.5
            if not is_alone and not out[i, j]:
                out[i, j] = inverse_right[int(y + 0.5), int(x + 0.5)] > inverse + step_dpt


Spread = Callable[[Affine, NDArray[np.int64], NDArray[np.int64]], FloatArray]
"""From the blur radius on the axis, rows and cols of pixels to their blur, (3, pixels), in px:
along x, mixed, along y."""

# Points of the opening. More points change an edge by less than 0.05 % of full scale.
_FEWEST_POINTS, _MOST_POINTS = 16, 36
_PIXELS_AT_ONCE = 40_000


def render_view(
    sheets: list[Sheet], frame: Window, lens: Lens, blur_model: BlurModel, edges: Mask | None = None
) -> Image:
    """Light on the sensor, (rows, cols) of the frame, full scale 1.

    Edges are corrected at the pixels `edges`; where a blurred mask is between 0 and 1, unless
    given.
    """
    if len(sheets) == 1 and sheets[0].canvas.alpha is None:
        return blur_sheet(sheets[0], frame, lens, blur_model).colour
    layers = (blur_sheet(sheet, frame, lens, blur_model) for sheet in sheets)
    image, found = blend(layers, frame)
    if edges is not None:
        found &= edges
    add_edge_light(image, frame, found, sheets, lens, blur_model)
    return image


def blend(layers: Iterable[BlurredLayer], frame: Window) -> tuple[Image, Mask]:
    """Blend blurred layers front to back; also the pixels at which a layer has an edge."""
    image = np.zeros(frame.shape, dtype=np.float32)
    free = np.ones(frame.shape, dtype=np.float32)
    found = np.zeros(frame.shape, dtype=np.bool_)
    for layer in layers:
        part = layer.window.within(frame)
        image[part] += free[part] * layer.colour
        if layer.alpha is None:
            break
        _mark_edges(found, layer.alpha, part, free)
        free[part] *= 1 - layer.alpha
    return image, found


def _opening_points(count: int, lens: Lens, blur_model: BlurModel) -> NDArray[np.float32]:
    """(count, 2) points (x, y) spread over an opening of radius 1, in proportion to its light."""
    width = lens.aperture_gaussian_width if blur_model.psf == "gaussian" else None
    return np.ascontiguousarray(pupil_points(count, width).T, dtype=np.float32)


def add_edge_light(
    image: Image,
    frame: Window,
    edges: Mask,
    sheets: list[Sheet],
    lens: Lens,
    blur_model: BlurModel,
    spread: Spread | None = None,
) -> None:
    """Add the covariance over the opening to a blended image, in place.

    `image` holds the pixels `frame`, and is corrected at `edges`. `spread` is the blur at pixels of
    the view, by default that of a lens without errors. A pinhole needs no correction.
    """
    spread = spread or _round_spread
    rows, cols = np.nonzero(edges)
    if lens.aperture_radius_m == 0 or not rows.size:
        return
    largest = max(max(map(abs, sheet.radius_px.range_over(frame))) for sheet in sheets)
    count = int(np.clip(np.pi * largest**2 / 2, _FEWEST_POINTS, _MOST_POINTS))
    points = _opening_points(count, lens, blur_model)
    for begin in range(0, rows.size, _PIXELS_AT_ONCE):
        part = slice(begin, begin + _PIXELS_AT_ONCE)
        places = rows[part] + frame.row, cols[part] + frame.col
        image[rows[part], cols[part]] += _covariance(*places, sheets, points, spread)


def _round_spread(
    radius_px: Affine, rows: NDArray[np.int64], cols: NDArray[np.int64]
) -> FloatArray:
    """Blur of a lens without errors: equal along x and y."""
    radius = radius_px.constant + radius_px.per_x * cols + radius_px.per_y * rows
    return np.stack([radius, np.zeros_like(radius), radius])


def _covariance(
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    sheets: list[Sheet],
    points: Image,
    spread: Spread,
) -> Image:
    """Mean over the opening of the blended light, minus the blend of the mean layers."""
    free = np.ones((rows.size, len(points)), dtype=np.float32)
    free_on_average = np.ones(rows.size, dtype=np.float32)
    difference = np.zeros(rows.size, dtype=np.float32)
    none = np.zeros((0, 0), dtype=np.float32)
    for sheet in sheets:
        canvas = sheet.canvas
        run_over_rows(
            _pass_layer,
            rows.size,
            rows,
            cols,
            points,
            canvas.colour,
            none if canvas.alpha is None else canvas.alpha,
            _Origin(
                float(sheet.shift_px[0] - canvas.window.col),
                float(sheet.shift_px[1] - canvas.window.row),
            ),
            spread(sheet.radius_px, rows, cols),
            free,
            free_on_average,
            difference,
        )
    return difference


class _Origin(NamedTuple):
    """Position of pixel (0, 0) of the view on a canvas, in pixels."""

    x: float
    y: float


@compiled
def _pass_layer(
    start: int,
    stop: int,
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    points: Image,
    colour: Image,
    alpha: Coverage,
    origin: _Origin,
    blur_px: FloatArray,
    free: Image,
    free_on_average: Image,
    out: Image,
) -> None:
    """Add the light of one layer through each point of the opening, and update the free share."""
    count = points.shape[0]
    widest = np.sqrt(np.max(points[:, 0] ** 2 + points[:, 1] ** 2))
    is_opaque = alpha.size == 0
    last_row, last_col = colour.shape[0] - 1.001, colour.shape[1] - 1.001
    for n in range(start, stop):
        y, x = rows[n], cols[n]
        along, mixed, down = blur_px[0, n], blur_px[1, n], blur_px[2, n]
        reach = (max(abs(along), abs(down)) + abs(mixed)) * widest
        far_from_layer = not is_opaque and (
            y + origin.y + reach < 0
            or x + origin.x + reach < 0
            or y + origin.y - reach > last_row
            or x + origin.x - reach > last_col
        )
        if far_from_layer or free_on_average[n] < 1e-6:
            continue
        light = 0.0
        mean_colour = 0.0
        mean_alpha = 0.0
        for j in range(count):
            # From a point further right in the opening, a near point is seen further left.
            b = y + origin.y + (down * points[j, 1] + mixed * points[j, 0])
            a = x + origin.x + (along * points[j, 0] + mixed * points[j, 1])
            if is_opaque:
                a = min(max(a, 0.0), last_col)
                b = min(max(b, 0.0), last_row)
            elif a < 0 or b < 0 or a > last_col or b > last_row:
                continue
            i, k = int(b), int(a)
            v, u = b - i, a - k
            c = (1 - v) * ((1 - u) * colour[i, k] + u * colour[i, k + 1]) + v * (
                (1 - u) * colour[i + 1, k] + u * colour[i + 1, k + 1]
            )
            mask = 1.0
            if not is_opaque:
                mask = (1 - v) * ((1 - u) * alpha[i, k] + u * alpha[i, k + 1]) + v * (
                    (1 - u) * alpha[i + 1, k] + u * alpha[i + 1, k + 1]
                )
            light += free[n, j] * c
            free[n, j] *= 1.0 - mask
            mean_colour += c
            mean_alpha += mask
        out[n] += (light - free_on_average[n] * mean_colour) / count
        free_on_average[n] *= 1.0 - mean_alpha / count


def _mark_edges(edges: Mask, alpha: Coverage, part: tuple[slice, slice], free: Coverage) -> None:
    """Mark pixels at which a blurred layer is visible, and neither absent nor opaque.

    `edges` (rows, cols) is changed in place; `part` are the rows and columns of the frame that the
    mask covers, `free` the share of the light that the layers in front leave.
    """
    least = np.float32(2e-3)
    edges[part] |= (alpha > least) & (alpha < 1 - least) & (free[part] > least)
