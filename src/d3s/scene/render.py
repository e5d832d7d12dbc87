"""From sheets to a picture: blurred one by one, blended front to back, right at the edges."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.optics.lens import Lens
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import over_rows
from d3s.scene.blur import Sheet, Spread, blurred
from d3s.scene.geometry import View, Window
from d3s.scene.occlusion import add_edge_light, mark_edges
from d3s.types import FloatArray, Image


def render_view(
    sheets: list[Sheet],
    frame: Window,
    lens: Lens,
    spread: Spread,
    edges: NDArray[np.bool_] | None = None,
) -> Image:
    """Light on the sensor from sheets in order from front to back.

    Parameters
    ----------
    edges
        Where there may be an edge that hides part of the opening; anywhere, unless given.
    """
    if len(sheets) == 1 and sheets[0].canvas.alpha is None:
        return blurred(sheets[0], frame, lens, spread).colour
    image = np.zeros(frame.shape, dtype=np.float32)
    free = np.ones(frame.shape, dtype=np.float32)
    found = np.zeros(frame.shape, dtype=np.bool_)
    for sheet in sheets:
        layer = blurred(sheet, frame, lens, spread)
        part = layer.window.within(frame)
        image[part] += free[part] * layer.colour
        if layer.alpha is None:
            break
        mark_edges(found, layer.alpha, part, free)
        free[part] *= 1 - layer.alpha
    if edges is not None:
        found &= edges
    add_edge_light(image, frame, found, sheets, lens, spread)
    return image


class Front(NamedTuple):
    """What a pinhole in the place of the lens sees."""

    colour: Image
    inverse_depth: Image


def front_of(sheets: list[Sheet], frame: Window, *, colour: bool = True) -> Front:
    """Sharp image, and 1/m of the surface that covers at least half of each pixel.

    For a sheet that is read between its pixels, the nearest are taken, which moves the edge of a
    mask by up to half a pixel; the image is asked for only where that does not happen.
    """
    if len(sheets) == 1 and sheets[0].canvas.alpha is None:
        return _only_front(sheets[0], frame)
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


def _only_front(sheet: Sheet, frame: Window) -> Front:
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


def occluded(
    inverse_left: Image, inverse_right: Image | None, views: tuple[View, View], step_dpt: float
) -> NDArray[np.bool_]:
    """Pixels of the left view whose point the right camera does not see, or not in its frame.

    A point counts as hidden when what the right camera sees in its place is nearer by more than
    `step_dpt`. Without `inverse_right`, nothing is in front of anything.
    """
    if inverse_right is None:
        inverse_right = np.zeros((0, 0), dtype=np.float32)
    to_right = np.linalg.inv(views[1].ray_matrix)
    # A pixel at infinity is at `far` in the right view, and moves by `near` per 1/m of nearness.
    far = to_right @ views[0].ray_matrix
    near = -views[1].camera_x_m * to_right[:, 0]
    hidden = np.empty(inverse_left.shape, dtype=np.bool_)
    over_rows(
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
    out: NDArray[np.bool_],
) -> None:
    rows, cols = out.shape
    is_alone = inverse_right.size == 0
    for i in range(start, stop):
        for j in range(cols):
            nearness = inverse_left[i, j]
            x = far[0, 0] * j + far[0, 1] * i + far[0, 2] + near[0] * nearness
            y = far[1, 0] * j + far[1, 1] * i + far[1, 2] + near[1] * nearness
            # Half a pixel beyond the outermost centre is the end of the sensor.
            out[i, j] = x < -0.5 or y < -0.5 or x >= cols - 0.5 or y >= rows - 0.5
            if not is_alone and not out[i, j]:
                out[i, j] = inverse_right[int(y + 0.5), int(x + 0.5)] > nearness + step_dpt
