"""Light that lenses pass, lose, scatter and leak: transmission, falloff, glare and crosstalk."""

import numpy as np

from d3s.lab.twin.field_blur import FieldLens
from d3s.lab.twin.geometry import Window
from d3s.lab.twin.lens_errors import PERFECT_LENS
from d3s.types import Image

# Light leaks past the partition after reflections, which leave no detail: the standard deviation of
# its blur, over the field radius, and the factor by which images are shrunk to blur them.
_LEAK_WIDTH = 0.12
_SHRINK = 8


def lens_light(
    images: list[Image],
    fields: tuple[FieldLens, FieldLens],
    windows: tuple[Window, Window],
    lit: list[Image] | None = None,
) -> list[Image]:
    """Light behind both lenses, with glare and crosstalk.

    Parameters
    ----------
    images
        Light of the left and the right view through lenses that lose none.
    fields
        Left and right lens.
    windows
        Pixels that each image holds, in the coordinates of its view.
    lit
        Share of the light that the mount lets through to each pixel, all by default. Glare spreads
        over it.
    """
    if all(field.errors == PERFECT_LENS for field in fields):
        return images
    passed = [
        image * _passed(field, window)
        for image, field, window in zip(images, fields, windows, strict=True)
    ]
    result = []
    for camera, (own, field) in enumerate(zip(passed, fields, strict=True)):
        light, errors = own, field.errors
        if errors.glare:
            mean = np.average(own, weights=None if lit is None else lit[camera])
            light = (1 - np.float32(errors.glare)) * own + np.float32(errors.glare * mean)
        if errors.crosstalk:
            other = 1 - camera
            source = passed[other] if lit is None else passed[other] * lit[other]
            leak = _blurred(source, _LEAK_WIDTH * errors.field_radius_px)
            light = light + np.float32(errors.crosstalk) * _moved(leak, fields, windows, camera)
        result.append(light)
    return result


def _passed(field: FieldLens, window: Window) -> Image:
    """Share of the light that a lens passes to each pixel of a window."""
    light = field.errors.illumination(
        field.view, window.col_numbers, window.row_numbers[:, np.newaxis]
    )
    return light.astype(np.float32)


def _blurred(image: Image, sigma_px: float) -> Image:
    """Image without detail, by a wide Gaussian."""
    import cv2

    rows, cols = image.shape
    size = max(1, cols // _SHRINK), max(1, rows // _SHRINK)
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    sigma = sigma_px / _SHRINK
    small = cv2.GaussianBlur(small, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(small, (cols, rows), interpolation=cv2.INTER_LINEAR))


def _moved(
    leak: Image,
    fields: tuple[FieldLens, FieldLens],
    windows: tuple[Window, Window],
    camera: int,
) -> Image:
    """Light of the other lens on the pixels of this one, axis on axis."""
    own, other = windows[camera], windows[1 - camera]
    (x, y), (other_x, other_y) = (fields[one].view.centre_px for one in (camera, 1 - camera))
    rows = np.rint(own.row_numbers - y + other_y).astype(np.int64) - other.row
    cols = np.rint(own.col_numbers - x + other_x).astype(np.int64) - other.col
    return leak[np.ix_(np.clip(rows, 0, other.rows - 1), np.clip(cols, 0, other.cols - 1))]
