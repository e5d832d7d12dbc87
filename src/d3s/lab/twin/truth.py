"""True depth, sharp image and occlusion of a rendered scene."""

from typing import NamedTuple

import numpy as np

from d3s.lab.twin.blur import Sheet
from d3s.lab.twin.geometry import View, Window
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

    Parameters
    ----------
    sheets
        Layers of the view, front to back.
    frame
        Pixels of the view to fill.
    colour
        Whether to blend the image; otherwise it is 0. Wanted only for sheets without a shift.
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

    Parameters
    ----------
    inverse_left
        (rows, cols) inverse depth in the left view, in 1/m.
    inverse_right
        (rows, cols) inverse depth in the right view, in 1/m; None if nothing can hide anything.
    views
        Left and right view.
    step_dpt
        A point is hidden if the right camera sees a surface nearer by more than this, in 1/m.
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
