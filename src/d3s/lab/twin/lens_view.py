"""Light on the sensor behind a lens with errors, and the truth that it shows.

The sharp layers are distorted first, then blurred by the spots of their places, then blended.
"""

import numpy as np

from d3s.lab.twin.blur import Sheet
from d3s.lab.twin.distortion import (
    Distortion,
    distort,
    largest_shift_px,
    nearest_pixels,
    undistorted_places,
)
from d3s.lab.twin.field_blur import RINGS_PX, FieldLens, blur_over_field, distorted_sheet
from d3s.lab.twin.geometry import Affine, Window
from d3s.lab.twin.render import add_edge_light, mark_edges, render_view
from d3s.lab.twin.truth import Front, front_of
from d3s.types import Image, Mask


def extra_reach_px(field: FieldLens, frame: Window) -> float:
    """Distance that light gets beyond the blur of a perfect lens, for margins."""
    bent = 0.0 if field.distortion is None else largest_shift_px(field.distortion, frame)
    if not field.spreads:
        return bent
    rings = 2 * RINGS_PX if field.blur_model.psf == "diffraction" else 0
    return bent + rings + field.reach_px(Affine(0.0, 0.0, 0.0), frame)


def render_through(
    sheets: list[Sheet],
    frame: Window,
    field: FieldLens,
    *,
    lit: Mask | None = None,
    edges: Mask | None = None,
) -> Image:
    """Light on the sensor, (rows, cols) of the frame, before the lens takes any away.

    Parameters
    ----------
    sheets
        Layers of the view as a perfect lens draws them, front to back.
    frame
        Pixels of the view to fill.
    field
        Lens with its errors.
    lit
        (rows, cols) pixels that are needed; all by default.
    edges
        (rows, cols) pixels at which edges are corrected, as for `render_view`.
    """
    if field.spreads or field.distortion is not None:
        sheets = [distorted_sheet(sheet, field) for sheet in sheets]
    if not field.spreads:
        return render_view(sheets, frame, field.lens, field.blur_model, edges)
    image = np.zeros(frame.shape, dtype=np.float32)
    free = np.ones(frame.shape, dtype=np.float32)
    found = np.zeros(frame.shape, dtype=np.bool_)
    for sheet in sheets:
        layer = blur_over_field(sheet, frame, field, lit)
        part = layer.window.within(frame)
        image[part] += free[part] * layer.colour
        if layer.alpha is None:
            break
        mark_edges(found, layer.alpha, part, free)
        free[part] *= 1 - layer.alpha
    if edges is not None:
        found &= edges
    add_edge_light(
        image, frame, found, sheets, field.lens, field.blur_model, field.spread_at_pixels
    )
    return image


def front_through(
    sheets: list[Sheet], frame: Window, field: FieldLens, *, colour: bool = True
) -> Front:
    """Sharp image and inverse depth that a lens draws, without its blur.

    Parameters
    ----------
    sheets
        Layers of the view as a perfect lens draws them, front to back.
    frame
        Pixels of the view to fill.
    field
        Lens with its errors.
    colour
        Whether the image is wanted.
    """
    if field.distortion is None:
        return front_of(sheets, frame, colour=colour)
    margin = int(np.ceil(largest_shift_px(field.distortion, frame))) + 1
    wide = frame.grown(margin, margin)
    front = front_of(sheets, wide, colour=colour)
    image = front.colour
    if colour:
        image = distort(image, field.distortion, wide)
    image = image[frame.within(wide)]
    return Front(image, _inverse_depth(sheets, front.inverse_depth, wide, frame, field.distortion))


def _inverse_depth(
    sheets: list[Sheet], seen: Image, wide: Window, frame: Window, distortion: Distortion
) -> Image:
    plane = sheets[0].inverse_depth
    if len(sheets) == 1 and isinstance(plane, Affine):
        x, y = undistorted_places(distortion, frame)
        return np.asarray(plane.constant + plane.per_x * x + plane.per_y * y, dtype=np.float32)
    return seen[nearest_pixels(distortion, frame, wide)]
