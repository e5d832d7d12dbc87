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

from d3s.lab.twin.blur import BlurredLayer, Sheet
from d3s.lab.twin.geometry import Affine, View, Window
from d3s.lab.twin.point_spread import Psf, gaussian_width
from d3s.optics.lens import Lens
from d3s.optics.wavefront import pupil_points
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import FloatArray, Image, Mask

EDGE_PX = 1.0
"""Change of disparity from one pixel to the next, above which they belong to different objects."""


class Front(NamedTuple):
    """View through a pinhole in place of the lens."""

    colour: Image
    inverse_depth: Image  # 1/m


def front_of(sheets: list[Sheet], frame: Window) -> Front:
    """Sharp image, and inverse depth of the surface that covers at least half of each pixel.

    A sheet with a sub-pixel shift is read at its nearest pixels, which moves the edge of a mask by
    up to half a pixel.
    """
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
        left = np.zeros_like(free[here])
        if canvas.alpha is not None:
            left = free[here] * (1 - canvas.alpha[there])
        np.copyto(inverse[here], depth, where=(free[here] >= 0.5) & (left < 0.5))
        image[here] += free[here] * canvas.colour[there]
        free[here] = left
        if canvas.alpha is None:
            break
    return Front(image, inverse)


def _inverse_depth(sheet: Sheet, kept: Window, there: tuple[slice, slice]) -> Image:
    if isinstance(sheet.inverse_depth, np.ndarray):
        return sheet.inverse_depth[there]
    if sheet.inverse_depth.is_constant:
        return np.float32(sheet.inverse_depth.constant) * np.ones((1, 1), dtype=np.float32)
    return sheet.inverse_depth.over(kept.row_numbers, kept.col_numbers).astype(np.float32)


def find_occluded(inverse_left: Image, inverse_right: Image, views: tuple[View, View]) -> Mask:
    """Pixels of the left view whose point is hidden from the right camera, or outside its frame.

    Inverse depths are in 1/m. A point is hidden if the right camera sees a surface nearer by more
    than `EDGE_PX` of disparity.
    """
    step_dpt = EDGE_PX / max(views[0].disparity_per_dpt, 1e-9)  # 0 for a camera without baseline
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
    for i in range(start, stop):
        for j in range(cols):
            inverse = inverse_left[i, j]
            x = far[0, 0] * j + far[0, 1] * i + far[0, 2] + near[0] * inverse
            y = far[1, 0] * j + far[1, 1] * i + far[1, 2] + near[1] * inverse
            # The sensor ends half a pixel beyond the outermost pixel centre.
            out[i, j] = x < -0.5 or y < -0.5 or x >= cols - 0.5 or y >= rows - 0.5
            if not out[i, j]:
                out[i, j] = inverse_right[int(y + 0.5), int(x + 0.5)] > inverse + step_dpt


Spread = Callable[[Affine, NDArray[np.int64], NDArray[np.int64]], FloatArray]
"""From the blur radius on the axis, rows and cols of pixels to their blur, (3, pixels), in px:
along x, mixed, along y."""

# Points of the opening. More points change an edge by less than 0.05 % of full scale.
_FEWEST_POINTS, _MOST_POINTS = 16, 36
_PIXELS_AT_ONCE = 40_000
_LEAST_SHARE = np.float32(2e-3)  # of the light that shows


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
        # Edges: where the layer is visible, and neither absent nor opaque.
        is_partly = (layer.alpha > _LEAST_SHARE) & (layer.alpha < 1 - _LEAST_SHARE)
        found[part] |= is_partly & (free[part] > _LEAST_SHARE)
        free[part] *= 1 - layer.alpha
    return image, found


