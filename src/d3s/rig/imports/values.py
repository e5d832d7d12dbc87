"""Numbers, matrices and sizes in the values of a calibration file, checked."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from d3s.record import short_repr
from d3s.rig.imports.source import Source
from d3s.rig.stereo import RawCamera
from d3s.types import FloatArray

_SKEW_PX = 1e-6


def numbers(value: Any) -> list[float] | None:
    """Numbers of a value: of a list, nested or not, a matrix of OpenCV, or one number.

    None if it is anything else, or has a number that is not finite.
    """
    if isinstance(value, Mapping):
        value = value.get("data")
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [numbers(one) for one in value]
        if any(part is None for part in parts):
            return None
        return [number for part in parts for number in part or ()]
    try:
        number = float(value)  # YAML has 1e-3, without a dot, as text
    except (TypeError, ValueError):
        return None
    return [number] if math.isfinite(number) else None


def matrix(source: Source, name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """Matrix of a shape, row by row.

    `name` is for the error; `value` is None if the file does not have it; `shape` has rows and
    columns, or the number of values.
    """
    if value is None:
        raise source.error(f"has no {name}. Is it the whole calibration of a stereo camera?")
    found = numbers(value)
    if found is None or len(found) != math.prod(shape):
        words = " x ".join(map(str, shape))
        raise source.error(f"{name}={short_repr(value)} must have {words} numbers.")
    return np.array(found).reshape(shape)


def raw_camera(
    source: Source,
    name: str,
    camera_matrix: FloatArray,
    *,
    size: tuple[int, int],
    distortion: Sequence[float] = (),
    fisheye: bool = False,
) -> RawCamera:
    """Camera of a matrix K (3, 3).

    `name` of the matrix is for the error; `size` is width and height; the coefficients are those of
    OpenCV, of its equidistant model if `fisheye`.
    """
    below = camera_matrix[[1, 2, 2, 2], [0, 0, 1, 2]]
    if not np.allclose(below, (0, 0, 0, 1), rtol=0, atol=_SKEW_PX):
        raise source.error(f"{name} is no camera matrix: it must be [fx 0 cx; 0 fy cy; 0 0 1].")
    if abs(camera_matrix[0, 1]) > _SKEW_PX:
        raise source.error(
            f"{name} has a skew of {camera_matrix[0, 1]:g} px, which is not supported. Calibrate "
            "without skew."
        )
    coefficients = tuple(float(one) for one in distortion) if any(distortion) else ()
    if coefficients:  # some programs write k1 alone
        coefficients += (0.0,) * (4 - len(coefficients))
    return RawCamera(
        model="fisheye" if fisheye else "pinhole",
        rows_px=int(size[1]),
        cols_px=int(size[0]),
        focal_lengths_px=(float(camera_matrix[0, 0]), float(camera_matrix[1, 1])),
        principal_point_px=(float(camera_matrix[0, 2]), float(camera_matrix[1, 2])),
        distortion=coefficients,
    )


def picture_size(source: Source, values: Sequence[Any]) -> tuple[int, int]:
    """Width and height of the pictures, whole numbers from 1 on."""
    found = numbers(list(values))
    if found is None or len(found) != 2 or any(one < 1 or one != int(one) for one in found):
        raise source.error(
            f"has a picture size of {short_repr(list(values))}: it must be two whole numbers, "
            "width and height."
        )
    return int(found[0]), int(found[1])
