"""Depth at a pixel, distances between pixels, and points in space, of a depth map."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag, describe
from d3s.estimate.saving import as_image
from d3s.estimate.summary import length
from d3s.files.depth_image import DepthImage, Points, points_of
from d3s.record import short_repr
from d3s.types import FloatArray


@dataclass(frozen=True, kw_only=True)
class PixelDepth:
    """Depth of one pixel, or the reasons why it has none."""

    row: int
    col: int
    depth_m: float  # NaN where there is none
    sigma_m: float
    confidence: float
    flags: Flag
    reasons: tuple[str, ...]  # the flags in words
    point_m: tuple[float, float, float]  # x right, y down, z forward; NaN where there is no depth

    @property
    def has_depth(self) -> bool:
        """Whether the pixel has a depth."""
        return bool(np.isfinite(self.depth_m))

    def __str__(self) -> str:
        place = f"row {self.row}, column {self.col}"
        remark = "; ".join(self.reasons)
        if not self.has_depth:
            return f"{place}: no depth: {remark}"
        words = (
            f"{place}: {self.depth_m:.4g} m, sigma {length(self.sigma_m)}, "
            f"confidence {self.confidence:.2f}"
        )
        return f"{words}; {remark}" if remark else words


class Distance(NamedTuple):
    """Distance between two points and its standard deviation, in metres."""

    distance_m: float
    sigma_m: float

    def __str__(self) -> str:
        return f"{self.distance_m:.4g} m, sigma {length(self.sigma_m)}"


def pixel_depth(depth_map: DepthMap, row: SupportsIndex, col: SupportsIndex) -> PixelDepth:
    """Depth of a pixel with sigma, confidence and flags in words.

    Parameters
    ----------
    depth_map
        Depth map to look into.
    row, col
        Pixel of the left view, counted from 0 at the top left.

    Raises
    ------
    InputError
        If the pixel is outside of the depth map.
    """
    place = _checked_place(depth_map, (row, col), "the pixel")
    depth_m = float(depth_map.depth_m[place])
    flags = int(depth_map.flags[place])
    x, y, z = (_ray(depth_map, place) * depth_m).tolist()
    return PixelDepth(
        row=place[0],
        col=place[1],
        depth_m=depth_m,
        sigma_m=float(depth_map.sigma_m[place]),
        confidence=float(depth_map.confidence[place]),
        flags=Flag(flags),  # type: ignore[call-arg]  # the reason belongs to the definition
        reasons=describe(flags),
        point_m=(x, y, z),
    )


def distance(depth_map: DepthMap, a: Any, b: Any) -> Distance:
    """Distance between the points of two pixels, with its standard deviation.

    Parameters
    ----------
    depth_map
        Depth map to look into.
    a, b
        Pixels of the left view as (row, column).

    Raises
    ------
    InputError
        If a pixel is outside of the depth map, or has no depth.
    """
    places = [_checked_place(depth_map, one, name) for one, name in ((a, "a"), (b, "b"))]
    for place, name in zip(places, "ab", strict=True):
        found = pixel_depth(depth_map, *place)
        if not found.has_depth:
            raise InputError(
                f"{name}={place} has no depth: {'; '.join(found.reasons)}. Choose a pixel of "
                "`valid`."
            )
    rays = [_ray(depth_map, place) for place in places]
    depths_m = [float(depth_map.depth_m[place]) for place in places]
    between = rays[1] * depths_m[1] - rays[0] * depths_m[0]
    distance_m = float(np.linalg.norm(between))
    # Depth moves a point along its ray: the distance changes by the ray's part along the line.
    along = between / distance_m if distance_m else np.zeros(3)
    changes = [
        float(along @ ray) * float(depth_map.sigma_m[place])
        for ray, place in zip(rays, places, strict=True)
    ]
    return Distance(distance_m, math.hypot(*changes))


def points(depth_map: DepthMap, mask: Any = None, colour: Any = None) -> Points:
    """Points of the pixels that have a depth, row by row.

    Parameters
    ----------
    depth_map
        Depth map.
    mask
        Pixels to keep (rows, cols); None keeps all that have a depth.
    colour
        Colours of the left view, RGB (rows, cols, 3), for viewers: 8 or 16 bit, or floats 0 to 1.

    Raises
    ------
    InputError
        If mask or colour do not have the size of the depth map.
    """
    image = as_image(depth_map, colour=colour)
    if mask is not None:
        kept = _checked_mask(mask, image)
        image = replace(image, depth_m=np.where(kept, image.depth_m, np.float32(np.nan)))
    return points_of(image)


def _ray(depth_map: DepthMap, place: tuple[int, int]) -> FloatArray:
    """Point of a pixel at the depth 1, as (x, y, 1)."""
    matrix = as_image(depth_map).intrinsics
    if matrix is None:  # a rig has a focal length
        raise InputError("the focal length of the camera is not known.")
    x = (place[1] - matrix[0, 2]) / matrix[0, 0]
    y = (place[0] - matrix[1, 2]) / matrix[1, 1]
    return np.array([x, y, 1.0])


def _checked_place(depth_map: DepthMap, place: Any, name: str) -> tuple[int, int]:
    shape = depth_map.depth_m.shape
    try:
        row, col = (one.__index__() for one in place)
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{name}={short_repr(place)} must be a pixel: two whole numbers, row and column."
        ) from error
    if not (0 <= row < shape[0] and 0 <= col < shape[1]):
        raise InputError(
            f"{name}=({row}, {col}) must be inside of the {shape[0]} x {shape[1]} px of the depth "
            "map: row first, then column, both from 0."
        )
    return row, col


def _checked_mask(mask: Any, image: DepthImage) -> NDArray[np.bool_]:
    kept = np.asarray(mask)
    if kept.dtype != bool or kept.shape != image.depth_m.shape:
        raise InputError(
            f"mask has type {kept.dtype} and shape {kept.shape}: it must be bool of shape "
            f"{image.depth_m.shape}, such as est.sigma_m < 0.01."
        )
    return kept