def add_edge_light(
    image: Image,
    frame: Window,
    edges: Mask,
    sheets: list[Sheet],
    lens: Lens,
    psf: Psf,
    spread: Spread,
) -> None:
    """Add the covariance over the opening to a blended image, in place.

    `image` holds the pixels `frame`, and is corrected at `edges`. `spread` is the blur at pixels of
    the view. A pinhole needs no correction.
    """
    rows, cols = np.nonzero(edges)
    if lens.aperture_radius_m == 0 or not rows.size:
        return
    largest = max(max(map(abs, sheet.radius_px.range_over(frame))) for sheet in sheets)
    count = int(np.clip(np.pi * largest**2 / 2, _FEWEST_POINTS, _MOST_POINTS))
    # Spread over an opening of radius 1, in proportion to its light.
    opening = pupil_points(count, gaussian_width(psf, lens))
    points: Image = np.ascontiguousarray(opening.T, dtype=np.float32)
    for begin in range(0, rows.size, _PIXELS_AT_ONCE):
        part = slice(begin, begin + _PIXELS_AT_ONCE)
        places = rows[part] + frame.row, cols[part] + frame.col
        image[rows[part], cols[part]] += _covariance(*places, sheets, points, spread)


def round_spread(radius_px: Affine, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> FloatArray:
    """Blur of a lens without errors: equal along x and y."""
    radius = radius_px.at(cols.astype(np.float64), rows.astype(np.float64))
    return np.stack([radius, np.zeros_like(radius), radius])


class _Opening(NamedTuple):
    """Light through all points of the opening, of the layers so far."""

    free: Image  # (pixels, points) share that the layers leave to what is behind
    mean_free: Image  # (pixels,) product of the mean shares
    light: Image  # (pixels,) mean of the blended light, minus the blend of the mean layers


def _covariance(
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    sheets: list[Sheet],
    points: Image,
    spread: Spread,
) -> Image:
    """Mean over the opening of the blended light, minus the blend of the mean layers."""
    opening = _Opening(
        free=np.ones((rows.size, len(points)), dtype=np.float32),
        mean_free=np.ones(rows.size, dtype=np.float32),
        light=np.zeros(rows.size, dtype=np.float32),
    )
    for sheet in sheets:
        colour, alpha = sheet.canvas.colour, sheet.canvas.alpha
        alpha = np.zeros((0, 0), dtype=np.float32) if alpha is None else alpha
        window, (dx, dy) = sheet.canvas.window, sheet.shift_px
        # Pixel (0, 0) of the view on the canvas.
        origin = float(dx - window.col), float(dy - window.row)
        blur_px = spread(sheet.radius_px, rows, cols)
        places = (rows, cols, points, colour, alpha, origin, blur_px)
        run_over_rows(_pass_layer, rows.size, *places, opening)
    return opening.light


@compiled
def _pass_layer(
    start: int,
    stop: int,
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    points: Image,
    colour: Image,
    alpha: Image,
    origin: tuple[float, float],
    blur_px: FloatArray,
    opening: _Opening,
) -> None:
    """Add the light of one layer through each point of the opening, and update the free share."""
    free, free_on_average, out = opening
    left, top = origin
    count = points.shape[0]
    widest = np.sqrt(np.max(points[:, 0] ** 2 + points[:, 1] ** 2))
    is_opaque = alpha.size == 0
    last_row, last_col = colour.shape[0] - 1.001, colour.shape[1] - 1.001
    for n in range(start, stop):
        y, x = rows[n], cols[n]
        along, mixed, down = blur_px[0, n], blur_px[1, n], blur_px[2, n]
        reach = (max(abs(along), abs(down)) + abs(mixed)) * widest
        far_from_layer = not is_opaque and (
            y + top + reach < 0
            or x + left + reach < 0
            or y + top - reach > last_row
            or x + left - reach > last_col
        )
        if far_from_layer or free_on_average[n] < 1e-6:
            continue
        light = 0.0
        mean_colour = 0.0
        mean_alpha = 0.0
        for j in range(count):
            # From a point further right in the opening, a near point is seen further left.
            b = y + top + (down * points[j, 1] + mixed * points[j, 0])
            a = x + left + (along * points[j, 0] + mixed * points[j, 1])
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
