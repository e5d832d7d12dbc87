"""Answers to clicks: one pixel, the distance between two, and the profile along a line."""

import math
from typing import Any

import numpy as np

from d3s.camera.live.results import Result
from d3s.camera.live.settings import Filter
from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.record import short_repr

MOST_POINTS = 800
"""Points of a profile at most."""


def place_of(value: Any, name: str) -> tuple[int, int]:
    """Row and column of a message.

    Raises
    ------
    InputError
        If it is not two whole numbers.
    """
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if not is_pair or not all(type(one) is int for one in value):
        raise InputError(f"{name}={short_repr(value)} must be two whole numbers: row and column.")
    return value[0], value[1]


def pixel(result: Result, limits: Filter, place: Any) -> dict[str, Any]:
    """Depth, sigma, confidence, flags and grey values of a pixel.

    Parameters
    ----------
    result
        Frame that is shown.
    limits
        Filter of what is shown.
    place
        Row and column.

    Raises
    ------
    InputError
        If the pixel is outside of the frame.
    """
    row, col = place_of(place, "place")
    found = result.shown(limits).at(row, col)
    return {
        "text": str(found),
        "depth_m": found.depth_m,
        "sigma_m": found.sigma_m,
        "confidence": found.confidence,
        "flags": [str(flag.name) for flag in found.flags],
        "reasons": list(found.reasons),
        "point_m": list(found.point_m),
        "left": None if result.left is None else float(result.left[row, col]),
        "right": None if result.right is None else float(result.right[row, col]),
    }


def distance(result: Result, limits: Filter, a: Any, b: Any) -> dict[str, Any]:
    """Distance in space between two pixels, with its sigma.

    Parameters
    ----------
    result, limits
        Frame that is shown, and the filter of what is shown.
    a, b
        Row and column of both pixels.

    Raises
    ------
    InputError
        If a pixel is outside of the frame, or has no depth.
    """
    shown = result.shown(limits)
    found = shown.distance(place_of(a, "a"), place_of(b, "b"))
    return {"text": str(found), **found._asdict()}


def profile(result: Result, limits: Filter, a: Any, b: Any) -> dict[str, Any]:
    """Depth and sigma along the line between two pixels; NaN where there is no depth.

    Parameters
    ----------
    result, limits
        Frame that is shown, and the filter of what is shown.
    a, b
        Row and column of both ends.

    Raises
    ------
    InputError
        If an end is outside of the frame.
    """
    shown = result.shown(limits)
    ends = [place_of(one, name) for one, name in ((a, "a"), (b, "b"))]
    for row, col in ends:
        shown.at(row, col)  # refuses what is outside
    return _samples(shown, *ends)


def _samples(shown: DepthMap, a: tuple[int, int], b: tuple[int, int]) -> dict[str, Any]:
    """Nearest pixels at even steps along a line."""
    steps = max(abs(b[0] - a[0]), abs(b[1] - a[1]))
    count = min(steps + 1, MOST_POINTS)
    rows, cols = (np.rint(np.linspace(a[i], b[i], count)).astype(np.intp) for i in (0, 1))
    return {
        "length_px": math.dist(a, b),
        "depth_m": shown.depth_m[rows, cols].tolist(),
        "sigma_m": shown.sigma_m[rows, cols].tolist(),
    }
