"""Files of depth, out and back in: the suffix chooses the format."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from d3s import atomic
from d3s.errors import InputError
from d3s.files import csv_points, ply
from d3s.files.depth_image import LAYERS, DepthImage, points_of
from d3s.files.raw import named

DEFAULT_UNIT_M = 0.001


class DepthFormat(NamedTuple):
    """A format that depth is written in."""

    words: str
    keeps: tuple[str, ...]  # of LAYERS
    encode: Callable[[DepthImage, float], bytes]


FORMATS: dict[str, DepthFormat] = {
    ".ply": DepthFormat("points", LAYERS, lambda image, _: ply.encode(points_of(image))),
    ".csv": DepthFormat("points", LAYERS, lambda image, _: csv_points.encode(points_of(image))),
}


def write_depth(
    path: str | os.PathLike[str],
    image: DepthImage,
    *,
    unit_m: float = DEFAULT_UNIT_M,
    overwrite: bool = False,
) -> None:
    """Write depth in the format of the suffix, whole or not at all."""
    with named(path):
        encoded = format_of(path).encode(image, unit_m)
    atomic.write_bytes(path, encoded, overwrite=overwrite)


def format_of(path: str | os.PathLike[str]) -> DepthFormat:
    """The format that a suffix chooses."""
    suffix = Path(os.fsdecode(path)).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"depth is written as {', '.join(FORMATS)}, and this ends in {suffix or 'nothing'}. "
            "Give the name one of these suffixes."
        )
    return FORMATS[suffix]
